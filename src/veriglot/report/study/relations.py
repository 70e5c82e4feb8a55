"""What rates go together with: response length, size, number of languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.study.axes import Axis, axis_for
from veriglot.report.study.figures import model_label
from veriglot.report.study.grids import grid
from veriglot.report.study.markup import Markup, tag
from veriglot.report.study.numbers import percent, rate_text
from veriglot.report.study.ranking import p_text
from veriglot.report.study.scatter import Point, scatter
from veriglot.report.study.sections import Section, note
from veriglot.report.study.view import is_sound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from veriglot.records import Rate
    from veriglot.report.study.view import View
    from veriglot.study.results import Cell, Model

__all__ = ["Look", "looks", "relation_section"]

Look = tuple[str, str]
"""The shape and the slot of a model's points."""

_SHAPES = ("circle", "square", "triangle", "diamond", "cross", "plus")
_SLOTS = ("blue", "rust", "moss", "violet", "teal", "rose", "ochre", "indigo", "red", "slate")
_ONE_PLOT = 3
"""Models that a plot of models needs to be worth drawing."""


def looks(view: View) -> dict[str, Look]:
    """How each model's points look, the same in every chart; colour and shape both change from one to the next."""
    names = [model.name for model in view.results.models]
    return {name: (_SHAPES[i % len(_SHAPES)], _SLOTS[i % len(_SLOTS)]) for i, name in enumerate(names)}


def relation_section(view: View) -> Section:
    """Length against the rate and against the amount, models by size and languages, and every relation as a figure."""
    look = looks(view)
    body = [
        tag("h3", "Response length"),
        note(
            f"Each point is a model in a language: first its rate, the share of {view.units} that are unsupported, then"
            f" the amount, rate times length, which is how many unsupported {view.units} a response holds. Longer"
            " answers hold more even at the same rate."
        ),
        _key(view, look),
        tag("div", *_lengths(view, look), class_="pair"),
        *_models(view, look),
        *_figures(view),
    ]
    title = "Length, size and number of languages"
    return Section("relations", title, "Length and size", body, ("correlations", "cells"))


def _key(view: View, look: dict[str, Look]) -> Markup:
    items = []
    for name, (shape, slot) in look.items():
        mark = tag("use", href=f"#shape-{shape}", x="50%", y="50%")
        drawn = tag("svg", tag("g", mark, class_=f"point slot-{slot}"), class_="key-mark", aria_hidden="true")
        items.append(tag("li", drawn, model_label(name)))
    doubtful = any(rate.rate is not None for rate in view.unreliable)
    hollow = tag("g", tag("use", href="#shape-circle", x="50%", y="50%"), class_="point doubtful")
    sign = tag("svg", hollow, class_="key-mark", aria_hidden="true")
    return tag("ul", *items, tag("li", sign, "hollow: unreliable") if doubtful else None, class_="key")


def _lengths(view: View, look: dict[str, Look]) -> Iterator[Markup]:
    pairs = [(cell, rate) for rate in view.own_rates if (cell := _cell_of(view, rate)) and rate.rate is not None]
    sound = [(cell, rate) for cell, rate in pairs if is_sound(rate)]
    x = axis_for([cell.length for cell, _ in pairs], count=6)
    words = f"mean length of a response ({view.units})"
    y = axis_for([rate.rate for _, rate in sound if rate.rate is not None])
    shares = [_point(view, cell, rate, rate.rate or 0.0, look) for cell, rate in pairs]
    yield scatter(
        shares, x, y, x_name=words, y_name="rate", x_tick=x.plain, y_tick=y.percent,
        told=f"Scatter of the rates of {len(pairs)} cells against mean response length.",
    )  # fmt: skip
    amounts = axis_for([(rate.rate or 0.0) * cell.length for cell, rate in sound])
    yield scatter(
        [_point(view, cell, rate, (rate.rate or 0.0) * cell.length, look) for cell, rate in pairs],
        x, amounts, x_name=words, y_name=f"unsupported {view.units} in a response", x_tick=x.plain,
        y_tick=amounts.plain, told=f"Scatter of unsupported {view.units} in a response against mean response length.",
    )  # fmt: skip


def _cell_of(view: View, rate: Rate) -> Cell | None:
    return view.cell(rate.model or "", rate.language)


def _point(view: View, cell: Cell, rate: Rate, y: float, look: dict[str, Look]) -> Point:
    shape, slot = look[cell.model]
    name = f"{cell.model}, {view.language(cell.language)}: {rate_text(rate)}, {cell.length:.1f} {view.units}"
    return Point(cell.length, y, name, shape, slot, doubtful=not is_sound(rate))


def _models(view: View, look: dict[str, Look]) -> Iterator[Markup]:
    def size(model: Model) -> float | None:
        return model.parameters

    def declared(model: Model) -> float | None:
        return model.languages

    plots = [
        plot
        for plot in (
            _by_model(view, look, size, "billions of parameters"),
            _by_model(view, look, declared, "languages that its makers declare"),
        )
        if plot is not None
    ]
    if plots:
        yield tag("h3", "Models by size and number of languages")
        yield note("Each point is the mean rate of a model over its languages.")
        yield tag("div", *plots, class_="pair")


def _by_model(
    view: View, look: dict[str, Look], measure: Callable[[Model], float | None], name: str
) -> Markup | None:  # fmt: skip
    points = []
    for average in view.results.by_model:
        model = view.model(average.name)
        value = measure(model) if model is not None else None
        if value is None or average.mean is None:
            continue
        shape, slot = look[average.name]
        told = f"{average.name}: {value:g} {name}, mean rate {percent(average.mean)}"
        points.append(Point(value, average.mean, told, shape, slot, label=average.name))
    if len(points) < _ONE_PLOT:
        return None
    x, y = axis_for([point.x for point in points]), axis_for([point.y for point in points])
    points = [point._replace(label_left=_right_is_taken(point, points, x, y)) for point in points]
    told = f"Scatter of the mean rates of {len(points)} models against {name}."
    return scatter(points, x, y, x_name=name, y_name="mean rate", x_tick=x.plain, y_tick=y.percent, told=told)


def _right_is_taken(point: Point, points: list[Point], x: Axis, y: Axis) -> bool:
    """Whether another point lies where the name of this one would stand on its right."""
    reach, height = 0.3 * (x.high - x.low), 0.06 * (y.high - y.low)
    return any(0 < other.x - point.x < reach and abs(other.y - point.y) < height for other in points)


def _figures(view: View) -> Iterator[Markup]:
    if not view.results.correlations:
        return
    heads = ("What is held against the rate", "Points", "Method", "Coefficient or difference", "Interval", "p")
    rows = [
        (
            c.name, f"{c.points:,} {c.of}", c.method, tag("b", _two_digits(c.r)), _ends(c.low, c.high),
            p_text(c.p, bare=True),
        )
        for c in view.results.correlations
    ]  # fmt: skip
    yield tag("h3", "Relations as figures")
    yield note(
        "r of a correlation, or the standardised difference of a t-test. These p-values are not corrected for their"
        " number, and a relation over a few models is weak evidence for a cause."
    )
    yield grid("Relations of rates with other things", heads, rows, numbers_from=3)


def _two_digits(value: float) -> str:
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def _ends(low: float | None, high: float | None) -> str:
    return "none" if low is None or high is None else f"[{_two_digits(low)}, {_two_digits(high)}]"
