"""Bars: of counts by type and category as rows of a table, of years of birth as a histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from veriglot.report.study.axes import Axis, axis_for
from veriglot.report.study.markup import Child, Markup, bdi, joined, tag
from veriglot.report.study.strips import Strip, strip_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.build.diversity import Births, Spread

__all__ = ["Bar", "bar_table", "birth_chart", "spread_chart", "year_name"]

_SHOWN = 20  # categories; those that are rarer are one bar
_GAP = 0.12  # of a span of years, between two bars


class Bar(NamedTuple):
    """A bar: what it is of, its parts one after the other (length and colour slot), and figures beside it."""

    label: Child
    parts: Sequence[tuple[float, str | None, str]]
    figures: Sequence[Child]


def bar_table(bars: Sequence[Bar], *, caption: Child, heads: Sequence[str]) -> Markup:
    """Bars on one axis from zero, each with its figures.

    Args:
        bars: the rows.
        caption: what they show.
        heads: of the labels, the bars and each column of figures.
    """
    axis = axis_for([sum(length for length, _, _ in bar.parts) for bar in bars])
    strips = [Strip(joined([bar.label]), _parts(bar, axis), bar.figures) for bar in bars]
    return strip_table(strips, axis, caption=caption, heads=heads, tick=axis.plain, class_="stacked")


def _parts(bar: Bar, axis: Axis) -> Markup:
    drawn, start = [], 0.0
    for length, slot, name in bar.parts:
        if length:
            drawn.append(
                tag(
                    "rect",
                    tag("title", f"{name}: {length:,.10g}"),
                    x=axis.at(start),
                    width=axis.length(start, start + length),
                    y="18%",
                    height="64%",
                    class_=f"bar-part slot-{slot}" if slot else "bar-part count",
                )
            )
        start += length
    return joined(drawn)


def spread_chart(spread: Spread, caption: str, head: str) -> Markup:
    """The people of each category; those that are rarest are together in the last bar."""
    shown = spread.categories[: _SHOWN + 1 if len(spread.categories) == _SHOWN + 1 else _SHOWN]
    bars = [
        Bar(bdi(one.label), [(one.people, None, one.label)], (f"{one.people:,}", _share(one.people, spread.known)))
        for one in shown
    ]
    rest = spread.categories[len(shown) :]
    chart = bar_table(bars, caption=caption, heads=(head, "People", "people", "share"))
    if not rest:
        return chart
    most = max(one.people for one in rest)
    said = f"{len(rest):,} more, with {most:,} {'person' if most == 1 else 'people'} at the most, stand in the table."
    return joined([chart, tag("p", said, class_="note")])


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "–"


def year_name(year: int) -> str:
    """A year as people write it: Wikidata's -43 is 44 BC."""
    return str(year) if year > 0 else f"{1 - year} BC"


def birth_chart(births: Births, told: str) -> Markup | None:
    """The histogram of the years of birth; None where none is known."""
    if not births.spans:
        return None
    first, last, width = births.spans[0].start, births.spans[-1].start, births.spans[0].years
    x = Axis(first, last + width, tuple(_ticks(first, last + width, width)))
    y = axis_for([one.people for one in births.spans], count=4)
    y = Axis(y.low, y.high, tuple(tick for tick in y.ticks if tick == int(tick)))
    grid = [
        tag("line", x1="0", x2="100%", y1=y.at(t, upwards=True), y2=y.at(t, upwards=True), class_="grid")
        for t in y.ticks
    ]
    drawn = [
        tag(
            "rect",
            tag("title", f"{year_name(one.start)} to {year_name(one.start + one.years - 1)}: {one.people:,}"),
            x=x.at(one.start + _GAP / 2 * one.years),
            width=x.length(one.start, one.start + (1 - _GAP) * one.years),
            y=y.at(one.people, upwards=True),
            height=y.length(0, one.people),
            class_="bar-part count",
        )
        for one in births.spans
        if one.people
    ]
    left = [
        tag("text", y.plain(t), x="100%", y=y.at(t, upwards=True), dx="-8", dy="4", class_="tick end") for t in y.ticks
    ]
    below = [tag("text", year_name(int(t)), x=x.at(t), y="14", class_="tick") for t in x.ticks]
    return tag(
        "figure",
        tag("p", "People", class_="axis-name", aria_hidden="true"),
        tag("svg", *left, class_="left-ticks", aria_hidden="true"),
        tag("svg", *grid, *drawn, class_="plot-area", role="img", aria_label=told),
        tag("svg", *below, class_="below-ticks", aria_hidden="true"),
        tag("p", f"Year of birth, by {width} years", class_="axis-name below", aria_hidden="true"),
        class_="scatter births",
    )


def _ticks(low: int, high: int, width: int) -> range:
    """Borders of spans, at most about eight of them."""
    every = max(1, round((high - low) / width / 7))
    return range(low, high + 1, every * width)
