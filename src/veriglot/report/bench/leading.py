"""Who leads a leaderboard, alone or with others, and the place of every system on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.bench.view import number
from veriglot.report.study.numbers import count

if TYPE_CHECKING:
    from veriglot.report.bench.view import Board, Row

__all__ = ["and_list", "headline", "ranks"]


def ranks(board: Board) -> list[int | None]:
    """The place of every row: by wins, then by the mean as it is printed; those equal in both share a place.

    A system without a figure on data that counts has no place.
    """
    found: list[int | None] = []
    held: tuple[int, tuple[float | None, str]] | None = None
    for row in board.rows:
        if row.mean is None:
            found.append(None)
            continue
        key = _standing(row)
        if held is None or key != held[1]:
            held = sum(place is not None for place in found) + 1, key
        found.append(held[0])
    return found


def _standing(row: Row) -> tuple[float | None, str]:
    return (row.win.rate if row.win is not None else None), number(row.mean)


def headline(board: Board, baseline: str | None) -> str:
    """One sentence on a leaderboard in which any system has a figure: who leads, or why nobody does."""
    level, places = f"{board.level.capitalize()}s", ranks(board)
    standing = [row for row in board.rows if row.mean is not None]
    if not standing:
        held = ", ".join(data.name for data in board.data if data.seen)
        return f"{level}: nobody leads: a system was trained on all data that has figures ({held})."
    if len(standing) == 1:
        return f"{level}: {standing[0].system.name} alone has figures that count{_mean(standing)}."
    first = [row for row in standing if _wins(row) == _wins(standing[0])]
    place = next((n for n, row in zip(places, board.rows, strict=True) if row.system.name == baseline), None)
    behind = baseline not in {row.system.name for row in first}
    other = f"; {baseline} is number {place}" if behind and place is not None and place > 1 else ""
    systems = f" ({count(len(board.rows), 'system')})"
    return f"{level}: {_leaders(first, standing, board.measure)}{systems}{other}."


def _leaders(first: list[Row], standing: list[Row], measure: str) -> str:
    names, wins = and_list([row.system.name for row in first]), _won(first, measure)
    best = [row for row in first if _standing(row) == _standing(first[0])]
    if len(first) == 1:
        return f"{names} leads{wins}{_mean(first)}"
    if len(best) == len(standing):
        return f"nobody leads: {names} are equal{wins}{_mean(first)}"
    if len(best) == len(first):
        return f"{names} lead together{wins}{_mean(first)}"
    greatest = and_list([row.system.name for row in best])
    have = "has" if len(best) == 1 else "have"
    if not wins:  # no wins were counted: the mean alone says who leads
        return f"{greatest} {'leads' if len(best) == 1 else 'lead together'}{_mean(best)}"
    return f"{names} lead together{wins}; {greatest} {have} the greatest mean, {_mean(best).removeprefix(', mean ')}"


def _wins(row: Row) -> int | None:
    return row.win.wins if row.win is not None and row.win.rate is not None else None


def _won(rows: list[Row], measure: str) -> str:
    win = rows[0].win
    if win is None or win.rate is None:
        return ""
    each = "each " if len(rows) > 1 else ""
    return f", {each}with the most {measure} in {win.wins} of {win.cells} cells of language and data set"


def _mean(rows: list[Row]) -> str:
    """The mean of rows that have the same one."""
    sets = sorted({len(row.unseen) for row in rows})
    over = count(sets[0], "data set") if len(sets) == 1 else f"{sets[0]} to {sets[-1]} data sets"
    return f", mean {number(rows[0].mean)} over {over}"


def and_list(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
