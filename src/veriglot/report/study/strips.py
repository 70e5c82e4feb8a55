"""Charts whose every row is a row of a table: a label, marks on one common axis, and the figures in words.

Such a chart reads aloud, prints, copies and reflows like the table that it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from veriglot.report.study.markup import Child, Markup, joined, tag

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from veriglot.report.study.axes import Axis

__all__ = ["Strip", "strip_table"]


class Strip(NamedTuple):
    """One row: what it is of, what is drawn, and the figures beside it, one for each column."""

    label: Markup
    marks: Markup
    figures: Sequence[Child]


def strip_table(
    strips: Sequence[Strip],
    axis: Axis,
    *,
    caption: Child,
    heads: Sequence[str],
    tick: Callable[[float], str],
    class_: str = "",
) -> Markup:
    """A table of strips on one axis.

    Args:
        strips: the rows.
        axis: the common axis.
        caption: what the chart shows.
        heads: of the label, the chart and each column of figures.
        tick: how a value of the axis is written.
        class_: further classes of the table.
    """
    grid = joined(tag("line", x1=axis.at(t), x2=axis.at(t), y1="0", y2="100%", class_="grid") for t in axis.ticks)
    rows = [
        tag(
            "tr",
            tag("th", strip.label, scope="row"),
            tag("td", tag("svg", grid, strip.marks, class_="strip", aria_hidden="true"), class_="plot"),
            *(
                tag("td", figure, class_="figure", data_head=head)
                for head, figure in zip(heads[2:], strip.figures, strict=True)
            ),
        )
        for strip in strips
    ]
    foot = tag(
        "tr", tag("td"), tag("td", _ticks(axis, tick), class_="plot"), *(tag("td") for _ in heads[2:]),
        class_="axis", aria_hidden="true",
    )  # fmt: skip
    row = tag("tr", *(tag("th", text, scope="col") for text in heads))
    return tag(
        "table", tag("caption", caption), tag("thead", row), tag("tbody", *rows), tag("tfoot", foot),
        class_=f"strips {class_}".strip(),
    )  # fmt: skip


def _ticks(axis: Axis, tick: Callable[[float], str]) -> Markup:
    labels = [tag("text", tick(t), x=axis.at(t), y="12", class_="tick") for t in axis.ticks]
    return tag("svg", *labels, class_="ticks", aria_hidden="true")
