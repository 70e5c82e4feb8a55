"""Systems held against each other on the same items: correlations, the paired bootstrap over texts, corrected p-values.

Both systems are measured on the items that both scored, under the same resamples, and the differences are looked at
draw by draw. The p-value asks how often a difference as large would come up if there were none: resampled differences
are centred first (Riezler and Maxwell 2005, after Noreen 1989). Texts are drawn, not items: sentences of one text, and
one text labelled several times, go wrong together. Matthews' coefficient of marks that are all alike is 0, as in
figures (`bench_draws`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from veriglot.errors import UnknownNameError
from veriglot.metrics.agreement import kappa
from veriglot.metrics.estimate import FEWEST_TEXTS, mean_of_draws, percentile, too_few
from veriglot.metrics.measures import CORRELATIONS, ITEM_MEASURES, draws
from veriglot.rates.significance import adjust, correlate
from veriglot.records import Interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.metrics.estimate import ClusteredEstimate, Resampling
    from veriglot.metrics.measures import Items

__all__ = [
    "FEWEST_TEXTS",
    "METHODS",
    "SURE_TEXTS",
    "Contender",
    "associate",
    "bench_draws",
    "correct_p_values",
    "correlation_matrix",
    "difference",
    "few",
    "too_few",
    "without_unsure_interval",
]


# How scores go with the rates that people found, and with each other.
#
# Kang et al. (section 5.1) correlates metrics with the support rate and the unverified rate of annotated sentences, and
# (section 4.2, Figure 1) metrics with each other, averaged over languages.


METHODS = ("pearson", "spearman", "kappa")
"""How systems are held against each other: Kang et al.'s, the same of ranks, and Cohen's kappa of verdicts."""

_POINTS = 3  # fewer have no correlation


class Association(Interval, frozen=True):
    """How a system's scores go with a rate that the labels give.

    Attributes:
        measure: one of `items.CORRELATIONS`; its sign makes a good system positive.
        r: between -1 and 1; None where it is undefined.
        p: two-sided p-value for no relation.
        items, clusters: scored items whose rate is known, and texts among them.
        p_method: how `p` was made: `independent` where every item is a text of its own (`rates.correlation`), as
            Kang et al.'s; `texts` where texts hold several items, which that would take for independent: a normal test
            of atanh r, whose error comes from the resampled texts.
        reason: why there is none.
    """

    measure: str
    r: float | None
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
        drawn: what `items.draws` gives for them, where it is at hand.

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
        return Association(measure, None, None, *behind, reason=ITEM_MEASURES[measure].why)
    low, high, _ = percentile(drawn[1:])
    if clusters < behind[0]:
        return Association(measure, float(drawn[0]), _bootstrap_p(drawn), *behind, p_method="texts", low=low, high=high)
    tested = correlate(-items.badness[known] if truth == "support" else items.badness[known], rate[known], method=kind)
    p = tested.p if tested is not None else None
    return Association(measure, float(drawn[0]), p, *behind, p_method="independent", low=low, high=high)


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
    """Correlate systems with each other in every cell, and average (Kang et al., Figure 1).

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
                tested = _pair(row[first], row[names[j]], method)
                if tested is None:
                    continue
                total[i, j] += tested[0]
                count[i, j] += 1
                largest[i, j] = np.fmax(largest[i, j], tested[1])
    mean = np.divide(total, count, out=np.full((size, size), np.nan), where=count > 0)
    low = np.tril_indices(size, -1)
    for table in (mean, count, largest):
        table[low] = table.T[low]
    np.fill_diagonal(mean, 1.0)
    for index, name in enumerate(names):
        count[index, index] = sum(name in row for row in scores.values())
    return CorrelationMatrix(names, mean, count, largest, method)


def _pair(first: Array, second: Array, method: str) -> tuple[float, float] | None:
    if len(first) != len(second):
        raise ValueError(f"systems of one cell are over the same items, not {len(first)} and {len(second)}")
    known = ~np.isnan(first) & ~np.isnan(second)
    if method == "kappa":
        pairs = (2 * first[known] + second[known]).astype(np.int64)
        value = float(kappa(np.bincount(pairs, minlength=4).reshape(2, 2).astype(np.float64)))
        return None if math.isnan(value) else (value, math.nan)
    tested = correlate(first[known], second[known], method=method)
    return None if tested is None else (tested.r, tested.p)


# The draws of a measure as the bench takes them: one rule for figures, win rates and comparisons.
#
# Where a threshold marks everything or nothing while items of both classes are there, Matthews' coefficient is 0 (as
# scikit-learn has it) and not undefined: a system must not be averaged, or compared, over the languages alone in which
# its threshold parts anything. The rule holds in each resample by itself; where a resample holds one class of items
# alone, the coefficient stays undefined. `metrics.measures` and `veriglot evaluate` keep to the definition and
# call both undefined.


def bench_draws(
    name: str, items: Items, resampling: Resampling, *, cut: float | Array | None = None
) -> tuple[Array, bool]:
    """The draws of a measure, and whether the rule above made the value of the data itself.

    Arguments and errors are those of `metrics.measures.draws`; the draws have shape `(1 + resamples,)`.
    """
    drawn = draws(name, items, resampling, cut=cut)
    undefined = np.isnan(drawn)
    if name != "mcc" or not undefined.any():
        return drawn, False
    recall, fpr = (draws(other, items, resampling, cut=cut) for other in ("recall", "fpr"))
    alike = undefined & ~np.isnan(recall) & ~np.isnan(fpr)  # these are undefined where a class has no item
    return np.where(alike, 0.0, drawn), bool(alike[0])


# How many texts an interval takes: under five there is none, under thirty it says less than it seems to.
#
# `benchmarks/figure_intervals.py` measured how often intervals hold the truth on 30 texts and more, see
# benchmarks/figure_intervals.md; the least number is the one that the agreement of annotators has.


SURE_TEXTS = 30
"""From here on intervals and tests hold about as often as they say."""


def few(texts: int) -> bool:
    """Whether there is an interval that is not to be believed."""
    return FEWEST_TEXTS <= texts < SURE_TEXTS


def without_unsure_interval(estimate: ClusteredEstimate) -> ClusteredEstimate:
    """Without an interval where too few texts were drawn from."""
    why = too_few(estimate.clusters)
    if why is None or estimate.low is None:
        return estimate
    reason = f"{estimate.reason}; {why}" if estimate.reason else why
    return replace(estimate, low=None, high=None, reason=reason)


if TYPE_CHECKING:
    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]


_ALONE = "fewer than two texts in common"
_UNDEFINED = "the measure is undefined for one of them on the items that both scored"


@dataclass(frozen=True)
class Contender:
    """A system on a data set.

    Attributes:
        items: what it said.
        cut: the badness from which items are marked, where a measure needs that: one for all items, or one for each,
            shape `(n,)`, where every language has its own.
    """

    items: Items
    cut: float | Array | None = None

    def select(self, mask: Mask) -> Contender:
        """The system on some of the items."""
        cut = self.cut[mask] if isinstance(self.cut, np.ndarray) else self.cut
        return Contender(self.items.select(mask), cut)


class Comparison(Interval, frozen=True):
    """A system held against another by one measure.

    Attributes:
        system, baseline: their names.
        measure: one of `items.ITEM_MEASURES`.
        difference: system minus baseline; None where it is undefined.
        p: two-sided p-value, by the centred paired bootstrap; it cannot fall below 1 / (1 + resamples).
        adjusted: `p` corrected for the comparisons that stand beside it; None before that.
        items: items that both scored.
        left_out: items that only the system, and only the baseline, scored: they are in neither's figure here.
        clusters: texts among the common items.
        correction: the name of the correction, where there was one.
        reason: why there is no difference or no p-value.
    """

    system: str
    baseline: str
    measure: str
    difference: float | None
    p: float | None
    items: int
    left_out: tuple[int, int]
    clusters: int
    adjusted: float | None = None
    correction: str | None = None
    reason: str | None = None


def difference(
    system: Contender,
    baseline: Contender,
    measure: str,
    resampling: Resampling,
    *,
    names: tuple[str, str] = ("system", "baseline"),
    parts: Sequence[Mask] | None = None,
) -> Comparison:
    """Hold a system against another on the items that both scored.

    Args:
        system, baseline: over the same items in the same order.
        measure: one of `ITEM_MEASURES`.
        resampling: of these items; drawn within languages where they are of several.
        names: of the two.
        parts: masks of the cells (languages) that each count the same, shape `(n,)` each: the difference is then of
            the means over the cells where both are defined. None to measure all items together.

    Raises:
        UnknownNameError: no such measure.
        UsageError: a measure at a threshold, for a system without one.
        ValueError: items that do not line up.
    """
    if len(system.items) != len(baseline.items):
        raise ValueError(f"{len(system.items)} items cannot be held against {len(baseline.items)}")
    both = system.items.scored & baseline.items.scored
    alone = tuple(int(np.count_nonzero(contender.items.scored & ~both)) for contender in (system, baseline))
    masks = [both] if parts is None else [both & part for part in parts]
    drawn = _difference_draws(system, baseline, measure, resampling, masks)
    common = np.any(masks, axis=0) if masks else both
    clusters = resampling.select(common).clusters()
    result = Comparison(*names, measure, None, None, int(np.count_nonzero(common)), (alone[0], alone[1]), clusters)
    if drawn is None or np.isnan(drawn[0]):
        return replace(result, reason=_UNDEFINED)
    if clusters < 2 or len(drawn) < 2:
        return replace(result, difference=float(drawn[0]), reason=_ALONE if clusters < 2 else "no resamples")
    why = too_few(clusters, "an interval and a test")
    if why is not None:
        return replace(result, difference=float(drawn[0]), reason=why)
    low, high, undefined = percentile(drawn[1:])
    gap = f"undefined in {undefined} of {len(drawn) - 1} resamples" if undefined else None
    return replace(result, difference=float(drawn[0]), low=low, high=high, p=_p(drawn), reason=gap)


def compare_with_baseline(
    baseline: str,
    systems: Mapping[str, Contender],
    measure: str,
    resampling: Resampling,
    *,
    parts: Sequence[Mask] | None = None,
    correction: str = "holm",
) -> list[Comparison]:
    """Hold every other system against one, with p-values corrected for all of them together.

    Args:
        baseline: its name among `systems`.
        systems: name to what it said; all over the same items.
        measure, resampling, parts: see `difference`.
        correction: `holm`, or `bh` (see `rates.adjust`).

    Raises:
        UnknownNameError: no such measure or correction.
    """
    comparisons = [
        difference(system, systems[baseline], measure, resampling, names=(name, baseline), parts=parts)
        for name, system in systems.items()
        if name != baseline
    ]
    return correct_p_values(comparisons, correction)


def correct_p_values(comparisons: Sequence[Comparison], correction: str = "holm") -> list[Comparison]:
    """The same comparisons with p-values corrected for each other; give all that a reader looks at together.

    Raises:
        UnknownNameError: no such correction.
        MissingExtraError: `bh` without the extra `stats`.
    """
    values = np.array(
        [np.nan if comparison.p is None else comparison.p for comparison in comparisons], dtype=np.float64
    )
    adjusted = adjust(values, correction)
    return [
        replace(comparison, adjusted=None if np.isnan(p) else float(p), correction=correction)
        for comparison, p in zip(comparisons, adjusted, strict=True)
    ]


def _difference_draws(
    system: Contender, baseline: Contender, measure: str, resampling: Resampling, masks: Sequence[Mask]
) -> Array | None:
    cells = []
    for mask in masks:
        if not mask.any():
            continue
        resamples = resampling.select(mask)
        candidate, reference = (contender.select(mask) for contender in (system, baseline))
        first, second = (
            bench_draws(measure, contender.items, resamples, cut=contender.cut)[0]
            for contender in (candidate, reference)
        )
        cells.append(first - second)
    return mean_of_draws(cells) if cells else None


def _p(drawn: Array) -> float:
    """How often a centred resampled difference is as large as the one that was seen, either way."""
    resampled = drawn[1:][~np.isnan(drawn[1:])]
    if not len(resampled):
        return 1.0
    centred = np.abs(resampled - resampled.mean())
    reached = np.count_nonzero(centred >= abs(drawn[0]) - 1e-12)
    return float((1 + reached) / (1 + len(resampled)))
