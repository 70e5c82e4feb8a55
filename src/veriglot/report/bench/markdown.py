"""A bench as one page of Markdown: every leaderboard, what stands behind it, and how it was made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.bench.grids import (
    answer_grids,
    board_grid,
    comparison_grid,
    correlation_grids,
    cost_grid,
    data_grid,
    language_grid,
    measure_grid,
    missing_grid,
    statistics_grid,
    undefined_grid,
    win_grid,
)  # fmt: skip
from veriglot.report.bench.type_grids import HOW_TO_READ, type_grid, type_summary, typed, untyped_grid
from veriglot.report.bench.words import findings, reading
from veriglot.report.study.matrix import markdown_escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.report.bench.grids import Grid
    from veriglot.report.bench.view import View

__all__ = ["markdown_report"]


def markdown_report(view: View) -> str:
    """The page."""
    lines = [f"# {markdown_escaped(view.results.title)}", "", *_list(findings(view)), "", "## How to read it", ""]
    lines += [*_list(reading(view)), ""]
    for level in view.levels:
        lines += _level(view, level)
    lines += [*_unlabelled(view), *_types(view)]
    lines += ["## Against the baseline", "", *_table(comparison_grid(view))] if view.results.comparisons else []
    lines += ["## Data", "", *_table(data_grid(view))]
    counted = statistics_grid(view)
    lines += _table(counted, titled=True) if counted.rows else []
    lines += ["## Cost and coverage", "", *_table(cost_grid(view))]
    missing = missing_grid(view)
    if missing.rows:
        lines += [f"## {missing.title}", "", *_table(missing)]
    lines += ["## Systems", ""]
    for system in view.results.systems:
        what = system.signature or f"unavailable: {system.unavailable}"
        lines.append(f"- **{markdown_escaped(system.name)}** ({system.kind}): {_code(what)}")
    return "\n".join([*lines, "", f"Signature: {_code(view.results.signature)}", ""])


def _level(view: View, level: str) -> Iterator[str]:
    board = view.board(level)
    yield f"## {level.capitalize()}s"
    yield ""
    yield f"{markdown_escaped(board.title)}."
    yield ""
    yield from _table(board_grid(board))
    undefined = undefined_grid(view, level)
    if undefined.rows:
        yield from _table(undefined, titled=True)
    for data in board.data:
        yield f"### {markdown_escaped(data.name)}, {level}s"
        yield ""
        yield from _table(measure_grid(view, level, data.name), titled=True)
        own = measure_grid(view, level, data.name, at="own")
        if view.own(level) and own.rows:
            yield from _table(own, titled=True)
        if len(data.languages) > 1:
            yield from _table(language_grid(view, level, data.name), titled=True)
    yield from _table(win_grid(view, level), titled=True)
    for grid in correlation_grids(view, level):
        yield from _table(grid, titled=True)


def _unlabelled(view: View) -> Iterator[str]:
    """Of data without labels: what systems say, and how it goes together where no leaderboard shows that."""
    if not view.results.answers:
        return
    yield from ("## Without labels", "")
    related = [
        grid for level in view.results.measures if level not in view.levels for grid in correlation_grids(view, level)
    ]
    for grid in (*answer_grids(view), *related):
        yield from _table(grid, titled=True)


def _types(view: View) -> Iterator[str]:
    if not view.confusions:
        return
    yield from ("## Which types are taken for which", "", markdown_escaped(HOW_TO_READ), "")
    for one in typed(view):
        yield from _table(type_grid(one), titled=True)
        yield markdown_escaped(type_summary(one))
        yield ""
    missing = untyped_grid(view)
    if missing.rows:
        yield from _table(missing, titled=True)


def _table(grid: Grid, *, titled: bool = False) -> Iterator[str]:
    if titled:
        yield f"{markdown_escaped(grid.title)}:"
        yield ""
    yield _row(grid.heads)
    yield _row(["---"] * len(grid.heads), escaped=False)
    for row in grid.rows:
        yield _row(row)
    yield ""


def _row(cells: tuple[str, ...] | list[str], *, escaped: bool = True) -> str:
    return f"| {' | '.join(markdown_escaped(cell) if escaped else cell for cell in cells)} |"


def _list(words: list[str]) -> Iterator[str]:
    return (f"- {markdown_escaped(text)}" for text in words)


def _code(text: str) -> str:
    return f"`{' '.join(text.replace('`', '').split())}`"
