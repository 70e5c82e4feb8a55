"""The examples: generated from their sources without drift, and as varied as they promise."""

from __future__ import annotations

import runpy
import unicodedata
from pathlib import Path

import pytest

from veriglot.errors import UnknownNameError
from veriglot.records import Sample, Span, decode_json, sample_from
from veriglot.records.taxonomy import taxonomy

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MAKER = runpy.run_path(str(EXAMPLES / "make_samples.py"))


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    lines = (EXAMPLES / "samples.jsonl").read_bytes().splitlines()
    return [sample_from(decode_json(line)) for line in lines]


def script_of(text: str) -> str:
    """The script that most letters of a text belong to, by the first word of their Unicode names."""
    names = [unicodedata.name(letter, "?").split()[0] for letter in text if letter.isalpha()]
    return max(set(names), key=names.count)


def test_samples_are_what_their_sources_make() -> None:
    made = MAKER["as_jsonl"]()
    assert (EXAMPLES / "samples.jsonl").read_bytes() == made, "run: make examples"


def test_offsets_point_at_the_marked_words(samples: list[Sample]) -> None:
    marked = [(sample.response[span.start : span.end], span.text) for sample, span in spans_of(samples)]
    assert len(marked) > 90
    assert all(found == text for found, text in marked)


def test_there_are_many_languages_and_scripts(samples: list[Sample]) -> None:
    assert len({sample.language for sample in samples}) >= 24
    assert len({script_of(sample.response) for sample in samples}) >= 12


def test_clean_and_marked_responses_are_mixed(samples: list[Sample]) -> None:
    marked = {sample.id for sample, _ in spans_of(samples)}
    assert 0.35 < len(marked) / len(samples) < 0.65
    assert {span.type for _, span in spans_of(samples)} == set(taxonomy("fava").types)


def test_a_response_rewords_its_evidence(samples: list[Sample]) -> None:
    for sample in samples:
        evidence = "\n".join(passage.text for passage in sample.evidence)
        assert sample.response not in evidence, sample.id
        assert len(evidence) > len(sample.response), sample.id


@pytest.mark.parametrize("tagged", ["a <entity>b", "a </entity> b", "<entity>a <relation>b</entity> c</relation>"])
def test_a_tag_that_is_left_over_is_refused(tagged: str) -> None:
    with pytest.raises(ValueError, match="left over"):
        MAKER["read_marks"](tagged)


def test_an_unknown_tag_is_refused() -> None:
    with pytest.raises(UnknownNameError):
        MAKER["read_marks"]("a <entitty>b</entitty>")


def spans_of(samples: list[Sample]) -> list[tuple[Sample, Span]]:
    return [(sample, span) for sample in samples for a in sample.annotations for span in a.spans or ()]
