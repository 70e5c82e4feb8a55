"""Confidences as counts on a fixed grid: what ranking and calibration figures are made of.

Keeping every confidence would make a bootstrap sort again for each resample. Instead each response keeps, per bin of
one fixed grid, how many units are positive and negative and the sum of their confidences; histograms of responses
add, and a resample costs additions. The grid has steps of 1/600, finer towards 0 and 1 (down to 1e-6), where
calibrated confidences crowd. Ranking figures treat confidences of one bin as ties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.metrics.scores import ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = [
    "BINS",
    "EDGES",
    "GROUPS",
    "ReliabilityBin",
    "auroc",
    "average_precision",
    "bin_of",
    "coarse_bin",
    "ece_equal_mass",
    "ece_equal_width",
    "reliability",
]

GROUPS = 15
_STEPS = 600  # a multiple of GROUPS


def _grid() -> Array:
    even = np.linspace(0.0, 1.0, _STEPS + 1)  # holds the edges k/15 of the equal-width groups
    tail = np.geomspace(1e-6, even[1], 61)[:-1]
    return np.unique(np.concatenate([even, tail, 1.0 - tail]))


EDGES = _grid()
BINS = len(EDGES) - 1
_GROUP_STARTS = np.searchsorted(EDGES, np.linspace(0.0, 1.0, _STEPS + 1)[: _STEPS : _STEPS // GROUPS])


def bin_of(confidences: Array) -> NDArray[np.int64]:
    """The bin of each confidence (0 to 1): bin k holds `EDGES[k] <= c < EDGES[k + 1]`, the last one 1.0 as well."""
    found: NDArray[np.int64] = np.searchsorted(EDGES, confidences, side="right") - 1
    return np.clip(found, 0, BINS - 1)


def coarse_bin(place: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """The equal bin on [0, 1] that each bin of the grid lies in.

    Args:
        place: bins of the grid.
        bins: how many equal ones; a divisor of 600, so that no bin of the grid lies in two.
    """
    if _STEPS % bins:
        raise ValueError(f"{bins} bins do not divide the grid's {_STEPS} steps")
    starts = np.searchsorted(EDGES, np.linspace(0.0, 1.0, _STEPS + 1)[: _STEPS : _STEPS // bins])
    found: NDArray[np.int64] = np.searchsorted(starts, place, side="right") - 1
    return found


def average_precision(positives: Array, negatives: Array) -> Array:
    """The mean precision at each positive, from the most confident bin down; NaN where a class is empty.

    Args:
        positives: unsupported units per bin, shape `(..., bins)`, bins in rising order.
        negatives: supported units per bin, of the same shape.
    """
    down, down_negative = positives[..., ::-1], negatives[..., ::-1]
    found, false = np.cumsum(down, axis=-1), np.cumsum(down_negative, axis=-1)
    at = np.divide(found, found + false, out=np.zeros_like(found), where=found + false > 0)
    value = ratio((down * at).sum(axis=-1), found[..., -1])
    return np.where(false[..., -1] > 0, value, np.nan)


def auroc(positives: Array, negatives: Array) -> Array:
    """The chance that a positive has the greater confidence than a negative, ties half; NaN where a class is empty."""
    below = np.cumsum(negatives, axis=-1) - negatives / 2.0
    return ratio((positives * below).sum(axis=-1), positives.sum(axis=-1) * negatives.sum(axis=-1))


def _error(positives: Array, confidence: Array, total: Array) -> Array:
    return ratio(np.abs(positives - confidence).sum(axis=-1), total)


def ece_equal_width(positives: Array, negatives: Array, confidence: Array) -> Array:
    """Expected calibration error over 15 groups of equal width (Guo et al. 2017), in [0, 1].

    It is biased upwards in small samples, and more so in their resamples: its interval may lie above the value.

    Args:
        positives: unsupported units per bin, shape `(..., BINS)`.
        negatives: supported units per bin.
        confidence: sum of the confidences per bin.
    """
    found = np.add.reduceat(positives, _GROUP_STARTS, axis=-1)
    promised = np.add.reduceat(confidence, _GROUP_STARTS, axis=-1)
    return _error(found, promised, (positives + negatives).sum(axis=-1))


def _mass_groups(mass: Array) -> NDArray[np.int64]:
    """The group (0 to 14) of each bin so that groups hold nearly equal mass; a bin is never split."""
    total = mass.sum(axis=-1, keepdims=True)
    centre = np.cumsum(mass, axis=-1) - mass / 2.0
    share = np.divide(centre, total, out=np.zeros_like(centre), where=total > 0)
    group: NDArray[np.int64] = np.minimum((share * GROUPS).astype(np.int64), GROUPS - 1)
    return group


def _by_group(values: Array, groups: NDArray[np.int64]) -> Array:
    flat = groups.reshape(-1, groups.shape[-1]) + GROUPS * np.arange(groups[..., 0].size)[:, None]
    sums = np.bincount(flat.ravel(), weights=values.ravel(), minlength=GROUPS * len(flat))
    return sums.astype(np.float64).reshape(*groups.shape[:-1], GROUPS)


def ece_equal_mass(positives: Array, negatives: Array, confidence: Array) -> Array:
    """Expected calibration error over 15 groups of nearly equal mass (Nixon et al. 2019), in [0, 1].

    The arguments are those of `ece_equal_width`. A bin of the grid is never split between groups.
    """
    mass = positives + negatives
    groups = _mass_groups(mass)
    return _error(_by_group(positives, groups), _by_group(confidence, groups), mass.sum(axis=-1))


class ReliabilityBin(NamedTuple):
    """One row of a reliability table: units with a confidence in `[low, high)`.

    `confidence` is their mean confidence and `positive` the share that is unsupported; both None where `units` is 0.
    """

    low: float
    high: float
    units: int
    confidence: float | None
    positive: float | None


def reliability(positives: Array, negatives: Array, confidence: Array) -> list[ReliabilityBin]:
    """The 15 equal-width rows behind `ece_equal_width`, from one histogram of shape `(BINS,)`."""
    ends = np.append(EDGES[_GROUP_STARTS], 1.0)
    yes, no, sums = (np.add.reduceat(part, _GROUP_STARTS) for part in (positives, negatives, confidence))
    rows = []
    for index in range(GROUPS):
        units = int(yes[index] + no[index])
        mean, share = (float(sums[index]) / units, float(yes[index]) / units) if units else (None, None)
        rows.append(ReliabilityBin(round(float(ends[index]), 6), round(float(ends[index + 1]), 6), units, mean, share))
    return rows
