"""Means over cells, t-tests with standardised effects, correlations, and p-values corrected for many comparisons.

mFAVA (Figure 5a) takes Student's t-test over 15 estimates of a model. Welch's is the one to use: it holds where the
groups differ in spread or size, and costs next to nothing where they do not (Delacre, Lakens and Leys 2017). Estimates
of one model from several seeds of its detector share detector, profile and queries. Such a test therefore speaks of
seeds, not of other models or texts.
"""

from __future__ import annotations

import math
from importlib import import_module
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from veriglot.errors import MissingExtraError, UnknownNameError
from veriglot.records import Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Values = Sequence[float] | Array

__all__ = ["adjust", "average", "correlate", "statistics", "t_test"]


def statistics(what: str) -> Any:
    """The module `scipy.stats`, for `what` (named in the error).

    Raises:
        MissingExtraError: the extra `stats` is not installed.
    """
    try:
        return import_module("scipy.stats")
    except ModuleNotFoundError as error:
        raise MissingExtraError(what, "stats") from error


class Mean(Interval, frozen=True):
    """An unweighted mean over cells, as in mFAVA's Figure 4: each language or model counts the same."""

    mean: float | None
    sd: float | None
    cells: int
    left_out: int


def average(values: Values, draws: Array | None = None, *, confidence: float = 0.95) -> Mean:
    """The mean of cells, with its standard deviation and interval (none without draws).

    Args:
        values: rates, shape `(cells,)`; NaN for a cell that has none, or that shall not count (unreliable).
        draws: draws of each cell's estimate, shape `(cells, draws)`. Draw number b of cells that share an error
            profile must come from the same draw of the profile: its error then stays in the mean, where independent
            draws would average it away. Rows of cells without a value are not looked at.
        confidence: of the interval, between 0 and 1.

    Returns:
        The interval speaks of these cells. It does not say what further languages or models would give: `sd` does.
    """
    rates = np.asarray(values, dtype=np.float64)
    defined = ~np.isnan(rates)
    cells = int(defined.sum())
    left_out = len(rates) - cells
    if not cells:
        return Mean(None, None, 0, left_out)
    chosen = rates[defined]
    low = high = None
    if draws is not None:
        means = draws[defined].mean(axis=0)
        means = means[np.isfinite(means)]
        if means.size:
            low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    sd = float(chosen.std(ddof=1)) if cells > 1 else None
    return Mean(float(chosen.mean()), sd, cells, left_out, low=low, high=high)


class TTest(Interval, frozen=True):
    """A test of two means. Differences are first minus second, in the unit of the data.

    Attributes:
        difference: of the means.
        t, df: the statistic and its degrees of freedom.
        p: two-sided p-value.
        d: standardised difference (Cohen): over the pooled standard deviation (Student), the root of the mean of both
            variances (Welch; Delacre et al. 2021), or the standard deviation of the differences (paired).
        g: `d` without its bias in small groups (Hedges 1981).
        counts: size of each group.
    """

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
            stands for the same thing (a language, a text).
        confidence: of the interval, between 0 and 1.

    Returns:
        None where the test is not defined: fewer than two values in a group, or no spread in either (in the
        differences of pairs).

    Raises:
        ValueError: NaN, or pairs of groups of different sizes.
        MissingExtraError: the extra `stats` is not installed.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
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
        spread, freedom = math.sqrt(((n - 1) * vx + (m - 1) * vy) / (n + m - 2)), float(n + m - 2)
    else:
        # Degrees of freedom of the effect, which are not those of the test: Delacre et al. 2021, equation 16.
        spread = math.sqrt((vx + vy) / 2)
        freedom = (n - 1) * (m - 1) * (vx + vy) ** 2 / ((m - 1) * vx**2 + (n - 1) * vy**2)
    interval = tested.confidence_interval(confidence)
    d = difference / spread
    return TTest(
        difference, float(tested.statistic), float(tested.df), float(tested.pvalue), d, d * _unbiasing(freedom), (n, m),
        low=float(interval.low), high=float(interval.high),
    )  # fmt: skip


def _unbiasing(freedom: float) -> float:
    """What takes the bias of a standardised difference away, exactly: Hedges 1981, equation 6e."""
    if freedom <= 1:
        return math.nan
    return math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom - 1) / 2)) / math.sqrt(freedom / 2)


def _flat(values: Array, *scale: Array) -> bool:
    """Whether values do not differ by more than their own rounding."""
    largest = max(float(np.abs(part).max()) for part in scale)
    return bool(np.ptp(values) <= 1e-14 * largest)


_COEFFICIENTS = ("pearson", "spearman")
_PERMUTED = 9  # up to so many points every order is tried (362,880 of them)


class Correlated(Interval, frozen=True):
    """A correlation; for fewer than four points without an interval."""

    r: float
    p: float
    points: int
    method: str


def correlate(x: Values, y: Values, *, method: str = "pearson", confidence: float = 0.95) -> Correlated | None:
    """How two values of the same points go together: size, declared languages, length (mFAVA, section 4.2).

    The interval is Fisher's, z = atanh r, with standard error 1/sqrt(n - 3) for Pearson, and with
    sqrt((1 + r^2/2) / (n - 3)) for Spearman (Bonett and Wright 2000). Both need points that are independent of each
    other: the cells of a language x model table are not, its rows and its columns are nearer to it. The p-value is that
    of the t distribution; for Spearman and at most nine points without ties, of every order of the points.

    Args:
        x, y: shape `(n,)`, without NaN.
        method: `pearson` (a straight line) or `spearman` (an order).
        confidence: of the interval, between 0 and 1.

    Returns:
        None where no correlation is defined: fewer than three points, or one side constant.

    Raises:
        UnknownNameError: no such method.
        ValueError: sides of different lengths, or NaN.
        MissingExtraError: the extra `stats` is not installed.
    """
    if method not in _COEFFICIENTS:
        raise UnknownNameError("correlation", method, _COEFFICIENTS)
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
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
        p = _order_p(stats, first, second)
    low: float | None = r
    high: float | None = r
    if points < 4:
        low = high = None
    elif abs(r) < 1:
        spread = 1.0 if method == "pearson" else 1 + r * r / 2
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(spread / (points - 3))
        low, high = math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach)
    return Correlated(r, p, points, method, low=low, high=high)


def _order_p(stats: Any, x: Array, y: Array) -> float:
    """The share of all orders of points without ties that give as strong a correlation of ranks."""
    ranks = stats.rankdata(y)

    def agreement(moved: Array, axis: int = -1) -> Array:
        # Without ties the coefficient is a line in the sum of products of ranks.
        return np.asarray((moved * ranks).sum(axis=axis))

    ordered = stats.permutation_test(
        (stats.rankdata(x),), agreement, permutation_type="pairings", vectorized=True, n_resamples=np.inf, batch=40_000
    )
    return float(ordered.pvalue)


def adjust(p_values: Values, method: str = "holm") -> Array:
    """P-values after correction for all that stand beside them.

    Args:
        p_values: shape `(n,)`, between 0 and 1; NaN where a test could not be made.
        method: `holm` holds the chance of any false finding at the level (Holm 1979), whatever the dependence between
            the tests; `bh` holds the expected share of false findings among all findings (Benjamini and Hochberg 1995),
            for independent or positively dependent tests.

    Returns:
        Shape `(n,)`, in the order given, between 0 and 1. NaN stays NaN and is not counted as a test.

    Raises:
        UnknownNameError: no such method.
        ValueError: a p-value outside [0, 1].
        MissingExtraError: `bh` without the extra `stats`.
    """
    if method not in _CORRECTIONS:
        raise UnknownNameError("correction for many comparisons", method, _CORRECTIONS)
    given = np.asarray(p_values, dtype=np.float64)
    tested = ~np.isnan(given)
    defined = given[tested]
    if defined.size and (defined.min() < 0 or defined.max() > 1):
        raise ValueError(f"p-values lie between 0 and 1, not {defined.min():g} to {defined.max():g}")
    adjusted = np.full_like(given, np.nan)
    if defined.size:
        adjusted[tested] = _CORRECTIONS[method](defined)
    return adjusted


def _holm(p_values: Array) -> Array:
    """Step down: the smallest is multiplied by the number of tests, the next by one less; never out of order."""
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def _benjamini_hochberg(p_values: Array) -> Array:
    controlled: Array = statistics("The correction `bh`").false_discovery_control(p_values, method="bh")
    return controlled


_CORRECTIONS: dict[str, Callable[[Array], Array]] = {"holm": _holm, "bh": _benjamini_hochberg}
