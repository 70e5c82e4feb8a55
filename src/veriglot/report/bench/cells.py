"""How figures stand in the tables of the page: value, interval, ground of heat, and the number that sorts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.bench.view import SEEN, ends, number, win_ends
from veriglot.report.study.grids import scrolled
from veriglot.report.study.markup import Markup, tag

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.bench.results import BenchFigure, BenchWin
    from veriglot.report.bench.grids import Grid
    from veriglot.report.study.markup import Child

__all__ = ["absent", "figure_cell", "mean_cell", "plain_table", "shade", "sortable", "win_cell"]

_STEPS = 10
_LONG = 48  # characters from which a cell may break


def shade(value: float) -> str:
    """The class of the ground behind a figure: 0 and less is palest, 1 darkest."""
    return f"heat-{min(max(int(value * _STEPS), 0), _STEPS - 1)}"


def figure_cell(figure: BenchFigure | None) -> Markup:
    """A figure on its ground; its title says how many items are behind it."""
    if figure is None or figure.value is None:
        return absent(figure.reason if figure is not None else None)
    behind = f"{figure.items:,} items of {figure.clusters:,} texts, {figure.positives:,} positive"
    if figure.coverage < 1.0:
        behind += f"; coverage {100 * figure.coverage:.0f}%"
    return tag(
        "td",
        tag("b", number(figure.value) + (SEEN if figure.seen else "")),
        tag("span", ends(figure.low, figure.high, figure.clusters) or "no interval", class_="interval"),
        class_=f"heat-cell {shade(figure.value)}{' seen' if figure.seen else ''}",
        data_value=repr(figure.value),
        title="; ".join(part for part in (behind, figure.reason) if part),
    )


def absent(why: str | None = None) -> Markup:
    """Where there is no figure."""
    return tag("td", tag("span", "–", class_="absent"), class_="number", data_value="", title=why)


def mean_cell(value: float | None, of: int) -> Markup:
    """A mean over data sets, and over how many."""
    if value is None:
        return absent()
    more = tag("span", f"of {of}", class_="more")
    return tag("td", tag("b", number(value)), more, class_="number", data_value=repr(value))


def win_cell(win: BenchWin | None, texts: int) -> Markup:
    """A win rate with its interval, which is over so many texts."""
    if win is None or win.rate is None:
        return absent()
    spread = win_ends(win, texts)
    more = f"{win.wins} of {win.cells}{f', {win.ties} tied' if win.ties else ''}"
    return tag(
        "td",
        tag("b", f"{100 * win.rate:.0f}%"),
        tag("span", spread, class_="interval") if spread else None,
        tag("span", more, class_="more"),
        class_="number",
        data_value=repr(win.rate),
        title=f"it has figures in {win.played} of {win.cells} cells",
    )


def sortable(name: str, heads: Sequence[str], rows: Iterable[tuple[str, Sequence[Markup]]]) -> Markup:
    """A table that sorts by its heads.

    Args:
        name: the caption.
        heads: of the columns; the first names the rows.
        rows: name of the row, and its cells.
    """
    head = tag("tr", *(tag("th", text, scope="col") for text in heads))
    lines = [tag("tr", tag("th", first, scope="row"), *cells) for first, cells in rows]
    table = tag("table", tag("caption", name), tag("thead", head), tag("tbody", *lines), class_="plain board sortable")
    return scrolled(table, name)


def plain_table(grid: Grid) -> Markup:
    """A grid of text as a table that sorts."""
    head = tag("tr", *(tag("th", text, scope="col") for text in grid.heads))
    lines = [tag("tr", tag("th", row[0], scope="row"), *map(_text, row[1:])) for row in grid.rows]
    table = tag("table", tag("caption", grid.title), tag("thead", head), tag("tbody", *lines), class_="plain sortable")
    return scrolled(table, grid.title)


def _text(text: Child) -> Markup:
    return tag("td", text, class_="long" if text is not None and len(text) > _LONG else None)
