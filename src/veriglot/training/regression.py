"""Logistic regression by Newton's method, and isotonic regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.calibration import Isotonic, sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["fit_isotonic", "logistic", "logistic_rising"]


if TYPE_CHECKING:
    Array = NDArray[np.float64]


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
    coefficients = centre.copy()
    ridge = np.eye(features.shape[1]) * (_RIDGE + 0.01 * pull)
    for _ in range(_STEPS):
        chances = sigmoid(features @ coefficients)
        slope = features.T @ (weights * (chances - targets)) + ridge @ (coefficients - centre)
        bend = (features * (weights * chances * (1 - chances))[:, None]).T @ features + ridge
        step = np.linalg.solve(bend, slope)
        coefficients = coefficients - np.clip(step, -1, 1)
    return coefficients


def logistic_rising(
    features: Array, targets: Array, weights: Array, *, start: Array | None = None, pull: float = 0.0
) -> Array:
    """The same, but no weight other than the last, the constant's, is negative: more suspicion is never less.

    Features whose weight comes out negative are left out, the most negative first, and the rest fitted again.
    """
    rising = list(range(features.shape[1]))
    while True:
        centre = None if start is None else start[rising]
        coefficients = logistic(features[:, rising], targets, weights, start=centre, pull=pull)
        worst = int(coefficients[:-1].argmin()) if len(rising) > 1 else 0
        if len(rising) == 1 or coefficients[worst] >= 0:
            whole = np.zeros(features.shape[1])
            whole[rising] = coefficients
            return whole
        del rising[worst]


# Isotonic regression: the never-falling map that fits labels best.


if TYPE_CHECKING:
    Floats = NDArray[np.float64]


def fit_isotonic(logits: Floats, targets: NDArray[np.bool_]) -> Isotonic:
    """A point for each block of pooled adjacent violators, at its mean logit.

    A block of n units of which k are unsupported has the value (k + 1/2) / (n + 1): a few units at the end of the
    scale do not make a certainty.

    Args:
        logits: shape (n,), n at least 1.
        targets: shape (n,).
    """
    sizes, positives, sums = pooled_blocks(logits, targets)
    values = np.maximum.accumulate((positives + 0.5) / (sizes + 1.0))
    return Isotonic(tuple((sums / sizes).tolist()), tuple(values.tolist()))


def pooled_blocks(logits: Floats, targets: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Blocks by the pool-adjacent-violators algorithm: their units, unsupported units, and sums of logits."""
    points, positions = np.unique(logits, return_inverse=True)
    sizes = np.bincount(positions).astype(np.float64)
    positives = np.bincount(positions, weights=targets.astype(np.float64))
    blocks: list[list[float]] = []
    for block in zip(sizes.tolist(), positives.tolist(), (sizes * points).tolist(), strict=True):
        blocks.append(list(block))
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] >= blocks[-1][1] * blocks[-2][0]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    table = np.array(blocks)
    return table[:, 0], table[:, 1], table[:, 2]
