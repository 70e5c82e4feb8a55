"""Unweighted means over cells, as in mFAVA's Figure 4: each language or model counts the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.records import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Mean", "average", "column_averages", "row_averages"]


class Mean(Interval, frozen=True):
    """A mean over cells, with its interval over exactly these cells (none without draws).

    Attributes:
        mean: of the cells that have a value; None where none has.
        sd: their sample standard deviation (ddof 1): how much the cells differ, not how sure the mean is. None for
            fewer than two.
        cells: cells that the mean is of.
        left_out: cells without a value.
    """

    mean: float | None
    sd: float | None
    cells: int
    left_out: int


def average(values: Sequence[float] | Array, draws: Array | None = None, *, confidence: float = 0.95) -> Mean:
    """The mean of cells, with its standard deviation and interval.

    Args:
        values: rates, shape `(cells,)`; NaN for a cell that has none, or that shall not count (unreliable).
        draws: draws of each cell's estimate, shape `(cells, draws)`. Draw number b of cells that share an error
            profile must come from the same draw of the profile: its error then stays in the mean, where independent
            draws would average it away. Rows of cells without a value are not looked at.
        confidence: of the interval, between 0 and 1.

    Returns:
        The interval speaks of these cells. It does not say what further languages or models would give: `sd` does.

    Raises:
        ValueError: `draws` of another number of cells.
    """
    rates = np.asarray(values, dtype=np.float64)
    defined = ~np.isnan(rates)
    cells = int(defined.sum())
    left_out = len(rates) - cells
    if draws is not None and len(draws) != len(rates):
        raise ValueError(f"{len(rates)} cells, but draws of {len(draws)}")
    if not cells:
        return Mean(None, None, 0, left_out)
    chosen = rates[defined]
    sd = float(chosen.std(ddof=1)) if cells > 1 else None
    low, high = _interval(draws[defined], confidence) if draws is not None else (None, None)
    return Mean(float(chosen.mean()), sd, cells, left_out, low=low, high=high)


def _interval(draws: Array, confidence: float) -> tuple[float | None, float | None]:
    means = draws.mean(axis=0)
    defined = means[np.isfinite(means)]
    if not defined.size:
        return None, None
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def row_averages(values: Array, draws: Array | None = None, *, confidence: float = 0.95) -> list[Mean]:
    """The mean of each row of `values`, shape `(rows, columns)`; `draws` of shape `(rows, columns, draws)`."""
    return [
        average(row, None if draws is None else draws[index], confidence=confidence) for index, row in enumerate(values)
    ]


def column_averages(values: Array, draws: Array | None = None, *, confidence: float = 0.95) -> list[Mean]:
    """The mean of each column of `values`, shape `(rows, columns)`; `draws` of shape `(rows, columns, draws)`."""
    swapped = None if draws is None else np.swapaxes(draws, 0, 1)
    return row_averages(np.asarray(values).T, swapped, confidence=confidence)
