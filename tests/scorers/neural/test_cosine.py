"""The cosine of source and response, by a tiny checkpoint and by the real encoder."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest

from veriglot.encoders.base import load_encoder
from veriglot.records import Evidence, Sample, Status
from veriglot.scorers.registry import load_scorer

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def sample(response: str, source: str) -> Sample:
    return Sample("x", response, evidence=(Evidence(source),))


def test_it_is_the_cosine_of_a_checkpoint_of_sentence_transformers(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra `encoders`")
    import sentence_transformers
    from sentence_transformers.sentence_transformer import modules
    from tiny_networks import write_classifier

    write_classifier(tmp_path / "body", {0: "a", 1: "b"})
    body = modules.Transformer(str(tmp_path / "body"), max_seq_length=60)
    whole = sentence_transformers.SentenceTransformer(modules=[body, modules.Pooling(16)], device="cpu")
    whole.save(str(tmp_path / "model"))
    scorer = load_scorer(f"labse:{tmp_path / 'model'}", device="cpu")
    asked = [sample("the dog", "der hund"), sample("the dog", "the dog"), sample(" ", "x"), sample("a", " ")]
    found = scorer.score(asked)
    left, right = load_encoder("sentence-transformers", model=tmp_path / "model", device="cpu").sentences(
        ["der hund", "the dog"]
    )
    assert found[0].value == pytest.approx(float(np.dot(left, right)), abs=1e-6)
    assert found[1].value == pytest.approx(1, abs=1e-6)
    assert [one.status for one in found[2:]] == [Status.NOTHING_TO_COMPARE, Status.NO_EVIDENCE]
    again = pickle.loads(pickle.dumps(scorer))
    assert again.signature == scorer.signature
    assert again.score(asked) == found


def test_a_translation_is_nearer_than_another_text(use_multilingual: Path) -> None:
    for package in ("sentencepiece", "onnx"):
        pytest.importorskip(package, reason="needs the extra `reader`")
    found = load_scorer("cosine", path=use_multilingual).score(
        [
            sample("Der Hund schläft auf dem Sofa.", "The dog is sleeping on the sofa."),
            sample("Die Regierung erhöhte die Steuern.", "The dog is sleeping on the sofa."),
        ]
    )
    assert found[0].value is not None
    assert found[1].value is not None
    assert found[0].value > found[1].value + 0.3
