"""Prediction-powered estimation: the detector on every response, people on a few, and each where it is strong.

The share that the detector marks in the responses without labels, times a factor, plus what people mark beyond that
factor times the detector in the labelled ones. It is right whatever the detector's errors are, as long as the labelled
responses are drawn at random; the factor that makes the interval shortest is estimated (Angelopoulos et al. 2023,
"Prediction-powered inference"; "PPI++", 2023, section 6). Shares are ratios over clusters here.

The factor is chosen to make the spread of few labels look small, so the spread at that factor flatters itself: with 50
labels, 95% intervals of linearised variances held 88% (benchmarks/rates.py). The error is therefore the jackknife's,
which finds the factor anew without each labelled cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.rates.clustered import clustered_share, freedom_of
from veriglot.rates.shares import Share, share_of
from veriglot.rates.tallies import Tallies

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from veriglot.rates.clustered import ClusteredShare
    from veriglot.rates.tallies import Labels

    Array = NDArray[np.float64]
    Places = NDArray[np.intp]

__all__ = ["Rectified", "rectified"]


@dataclass(frozen=True)
class Rectified:
    """A prediction-powered estimate.

    Attributes:
        value: not cut to [0, 1].
        draws: shape `(draws,)`, between 0 and 1.
        factor: how much the detector is relied on, 0 (not at all: the labels alone) to 1.
        clusters: labelled clusters.
        unsupported: labelled clusters in which people marked a unit.
        supported: labelled clusters in which people left a unit unmarked.
        error: standard error.
    """

    value: float
    draws: Array
    factor: float
    clusters: int
    unsupported: int
    supported: int
    error: float


def rectified(tallies: Tallies, labels: Labels, *, draws: int, generator: Generator) -> Rectified | None:
    """The estimate; None where no labelled response has a unit.

    Responses without a label to queries that have one are left aside: they vary with the labelled ones.
    """
    chosen = tallies.select(labels.response)
    told = Tallies(labels.unsupported, chosen.units, chosen.cluster)
    gold, marked = clustered_share(told), clustered_share(chosen)
    others = clustered_share(tallies.select(~np.isin(tallies.cluster, chosen.cluster)))
    if gold is None or marked is None:
        return None
    k = len(gold.clusters)
    with_unsupported = len(np.unique(chosen.cluster[labels.unsupported > 0]))
    with_supported = len(np.unique(chosen.cluster[labels.unsupported < chosen.units]))
    if others is None or k < 3 or len(others.clusters) < 2 or not gold.influences.any():
        share = share_of(labels.unsupported, chosen.units, chosen.cluster)
        assert share is not None
        drawn = share.draws(draws, generator)
        return Rectified(share.value, drawn, 0.0, k, with_unsupported, with_supported, float(drawn.std()))
    factor = float(_factor(*_products(gold, marked), k, others.error))
    value = gold.share + factor * (others.share - marked.share)
    moves = np.concatenate([_moves(told, chosen, gold, marked, others), factor * _unbiased(others.influences)])
    error = float(np.sqrt((moves**2).sum()))
    drawn = _as_share(value, error, freedom_of(moves), int(tallies.units.sum())).draws(draws, generator)
    return Rectified(value, drawn, factor, k, with_unsupported, with_supported, error)


def _products(gold: ClusteredShare, marked: ClusteredShare) -> tuple[Array, Array]:
    """Of each cluster, what it adds to the covariance of the two shares and to the variance of the marked one."""
    return gold.influences * marked.influences, marked.influences**2


def _factor(covariance: Array, variance: Array, k: int, error_of_others: float, without: Places | None = None) -> Array:
    """The factor that makes the variance least: covariance over the sum of the two variances of the marked share.

    Args:
        covariance, variance: what each cluster adds to them, shape `(k,)`.
        k: how many clusters these are.
        error_of_others: standard error of the marked share among responses without labels.
        without: places of clusters to leave out, each alone, shape `(m,)`; None for one factor of all.
    """
    both, own = covariance.sum(), variance.sum()
    if without is not None:
        both, own, k = both - covariance[without], own - variance[without], k - 1
    scale = k / (k - 1)
    least = scale * own + error_of_others**2
    factor = np.divide(scale * both, least, out=np.zeros_like(least), where=least > 0)
    cut: Array = np.clip(factor, 0.0, 1.0)
    return cut


def _moves(
    told: Tallies, chosen: Tallies, gold: ClusteredShare, marked: ClusteredShare, others: ClusteredShare
) -> Array:
    """How much each labelled cluster moves the estimate: jackknife, with the factor found anew, shape `(k,)`.

    Their squares add up to the variance.
    """
    k = len(gold.clusters)
    place = np.searchsorted(gold.clusters, chosen.cluster)
    unsupported, found, units = (
        np.bincount(place, weights=column, minlength=k) for column in (told.marked, chosen.marked, chosen.units)
    )
    left = units.sum() - units
    kept = np.flatnonzero(left > 0)  # a cluster that holds every unit leaves nothing to estimate from
    factors = _factor(*_products(gold, marked), k, others.error, kept)
    gold_left = (unsupported.sum() - unsupported[kept]) / left[kept]
    marked_left = (found.sum() - found[kept]) / left[kept]
    values = gold_left + factors * (others.share - marked_left)
    moves: Array = (values.mean() - values) * np.sqrt((k - 1) / k)
    return moves


def _unbiased(influences: Array) -> Array:
    k = len(influences)
    scaled: Array = influences * np.sqrt(k / (k - 1))
    return scaled


def _as_share(value: float, error: float, freedom: float, units: int) -> Share:
    """The estimate as a share of as many independent units as would be as sure of it: its draws are skewed near 0."""
    inside = float(np.clip(value, 0.25 / units, 1.0 - 0.25 / units))
    effective = min(inside * (1.0 - inside) / error**2, float(units)) if error > 0 else float(units)
    return Share(inside, units, 0, effective, freedom)
