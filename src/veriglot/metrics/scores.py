"""Scores from counts, from binned confidences, and from ranks: for the data and all its resamples at once.

With raw confidences, a bootstrap would have to sort again for each resample. Instead each response has, for each bin
of one fixed grid, the numbers of positive and negative units and the sum of their confidences; histograms of responses
add up, so a resample only costs additions. Bins have a width of 1/600, and are narrower near 0 and 1 (down to 1e-6),
where most calibrated confidences are. Ranking figures treat confidences in one bin as ties.

A score with denominator 0 is NaN, since it was not measured. Figures turn NaN into None with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from veriglot.arrays import Bools, Float64s, Int64s

    Array = Float64s
    Mask = Bools

__all__ = ["BINS", "COUNT_SCORES", "EDGES", "Ranked", "ReliabilityBin", "bin_of", "coarse_bin", "ratio", "reliability"]


# Scores from counts of true and false positives and negatives: arrays whose last axis is `(tp, fp, fn, tn)`.


def ratio(part: Array, whole: Array) -> Array:
    """`part / whole`, NaN if `whole` is 0."""
    part, whole = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    out = np.full(np.broadcast_shapes(part.shape, whole.shape), np.nan)
    divided: Array = np.divide(part, whole, out=out, where=whole != 0)
    return divided


def precision(counts: Array) -> Array:
    """tp / (tp + fp): the share of marked units that are unsupported."""
    return ratio(counts[..., 0], counts[..., 0] + counts[..., 1])


def recall(counts: Array) -> Array:
    """tp / (tp + fn): the share of unsupported units that are marked; also called TPR."""
    return ratio(counts[..., 0], counts[..., 0] + counts[..., 2])


def fpr(counts: Array) -> Array:
    """fp / (fp + tn): the share of supported units that are marked."""
    return ratio(counts[..., 1], counts[..., 1] + counts[..., 3])


def f1(counts: Array) -> Array:
    """2 tp / (2 tp + fp + fn); NaN only if nothing is unsupported and nothing marked."""
    return ratio(2.0 * counts[..., 0], 2.0 * counts[..., 0] + counts[..., 1] + counts[..., 2])


def accuracy(counts: Array) -> Array:
    """(tp + tn) / all."""
    return ratio(counts[..., 0] + counts[..., 3], counts.sum(axis=-1))


def prevalence(counts: Array) -> Array:
    """(tp + fn) / all: the share of units that are unsupported."""
    return ratio(counts[..., 0] + counts[..., 2], counts.sum(axis=-1))


def mcc(counts: Array) -> Array:
    """Matthews correlation coefficient, in [-1, 1]; NaN if a row or column of the table is empty."""
    tp, fp, fn, tn = (counts[..., index].astype(np.float64) for index in range(4))
    root = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
    return ratio(tp * tn - fp * fn, root)


COUNT_SCORES: dict[str, Callable[[Array], Array]] = {
    "precision": precision,
    "recall": recall,
    "f1": f1,
    "fpr": fpr,
    "accuracy": accuracy,
    "mcc": mcc,
}
"""Name of a score to its function, from counts of shape `(..., 4)` to values of shape `(...)`."""


# Ranking and calibration from binned confidences.

GROUPS = 15
_STEPS = 600  # a multiple of GROUPS


def _grid() -> Array:
    even = np.linspace(0.0, 1.0, _STEPS + 1)  # includes the edges k/15 of the equal-width groups
    tail = np.geomspace(1e-6, even[1], 61)[:-1]
    return np.unique(np.concatenate([even, tail, 1.0 - tail]))


EDGES = _grid()
BINS = len(EDGES) - 1


def _starts(bins: int) -> NDArray[np.intp]:
    """The first bin of the grid in each of `bins` equal bins on [0, 1]; their number divides the grid's steps."""
    return np.searchsorted(EDGES, np.linspace(0.0, 1.0, _STEPS + 1)[: _STEPS : _STEPS // bins])


_GROUP_STARTS = _starts(GROUPS)


def bin_of(confidences: Array) -> Int64s:
    """The bin of each confidence (0 to 1): bin k is `EDGES[k] <= c < EDGES[k + 1]`, and the last one includes 1.0."""
    bins: Int64s = np.searchsorted(EDGES, confidences, "right") - 1
    return np.clip(bins, 0, BINS - 1)


def coarse_bin(fine: Int64s, bins: int) -> Int64s:
    """The equal-width bin on [0, 1] that contains each bin of the grid.

    Args:
        fine: bins of the grid.
        bins: number of equal-width bins; a divisor of 600, so that no bin of the grid overlaps two.
    """
    return np.searchsorted(_starts(bins), fine, "right") - 1


def average_precision(positives: Array, negatives: Array) -> Array:
    """The mean precision at each positive, from the most confident bin down; NaN if a class is empty."""
    return _average_precision(positives[..., ::-1], negatives[..., ::-1])


def _average_precision(positives: Array, negatives: Array) -> Array:
    """The same, from bins in descending order; NaN if there are no bins."""
    if not positives.shape[-1]:
        return np.full(positives.shape[:-1], np.nan)
    hits, false = np.cumsum(positives, axis=-1), np.cumsum(negatives, axis=-1)
    at = np.divide(hits, hits + false, out=np.zeros_like(hits), where=hits + false > 0)
    value = ratio((positives * at).sum(axis=-1), hits[..., -1])
    return np.where(false[..., -1] > 0, value, np.nan)


def auroc(positives: Array, negatives: Array) -> Array:
    """The probability that a positive has greater confidence than a negative, ties half; NaN if a class is empty."""
    below = np.cumsum(negatives, axis=-1) - negatives / 2.0
    return ratio((positives * below).sum(axis=-1), positives.sum(axis=-1) * negatives.sum(axis=-1))


def _error(positives: Array, confidence: Array, total: Array) -> Array:
    return ratio(np.abs(positives - confidence).sum(axis=-1), total)


def ece_equal_width(positives: Array, negatives: Array, confidence: Array) -> Array:
    """Expected calibration error over 15 groups of equal width (Guo et al. 2017), in [0, 1].

    It is biased upwards in small samples, and more so in their resamples, so its interval may exclude the value.
    """
    observed = np.add.reduceat(positives, _GROUP_STARTS, axis=-1)
    promised = np.add.reduceat(confidence, _GROUP_STARTS, axis=-1)
    return _error(observed, promised, (positives + negatives).sum(axis=-1))


def ece_equal_mass(positives: Array, negatives: Array, confidence: Array) -> Array:
    """Expected calibration error over 15 groups of nearly equal mass (Nixon et al. 2019), in [0, 1].

    Same arguments as `ece_equal_width`. A bin of the grid is never split between groups.
    """
    mass = positives + negatives
    total = mass.sum(axis=-1, keepdims=True)
    centre = np.cumsum(mass, axis=-1) - mass / 2.0
    share = np.divide(centre, total, out=np.zeros_like(centre), where=total > 0)
    groups = np.minimum((share * GROUPS).astype(np.int64), GROUPS - 1)
    flat = groups.reshape(-1, groups.shape[-1]) + GROUPS * np.arange(groups[..., 0].size)[:, None]

    def by_group(values: Array) -> Array:
        sums = np.bincount(flat.ravel(), weights=values.ravel(), minlength=GROUPS * len(flat))
        return sums.astype(np.float64).reshape(*groups.shape[:-1], GROUPS)

    return _error(by_group(positives), by_group(confidence), total[..., 0])


class ReliabilityBin(NamedTuple):
    """One row of a reliability table: units with a confidence in `[low, high)`.

    `confidence` is their mean confidence and `positive` the share that is unsupported; both None if `units` is 0.
    """

    low: float
    high: float
    units: int
    confidence: float | None
    positive: float | None


def reliability(positives: Array, negatives: Array, confidence: Array) -> list[ReliabilityBin]:
    """The 15 equal-width rows of `ece_equal_width`, from one histogram of shape `(BINS,)`."""
    ends = np.append(EDGES[_GROUP_STARTS], 1.0)
    yes, no, sums = (np.add.reduceat(part, _GROUP_STARTS) for part in (positives, negatives, confidence))
    rows = []
    for index in range(GROUPS):
        units = int(yes[index] + no[index])
        mean, share = (float(sums[index]) / units, float(yes[index]) / units) if units else (None, None)
        rows.append(ReliabilityBin(round(float(ends[index]), 6), round(float(ends[index + 1]), 6), units, mean, share))
    return rows


# Exact ranking figures of scores of any range, for the data and all its resamples at once.
#
# Scores are sorted once. A resample gives each item a weight, so it costs cumulative sums and no sorting. Items
# with equal scores are one step: their order is arbitrary.


@dataclass(frozen=True)
class Ranked:
    """Scores in descending order.

    Attributes:
        order: indices of the items, greatest score first, shape `(n,)`.
        starts: start of each run of equal scores in `order`, shape `(steps,)`.
        cuts: the score of each run, descending, shape `(steps,)`.
        positive: which items are positive, in the original order, shape `(n,)`.
    """

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    cuts: Array
    positive: Mask

    @classmethod
    def of(cls, scores: Array, positive: Mask) -> Ranked:
        """Sort scores (shape `(n,)`, no NaN); greater ones predict positive."""
        order = np.argsort(-scores, kind="stable")
        ordered = scores[order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(scores) else order
        return cls(order, starts, ordered[starts], positive)

    def steps(self, weights: Array) -> tuple[Array, Array]:
        """Number of positives and of negatives in each run of equal scores, both of shape `(draws, steps)`.

        Args:
            weights: how often each item counts, shape `(draws, n)`.
        """
        if not len(self.order):
            return np.zeros((len(weights), 0)), np.zeros((len(weights), 0))
        ordered = weights[:, self.order]
        yes = self.positive[self.order].astype(np.float64)
        positives, negatives = (np.add.reduceat(ordered * part, self.starts, axis=1) for part in (yes, 1.0 - yes))
        return positives, negatives

    def average_precision(self, weights: Array) -> Array:
        """The mean precision at each positive, shape `(draws,)`; NaN if a class is empty.

        This is the area under the precision-recall curve by steps, without interpolation: no threshold reaches the
        points on a straight line between two points of that curve (Davis and Goadrich 2006). A random ranking gets the
        share of positives.
        """
        return _average_precision(*self.steps(weights))

    def auroc(self, weights: Array) -> Array:
        """The probability that a positive has the greater score than a negative, ties half; NaN if a class is empty."""
        positives, negatives = self.steps(weights)
        return auroc(positives[:, ::-1], negatives[:, ::-1])


# Correlations for the data and all its resamples at once: a resample gives each pair of numbers a weight.

_ROUNDING = 1e-12  # a variance below this share of the values' squares is rounding error


def pearson(x: Array, y: Array, weights: Array) -> Array:
    """Pearson's correlation under each row of weights, shape `(draws,)`; NaN if a side is constant."""
    total = weights.sum(axis=1)
    x, y = (side - ratio((weights * side).sum(axis=1), total)[:, None] for side in (x, y))
    spread_x, spread_y = (ratio((weights * side * side).sum(axis=1), total) for side in (x, y))
    product = ratio((weights * x * y).sum(axis=1), total)
    root = np.sqrt(np.where(_varies(x, spread_x) & _varies(y, spread_y), spread_x * spread_y, 0.0))
    return np.clip(ratio(product, root), -1.0, 1.0)


def _varies(centred: Array, spread: Array) -> Mask:
    """Whether a variance is more than rounding error, relative to the largest value."""
    largest = np.abs(centred).max(axis=1, initial=0.0) ** 2
    varies: Mask = spread > _ROUNDING * np.maximum(largest, np.finfo(np.float64).tiny)
    return varies


def spearman(x: Array, y: Array, weights: Array) -> Array:
    """Spearman's correlation under each row of weights: Pearson's of the ranks, ties at their mean rank."""
    return pearson(mid_ranks(x, weights), mid_ranks(y, weights), weights)


def mid_ranks(values: Array, weights: Array) -> Array:
    """The rank of each value if it occurs as often as its weight says, shape `(draws, n)`; equal values share one.

    Args:
        values: shape `(n,)`.
        weights: shape `(draws, n)`.
    """
    if not len(values):
        return np.zeros_like(weights)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    mass = np.add.reduceat(weights[:, order], np.flatnonzero(new), axis=1)
    rank = np.cumsum(mass, axis=1) - (mass - 1.0) / 2.0
    ranks = np.empty_like(weights)
    ranks[:, order] = rank[:, np.cumsum(new) - 1]
    return ranks
