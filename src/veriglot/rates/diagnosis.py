"""What the data cannot support, in words. A rate with a finding is `unreliable`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.rates.proportion import DetectorRates, Share

    Array = NDArray[np.float64]

__all__ = [
    "FEWEST_CLUSTERS",
    "coverage_findings",
    "fit_findings",
    "label_findings",
    "profile_findings",
    "range_findings",
    "study_findings",
]

FEWEST_CLUSTERS = 8
"""Clusters below which no interval of a share was found to hold (benchmarks/rates.py)."""
_FEWEST_UNITS = 20
_LEAST_GAP = 0.1
LEAST_COVERAGE = 0.8
_LEAST_MISFIT = 0.02
_SURE = 0.025


def study_findings(share: Share | None) -> list[str]:
    """Too little to estimate from."""
    if share is None:
        return ["no unit was judged"]
    if share.clusters < FEWEST_CLUSTERS:
        return [f"the study has {share.clusters} independent texts or queries, and fewer than {FEWEST_CLUSTERS}"
                " give no interval that holds"]  # fmt: skip
    return []


def profile_findings(rates: DetectorRates) -> list[str]:
    """A profile too small, or of a detector that does not tell supported from unsupported."""
    findings = []
    for share, kind in ((rates.tpr, "unsupported"), (rates.fpr, "supported")):
        if share is None or share.units < _FEWEST_UNITS or share.clusters < FEWEST_CLUSTERS:
            units, clusters = (0, 0) if share is None else (share.units, share.clusters)
            findings.append(
                f"the profile has {units} {kind} units in {clusters} independent texts, and needs {_FEWEST_UNITS} in"
                f" {FEWEST_CLUSTERS}"
            )
    if rates.tpr is not None and rates.fpr is not None:
        gap = np.quantile(rates.tpr_draws - rates.fpr_draws, _SURE)
        if gap < _LEAST_GAP:
            findings.append(
                f"the detector marks {rates.tpr.value:.1%} of unsupported and {rates.fpr.value:.1%} of supported units,"
                f" which may lie less than {_LEAST_GAP:.0%} apart: it hardly tells them from each other"
            )
    return findings


def label_findings(clusters: int, unsupported: int, supported: int) -> list[str]:
    """Too few labels from the study itself: labelled texts or queries, and those with a unit of each kind."""
    if clusters < FEWEST_CLUSTERS:
        return [f"{clusters} independent texts or queries are labelled, and fewer than {FEWEST_CLUSTERS} give no"
                " interval that holds"]  # fmt: skip
    return [
        f"{number} of {clusters} labelled texts or queries hold {kind} unit, and fewer than {FEWEST_CLUSTERS} give no"
        " interval that holds"
        for number, kind in ((unsupported, "an unsupported"), (supported, "a supported"))
        if number < FEWEST_CLUSTERS
    ]


def range_findings(value: float, draws: Array) -> list[str]:
    """An estimate below 0 or above 1 by more than noise explains; `value` and `draws` are not cut to [0, 1]."""
    defined = draws[np.isfinite(draws)]
    if not defined.size:
        return []
    if value < 0 and np.quantile(defined, 1 - _SURE) < 0:
        return ["fewer units were marked than the false alarms of the profile alone would give:"
                " the detector behaves otherwise here than where it was measured"]  # fmt: skip
    if value > 1 and np.quantile(defined, _SURE) > 1:
        return ["more units were marked than the detector would mark if all were unsupported:"
                " it behaves otherwise here than where it was measured"]  # fmt: skip
    return []


def fit_findings(distance: float, expected: float) -> list[str]:
    """Confidences that no mixture of the profile's two distributions explains."""
    if distance <= max(expected, _LEAST_MISFIT):
        return []
    return [
        f"the confidences are distributed unlike the profile's: {distance:.0%} of the units lie elsewhere than any"
        f" mixture of its supported and unsupported units puts them (chance: {expected:.0%})"
    ]


def coverage_findings(coverage: float) -> list[str]:
    """Too many responses that nobody judged."""
    if coverage >= LEAST_COVERAGE:
        return []
    return [f"only {coverage:.0%} of the responses were judged, and the others may hallucinate more or less"]
