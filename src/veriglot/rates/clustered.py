"""The share of marked units, and how each cluster of responses moves it.

Words of one response go wrong together, and so do the responses to one query. What counts as independent is the
cluster, and a share over all units is a ratio of two sums of clusters, whose error follows from how far each cluster
lies off it (linearisation; Cochran 1977, section 6.3, and section 2.11 for the ratio of totals).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.rates.tallies import Tallies

    Array = NDArray[np.float64]
    Clusters = NDArray[np.int64]

__all__ = ["ClusteredShare", "clustered_share", "error_of", "freedom_of"]


@dataclass(frozen=True)
class ClusteredShare:
    """Marked units over units.

    Attributes:
        share: between 0 and 1.
        clusters: the cluster ids, ascending, shape `(k,)`.
        influences: how much each cluster moves the share, shape `(k,)`; they add up to 0.
    """

    share: float
    clusters: Clusters
    influences: Array

    @property
    def error(self) -> float:
        """Standard error of the share; NaN for fewer than two clusters."""
        return error_of(self.influences)


def clustered_share(tallies: Tallies) -> ClusteredShare | None:
    """The share of marked units in `tallies`; None where there is no unit."""
    clusters, place = np.unique(np.asarray(tallies.cluster, dtype=np.int64), return_inverse=True)
    marked = np.bincount(place, weights=tallies.marked, minlength=len(clusters))
    units = np.bincount(place, weights=tallies.units, minlength=len(clusters))
    total = units.sum()
    if total <= 0:
        return None
    share = float(marked.sum() / total)
    return ClusteredShare(share, clusters, (marked - share * units) / total)


def error_of(influences: Array) -> float:
    """Standard error of a sum of influences of independent clusters, shape `(k,)`; NaN for fewer than two."""
    k = len(influences)
    return math.sqrt(k / (k - 1) * float((influences**2).sum())) if k > 1 else math.nan


def freedom_of(influences: Array) -> float:
    """Degrees of freedom of that error, between 1 and k - 1: fewer than clusters where a few of them weigh most.

    Satterthwaite's, from the fourth moment: `2 S2^2 / (S4 - S2^2 / k)`, which is about `k` where influences are normal.
    Where rates are low, most clusters have no marked unit and the few that have make the error.
    """
    k = len(influences)
    if k < 2:
        return 1.0
    second, fourth = float((influences**2).sum()), float((influences**4).sum())
    spread = fourth - second**2 / k
    freedom = 2.0 * second**2 / spread if spread > 0 else float(k - 1)
    return float(np.clip(freedom, 1.0, k - 1))
