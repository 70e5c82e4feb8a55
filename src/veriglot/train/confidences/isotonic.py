"""Isotonic regression: the never-falling map that fits labels best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.confidences.curves import Isotonic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["fit_isotonic", "pooled_blocks"]


def fit_isotonic(logits: Array, targets: NDArray[np.bool_]) -> Isotonic:
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


def pooled_blocks(logits: Array, targets: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """Blocks by the pool-adjacent-violators algorithm: their units, unsupported units, and sums of logits."""
    points, place = np.unique(logits, return_inverse=True)
    sizes = np.bincount(place).astype(np.float64)
    positives = np.bincount(place, weights=targets.astype(np.float64))
    blocks: list[list[float]] = []
    for one in zip(sizes.tolist(), positives.tolist(), (sizes * points).tolist(), strict=True):
        blocks.append(list(one))
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] >= blocks[-1][1] * blocks[-2][0]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    table = np.array(blocks)
    return table[:, 0], table[:, 1], table[:, 2]
