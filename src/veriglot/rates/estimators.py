"""Estimators of a rate, with intervals: the marked share, corrected by the methods in `ESTIMATORS`.

The mixture (`em`) estimates the rate as a mixture weight. The profile gives two distributions of confidences: those of
unsupported and of supported units. If only their proportion differs in the study, the study's distribution is a mixture
of the two, and the weight is found by maximum likelihood, as in Saerens, Latinne and Decaestecker (2002), here on
histograms. If a profile has no such distributions, its prevalence and the confidences replace them: a confidence is
then taken as the probability that the unit is unsupported at the profile's prevalence, which gives the likelihood ratio
in its bin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from veriglot.errors import UsageError
from veriglot.rates.proportion import (
    FEWEST_CLUSTERS,
    DetectorRates,
    Labels,
    Share,
    Tallies,
    detector_rates,
    error_of,
    freedom_of,
    share_draws,
)
from veriglot.records import CONFIDENCE_BINS, Estimate, Estimator, LanguageProfile, Record, Reliability
from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    from veriglot.arrays import Float64s

    Array = Float64s

__all__ = ["CONFIDENCE", "DRAWS", "ESTIMATORS", "SEED", "RateEstimate", "estimate"]

_SMOOTHING = 0.5  # units per bin, so that a confidence absent from the profile is not impossible
_HALVINGS = 45  # of [0, 1]: precision 3e-14
_BLOCK = 500  # draws at a time
_FEW = 100  # up to so many clusters of a profile, the uncertainty of their standard error matters
_GROUPS = 1000  # more clusters of a profile are merged into so many groups


class _Components(Record):
    """The distributions of unsupported and of supported units over the bins, each of shape `(20,)`.

    `source` is `histograms` of the profile, or `posteriors` from the confidences and the profile's prevalence;
    `measured` are its TPR and FPR, for effective sample sizes. `by_cluster` are its units by confidence and kind, shape
    `(k, 20, 2)`; None if it has only sums. `plain` are both distributions without smoothing, shape `(20, 2)`.
    """

    unsupported: Array
    supported: Array
    source: str
    measured: tuple[Share, Share]
    by_cluster: Array | None = None
    plain: Array | None = None

    def draws(self, number: int, generator: Generator) -> tuple[Array, Array]:
        """Draws of the two distributions, each of shape `(number, 20)`.

        Clusters of the profile get random weights (the Bayesian bootstrap, Rubin 1981), which keeps the correlation
        between both distributions. From sums alone, the two are drawn independently, each with its effective number of
        units.
        """
        if self.by_cluster is None:
            tpr, fpr = self.measured
            unsupported = _redrawn(self.unsupported, tpr, number, generator)
            return unsupported, _redrawn(self.supported, fpr, number, generator)
        k = len(self.by_cluster)
        drawn = np.empty((number, CONFIDENCE_BINS, 2))
        for start in range(0, number, _BLOCK):
            weights = self._weights((min(_BLOCK, number - start), k), generator)
            drawn[start : start + _BLOCK] = np.tensordot(weights, self.by_cluster, axes=1)
        drawn += _SMOOTHING
        drawn /= drawn.sum(axis=1, keepdims=True)
        return drawn[..., 0], drawn[..., 1]

    def covariance(self, rate: float) -> Array:
        """Covariance of the mixture at that weight, over the clusters of the profile, shape `(20, 20)`."""
        parts = ((rate, self.unsupported), (1.0 - rate, self.supported))
        if self.by_cluster is None:
            units = (share.effective for share in self.measured)
            return sum((part**2 * _multinomial(f) / n for (part, f), n in zip(parts, units, strict=True)), np.zeros(()))
        k, units = len(self.by_cluster), self.by_cluster.sum(axis=1)
        moved = sum(
            part * (self.by_cluster[..., kind] - np.outer(units[:, kind], f)) / units[:, kind].sum()
            for kind, (part, f) in enumerate(parts)
        )
        varied: Array = moved.T @ moved * (k / max(1, k - 1))
        return varied

    def _weights(self, shape: tuple[int, int], generator: Generator) -> Array:
        """Random weights of `k` clusters, shape `(draws, k)`, with mean 1 in every draw.

        With few clusters, their spread is scaled to the unbiased one, and varies like an estimated standard error: from
            30
        texts, 95% intervals covered 90% without this, and cover 93% with it (benchmarks/rates.py).
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
    """A study's units by confidence in each cluster, shape `(k, 20)`."""

    by_cluster: Array

    @classmethod
    def of(cls, tallies: Tallies) -> Study | None:
        """None if there are no confidences, or no units."""
        if tallies.confidences is None or not tallies.confidences.any():
            return None
        clusters, index = np.unique(tallies.cluster, return_inverse=True)
        sums = np.zeros((len(clusters), CONFIDENCE_BINS))
        np.add.at(sums, index, tallies.confidences)
        return cls(sums)

    @property
    def counts(self) -> Array:
        """Over all clusters, shape `(20,)`."""
        summed: Array = self.by_cluster.sum(axis=0)
        return summed

    @property
    def covariance(self) -> Array:
        """Covariance of the shares of the bins, over clusters, shape `(20, 20)`."""
        k, total = len(self.by_cluster), self.by_cluster.sum()
        off = (self.by_cluster - np.outer(self.by_cluster.sum(axis=1) / total, self.counts)) / total
        varied: Array = off.T @ off * (k / max(1, k - 1))
        return varied

    def effective_units(self, parts: _Components) -> tuple[float, float]:
        """Effective number of independent units for the weight, and its degrees of freedom.

        The weight depends on the mean over units of a score, the slope of the likelihood. The ratio of this mean's
        error between clusters to its error between units is the effect of clustering.
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


def components(profile: LanguageProfile, study: Array, measured: tuple[Share, Share]) -> _Components | None:
    """The two distributions, from a profile with its TPR and FPR; None if it has no data for them.

    The study's units by bin, shape `(20,)`, are used if the profile has only a prevalence.
    """
    if profile.confidences:
        counts = np.array(profile.confidences, np.float64)
        if (counts.sum(axis=0) > 0).all():
            smooth = counts + _SMOOTHING
            shares = smooth / smooth.sum(axis=0)
            by_cluster = _by_cluster(profile.histograms, profile.clusters) if profile.histograms else None
            plain = counts / counts.sum(axis=0)
            return _Components(shares[:, 0], shares[:, 1], "histograms", measured, by_cluster, plain)
    prevalence = profile.prevalence
    if prevalence is None or not 0.0 < prevalence < 1.0 or not study.sum():
        return None
    middle = (np.arange(CONFIDENCE_BINS) + 0.5) / CONFIDENCE_BINS
    ratio = middle * (1.0 - prevalence) / ((1.0 - middle) * prevalence)
    # Only the ratio matters for the weight; the absolute height is the study's own.
    base = (study + _SMOOTHING) / (study + _SMOOTHING).sum()
    return _Components(ratio * base, base, "posteriors", measured)


@lru_cache(64)  # the same for every model in a language
def _by_cluster(histograms: tuple[tuple[tuple[int, int, int], ...], ...], clusters: tuple[int, ...]) -> Array:
    """Units of each cluster by confidence and kind, shape `(k, 20, 2)`."""
    names = clusters or range(len(histograms))
    index_of = {name: index for index, name in enumerate(dict.fromkeys(names))}
    table = np.zeros((min(len(index_of), _GROUPS), CONFIDENCE_BINS, 2))
    for name, cells in zip(names, histograms, strict=True):
        for bin_, unsupported, supported in cells:
            table[index_of[name] % _GROUPS, bin_] += (unsupported, supported)
    table.flags.writeable = False
    return table


def weight(study: Array, unsupported: Array, supported: Array) -> Array:
    """Maximum-likelihood weight of `unsupported` for the counts `study`, between 0 and 1; shapes `(..., 20)`.

    The likelihood is concave in the weight, so the zero of its slope is found by bisection.
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


def drawn_weights(study: Study, parts: _Components, number: int, profile: Generator, own: Generator) -> Array:
    """Draws of the weight, shape `(number,)`: study and profile are both redrawn with their effective numbers of units.

    The generator `profile` is in the same state for all models that one profile corrects, so that they share its
    errors; `own` draws the study's own errors.
    """
    effective, freedom = study.effective_units(parts)
    total = float(study.counts.sum())
    units = np.clip(effective * own.chisquare(freedom, number) / freedom, 1.0, total)
    half = (parts.unsupported + parts.supported) / 2.0  # Jeffreys' half unit of either kind, as in `shares`
    counts = _drawn(np.outer(units, study.counts / total) + half, own)
    if parts.source == "posteriors":
        return weight(counts, parts.unsupported, parts.supported)
    return weight(counts, *parts.draws(number, profile))


# Drift: how far the detector's errors in the study may differ from those in its profile; a random effect.
#
# In each distribution of confidences, the log ratio of study to profile is modelled as a smooth random function of the
# confidence's log odds: a shift, a scaling and a short-range rest, each of one size (standard deviation). The part of
# the study's confidences that no weight explains shows this size: it is the maximum of the restricted likelihood
# (Harville 1977), which ignores the direction in which the weight acts, like the variance between studies in a
# meta-analysis. The effect of such a drift on the marked share is added to the interval. The parts and the limits of
# the size were chosen on simulated detectors and tested on others (benchmarks/rates.md).

_SIZES = np.concatenate([[0.0], np.geomspace(0.01, 1.5, 40)])
_MODES = 4  # directions in which a drift is most distinct from chance: the degrees of freedom of its size
_BORROWED = 10  # clusters' worth of a multinomial added to the covariance of chance, which is singular for few clusters
_LOG_ODDS = np.log((np.arange(CONFIDENCE_BINS) + 0.5) / (CONFIDENCE_BINS - 0.5 - np.arange(CONFIDENCE_BINS)))


class Drift(NamedTuple):
    """How far the detector's confidences are from their profile: a standard deviation, 0 if chance explains everything.

    `covariance` is that of the shares of the bins at size 1, shape `(20, 20)`; `to_weight` and `to_marked` are the
    derivatives of the weight and of the marked share with respect to these shares.
    """

    size: float
    covariance: Array
    to_weight: Array
    to_marked: Array

    @classmethod
    def of(cls, study: Study, parts: _Components, marked: int) -> Drift:
        """From the confidences of study and profile; the study's highest `marked` ones are those of marked units."""
        assert parts.plain is not None
        counts, (unsupported, supported) = study.counts, parts.plain.T  # smoothed ones would deviate in empty bins
        apart = unsupported - supported
        rate = float(weight(counts, unsupported, supported))
        fitted = supported + rate * apart
        chance = study.covariance + parts.covariance(rate)
        few = len(study.by_cluster) if parts.by_cluster is None else min(len(study.by_cluster), len(parts.by_cluster))
        flat = _multinomial(fitted) * (np.trace(chance) / np.trace(_multinomial(fitted)))
        chance += (flat - chance) * _BORROWED / (_BORROWED + few)
        chance *= (few - 1) / max(1, few - _MODES - 2)  # corrects the inverse of a covariance (Wishart)
        unit = rate**2 * _drift_of(unsupported) + (1.0 - rate) ** 2 * _drift_of(supported)
        score = apart / np.maximum(fitted, 1e-300)
        above = np.cumsum(counts[::-1])[::-1] - counts
        highest = np.clip((marked - above) / np.maximum(counts, 1.0), 0.0, 1.0)
        size = _likeliest(counts / counts.sum() - fitted, chance, unit, apart)
        return cls(size, unit, score / (apart @ score), highest)

    def error(self, direction: Array) -> float:
        """Standard deviation of the drift's effect on the sum of the shares times `direction`."""
        return self.size * math.sqrt(max(0.0, float(direction @ self.covariance @ direction)))

    def draws(self, direction: Array, number: int, generator: Generator) -> Array:
        """Draws of this effect, shape `(number,)`, from Student's t."""
        return self.error(direction) * generator.standard_t(_MODES, number)


def _multinomial(shares: Array) -> Array:
    return np.diag(shares) - np.outer(shares, shares)


def _drift_of(shares: Array) -> Array:
    """Covariance of a distribution whose log changes by a random function of size 1, shape `(20, 20)`."""
    middle = shares @ _LOG_ODDS
    scale = max(math.sqrt(shares @ (_LOG_ODDS - middle) ** 2), 0.3)
    x = np.clip((_LOG_ODDS - middle) / scale, -3.0, 3.0)
    stretch = np.minimum(x**2 - 1.0, 4.0)
    kernel = np.outer(x, x) + 0.5 * np.outer(stretch, stretch) + np.exp(-((x[:, None] - x) ** 2) / 2.0)
    moved: Array = _multinomial(shares) @ kernel @ _multinomial(shares)
    return moved


def _likeliest(off: Array, chance: Array, unit: Array, apart: Array) -> float:
    """The size of a drift by restricted likelihood, from the residuals of the best mixture in each bin."""
    fixed = np.linalg.qr(np.stack([np.ones(CONFIDENCE_BINS), apart], axis=1), mode="complete")[0]
    free = fixed[:, 2:]
    inverse = np.linalg.inv(np.linalg.cholesky(free.T @ chance @ free + 1e-12 * np.eye(free.shape[1])))
    values, vectors = np.linalg.eigh(inverse @ (free.T @ unit @ free) @ inverse.T)
    strong = slice(-_MODES, None)
    seen = vectors[:, strong].T @ (inverse @ (free.T @ off))
    variances = 1.0 + _SIZES[:, None] ** 2 * np.maximum(values[strong], 0.0)
    return float(_SIZES[np.argmin((np.log(variances) + seen**2 / variances).sum(axis=1))])


def _redrawn(shares: Array, share: Share, number: int, generator: Generator) -> Array:
    """A redrawn distribution, shape `(number, 20)`, with its effective number of units."""
    scale = generator.chisquare(share.freedom, number) / share.freedom
    return _drawn(np.outer(np.clip(share.effective * scale, 1.0, share.units), shares), generator)


def _drawn(shape: Array, generator: Generator) -> Array:
    """Draws of a distribution over bins by the Dirichlet distribution of `shape`, both of shape `(draws, 20)`."""
    drawn = generator.standard_gamma(np.maximum(shape, 1e-3))
    distributions: Array = drawn / drawn.sum(axis=-1, keepdims=True)
    return distributions


# Prediction-powered inference: combines the detector on every response with people's labels on a few.
#
# The estimate is the marked share in responses without labels times a factor, plus the difference between people's
# marks and the factor times the detector's in the labelled ones. It is unbiased whatever the detector's errors are, if
# the labelled responses are drawn at random; the factor with the shortest interval is estimated (Angelopoulos et al.
# 2023, "Prediction-powered inference"; "PPI++", 2023, section 6). Shares are ratios over clusters here.
#
# The factor is chosen to minimise the spread of few labels, so the spread at that factor is too optimistic: with 50
# labels, 95% intervals from linearised variances covered 88% (benchmarks/rates.py). The error is therefore from the
# jackknife, which refits the factor without each labelled cluster.


class Rectified(NamedTuple):
    """A prediction-powered estimate: its value and its draws, not clipped to [0, 1], with its standard error.

    `factor` is the weight of the detector, 0 (the labels alone) to 1; `clusters` is the number of labelled ones, of
    which `unsupported` have a unit that people marked and `supported` one that they did not.
    """

    value: float
    draws: Array
    factor: float
    clusters: int
    unsupported: int
    supported: int
    error: float


def rectified(tallies: Tallies, labels: Labels, *, draws: int, generator: Generator) -> Rectified | None:
    """The estimate; None if no labelled response has a unit.

    Unlabelled responses to queries with a label are left out: they correlate with the labelled ones.
    """
    chosen = tallies.select(labels.response)
    labelled = Tallies(labels.unsupported, chosen.units, chosen.cluster)
    gold, marked = Share.of(labelled, every_cluster=True), Share.of(chosen, every_cluster=True)
    others = Share.of(tallies.select(~np.isin(tallies.cluster, chosen.cluster)), every_cluster=True)
    if gold is None or marked is None:
        return None
    k = gold.clusters
    with_unsupported = len(np.unique(chosen.cluster[labels.unsupported > 0]))
    with_supported = len(np.unique(chosen.cluster[labels.unsupported < chosen.units]))
    if others is None or k < 3 or others.clusters < 2 or not gold.influences.any():
        share = Share.of(labelled)
        assert share is not None
        drawn = share.draws(draws, generator)
        return Rectified(share.value, drawn, 0.0, k, with_unsupported, with_supported, float(drawn.std()))
    factor = float(_factor(gold, marked, others.error))
    value = gold.value + factor * (others.value - marked.value)
    unlabelled = len(others.influences)
    unbiased = others.influences * np.sqrt(unlabelled / (unlabelled - 1))
    moves = np.concatenate([_jackknife_influences(labelled, chosen, gold, marked, others), factor * unbiased])
    error = float(np.sqrt((moves**2).sum()))
    units = int(tallies.units.sum())
    # As a share of its effective number of independent units: its draws are skewed near 0.
    inside = float(np.clip(value, 0.25 / units, 1.0 - 0.25 / units))
    effective = min(inside * (1.0 - inside) / error**2, float(units)) if error > 0 else float(units)
    drawn = share_draws(inside, effective, freedom_of(moves), units, draws, generator)
    return Rectified(value, drawn, factor, k, with_unsupported, with_supported, error)


def _factor(gold: Share, marked: Share, error_of_others: float, without: NDArray[np.intp] | None = None) -> Array:
    """The factor with the least variance: covariance over the sum of the two variances of the marked share.

    `without` are indices of clusters to leave out, each alone, shape `(m,)`; None for one factor from all.
    """
    covariance, variance = gold.influences * marked.influences, marked.influences**2
    both, own, k = covariance.sum(), variance.sum(), len(covariance)
    if without is not None:
        both, own, k = both - covariance[without], own - variance[without], k - 1
    scale = k / (k - 1)
    total_variance = scale * own + error_of_others**2
    factor = np.divide(scale * both, total_variance, out=np.zeros_like(total_variance), where=total_variance > 0)
    cut: Array = np.clip(factor, 0.0, 1.0)
    return cut


def _jackknife_influences(labelled: Tallies, chosen: Tallies, gold: Share, marked: Share, others: Share) -> Array:
    """Influence of each labelled cluster on the estimate by jackknife, with the factor refitted, shape `(k,)`.

    Their squares add up to the variance.
    """
    k = gold.clusters
    index = np.searchsorted(gold.ids, chosen.cluster)
    unsupported, predicted, units = (
        np.bincount(index, weights=column, minlength=k) for column in (labelled.marked, chosen.marked, chosen.units)
    )
    left = units.sum() - units
    others_left = np.flatnonzero(left > 0)  # without a cluster of all units there is no estimate
    factors = _factor(gold, marked, others.error, others_left)
    gold_left = (unsupported.sum() - unsupported[others_left]) / left[others_left]
    marked_left = (predicted.sum() - predicted[others_left]) / left[others_left]
    values = gold_left + factors * (others.value - marked_left)
    moves: Array = (values.mean() - values) * np.sqrt((k - 1) / k)
    return moves


# The rate of one model in one language, with its interval, draws, and reasons why it is unreliable.


CONFIDENCE = 0.95
DRAWS = 4000
SEED = 0


class RateEstimate(Estimate):
    """A rate, between 0 and 1; its interval includes the uncertainty of study, profile and drift.

    Attributes:
        reasons: why the rate is unreliable; empty if it is reliable.
        draws: of the rate, not clipped to [0, 1], shape `(draws,)`; NaN if a draw has no value. Draw b of all estimates
            with one profile and seed comes from the same draw of the profile.
        notes: its inputs, for the signature.
        drift: standard deviation of the rate from drift, the detector's different errors here; part of the interval.
        uncut: the rate before clipping to [0, 1]; NaN without one. Means and differences use these, and are clipped
            at the end: the mean of clipped rates is too high near 0.
    """

    reasons: tuple[str, ...]
    draws: Array
    notes: tuple[str, ...] = ()
    uncut: float = math.nan
    drift: float = 0.0

    @property
    def status(self) -> Reliability:
        """`ok`, or `unreliable` if there are reasons or no rate."""
        return Reliability.UNRELIABLE if self.reasons or self.value is None else Reliability.OK


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
) -> RateEstimate:
    """Estimate the share of unsupported units.

    Args:
        tallies: counts of what the detector marked.
        profile: its error rates in this language; `raw` and `ppi` need none.
        estimator: see `records.Estimator`. With marked share q, `paper` is q x precision / recall (mFAVA,
            equation 1) and `label-shift` is (q - FPR) / (TPR - FPR) (Rogan and Gladen 1978).
        confidence: of the interval, between 0 and 1.
        seed: of the draws.
        draws: number of draws.
        labels: of people, on the study's responses, for `ppi`.
        coverage: scored responses over all responses.

    Raises:
        UsageError: the estimator needs a profile, confidences or labels that are not given.
    """
    wanted = Estimator(estimator)
    method = ESTIMATORS[wanted]
    share = Share.of(tallies)
    findings = coverage_findings(coverage)
    if share is None:
        findings = ["no unit was judged", *findings]
        return RateEstimate(tuple(findings), np.full(draws, np.nan), value=None)
    if share.clusters < FEWEST_CLUSTERS:
        findings = [f"{_ENOUGH} independent texts or queries, and the study has {share.clusters}", *findings]
    rates = None
    if method.needs_profile:
        if profile is None:
            raise UsageError(
                f"The estimator {wanted} needs an error profile.",
                "Measure one with: veriglot evaluate LABELLED -o profile.json",
            )
        rates = detector_rates(profile, seed=seed, draws=draws)
        findings += profile_findings(rates)
        if rates.tpr is None or rates.fpr is None:
            return RateEstimate(tuple(findings), np.full(draws, np.nan), value=None)
    drift = None if profile is None or rates is None else _drift(tallies, profile, rates)
    result = method.correct(_Case(tallies, share, seed, draws, profile, rates, labels, drift))
    quantile = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    findings, notes = [*findings, *result.findings], result.notes
    if drift is not None and drift.size > 0:
        findings += drift_findings(drift.size, quantile * result.drift)
        notes = (*notes, f"drift:{drift.size:.2f}")
    return _finished(result, findings, confidence, notes)


def _generator(seed: int, tallies: Tallies, stream: int = 1) -> np.random.Generator:
    """Random numbers that depend on the counts, so that models with different marks have independent noise."""
    return np.random.default_rng([seed, stream, int(tallies.marked.sum()), int(tallies.units.sum()), len(tallies)])


def _drift(tallies: Tallies, profile: LanguageProfile, rates: DetectorRates) -> Drift | None:
    """None if study or profile has no confidences to estimate it from."""
    study = Study.of(tallies)
    if study is None or not profile.confidences or rates.tpr is None or rates.fpr is None:
        return None
    parts = components(profile, study.counts, (rates.tpr, rates.fpr))
    return None if parts is None else Drift.of(study, parts, int(tallies.marked.sum()))


def _finished(result: _Correction, findings: list[str], confidence: float, notes: tuple[str, ...]) -> RateEstimate:
    """Clip to [0, 1]; the interval from the draws. A draw without a value may be anything, so it widens both ends."""
    value, draws = result.value, result.draws
    if not np.isfinite(value):
        return RateEstimate(tuple(findings), draws, notes, value=None)
    cut = np.clip(draws, 0.0, 1.0)
    tail = (1.0 - confidence) / 2.0
    low = float(np.quantile(np.where(np.isnan(cut), 0.0, cut), tail))
    high = float(np.quantile(np.where(np.isnan(cut), 1.0, cut), 1.0 - tail))
    rate = float(np.clip(value, 0.0, 1.0))
    ends = {"low": min(low, rate), "high": max(high, rate)}
    return RateEstimate(tuple(findings), draws, notes, value, result.drift, value=rate, **ends)


# Reasons why a rate is unreliable, in words.

_MIN_UNITS = 20
_MIN_GAP = 0.1
_MIN_COVERAGE = 0.8
_MAX_DRIFT = 0.3
_MAX_SHIFT = 0.25
_TAIL = 0.025


_ENOUGH = f"a reliable interval needs {FEWEST_CLUSTERS}"


def profile_findings(rates: DetectorRates) -> list[str]:
    """A profile too small, or of a detector that hardly distinguishes unsupported from supported units."""
    findings = []
    for share, kind in ((rates.tpr, "unsupported"), (rates.fpr, "supported")):
        if share is None or share.units < _MIN_UNITS or share.clusters < FEWEST_CLUSTERS:
            units, clusters = (0, 0) if share is None else (share.units, share.clusters)
            findings.append(
                f"the profile needs {_MIN_UNITS} {kind} units in {FEWEST_CLUSTERS} independent texts, and has"
                f" {units} in {clusters}"
            )
    if rates.tpr is not None and rates.fpr is not None:
        gap = np.quantile(rates.tpr_draws - rates.fpr_draws, _TAIL)
        if gap < _MIN_GAP:
            findings.append(
                f"the detector hardly tells unsupported units from supported ones: it marks {rates.tpr.value:.1%} and"
                f" {rates.fpr.value:.1%} of them, and they may be less than {100 * _MIN_GAP:.0f} points apart"
            )
    return findings


def label_findings(clusters: int, unsupported: int, supported: int) -> list[str]:
    """Too few labels from the study itself: labelled texts or queries, and those with a unit of each kind."""
    if clusters < FEWEST_CLUSTERS:
        return [f"{_ENOUGH} independent texts or queries with labels, and the study has {clusters}"]
    return [
        f"{_ENOUGH} labelled texts or queries with {kind} unit, and the study has {number} (of {clusters})"
        for number, kind in ((unsupported, "an unsupported"), (supported, "a supported"))
        if number < FEWEST_CLUSTERS
    ]


def range_findings(value: float, draws: Array) -> list[str]:
    """An estimate below 0 or above 1 by more than noise explains; `value` and `draws` are not clipped to [0, 1]."""
    defined = draws[np.isfinite(draws)]
    if not defined.size:
        return []
    if value < 0 and np.quantile(defined, 1 - _TAIL) < 0:
        return ["fewer units were marked than the false alarms of the profile alone would give:"
                " the detector behaves differently here than where it was measured"]  # fmt: skip
    if value > 1 and np.quantile(defined, _TAIL) > 1:
        return ["more units were marked than the detector would mark if all were unsupported:"
                " it behaves differently here than where it was measured"]  # fmt: skip
    return []


def drift_findings(size: float, reach: float) -> list[str]:
    """A drift too large for a valid interval, or that moves the rate by `reach` in either direction."""
    if size <= _MAX_DRIFT and reach <= _MAX_SHIFT:
        return []
    return ["the confidences are distributed unlike the profile's: the detector errs differently here, which may move"
            f" the rate by {100 * min(reach, 1.0):.0f} points to either side"]  # fmt: skip


def coverage_findings(coverage: float) -> list[str]:
    """Too many responses that were not scored."""
    finding = f"only {coverage:.0%} of the responses were judged, and the others may hallucinate more or less"
    return [] if coverage >= _MIN_COVERAGE else [finding]


# An estimator added here and to `records.Estimator` can be estimated, compared and reported.


class _Case(Record):
    """The inputs of one rate: the arguments of `estimate`, and values computed from them."""

    tallies: Tallies
    share: Share
    seed: int
    draws: int
    profile: LanguageProfile | None = None
    rates: DetectorRates | None = None
    labels: Labels | None = None
    drift: Drift | None = None

    @property
    def marked(self) -> Array:
        """Draws of the marked share, shape `(draws,)`, without drift."""
        return self.share.draws(self.draws, _generator(self.seed, self.tallies))

    def drifted(self, target: Literal["marked", "weight"]) -> tuple[float, Array]:
        """Effect of drift on the marked share or the weight: standard deviation, and draws of shape `(draws,)`."""
        if self.drift is None:
            return 0.0, np.zeros(self.draws)
        direction = self.drift.to_marked if target == "marked" else self.drift.to_weight
        drawn = self.drift.draws(direction, self.draws, _generator(self.seed, self.tallies, 4))
        return self.drift.error(direction), drawn

    @property
    def measured(self) -> DetectorRates:
        """The rates of the profile; TPR and FPR are not None."""
        assert self.rates is not None
        return self.rates


class _Correction(NamedTuple):
    """An estimator's result: rate and draws, both not clipped; NaN if there is none."""

    value: float
    draws: Array
    findings: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    drift: float = 0.0


class _Method(NamedTuple):
    """An estimator."""

    correct: Callable[[_Case], _Correction]
    title: str
    description: str
    needs_profile: bool = False
    needs_confidences: bool = False
    needs_labels: bool = False
    factor: Callable[[DetectorRates], tuple[float, Array]] | None = None


def _paper(case: _Case) -> _Correction:
    """Equation 1 of mFAVA. Precision over recall equals the profile's prevalence over its marked share."""
    factor, drawn = _paper_factor(case.measured)
    value = case.share.value * factor if case.measured.known()[0].value > 0 else math.nan
    drift, drifted = case.drifted("marked")
    return _Correction(value, (case.marked + drifted) * drawn, drift=drift * factor)


def _paper_factor(rates: DetectorRates) -> tuple[float, Array]:
    """Precision over recall: unsupported units over marked ones, in the profile's data (mFAVA, equation 1)."""
    tpr, fpr, prevalence = (share.value for share in rates.known())
    factor = prevalence / (prevalence * tpr + (1 - prevalence) * fpr or math.inf)  # it may have marked nothing
    drawn = rates.prevalence_draws
    return factor, drawn / (drawn * rates.tpr_draws + (1 - drawn) * rates.fpr_draws)


def _label_shift(case: _Case) -> _Correction:
    """Rogan and Gladen 1978."""
    rates = case.measured
    tpr, fpr, _ = (share.value for share in rates.known())
    gap, gaps = tpr - fpr, rates.tpr_draws - rates.fpr_draws
    gaps = np.where(gaps > 0, gaps, np.nan)
    value = (case.share.value - fpr) / gap if gap > 0 else np.nan
    drawn, (drift, drifted) = (case.marked - rates.fpr_draws) / gaps, case.drifted("marked")
    findings = range_findings(value, drawn)  # beyond chance, whether or not drift explains it
    return _Correction(value, drawn + drifted / gaps, findings, drift=drift / gap if gap > 0 else 0.0)


def _label_shift_factor(rates: DetectorRates) -> tuple[float, Array]:
    tpr, fpr, _ = (share.value for share in rates.known())
    gaps = rates.tpr_draws - rates.fpr_draws
    return 1 / (tpr - fpr), 1 / np.where(gaps > 0, gaps, np.nan)


def _mixture(case: _Case) -> _Correction:
    study = Study.of(case.tallies)
    if study is None:
        raise UsageError("The estimator em needs the confidence of every word.", "Make the predictions with --words.")
    assert case.profile is not None
    parts = components(case.profile, study.counts, case.measured.known()[:2])
    if parts is None:
        return _Correction(math.nan, np.full(case.draws, np.nan), ["the profile has no confidences"])
    value = float(weight(study.counts, parts.unsupported, parts.supported))
    shared = np.random.default_rng([case.seed, 2, int(digest([str(case.profile.confidences)])[:12], 16)])
    drawn = drawn_weights(study, parts, case.draws, shared, _generator(case.seed, case.tallies, 2))
    notes = (f"em:{parts.source}",)
    drift, drifted = case.drifted("weight")
    return _Correction(value, drawn + drifted, notes=notes, drift=drift)


def _prediction_powered(case: _Case) -> _Correction:
    if case.labels is None or not len(case.labels.response):
        raise UsageError(
            "The estimator ppi needs labels of people for some of the responses.", "Give them with --labels."
        )
    result = rectified(case.tallies, case.labels, draws=case.draws, generator=_generator(case.seed, case.tallies, 3))
    if result is None:
        return _Correction(math.nan, np.full(case.draws, np.nan), ["no labelled response has a unit"])
    findings = label_findings(result.clusters, result.unsupported, result.supported)
    return _Correction(result.value, result.draws, findings, (f"ppi:{result.factor:.3f}",))


ESTIMATORS: dict[Estimator, _Method] = {
    Estimator.RAW: _Method(
        lambda case: _Correction(case.share.value, case.marked),
        "marked share, not corrected",
        "`raw` is the share of units that the detector marked, uncorrected.",
        factor=lambda rates: (1.0, np.ones(len(rates.tpr_draws))),
    ),
    Estimator.PAPER: _Method(
        _paper,
        "marked share × precision / recall",
        "`paper` is the marked share times precision over recall (mfava, equation 1). It holds only where unsupported"
        " units are as frequent as in the data of the profile.",
        needs_profile=True,
        factor=_paper_factor,
    ),
    Estimator.LABEL_SHIFT: _Method(
        _label_shift,
        "corrected for false and missed marks (TPR, FPR)",
        "`label-shift` is (marked share - FPR) / (TPR - FPR), with the detector's true and false positive rates of the"
        " language. These stay when unsupported units become rarer or more frequent.",
        needs_profile=True,
        factor=_label_shift_factor,
    ),
    Estimator.EM: _Method(
        _mixture,
        "mixture of confidence distributions",
        "`em` is the mixture of the confidences of supported and unsupported units in the profile that explains the"
        " confidences of the study best.",
        needs_profile=True,
        needs_confidences=True,
    ),
    Estimator.PPI: _Method(
        _prediction_powered,
        "marked share, rectified by labels from this study",
        "`ppi` is the marked share of all responses, corrected by the labels of some of them"
        " (prediction-powered inference).",
        needs_labels=True,
    ),
}
