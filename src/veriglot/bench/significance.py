"""Is one system better than another on the same items: the paired bootstrap over texts, corrected for many comparisons.

Both systems are measured on the items that both scored, under the same resamples, and the differences are looked at
draw by draw. The p-value asks how often a difference as large would come up if there were none: resampled differences
are centred first (Riezler and Maxwell 2005, after Noreen 1989). Texts are drawn, not items: sentences of one text, and
one text labelled several times, go wrong together. Matthews' coefficient of marks that are all alike is 0, as in
figures (`bench.drawing`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from veriglot.bench.drawing import bench_draws
from veriglot.bench.fewness import too_few
from veriglot.metrics.bootstrap import percentile
from veriglot.metrics.estimate import mean_of_draws
from veriglot.rates.multiplicity import adjust

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.metrics.items import Items
    from veriglot.metrics.resampling import Resampling

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["Comparison", "Contender", "against", "corrected", "difference"]

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


@dataclass(frozen=True)
class Comparison:
    """A system held against another by one measure.

    Attributes:
        system, baseline: their names.
        measure: one of `item_measures.ITEM_MEASURES`.
        difference: system minus baseline; None where it is undefined.
        low, high: its 95% percentile interval.
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
    low: float | None
    high: float | None
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
    alone = tuple(int(np.count_nonzero(one.items.scored & ~both)) for one in (system, baseline))
    masks = [both] if parts is None else [both & part for part in parts]
    drawn = _difference_draws(system, baseline, measure, resampling, masks)
    common = np.any(masks, axis=0) if masks else both
    clusters = resampling.select(common).clusters()
    found = Comparison(
        *names, measure, None, None, None, None, int(np.count_nonzero(common)), (alone[0], alone[1]), clusters
    )
    if drawn is None or np.isnan(drawn[0]):
        return replace(found, reason=_UNDEFINED)
    if clusters < 2 or len(drawn) < 2:
        return replace(found, difference=float(drawn[0]), reason=_ALONE if clusters < 2 else "no resamples")
    why = too_few(clusters, "an interval and a test")
    if why is not None:
        return replace(found, difference=float(drawn[0]), reason=why)
    low, high, undefined = percentile(drawn[1:])
    gap = f"undefined in {undefined} of {len(drawn) - 1} resamples" if undefined else None
    return replace(found, difference=float(drawn[0]), low=low, high=high, p=_p(drawn), reason=gap)


def against(
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
        correction: `holm`, or `bh` (see `rates.multiplicity`).

    Raises:
        UnknownNameError: no such measure or correction.
    """
    found = [
        difference(one, systems[baseline], measure, resampling, names=(name, baseline), parts=parts)
        for name, one in systems.items()
        if name != baseline
    ]
    return corrected(found, correction)


def corrected(comparisons: Sequence[Comparison], correction: str = "holm") -> list[Comparison]:
    """The same comparisons with p-values corrected for each other; give all that a reader looks at together.

    Raises:
        UnknownNameError: no such correction.
        MissingExtraError: `bh` without the extra `stats`.
    """
    values = np.array([np.nan if one.p is None else one.p for one in comparisons], dtype=np.float64)
    adjusted = adjust(values, correction)
    return [
        replace(one, adjusted=None if np.isnan(p) else float(p), correction=correction)
        for one, p in zip(comparisons, adjusted, strict=True)
    ]


def _difference_draws(
    system: Contender, baseline: Contender, measure: str, resampling: Resampling, masks: Sequence[Mask]
) -> Array | None:
    cells = []
    for mask in masks:
        if not mask.any():
            continue
        kept = resampling.select(mask)
        ours, theirs = (one.select(mask) for one in (system, baseline))
        first, second = (bench_draws(measure, one.items, kept, cut=one.cut)[0] for one in (ours, theirs))
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
