"""Distillation of word vectors, from a real ONNX encoder of a few words: strings in, 512 numbers out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs the extra `train`")
pytest.importorskip("onnxruntime_extensions", reason="needs the extra `vectors`")
pytest.importorskip("wordfreq", reason="needs the extra `vectors`")

from veriglot.detectors.grounding.document import MEANING, Document, Lexicon  # noqa: E402
from veriglot.training.grounding import pipeline as vectors  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = (("bridge", "brücke"), ("river", "fluss"), ("opened", "eröffnet"), ("mayor", "bürgermeister"))
WORDS = [word for pair in PAIRS for word in pair]
OTHERS = [f"word{i}" for i in range(60)]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Translations have the same vector with a little noise, as in a real multilingual encoder."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(3)
    meanings = rng.normal(size=(len(PAIRS), 512)).repeat(2, axis=0) + 0.1 * rng.normal(size=(len(WORDS), 512))
    table = np.concatenate([rng.normal(size=(1, 512)), meanings, rng.normal(size=(len(OTHERS), 512))])
    known = WORDS + OTHERS
    nodes = [
        helper.make_node(
            "LabelEncoder", ["text"], ["rows"], domain="ai.onnx.ml",
            keys_strings=known, values_int64s=list(range(1, len(known) + 1)), default_int64=0,
        ),
        helper.make_node("Gather", ["table", "rows"], ["vectors"]),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info("text", TensorProto.STRING, ["n"])],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", 512])],
        [numpy_helper.from_array(table.astype(np.float32), "table")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    path = tmp_path_factory.mktemp("encoder") / "encoder.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


def test_translations_lie_together_and_survive_saving(encoder: Path, tmp_path: Path) -> None:
    distilled = vectors.distil([*WORDS, *OTHERS, "two words"], encoder)
    assert len(distilled.keys) == len(WORDS) + len(OTHERS)  # words that the segmenter splits are left out
    distilled.lexicon(np.zeros((2, 1 << 17), np.uint8), distilled.next_directions()).save(tmp_path)
    lexicon = Lexicon.load(tmp_path)
    assert lexicon.dimensions == MEANING + vectors.LEARNED
    found = lexicon.meanings_of(Document([" ".join(WORDS)], None))
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=0.05)
    alike = found @ found.T
    np.fill_diagonal(alike, -1)
    for place in range(0, len(WORDS), 2):
        assert int(alike[place].argmax()) == place + 1


def test_an_inflected_word_borrows_the_vector_of_its_core(encoder: Path) -> None:
    distilled = vectors.distil([*WORDS, *OTHERS], encoder)
    lexicon = distilled.lexicon(np.zeros((2, 1 << 17), np.uint8), None)
    places = lexicon.places_of(Document(["bridge bridges bridgework"], None))
    assert places[0] == places[1] >= 0
    assert places[2] == -1


def test_the_vocabulary_holds_listed_words_and_repeated_ones_of_the_encoders_languages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors, "_LISTED", 20)
    text = "Zwiebelturm " * 4 + "einmalig 1234 1234 1234 1234"
    found = vectors.vocabulary([("de", text), ("fi", "sipulitorni " * 9)])
    assert {"und", "the", "zwiebelturm"} <= set(found)
    assert not {"einmalig", "sipulitorni", "1234"} & set(found)
    assert found == sorted(found)
