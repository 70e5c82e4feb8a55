"""The paraphrase probes: made from their sources without drift, and as hard as they promise."""

from __future__ import annotations

import runpy
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from veriglot.records import Sample, decode_json, sample_from
from veriglot.text.normalization import fold
from veriglot.text.segmentation import words

PROBES = Path(__file__).resolve().parents[2] / "examples" / "probes"
MAKER = runpy.run_path(str(PROBES / "make_probes.py"))
LANGUAGES = {"ar", "de", "en", "es", "fr", "hi", "ja", "ru", "tr", "zh-Hans"}


@pytest.fixture(scope="module")
def pairs() -> list[tuple[Sample, Sample]]:
    lines = (PROBES / "probes.jsonl").read_bytes().splitlines()
    samples = [sample_from(decode_json(line)) for line in lines]
    return list(zip(samples[::2], samples[1::2], strict=True))


def held(sample: Sample) -> float:
    """The share of the response's pairs of neighbouring characters that the evidence holds."""
    evidence, response = fold(sample.evidence[0].text), fold(sample.response)
    there = set(pairwise(evidence))
    return sum(pair in there for pair in pairwise(response)) / (len(response) - 1)


def foreign(sample: Sample) -> float:
    """The share of the response's words that the evidence does not hold."""
    evidence, response = (
        [fold(text[s:e]) for s, e in words(text, sample.language)]
        for text in (sample.evidence[0].text, sample.response)
    )
    return sum(word not in evidence for word in response) / len(response)


def test_probes_are_what_their_sources_make() -> None:
    assert (PROBES / "probes.jsonl").read_bytes() == MAKER["as_jsonl"](), "run: make examples"


def test_there_are_enough_in_ten_languages(pairs: list[tuple[Sample, Sample]]) -> None:
    counts = Counter(right.language for right, _ in pairs)
    assert set(counts) == LANGUAGES
    assert min(counts.values()) >= 24


def test_a_pair_has_one_evidence_and_marks_in_the_wrong_response_alone(pairs: list[tuple[Sample, Sample]]) -> None:
    for right, wrong in pairs:
        assert right.evidence == wrong.evidence
        assert right.meta == wrong.meta
        assert right.annotations[0].spans == ()
        spans = wrong.annotations[0].spans
        assert spans
        assert all(wrong.response[span.start : span.end] == span.text for span in spans)


def test_words_alone_prefer_the_wrong_response(pairs: list[tuple[Sample, Sample]]) -> None:
    for right, wrong in pairs:
        assert held(wrong) > held(right) + 0.1, wrong.id
        assert foreign(wrong) < foreign(right), wrong.id


def test_what_is_marked_is_not_all_that_the_wrong_response_says(pairs: list[tuple[Sample, Sample]]) -> None:
    for _, wrong in pairs:
        marked = sum(span.end - span.start for span in wrong.annotations[0].spans or ())
        assert marked < 0.75 * len(wrong.response), wrong.id


def test_a_pair_tells_the_same_story_in_every_language(pairs: list[tuple[Sample, Sample]]) -> None:
    turns: dict[str, set[str]] = {}
    for right, _ in pairs:
        turns.setdefault(str(right.meta["pair"]).split("-")[-1], set()).add(str(right.meta["turn"]))
    assert {story for story, found in turns.items() if len(found) > 1} == set()


def test_no_text_stands_twice(pairs: list[tuple[Sample, Sample]]) -> None:
    texts = Counter(sample.response for pair in pairs for sample in pair)
    assert {text for text, count in texts.items() if count > 1} == set()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"turn": "mood", "right": "a", "wrong": "<entity>b</entity>"}, "no turn 'mood'"),
        ({"turn": "name", "right": "a", "wrong": "b"}, "only the wrong response has marks"),
        ({"turn": "name", "right": "<entity>a</entity>", "wrong": "<entity>b</entity>"}, "only the wrong response"),
    ],
)
def test_a_pair_that_breaks_the_rules_is_refused(entry: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        MAKER["pair_of"]("en", 1, {"evidence": "a b c", **entry})
