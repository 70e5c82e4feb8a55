"""Shares in clustered data, and the error rates of a detector with their uncertainty, from its error profile.

The draws depend on the counts and the seed alone, so the models that one profile corrects share them: an error of the
profile moves all of them together, and cancels where they are compared.

A text that is hard for a detector costs it hits and false alarms at once, so the draws of TPR, FPR and prevalence are
correlated as these are between texts: each keeps its own distribution, and their ranks are put in the order of normal
variables of that correlation (Iman and Conover 1982). Drawn apart, 95% intervals held 92% where texts differ much.
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


# What a detector marked, as numbers per response: all that estimates are made from.


@dataclass(frozen=True)
class Tallies:
    """Counts of the judged responses of one model in one language.

    Attributes:
        marked: units that the detector marked, shape `(n,)`.
        units: units, shape `(n,)`.
        cluster: what the response belongs to, shape `(n,)`: responses to one query share a number, because they do not
            vary independently. The numbers are the same for all models of a study, so that models can be paired.
        confidences: units by confidence, shape `(n, 20)`; None where the predictions have no words.
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
        """Those responses that a mask or a list of places names."""
        confidences = None if self.confidences is None else self.confidences[chosen]
        return Tallies(self.marked[chosen], self.units[chosen], self.cluster[chosen], confidences)

    @classmethod
    def join(cls, parts: Sequence[Tallies]) -> Tallies:
        """All responses of several; confidences only where all have them."""
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
    """What people said of some of a study's responses, beside what the detector said of the same ones.

    Attributes:
        unsupported: units that people marked, shape `(m,)`.
        response: place of each labelled response in the study's `Tallies`, shape `(m,)`.
    """

    unsupported: Counts
    response: Counts


# The share of marked units, and how each cluster of responses moves it.
#
# Words of one response go wrong together, and so do the responses to one query. What counts as independent is the
# cluster, and a share over all units is a ratio of two sums of clusters, whose error follows from how far each cluster
# lies off it (linearisation; Cochran 1977, section 6.3, and section 2.11 for the ratio of totals).
#
# A share with standard error `s` is worth as much as one of `p (1 - p) / s^2` independent units, its effective number
# (Kish 1965; Korn and Graubard 1998 for small shares). Draws come from the Beta distribution of so many units, with
# Jeffreys' half a unit on either side, which stays right near 0 and 1. The standard error is itself estimated, from few
# clusters badly: each draw scales it by a chi-square variable of its degrees of freedom, which gives tails like
# Student's t.


FEWEST_CLUSTERS = 8
"""Clusters below which no interval of a share was found to hold (benchmarks/rates.py)."""

_ASSUMED_CORRELATION = 0.2
"""Of units of one cluster, where the data hold no variation to estimate it from (no unit marked, or all)."""


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


@dataclass(frozen=True)
class Share:
    """Marked units over units.

    Attributes:
        value: between 0 and 1.
        units: number of units.
        effective: the number of independent units that would be as sure.
        freedom: degrees of freedom of its standard error, at least 1.
        ids: of the clusters, ascending, shape `(k,)`.
        influences: how much each cluster moves the share, shape `(k,)`; they add up to 0.
    """

    value: float
    units: int
    effective: float
    freedom: float
    ids: Counts
    influences: Array

    @classmethod
    def of(cls, tallies: Tallies, *, every_cluster: bool = False) -> Share | None:
        """The share of marked units in `tallies`; None where there is no unit.

        Clusters without a unit are left out, unless `every_cluster` keeps them: with an influence of 0, in line with
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
    worth = np.clip(effective * (generator.chisquare(freedom, number) / freedom), 1.0, units)
    return generator.beta(value * worth + 0.5, (1.0 - value) * worth + 0.5)


@dataclass(frozen=True)
class DetectorRates:
    """TPR and FPR of a detector, and draws of them, each of shape `(draws,)`.

    Attributes:
        tpr: share of unsupported units that it marks; None where the profile has no unsupported unit.
        fpr: share of supported units that it marks; None where the profile has no supported unit.
        prevalence: share of unsupported units in the profile's data.
        tpr_draws, fpr_draws, prevalence_draws: empty where the share is None.
    """

    tpr: Share | None
    fpr: Share | None
    prevalence: Share | None
    tpr_draws: Array
    fpr_draws: Array
    prevalence_draws: Array

    def known(self) -> tuple[Share, Share, Share]:
        """TPR, FPR and prevalence, where all are known."""
        assert self.tpr is not None
        assert self.fpr is not None
        assert self.prevalence is not None
        return self.tpr, self.fpr, self.prevalence


def detector_rates(profile: LanguageProfile, *, seed: int, draws: int) -> DetectorRates:
    """The rates of a profile, whose responses are its clusters (those of one text, where it says which)."""
    return _detector_rates(profile.responses, profile.clusters, seed, draws)


@lru_cache(256)  # every model of a language asks for the same
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
        order = _together([pairs[index] for index in defined], cluster, draws, generator)
        for index, ranks in zip(defined, order.T, strict=True):
            drawn[index] = np.sort(drawn[index])[ranks]
    tpr, fpr, prevalence = shares
    return DetectorRates(tpr, fpr, prevalence, *drawn)


def _together(
    pairs: list[tuple[Counts, Counts]], cluster: Counts, draws: int, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Ranks, shape `(draws, shares)`, of normal variables that are correlated as the shares `part / whole` are."""
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
