from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import InputError
from veriglot.metrics.reference import answer, at_threshold
from veriglot.records import Prediction, Span, Status, Word

WORDS = (Word(0, 2, 0.9), Word(3, 5, 0.6), Word(6, 8, 0.1), Word(9, 11, 0.7))


def scored(spans: tuple[Span, ...], words: tuple[Word, ...] | None = None) -> Prediction:
    return Prediction("p", Status.SCORED, "d@1", score=0.5, spans=spans, words=words)


def test_threshold_from_words() -> None:
    given = scored((Span(0, 5, "entity", 0.9),), WORDS)
    assert [(s.start, s.end, s.type, s.confidence) for s in at_threshold(given, 0.5).spans or ()] == [
        (0, 5, "entity", 0.9), (9, 11, None, 0.7),
    ]  # fmt: skip
    assert [(s.start, s.end) for s in at_threshold(given, 0.8).spans or ()] == [(0, 2)]
    assert [(s.start, s.end) for s in at_threshold(given, 0.0).spans or ()] == [(0, 11)]


@pytest.mark.fuzz
@given(st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]), max_size=8), st.sampled_from([0.2, 0.5, 1.0]))
def test_a_word_is_marked_where_it_reaches_the_threshold(values: list[float], threshold: float) -> None:
    words = tuple(Word(3 * i, 3 * i + 2, value) for i, value in enumerate(values))
    spans = at_threshold(scored((), words), threshold).spans or ()
    for word in words:
        inside = any(s.start <= word.start and word.end <= s.end for s in spans)
        assert inside == (word.confidence >= threshold)
    assert all(left.end < right.start for left, right in pairwise(spans))


def test_runs_end_with_their_sentence_unless_a_span_goes_on() -> None:
    sentences = np.array([[0, 5], [6, 11]], dtype=np.int32)
    apart = scored((Span(0, 5, "entity", 0.9), Span(6, 11, "entity", 0.9)), WORDS)
    assert [(s.start, s.end) for s in at_threshold(apart, 0.0, sentences).spans or ()] == [(0, 5), (6, 11)]
    across = scored((Span(0, 11, "entity", 0.9),), WORDS)
    assert [(s.start, s.end) for s in at_threshold(across, 0.0, sentences).spans or ()] == [(0, 11)]


def test_threshold_without_words_only_drops() -> None:
    given = scored((Span(0, 2, None, 0.4), Span(3, 5, None, 0.8), Span(6, 8)))
    assert [s.start for s in at_threshold(given, 0.5).spans or ()] == [3, 6]


def test_unscored_stays_unscored() -> None:
    failed = Prediction("p", Status.FAILED, "d@1", reason="broken")
    assert at_threshold(failed, 0.5) is failed


def test_span_confidences_serve_as_soft_labels_only() -> None:
    got = answer(scored((Span(1, 3, None, 0.4),)), 4)
    assert got.probability is None
    assert got.soft is not None
    assert got.soft.tolist() == [0, 0.4, 0.4, 0]
    assert answer(scored((Span(1, 3),)), 4).soft is None


def test_marks_beyond_the_response_are_refused() -> None:
    with pytest.raises(InputError, match=r"words\[3\].*\[9, 11\) in a response of 10") as caught:
        answer(scored((), WORDS), 10)
    assert caught.value.field == "words[3]"
