"""Sentences that stand in the evidence word for word, and confidences that agree with the score of their response."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.detection import detect
from veriglot.detectors.grounding.detector import (
    Grounding,
    align_with_score,
    find_refusals,
    find_verbatim,
    number_support,
    pool,
)
from veriglot.detectors.grounding.features import extract_features
from veriglot.records import Evidence, Sample, Status
from veriglot.testing import ordinary_samples
from veriglot.text.segmentation import word_bounds
from veriglot.text.support import COMPUTED

if TYPE_CHECKING:
    from veriglot.detectors.grounding.document import Lexicon

PASSAGES = ("The old mill burned down in May. It was sold to a farmer.", "", "A new mill stands there today.")


def quoted_words(lexicon: Lexicon, response: str, *passages: str, free: tuple[str, ...] = ()) -> list[str]:
    extracted = extract_features(response, passages, None, "en", lexicon)
    assert extracted is not None
    words = [response[start:end] for start, end in extracted.response.bounds.tolist()]
    chosen = find_verbatim(extracted, np.array([word in free for word in words]), passages, "en")
    return [word for word, inside in zip(words, chosen, strict=True) if inside]


@pytest.mark.parametrize(
    ("response", "evidence", "quotes"),
    [
        ("It has 1200 workers now.", "It has 1,200 workers now.", True),
        ("It has 12,345,678 workers now.", "It has 12345678 workers now.", True),
        ("কারখানায় ১২০০ শ্রমিক আছে", "কারখানায় ১,২০০ শ্রমিক আছে।", True),
        ("It costs 1234.5 euros now.", "It costs 1,234.5 euros now.", True),
        ("It has 1200 workers now.", "It has 1,300 workers now.", False),
        ("It has 12001 workers now.", "It has 1,200,1 workers now.", False),
        ("It has 12 workers now.", "It has 1.2 workers now.", False),
    ],
)
def test_grouped_digits_are_quoted_without_what_groups_them(
    lexicon: Lexicon, response: str, evidence: str, quotes: bool
) -> None:
    assert bool(quoted_words(lexicon, response, evidence)) == quotes


@pytest.mark.parametrize(
    ("response", "sentence"),
    [
        ("It was sold to a farmer.", "It was sold to a farmer"),
        ("a NEW mill, stands there today!", "a NEW mill stands there today"),
        ("He wept. A new mill stands there today.", "A new mill stands there today"),
        ("It was sold.", ""),  # a part of a sentence, and short
        ("It was sold to a", ""),
        ("mill burned down in May.", ""),
        ("It was sold to a farmer. A new mill stands.", "It was sold to a farmer"),
    ],
)
def test_whole_sentences_of_one_passage_are_quotations(lexicon: Lexicon, response: str, sentence: str) -> None:
    assert quoted_words(lexicon, response, *PASSAGES) == sentence.split()


def test_words_that_claim_nothing_may_stand_in_a_quotation(lexicon: Lexicon) -> None:
    words = quoted_words(lexicon, "7 It was sold to a farmer.", *PASSAGES, free=("7",))
    assert words == ["It", "was", "sold", "to", "a", "farmer"]


@pytest.mark.parametrize("count", range(1, 7))
def test_a_sentence_may_be_longer_than_its_evidence(lexicon: Lexicon, count: int) -> None:
    response = "The old mill burned down in May."
    evidence = " ".join(response.split()[:count])
    assert quoted_words(lexicon, response, evidence) == []
    (prediction,) = Grounding().predict([Sample("x", response, language="en", evidence=(Evidence(evidence),))])
    assert prediction.status is Status.SCORED


def test_a_quotation_does_not_run_over_two_passages(lexicon: Lexicon) -> None:
    assert quoted_words(lexicon, "The mill burned down.", "The mill", "burned down.") == []


@pytest.mark.fuzz
@given(
    confidences=st.lists(st.just(0.0) | st.floats(1e-9, 1.0), min_size=1, max_size=6),
    score=st.floats(0, 1),
    threshold=st.sampled_from([0.0001, 0.3, 0.5, 0.6215, 0.9999]),
)
def test_a_word_reaches_the_threshold_if_and_only_if_the_score_says_so(
    confidences: list[float], score: float, threshold: float
) -> None:
    before = np.array(confidences)
    after = align_with_score(before, score, threshold).round(4)
    assert ((after >= 0) & (after <= 1)).all()
    assert (after[before == 0] == 0).all()
    assert (np.diff(after[np.argsort(before, kind="stable")]) >= 0).all()
    if before.any():
        assert (after.max() >= threshold) == (score >= 0.5)


@pytest.mark.parametrize("score", [0.2, 0.9])
def test_confidences_that_agree_stay(score: float) -> None:
    confidences = np.array([0.0, 0.1, score])
    assert align_with_score(confidences, score, 0.5) is confidences


def test_score_and_spans_of_the_shipped_weights_agree() -> None:
    predictions = [p for p in Grounding().predict(ordinary_samples()) if p.status is Status.SCORED]
    assert {bool(p.spans) for p in predictions} == {True, False}
    assert all(bool(p.spans) == ((p.score or 0.0) >= 0.5) for p in predictions)


def test_words_that_claim_nothing_have_no_confidence() -> None:
    sample = Sample(
        "x", "1. The mill burned down [3].\n2. The farmer wept.", language="en", evidence=(Evidence("The inn."),)
    )
    (prediction,) = Grounding(words=True).predict([sample])
    words = {sample.response[w.start : w.end]: w.confidence for w in prediction.words or ()}
    assert [words[number] for number in "123"] == [0.0] * 3
    assert words["mill"] > 0


def test_a_passage_is_read_in_its_own_language() -> None:
    response = "It had 21 people."
    german = (Evidence("Es hatte einundzwanzig Einwohner.", language="de"),)
    sample = Sample("x", response, language="en", evidence=german)
    assert number_support(response, word_bounds(response, "en"), "en", passages_of(sample)).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("response", "evidence", "verdicts"),
    [
        ("It is 2.4 cm long.", "It is 24 millimetres long.", [0, 0, COMPUTED, COMPUTED, 0]),
        ("2.4 cm", "24 millimetres", [COMPUTED, COMPUTED]),
        ("2.4, long", "24 millimetres", [-1, 0]),
        ("24 mm, 36 months", "24 millimetres, three years", [1, 0, COMPUTED, COMPUTED]),
    ],
)
def test_what_a_computed_number_counts_is_computed_too(response: str, evidence: str, verdicts: list[int]) -> None:
    assert number_support(response, word_bounds(response, "en"), "en", [(evidence, "en")]).tolist() == verdicts


def passages_of(sample: Sample) -> list[tuple[str, str]]:
    return [(passage.text, passage.language or "en") for passage in sample.evidence]


def test_a_refusal_frees_no_number_that_neither_evidence_nor_question_has() -> None:
    response = "The text does not say why 7000 mills burned in 1874."
    sample = Sample("x", response, language="en", question="What of 1874?", evidence=(Evidence("An inn."),))
    bounds = word_bounds(response, "en")
    free = find_refusals(sample, bounds, "en", number_support(response, bounds, "en", passages_of(sample)))
    assert [response[start:end] for start, end in bounds[~free].tolist()] == ["7000"]


def test_values_are_pooled_by_sentence() -> None:
    values, sentence = np.array([1.0, 3.0, -2.0, -4.0, 5.0]), np.array([0, 0, 1, 1, 2])
    assert pool(values, sentence, "mean").tolist() == [2, 2, -3, -3, 5]
    assert pool(values, sentence, "max").tolist() == [3, 3, -2, -2, 5]


@pytest.mark.parametrize(("response", "evidence"), [("3.500", "3,500"), ("3,500", "3.500"), ("3500", "3.500")])
def test_a_number_with_the_other_mark_is_no_quotation(response: str, evidence: str) -> None:
    sentence = "The old barrel in the yard holds {} litres of water."
    prediction = detect(sentence.format(evidence), response=sentence.format(response), language="en")
    assert [span.text for span in prediction.spans] == [response]
    german = "Das alte Fass im Hof fasst {} Liter Wasser."
    assert not detect(german.format("3.500"), response=german.format("3500"), language="de").spans
