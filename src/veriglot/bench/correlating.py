"""How scores go with the rates that people found, and with each other.

kang (section 5.1) correlates metrics with the support rate and the unverified rate of annotated sentences, and (section
4.2, Figure 1) metrics with each other, averaged over languages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.errors import UnknownNameError
from veriglot.metrics.agreement.coefficients import kappa
from veriglot.metrics.bootstrap import percentile
from veriglot.metrics.item_measures import CORRELATIONS, ITEM_MEASURES, draws
from veriglot.rates.correlation import correlate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from veriglot.metrics.items import Items
    from veriglot.metrics.resampling import Resampling

    Array = NDArray[np.float64]

__all__ = ["METHODS", "Association", "CorrelationMatrix", "associate", "correlation_matrix"]

METHODS = ("pearson", "spearman", "kappa")
"""How systems are held against each other: kang's, the same of ranks, and Cohen's kappa of verdicts."""

_POINTS = 3  # fewer have no correlation


@dataclass(frozen=True)
class Association:
    """How a system's scores go with a rate that the labels give.

    Attributes:
        measure: one of `item_measures.CORRELATIONS`; its sign makes a good system positive.
        r: between -1 and 1; None where it is undefined.
        low, high: 95% interval over resampled texts.
        p: two-sided p-value for no relation.
        items, clusters: scored items whose rate is known, and texts among them.
        p_method: how `p` was made: `independent` where every item is a text of its own (`rates.correlation`), as
            kang's; `texts` where texts hold several items, which that would take for independent: a normal test of
            atanh r, whose error comes from the resampled texts.
        reason: why there is none.
    """

    measure: str
    r: float | None
    low: float | None
    high: float | None
    p: float | None
    items: int
    clusters: int
    p_method: str | None = None
    reason: str | None = None


def associate(measure: str, items: Items, resampling: Resampling, drawn: Array | None = None) -> Association:
    """A correlation of a system's scores with a rate, its interval and its p-value.

    Args:
        measure: one of `CORRELATIONS`, such as `pearson_support`.
        items: of one system.
        resampling: of the same items.
        drawn: what `item_measures.draws` gives for them, where it is at hand.

    Raises:
        UnknownNameError: no such correlation.
        MissingExtraError: the extra `stats` is not installed.
    """
    if measure not in CORRELATIONS:
        raise UnknownNameError("correlation with a rate", measure, CORRELATIONS)
    kind, _, truth = measure.partition("_")
    rate = items.support if truth == "support" else items.unverified
    known = items.scored & (~np.isnan(rate) if rate is not None else False)
    clusters = resampling.select(known).clusters()
    behind = (int(np.count_nonzero(known)), clusters)
    drawn = draws(measure, items, resampling) if drawn is None else drawn
    if rate is None or np.isnan(drawn[0]) or behind[0] < _POINTS:
        return Association(measure, None, None, None, None, *behind, reason=ITEM_MEASURES[measure].why)
    low, high, _ = percentile(drawn[1:])
    if clusters < behind[0]:
        return Association(measure, float(drawn[0]), low, high, _bootstrap_p(drawn), *behind, p_method="texts")
    found = correlate(-items.badness[known] if truth == "support" else items.badness[known], rate[known], method=kind)
    p = found.p if found is not None else None
    return Association(measure, float(drawn[0]), low, high, p, *behind, p_method="independent")


def _bootstrap_p(drawn: Array) -> float | None:
    """A normal test of atanh r, with the standard error that resampled texts give it."""
    spread = np.arctanh(np.clip(drawn[1:][~np.isnan(drawn[1:])], -1 + 1e-12, 1 - 1e-12))
    if len(spread) < 2:
        return None
    error = float(spread.std(ddof=1))
    if error <= 0:
        return None
    z = abs(math.atanh(min(max(float(drawn[0]), -1 + 1e-12), 1 - 1e-12))) / error
    return math.erfc(z / math.sqrt(2))


@dataclass(frozen=True)
class CorrelationMatrix:
    """Correlations of systems with each other, averaged over cells (languages).

    Attributes:
        systems: their names, in the order of rows and columns.
        r: mean of the cells' correlations, `(k, k)`; NaN where no cell has one, 1 on the diagonal.
        cells: number of cells behind each mean.
        largest_p: the greatest p-value among them: below 0.05 where every cell's correlation is significant.
        method: of `METHODS`.
    """

    systems: tuple[str, ...]
    r: Array
    cells: NDArray[np.int64]
    largest_p: Array
    method: str


def correlation_matrix(
    scores: Mapping[str, Mapping[str, Array]], *, method: str = "pearson", systems: tuple[str, ...] | None = None
) -> CorrelationMatrix:
    """Correlate systems with each other in every cell, and average (kang, Figure 1).

    Args:
        scores: cell to system to its badness (greater is worse) of the cell's items, shape `(n,)`, NaN where it gave
            none. Systems of a cell are over the same items; each pair is correlated on the items that both scored.
        method: of `METHODS`; for `kappa` the numbers are verdicts, 1 and 0, and there is no p-value.
        systems: the order; None for the order of first occurrence.

    Raises:
        UnknownNameError: no such method.
        ValueError: systems of a cell with different numbers of items.
        MissingExtraError: the extra `stats` is not installed.
    """
    names = systems or tuple(dict.fromkeys(name for row in scores.values() for name in row))
    size = len(names)
    total, count, largest = (
        np.zeros((size, size)),
        np.zeros((size, size), dtype=np.int64),
        np.full((size, size), np.nan),
    )
    for row in scores.values():
        for i, first in enumerate(names):
            for j in range(i + 1, size):
                if first not in row or names[j] not in row:
                    continue
                found = _pair(row[first], row[names[j]], method)
                if found is None:
                    continue
                total[i, j] += found[0]
                count[i, j] += 1
                largest[i, j] = np.fmax(largest[i, j], found[1])
    mean = np.divide(total, count, out=np.full((size, size), np.nan), where=count > 0)
    low = np.tril_indices(size, -1)
    for table in (mean, count, largest):
        table[low] = table.T[low]
    np.fill_diagonal(mean, 1.0)
    for place, name in enumerate(names):
        count[place, place] = sum(name in row for row in scores.values())
    return CorrelationMatrix(names, mean, count, largest, method)


def _pair(first: Array, second: Array, method: str) -> tuple[float, float] | None:
    if len(first) != len(second):
        raise ValueError(f"systems of one cell are over the same items, not {len(first)} and {len(second)}")
    known = ~np.isnan(first) & ~np.isnan(second)
    if method == "kappa":
        pairs = (2 * first[known] + second[known]).astype(np.int64)
        value = float(kappa(np.bincount(pairs, minlength=4).reshape(2, 2).astype(np.float64)))
        return None if math.isnan(value) else (value, math.nan)
    found = correlate(first[known], second[known], method=method)
    return None if found is None else (found.r, found.p)
