"""Is one model better than another: the difference of their rates, and whether it could be chance.

Where both answered the same queries, a hard query is hard for both, and only what remains within queries is noise:
the comparison is paired. Both rates are corrected by one profile, whose error then mostly cancels: a detector that
tells supported from unsupported units at all gives the difference its sign, so whether the rates differ is tested on
the marked shares, and how much they differ carries the profile's uncertainty as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.errors import UsageError
from veriglot.rates.clustered import clustered_share, error_of
from veriglot.rates.detector_rates import detector_rates
from veriglot.rates.scientific import statistics
from veriglot.records import Estimator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.rates.tallies import Tallies
    from veriglot.records import LanguageProfile

    Array = NDArray[np.float64]

__all__ = ["Difference", "compare", "compare_draws", "compare_over"]

_PAIRED_FROM = 0.5  # share of each model's queries that the other one answered as well
_DEFAULT_DRAWS = 2000


@dataclass(frozen=True)
class Difference:
    """Two rates held against each other. Differences are first minus second, as shares.

    Attributes:
        difference, low, high: of the rates, with its interval.
        p: two-sided p-value for equal rates.
        effect: standardised difference: of the marked shares of queries, weighted by their units, over the standard
            deviation of their differences (paired) or over the root of the mean of both variances (unpaired). None
            where the comparison is not of queries.
        paired: whether it is of the same queries.
        queries: clusters that were compared: those of both (paired), or all of the two (unpaired).
        left_out: responses of the first and of the second to queries that only one of them answered (paired).
        error: standard error of the difference, with the profile as it is.
        freedom: degrees of freedom of `error`.
        draws: of the difference, with the profile's uncertainty, shape `(draws,)`.
        method: the test in words.
    """

    difference: float
    low: float
    high: float
    p: float
    effect: float | None
    paired: bool
    queries: int
    left_out: tuple[int, int]
    error: float
    freedom: float
    draws: Array
    method: str


def compare(
    first: Tallies,
    second: Tallies,
    profile: LanguageProfile | None,
    *,
    estimator: Estimator = Estimator.LABEL_SHIFT,
    confidence: float = 0.95,
    seed: int = 0,
    draws: int = _DEFAULT_DRAWS,
) -> Difference | None:
    """The difference of two models' rates in one language, by a t-test over queries.

    Paired where each answered at least half of the queries of the other: then over the queries of both, so that
    neither is judged on queries that the other was spared. Otherwise all queries of both count, as independent.

    Args:
        first, second: with cluster numbers of the same study.
        profile: of the language; None for `raw`.
        estimator: `raw`, `paper` or `label-shift`. For `em` and `ppi`, whose rates are no multiples of a marked share,
            `compare_draws` compares the estimates.
        confidence: of the interval, between 0 and 1.
        seed: of the draws.
        draws: their number.

    Returns:
        None where there is nothing to compare (no units, fewer than two queries), or where the profile does not support
        it: a detector that may mark supported units as often as unsupported ones.

    Raises:
        UsageError: an estimator that is not a multiple of a marked share, or no profile where one is needed.
        MissingExtraError: the extra `stats` is not installed.
    """
    factor = _factor(profile, estimator, seed, draws, confidence)
    shared = _shared(first, second)
    kept = _of_queries(first, second, shared) if shared is not None else (first, second)
    shares = [clustered_share(tallies) for tallies in kept]
    if factor is None or shares[0] is None or shares[1] is None:
        return None
    if shared is not None:
        influences = shares[0].influences - shares[1].influences
        error, freedom = error_of(influences), float(len(influences) - 1)
        spread, queries = error * math.sqrt(len(influences)), len(influences)
    else:
        error, freedom, spread = _apart(shares[0].influences, shares[1].influences)
        queries = len(shares[0].clusters) + len(shares[1].clusters)
    if math.isnan(error):
        return None
    marked = shares[0].share - shares[1].share
    value, factors = factor
    drawn = (marked + error * _student_draws(freedom, draws, seed)) * factors
    left_out = (len(first) - len(kept[0]), len(second) - len(kept[1]))
    effect = marked / spread if spread > 0 else None
    return Difference(
        marked * value, *_interval(drawn, confidence), _p(marked, error, freedom), effect, shared is not None, queries,
        left_out, error * abs(value), freedom, drawn,
        f"{'paired' if shared is not None else 'Welch'} t-test over queries",
    )  # fmt: skip


def compare_draws(
    rates: tuple[float, float], draws: tuple[Array, Array], *, queries: int, confidence: float = 0.95
) -> Difference:
    """The difference of two estimates that have draws, by any estimator, by a normal test.

    Args:
        rates: the two estimates.
        draws: of each, of equal shape `(draws,)`. What the two share must be shared draw by draw; what is drawn apart
            counts as independent, which is cautious where the same queries were answered.
        queries: clusters behind the two.
        confidence: of the interval, between 0 and 1.
    """
    drawn = draws[0] - draws[1]
    defined = drawn[np.isfinite(drawn)]
    difference, error = rates[0] - rates[1], float(defined.std(ddof=1)) if len(defined) > 1 else math.nan
    p = _normal_p(difference, error)
    return Difference(
        difference, *_interval(defined, confidence), p, None, False, queries, (0, 0), error, math.inf, drawn,
        "normal test of draws",
    )  # fmt: skip


def compare_over(differences: Sequence[Difference], *, confidence: float = 0.95) -> Difference | None:
    """The mean difference of two models over several languages, each of which counts the same.

    Args:
        differences: one of each language, made with the same seed and number of draws: what two languages share (a
            pooled profile) is then shared draw by draw.
        confidence: of the interval, between 0 and 1.

    Returns:
        None for no languages. `error` holds the languages' own errors and how far the profile moves the mean;
        `freedom` is Satterthwaite's.
    """
    if not differences:
        return None
    n = len(differences)
    mean = sum(one.difference for one in differences) / n
    drawn = np.mean([one.draws for one in differences], axis=0)
    own = [one.error**2 / n**2 for one in differences]
    # The draws hold the same sampling error over again: what they vary beyond it is the profile's doing.
    beyond = max(0.0, float(np.var(drawn[np.isfinite(drawn)])) - sum(own))
    error = math.sqrt(sum(own) + beyond)
    freedom = _satterthwaite(own, [one.freedom for one in differences])
    paired = all(one.paired for one in differences)
    effects = [one.effect for one in differences if one.effect is not None]
    return Difference(
        mean, *_interval(drawn, confidence), _p(mean, error, freedom),
        sum(effects) / n if len(effects) == n else None,
        paired, sum(one.queries for one in differences),
        (sum(one.left_out[0] for one in differences), sum(one.left_out[1] for one in differences)),
        error, freedom, drawn, f"mean of {n} languages, {differences[0].method}",
    )  # fmt: skip


def _shared(first: Tallies, second: Tallies) -> NDArray[np.int64] | None:
    """The queries of both, where there are enough of them to pair."""
    ours, theirs = np.unique(first.cluster), np.unique(second.cluster)
    both = np.intersect1d(ours, theirs)
    enough = len(both) >= 2 and len(both) >= _PAIRED_FROM * max(len(ours), len(theirs))
    return both if enough else None


def _of_queries(first: Tallies, second: Tallies, queries: NDArray[np.int64]) -> tuple[Tallies, Tallies]:
    return (
        first.select(np.isin(first.cluster, queries)),
        second.select(np.isin(second.cluster, queries)),
    )


def _factor(
    profile: LanguageProfile | None, estimator: Estimator, seed: int, draws: int, confidence: float
) -> tuple[float, Array] | None:
    """What a difference of marked shares is multiplied by, and draws of it; None where its sign is in doubt."""
    if estimator is Estimator.RAW:
        return 1.0, np.ones(draws)
    if estimator not in (Estimator.PAPER, Estimator.LABEL_SHIFT):
        raise UsageError(
            f"A rate by `{estimator}` is no multiple of a marked share.", remedy="Compare its draws (`compare_draws`)."
        )
    if profile is None:
        raise UsageError(f"The estimator `{estimator}` needs an error profile.", remedy="Give one, or compare `raw`.")
    rates = detector_rates(profile, seed=seed, draws=draws)
    if rates.tpr is None or rates.fpr is None or rates.prevalence is None:
        return None
    gap = rates.tpr_draws - rates.fpr_draws
    if rates.tpr.value <= rates.fpr.value or (gap <= 0).mean() > (1 - confidence) / 2:
        return None
    if estimator is Estimator.LABEL_SHIFT:
        return 1 / (rates.tpr.value - rates.fpr.value), 1 / gap
    return (
        _over_recall(rates.prevalence.value, rates.tpr.value, rates.fpr.value),
        _over_recall(rates.prevalence_draws, rates.tpr_draws, rates.fpr_draws),
    )


def _over_recall[T: (float, Array)](prevalence: T, tpr: T, fpr: T) -> T:
    """Precision over recall: unsupported units over marked ones, in the profile's data (mfava, equation 1)."""
    return prevalence / (prevalence * tpr + (1 - prevalence) * fpr)


def _apart(first: Array, second: Array) -> tuple[float, float, float]:
    """Error, degrees of freedom and the standardising spread of two independent shares."""
    errors = error_of(first), error_of(second)
    if any(math.isnan(error) for error in errors):
        return math.nan, math.nan, math.nan
    squares = [error**2 for error in errors]
    freedom = _satterthwaite(squares, [len(first) - 1.0, len(second) - 1.0])
    spread = math.sqrt((squares[0] * len(first) + squares[1] * len(second)) / 2)
    return math.sqrt(sum(squares)), freedom, spread


def _satterthwaite(squares: Sequence[float], freedoms: Sequence[float]) -> float:
    total = sum(squares)
    if total <= 0:
        return float(min(freedoms))
    return total**2 / sum(square**2 / freedom for square, freedom in zip(squares, freedoms, strict=True))


def _student_draws(freedom: float, draws: int, seed: int) -> Array:
    """Student's t, evenly spread over its quantiles: the interval then agrees with the p-value."""
    quantiles = statistics("A comparison").t.ppf((np.arange(draws) + 0.5) / draws, freedom)
    drawn: Array = np.random.default_rng([seed, draws]).permutation(quantiles)
    return drawn


def _p(difference: float, error: float, freedom: float) -> float:
    if error <= 0:
        return 1.0 if difference == 0 else 0.0
    return float(2 * statistics("A comparison").t.sf(abs(difference) / error, freedom))


def _normal_p(difference: float, error: float) -> float:
    if math.isnan(error) or error <= 0:
        return 1.0
    return math.erfc(abs(difference) / error / math.sqrt(2))


def _interval(draws: Array, confidence: float) -> tuple[float, float]:
    if not len(draws):
        return math.nan, math.nan
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
