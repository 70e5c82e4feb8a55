"""Charts: axes, strips, scatter, the steps of the heat scale."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import TYPE_CHECKING, NamedTuple

from veriglot.report.html import Child, macro, tag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from markupsafe import Markup

__all__ = ["Axis", "HeatScale", "Point", "Strip", "axis_for", "heat_scale", "interval_marks", "scatter", "strip_table"]


# Axes of charts, and the steps of the heat scale.
#
# Charts are SVG in percentages of their width, without a view box, so that text keeps its size on every screen and on
# paper; an axis turns a value into such a percentage.


_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
_STEPS = 10
_LEAST = 1e-9
"""What is less than this is drawn as nothing: no rate is known so well."""


class Axis(NamedTuple):
    """A linear axis with round ticks.

    Attributes:
        low, high: values at its ends.
        ticks: values to label.
    """

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float, *, upwards: bool = False) -> str:
        """Where a value lies, as a percentage; a value beyond the axis lies at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{100 * (1 - share if upwards else share):.2f}%"

    def length(self, low: float, high: float) -> str:
        """How long `[low, high]` is, as a percentage of the axis."""
        first, last = (min(max(value, self.low), self.high) for value in (low, high))
        return f"{100 * (last - first) / (self.high - self.low):.2f}%"

    def percent(self, value: float) -> str:
        """A tick of an axis of shares, with the digits that its ticks need: `5%`, `2.5%`."""
        step = 100 * (self.ticks[1] - self.ticks[0])
        digits = next(digits for digits in range(5) if abs(step * 10**digits - round(step * 10**digits)) < 1e-6)
        return f"{100 * value:.{digits}f}%" if value else "0%"

    def plain(self, value: float) -> str:
        """A tick of an axis of plain numbers."""
        return f"{value:,.10g}"

    def beyond(self, value: float) -> bool:
        """Whether a value has no place on the axis."""
        return not self.low <= value <= self.high


def round_step(span: float, count: int) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten of which at most `count` fill `span`."""
    if span <= 0:
        return 1.0
    raw = span / count
    power = 10.0 ** floor(log10(raw))
    return next(step * power for step in (*_ROUND, 20.0) if step * power >= raw * (1 - 1e-9))


def axis_for(values: Iterable[float], *, count: int = 6, from_zero: bool = True) -> Axis:
    """An axis that holds all values, with at most about `count` ticks."""
    finite = list(values)
    high = max(finite, default=1.0)
    low = min([0.0, *finite]) if from_zero else min(finite, default=0.0)
    if high - low < _LEAST:
        high = low + (abs(low) or 0.01)
    step = round_step(high - low, count)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    ticks = tuple(round(index * step, 12) for index in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


class HeatScale(NamedTuple):
    """Equal classes of rates, from zero up.

    Attributes:
        width: of a class.
        classes: how many there are.
    """

    width: float
    classes: int

    def step(self, rate: float) -> int:
        """The step of the palette's heat scale for a rate, 0 to 9."""
        return self.step_of(min(int(rate / self.width + 1e-9), self.classes - 1))

    def step_of(self, index: int) -> int:
        """The step for a class by its place, 0 for the lowest."""
        return round(index * (_STEPS - 1) / max(self.classes - 1, 1)) if self.classes > 1 else _STEPS // 3


def heat_scale(rates: Iterable[float]) -> HeatScale:
    """Classes of a round width that hold every rate: 10 at most, and the top one is never empty; 0 to 1% for none."""
    high = max(rates, default=0.0)
    if high < _LEAST:
        return HeatScale(0.01, 1)
    width = round_step(high, _STEPS)
    return HeatScale(width, max(1, ceil(high / width - 1e-9)))


class Point(NamedTuple):
    """One point: where it lies, what it is, how it looks.

    Attributes:
        x, y: its place.
        name: what it is, in words.
        shape: `circle`, `diamond`, `square`, `triangle`, `cross` or `plus`.
        slot: a slot of the palette; None for the page's accent.
        doubtful: drawn hollow: the rate behind it is unreliable.
        label: text beside the point; None for none.
        label_left: whether the text stands on the left.
    """

    x: float
    y: float
    name: str
    shape: str = "circle"
    slot: str | None = None
    doubtful: bool = False
    label: str | None = None
    label_left: bool = False


def scatter(
    points: Sequence[Point],
    x: Axis,
    y: Axis,
    *,
    x_name: str,
    y_name: str,
    x_tick: Callable[[float], str],
    y_tick: Callable[[float], str],
    told: str,
    diagonal: bool = False,
) -> Markup:
    """A figure with axes and points, and `told` for screen readers. A point beyond an axis is drawn at its end."""
    marks = macro("scatter")(points, x, y, diagonal)
    return macro("plot")(x, y, x_name, y_name, x_tick, y_tick, told, marks)


def interval_marks(low: float | None, high: float | None, axis: Axis, kind: str) -> Markup | None:
    """A line from end to end of an interval."""
    if low is None or high is None:
        return None
    return tag("line", x1=axis.at(low), x2=axis.at(high), y1="50%", y2="50%", class_=kind)


# Charts whose every row is a row of a table: a label, marks on one common axis, and the figures in words.
#
# Such a chart reads aloud, prints, copies and reflows like the table that it is.


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
    return macro("strips")(strips, axis, caption, heads, tick, class_)
