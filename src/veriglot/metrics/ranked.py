"""Ranking figures of scores of any range, exactly, for the data and all its resamples at once.

Scores are sorted once. A resample gives each item a weight, so that it costs cumulative sums and no sorting. Items with
equal scores are one step: their order among each other says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics.scores import ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["Ranked"]


@dataclass(frozen=True)
class Ranked:
    """Scores in falling order.

    Attributes:
        order: places of the items, greatest score first, shape `(n,)`.
        starts: where each run of equal scores begins in `order`, shape `(steps,)`.
        cuts: the score of each run, falling, shape `(steps,)`.
        positive: which items are positive, in the order given, shape `(n,)`.
    """

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    cuts: Array
    positive: Mask

    @classmethod
    def of(cls, scores: Array, positive: Mask) -> Ranked:
        """Sort scores (shape `(n,)`, no NaN), of which the greater ones claim to be positive."""
        order = np.argsort(-scores, kind="stable")
        ordered = scores[order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(scores) else order
        return cls(order, starts, ordered[starts], positive)

    def steps(self, weights: Array) -> tuple[Array, Array]:
        """Positives and negatives of each run of equal scores, both of shape `(draws, steps)`.

        Args:
            weights: how often each item counts, shape `(draws, n)`.
        """
        if not len(self.order):
            return np.zeros((len(weights), 0)), np.zeros((len(weights), 0))
        sorted_ = weights[:, self.order]
        yes = self.positive[self.order].astype(np.float64)
        return np.add.reduceat(sorted_ * yes, self.starts, axis=1), np.add.reduceat(
            sorted_ * (1.0 - yes), self.starts, axis=1
        )

    def average_precision(self, weights: Array) -> Array:
        """The mean precision at each positive, shape `(draws,)`; NaN where a class is empty.

        The area under the precision-recall curve by steps, which do not interpolate: a straight line between two
        points of that curve promises what no threshold gives (Davis and Goadrich 2006). A ranking by chance has the
        share of positives.
        """
        positives, negatives = self.steps(weights)
        found, false = np.cumsum(positives, axis=1), np.cumsum(negatives, axis=1)
        if not found.shape[1]:
            return np.full(len(weights), np.nan)
        at = np.divide(found, found + false, out=np.zeros_like(found), where=found + false > 0)
        value = ratio((positives * at).sum(axis=1), found[:, -1])
        return np.where(false[:, -1] > 0, value, np.nan)

    def auroc(self, weights: Array) -> Array:
        """The chance that a positive has the greater score than a negative, ties half; NaN where a class is empty."""
        positives, negatives = self.steps(weights)
        above = np.cumsum(positives, axis=1) - positives / 2.0
        return ratio((negatives * above).sum(axis=1), positives.sum(axis=1) * negatives.sum(axis=1))
