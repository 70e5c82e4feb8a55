"""The error rates of a detector with their uncertainty, drawn from the counts of an error profile.

The draws depend on the counts and the seed alone, so the models that one profile corrects share them: an error of the
profile moves all of them together, and cancels where they are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from veriglot.provenance import digest
from veriglot.rates.shares import Share, share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.records import LanguageProfile

    Array = NDArray[np.float64]

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
    shares = (
        share_of(tp, tp + fn, cluster),
        share_of(fp, fp + tn, cluster),
        share_of(tp + fn, tp + fp + fn + tn, cluster),
    )
    drawn = [np.zeros(0) if share is None else share.draws(draws, generator) for share in shares]
    return DetectorRates(*shares, *drawn)
