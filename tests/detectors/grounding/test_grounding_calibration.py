"""From logits to probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from veriglot.detectors.calibration import sigmoid
from veriglot.detectors.grounding.detector import PlattScaling, response_features
from veriglot.detectors.grounding.detector import ScriptCalibration as Calibration

CALIBRATION = Calibration(
    {"Latn": PlattScaling(2.0, -1.0)}, ("en", "de"), PlattScaling(0.5, 0.25), (0.7, 0.3, 0.2, 0.1, -0.4)
)
LOGITS = np.array([-3, -0.5, 0, 1.5, 4], np.float32)


def logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def test_sigmoid_is_the_logistic_function_without_overflow() -> None:
    values = np.linspace(-20, 20, 81)
    assert sigmoid(values) == pytest.approx(1 / (1 + np.exp(-values)))
    assert sigmoid(np.array([-1e9, 1e9])).tolist() == [0, 1]


@pytest.mark.parametrize("tag", ["en", "de", "de-AT", "en-Latn-GB"])
def test_a_covered_language_has_the_line_of_its_script(tag: str) -> None:
    assert CALIBRATION.covers(tag, "Latn")
    expected = [logistic(2 * x - 1) for x in LOGITS.tolist()]
    assert CALIBRATION.confidences(LOGITS, tag, "Latn").tolist() == pytest.approx(expected)


@pytest.mark.parametrize(("tag", "script"), [("nl", "Latn"), ("en", "Cyrl"), ("en", None), ("e", "Latn")])
def test_everything_else_has_the_default(tag: str, script: str | None) -> None:
    assert not CALIBRATION.covers(tag, script)
    expected = [logistic(0.5 * x + 0.25) for x in LOGITS.tolist()]
    assert CALIBRATION.confidences(LOGITS, tag, script).tolist() == pytest.approx(expected)


def test_evidence_of_a_response() -> None:
    logits = np.arange(30, dtype=np.float32)[::-1]
    assert response_features(logits).tolist() == pytest.approx([29, 28, 14.5, math.log(30), 1])
    assert response_features(logits[:1]).tolist() == pytest.approx([29, 29, 29, 0, 1])
    assert response_features(logits[:1], 7.0).tolist() == pytest.approx([29, 29, 29, 0, 7, 1])


def test_the_score_of_a_response() -> None:
    value = 0.7 * 4 + 0.3 * 4 + 0.2 * 0.4 + 0.1 * math.log(5) - 0.4
    assert CALIBRATION.score(LOGITS) == pytest.approx(logistic(value))
    assert CALIBRATION.score(LOGITS[::-1]) == CALIBRATION.score(LOGITS)
