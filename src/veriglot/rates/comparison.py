"""Comparing models: differences of rates and their tests, ranks, means over cells, t-tests, correlations, corrections.

If both models answered the same queries, the comparison is paired: a hard query is hard for both, and only the
variation within queries is noise. Both rates are corrected by one profile, whose error mostly cancels: the sign of the
difference depends only on whether the detector marks unsupported units more often than supported ones. So the test for
equal rates uses the marked shares, and the interval of the difference includes the profile's uncertainty.

mFAVA (Figure 5a) uses Student's t-test over 15 estimates of a model. Welch's is preferable: it is valid if the groups
differ in spread or size, and loses almost no power if they do not (Delacre, Lakens and Leys 2017). Estimates of one
model from several seeds of its detector share detector, profile and queries, so such a test generalises to other
seeds, not to other models or texts.
"""

from __future__ import annotations

import math
from importlib import import_module
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from veriglot.errors import UnknownNameError, UsageError, requires_extra
from veriglot.rates.estimators import CONFIDENCE, DRAWS, ESTIMATORS, SEED
from veriglot.rates.proportion import Share, Tallies, detector_rates, error_of, freedom_of
from veriglot.records import Estimator, Interval, LanguageProfile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from veriglot.arrays import Bools, Float64s, Int64s

    Array = Float64s
    Values = Sequence[float] | Array

__all__ = ["Difference", "adjust", "average", "compare", "correlate", "rank_intervals", "statistics", "t_test"]

_PAIRED_FROM = 0.5  # minimum share of each model's queries that the other one answered as well


def statistics(what: str) -> Any:
    """The module `scipy.stats`, for `what` (named in the error).

    Raises:
        MissingExtraError: the extra `stats` is not installed.
    """
    with requires_extra(what, "stats"):
        return import_module("scipy.stats")


class Difference(Interval):
    """A comparison of two rates. Differences are first minus second, as shares.

    Attributes:
        difference: of the rates; its interval includes the profile's uncertainty.
        p: two-sided p-value for equal rates, with the profile taken as exact.
        effect: standardised difference of the queries' marked shares, weighted by their units: divided by the standard
            deviation of their differences (paired) or by the root of the mean of both variances (unpaired). None if
            the comparison is not of queries, or they do not vary.
        paired: whether both answered the same queries.
        queries: number of clusters compared: common ones (paired), or all of the two (unpaired).
        left_out: responses of the first and of the second to queries that only one of them answered (paired).
        error, freedom: standard error of the difference, with the profile taken as exact, and its degrees of freedom.
        draws: of the difference, shape `(draws,)`; NaN if a draw has no value.
        moved: the difference under each draw of the profile alone, shape `(draws,)`.
        method: the test in words.
    """

    difference: float
    p: float
    effect: float | None
    paired: bool
    queries: int
    left_out: tuple[int, int]
    error: float
    freedom: float
    draws: Array
    moved: Array
    method: str = ""

    @classmethod
    def of_draws(
        cls, rates: tuple[float, float], draws: tuple[Array, Array], *, queries: int, confidence: float = CONFIDENCE
    ) -> Difference | None:
        """The difference of two estimates with draws, by any estimator, by a normal test.

        Args:
            rates: the two estimates.
            draws: of each, of equal shape `(draws,)`. Errors that both share must be in the same draws of both;
                separate draws count as independent, which is conservative if both answered the same queries.
            queries: number of clusters of the two.
            confidence: of the interval, between 0 and 1.

        Returns:
            None if fewer than two draws have a value.
        """
        drawn = draws[0] - draws[1]
        defined = drawn[np.isfinite(drawn)]
        if len(defined) < 2:
            return None
        difference, error = rates[0] - rates[1], float(defined.std(ddof=1))
        moved = np.full(len(drawn), difference)
        p = math.erfc(abs(difference) / error / sqrt(2)) if error > 0 else 1.0
        low, high = _interval(drawn, confidence)
        return cls(
            difference, p, effect=None, paired=False, queries=queries, left_out=(0, 0), error=error, freedom=math.inf,
            draws=drawn, moved=moved, method="normal test of draws", low=low, high=high,
        )  # fmt: skip

    @classmethod
    def over(cls, differences: Sequence[Difference], *, confidence: float = CONFIDENCE) -> Difference | None:
        """The mean difference of two models over several languages, with equal weights.

        Args:
            differences: one for each language, made with the same seed and number of draws, so that errors that two
                languages share (a pooled profile) are in the same draws.
            confidence: of the interval, between 0 and 1.

        Returns:
            None for no languages. `error` combines the languages' own errors and the profiles' effect on the mean,
            which matters if differences have both signs; `freedom` is Satterthwaite's; `effect` is the mean of theirs.
        """
        if not differences:
            return None
        n = len(differences)
        mean = sum(difference.difference for difference in differences) / n
        drawn = np.mean([difference.draws for difference in differences], axis=0)
        moved = np.mean([difference.moved for difference in differences], axis=0)
        own = [(difference.error / n) ** 2 for difference in differences]
        # A profile draw with nearly equal rates is an outlier: it hardly changes quantiles, but would dominate a
        # variance.
        lower, upper = np.nanquantile(moved, [0.1587, 0.8413])
        error = sqrt(sum(own) + ((upper - lower) / 2) ** 2)
        freedom = _satterthwaite(own, [difference.freedom for difference in differences])
        effects = [difference.effect for difference in differences if difference.effect is not None]
        low, high = _interval(drawn, confidence)
        return cls(
            mean,
            _p(mean, error, freedom),
            effect=sum(effects) / n if len(effects) == n else None,
            paired=all(difference.paired for difference in differences),
            queries=sum(difference.queries for difference in differences),
            left_out=(sum(each.left_out[0] for each in differences), sum(each.left_out[1] for each in differences)),
            error=error,
            freedom=freedom,
            draws=drawn,
            moved=moved,
            method=f"{differences[0].method}, mean of {n} languages",
            low=low,
            high=high,
        )


def compare(
    first: Tallies,
    second: Tallies,
    profile: LanguageProfile | None,
    *,
    estimator: Estimator | str = Estimator.LABEL_SHIFT,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
    draws: int = DRAWS,
    drifts: tuple[float, float] = (0.0, 0.0),
) -> Difference | None:
    """The difference of two models' rates in one language, by a t-test over queries.

    Paired if each answered at least half of the queries of the other: then over their common queries, so that both are
    compared on the same ones. Otherwise all queries of both count, as independent. Degrees of freedom are fewer if few
    queries determine the difference (`freedom_of`), as with low rates.

    Args:
        first, second: with cluster numbers of the same study.
        profile: of the language; None for `raw`.
        estimator: `raw`, `paper` or `label-shift`. For `em` and `ppi`, whose rates are not multiples of a marked share,
            use `Difference.of_draws`.
        confidence: of the interval, between 0 and 1.
        seed: of the draws.
        draws: their number.
        drifts: of the two rates (`RateEstimate.drift`). They count as independent, and increase the error: the detector
            may have other error rates on the answers of one model only.

    Returns:
        None if there is nothing to compare (no units, fewer than two queries), or if the profile does not allow it: the
        detector may mark supported units as often as unsupported ones.

    Raises:
        UsageError: an estimator that is not a multiple of a marked share, or a missing profile.
        MissingExtraError: the extra `stats` is not installed.
    """
    factor = _factor(profile, Estimator(estimator), seed, draws, confidence)
    shared = _shared(first, second)
    pair = [first, second]
    if shared is not None:
        pair = [tallies.select(np.isin(tallies.cluster, shared)) for tallies in pair]
    shares = [share for tallies in pair if (share := Share.of(tallies, every_cluster=True)) is not None]
    if factor is None or len(shares) < 2 or min(share.clusters for share in shares) < 2:
        return None
    marked = shares[0].value - shares[1].value
    error, freedom, spread = _error(shares[0], shares[1], paired=shared is not None)
    value, factors = factor
    error = math.hypot(
        error, *(_constant_share_error(tallies) for tallies in pair), *(drift / value for drift in drifts)
    )
    sums = [int(part.sum()) for tallies in pair for part in (tallies.marked, tallies.units)]
    # The seed includes the counts, so that two languages have independent noise of their responses.
    generator = np.random.default_rng([seed, 5, *sums, len(pair[0]), len(pair[1])])
    # Evenly spaced quantiles of Student's t, so that the interval agrees with the p-value.
    quantiles = statistics("A comparison").t.ppf((np.arange(draws) + 0.5) / draws, freedom)
    drawn = (marked + error * generator.permutation(quantiles)) * factors
    queries = len(shared) if shared is not None else shares[0].clusters + shares[1].clusters
    low, high = _interval(drawn, confidence)
    return Difference(
        marked * value,
        _p(marked, error, freedom),
        effect=marked / spread if spread > 0 else None,
        paired=shared is not None,
        queries=queries,
        left_out=(len(first) - len(pair[0]), len(second) - len(pair[1])),
        error=error * value,
        freedom=freedom,
        draws=drawn,
        moved=marked * factors,
        method=f"{'paired' if shared is not None else 'Welch'} t-test over queries",
        low=low,
        high=high,
    )


def _shared(first: Tallies, second: Tallies) -> Int64s | None:
    """The common queries, if there are enough of them to pair."""
    first_queries, second_queries = np.unique(first.cluster), np.unique(second.cluster)
    both = np.intersect1d(first_queries, second_queries)
    enough = len(both) >= 2 and len(both) >= _PAIRED_FROM * max(len(first_queries), len(second_queries))
    return both if enough else None


def _factor(
    profile: LanguageProfile | None, estimator: Estimator, seed: int, draws: int, confidence: float
) -> tuple[float, Array] | None:
    """The factor from a difference of marked shares to one of rates, and draws of it; None if its sign is in doubt."""
    method = ESTIMATORS[estimator]
    if method.factor is None:
        raise UsageError(
            f"A rate by `{estimator}` is no multiple of a marked share.", "Compare its draws (`Difference.of_draws`)."
        )
    if not method.needs_profile:
        return 1.0, np.ones(draws)
    if profile is None:
        raise UsageError(f"The estimator `{estimator}` needs an error profile.", "Give one, or compare `raw`.")
    rates = detector_rates(profile, seed=seed, draws=draws)
    if rates.tpr is None or rates.fpr is None or rates.prevalence is None:
        return None
    apart = rates.tpr_draws - rates.fpr_draws > 0
    if rates.tpr.value <= rates.fpr.value or (~apart).mean() > (1 - confidence) / 2:
        return None
    return method.factor(rates)


def _error(first: Share, second: Share, *, paired: bool) -> tuple[float, float, float]:
    """Standard error of the difference of marked shares, its degrees of freedom, and the divisor of the effect size."""
    if paired:
        influences = first.influences - second.influences
        return error_of(influences), freedom_of(influences), error_of(influences) * sqrt(len(influences))
    squares = [first.error**2, second.error**2]
    freedom = _satterthwaite(squares, [freedom_of(first.influences), freedom_of(second.influences)])
    spread = sqrt((squares[0] * first.clusters + squares[1] * second.clusters) / 2)
    return sqrt(sum(squares)), freedom, spread


def _constant_share_error(tallies: Tallies) -> float:
    """Standard error of a share without variation in the data: no unit is marked, or all are.

    No mark in few queries does not mean that the rate is 0; the error is that of the Beta distribution from which
    `shares` draws.
    """
    share = Share.of(tallies)
    if share is None or 0 < share.value < 1:
        return 0.0
    a, b = share.value * share.effective + 0.5, (1 - share.value) * share.effective + 0.5
    return sqrt(a * b / (a + b + 1)) / (a + b)


def _satterthwaite(squares: Sequence[float], freedoms: Sequence[float]) -> float:
    total = sum(squares)
    if total <= 0:
        return float(min(freedoms))
    uncertain = sum(square**2 / freedom for square, freedom in zip(squares, freedoms, strict=True))
    return total**2 / uncertain if uncertain > 0 else math.inf  # draws have a known error


def _p(difference: float, error: float, freedom: float) -> float:
    if error <= 0:  # every query has the same difference: there is no variation to estimate the error from
        return 1.0
    return float(2 * statistics("A comparison").t.sf(abs(difference) / error, freedom))


def _interval(draws: Array, confidence: float) -> tuple[float, float]:
    """Quantiles of draws; a draw without a value may be anything, so it widens both ends. Clipped to [-1, 1]."""
    tail = (1 - confidence) / 2
    low = float(np.quantile(np.where(np.isnan(draws), -1.0, draws), tail))
    high = float(np.quantile(np.where(np.isnan(draws), 1.0, draws), 1 - tail))
    return max(low, -1.0), min(high, 1.0)


# Ranks of models, with the ranks that the data cannot exclude.
#
# Percentile intervals of resampled ranks are too narrow if models lie close together: a resample adds noise to noise,
# and ranks end at 1 (Hall and Miller 2009; Xie, Singh and Zhang 2009). Here a rank is bounded by the numbers of
# significantly better and worse models, from simultaneous intervals of all differences (Mogstad, Romano, Shaikh and
# Wilhelm 2024, "Inference for Ranks", sections 3.1 and 3.2).


class Rank(NamedTuple):
    """A rank among all models (1 has the lowest rate, equal ones share it), with the best and worst not excluded."""

    rank: int
    best: int
    worst: int


def rank_intervals(rates: Sequence[float] | Array, draws: Array, *, confidence: float = 0.95) -> list[Rank | None]:
    """The rank of every model with its interval.

    Args:
        rates: estimates, shape `(models,)`; NaN for a model that is not ranked.
        draws: draws of each estimate, shape `(models, draws)`. Draw b of all models must come from the same draw of
            what they share (the error profile, the queries), so that shared errors change no rank.
        confidence: of the intervals, between 0 and 1, simultaneously for all models, since a table is read as a whole.

    Returns:
        One for each model, in the order given; None if its rate is NaN.

    Raises:
        ValueError: shapes do not match.
    """
    estimates = np.asarray(rates, np.float64)
    if draws.ndim != 2 or len(draws) != len(estimates):
        raise ValueError(f"draws have the shape (models, draws): {len(estimates)} rates, draws of shape {draws.shape}")
    ranked = np.flatnonzero(~np.isnan(estimates))
    results: list[Rank | None] = [None] * len(estimates)
    if not len(ranked):
        return results
    chosen = estimates[ranked]
    better, worse = _significantly(chosen, draws[ranked], confidence)
    for index, model in enumerate(ranked):
        rank = 1 + int((chosen < chosen[index]).sum())
        low, high = 1 + int(better[index].sum()), len(ranked) - int(worse[index].sum())
        results[model] = Rank(rank, min(low, rank), max(high, rank))
    return results


def _significantly(estimates: Array, draws: Array, confidence: float) -> tuple[Bools, Bools]:
    """Two tables `(model, other)`: which others are significantly better (lower), and which significantly worse."""
    models = len(estimates)
    defined = draws[:, np.isfinite(draws).all(axis=0)]
    nowhere = np.zeros((models, models), np.bool_)
    if models < 2 or defined.shape[1] < 2:
        return nowhere, nowhere
    centred = defined - defined.mean(axis=1, keepdims=True)
    errors = _errors(centred)
    differences = estimates[:, None] - estimates[None, :]
    largest = np.zeros((models, defined.shape[1]))
    for model in range(models):
        others = errors[model] > 0
        if others.any():
            gaps = np.abs(centred[model] - centred[others]) / errors[model][others][:, None]
            largest[model] = gaps.max(axis=0)
    # Two models that are equal in every draw have no error and no difference: neither is better.
    reach = np.maximum(np.quantile(largest.max(axis=0), confidence) * errors, 1e-15)
    return differences > reach, -differences > reach


def _errors(centred: Array) -> Array:
    """Standard errors of all differences, `(models, models)`, from centred draws `(models, draws)`."""
    covariance = np.atleast_2d(np.cov(centred))
    variances = np.diag(covariance)
    squares = variances[:, None] + variances[None, :] - 2 * covariance
    # Two models that share every draw have a tiny nonzero variance from rounding.
    squares[squares < 1e-12 * np.maximum(variances[:, None], variances[None, :])] = 0.0
    return np.sqrt(squares)


# Means over cells, t-tests with standardised effects, correlations, and p-values corrected for many comparisons.


class Mean(Interval):
    """An unweighted mean over cells, as in mFAVA's Figure 4: each language or model counts the same."""

    mean: float | None
    sd: float | None
    cells: int
    left_out: int


def average(values: Values, draws: Array | None = None, *, confidence: float = 0.95) -> Mean:
    """The mean of cells, with its standard deviation and interval (none without draws).

    Args:
        values: rates, shape `(cells,)`; NaN for a cell without a rate, or that must not count (unreliable).
        draws: draws of each cell's estimate, shape `(cells, draws)`. Draw b of cells that share an error profile must
            come from the same draw of the profile: the mean then includes its error, which independent draws would
            average away. Rows of cells without a value are ignored.
        confidence: of the interval, between 0 and 1.

    Returns:
        The interval is for these cells, not for further languages or models: `sd` is their spread.
    """
    rates = np.asarray(values, np.float64)
    defined = ~np.isnan(rates)
    cells = int(defined.sum())
    left_out = len(rates) - cells
    if not cells:
        return Mean(None, None, 0, left_out)
    chosen = rates[defined]
    mean, low, high = float(chosen.mean()), None, None
    if draws is not None:
        means = draws[defined].mean(axis=0)
        means = means[np.isfinite(means)]
        if means.size:
            # Each cell's draws include Jeffreys' half unit (`share_draws`): the mean may include only one half.
            means -= (np.median(means) - mean) * (1 - 1 / cells)
            low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
            low, high = min(low, mean), max(high, mean)  # for a single share of 0, Jeffreys' interval starts at 0
    sd = float(chosen.std(ddof=1)) if cells > 1 else None
    return Mean(mean, sd, cells, left_out, low=low, high=high)


class TTest(Interval):
    """A test of two means. Differences are first minus second, in the unit of the data."""

    difference: float
    t: float
    df: float
    p: float
    d: float
    g: float
    counts: tuple[int, int]


def t_test(
    first: Values, second: Values, kind: Literal["student", "welch", "paired"] = "welch", *, confidence: float = 0.95
) -> TTest | None:
    """A t-test of two groups, shapes `(n,)` and `(m,)`.

    Args:
        first, second: the groups, without NaN.
        kind: `student`: both groups have the same spread; `welch`: they may differ in it; `paired`: value i of both
            belongs to the same object (a language, a text).
        confidence: of the interval, between 0 and 1.

    Returns:
        None if the test is not defined: fewer than two values in a group, or no spread in both (of pairs: in the
        differences).

    Raises:
        ValueError: there are NaN values, or pairs with groups of different sizes.
        MissingExtraError: the extra `stats` is not installed.
    """
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    n, m = len(x), len(y)
    if np.isnan(x).any() or np.isnan(y).any():
        raise ValueError("a t-test takes numbers only; leave NaN out first, and say how many")
    if kind == "paired" and n != m:
        raise ValueError(f"pairs need as many values on both sides, not {n} and {m}")
    if min(n, m) < 2 or (_flat(x - y, x, y) if kind == "paired" else _flat(x, x, y) and _flat(y, x, y)):
        return None
    stats = statistics("A t-test")
    tested = stats.ttest_rel(x, y) if kind == "paired" else stats.ttest_ind(x, y, equal_var=kind == "student")
    difference, vx, vy = float(x.mean() - y.mean()), float(x.var(ddof=1)), float(y.var(ddof=1))
    if kind == "paired":
        difference, spread, freedom = float((x - y).mean()), float((x - y).std(ddof=1)), float(n - 1)
    elif kind == "student":
        spread, freedom = sqrt(((n - 1) * vx + (m - 1) * vy) / (n + m - 2)), float(n + m - 2)
    else:
        # Degrees of freedom of the effect, not those of the test: Delacre et al. 2021, equation 16.
        spread = sqrt((vx + vy) / 2)
        freedom = (n - 1) * (m - 1) * (vx + vy) ** 2 / ((m - 1) * vx**2 + (n - 1) * vy**2)
    interval = tested.confidence_interval(confidence)
    d, unbiasing = difference / spread, math.nan
    if freedom > 1:  # exact bias correction of a standardised difference: Hedges 1981, equation 6e
        unbiasing = math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom - 1) / 2)) / sqrt(freedom / 2)
    return TTest(
        difference, float(tested.statistic), float(tested.df), float(tested.pvalue), d, d * unbiasing, (n, m),
        low=float(interval.low), high=float(interval.high),
    )  # fmt: skip


def _flat(values: Array, *scale: Array) -> bool:
    """Whether values are constant up to rounding."""
    return bool(np.ptp(values) <= 1e-14 * max(float(np.abs(part).max()) for part in scale))


_COEFFICIENTS = ("pearson", "spearman")
_PERMUTED = 9  # up to so many points, the p-value is from all permutations (362,880 of them)


class Correlated(Interval):
    """A correlation; without an interval for fewer than four points."""

    r: float
    p: float
    points: int
    method: str


def correlate(x: Values, y: Values, *, method: str = "pearson", confidence: float = 0.95) -> Correlated | None:
    """Correlation of two values of the same points: size, declared languages, length (mFAVA, section 4.2).

    The interval is Fisher's, z = atanh r, with standard error 1/sqrt(n - 3) for Pearson, and with
    sqrt((1 + r^2/2) / (n - 3)) for Spearman (Bonett and Wright 2000). Both assume independent points: the cells of a
    language x model table are not, its row or column means more nearly so. The p-value is from the t distribution; for
    Spearman with at most nine points without ties, from all permutations.

    Args:
        x, y: shape `(n,)`, without NaN.
        method: `pearson` (linear) or `spearman` (monotonic).
        confidence: of the interval, between 0 and 1.

    Returns:
        None if no correlation is defined: fewer than three points, or one side constant.

    Raises:
        UnknownNameError: no such method.
        ValueError: sides of different lengths, or NaN.
        MissingExtraError: the extra `stats` is not installed.
    """
    if method not in _COEFFICIENTS:
        raise UnknownNameError("correlation", method, _COEFFICIENTS)
    first, second = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if first.shape != second.shape or np.isnan(first).any() or np.isnan(second).any():
        raise ValueError(f"a correlation takes pairs of numbers, not {first.shape} and {second.shape} or NaN")
    points = len(first)
    if points < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    stats = statistics("A correlation")
    tested = stats.pearsonr(first, second) if method == "pearson" else stats.spearmanr(first, second)
    r, p = float(tested.statistic), float(tested.pvalue)
    tied = min(len(np.unique(first)), len(np.unique(second))) < points
    if method == "spearman" and points <= _PERMUTED and not tied:
        # The share of all permutations with as strong a correlation: without ties the coefficient is a linear function
        # of the sum of products of ranks.
        ranks, given = stats.rankdata(second), (stats.rankdata(first),)
        p = float(
            stats.permutation_test(
                given, lambda moved, axis=-1: (moved * ranks).sum(axis=axis), permutation_type="pairings",
                vectorized=True, n_resamples=np.inf, batch=40_000,
            ).pvalue
        )  # fmt: skip
    if points < 4:
        return Correlated(r, p, points, method)
    spread = 1.0 if method == "pearson" else 1 + r * r / 2
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * sqrt(spread / (points - 3))
    low, high = (math.tanh(math.atanh(r) + step) if abs(r) < 1 else r for step in (-reach, reach))
    return Correlated(r, p, points, method, low=low, high=high)


def adjust(p_values: Values, method: str = "holm") -> Array:
    """P-values corrected for multiple testing.

    Args:
        p_values: shape `(n,)`, between 0 and 1; NaN if a test could not be made.
        method: `holm` controls the probability of any false positive (Holm 1979), whatever the dependence between the
            tests; `bh` controls the false discovery rate (Benjamini and Hochberg 1995), for independent or positively
            dependent tests.

    Returns:
        Shape `(n,)`, in the order given, between 0 and 1. NaN stays NaN and is not counted as a test.

    Raises:
        UnknownNameError: no such method.
        ValueError: a p-value outside [0, 1].
        MissingExtraError: `bh` without the extra `stats`.
    """
    if method not in _CORRECTIONS:
        raise UnknownNameError("correction for many comparisons", method, _CORRECTIONS)
    given = np.asarray(p_values, np.float64)
    tested = ~np.isnan(given)
    defined = given[tested]
    if defined.size and (defined.min() < 0 or defined.max() > 1):
        raise ValueError(f"p-values lie between 0 and 1, not {defined.min():g} to {defined.max():g}")
    adjusted = np.full_like(given, np.nan)
    if defined.size:
        adjusted[tested] = _CORRECTIONS[method](defined)
    return adjusted


def _holm(p_values: Array) -> Array:
    """Step-down: the smallest is multiplied by the number of tests, the next by one less, and so on; made monotonic."""
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


_CORRECTIONS: dict[str, Callable[[Array], Array]] = {
    "holm": _holm,
    "bh": lambda p_values: statistics("The correction `bh`").false_discovery_control(p_values, method="bh"),
}
