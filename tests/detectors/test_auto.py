"""The detector `auto`: who judges which sample, what it says of it, and that it works where the reader is missing."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest
from many_languages import TEXTS

from veriglot.detectors.registry import load_detector
from veriglot.errors import WeightsError
from veriglot.hub.registry import MissingWeightsError
from veriglot.records import Evidence, Prediction, Sample, Status, Task

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.records import Detector


def sample(tag: str, of: str | None = None, *, given: bool = True, task: Task = Task.QA) -> Sample:
    """A response in one language, held against evidence in the same or another."""
    told = Evidence(TEXTS[of or tag].evidence, language=(of or tag) if given else None)
    return Sample(f"{tag}-{of}", TEXTS[tag].changed, language=tag if given else None, evidence=(told,), task=task)


@pytest.fixture
def auto(stand_in: None) -> Detector:
    return load_detector("auto", figures="none", words=True)


def judge(detector: Detector, one: Sample) -> Prediction:
    return detector.predict([one])[0]


@pytest.mark.parametrize("given", [True, False])
def test_every_language_is_the_readers(auto: Detector, given: bool) -> None:
    rows = [sample(tag, given=given) for tag in TEXTS]
    pairs = [("de", "en"), ("de", "fi"), ("fi", "de"), ("zh", "ar"), ("zh", "he")]
    rows += [sample(*pair, task=task) for pair in pairs for task in (Task.QA, Task.TRANSLATION)]
    found = auto.predict(rows)
    assert {one.detector for one in found} == {"reader@stand-in"}
    alone = load_detector("reader", words=True).predict(rows)
    assert [msgspec.structs.replace(one, signature=auto.signature) for one in alone] == found


def test_without_the_reader_it_is_grounding_and_says_so(no_reader: None) -> None:
    detector = load_detector("auto", figures="none", words=True)
    for tag in ("en", "fi"):
        found, alone = judge(detector, sample(tag)), judge(load_detector("grounding", words=True), sample(tag))
        assert found.notes == (*alone.notes, "auto:no reader")
        assert msgspec.structs.replace(found, notes=alone.notes, signature=alone.signature) == alone
    again = pickle.loads(pickle.dumps(detector))
    assert (again.name, again.signature) == (detector.name, detector.signature)


def test_what_was_not_scored_carries_no_note_of_the_choice(no_reader: None) -> None:
    rows = [Sample("bare", "It was."), Sample("unknown", "ᚠᚢᚦ", evidence=(Evidence("ᚠᚢᚦᚨ"),)), Sample("no", " ")]
    found = load_detector("auto", figures="none").predict(rows)
    assert [one.status for one in found] == [Status.NO_EVIDENCE, Status.UNSUPPORTED_LANGUAGE, Status.FAILED]
    assert [one.notes for one in found] == [(), (), ()]


def test_it_says_what_it_has_to_choose_from(auto: Detector, no_reader: None) -> None:
    alone = load_detector("auto", figures="none")
    assert auto.name == "auto@reader-stand-in"
    assert alone.name.startswith("auto@grounding-")
    assert {auto.signature, alone.signature} == {judge(each, sample("en")).signature for each in (auto, alone)}
    assert auto.signature != alone.signature
    assert judge(auto, sample("en")).asked == auto.name


def test_one_threshold_holds_for_both(stand_in: None) -> None:
    detector = load_detector("auto", figures="none", threshold=0.0)
    assert detector.threshold == load_detector("reader", threshold=0.0).threshold == 0.0
    marked = "".join(str(span.text) for span in judge(detector, sample("he")).spans or ())
    assert len(marked) > 0.7 * len(TEXTS["he"].changed)


def test_weights_that_are_missing_are_an_error_and_no_reason_to_step_in(stand_in: None, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="weights"):
        load_detector("auto", figures="none", reader_weights=str(tmp_path))


WITHOUT_A_PACKAGE = """
import sys
sys.modules["tokenizers"] = None  # as if it were not installed
from veriglot.detection import detect
from veriglot.detectors.registry import load_detector
from veriglot.errors import MissingExtraError
auto = load_detector("auto", figures="none")
print(auto.name, detect("Der Turm ist alt.", response="Der Turm ist neu.", detector=auto).notes[-1])
try:
    load_detector("reader")
except MissingExtraError as error:
    print(error.remedy)
"""


@pytest.mark.slow
def test_without_the_extra_auto_works_and_reader_says_what_to_install(reader_here: None) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_A_PACKAGE], capture_output=True, text=True)
    assert done.stderr == ""
    judged, remedy = done.stdout.splitlines()
    assert judged.startswith("auto@grounding-")
    assert judged.endswith("auto:no reader")
    assert remedy == "Type: pip install 'veriglot[reader]'"


@pytest.mark.slow
def test_without_the_model_reader_says_the_command_to_type(reader_here: None, no_models: Path) -> None:
    with pytest.raises(MissingWeightsError) as caught:
        load_detector("reader")
    assert caught.value.remedy == "Type: veriglot models get e5-multilingual"
    assert load_detector("auto", figures="none").name.startswith("auto@grounding-")
    assert not no_models.exists(), "nothing is fetched, nothing written"
