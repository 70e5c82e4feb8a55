"""The rate as the weight of a mixture: how much of the profile's two confidence distributions explains the study's.

The profile gives the distribution of confidences of unsupported units and that of supported ones. If only their
proportion differs in the study, its distribution is a mixture of the two, whose weight is found by maximum likelihood;
the iteration towards it is that of Saerens, Latinne and Decaestecker (2002), on histograms. Where a profile has no such
distributions, its prevalence and the confidences themselves stand in: a confidence is then taken for the probability
that the unit is unsupported at the profile's prevalence, which gives the ratio of the two likelihoods in its bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from veriglot.rates.clustered import error_of, freedom_of
from veriglot.rates.tallies import BINS

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from veriglot.rates.shares import Share
    from veriglot.rates.tallies import Tallies
    from veriglot.records import LanguageProfile

    Array = NDArray[np.float64]

__all__ = ["Components", "Study", "components", "drawn_weights", "misfit", "weight"]

_SMOOTHING = 0.5  # units a bin, so that a confidence that the profile lacks is not impossible
_HALVINGS = 45  # of [0, 1]: 3e-14
_BLOCK = 500  # draws at a time
_FEW = 100  # clusters of a profile up to which the error of their error matters
_GROUPS = 1000  # more clusters of a profile are added up in so many


@dataclass(frozen=True)
class Components:
    """Two distributions over the bins, each of shape `(..., 20)`.

    Attributes:
        unsupported: of unsupported units; adds up to 1.
        supported: of supported units; adds up to 1.
        source: `histograms` of the profile, or `posteriors` from the confidences and the profile's prevalence.
        measured: TPR and FPR of the same profile: what its unsupported and its supported units are worth.
        by_cluster: units of each cluster of the profile by confidence and kind, shape `(k, 20, 2)`; None where the
            profile holds sums alone.
    """

    unsupported: Array
    supported: Array
    source: str
    measured: tuple[Share, Share]
    by_cluster: Array | None = None

    def draws(self, number: int, generator: Generator) -> tuple[Array, Array]:
        """Draws of the two distributions, each of shape `(number, 20)`.

        Clusters of the profile get random weights (the Bayesian bootstrap, Rubin 1981), so that what a text does to
        both distributions at once is kept. From sums alone, the two are drawn apart, each with as many units as its own
        are worth.
        """
        if self.by_cluster is None:
            return (
                _again(self.unsupported, self.measured[0], number, generator),
                _again(self.supported, self.measured[1], number, generator),
            )
        k = len(self.by_cluster)
        drawn = np.empty((number, BINS, 2))
        for start in range(0, number, _BLOCK):
            weights = self._weights((min(_BLOCK, number - start), k), generator)
            drawn[start : start + _BLOCK] = np.tensordot(weights, self.by_cluster, axes=1)
        drawn += _SMOOTHING
        drawn /= drawn.sum(axis=1, keepdims=True)
        return drawn[..., 0], drawn[..., 1]

    def _weights(self, shape: tuple[int, int], generator: Generator) -> Array:
        """Random weights of `k` clusters, shape `(draws, k)`, of mean 1 in every draw.

        With few clusters, their spread is widened to the unbiased one, and varies as an error does that is itself
        estimated: 95% intervals from 30 texts held 90% without, and hold 93% (benchmarks/rates.py).
        """
        draws, k = shape
        if k > _FEW:
            weights = generator.standard_exponential(shape)
        else:
            freedom = min(each.freedom for each in self.measured)
            precision = (k - 1) / (k + 1) * generator.chisquare(freedom, (draws, 1)) / freedom
            weights = generator.standard_gamma(np.broadcast_to(np.maximum(precision, 0.05), shape))
        weights /= weights.mean(axis=1, keepdims=True)
        return weights


@dataclass(frozen=True)
class Study:
    """A study's units by confidence.

    Attributes:
        by_cluster: of each cluster, shape `(k, 20)`.
    """

    by_cluster: Array

    @classmethod
    def of(cls, tallies: Tallies) -> Study | None:
        """None where there are no confidences, or no units."""
        if tallies.confidences is None or not tallies.confidences.any():
            return None
        clusters, place = np.unique(tallies.cluster, return_inverse=True)
        sums = np.zeros((len(clusters), BINS))
        np.add.at(sums, place, tallies.confidences)
        return cls(sums)

    @property
    def counts(self) -> Array:
        """Of all clusters together, shape `(20,)`."""
        summed: Array = self.by_cluster.sum(axis=0)
        return summed

    def noise(self, number: int, generator: Generator) -> Array:
        """Draws of what chance does to the shares of the bins, shape `(number, 20)`: normal, as clusters vary."""
        k, total = len(self.by_cluster), self.by_cluster.sum()
        off = (self.by_cluster - np.outer(self.by_cluster.sum(axis=1) / total, self.counts)) / total
        size, ways = np.linalg.eigh(off.T @ off * (k / max(1, k - 1)))
        drawn: Array = generator.standard_normal((number, BINS)) @ (ways * np.sqrt(np.maximum(size, 0.0))).T
        return drawn

    def worth(self, parts: Components) -> tuple[float, float]:
        """How many independent units would be as sure of the weight, and the degrees of freedom of that.

        The weight is moved by the mean over units of a score, the slope of the likelihood. Its error between clusters
        over its error between units is what clustering costs.
        """
        counts = self.counts
        total = counts.sum()
        difference = parts.unsupported - parts.supported
        mixed = parts.supported + float(weight(counts, parts.unsupported, parts.supported)) * difference
        score = difference / np.maximum(mixed, 1e-300)
        mean = counts @ score / total
        between_units = counts @ (score - mean) ** 2 / total**2
        influences = self.by_cluster @ (score - mean) / total
        between = error_of(influences) ** 2 if len(influences) > 1 else np.inf
        effective = min(total, total * between_units / between) if between > 0 else total
        return float(effective), freedom_of(influences)


def components(profile: LanguageProfile, study: Array, measured: tuple[Share, Share]) -> Components | None:
    """The two distributions, from a profile.

    Args:
        profile: of one language.
        study: units of the study by bin, shape `(20,)`; used where the profile has no distributions.
        measured: its TPR and FPR.

    Returns:
        None where the profile holds neither distributions of both kinds nor a prevalence between 0 and 1.
    """
    if profile.confidences:
        counts = np.array(profile.confidences, dtype=np.float64)
        if (counts.sum(axis=0) > 0).all():
            smooth = counts + _SMOOTHING
            shares = smooth / smooth.sum(axis=0)
            by_cluster = _by_cluster(profile.histograms, profile.clusters) if profile.histograms else None
            return Components(shares[:, 0], shares[:, 1], "histograms", measured, by_cluster)
    prevalence = profile.prevalence
    if prevalence is None or not 0.0 < prevalence < 1.0 or not study.sum():
        return None
    middle = (np.arange(BINS) + 0.5) / BINS
    ratio = middle * (1.0 - prevalence) / ((1.0 - middle) * prevalence)
    # Only the ratio counts for the weight; the absolute height is the study's own.
    base = (study + _SMOOTHING) / (study + _SMOOTHING).sum()
    return Components(ratio * base, base, "posteriors", measured)


@lru_cache(maxsize=64)  # every model of a language asks for the same
def _by_cluster(histograms: tuple[tuple[tuple[int, int, int], ...], ...], clusters: tuple[int, ...]) -> Array:
    """Units of each cluster by confidence and kind, shape `(k, 20, 2)`."""
    names = clusters or range(len(histograms))
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    table = np.zeros((min(len(places), _GROUPS), BINS, 2))
    for name, cells in zip(names, histograms, strict=True):
        for bin_, unsupported, supported in cells:
            table[places[name] % _GROUPS, bin_] += (unsupported, supported)
    table.flags.writeable = False
    return table


def weight(study: Array, unsupported: Array, supported: Array) -> Array:
    """The weight of `unsupported` that makes the counts `study` likeliest.

    Args:
        study: counts, shape `(..., 20)`.
        unsupported: distribution, shape `(..., 20)`.
        supported: distribution, of the same shape.

    Returns:
        Shape `(...)`, between 0 and 1. The likelihood is concave in the weight, so its slope is halved upon.
    """
    difference = unsupported - supported
    shape = np.broadcast_shapes(study.shape, difference.shape)[:-1]
    low, high = np.zeros(shape), np.ones(shape)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        mixed = supported + middle[..., None] * difference
        rising = (study * difference / np.maximum(mixed, 1e-300)).sum(axis=-1) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return (low + high) / 2.0


def drawn_weights(study: Study, parts: Components, number: int, profile: Generator, own: Generator) -> Array:
    """Draws of the weight, shape `(number,)`: study and profile drawn anew, with as many units as they are worth.

    Args:
        study: its units by confidence.
        parts: the two distributions.
        number: of draws.
        profile: draws the two distributions. In the same state for all models that one profile corrects, so that its
            errors move them together.
        own: draws what is the study's own.
    """
    effective, freedom = study.worth(parts)
    total = float(study.counts.sum())
    worth = np.clip(effective * own.chisquare(freedom, number) / freedom, 1.0, total)
    half = (parts.unsupported + parts.supported) / 2.0  # Jeffreys' half a unit of either kind, as in `shares`
    counts = _drawn(np.outer(worth, study.counts / total) + half, own)
    if parts.source == "posteriors":
        return weight(counts, parts.unsupported, parts.supported)
    return weight(counts, *parts.draws(number, profile))


def misfit(study: Study, parts: Components, number: int, generator: Generator) -> tuple[float, float]:
    """How far the study's distribution lies off the best mixture.

    Returns:
        Total variation distance (0 to 1), and the 99.9% quantile of what it would be if the mixture were true: with
        the study's noise as it varies between clusters, the profile's, and a weight that is fitted to both.
    """
    counts = study.counts
    difference = parts.unsupported - parts.supported
    best = float(weight(counts, parts.unsupported, parts.supported))
    fitted = parts.supported + best * difference
    fitted = fitted / fitted.sum()
    distance = float(np.abs(counts / counts.sum() - fitted).sum() / 2.0)
    noise = study.noise(number, generator)
    if parts.source == "histograms":
        unsupported, supported = parts.draws(number, generator)
        noise += best * (unsupported - parts.unsupported) + (1.0 - best) * (supported - parts.supported)
    score = difference / np.maximum(fitted, 1e-300)
    moved = np.clip(noise @ score / (difference @ score), -best, 1.0 - best)
    distances = np.abs(noise - np.outer(moved, difference)).sum(axis=-1) / 2.0
    return distance, float(np.quantile(distances, 0.999))


def _again(shares: Array, worth: Share, number: int, generator: Generator) -> Array:
    """A distribution drawn anew, shape `(number, 20)`, with as many units as those behind it are worth."""
    scale = generator.chisquare(worth.freedom, number) / worth.freedom
    return _drawn(np.outer(np.clip(worth.effective * scale, 1.0, worth.units), shares), generator)


def _drawn(shape: Array, generator: Generator) -> Array:
    """Draws of a distribution over bins by the Dirichlet distribution of `shape`, both of shape `(draws, 20)`."""
    drawn = generator.standard_gamma(np.maximum(shape, 1e-3))
    found: Array = drawn / drawn.sum(axis=-1, keepdims=True)
    return found
