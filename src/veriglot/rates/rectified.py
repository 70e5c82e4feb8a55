"""Prediction-powered estimation: the detector on every response, people on a few, and each where it is strong.

The share that the detector marks in all responses, times a factor, plus what people mark beyond that factor times the
detector in the labelled ones. It is right whatever the detector's errors are, as long as the labelled responses are
drawn at random; the factor that makes the interval shortest is estimated (Angelopoulos et al. 2023, "Prediction-powered
inference"; "PPI++", 2023, section 6). Shares are ratios over clusters here, so variances are linearised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.rates.clustered import clustered_share
from veriglot.rates.shares import share_of
from veriglot.rates.tallies import Tallies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.rates.tallies import Labels

    Array = NDArray[np.float64]

__all__ = ["Rectified", "rectified"]


@dataclass(frozen=True)
class Rectified:
    """A prediction-powered estimate.

    Attributes:
        value: not cut to [0, 1].
        draws: shape `(draws,)`.
        factor: how much the detector is relied on, 0 (not at all: the labels alone) to 1.
        clusters: labelled clusters.
        error: standard error.
    """

    value: float
    draws: Array
    factor: float
    clusters: int
    error: float


def rectified(tallies: Tallies, labels: Labels, *, draws: int, seed: int) -> Rectified | None:
    """The estimate; None where no labelled response has a unit."""
    chosen = tallies.select(labels.response)
    gold = clustered_share(Tallies(labels.unsupported, chosen.units, chosen.cluster))
    marked = clustered_share(chosen)
    rest = tallies.select(~np.isin(tallies.cluster, chosen.cluster))
    others = clustered_share(rest)
    if gold is None or marked is None:
        return None
    generator = np.random.default_rng([seed, 3])
    k = len(gold.clusters)
    if others is None or k < 2 or len(others.clusters) < 2 or not gold.influences.any():
        share = share_of(labels.unsupported, chosen.units, chosen.cluster)
        assert share is not None
        drawn = share.draws(draws, generator)
        return Rectified(share.value, drawn, 0.0, k, float(drawn.std()))
    factor = _factor(gold.influences, marked.influences, others.error)
    value = gold.share + factor * (others.share - marked.share)
    left = gold.influences - factor * marked.influences
    labelled = k / (k - 1) * float((left**2).sum())
    error = float(np.sqrt(labelled + (factor * others.error) ** 2))
    # The labelled part is the uncertain one; its degrees of freedom give the tails.
    return Rectified(value, value + error * generator.standard_t(k - 1, draws), factor, k, error)


def _factor(gold: Array, marked: Array, error_of_others: float) -> float:
    """The factor that makes the variance least: covariance over the sum of the two variances of the marked share."""
    k = len(gold)
    scale = k / (k - 1)
    covariance = scale * float((gold * marked).sum())
    variance = scale * float((marked**2).sum()) + error_of_others**2
    return float(np.clip(covariance / variance, 0.0, 1.0)) if variance > 0 else 0.0
