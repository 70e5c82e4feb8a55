"""Correlations of the data and all its resamples at once: a resample gives each pair of numbers a weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics.scores import ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["mid_ranks", "pearson", "spearman"]

_DUST = 1e-12  # a variance below this share of the values' squares is rounding


def pearson(x: Array, y: Array, weights: Array) -> Array:
    """Pearson's correlation under each row of weights, shape `(draws,)`; NaN where a side is constant.

    Args:
        x, y: shape `(n,)`, or `(draws, n)` where they differ by draw.
        weights: how often each pair counts, shape `(draws, n)`.
    """
    total = weights.sum(axis=1)
    x, y = _centred(x, weights, total), _centred(y, weights, total)
    spread_x, spread_y = (ratio((weights * side * side).sum(axis=1), total) for side in (x, y))
    product = ratio((weights * x * y).sum(axis=1), total)
    root = np.sqrt(np.where(_varies(x, spread_x) & _varies(y, spread_y), spread_x * spread_y, 0.0))
    return np.clip(ratio(product, root), -1.0, 1.0)


def spearman(x: Array, y: Array, weights: Array) -> Array:
    """Spearman's correlation under each row of weights: Pearson's of the ranks, ties at their mean rank."""
    return pearson(mid_ranks(x, weights), mid_ranks(y, weights), weights)


def mid_ranks(values: Array, weights: Array) -> Array:
    """The rank of each value where it stands as often as its weight says, shape `(draws, n)`; equal values share one.

    Args:
        values: shape `(n,)`.
        weights: shape `(draws, n)`.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(values) else np.zeros(0, dtype=bool)
    if not len(values):
        return np.zeros_like(weights)
    mass = np.add.reduceat(weights[:, order], np.flatnonzero(new), axis=1)
    rank = np.cumsum(mass, axis=1) - (mass - 1.0) / 2.0
    ranks = np.empty_like(weights)
    ranks[:, order] = rank[:, np.cumsum(new) - 1]
    return ranks


def _centred(values: Array, weights: Array, total: Array) -> Array:
    mean = ratio((weights * values).sum(axis=1), total)
    centred: Array = values - mean[:, None]
    return centred


def _varies(centred: Array, spread: Array) -> NDArray[np.bool_]:
    """Whether a variance is more than rounding, held against the largest value that it is of."""
    largest = np.abs(centred).max(axis=1, initial=0.0) ** 2
    found: NDArray[np.bool_] = spread > _DUST * np.maximum(largest, np.finfo(np.float64).tiny)
    return found
