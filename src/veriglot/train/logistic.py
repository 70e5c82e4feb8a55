"""Logistic regression with a few features, by Newton's method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.calibration import sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["logistic", "logistic_rising"]

_STEPS = 50
_RIDGE = 1e-3


def logistic(
    features: Array, targets: Array, weights: Array, *, start: Array | None = None, pull: float = 0.0
) -> Array:
    """The weights of a logistic regression, drawn towards `start` by a quadratic penalty.

    Args:
        features: shape (n, k); the constant is one of them.
        targets: 0 to 1, shape (n,).
        weights: of the rows, not negative, shape (n,).
        start: where the penalty is 0, shape (k,); None for the origin.
        pull: the strength of the penalty, as so many rows' worth.

    Returns:
        Shape (k,).
    """
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


def logistic_rising(
    features: Array, targets: Array, weights: Array, *, start: Array | None = None, pull: float = 0.0
) -> Array:
    """The same, but no weight other than the last, the constant's, is negative: more suspicion is never less.

    Features whose weight comes out negative are left out, the most negative first, and the rest fitted again.
    """
    kept = list(range(features.shape[1]))
    while True:
        centre = None if start is None else start[kept]
        found = logistic(features[:, kept], targets, weights, start=centre, pull=pull)
        worst = int(found[:-1].argmin()) if len(kept) > 1 else 0
        if len(kept) == 1 or found[worst] >= 0:
            whole = np.zeros(features.shape[1])
            whole[kept] = found
            return whole
        del kept[worst]
