"""The error rates of a detector with their uncertainty, drawn from the counts of an error profile.

The draws depend on the counts and the seed alone, so the models that one profile corrects share them: an error of the
profile moves all of them together, and cancels where they are compared.

A text that is hard for a detector costs it hits and false alarms at once, so the draws of TPR, FPR and prevalence are
correlated as these are between texts: each keeps its own distribution, and their ranks are put in the order of normal
variables of that correlation (Iman and Conover 1982). Drawn apart, 95% intervals held 92% where texts differ much.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from veriglot.provenance import digest
from veriglot.rates.clustered import clustered_share
from veriglot.rates.shares import Share, share_of
from veriglot.rates.tallies import Tallies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.records import LanguageProfile

    Array = NDArray[np.float64]
    Counts = NDArray[np.int64]

__all__ = ["DetectorRates", "detector_rates"]


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


def detector_rates(profile: LanguageProfile, *, seed: int, draws: int) -> DetectorRates:
    """The rates of a profile, whose responses are its clusters (those of one text, where it says which)."""
    return _detector_rates(profile.responses, profile.clusters, seed, draws)


@lru_cache(maxsize=256)  # every model of a language asks for the same
def _detector_rates(
    responses: tuple[tuple[int, int, int, int], ...], clusters: tuple[int, ...], seed: int, draws: int
) -> DetectorRates:
    counts = np.array(responses, dtype=np.int64).reshape(-1, 4)
    tp, fp, fn, tn = counts.T
    cluster = np.array(clusters, dtype=np.int64) if clusters else np.arange(len(counts))
    generator = np.random.default_rng([seed, int(digest([counts.tobytes(), cluster.tobytes()])[:12], 16)])
    pairs = ((tp, tp + fn), (fp, fp + tn), (tp + fn, tp + fp + fn + tn))
    shares = [share_of(part, whole, cluster) for part, whole in pairs]
    drawn = [np.zeros(0) if share is None else share.draws(draws, generator) for share in shares]
    there = [place for place, share in enumerate(shares) if share is not None]
    if there:
        order = _together([pairs[place] for place in there], cluster, draws, generator)
        for place, ranks in zip(there, order.T, strict=True):
            drawn[place] = np.sort(drawn[place])[ranks]
    tpr, fpr, prevalence = shares
    return DetectorRates(tpr, fpr, prevalence, *drawn)


def _together(
    pairs: list[tuple[Counts, Counts]], cluster: Counts, draws: int, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Ranks, shape `(draws, shares)`, of normal variables that are correlated as the shares `part / whole` are."""
    found = [clustered_share(Tallies(part, whole, cluster)) for part, whole in pairs]
    influences = np.stack([one.influences for one in found if one is not None])
    spread = np.sqrt((influences**2).sum(axis=1))
    scaled = influences / np.where(spread > 0, spread, 1.0)[:, None]
    correlation = scaled @ scaled.T
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    normal = generator.standard_normal((draws, len(pairs))) @ root.T
    ranks: NDArray[np.intp] = normal.argsort(axis=0).argsort(axis=0)
    return ranks
