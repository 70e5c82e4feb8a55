"""The judge of pairs: labels and the space of labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from misbehaving import ModelServer
from scripted_judges import judge, sample, says

from veriglot.detectors.registry import load_detector
from veriglot.formats.reader import read
from veriglot.records import Status

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.records import Prediction

ROWS = [
    ("The mill burnt in 1745.", "The mill burnt in 1748.", "Entity"),
    ("He founded the choir.", "He left the choir.", "Relation"),
    ("She studied law.", "She swam to Mars.", "Sentence"),
    ("The mill burnt in 1745.", "The mill burnt in 1750.", "Entity"),
    ("She was kind.", "She was friendly.", "0"),
    ("She sang.", "She hummed.", "Relation"),
]


def pair_label(prediction: Prediction) -> str | None:
    if prediction.status is not Status.SCORED:
        return None
    return next((span.type for span in prediction.spans or ()), "none")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "halluverse_en.csv"
    lines = ["language,original_sentence,edited_sentence,hallucination_type", *(f"en,{a},{b},{c}" for a, b, c in ROWS)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_labels_by_hand(rows: Path) -> None:
    samples = list(read(rows))
    rules = [
        says({"type": "entity"}, match="1748|the choir"),
        says({"type": "sentence"}, match="to Mars"),
        says({"type": "none"}, match="friendly"),
        says("I do not know.", match="hummed"),
        says({"type": "relation"}),
    ]
    found = judge("pairs", *rules).predict(samples)
    assert [pair_label(one) for one in found] == ["entity", "entity", "sentence", "relation", "none", None]
    assert [one.score for one in found] == [1.0, 1.0, 1.0, 1.0, 0.0, None]


def test_the_papers_question_leaves_no_way_out() -> None:
    made = judge("pairs", says({"type": "none"}), none=False)
    (refused,) = made.predict([sample()])
    assert refused.status is Status.FAILED
    (found,) = judge("pairs", says({"type": "relation"}), none=False).predict([sample()])
    assert (pair_label(found), found.score, found.notes) == (
        "relation",
        1.0,
        ("verdict:type only", "confidence:verdict"),
    )


def test_samples_vote() -> None:
    replies = says({"type": "entity"}, {"type": "relation"}, {"type": "relation"}, {"type": "none"})
    (found,) = judge("pairs", replies, samples=4).predict([sample()])
    assert (pair_label(found), found.score) == ("relation", 0.75)
    assert [span.confidence for span in found.spans or ()] == [0.5]


def test_a_label_below_the_threshold_marks_nothing_and_is_noted() -> None:
    replies = says({"type": "entity"}, {"type": "relation"}, {"type": "relation"}, {"type": "none"})
    (found,) = judge("pairs", replies, samples=4, threshold=0.6).predict([sample()])
    assert (found.spans, found.score) == ((), 0.75)
    assert "spans:1 below the threshold" in found.notes
    (bare,) = judge("pairs", says({"type": "entity"}), threshold=0.6).predict([sample()])
    assert pair_label(bare) == "entity"  # nothing is known that could lie below


@pytest.mark.parametrize(("label", "score"), [("entity", 1.0), ("none", 1 - math.exp(-0.25))])
def test_the_probability_of_a_type_is_that_of_the_span_and_none_speaks_against_an_error(
    label: str, score: float
) -> None:
    with ModelServer(answer=lambda _: f'{{"type": "{label}"}}', schemas=False) as server:
        (found,) = load_detector("judge:pairs", model="m", url=server.base_url, probabilities=True).predict([sample()])
    assert found.score == round(score, 4)
    assert pair_label(found) == label
    assert [span.confidence for span in found.spans or ()] == ([] if label == "none" else [round(math.exp(-0.25), 4)])
