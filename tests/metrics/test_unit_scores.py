"""Scores of facts and sentences from those of words, and shares of supported facts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.metrics.counts import SUPPORT, Sums, support
from veriglot.metrics.measures import measures
from veriglot.metrics.spans import combine_scores, fact_marks, fact_scores, sentence_scores
from veriglot.text.facts import facts

TEXT = "Mira Holt was born in Odense in 1902. She died in 1988."
shares = st.lists(st.floats(0, 1), min_size=1, max_size=12).map(np.array)


def test_a_fact_is_as_suspect_as_its_most_suspect_word() -> None:
    found = facts(TEXT, "en")
    confidence = np.zeros(len(TEXT))
    confidence[TEXT.index("born") : TEXT.index("born") + 4] = 0.3
    confidence[TEXT.index("1902") : TEXT.index("1902") + 4] = 0.9
    by_own = dict(zip([TEXT[slice(*fact.parts[-1])] for fact in found], fact_scores(found, confidence), strict=True))
    assert by_own == {"Mira Holt was born": 0.3, "in Odense": 0.0, "in 1902": 0.9, "She died in 1988": 0.0}


def test_a_fact_is_marked_where_a_span_touches_its_own_words() -> None:
    text = "Mira Holt, a Danish painter, was born in 1902."
    found = facts(text, "en")
    assert [fact.kind for fact in found] == ["clause", "aside", "date"]
    inside_the_clause_but_not_of_it = np.array([(text.index("Danish"), text.index("Danish") + 6)], dtype=np.int32)
    assert fact_marks(found, len(text), inside_the_clause_but_not_of_it).tolist() == [False, True, False]
    assert fact_marks(found, len(text), np.zeros((0, 2), dtype=np.int32)).tolist() == [False] * 3
    assert fact_marks([], 0, np.zeros((0, 2), dtype=np.int32)).tolist() == []


def test_gathered_by_hand() -> None:
    assert combine_scores(np.array([0.5])) == 0.5
    assert combine_scores(np.array([0.2, 0.6])) == pytest.approx(1 - 0.4 * 0.8**0.5)
    assert combine_scores(np.array([0.2, 0.6, 0.4])) == pytest.approx(1 - 0.4 * 0.6**0.5 * 0.8**0.25)
    assert combine_scores(np.array([1.0, 0.3])) == 1.0
    assert combine_scores(np.zeros(4)) == 0.0


@given(shares)
def test_gathered_lies_between_the_greatest_and_the_noisy_or(scores: np.ndarray) -> None:
    value = combine_scores(scores)
    assert scores.max() - 1e-12 <= value <= 1 - np.prod(1 - scores) + 1e-12
    assert combine_scores(scores[::-1]) == pytest.approx(value)


def test_a_sentence_gathers_the_facts_that_begin_in_it() -> None:
    found = facts(TEXT, "en")
    sentences = np.array([(0, 37), (38, 55)], dtype=np.int32)
    scores = np.array([0.1, 0.2, 0.8, 0.4])
    wanted = [combine_scores(scores[:3]), 0.4]
    assert sentence_scores(sentences, found, scores, np.zeros(55)).tolist() == pytest.approx(wanted)
    by_character = np.linspace(0, 1, 55)
    assert sentence_scores(sentences, [], np.zeros(0), by_character).tolist() == [by_character[36], 1.0]


def value(name: str, sums: np.ndarray) -> float:
    (measure,) = (measure for measure in measures(()) if (measure.level, measure.name) == ("fact", name))
    return float(measure.value(Sums({"support": sums}, {})))


def test_shares_of_supported_facts_and_their_correlation() -> None:
    random = np.random.default_rng(5)
    gold = [random.random(n) < 0.4 for n in (3, 8, 5, 1, 12)]
    scores = [random.random(len(row)) for row in gold]
    sums = np.sum([support(g, s >= 0.5, s) for g, s in zip(gold, scores, strict=True)], axis=0)
    true = np.array([1 - row.mean() for row in gold])
    expected = np.array([1 - row.mean() for row in scores])
    assert value("support", sums) == pytest.approx(true.mean())
    assert value("support_found", sums) == pytest.approx(np.mean([1 - (row >= 0.5).mean() for row in scores]))
    assert value("support_error", sums) == pytest.approx(np.abs(true - expected).mean())
    assert value("support_correlation", sums) == pytest.approx(np.corrcoef(true, expected)[0, 1])


def test_a_response_without_facts_or_spread_has_no_share_or_correlation() -> None:
    nothing = np.array(support(np.zeros(0, bool), np.zeros(0, bool), np.zeros(0)))
    assert nothing.tolist() == [0.0] * len(SUPPORT)
    assert np.isnan(value("support", nothing))
    same = 2 * np.array(support(np.array([True, False]), np.array([True, True]), None))
    assert value("support_expected", same) == 0.0
    assert np.isnan(value("support_correlation", same))
