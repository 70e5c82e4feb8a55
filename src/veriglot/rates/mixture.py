"""The rate as the weight of a mixture: how much of the profile's two confidence distributions explains the study's.

The profile gives the distribution of confidences of unsupported units and that of supported ones. If only their
proportion differs in the study, its distribution is a mixture of the two, whose weight is found by maximum likelihood;
the iteration towards it is that of Saerens, Latinne and Decaestecker (2002), on histograms. Where a profile has no such
distributions, its prevalence and the confidences themselves stand in: a confidence is then taken for the probability
that the unit is unsupported at the profile's prevalence, which gives the ratio of the two likelihoods in its bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.rates.tallies import BINS

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from veriglot.records import LanguageProfile

    Array = NDArray[np.float64]

__all__ = ["Components", "components", "drawn_weights", "misfit", "weight"]

_SMOOTHING = 0.5  # units a bin, so that a confidence that the profile lacks is not impossible
_HALVINGS = 45  # of [0, 1]: 3e-14


@dataclass(frozen=True)
class Components:
    """Two distributions over the bins, each of shape `(..., 20)`.

    Attributes:
        unsupported: of unsupported units; adds up to 1.
        supported: of supported units; adds up to 1.
        source: `histograms` of the profile, or `posteriors` from the confidences and the profile's prevalence.
        effective: numbers of independent units behind the two.
    """

    unsupported: Array
    supported: Array
    source: str
    effective: tuple[float, float]


def components(profile: LanguageProfile, study: Array, effective: tuple[float, float]) -> Components | None:
    """The two distributions, from a profile.

    Args:
        profile: of one language.
        study: units of the study by bin, shape `(20,)`; used where the profile has no distributions.
        effective: numbers of independent unsupported and supported units behind the profile.

    Returns:
        None where the profile holds neither distributions of both kinds nor a prevalence between 0 and 1.
    """
    if profile.confidences:
        counts = np.array(profile.confidences, dtype=np.float64)
        if (counts.sum(axis=0) > 0).all():
            smooth = counts + _SMOOTHING
            shares = smooth / smooth.sum(axis=0)
            return Components(shares[:, 0], shares[:, 1], "histograms", effective)
    prevalence = profile.prevalence
    if prevalence is None or not 0.0 < prevalence < 1.0 or not study.sum():
        return None
    middle = (np.arange(BINS) + 0.5) / BINS
    ratio = middle * (1.0 - prevalence) / ((1.0 - middle) * prevalence)
    # Only the ratio counts for the weight; the absolute height is the study's own.
    base = (study + _SMOOTHING) / (study + _SMOOTHING).sum()
    return Components(ratio * base, base, "posteriors", effective)


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


def drawn_weights(study: Array, study_effective: float, parts: Components, number: int, generator: Generator) -> Array:
    """Draws of the weight, shape `(number,)`: study and profile drawn anew, with as many units as they are worth."""
    counts = _drawn(study / study.sum(), study_effective, number, generator)
    if parts.source == "posteriors":
        return weight(counts, parts.unsupported, parts.supported)
    unsupported = _drawn(parts.unsupported, parts.effective[0], number, generator)
    supported = _drawn(parts.supported, parts.effective[1], number, generator)
    return weight(counts, unsupported, supported)


def misfit(
    study: Array, study_effective: float, parts: Components, number: int, generator: Generator
) -> tuple[float, float]:
    """How far the study's distribution lies off the best mixture.

    Returns:
        Total variation distance (0 to 1), and the 99.9% quantile of what it would be if the mixture were true.
    """
    best = float(weight(study, parts.unsupported, parts.supported))
    fitted = parts.supported + best * (parts.unsupported - parts.supported)
    fitted = fitted / fitted.sum()
    distance = float(np.abs(study / study.sum() - fitted).sum() / 2.0)
    worth = [max(1.0, each) for each in parts.effective]
    apart = best**2 / worth[0] + (1.0 - best) ** 2 / worth[1]  # the profile's own noise in the fitted mixture
    effective = 1.0 / (1.0 / max(1.0, study_effective) + apart)
    drawn = _drawn(fitted, effective, number, generator)
    distances = np.abs(drawn - fitted).sum(axis=-1) / 2.0
    return distance, float(np.quantile(distances, 0.999))


def _drawn(shares: Array, effective: float, number: int, generator: Generator) -> Array:
    """Draws of a distribution over bins, shape `(number, 20)`, worth `effective` independent units."""
    drawn = generator.standard_gamma(np.maximum(shares * effective, 1e-3), (number, BINS))
    summed = drawn.sum(axis=-1, keepdims=True)
    found: Array = drawn / np.where(summed > 0, summed, 1.0)
    return found
