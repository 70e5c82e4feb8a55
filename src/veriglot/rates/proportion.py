"""Shares in clustered data, and the error rates of a detector with their uncertainty, from its error profile.

Draws depend only on the counts and the seed, so all models that one profile corrects share them: an error of the
profile affects all of them alike, and cancels in comparisons.

A text that is hard for a detector has both fewer hits and more false positives, so TPR, FPR and prevalence are
correlated between texts, and so are their draws: each keeps its own distribution, and its ranks follow normal variables
with that correlation (Iman and Conover 1982). With independent draws, 95% intervals covered 92% if texts differ much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from veriglot.records import CONFIDENCE_BINS, LanguageProfile
from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    from veriglot.arrays import Bools, Float64s, Int64s

    Array = Float64s
    Counts = Int64s

__all__ = [
    "FEWEST_CLUSTERS",
    "DetectorRates",
    "Labels",
    "Share",
    "Tallies",
    "detector_rates",
    "error_of",
    "freedom_of",
    "share_draws",
]


# Counts of a detector's marks per response: the only input of estimates.


@dataclass(frozen=True)
class Tallies:
    """Counts of the scored responses of one model in one language.

    Attributes:
        marked: units that the detector marked, shape `(n,)`.
        units: units, shape `(n,)`.
        cluster: cluster of each response, shape `(n,)`: responses to one query have the same number, since they are not
            independent. The numbers are the same for all models of a study, so that models can be paired.
        confidences: units by confidence, shape `(n, 20)`; None if the predictions have no words.
    """

    marked: Counts
    units: Counts
    cluster: Counts
    confidences: Counts | None = None

    def __post_init__(self) -> None:
        n = len(self.units)
        if self.marked.shape != (n,) or self.cluster.shape != (n,):
            raise ValueError(f"{n} counts of units, {self.marked.shape} of marked units, {self.cluster.shape} clusters")
        if self.confidences is not None and self.confidences.shape != (n, CONFIDENCE_BINS):
            raise ValueError(f"confidences have the shape ({n}, {CONFIDENCE_BINS}), not {self.confidences.shape}")
        if n and (self.marked < 0).any() | (self.marked > self.units).any():
            raise ValueError("a response has between 0 and all of its units marked")

    def __len__(self) -> int:
        return len(self.units)

    def select(self, chosen: Bools | Counts) -> Tallies:
        """The responses at a mask or at indices."""
        confidences = None if self.confidences is None else self.confidences[chosen]
        return Tallies(self.marked[chosen], self.units[chosen], self.cluster[chosen], confidences)

    @classmethod
    def join(cls, parts: Sequence[Tallies]) -> Tallies:
        """All responses of several; confidences only if all have them."""
        if not parts:
            nothing = np.zeros(0, np.int64)
            return cls(nothing, nothing, nothing)
        confidences = [part.confidences for part in parts if part.confidences is not None]
        columns = zip(*((part.marked, part.units, part.cluster) for part in parts), strict=True)
        whole = np.concatenate(confidences) if len(confidences) == len(parts) else None
        marked, units, cluster = map(np.concatenate, columns)
        return cls(marked, units, cluster, whole)


@dataclass(frozen=True)
class Labels:
    """People's labels of some of a study's responses, in addition to the detector's marks.

    Attributes:
        unsupported: units that people marked, shape `(m,)`.
        response: index of each labelled response in the study's `Tallies`, shape `(m,)`.
    """

    unsupported: Counts
    response: Counts


# The share of marked units, and the influence of each cluster of responses on it.
#
# Words of one response are not independent, nor are responses to one query. The independent unit is the cluster, and a
# share over all units is a ratio of two sums over clusters, whose error follows from each cluster's deviation
# (linearisation; Cochran 1977, section 6.3, and section 2.11 for the ratio of totals).
#
# A share `p` with standard error `s` has an effective number of `p (1 - p) / s^2` independent units (Kish 1965; Korn
# and Graubard 1998 for small shares). Draws come from the Beta distribution for so many units, with Jeffreys' half unit
# on either side, which is valid near 0 and 1. The standard error is itself an estimate, and uncertain with few
# clusters: each draw scales it by a chi-square variable of its degrees of freedom, which gives tails like those of
# Student's t.


FEWEST_CLUSTERS = 8
"""With fewer clusters, no interval of a share had its nominal coverage (benchmarks/rates.py)."""

_ASSUMED_CORRELATION = 0.2
"""Correlation of units in one cluster, if the data have no variation to estimate it from (no unit marked, or all)."""


def error_of(influences: Array) -> float:
    """Standard error of a sum of influences of independent clusters, shape `(k,)`; NaN for fewer than two."""
    k = len(influences)
    return math.sqrt(k / (k - 1) * float((influences**2).sum())) if k > 1 else math.nan


def freedom_of(influences: Array) -> float:
    """Degrees of freedom of that error, between 1 and k - 1: fewer than clusters if a few of them have most weight.

    Satterthwaite's, from the fourth moment: `2 S2^2 / (S4 - S2^2 / k)`, which is about `k` for normal influences. With
    low rates, most clusters have no marked unit, and the few others determine the error.
    """
    k = len(influences)
    if k < 2:
        return 1.0
    second, fourth = float((influences**2).sum()), float((influences**4).sum())
    spread = fourth - second**2 / k
    freedom = 2.0 * second**2 / spread if spread > 0 else float(k - 1)
    return float(np.clip(freedom, 1.0, k - 1))


@dataclass(frozen=True)
class Share:
    """Marked units over units.

    Attributes:
        value: between 0 and 1.
        units: number of units.
        effective: number of independent units with the same standard error.
        freedom: degrees of freedom of its standard error, at least 1.
        ids: of the clusters, ascending, shape `(k,)`.
        influences: influence of each cluster on the share, shape `(k,)`; they add up to 0.
    """

    value: float
    units: int
    effective: float
    freedom: float
    ids: Counts
    influences: Array

    @classmethod
    def of(cls, tallies: Tallies, *, every_cluster: bool = False) -> Share | None:
        """The share of marked units in `tallies`; None if there is no unit.

        Clusters without a unit are left out, unless `every_cluster` is set: their influence is then 0, aligned with
        other shares of the same clusters.
        """
        some = tallies if every_cluster else tallies.select(tallies.units > 0)
        ids, index = np.unique(np.asarray(some.cluster, np.int64), return_inverse=True)
        clusters = len(ids)
        marked = np.bincount(index, weights=some.marked, minlength=clusters)
        units = np.bincount(index, weights=some.units, minlength=clusters)
        total = int(units.sum())
        if total <= 0:
            return None
        value = float(marked.sum() / total)
        influences = (marked - value * units) / total
        variance = error_of(influences) ** 2 if clusters > 1 else 0.0
        if variance > 0:
            effective = min(value * (1.0 - value) / variance, float(total))
        else:
            effective = clusters / (_ASSUMED_CORRELATION + (1.0 - _ASSUMED_CORRELATION) * clusters / total)
        # Of one unit a cluster the share is binomial: no spread of clusters is estimated that could be wrong.
        freedom = freedom_of(influences) if (units > 1).any() else 1e9
        return cls(value, total, effective, freedom, ids, influences)

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return len(self.ids)

    @property
    def error(self) -> float:
        """Standard error of the share; NaN for fewer than two clusters."""
        return error_of(self.influences)

    def draws(self, number: int, generator: Generator) -> Array:
        """Draws of the share, shape `(number,)`, between 0 and 1."""
        return share_draws(self.value, self.effective, self.freedom, self.units, number, generator)


def share_draws(value: float, effective: float, freedom: float, units: int, number: int, generator: Generator) -> Array:
    """Draws of a share of so many units, shape `(number,)`; see `Share`."""
    drawn = np.clip(effective * (generator.chisquare(freedom, number) / freedom), 1.0, units)
    return generator.beta(value * drawn + 0.5, (1.0 - value) * drawn + 0.5)


@dataclass(frozen=True)
class DetectorRates:
    """TPR and FPR of a detector, and draws of them, each of shape `(draws,)`.

    Attributes:
        tpr: share of unsupported units that it marks; None if the profile has no unsupported unit.
        fpr: share of supported units that it marks; None if the profile has no supported unit.
        prevalence: share of unsupported units in the profile's data.
        tpr_draws, fpr_draws, prevalence_draws: empty if the share is None.
    """

    tpr: Share | None
    fpr: Share | None
    prevalence: Share | None
    tpr_draws: Array
    fpr_draws: Array
    prevalence_draws: Array

    def known(self) -> tuple[Share, Share, Share]:
        """TPR, FPR and prevalence; none of them may be None."""
        assert self.tpr is not None
        assert self.fpr is not None
        assert self.prevalence is not None
        return self.tpr, self.fpr, self.prevalence


def detector_rates(profile: LanguageProfile, *, seed: int, draws: int) -> DetectorRates:
    """The rates of a profile, clustered by response (or by text, if the profile names texts)."""
    return _detector_rates(profile.responses, profile.clusters, seed, draws)


@lru_cache(256)  # the same for every model in a language
def _detector_rates(
    responses: tuple[tuple[int, int, int, int], ...], clusters: tuple[int, ...], seed: int, draws: int
) -> DetectorRates:
    counts = np.array(responses, np.int64).reshape(-1, 4)
    tp, fp, fn, tn = counts.T
    cluster = np.array(clusters, np.int64) if clusters else np.arange(len(counts))
    generator = np.random.default_rng([seed, int(digest([counts.tobytes(), cluster.tobytes()])[:12], 16)])
    pairs = ((tp, tp + fn), (fp, fp + tn), (tp + fn, tp + fp + fn + tn))
    shares = [Share.of(Tallies(part, whole, cluster)) for part, whole in pairs]
    drawn = [np.zeros(0) if share is None else share.draws(draws, generator) for share in shares]
    defined = [index for index, share in enumerate(shares) if share is not None]
    if defined:
        order = _correlated_ranks([pairs[index] for index in defined], cluster, draws, generator)
        for index, ranks in zip(defined, order.T, strict=True):
            drawn[index] = np.sort(drawn[index])[ranks]
    tpr, fpr, prevalence = shares
    return DetectorRates(tpr, fpr, prevalence, *drawn)


def _correlated_ranks(
    pairs: list[tuple[Counts, Counts]], cluster: Counts, draws: int, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Ranks, shape `(draws, shares)`, of normal variables with the correlations of the shares `part / whole`."""
    shares = [Share.of(Tallies(part, whole, cluster), every_cluster=True) for part, whole in pairs]
    influences = np.stack([share.influences for share in shares if share is not None])
    spread = np.sqrt((influences**2).sum(axis=1))
    scaled = influences / np.where(spread > 0, spread, 1.0)[:, None]
    correlation = scaled @ scaled.T
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    normal = generator.standard_normal((draws, len(pairs))) @ root.T
    ranks: NDArray[np.intp] = normal.argsort(axis=0).argsort(axis=0)
    return ranks
