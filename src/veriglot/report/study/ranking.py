"""The sections on models: rank intervals, pairs of models, and rates against size, languages and length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.charts import Axis, Point, Strip, axis_for, interval_marks, scatter, strip_table
from veriglot.report.html import folded, hidden, joined, note, tag
from veriglot.report.pages import Section
from veriglot.report.study.rates import model_means
from veriglot.report.study.view import ALL, is_sound, language_label, model_label, rate_text
from veriglot.report.tables import Cell as TableCell
from veriglot.report.tables import Table
from veriglot.report.text_layout import interval, percent, signed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from markupsafe import Markup

    from veriglot.records import Rate
    from veriglot.report.study.view import View
    from veriglot.study.results import Cell, Comparison, Model, RankInterval

__all__ = ["model_section", "relation_section"]


_LISTED = 60
"""Comparisons within languages that are listed; more of them are for a program to read."""


def model_section(view: View) -> Section:
    """Means, rank intervals and comparisons of the models."""
    level = f"{100 * view.results.confidence:g}%"
    body = [
        note(f"The mean over languages of each model with its {level} interval; a faint tick is one language."),
        model_means(view),
        *_rank_intervals(view),
        *_comparisons(view),
    ]
    return Section("models", "Models", "Models", body, ("models", "ranks", "comparisons", "settings"))


def _rank_intervals(view: View) -> Iterator[Markup]:
    by_language: dict[str, list[RankInterval]] = {}
    for rank in view.results.ranks:
        by_language.setdefault(rank.language, []).append(rank)
    if not by_language:
        return
    level = f"{100 * view.results.confidence:g}%"
    yield tag("h3", "Ranks")
    yield note(
        f"1 hallucinates least. A bar holds every rank that the data do not exclude ({level}): where two bars share"
        " ranks, the order of the two is not settled."
    )
    overall = by_language.pop(ALL, None)
    if overall:
        yield _rank_chart(overall, _over(view))
    if by_language:
        yield folded("Ranks in each language", _rank_table(view, by_language))


def _over(view: View) -> str:
    """What ranks of all languages together are over."""
    shared, every = len(view.shared_languages), len(view.languages)
    if shared in {0, every}:
        return "Rank over all languages"
    return f"Rank over the {shared} of {every} languages in which every model has a reliable rate"


def _rank_chart(ranks: Sequence[RankInterval], caption: str) -> Markup:
    axis = Axis(1.0, float(max(len(ranks), 2)), tuple(float(rank_tick) for rank_tick in range(1, len(ranks) + 1)))
    strips = [
        Strip(
            model_label(rank.model),
            joined(
                [
                    interval_marks(rank.low, rank.high, axis, "span broad"),
                    tag("circle", cx=axis.at(rank.rank), cy="50%", r="5", class_="dot"),
                ]
            ),
            (tag("b", str(rank.rank)), _reach(rank)),
        )
        for rank in sorted(ranks, key=lambda rank: (rank.rank, rank.low))
    ]
    heads = ("Model", "Rank", "Rank", "Not excluded")
    return strip_table(strips, axis, caption=caption, heads=heads, tick=axis.plain, class_="ranks")


def _reach(rank: RankInterval) -> str:
    return str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}"


def _rank_table(view: View, by_language: dict[str, list[RankInterval]]) -> Markup:
    rows = []
    for language in view.languages:
        ranks = {rank.model: rank for rank in by_language.get(language, ())}
        if ranks:
            cells = (_rank_words(ranks.get(name)) for name in view.models)
            rows.append((language_label(view.language(language), language), *cells))
    name = "Rank in each language, with the ranks that the data do not exclude"
    return Table("", name, ("Language", *map(model_label, view.models)), rows).to_html()


def _rank_words(rank: RankInterval | None) -> Markup:
    if rank is None:
        return tag("span", "–", class_="absent")
    return joined([tag("b", str(rank.rank)), " ", tag("span", f"[{_reach(rank)}]", class_="interval")])


def _comparisons(view: View) -> Iterator[Markup]:
    overall = {(c.first, c.second): c for c in view.results.comparisons if c.language == ALL}
    if not view.results.comparisons:
        return
    rest = len(view.results.comparisons) - len(overall)
    more = f" Those within languages ({rest:,}) can be saved as CSV above." if rest > _LISTED else ""
    methods = "; ".join(dict.fromkeys(c.method for c in view.results.comparisons))
    alpha = 1 - view.results.confidence
    yield tag("h3", "Differences")
    yield note(
        "Row minus column, in percentage points: below zero, the model of the row hallucinates less. Marked are"
        f" differences with an adjusted p below {alpha:.2g} ({methods}).{more}"
    )
    if overall:
        yield _matrix(view, overall, alpha)
        yield folded("Every difference, with interval and effect", _list(view, list(overall.values())))
    if 0 < rest <= _LISTED:
        within = [c for c in view.results.comparisons if c.language != ALL]
        yield folded("Differences within languages", _list(view, within), opened=not overall)


def _matrix(view: View, comparisons: dict[tuple[str, str], Comparison], alpha: float) -> Markup:
    rows = [
        (model_label(first), *(_difference(comparisons, first, second, alpha) for second in view.models))
        for first in view.models
    ]
    name = "Differences of mean rates over all languages, row minus column"
    return Table("", name, ("", *map(model_label, view.models)), rows).to_html(class_="matrix")


def _difference(
    comparisons: dict[tuple[str, str], Comparison], first: str, second: str, alpha: float
  ) -> TableCell:  # fmt: skip
    if first == second:
        return TableCell("", kind="diagonal")
    comparison, sign = comparisons.get((first, second)), 1
    if comparison is None:
        comparison, sign = comparisons.get((second, first)), -1
    if comparison is None:
        return TableCell("–", kind="absent")
    value = signed(sign * comparison.difference)
    p = p_text(comparison.p_adjusted)
    if comparison.p_adjusted >= alpha:
        return TableCell(value, p, kind="unclear")
    side = "less" if sign * comparison.difference < 0 else "more"
    return TableCell(joined([value, hidden(" clear")]), p, kind=f"clear {side}")


def _list(view: View, comparisons: Sequence[Comparison]) -> Markup:
    heads = ("First", "Second", "In", "Difference", "Interval", "p", "p adjusted", "Effect", "Queries")
    rows = [
        (
            model_label(c.first),
            model_label(c.second),
            view.language(c.language),
            signed(c.difference),
            interval(c.low, c.high),
            p_text(c.p, bare=True),
            p_text(c.p_adjusted, bare=True),
            "–" if c.effect is None else f"{c.effect:.2f}".replace("-", "\N{MINUS SIGN}"),
            f"{c.queries:,}{' paired' if c.paired else ' unpaired'}",
        )
        for c in comparisons
    ]
    return Table("", "First minus second, in percentage points", heads, rows).to_html()


def p_text(p: float, *, bare: bool = False) -> str:
    """A p-value: `p = 0.031`, `p < 0.001`; without `p =` where a column says it."""
    if p < 0.001:
        return "< 0.001" if bare else "p < 0.001"
    number = f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
    return number if bare else f"p = {number}"


# What rates go together with: response length, size, number of languages.


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
            c.name, f"{c.points:,} {c.of}", c.method, TableCell(_two_digits(c.r), kind="strong"), _ends(c.low, c.high),
            p_text(c.p, bare=True),
        )
        for c in view.results.correlations
    ]  # fmt: skip
    yield tag("h3", "Relations as figures")
    yield note(
        "r of a correlation, or the standardised difference of a t-test. These p-values are not corrected for their"
        " number, and a relation over a few models is weak evidence for a cause."
    )
    yield Table("", "Relations of rates with other things", heads, rows).to_html()


def _two_digits(value: float) -> str:
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def _ends(low: float | None, high: float | None) -> str:
    return "none" if low is None or high is None else f"[{_two_digits(low)}, {_two_digits(high)}]"
