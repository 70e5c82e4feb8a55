"""From texts and predictions to counts, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import InputError, UnknownNameError
from veriglot.metrics.scores import bin_of, coarse_bin
from veriglot.records import CONFIDENCE_BINS, Evidence, Generator, Prediction, Sample, Span, Status, Word
from veriglot.study.rates import Group, Key, ResponseCounter, histogram_of, merge_groups, query_of

TEXT = "The bridge opened in 1897, they say."
WORDS = [(0, 3), (4, 10), (11, 17), (18, 20), (21, 25), (27, 31), (32, 35)]


def sample(name: str = "a", response: str = TEXT, language: str | None = "en", **more: object) -> Sample:
    return Sample(id=name, response=response, language=language, **more)  # type: ignore[arg-type]


def scored(
    name: str = "a", spans: list[tuple[int, int]] | None = None, confidences: list[float] | None = None, **more: object
) -> Prediction:
    """A prediction that marks these spans of `TEXT`, with or without the confidences of its words."""
    words = None if confidences is None else tuple(Word(*place, c) for place, c in zip(WORDS, confidences, strict=True))
    marked = tuple(Span(*place) for place in spans or ())
    return Prediction(name, Status.SCORED, "made-up@1", score=0.5, spans=marked, words=words, **more)  # type: ignore[arg-type]


def only(tallying: ResponseCounter) -> Group:
    (group,) = tallying.groups.values()
    return group


def counted(unit: str, told: Sample, prediction: Prediction) -> tuple[int, int]:
    tallying = ResponseCounter(unit)
    tallying.add(told, prediction)
    tallies = only(tallying).tallies
    return int(tallies.marked[0]), int(tallies.units[0])


SPANS = st.lists(st.tuples(st.integers(0, len(TEXT) - 1), st.integers(1, 12)), max_size=4).map(
    lambda found: sorted((start, min(len(TEXT), start + length)) for start, length in found)
)


@given(SPANS, st.booleans())
def test_words_that_a_span_touches_are_marked(spans: list[tuple[int, int]], with_words: bool) -> None:
    by_hand = sum(any(start < end_ and start_ < end for start_, end_ in spans) for start, end in WORDS)
    confidences = [0.5] * len(WORDS) if with_words else None
    assert counted("word", sample(), scored(spans=spans, confidences=confidences)) == (by_hand, len(WORDS))


@given(SPANS)
def test_characters_in_a_span_are_marked(spans: list[tuple[int, int]]) -> None:
    marked, units = counted("char", sample(), scored(spans=spans))
    inside = {place for start, end in spans for place in range(start, end) if not TEXT[place].isspace()}
    assert marked == len(inside)
    assert units == sum(not character.isspace() for character in TEXT)


@given(st.lists(st.floats(0.001, 0.999).filter(lambda c: c * CONFIDENCE_BINS % 1 > 1e-9), min_size=7, max_size=7))
def test_words_are_counted_by_confidence(confidences: list[float]) -> None:
    tallying = ResponseCounter("word")
    tallying.add(sample(), scored(confidences=confidences))
    found = only(tallying).tallies.confidences
    assert found is not None
    by_hand = [0] * CONFIDENCE_BINS
    for confidence in confidences:
        by_hand[int(confidence * CONFIDENCE_BINS)] += 1
    assert found.tolist() == [by_hand]


def test_the_ends_and_the_middle_have_their_bins() -> None:
    found = histogram_of(np.array([0.0, 0.5, 0.5, 1.0, 1.0, 1.0]))
    assert (found[0], found[10], found[19], found.sum()) == (1, 2, 3, 6)


@given(st.lists(st.floats(0.0, 1.0), max_size=20))
def test_bins_are_those_that_a_profile_counts_in(more: list[float]) -> None:
    """An evaluation counts in finer bins and adds them up: a word must end in the same bin by both ways."""
    confidences = np.array([*(place / CONFIDENCE_BINS for place in range(CONFIDENCE_BINS + 1)), *more])
    fine = coarse_bin(bin_of(confidences), CONFIDENCE_BINS)
    assert histogram_of(confidences).tolist() == np.bincount(fine, minlength=CONFIDENCE_BINS).tolist()


def test_characters_have_the_confidence_of_their_word() -> None:
    tallying = ResponseCounter("char")
    tallying.add(sample(), scored(confidences=[0.0, 0.93, 0.0, 0.0, 0.52, 0.0, 0.0]))
    found = only(tallying).tallies.confidences
    assert found is not None
    assert (found[0, 18], found[0, 10], found[0].sum()) == (6, 4, 30)


def test_confidences_are_left_out_where_not_all_predictions_have_them() -> None:
    tallying = ResponseCounter("word")
    tallying.add(sample("a"), scored("a", confidences=[0.1] * 7))
    tallying.add(sample("b"), scored("b"))
    tallies = only(tallying).tallies
    assert len(tallies) == 2
    assert tallies.confidences is None


def test_what_was_not_judged_is_counted_and_not_clean() -> None:
    tallying = ResponseCounter("word", ids=True)
    tallying.add(sample("a"), scored("a", [(4, 10)]))
    tallying.add(sample("b"), Prediction("b", Status.NO_EVIDENCE, "made-up@1", reason="there is none"))
    tallying.add(sample("c"), Prediction("c", Status.FAILED, "made-up@1", reason="it broke"))
    group = only(tallying)
    assert group.statuses == {"scored": 1, "no_evidence": 1, "failed": 1}
    assert len(group.tallies) == 1
    assert group.ids == ["a"]
    assert len(Group().tallies) == 0


def test_groups_are_models_languages_and_seeds() -> None:
    tallying = ResponseCounter("word")
    for number, (name, seed, language, found) in enumerate(
        [
            ("m", 1, "en", None),
            ("m", 2, "en", None),
            ("n", 1, "zho", None),
            ("n", 1, None, "Chinese"),
            ("n", 1, None, None),
        ]
    ):
        told = sample(str(number), language=language, generator=Generator(name, seed=seed))
        tallying.add(told, scored(str(number), language=found))
    tallying.add(sample("x"), scored("x"))
    assert {key: len(group.tallies) for key, group in tallying.groups.items()} == {
        Key("m", "en", 1): 1,
        Key("m", "en", 2): 1,
        Key("n", "zh-Hans", 1): 2,
        Key("n", "und", 1): 1,
        Key(None, "en", None): 1,
    }


def test_responses_to_one_query_are_one_cluster() -> None:
    same = [sample("a", "One.", meta={"query": "q1"}), sample("b", "Two.", language="de", meta={"query": "q1"})]
    other = sample("c", "One.", meta={"query": "q2"})
    assert query_of(same[0]) == query_of(same[1]) != query_of(other)
    grouped = [sample("a", "One.", meta={"group": 7}), sample("b", "Two.", meta={"group": 7})]
    assert query_of(grouped[0]) == query_of(grouped[1]) != query_of(same[0])


def test_without_a_query_the_same_question_and_evidence_are_one_cluster() -> None:
    asked = [
        sample(name, text, question="Who?", evidence=(Evidence(passage),))
        for name, text, passage in (("a", "He.", "P"), ("b", "She.", "P"), ("c", "He.", "Q"))
    ]
    assert query_of(asked[0]) == query_of(asked[1]) != query_of(asked[2])
    assert query_of(sample("a", "Said.")) == query_of(sample("b", "Said.")) != query_of(sample("a", "Else."))


def test_joined_groups_are_as_one() -> None:
    parts = [ResponseCounter("word", ids=True) for _ in range(2)]
    whole = ResponseCounter("word", ids=True)
    for number in range(6):
        told, prediction = sample(str(number)), scored(str(number), [(0, 3 + number)], [number / 6] * 7)
        parts[number // 3].add(told, prediction)
        whole.add(told, prediction)
    joined, once = merge_groups(only(part) for part in parts), only(whole)
    assert joined.ids == once.ids == list("012345")
    assert joined.statuses == once.statuses
    for name in ("marked", "units", "cluster", "confidences"):
        assert np.array_equal(getattr(joined.tallies, name), getattr(once.tallies, name))


def test_an_empty_response_has_no_units() -> None:
    prediction = Prediction("a", Status.SCORED, "made-up@1", score=0.0, spans=(), words=())
    assert counted("word", sample(response=""), prediction) == (0, 0)


def test_a_prediction_of_another_response_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be compared with"):
        ResponseCounter("word").add(sample("a"), scored("b"))


@pytest.mark.parametrize("unit", ["word", "char"])
@pytest.mark.parametrize("confidences", [None, [0.1] * 7])
def test_marks_beyond_the_end_are_refused(unit: str, confidences: list[float] | None) -> None:
    tallying = ResponseCounter(unit)
    with pytest.raises(InputError, match="in a response of 20 code points"):
        tallying.add(sample(response=TEXT[:20]), scored(spans=[(4, 30)], confidences=confidences))
    assert not tallying.groups, "nothing of it is counted"


def test_unknown_units_are_refused() -> None:
    with pytest.raises(UnknownNameError):
        ResponseCounter("syllable")
