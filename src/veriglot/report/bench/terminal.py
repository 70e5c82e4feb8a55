"""A bench on the terminal: who leads, the leaderboards, and what was not judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from veriglot.report.bench.grids import answer_grids, board_grid, correlation_grids, missing_grid, undefined_grid
from veriglot.report.bench.view import View
from veriglot.report.bench.words import findings
from veriglot.report.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

    from veriglot.bench.results import BenchResults
    from veriglot.report.bench.grids import Grid

__all__ = ["render_bench"]

_PLAIN_WIDTH = 200
"""Columns where no terminal says how many there are."""
_COLUMNS = 5  # data sets side by side; more become further tables


def render_bench(results: BenchResults, console: Console) -> None:
    """Print a bench.

    Args:
        results: of it.
        console: where to print; a pipe has 200 columns.
    """
    view = View(results)
    if not console.is_terminal:  # it says 80 columns, which is a guess
        console.width = max(console.width, _PLAIN_WIDTH)
    console.print(Text(printable(results.title), style="bold"))
    for text in findings(view):
        console.print(Text(f"  {printable(text)}"))
    for level in view.levels:
        console.print()
        _print(board_grid(view.board(level)), console)
        undefined = undefined_grid(view, level)
        if undefined.rows:
            console.print()
            _print(undefined, console)
    bare = [level for level in results.measures if level not in view.levels]
    for grid in (*answer_grids(view), *(one for level in bare for one in correlation_grids(view, level))):
        console.print()
        _print(grid, console)
    missing = missing_grid(view)
    if missing.rows:
        console.print()
        _print(missing, console)


def _print(grid: Grid, console: Console) -> None:
    """A table, its columns in groups where there are many."""
    console.print(Text(printable(grid.title), style="bold"))
    last = len(grid.heads)
    for start in range(1, last, _COLUMNS):
        places = [0, *range(start, min(start + _COLUMNS, last))]
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for place in places:
            table.add_column(Text(printable(grid.heads[place])), overflow="fold")
        for row in grid.rows:
            table.add_row(*(Text(printable(row[place])) for place in places))
        console.print(table)
