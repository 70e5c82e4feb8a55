"""Our detectors keep to the contract of detectors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from detector_contract import check_contract, check_pointer, check_processes, judged
from many_languages import TEXTS

from veriglot.detectors.registry import load_detector
from veriglot.formats.reader import read
from veriglot.records import Evidence, Sample, Status
from veriglot.text.normalization import fold

if TYPE_CHECKING:
    from detector_contract import Load

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "samples.jsonl"


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    """Examples in all their languages, changed texts of our own, and such as cannot be scored."""
    told = [Sample(f"own-{tag}", t.changed, language=tag, evidence=(Evidence(t.evidence),)) for tag, t in TEXTS.items()]
    text = TEXTS["en"].evidence
    unscored = [
        Sample("empty", " ", evidence=(Evidence(text),)),
        Sample("bare", text),
        Sample("unknown", "ᚠᚢᚦ", evidence=(Evidence("ᚠᚢᚦᚨ"),)),
    ]
    return [*list(read(EXAMPLES))[::5], *told, *unscored]


@pytest.fixture(scope="module")
def few(samples: list[Sample]) -> list[Sample]:
    """A quarter of what can be scored, in seven languages, and all that cannot."""
    return [*samples[:-3:4], *samples[-3:]]


@pytest.mark.slow  # the contract asks eighteen times about each sample
def test_the_contract_is_kept(load: Load, few: list[Sample]) -> None:
    check_contract(load, few)


@pytest.mark.slow  # loads each detector in new processes
def test_new_processes_say_the_same(load: Load, few: list[Sample]) -> None:
    check_processes(load(words=True), few[::2])


@pytest.mark.slow  # loads each detector twice
def test_two_detectors_say_the_same(load: Load, few: list[Sample]) -> None:
    one, other = load(words=True), load(words=True)
    assert [judged(one, s) for s in few] == [judged(other, s) for s in reversed(few)][::-1]


@pytest.mark.slow
def test_auto_keeps_the_contract(stand_in: None, few: list[Sample]) -> None:
    """What it adds to its detector, whichever that is; the reader itself keeps the contract above."""
    check_contract(partial(load_detector, "auto"), few)


@pytest.mark.slow
def test_auto_with_the_reader_says_the_same_in_new_processes(reader_here: None, few: list[Sample]) -> None:
    auto, reader = load_detector("auto", words=True), load_detector("reader", words=True)
    told = [msgspec.structs.replace(one, signature=auto.signature) for one in reader.predict(few[::4])]
    assert auto.predict(few[::4]) == told
    check_processes(auto, few[::4])


def test_words_point_at_their_stem_in_the_evidence(samples: list[Sample]) -> None:
    pointed = 0
    for sample, prediction in zip(samples, load_detector("grounding", words=True).predict(samples), strict=True):
        for word in prediction.words or ():
            for pointer in word.evidence:
                there = fold(check_pointer(sample, pointer))
                assert there[:5] == fold(sample.response[word.start : word.end])[:5]
                pointed += 1
    assert pointed > 200


def test_the_statuses_are_those_expected(load: Load, samples: list[Sample]) -> None:
    found = load().predict(samples)
    assert [p.status for p in found[-3:]] == [Status.FAILED, Status.NO_EVIDENCE, Status.UNSUPPORTED_LANGUAGE]
    assert {p.status for p in found[:-3]} == {Status.SCORED}
