"""Texts that break programs: control characters, lone surrogates, endless words, evidence the size of a book."""

from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from many_languages import TEXTS

from veriglot.detection import detect
from veriglot.detectors.registry import load_detector
from veriglot.records import Detector, Evidence, Prediction, Sample, Status, decode_json, encode, from_mapping

if TYPE_CHECKING:
    from detector_contract import Load

ENGLISH = TEXTS["en"]
TRICKY = {
    "NUL": "It was opened\x00 in 1907\x00 by nobody.",
    "bidi controls": "It was \u202eopened\u202c in \u20661907\u2069 by \u200fnobody\u200e.",
    "carriage returns": "It was opened\r\nin 1907\r\rby nobody.\r\n",
    "zero width": "It\u200b was\u200d opened\ufeff in\u00ad 1907 by no\u00adbody.",
    "private use and noncharacters": "It was \ue000 opened \uffff in \U0010ffff 1907 by nobody \ufdd0.",
    "combining marks": "I\u0301t w\u0302\u0303\u0304as " + "o" + "\u0301" * 500 + "pened in 1907 by nobody.",
    "marks alone": "\u0301\u0301 It was opened in 1907 \u0301.",
    "emoji": "It 👩‍👩‍👧‍👦 was 🇬🇧 opened 🏳️‍🌈 in 1907 👍🏽 by nobody.",
    "astral letters": "𝓘𝓽 𝔀𝓪𝓼 𝓸𝓹𝓮𝓷𝓮𝓭 in 𝟏𝟗𝟎𝟕 by 𐌰𐌱𐌲.",
    "markup": "<b>It was</b> opened &amp; in 1907 <script>by</script> nobody.",
    "a lone high surrogate": json.loads('"It was \\ud800 opened in 1907 by nobody."'),
    "a lone low surrogate": json.loads('"It was opened\\udfff in 1907 by nobody. \\udc80"'),
    "one long word": "x" * 5_000,
    "one long ideographic run": "桥" * 1_500,  # a reader across languages takes 3 ms a word
    "one long number": "1" * 20_000,
    "many marks": "It was opened in 1907" + "!" * 20_000,
    "many lines": "It was opened in 1907.\n" * 500,
}


@pytest.fixture(scope="module")
def detector(load: Load) -> Detector:
    return load(words=True)


@pytest.fixture(scope="module")
def finder(trained: str) -> Detector:
    return load_detector(trained, words=True)


def check(prediction: Prediction, response: str, across: bool = False) -> None:
    """Whatever was asked is judged; by grounding, what is of another language than the evidence may be refused."""
    if not (
        across and prediction.status is Status.UNSUPPORTED_LANGUAGE and prediction.detector.startswith("grounding")
    ):
        assert prediction.status is Status.SCORED, prediction.reason
    for span in prediction.spans or ():
        assert span.text == response[span.start : span.end]
    assert all(one.end <= other.start for one, other in pairwise(prediction.words or ()))


HALVES = ["a lone high surrogate", "a lone low surrogate"]


@pytest.mark.parametrize("name", HALVES)
def test_half_of_a_surrogate_pair_is_refused_for_it_could_not_be_written(detector: Detector, name: str) -> None:
    found = detect(ENGLISH.evidence, response=TRICKY[name], language="en", detector=detector)
    assert (found.status, found.get_spans(None)) == (Status.FAILED, None)
    assert "surrogate" in str(found.reason)
    assert from_mapping(decode_json(encode(found.record)), Prediction) == found.record


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TRICKY if name not in HALVES])
def test_a_tricky_response(detector: Detector, name: str) -> None:
    alone = detect(ENGLISH.evidence, response=TRICKY[name], language="en", detector=detector)
    check(alone.record, TRICKY[name], across="ideographic" in name)
    check(
        detect([ENGLISH.evidence, TRICKY[name]], response=TRICKY[name], language="en", detector=detector).record,
        TRICKY[name],
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", TRICKY)
def test_tricky_evidence_and_question(detector: Detector, name: str) -> None:
    tricky = TRICKY[name]
    found = detect(
        [tricky, ENGLISH.evidence], response=ENGLISH.changed, question=tricky, language="en", detector=detector
    )
    check(found.record, ENGLISH.changed)
    assert from_mapping(decode_json(encode(found.record)), Prediction) == found.record


@pytest.mark.parametrize("name", ["NUL", "bidi controls", "carriage returns", "zero width", "emoji"])
def test_the_year_is_found_among_control_characters(finder: Detector, name: str) -> None:
    found = detect(ENGLISH.evidence, response=TRICKY[name], language="en", detector=finder)
    assert any("1907" in str(span.text) for span in found.spans or ())


def test_control_characters_in_the_evidence_support_all_the_same(finder: Detector) -> None:
    evidence = ENGLISH.evidence.replace(" ", "\r\n\x00\u202e ")
    assert detect(evidence, response=ENGLISH.sentence, language="en", detector=finder).spans == ()


@pytest.mark.slow
@pytest.mark.fuzz
@settings(max_examples=30)
@given(
    response=st.text(st.characters(), max_size=60),
    evidence=st.lists(st.text(st.characters(), max_size=60), max_size=3),
    language=st.none() | st.sampled_from(["en", "zh", "ar", "tlh", ""]) | st.text(max_size=5),
    question=st.none() | st.text(st.characters(), max_size=30),
)
def test_no_text_makes_it_raise(
    detector: Detector, response: str, evidence: list[str], language: str | None, question: str | None
) -> None:
    sample = Sample("x", response, language=language, question=question, evidence=tuple(map(Evidence, evidence)))
    (found,) = detector.predict([sample])
    if found.status is Status.SCORED:
        check(found, response)
    else:
        assert found.reason
        assert "Error" not in found.reason


def peak_of(detector: Detector, evidence: str) -> int:
    tracemalloc.start()
    try:
        found = detect(evidence, response=ENGLISH.evidence, language="en", detector=detector)
        assert found.status is Status.SCORED
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_grows_with_the_evidence_and_no_faster(detector: Detector) -> None:
    filler = " ".join(f"Grey stone {n} lay in field {n % 97} by the lane." for n in range(6_000))
    small, large = (peak_of(detector, filler[: size - 500] + ". " + ENGLISH.evidence) for size in (50_000, 200_000))
    assert large < 5 * small
    assert large < 80e6  # the square of its sentences would be 80 MB by itself


@pytest.mark.slow
def test_a_sentence_is_found_in_a_book(finder: Detector) -> None:
    filler = " ".join(f"Grey stone {n} lay in field {n % 97} by the lane." for n in range(6_000))
    book = [filler[:120_000], filler[120_000:] + " " + ENGLISH.evidence]
    assert detect(book, response=ENGLISH.sentence, language="en", detector=finder).spans == ()


@pytest.mark.slow
def test_a_long_response_without_stops_is_held_in_bounded_memory(detector: Detector) -> None:
    text, less = (" ".join(f"w{i}" for i in range(count)) for count in (1500, 500))
    detect(less, response=less, language="en", detector=detector)  # loads what it needs: 60 MB with the first long text
    tracemalloc.start()
    found = detect(text, response=text, language="en", detector=detector)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    check(found.record, text)
    # It is 5 and 13 MB. The square of its words would be 4.5 MB for one of the arrays alone, and 9 MB as similarities.
    assert peak < (8e6 if detector.name.startswith("grounding") else 18e6)
