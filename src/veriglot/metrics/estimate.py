"""A number with what stands behind it: its interval, how many items and texts, and what chance alone would give."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.metrics.bootstrap import LEVEL, percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Estimate", "estimated", "mean_of_draws"]

_TOO_FEW = "one text: no interval"


class Estimate(NamedTuple):
    """One measured number.

    Attributes:
        value: the number; None where it is undefined.
        low, high: its 95% percentile interval over resampled texts; None where there is none.
        items: scored and labelled items behind it.
        positives: how many of them are positive (non-factual, unless the measure says otherwise).
        clusters: texts among them; the bootstrap draws these.
        chance: what a system that knows nothing would get; None where that depends on how much it marks.
        reason: why the value or the interval is missing, or what to know about it.
    """

    value: float | None
    low: float | None
    high: float | None
    items: int
    positives: int
    clusters: int
    chance: float | None = None
    reason: str | None = None


def estimated(
    draws: Array,
    *,
    items: int,
    positives: int,
    clusters: int,
    why: str,
    chance: float | None = None,
    level: float = LEVEL,
) -> Estimate:
    """The estimate that draws make.

    Args:
        draws: the data in draw 0, resamples after it, shape `(1 + resamples,)`; NaN where undefined.
        items, positives, clusters, chance: see `Estimate`.
        why: the reason that stands beside an undefined value.
        level: of the interval, between 0 and 1.
    """
    if np.isnan(draws[0]):
        return Estimate(None, None, None, items, positives, clusters, chance, why)
    value = float(draws[0])
    if clusters < 2 or len(draws) < 2:
        return Estimate(value, None, None, items, positives, clusters, chance, _TOO_FEW if clusters < 2 else None)
    low, high, undefined = percentile(draws[1:], level)
    gap = f"undefined in {undefined} of {len(draws) - 1} resamples" if undefined else None
    return Estimate(value, low, high, items, positives, clusters, chance, gap)


def mean_of_draws(parts: Sequence[Array]) -> Array:
    """The mean over cells, draw by draw, of those that are defined in the data; NaN where none is.

    Args:
        parts: one array of shape `(1 + resamples,)` a cell. A resample in which one of the cells that count is
            undefined is undefined.
    """
    if not parts:
        raise ValueError("a mean is taken over one cell or more")
    defined = [part for part in parts if not np.isnan(part[0])]
    if not defined:
        return np.full(len(parts[0]), np.nan)
    mean: Array = np.mean(defined, axis=0)
    return mean
