"""How many responses, or how many labels, an interval of a given half-width needs.

An interval has two sources of error: the study's responses, and their correction (an error profile, or labels from the
study). More of one does not reduce the other's error, so each plan gives the half-width that remains however many are
added. Variances per query are from a pilot and taken as exact; a plan is as good as the pilot is large and
representative of the study.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from veriglot.errors import UsageError
from veriglot.rates.comparison import statistics
from veriglot.rates.estimators import CONFIDENCE, ESTIMATORS, SEED
from veriglot.rates.proportion import FEWEST_CLUSTERS, Labels, Share, Tallies, detector_rates
from veriglot.records import Estimator, LanguageProfile, Record

if TYPE_CHECKING:
    from collections.abc import Callable

    HalfWidth = Callable[[float], float]

__all__ = ["Plan", "plan_sample_size"]

_PLANNED = (Estimator.RAW, Estimator.PAPER, Estimator.LABEL_SHIFT, Estimator.PPI)
_MOST = 10_000_000  # more clusters than this are not feasible


@dataclass(frozen=True)
class Plan:
    """The sample size for a given half-width. Half-widths are shares.

    Attributes:
        half_width: requested: half the length of the interval.
        now: with the current data.
        limit: the half-width that remains, however many are added (up to labels for every response, if labels are
            planned).
        clusters: independent texts or queries needed in total; None if the requested half-width is below `limit`.
        responses: responses needed in total, with the current number per cluster; None like `clusters`.
    """

    half_width: float
    now: float
    limit: float
    clusters: int | None
    responses: int | None


def plan_sample_size(
    pilot: Tallies,
    profile: LanguageProfile | None,
    half_width: float,
    *,
    of: Literal["responses", "labels"] = "responses",
    estimator: Estimator | str = Estimator.LABEL_SHIFT,
    confidence: float = CONFIDENCE,
    labels: Labels | None = None,
) -> Plan | None:
    """How many responses, or how many labelled ones, the study needs, if the other number stays.

    For `paper` and `label-shift`, labelled responses are those of the error profile, from data like its own; for `ppi`,
    those of the study that people label, drawn at random.

    Args:
        pilot: tallies of some responses of the model.
        profile: of the language, for `paper` and `label-shift`.
        half_width: requested, between 0 and 1.
        of: what is planned; `raw` has no labels to plan.
        estimator: any but `em`.
        confidence: of the interval, between 0 and 1.
        labels: of people for some of the pilot's responses, for `ppi`.

    Returns:
        None if the pilot or the profile is too small, or gives no correction.

    Raises:
        UsageError: an invalid half-width, or an estimator without its inputs.
        MissingExtraError: the extra `stats` is not installed.
    """
    wanted = _checked(half_width, estimator, profile, labels)
    per_cluster = len(pilot) / max(1, len(np.unique(pilot.cluster)))
    if of == "labels" and wanted is Estimator.RAW:
        raise UsageError("The estimator raw uses no labels.", "Plan responses, or name another estimator.")
    if wanted is Estimator.PPI:
        rectified = _Rectified.of(pilot, labels)
        if rectified is None:
            return None
        labelled, clusters = rectified.labelled, rectified.clusters
        if of == "responses":
            return _plan(
                half_width,
                clusters,
                lambda size: rectified.half_width(labelled, size, confidence),
                per_cluster,
                first=labelled + 2,
            )
        return _plan(
            half_width,
            labelled,
            lambda size: rectified.half_width(size, clusters, confidence),
            per_cluster,
            last=clusters - 2,
        )
    parts = _Corrected.of(pilot, profile, wanted)
    if parts is None:
        return None
    if of == "responses":
        queries = parts.study.clusters
        return _plan(half_width, queries, lambda size: parts.half_width(size / queries, 1.0, confidence), per_cluster)
    assert profile is not None
    texts = len(set(profile.clusters)) if profile.clusters else len(profile.responses)
    per_text = len(profile.responses) / texts
    return _plan(half_width, texts, lambda size: parts.half_width(1.0, size / texts, confidence), per_text)


def _checked(
    half_width: float, estimator: Estimator | str, profile: LanguageProfile | None, labels: Labels | None
) -> Estimator:
    wanted = Estimator(estimator)
    if not 0 < half_width < 1:
        raise UsageError(f"A half-width is a share between 0 and 1, not {half_width}.", "Give one such as 0.01.")
    if wanted not in _PLANNED:
        raise UsageError(
            f"There is no plan for the estimator {wanted}.", "Plan for label-shift: em is about as precise, or more so."
        )
    if wanted is Estimator.PPI and (labels is None or not len(labels.response)):
        raise UsageError("A plan for ppi needs labels of some responses.", "Label about ten of them first.")
    if ESTIMATORS[wanted].needs_profile and profile is None:
        raise UsageError(f"A plan for {wanted} needs an error profile.", "Give one, or plan for ppi.")
    return wanted


def _plan(wanted: float, now: int, width: HalfWidth, per_cluster: float, *, first: int = 2, last: int = _MOST) -> Plan:
    """The minimum number of clusters whose half-width is at most `wanted`; `width` falls as clusters are added."""
    first, last = max(first, FEWEST_CLUSTERS), max(last, first)
    narrowest = width(last)
    if narrowest > wanted:
        return Plan(wanted, width(now), narrowest, None, None)
    low, high = first, max(first, last)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if width(middle) <= wanted else (middle + 1, high)
    return Plan(wanted, width(now), narrowest, low, math.ceil(low * per_cluster))


def _quantile(confidence: float, freedom: float) -> float:
    return float(statistics("A plan").t.ppf((1 + confidence) / 2, max(1.0, freedom)))


def _variance(share: Share, times: float) -> float:
    """Variance of a share from `times` as many clusters, by the Beta distribution of `shares` (never 0)."""
    smoothed = (share.value * share.effective + 0.5) / (share.effective + 1)
    return smoothed * (1 - smoothed) / (share.effective * times + 1)


class _Corrected(Record):
    """The marked share and its corrections, each with the derivative of the estimate with respect to it."""

    study: Share
    weight: float
    corrections: tuple[tuple[Share, float], ...]

    @classmethod
    def of(cls, pilot: Tallies, profile: LanguageProfile | None, estimator: Estimator) -> _Corrected | None:
        study = Share.of(pilot)
        if study is None or study.clusters < 2:
            return None
        if estimator is Estimator.RAW or profile is None:
            return cls(study, 1.0, ())
        rates = detector_rates(profile, seed=SEED, draws=1)
        tpr, fpr, prevalence = rates.tpr, rates.fpr, rates.prevalence
        if tpr is None or fpr is None or prevalence is None or min(tpr.clusters, fpr.clusters) < 2:
            return None
        gap = tpr.value - fpr.value
        if gap <= 0:
            return None
        if estimator is Estimator.LABEL_SHIFT:
            rate = min(1.0, max(0.0, (study.value - fpr.value) / gap))
            return cls(study, 1 / gap, ((fpr, (1 - rate) / gap), (tpr, rate / gap)))
        marked = prevalence.value * tpr.value + (1 - prevalence.value) * fpr.value
        rate = study.value * prevalence.value / marked
        return cls(
            study, prevalence.value / marked,
            (
                (prevalence, rate * (1 / prevalence.value - gap / marked)),
                (tpr, rate * prevalence.value / marked),
                (fpr, rate * (1 - prevalence.value) / marked),
            ),
        )  # fmt: skip

    def half_width(self, responses: float, labels: float, confidence: float) -> float:
        """With numbers of clusters in the study and in the profile multiplied by these factors."""
        parts = [(self.weight**2 * _variance(self.study, responses), self.study.freedom * responses)]
        parts += [(weight**2 * _variance(share, labels), share.freedom * labels) for share, weight in self.corrections]
        total = sum(variance for variance, _ in parts)
        freedom = total**2 / sum(variance**2 / max(1.0, freedom) for variance, freedom in parts)
        return _quantile(confidence, freedom) * math.sqrt(total)


class _Rectified(Record):
    """Variances per cluster of the terms of `rectified`: gold and marked shares of labelled clusters, and of others."""

    labelled: int
    clusters: int
    gold: float
    marked: float
    covariance: float
    others: float

    @classmethod
    def of(cls, pilot: Tallies, labels: Labels | None) -> _Rectified | None:
        assert labels is not None
        chosen = pilot.select(labels.response)
        gold = Share.of(Tallies(labels.unsupported, chosen.units, chosen.cluster), every_cluster=True)
        marked, pilot_share = Share.of(chosen, every_cluster=True), Share.of(pilot, every_cluster=True)
        if gold is None or marked is None or pilot_share is None or gold.clusters < 2 or not gold.influences.any():
            return None
        k, scale = gold.clusters, gold.clusters**2 / (gold.clusters - 1)
        return cls(
            k, pilot_share.clusters,
            scale * float((gold.influences**2).sum()),
            scale * float((marked.influences**2).sum()),
            scale * float((gold.influences * marked.influences).sum()),
            pilot_share.error**2 * pilot_share.clusters,
        )  # fmt: skip

    def half_width(self, labelled: float, clusters: float, confidence: float) -> float:
        """With `labelled` of `clusters` labelled, at the best factor for them (`rectified`)."""
        if labelled >= clusters:  # no unlabelled responses are left for the detector
            return _quantile(confidence, labelled - 1) * math.sqrt(self.gold / labelled)
        spread = self.marked / labelled + self.others / (clusters - labelled)
        factor = min(1.0, max(0.0, self.covariance / labelled / spread)) if spread > 0 else 0.0
        left = self.gold - 2 * factor * self.covariance + factor**2 * self.marked
        variance = left / labelled + factor**2 * self.others / (clusters - labelled)
        return _quantile(confidence, labelled - 1) * math.sqrt(max(0.0, variance))
