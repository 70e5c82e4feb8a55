"""Charts as data: axes, the steps of the heat scale, marks and points; `macros.html` draws them.

Charts are SVG in percentages of their width, without a view box, so that text keeps its size on every screen and on
paper. A chart of rows is an HTML table: screen readers, printing, copying and reflowing work.
"""

from __future__ import annotations

from math import ceil, floor, log10
from typing import TYPE_CHECKING, NamedTuple

from veriglot.report.pages import macro
from veriglot.report.text_layout import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from markupsafe import Markup

__all__ = ["Axis", "HeatScale", "Mark", "Point", "Strip", "share_chart", "strip_table"]


_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
_STEPS = 10
_NOTHING = 1e-9
"""Smaller values are drawn as 0: no rate is that precise."""


class Axis(NamedTuple):
    """A linear axis with round ticks.

    Attributes:
        low, high: values at its ends.
        ticks: values to label.
    """

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float], *, count: int = 6) -> Axis:
        """An axis that includes all values and zero, with about `count` ticks at most."""
        numbers = [0.0, *values]
        low, high = min(numbers), max(numbers) if len(numbers) > 1 else 1.0
        if high - low < _NOTHING:
            high = low + (abs(low) or 0.01)
        step = _round_step(high - low, count)
        first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
        ticks = tuple(round(index * step, 12) for index in range(first, last + 1))
        return cls(ticks[0], ticks[-1], ticks)

    def at(self, value: float, *, upwards: bool = False) -> str:
        """The position of a value, as a percentage; a value beyond the axis is at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{100 * (1 - share if upwards else share):.2f}%"

    def length(self, low: float, high: float) -> str:
        """The length of `[low, high]`, as a percentage of the axis."""
        first, last = (min(max(value, self.low), self.high) for value in (low, high))
        return f"{100 * (last - first) / (self.high - self.low):.2f}%"

    def percent(self, value: float) -> str:
        """A tick label of an axis of shares, with as many digits as its ticks need: `5%`, `2.5%`."""
        step = 100 * (self.ticks[1] - self.ticks[0])
        digits = next(digits for digits in range(5) if abs(step * 10**digits - round(step * 10**digits)) < 1e-6)
        return f"{100 * value:.{digits}f}%" if value else "0%"

    def plain(self, value: float) -> str:
        """A tick label of an axis of plain numbers."""
        return f"{value:,.10g}"

    def beyond(self, value: float) -> bool:
        """Whether a value is outside the axis."""
        return not self.low <= value <= self.high


def _round_step(span: float, count: int) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten that divides `span` into at most `count` steps."""
    raw = span / count
    power = 10.0 ** floor(log10(raw))
    return next(step * power for step in (*_ROUND, 20.0) if step * power >= raw * (1 - 1e-9))


class HeatScale(NamedTuple):
    """Equal classes of rates, from zero up.

    Attributes:
        width: of a class.
        classes: number of classes.
    """

    width: float
    classes: int

    @classmethod
    def of(cls, rates: Iterable[float]) -> HeatScale:
        """Classes of a round width for all rates: 10 at most, the top one never empty; 0 to 1% if there is none."""
        high = max(rates, default=0.0)
        if high < _NOTHING:
            return cls(0.01, 1)
        width = _round_step(high, _STEPS)
        return cls(width, max(1, ceil(high / width - 1e-9)))

    def step(self, rate: float) -> int:
        """The step of the palette's heat scale for a rate, 0 to 9."""
        return self.step_of(min(int(rate / self.width + 1e-9), self.classes - 1))

    def step_of(self, index: int) -> int:
        """The step for the class at an index, 0 for the lowest."""
        return round(index * (_STEPS - 1) / max(self.classes - 1, 1)) if self.classes > 1 else _STEPS // 3


class Point(NamedTuple):
    """One point of a scatter chart: its position, name and style.

    Attributes:
        x, y: its position.
        name: its name, in words.
        shape: `circle`, `diamond`, `square`, `triangle`, `cross` or `plus`.
        slot: a slot of the palette; None for the page's accent.
        doubtful: drawn hollow: its rate is unreliable.
        label: text beside the point; None for none.
    """

    x: float
    y: float
    name: str
    shape: str = "circle"
    slot: str | None = None
    doubtful: bool = False
    label: str | None = None


class Mark(NamedTuple):
    """An element in a row of a chart.

    Attributes:
        kind: `line` and `bar` from `start` to `end`; `tick`, `dot` or the shape of a point at `start`; `estimate`, a
            dot at `start` with its interval.
        start, end: values of the axis.
        look: CSS classes.
        title: its tooltip, in words.
        interval: of an estimate; None for none.
    """

    kind: str
    start: float
    end: float = 0.0
    look: str = ""
    title: str = ""
    interval: tuple[float, float] | None = None


class Strip(NamedTuple):
    """One row: its label, its marks, and its figures, one for each column."""

    label: str
    marks: Sequence[Mark]
    figures: Sequence[str]


def strip_table(
    strips: Sequence[Strip],
    axis: Axis,
    *,
    caption: str,
    heads: Sequence[str],
    tick: Callable[[float], str] | None = None,
    class_: str = "",
) -> Markup:
    """A table of strips on one axis.

    Args:
        strips: the rows.
        axis: the common axis.
        caption: of the chart.
        heads: of the label, the chart and each column of figures.
        tick: formats a value of the axis; None for a share.
        class_: further CSS classes of the table.
    """
    return macro("strips")(strips, axis, caption, heads, tick or axis.percent, class_)


def share_chart(
    rows: Iterable[tuple[str, Mapping[str, int], Sequence[str]]],
    slots: Callable[[str], str],
    *,
    caption: str,
    heads: Sequence[str],
) -> Markup:
    """Shares of counts, as one bar from 0 to 100% in each row.

    Args:
        rows: a label, the counts by name, and the figures of the row.
        slots: the slot of the palette for a name.
        caption: of the chart.
        heads: of the label, the bars and each column of figures.
    """
    axis = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0))
    strips = []
    for label, counts, figures in rows:
        marks, end, total = [], 0, sum(counts.values())
        for name, number in counts.items():
            start, end = end, end + number
            if number:
                title = f"{name}: {number:,} ({percent(number / total)})"
                marks.append(Mark("bar", start / total, end / total, f"slot-{slots(name)}", title))
        strips.append(Strip(label, marks, figures))
    return strip_table(strips, axis, caption=caption, heads=heads, class_="stacked")
