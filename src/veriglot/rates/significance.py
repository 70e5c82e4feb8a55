"""Do two groups of estimates differ: t-tests with intervals and standardised effects (mFAVA, Figure 5a).

mFAVA takes Student's test over 15 estimates of a model. `welch` is the one to use: it holds where the groups differ in
spread or size, and costs next to nothing where they do not (Delacre, Lakens and Leys 2017). Estimates of one model
from several seeds of its detector share detector, profile and queries. Such a test therefore speaks of seeds, not of
other models or texts.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.errors import MissingExtraError, UnknownNameError
from veriglot.records import Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["TTest", "adjust", "paired_t", "statistics", "student", "welch"]


def statistics(what: str) -> Any:
    """The module `scipy.stats`, for `what` (named in the error).

    Raises:
        MissingExtraError: the extra `stats` is not installed.
    """
    try:
        return import_module("scipy.stats")
    except ModuleNotFoundError as error:
        raise MissingExtraError(what, "stats") from error


if TYPE_CHECKING:
    Array = NDArray[np.float64]
    Group = Sequence[float] | Array


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
        method: `student`, `welch` or `paired t`.
    """

    difference: float
    t: float
    df: float
    p: float
    d: float
    g: float
    counts: tuple[int, int]
    method: str


def student(first: Group, second: Group, *, confidence: float = 0.95) -> TTest | None:
    """Student's t-test: both groups have the same spread. Shapes `(n,)` and `(m,)`.

    Returns:
        None where the test is not defined: fewer than two values in a group, or no spread in either.

    Raises:
        MissingExtraError: the extra `stats` is not installed.
    """
    return _independent(first, second, equal_spread=True, confidence=confidence)


def welch(first: Group, second: Group, *, confidence: float = 0.95) -> TTest | None:
    """Welch's t-test: the groups may differ in spread. As `student` otherwise."""
    return _independent(first, second, equal_spread=False, confidence=confidence)


def paired_t(first: Group, second: Group, *, confidence: float = 0.95) -> TTest | None:
    """The paired t-test: value i of both stands for the same thing (a language, a text). Shapes `(n,)`.

    Returns:
        None where the test is not defined: fewer than two pairs, or differences without spread.

    Raises:
        ValueError: groups of different sizes.
        MissingExtraError: the extra `stats` is not installed.
    """
    x, y = _values(first), _values(second)
    if len(x) != len(y):
        raise ValueError(f"pairs need as many values on both sides, not {len(x)} and {len(y)}")
    if len(x) < 2 or _flat(x - y, x, y):
        return None
    tested = statistics("A t-test").ttest_rel(x, y)
    spread = float((x - y).std(ddof=1))
    return _told(tested, float((x - y).mean()), spread, len(x) - 1, (len(x), len(y)), "paired t", confidence)


def _independent(first: Group, second: Group, *, equal_spread: bool, confidence: float) -> TTest | None:
    x, y = _values(first), _values(second)
    if min(len(x), len(y)) < 2 or (_flat(x, x, y) and _flat(y, x, y)):
        return None
    tested = statistics("A t-test").ttest_ind(x, y, equal_var=equal_spread)
    n, m, vx, vy = len(x), len(y), float(x.var(ddof=1)), float(y.var(ddof=1))
    if equal_spread:
        spread, freedom = math.sqrt(((n - 1) * vx + (m - 1) * vy) / (n + m - 2)), float(n + m - 2)
    else:
        # Degrees of freedom of the effect, which are not those of the test: Delacre et al. 2021, equation 16.
        spread = math.sqrt((vx + vy) / 2)
        freedom = (n - 1) * (m - 1) * (vx + vy) ** 2 / ((m - 1) * vx**2 + (n - 1) * vy**2)
    difference = float(x.mean() - y.mean())
    return _told(tested, difference, spread, freedom, (n, m), "student" if equal_spread else "welch", confidence)


def _told(
    tested: Any, difference: float, spread: float, freedom: float, counts: tuple[int, int], method: str, level: float
) -> TTest:
    interval = tested.confidence_interval(level)
    d = difference / spread
    return TTest(
        difference, float(tested.statistic), float(tested.df), float(tested.pvalue), d, d * _unbiasing(freedom), counts,
        method, low=float(interval.low), high=float(interval.high),
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


def _values(group: Group) -> Array:
    values = np.asarray(group, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("a t-test takes numbers only; leave NaN out first, and say how many")
    return values


def adjust(p_values: Sequence[float] | Array, method: str = "holm") -> Array:
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
    if method not in METHODS:
        raise UnknownNameError("correction for many comparisons", method, METHODS)
    given = np.asarray(p_values, dtype=np.float64)
    tested = ~np.isnan(given)
    defined = given[tested]
    if defined.size and (defined.min() < 0 or defined.max() > 1):
        raise ValueError(f"p-values lie between 0 and 1, not {defined.min():g} to {defined.max():g}")
    adjusted = np.full_like(given, np.nan)
    if defined.size:
        adjusted[tested] = METHODS[method](defined)
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


METHODS: dict[str, Callable[[Array], Array]] = {"holm": _holm, "bh": _benjamini_hochberg}
