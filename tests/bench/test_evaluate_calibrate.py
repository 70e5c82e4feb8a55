"""`veriglot evaluate --calibrate` and `--calibration`: one writes what the other, and `veriglot detect`, apply."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from absent_words import AbsentWords
from labelled_texts import annotation

from json_lines import write_lines
from settings_file import main
from veriglot.detectors.calibration import Calibration, apply_curve
from veriglot.records import Evidence, Sample

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

DETECTOR = ("--detector", "absent_words:AbsentWords")
_WORDS = ("mill", "river", "stone", "bridge", "harbour", "meadow", "tower", "lantern", "orchard", "castle")


def _samples() -> list[Sample]:
    """Forty answers that say of a place one thing that stands in the evidence, and one that mostly does not."""
    found = []
    for place in range(40):
        here, there = _WORDS[place % 10], _WORDS[(place + 1 + place // 10) % 10]
        response = f"Number {place}: the {here} is near the {there}."
        wrong = [] if place % 4 == 0 else [(there, "entity")]
        evidence = f"Number {place}: the {here} is near the {there if place % 5 == 0 else 'sea'}."
        found.append(
            Sample(
                f"s{place}", response, language="en", evidence=(Evidence(evidence),),
                annotations=(annotation(response, wrong),),
            )
        )  # fmt: skip
    return found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The answers in a file."""
    path = tmp_path / "mine.jsonl"
    return write_lines(path, _samples())


def _evaluate(*words: object) -> int:
    return main(["evaluate", "--quiet", "--resamples", "0", "--levels", "unit", *(str(word) for word in words)])


def test_what_is_fitted_is_written_and_shown(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.json"
    assert _evaluate(data, *DETECTOR, "--calibrate", out) == 0
    shown = capsys.readouterr().out
    found = Calibration.read(out)
    assert "Calibration of absent-words@1 (platt)" in shown
    assert f"{found.threshold:.4f}" in shown
    assert found.signature in shown.replace("\n", "")
    (ece,) = [q for q in found.quality if (q.level, q.what, q.name, q.script) == ("word", "given", "ece", "all")]
    assert f"{ece.value:.3f}" in shown


def test_detect_and_evaluate_apply_it(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.json"
    assert _evaluate(data, *DETECTOR, "--calibrate", out, "--curve", "isotonic") == 0
    capsys.readouterr()
    assert (
        main(
            [
                "detect",
                str(data),
                "--detector",
                f"calibrated:{DETECTOR[1]}",
                "--set",
                f"calibration={out}",
                "--words",
                "--quiet",
            ]
        )
        == 0
    )
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    plain = AbsentWords().predict(_samples())
    level = Calibration.read(out).words
    for row, before in zip(rows, plain, strict=True):
        assert row["detector"].startswith("calibrated@absent-words-1+")
        given = level.of("en", "Latn").curve
        assert given is not None
        for word, old in zip(row["words"], before.words or (), strict=True):
            assert word["confidence"] == pytest.approx(apply_curve(given, np.array([old.confidence]))[0], abs=1e-4)
    assert _evaluate(data, *DETECTOR, "--calibration", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["about"]["detector"].startswith("calibrated@")


def test_predictions_of_a_file_can_be_calibrated(data: Path, tmp_path: Path) -> None:
    marked, asked, read = (tmp_path / name for name in ("marked.jsonl", "asked.json", "read.json"))
    write_lines(marked, AbsentWords().predict(_samples()))
    assert _evaluate(data, *DETECTOR, "--calibrate", asked) == 0
    assert _evaluate(data, "--predictions", marked, "--calibrate", read) == 0
    assert Calibration.read(asked) == Calibration.read(read)


def test_json_holds_what_was_measured(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _evaluate(data, *DETECTOR, "--calibrate", tmp_path / "mine.json", "--json") == 0
    found = json.loads(capsys.readouterr().out)["calibration"]
    assert {row["name"] for row in found["quality"]} == {"ece", "brier"}
    assert found["data"]["kind"] == "gold"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--calibration", "{out}", "--calibrate", "{new}"), "exclude each other"),
        (("--calibration", "{out}", "--predictions", "{data}"), "none runs"),
        (("--calibration", "{gone}"), "no such calibration"),
    ],
)
def test_what_makes_no_sense_is_refused(
    data: Path, tmp_path: Path, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"out": tmp_path / "mine.json", "new": tmp_path / "new.json", "gone": tmp_path / "gone.json", "data": data}
    assert _evaluate(data, *DETECTOR, "--calibrate", names["out"]) == 0
    capsys.readouterr()
    assert _evaluate(data, *DETECTOR, *(word.format(**names) for word in words)) != 0
    assert message in capsys.readouterr().err
    assert not names["new"].exists()


def test_another_detector_is_refused(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.json"
    assert _evaluate(data, *DETECTOR, "--calibrate", out) == 0
    assert (
        main(["detect", str(data), "--detector", "calibrated:grounding", "--set", f"calibration={out}", "--quiet"]) == 2
    )
    assert "fitted for absent-words@1" in capsys.readouterr().err


def test_counts_cannot_be_calibrated(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = tmp_path / "counts.json"
    assert _evaluate(data, *DETECTOR, "--counts", counts) == 0
    assert _evaluate(counts, "--calibrate", tmp_path / "mine.json") == 2
    assert "Give --calibrate with the samples" in capsys.readouterr().err
