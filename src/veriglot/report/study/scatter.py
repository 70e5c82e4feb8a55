"""A scatter chart that fills the width it has without stretching its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from veriglot.report.study.markup import Markup, joined, tag

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from veriglot.report.study.axes import Axis

__all__ = ["Point", "scatter"]


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
    grid = [
        *(tag("line", x1=x.at(t), x2=x.at(t), y1="0", y2="100%", class_="grid") for t in x.ticks),
        *(
            tag("line", x1="0", x2="100%", y1=y.at(t, upwards=True), y2=y.at(t, upwards=True), class_="grid")
            for t in y.ticks
        ),
    ]
    line = tag("line", x1="0", y1="100%", x2="100%", y2="0", class_="diagonal") if diagonal else None
    plot = tag(
        "svg", *grid, line, *(_point(point, x, y) for point in points), class_="plot-area", role="img", aria_label=told
    )
    left = [
        tag("text", y_tick(t), x="100%", y=y.at(t, upwards=True), dx="-8", dy="4", class_="tick end") for t in y.ticks
    ]
    below = [tag("text", x_tick(t), x=x.at(t), y="14", class_="tick") for t in x.ticks]
    return tag(
        "figure",
        tag("p", y_name, class_="axis-name", aria_hidden="true"),
        tag("svg", *left, class_="left-ticks", aria_hidden="true"),
        plot,
        tag("svg", *below, class_="below-ticks", aria_hidden="true"),
        tag("p", x_name, class_="axis-name below", aria_hidden="true"),
        class_="scatter",
    )


def _point(point: Point, x: Axis, y: Axis) -> Markup:
    kind = " ".join(
        filter(None, ("point", "doubtful" if point.doubtful else "", f"slot-{point.slot}" if point.slot else ""))
    )
    at = {"x": x.at(point.x), "y": y.at(point.y, upwards=True)}
    label = _label(point, x, at) if point.label else None
    return joined(
        [tag("g", tag("title", point.name), tag("use", href=f"#shape-{point.shape}", **at), label, class_=kind)]
    )


def _label(point: Point, x: Axis, at: dict[str, str]) -> Markup:
    """The text beside a point: on its left where the right has no room, or is taken."""
    left = point.label_left or (point.x - x.low) / (x.high - x.low) > 0.72
    return tag(
        "text", point.label, **at, dx="-9" if left else "9", dy="4", class_=f"point-label{' end' if left else ''}"
    )
