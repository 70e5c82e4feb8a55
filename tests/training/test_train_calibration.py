"""Calibration recovers the slope and offset that the labels were drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from veriglot.detectors.calibration import sigmoid
from veriglot.training.grounding.examples import TYPES, Example
from veriglot.training.grounding.network import Row
from veriglot.training.grounding.pipeline import calibrate

if TYPE_CHECKING:
    from veriglot.detectors.grounding.detector import ScriptCalibration as Calibration

WORDS = 100


def row_of(language: str, target: np.ndarray, weight: np.ndarray, kind: str) -> Row:
    example = Example(kind, "own", language, language, "x", ("x",))
    places = np.zeros(len(target), np.int32)
    return Row(
        example, target.astype(np.float32), weight.astype(np.float32), np.zeros((len(target), len(TYPES)), np.float32),
        np.zeros((len(target), 1), np.float16), places, places, np.zeros((len(target), 2), np.int32),
    )  # fmt: skip


def calibrated(*told: tuple[str, int, float, float], spoilt: float = 0.0, kind: str = "natural") -> Calibration:
    """Rows of a language whose labels follow slope and offset; a `spoilt` share has wrong labels and weight 0."""
    rng = np.random.default_rng(11)
    rows, logits = [], []
    for language, count, slope, offset in told:
        for _ in range(count):
            values = rng.normal(0, 2.5, WORDS)
            target = (rng.uniform(size=WORDS) < sigmoid(slope * values + offset)).astype(np.float64)
            weight = (rng.uniform(size=WORDS) >= spoilt).astype(np.float64)
            target = np.where(weight > 0, target, 1 - target)
            rows.append(row_of(language, target, weight, kind))
            logits.append(np.concatenate([values[:, None], np.zeros((WORDS, 6))], axis=1).astype(np.float32))
    return calibrate(rows, logits)


@pytest.mark.parametrize(("slope", "offset"), [(1.0, 0.0), (0.6, -0.8), (1.7, 0.5)])
def test_a_known_line_is_found(slope: float, offset: float) -> None:
    found = calibrated(("en", 200, slope, offset))
    for line in (found.default, found.scripts["Latn"]):
        assert line.slope == pytest.approx(slope, abs=0.08)
        assert line.offset == pytest.approx(offset, abs=0.08)


def test_scripts_with_enough_words_have_a_line_of_their_own() -> None:
    found = calibrated(("en", 150, 1.0, 0.0), ("de", 50, 1.0, 0.0), ("ru", 200, 0.5, -1.5), ("ka", 10, 3.0, 1.0))
    assert set(found.scripts) == {"Latn", "Cyrl"}
    assert found.languages == ("de", "en", "ru")
    assert found.scripts["Latn"].slope > found.default.slope > found.scripts["Cyrl"].slope
    assert found.scripts["Cyrl"].offset == pytest.approx(-1.5, abs=0.25)
    assert found.covers("de-AT", "Latn")
    assert not found.covers("ka", "Geor")


def test_ignored_words_do_not_count() -> None:
    found = calibrated(("en", 200, 1.0, 0.0), spoilt=0.3)
    assert found.default.slope == pytest.approx(1.0, abs=0.08)
    assert found.default.offset == pytest.approx(0.0, abs=0.08)


def test_the_score_of_a_response_rises_with_its_logits() -> None:
    found = calibrated(("en", 200, 1.0, -4.0))
    scores = [found.score(np.full(WORDS, value, np.float32)) for value in (-6, -3, 0, 3)]
    assert scores == sorted(scores)
    assert scores[0] < 0.3 < 0.7 < scores[-1]


def test_made_rows_fit_the_lines_only_where_nobody_labelled_any() -> None:
    made = calibrated(("en", 200, 0.5, 1.0), kind="clean")
    assert made.default.slope == pytest.approx(0.5, abs=0.08)
    rng = np.random.default_rng(2)
    rows, logits = [], []
    for kind, slope in (("natural", 1.0), ("clean", 0.2)):
        for _ in range(200):
            values = rng.normal(0, 2.5, WORDS)
            rows.append(row_of("en", rng.uniform(size=WORDS) < sigmoid(slope * values), np.ones(WORDS), kind))
            logits.append(np.tile(values[:, None], (1, 7)).astype(np.float32))
    assert calibrate(rows, logits).default.slope == pytest.approx(1.0, abs=0.08)
