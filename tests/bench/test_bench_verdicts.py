"""What systems say of items, by hand: with words, with spans alone, with neither, and by scorers of both directions."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from veriglot.bench.items import WITHOUT_CONFIDENCES, ItemTable, SystemScores
from veriglot.records import Annotation, Direction, Evidence, Kind, Prediction, Sample, Score, Span, Status, Word

TEXT = "Red fox. Blue hen."
SAMPLE = Sample(
    "a", TEXT, language="en", evidence=(Evidence("Red fox."),),
    annotations=(Annotation("gold", Kind.HUMAN, "hat", spans=(Span(9, 18),)),),
)  # fmt: skip


def table(level: str, *samples: Sample):  # type: ignore[no-untyped-def]
    rows = samples or (SAMPLE,)
    return ItemTable.of(rows, {row.id: row.id for row in rows}, level)


def said(**parts: object) -> Prediction:
    known: dict[str, object] = {"id": "a", "status": Status.SCORED, "detector": "d@1", "score": 0.8, "spans": ()}
    return Prediction(**{**known, **parts})  # type: ignore[arg-type]


WORDS = (Word(0, 3, 0.1), Word(4, 7, 0.2), Word(9, 13, 0.7), Word(14, 17, 0.3))


def test_words_have_their_confidence_and_the_verdict_of_the_spans() -> None:
    found = SystemScores.of_detector(table("word"), [said(words=WORDS, spans=(Span(9, 13, confidence=0.7),))], 0.5)
    assert found.badness.tolist() == [0.1, 0.2, 0.7, 0.3]
    assert found.verdict is not None
    assert found.verdict.tolist() == [0, 0, 1, 0]
    assert found.notes == ()


def test_sentences_are_scored_as_evaluate_scores_them() -> None:
    found = SystemScores.of_detector(table("sentence"), [said(words=WORDS)], 0.5)
    assert found.badness.tolist() == [0.2, 0.7]
    assert found.verdict is not None
    assert found.verdict.tolist() == [0, 1]


def test_a_response_has_its_score_and_is_marked_where_it_has_spans() -> None:
    for spans, verdict in (((), 0.0), ((Span(0, 3),), 1.0)):
        found = SystemScores.of_detector(table("response"), [said(spans=spans)], 0.5)
        assert found.badness.tolist() == [0.8]
        assert found.verdict is not None
        assert found.verdict.tolist() == [verdict]


def test_spans_alone_give_their_confidence_and_nothing_between_them() -> None:
    spans = (Span(0, 3, confidence=0.6), Span(14, 17, confidence=0.9))
    found = SystemScores.of_detector(table("word"), [said(spans=spans)], 0.5)
    assert found.badness.tolist() == [0.6, 0.0, 0.0, 0.9]


def test_spans_without_confidence_are_verdicts_and_said_to_be() -> None:
    found = SystemScores.of_detector(table("word"), [said(spans=(Span(4, 7),))], 0.5)
    assert found.badness.tolist() == [0, 1, 0, 0]
    assert found.notes == (WITHOUT_CONFIDENCES,)


def test_what_was_not_scored_is_no_number() -> None:
    lost = Prediction("a", Status.FAILED, "d@1", reason="broke")
    found = SystemScores.of_detector(table("word"), [lost], 0.5)
    assert np.isnan(found.badness).all()
    assert found.verdict is not None
    assert np.isnan(found.verdict).all()


@pytest.mark.parametrize(
    ("direction", "badness", "verdict"),
    [
        (Direction.HIGHER_IS_WORSE, [0.2, 0.5, 0.9], [0, 1, 1]),
        (Direction.HIGHER_IS_BETTER, [-0.2, -0.5, -0.9], [1, 1, 0]),
    ],
)
def test_a_scorers_threshold_is_in_its_own_numbers(
    direction: Direction, badness: list[float], verdict: list[float]
) -> None:
    scores = [Score(str(value), Status.SCORED, "s@1", value) for value in (0.2, 0.5, 0.9)]
    scores.append(Score("x", Status.FAILED, "s@1", reason="broke"))
    found = SystemScores.of_scorer(scores, direction, 0.5)
    assert found.badness[:3].tolist() == badness
    assert found.verdict is not None
    assert found.verdict[:3].tolist() == verdict
    assert np.isnan(found.badness[3])
    assert np.isnan(found.verdict[3])
    assert SystemScores.of_scorer(scores, direction, None).verdict is None


def test_sentences_of_their_own_keep_evidence_and_language_and_lose_labels() -> None:
    found = table("sentence").item_samples([SAMPLE])
    assert [one.response.strip() for one in found] == ["Red fox.", "Blue hen."]
    assert len({one.id for one in found}) == 2
    assert all(one.evidence == SAMPLE.evidence and one.language == "en" and not one.annotations for one in found)


FACTS = "Mira Holt, a Danish painter, was born in Odense in 1902."
OF_FACTS = Sample(
    "a", FACTS, language="en", evidence=(Evidence("Mira Holt was born in Aarhus in 1902."),),
    annotations=(
        Annotation("gold", Kind.HUMAN, "support", spans=(Span(11, 27, "unverified"), Span(38, 47, "contradicted"))),
    ),
)  # fmt: skip


def test_a_fact_is_judged_by_its_own_words() -> None:
    rows = table("fact", OF_FACTS)
    assert [FACTS[start:end] for start, end in rows.bounds.tolist()] == [
        "Mira Holt, a Danish painter, was born", "a Danish painter", "in Odense", "in 1902"
    ]  # fmt: skip
    assert rows.nonfactual.tolist() == [False, True, True, False], "the aside is none of the clause around it"
    assert rows.support.tolist() == [1, 0, 0, 1]
    assert rows.unverified.tolist() == [0, 1, 0, 0]
    words = tuple(Word(start, start + 4, p) for start, p in ((0, 0.3), (13, 0.9), (33, 0.1), (41, 0.4), (51, 0.2)))
    by_words = SystemScores.of_detector(rows, [said(words=words)], 0.5)
    assert by_words.badness.tolist() == [0.3, 0.9, 0.4, 0.2]
    assert by_words.verdict is not None
    assert by_words.verdict.tolist() == [0, 1, 0, 0]
    by_spans = SystemScores.of_detector(rows, [said(spans=(Span(13, 19, confidence=0.6), Span(51, 55)))], 0.5)
    assert by_spans.badness.tolist() == [0, 0.6, 0, 1]
    assert by_spans.verdict is not None
    assert by_spans.verdict.tolist() == [0, 1, 0, 1]


def test_scorers_are_asked_about_facts_as_claims_that_stand_alone() -> None:
    asked = table("fact", SAMPLE, msgspec.structs.replace(OF_FACTS, id="b")).item_samples([SAMPLE, OF_FACTS])
    assert [row.response for row in asked][-2:] == ["Mira Holt was born in Odense", "Mira Holt was born in 1902"]
    assert len({row.id for row in asked}) == len(asked) == 6
    bare = ItemTable.of([OF_FACTS], {"a": "a"}, "fact", labelled=False)
    assert bare.bounds.tolist() == table("fact", OF_FACTS).bounds.tolist()
