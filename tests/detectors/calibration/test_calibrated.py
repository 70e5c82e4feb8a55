"""The detector `calibrated`: what it makes of words and of spans alone, and which files it refuses."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from told_words import ToldWords, told

from veriglot.detectors.calibration import (
    ByScript,
    Calibrated,
    Calibration,
    Platt,
    WordCurve,
    apply_curve,
    settings_of,
)
from veriglot.detectors.registry import load_detector
from veriglot.errors import InputError, UsageError
from veriglot.records import DataSource, Status
from veriglot.testing import check_detector

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from veriglot.records import Detector

    Write = Callable[..., str]

TIMID = Platt(2.0, -1.0)
BOLD = Platt(1.0, 3.0)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a calibration: of a detector, with curves of our own."""

    def made(detector: Detector, words: ByScript, **parts: Any) -> str:
        source = parts.pop("source", "words")
        own = settings_of(detector.signature) if source == "words" else detector.signature
        file = Calibration(
            **{
                "format": Calibration.known, "detector": detector.name, "settings": own, "source": source,
                "method": "platt",
                "threshold": 0.5, "words": words, "responses": None, "quality": (),
                "data": DataSource("0" * 64, "gold"), "signature": "calibrated:by hand", **parts,
            }
        )  # fmt: skip
        path = tmp_path / "calibration.json"
        path.write_bytes(msgspec.json.encode(file))
        return str(path)

    return made


def level(default: Platt = TIMID, **scripts: Platt) -> ByScript:
    return ByScript(WordCurve(default), {script: WordCurve(one, languages=("en",)) for script, one in scripts.items()})


def confidences(detector: Detector, text: str, language: str = "en") -> list[float]:
    (found,) = detector.predict([told("one", text, language)])
    return [word.confidence for word in found.words or ()]


def test_words_spans_and_score_are_calibrated(write: Write) -> None:
    file = write(ToldWords(), level(), responses=ByScript(WordCurve(BOLD)))
    found = Calibrated(ToldWords, calibration=file, words=True).predict([told("one", "a30 a70 a90x a10")])[0]
    wanted = apply_curve(TIMID, np.array([0.3, 0.7, 0.9, 0.1])).tolist()
    assert [word.confidence for word in found.words or ()] == wanted
    assert [(span.text, span.confidence) for span in found.spans or ()] == [("a70", wanted[1]), ("a90x", wanted[2])]
    assert found.score == apply_curve(BOLD, np.array([0.9]))[0]


def test_each_span_keeps_its_type_and_its_pointers(write: Write) -> None:
    found = Calibrated(ToldWords, calibration=write(ToldWords(), level(BOLD))).predict([told("one", "a20 a01 a30")])[0]
    assert [(span.text, span.type, len(span.evidence)) for span in found.spans or ()] == [
        ("a20", "entity", 1),
        ("a30", "entity", 1),
    ]  # 0.2 and 0.3 were below the detector's own threshold


def test_a_script_has_its_curve_and_others_the_default_and_a_note(write: Write) -> None:
    detector = Calibrated(ToldWords, calibration=write(ToldWords(), level(TIMID, Latn=BOLD)), words=True)
    assert confidences(detector, "a40 the", "en")[0] == apply_curve(BOLD, np.array([0.4]))[0]
    for language, text in (("ru", "a40 это она сказала"), ("de", "a40 das")):  # another script; a language not learned
        assert confidences(detector, text, language)[0] == apply_curve(TIMID, np.array([0.4]))[0]
        assert detector.predict([told("one", text, language)])[0].notes == ("calibration:default",)
    assert detector.predict([told("one", "a40 the")])[0].notes == (), "the detector's own note on calibration is void"


def test_a_detector_of_spans_alone_gets_words(write: Write) -> None:
    make = partial(ToldWords, spans_alone=True)
    words = ByScript(WordCurve(TIMID, unmarked=0.07, verdict=0.66))
    detector = Calibrated(make, calibration=write(make(), words, source="spans"), words=True)
    assert confidences(detector, "a90x a20 zebra a80V") == [apply_curve(TIMID, np.array([0.9]))[0], 0.07, 0.07, 0.66]
    low = Calibrated(make, calibration=write(make(), words, source="spans"), threshold=0.01)
    (found,) = low.predict([told("one", "a90x a20")])
    assert [span.text for span in found.spans or ()] == ["a90x", "a20"]
    assert (found.spans or ())[1].type is None, "nobody said what it is"


def test_what_was_not_scored_stays_so(write: Write) -> None:
    detector = Calibrated(ToldWords, calibration=write(ToldWords(), level()))
    (found,) = detector.predict([told("one", "a10", "xx")])
    assert (found.status, found.reason) == (Status.UNSUPPORTED_LANGUAGE, "does not read xx")
    assert found.signature == detector.signature


def test_another_detector_or_other_settings_are_refused(write: Write) -> None:
    file = write(ToldWords(), level())
    with pytest.raises(UsageError, match="fitted for told-a@1, not for told-b@1"):
        Calibrated(partial(ToldWords, letter="b"), calibration=file)
    with pytest.raises(UsageError, match="other settings"):
        Calibrated(partial(ToldWords, kind="relation"), calibration=file)
    Calibrated(ToldWords, calibration=file, threshold=0.9)  # a threshold moves no confidence


def test_the_threshold_is_the_files_unless_one_is_given(write: Write) -> None:
    file = write(ToldWords(), level(), threshold=0.31)
    assert Calibrated(ToldWords, calibration=file).threshold == 0.31
    assert Calibrated(ToldWords, calibration=file, threshold=0.8).threshold == 0.8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no calibration"),
        ("[]", "no calibration"),
        ('{"format": "x"}', "no calibration"),
        (None, "there is no such calibration"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "file.json"
    if content is not None:
        path.write_text(content, "utf-8")
    with pytest.raises(InputError, match=message) as caught:
        Calibrated(ToldWords, calibration=path)
    assert caught.value.path == str(path)


def test_a_newer_format_is_refused(write: Write) -> None:
    with pytest.raises(InputError, match="veriglot-calibration/9"):
        Calibrated(ToldWords, calibration=write(ToldWords(), level(), format="veriglot-calibration/9"))


def test_curves_that_lack_what_they_need_are_refused(write: Write) -> None:
    with pytest.raises(ValueError, match="shares of words"):
        write(ToldWords(), level(), source="spans")
    with pytest.raises(ValueError, match="has a curve"):
        write(ToldWords(), ByScript(WordCurve(None)))


def test_it_is_found_by_name_and_travels(write: Write) -> None:
    file = write(load_detector("grounding"), level(TIMID))
    detector = load_detector("calibrated:grounding", calibration=file)
    again = pickle.loads(pickle.dumps(detector))
    assert detector.name.startswith("calibrated@grounding-")
    assert (again.name, again.signature) == (detector.name, detector.signature)
    assert settings_of(detector.signature) == settings_of(
        load_detector("calibrated:grounding", calibration=file, threshold=0.9).signature
    )


@pytest.mark.parametrize("make", [partial(load_detector, "grounding")])
def test_the_contract_is_kept(write: Write, make: Callable[..., Detector]) -> None:
    file = write(make(threshold=None, words=True), level(TIMID, Latn=BOLD), responses=ByScript(WordCurve(TIMID)))
    check_detector(partial(Calibrated, make, calibration=file))
