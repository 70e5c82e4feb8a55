"""One rate from one model's tallies in one language, with its interval, its draws, and what speaks against it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from veriglot.errors import UsageError
from veriglot.provenance import digest
from veriglot.rates import diagnosis, mixture
from veriglot.rates.detector_rates import DetectorRates, detector_rates
from veriglot.rates.rectified import rectified
from veriglot.rates.shares import share_of
from veriglot.records import Estimator, Reliability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.rates.tallies import Labels, Tallies
    from veriglot.records import LanguageProfile

    Array = NDArray[np.float64]

__all__ = ["CONFIDENCE", "DRAWS", "SEED", "Estimate", "estimate"]

CONFIDENCE = 0.95
DRAWS = 4000
SEED = 0
_FIT_DRAWS = 1000


@dataclass(frozen=True)
class Estimate:
    """A rate. Shares lie between 0 and 1.

    Attributes:
        rate: the estimate; None where it cannot be made.
        low, high: its interval, of the study's and the profile's uncertainty together.
        reasons: what the data do not support; empty where the rate is reliable.
        draws: of the rate, not cut to [0, 1], shape `(draws,)`; NaN where a draw gives none. Draw b of all estimates
            with one profile and seed comes from the same draw of the profile.
        notes: what it was made from, for the signature.
        value: the rate before it is cut to [0, 1]; NaN without one. Means and differences are made of these, and cut
            at the end: the mean of cut rates is too high near 0.
    """

    rate: float | None
    low: float | None
    high: float | None
    reasons: tuple[str, ...]
    draws: Array = field(repr=False)
    notes: tuple[str, ...] = ()
    value: float = math.nan

    @property
    def status(self) -> Reliability:
        """`ok`, or `unreliable` where there are reasons or no rate."""
        return Reliability.UNRELIABLE if self.reasons or self.rate is None else Reliability.OK


def estimate(
    tallies: Tallies,
    profile: LanguageProfile | None = None,
    *,
    estimator: Estimator | str = Estimator.LABEL_SHIFT,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
    draws: int = DRAWS,
    labels: Labels | None = None,
    coverage: float = 1.0,
) -> Estimate:
    """Estimate the share of unsupported units.

    Args:
        tallies: what the detector marked.
        profile: its error rates in this language; `raw` and `ppi` need none.
        estimator: how (see `records.Estimator`). With marked share q, `paper` is q x precision / recall (mfava,
            equation 1) and `label-shift` is (q - FPR) / (TPR - FPR) (Rogan and Gladen 1978).
        confidence: of the interval, between 0 and 1.
        seed: of the draws.
        draws: how many.
        labels: of people, in the wild, for `ppi`.
        coverage: judged responses over all responses.

    Raises:
        UsageError: the estimator needs a profile, confidences or labels that are not given.
    """
    wanted = Estimator(estimator)
    share = share_of(tallies.marked, tallies.units, tallies.cluster)
    findings = [*diagnosis.study_findings(share), *diagnosis.coverage_findings(coverage)]
    if share is None:
        return Estimate(None, None, None, tuple(findings), np.full(draws, np.nan))
    if wanted is Estimator.PPI:
        return _with_labels(tallies, labels, findings, confidence, seed, draws)
    marked = share.draws(draws, _generator(seed, tallies))
    if wanted is Estimator.RAW:
        return _finished(share.value, marked, findings, confidence)
    if profile is None:
        raise UsageError(
            f"The estimator {wanted} needs an error profile.",
            remedy="Measure one with: veriglot evaluate LABELLED -o profile.json",
        )
    rates = detector_rates(profile, seed=seed, draws=draws)
    findings += diagnosis.profile_findings(rates)
    findings += _fit(tallies, profile, rates, seed)
    if rates.tpr is None or rates.fpr is None:
        return Estimate(None, None, None, tuple(findings), np.full(draws, np.nan))
    if wanted is Estimator.PAPER:
        return _finished(_by_precision(share.value, rates), _by_precision_draws(marked, rates), findings, confidence)
    if wanted is Estimator.EM:
        return _by_mixture(tallies, profile, rates, findings, confidence, seed, draws)
    gap = rates.tpr.value - rates.fpr.value
    value = (share.value - rates.fpr.value) / gap if gap > 0 else np.nan
    drawn = _corrected(marked, rates)
    findings += diagnosis.range_findings(value, drawn)
    return _finished(value, drawn, findings, confidence)


def _generator(seed: int, tallies: Tallies, stream: int = 1) -> np.random.Generator:
    """Draws that depend on the counts: models that marked otherwise do not share the noise of their responses."""
    return np.random.default_rng([seed, stream, int(tallies.marked.sum()), int(tallies.units.sum()), len(tallies)])


def _corrected(marked: Array, rates: DetectorRates) -> Array:
    gap = rates.tpr_draws - rates.fpr_draws
    corrected: Array = np.divide(marked - rates.fpr_draws, gap, out=np.full(len(gap), np.nan), where=gap > 0)
    return corrected


def _by_precision(share: float, rates: DetectorRates) -> float:
    """Equation 1 of mfava. Precision over recall is the prevalence of the profile over the share that it marks."""
    assert rates.tpr is not None
    assert rates.fpr is not None
    assert rates.prevalence is not None
    prevalence = rates.prevalence.value
    marked = prevalence * rates.tpr.value + (1.0 - prevalence) * rates.fpr.value
    return share * prevalence / marked if rates.tpr.value > 0 else float("nan")


def _by_precision_draws(marked: Array, rates: DetectorRates) -> Array:
    prevalence = rates.prevalence_draws
    drawn: Array = marked * prevalence / (prevalence * rates.tpr_draws + (1.0 - prevalence) * rates.fpr_draws)
    return drawn


def _fit(tallies: Tallies, profile: LanguageProfile, rates: DetectorRates, seed: int) -> list[str]:
    """Whether the study's confidences are a mixture of the profile's; nothing where either has none."""
    study = mixture.Study.of(tallies)
    if study is None or not profile.confidences or rates.tpr is None or rates.fpr is None:
        return []
    parts = mixture.components(profile, study.counts, (rates.tpr, rates.fpr))
    if parts is None:
        return []
    return diagnosis.fit_findings(*mixture.misfit(study, parts, _FIT_DRAWS, np.random.default_rng([seed, 4])))


def _by_mixture(
    tallies: Tallies,
    profile: LanguageProfile,
    rates: DetectorRates,
    findings: list[str],
    confidence: float,
    seed: int,
    draws: int,
) -> Estimate:
    study = mixture.Study.of(tallies)
    if study is None:
        raise UsageError(
            "The estimator em needs the confidence of every word.", remedy="Make the predictions with --words."
        )
    assert rates.tpr is not None
    assert rates.fpr is not None
    parts = mixture.components(profile, study.counts, (rates.tpr, rates.fpr))
    if parts is None:
        return Estimate(None, None, None, (*findings, "the profile has no confidences"), np.full(draws, np.nan))
    value = float(mixture.weight(study.counts, parts.unsupported, parts.supported))
    shared = np.random.default_rng([seed, 2, int(digest([str(profile.confidences)])[:12], 16)])
    drawn = mixture.drawn_weights(study, parts, draws, shared, _generator(seed, tallies, 2))
    return _finished(value, drawn, findings, confidence, notes=(f"em:{parts.source}",))


def _with_labels(
    tallies: Tallies, labels: Labels | None, findings: list[str], confidence: float, seed: int, draws: int
) -> Estimate:
    if labels is None or not len(labels.response):
        raise UsageError(
            "The estimator ppi needs labels of people for some of the responses.", remedy="Give them with --labels."
        )
    found = rectified(tallies, labels, draws=draws, generator=_generator(seed, tallies, 3))
    if found is None:
        return Estimate(None, None, None, (*findings, "no labelled response has a unit"), np.full(draws, np.nan))
    findings += diagnosis.label_findings(found.clusters, found.unsupported, found.supported)
    return _finished(found.value, found.draws, findings, confidence, notes=(f"ppi:{found.factor:.3f}",))


def _finished(
    value: float, draws: Array, findings: list[str], confidence: float, notes: tuple[str, ...] = ()
) -> Estimate:
    """Cut to [0, 1]; the interval from the draws. A draw without a value may be anything, so it widens both ends."""
    if not np.isfinite(value):
        return Estimate(None, None, None, tuple(findings) or ("the profile gives no correction",), draws, notes)
    cut = np.clip(draws, 0.0, 1.0)
    tail = (1.0 - confidence) / 2.0
    low = float(np.quantile(np.where(np.isnan(cut), 0.0, cut), tail))
    high = float(np.quantile(np.where(np.isnan(cut), 1.0, cut), 1.0 - tail))
    rate = float(np.clip(value, 0.0, 1.0))
    return Estimate(rate, min(low, rate), max(high, rate), tuple(findings), draws, notes, value)
