"""Plain tables of figures: a head, rows, a name for screen readers, and room to scroll on a narrow screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.study.markup import Child, Markup, tag

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["grid", "number", "scrolled"]


def grid(
    name: str, heads: Sequence[Child], rows: Iterable[Sequence[Child]], *, numbers_from: int = 99, class_: str = "",
    tall: bool = False,
) -> Markup:  # fmt: skip
    """A table whose first column names its rows.

    Args:
        name: the caption.
        heads: of the columns.
        rows: the cells of each row; a cell that is a `td` already stays as it is.
        numbers_from: the first column whose figures stand to the right.
        class_: further classes of the table.
        tall: whether it may be longer than a screen, and then scrolls under its head.
    """
    kinds = ["number" if place >= numbers_from else None for place in range(len(heads))]
    head = tag("tr", *(tag("th", text, scope="col", class_=kind) for text, kind in zip(heads, kinds, strict=True)))
    lines = [
        tag("tr", tag("th", row[0], scope="row"), *map(_cell, row[1:], kinds[1:]))
        for row in rows
    ]  # fmt: skip
    table = tag(
        "table", tag("caption", name), tag("thead", head), tag("tbody", *lines), class_=f"plain {class_}".strip()
    )
    return scrolled(table, name, tall=tall)


def number(text: Child, *, watch: bool = False) -> Markup:
    """A figure in a cell of its own; `watch` marks one that deserves a look."""
    return tag("td", text, class_="number watch" if watch else "number")


def scrolled(table: Markup, name: str, *, tall: bool = False) -> Markup:
    """A table in a region that scrolls, also by keys."""
    return tag(
        "div", table, class_="scroller tall" if tall else "scroller", tabindex="0", role="region", aria_label=name
    )


def _cell(child: Child, kind: str | None) -> Markup:
    if isinstance(child, Markup) and child.startswith("<td"):
        return child
    return tag("td", child, class_=kind)
