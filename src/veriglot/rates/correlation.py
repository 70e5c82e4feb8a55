"""Do rates go with something else: size, declared languages, length of response, resourcedness (mFAVA, section 4.2)."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.errors import UnknownNameError
from veriglot.rates.significance import statistics
from veriglot.records import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Values = Sequence[float] | Array

__all__ = ["Correlated", "correlate", "correlation_p"]

COEFFICIENTS = ("pearson", "spearman")
_PERMUTED = 9  # up to so many points every order is tried (362,880 of them)


class Correlated(Interval, frozen=True):
    """A correlation; for fewer than four points without an interval.

    Attributes:
        r: the coefficient, between -1 and 1.
        p: two-sided p-value for no relation.
        points: number of points.
        method: `pearson` or `spearman`.
        interval: how the interval was made: `fisher` or `bootstrap`.
    """

    r: float
    p: float
    points: int
    method: str
    interval: str


def correlate(
    x: Values,
    y: Values,
    *,
    method: str = "pearson",
    confidence: float = 0.95,
    resamples: int = 0,
    seed: int = 0,
) -> Correlated | None:
    """How two values of the same points go together.

    The interval is Fisher's, z = atanh r, with standard error 1/sqrt(n - 3) for Pearson, and with
    sqrt((1 + r^2/2) / (n - 3)) for Spearman (Bonett and Wright 2000). Both need points that are independent of each
    other: the cells of a language x model table are not, its rows and its columns are nearer to it. The p-value is that
    of the t distribution; for Spearman and at most nine points without ties, of every order of the points.

    Args:
        x, y: shape `(n,)`, without NaN.
        method: `pearson` (a straight line) or `spearman` (an order).
        confidence: of the interval, between 0 and 1.
        resamples: more than 0 makes the interval by that many bootstrap resamples of points instead (BCa; Efron 1987),
            for `pearson` only, where Fisher's normal distribution is in doubt and points are many.
        seed: of the resamples.

    Returns:
        None where no correlation is defined: fewer than three points, or one side constant.

    Raises:
        UnknownNameError: no such method.
        ValueError: sides of different lengths, NaN, or `resamples` with `spearman`.
        MissingExtraError: the extra `stats` is not installed.
    """
    if method not in COEFFICIENTS:
        raise UnknownNameError("correlation", method, COEFFICIENTS)
    if resamples and method != "pearson":
        raise ValueError("the bootstrap interval is made for `pearson` only")
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape or np.isnan(first).any() or np.isnan(second).any():
        raise ValueError(f"a correlation takes pairs of numbers, not {first.shape} and {second.shape} or NaN")
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    stats = statistics("A correlation")
    if method == "pearson":
        tested = stats.pearsonr(first, second)
        r, p = float(tested.statistic), float(tested.pvalue)
    else:
        r, p = _spearman(stats, first, second)
    if resamples and len(first) > 3:
        generator = np.random.default_rng(seed)
        resampling = stats.BootstrapMethod(n_resamples=resamples, rng=generator)
        ends = tested.confidence_interval(confidence, resampling)
        return Correlated(r, p, len(first), method, "bootstrap", low=float(ends.low), high=float(ends.high))
    low, high = _fisher(r, len(first), method, confidence)
    return Correlated(r, p, len(first), method, "fisher", low=low, high=high)


def correlation_p(r: float, points: int) -> float:
    """The two-sided p-value of a Pearson correlation that is known as a number only, such as a printed one.

    Args:
        r: between -1 and 1.
        points: at least 3.

    Raises:
        ValueError: `r` or `points` out of range.
        MissingExtraError: the extra `stats` is not installed.
    """
    if not -1 <= r <= 1 or points < 3:
        raise ValueError(f"a correlation lies between -1 and 1 and has three points or more, not {r} of {points}")
    if abs(r) == 1:
        return 0.0
    freedom = points - 2
    t = abs(r) * math.sqrt(freedom / (1 - r * r))
    return float(2 * statistics("A correlation").t.sf(t, freedom))


def _spearman(stats: Any, x: Array, y: Array) -> tuple[float, float]:
    tested = stats.spearmanr(x, y)
    tied = len(np.unique(x)) < len(x) or len(np.unique(y)) < len(y)
    if len(x) > _PERMUTED or tied:
        return float(tested.statistic), float(tested.pvalue)
    ranks = stats.rankdata(y)

    def agreement(moved: Array, axis: int = -1) -> Array:
        # Without ties the coefficient is a line in the sum of products of ranks.
        return np.asarray((moved * ranks).sum(axis=axis))

    ordered = stats.permutation_test(
        (stats.rankdata(x),), agreement, permutation_type="pairings", vectorized=True, n_resamples=np.inf, batch=40_000
    )
    return float(tested.statistic), float(ordered.pvalue)


def _fisher(r: float, points: int, method: str, confidence: float) -> tuple[float | None, float | None]:
    if points < 4:
        return None, None
    if abs(r) >= 1:
        return r, r
    spread = 1.0 if method == "pearson" else 1 + r * r / 2
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(spread / (points - 3))
    return math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach)
