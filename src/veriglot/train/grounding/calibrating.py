"""Fitting the lines that turn logits into probabilities, on responses that no weight was fitted on."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.calibration import Calibration, Line, response_evidence, sigmoid
from veriglot.records.languages import language

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.train.grounding.table import Row

__all__ = ["calibrate"]

_MIN_WORDS = 3000  # held-out words that a script needs for a line of its own
_PRIOR = 2000.0  # words' worth of pull towards the default line
_STEPS = 50
_RIDGE = 1e-3


def calibrate(rows: Sequence[Row], logits: Sequence[NDArray[np.float32]], scale: Sequence[float]) -> Calibration:
    """Lines by script, the default, and the weights of the response score.

    Args:
        rows: held-out rows.
        logits: what the network says of them, each of shape (n, 7).
        scale: the weight of each row.
    """
    features, targets, weights = _words(rows, logits, scale)
    default = _logistic(features, targets, weights)
    by_script: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        by_script[language(row.example.language or "").script].append(i)
    lines = {}
    for script, chosen in by_script.items():
        if sum(len(rows[i]) for i in chosen) >= _MIN_WORDS:
            some = _words([rows[i] for i in chosen], [logits[i] for i in chosen], [scale[i] for i in chosen])
            lines[script] = _line(_logistic(*some, start=default, pull=_PRIOR))
    known = {
        (row.example.language or "").split("-")[0]
        for row in rows
        if language(row.example.language or "").script in lines
    }
    return Calibration(lines, tuple(sorted(known)), _line(default), _response_weights(rows, logits, scale))


def _words(
    rows: Sequence[Row], logits: Sequence[NDArray[np.float32]], scale: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    values = np.concatenate([found[:, 0] for found in logits]).astype(np.float64)
    targets = np.concatenate([row.target for row in rows]).astype(np.float64)
    weights = np.concatenate([(row.weight > 0) * s for row, s in zip(rows, scale, strict=True)]).astype(np.float64)
    return np.stack([values, np.ones_like(values)], axis=1), targets, weights


def _line(weights: NDArray[np.float64]) -> Line:
    return Line(slope=float(weights[0]), offset=float(weights[1]))


def _logistic(
    features: NDArray[np.float64],
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    start: NDArray[np.float64] | None = None,
    pull: float = 0.0,
) -> NDArray[np.float64]:
    """Logistic regression by Newton's method, drawn towards `start` by a quadratic penalty."""
    centre = np.zeros(features.shape[1]) if start is None else start
    found = centre.copy()
    ridge = np.eye(features.shape[1]) * (_RIDGE + 0.01 * pull)
    for _ in range(_STEPS):
        chances = sigmoid(features @ found)
        slope = features.T @ (weights * (chances - targets)) + ridge @ (found - centre)
        bend = (features * (weights * chances * (1 - chances))[:, None]).T @ features + ridge
        step = np.linalg.solve(bend, slope)
        found = found - np.clip(step, -1, 1)
    return found


def _response_weights(
    rows: Sequence[Row], logits: Sequence[NDArray[np.float32]], scale: Sequence[float]
) -> tuple[float, ...]:
    evidence = np.array([np.append(response_evidence(found[:, 0]), 1.0) for found in logits])
    any_marked = np.array([float((row.target >= 0.5).any()) for row in rows])
    return tuple(_logistic(evidence, any_marked, np.array(scale, np.float64)).tolist())
