"""Win rates: on how many cells (language pairs, data sets) a system is the best (hat, section 4.3.1).

Every system that reaches the best value of a cell is credited with it, so that the rates of all may sum to more than 1.
Values are compared as they would be printed: hat's win rates follow from its tables of two decimals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Cells = Mapping[str, Mapping[str, float | None]]
    Draws = Mapping[str, Mapping[str, Array]]

__all__ = ["DIGITS", "ScopeMean", "WinRate", "scope_means", "win_rates"]

DIGITS = 2
_LEVEL = 0.95


@dataclass(frozen=True)
class WinRate:
    """How often one system is the best within one scope.

    Attributes:
        scope: name of a group of cells.
        system: its name.
        wins: cells in which no system has a greater value.
        ties: wins that are shared with another system.
        cells: cells of the scope in which any system has a value: what `rate` is a share of.
        played: those of them in which this system has one.
        rate: wins / cells; None where there are no cells.
        low, high: 95% interval over resampled texts of the same cells; None without draws.
    """

    scope: str
    system: str
    wins: int
    ties: int
    cells: int
    played: int
    rate: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ScopeMean:
    """A system's mean over the cells of one scope in which it has a value; `cells` of them, without `left_out`."""

    scope: str
    system: str
    mean: float | None
    cells: int
    left_out: int


def win_rates(
    values: Cells,
    scopes: Mapping[str, Collection[str]] | None = None,
    *,
    digits: int | None = DIGITS,
    greater_is_better: bool = True,
    draws: Draws | None = None,
) -> list[WinRate]:
    """The win rate of every system in every scope.

    Args:
        values: cell to system to value; None or NaN where a system has none there: it cannot win, and the cell counts.
        scopes: name to cells (see `groups.scopes`); None for `all`.
        digits: decimals that values are rounded to before they are compared, so that what a table shows as equal is a
            tie; None to compare them as they are.
        greater_is_better: False for measures such as a false positive rate.
        draws: cell to system to resampled values, shape `(resamples,)`, the same draws for all systems of a cell; for
            intervals. Cells without them count as they are.

    Returns:
        Scopes in the order given, systems in the order in which they first occur.
    """
    sign = 1.0 if greater_is_better else -1.0
    systems = _systems(values)
    tables = {cell: _numbers(row, systems, digits) * sign for cell, row in values.items()}
    found: list[WinRate] = []
    for scope, members in (scopes or {"all": tuple(values)}).items():
        cells = [cell for cell in values if cell in members and not np.isnan(tables[cell]).all()]
        winners = np.array([_winners(tables[cell]) for cell in cells], dtype=bool).reshape(len(cells), len(systems))
        played = sum((~np.isnan(tables[cell]) for cell in cells), np.zeros(len(systems), dtype=np.int64))
        shared = winners & (winners.sum(axis=1, keepdims=True) > 1)
        drawn = None if draws is None else _drawn_rates(cells, tables, draws, systems, digits, sign)
        for place, system in enumerate(systems):
            wins = int(winners[:, place].sum())
            found.append(
                WinRate(
                    scope, system, wins, int(shared[:, place].sum()), len(cells), int(played[place]),
                    wins / len(cells) if cells else None, *_interval(drawn, place),
                )
            )  # fmt: skip
    return found


def scope_means(values: Cells, scopes: Mapping[str, Collection[str]] | None = None) -> list[ScopeMean]:
    """The mean of every system over the cells of every scope, each of which counts the same (hat, Figure 5)."""
    found = []
    for scope, members in (scopes or {"all": tuple(values)}).items():
        cells = [cell for cell in values if cell in members]
        for system in _systems(values):
            given = [values[cell].get(system) for cell in cells]
            known = [value for value in given if value is not None and not np.isnan(value)]
            mean = float(np.mean(known)) if known else None
            found.append(ScopeMean(scope, system, mean, len(known), len(given) - len(known)))
    return found


def _systems(values: Cells) -> list[str]:
    return list(dict.fromkeys(system for row in values.values() for system in row))


def _numbers(row: Mapping[str, float | None], systems: Sequence[str], digits: int | None) -> Array:
    given = [row.get(system) for system in systems]
    numbers = np.array([np.nan if value is None else value for value in given], dtype=np.float64)
    return numbers if digits is None else np.round(numbers, digits)


def _winners(values: Array) -> NDArray[np.bool_]:
    """Which systems have the greatest value; shape `(systems,)` or `(systems, draws)`."""
    filled = np.where(np.isnan(values), -np.inf, values)
    top = filled.max(axis=0)
    best: NDArray[np.bool_] = (filled == top) & (top > -np.inf)
    return best


def _drawn_rates(
    cells: Sequence[str],
    tables: Mapping[str, Array],
    draws: Draws,
    systems: Sequence[str],
    digits: int | None,
    sign: float,
) -> Array | None:
    """Win rates of each draw, shape `(systems, draws)`; None where no cell has draws."""
    sizes = {len(row) for cell in cells for row in draws.get(cell, {}).values()}
    if not sizes:
        return None
    if len(sizes) > 1:
        raise ValueError(f"cells have the same number of draws, not {sorted(sizes)}")
    size = sizes.pop()
    total = np.zeros((len(systems), size))
    for cell in cells:
        given = draws.get(cell)
        if given is None:
            total += _winners(tables[cell])[:, None]
            continue
        rows = np.array([given.get(system, np.full(size, np.nan)) for system in systems], dtype=np.float64)
        total += _winners(sign * (rows if digits is None else np.round(rows, digits)))
    rates: Array = total / len(cells)
    return rates


def _interval(rates: Array | None, place: int) -> tuple[float | None, float | None]:
    if rates is None:
        return None, None
    low, high = np.quantile(rates[place], [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)
