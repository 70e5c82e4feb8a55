"""The sections on rates: languages by models, means, corrections by estimator, detectors and seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from veriglot.report.charts import Axis, HeatScale, Point, Strip, axis_for, heat_scale, scatter, strip_table
from veriglot.report.html import Child, bdi, folded, hidden, joined, note, scrolled, tag
from veriglot.report.pages import Section
from veriglot.report.study.view import (
    average_marks,
    average_words,
    by_model,
    coverage_bar,
    estimator_words,
    flag,
    is_sound,
    language_label,
    model_label,
    rate_marks,
    rate_text,
    rate_words,
)
from veriglot.report.tables import Table
from veriglot.report.text_layout import count, interval, percent, points

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.records import Rate
    from veriglot.report.study.view import View
    from veriglot.study.results import Average, Cell

__all__ = [
    "cell_facts",
    "correction_section",
    "heat_section",
    "language_means",
    "model_means",
    "panel_section",
    "shared_means",
]


def heat_section(view: View) -> Section:
    """The heat map by every estimator, its scale, and why rates are unreliable."""
    rates = [rate.rate for rate in _sound_rates(view) if rate.rate is not None]
    scale = heat_scale(rates)
    tables = [_table(view, scale, estimator.value) for estimator in view.estimators]
    names = [each.value for each in view.estimators]
    if any(cell.sd is not None for cell in view.results.cells):
        tables.append(_replicates(view, scale))
        names.append("mean ± sd")
    views = [
        tag("div", table, class_="view", data_view=name, hidden=index > 0)
        for index, (name, table) in enumerate(zip(names, tables, strict=True))
    ]
    level = f"{100 * view.results.confidence:g}%"
    intro = note(
        f"Share of {view.units} that the evidence does not support, with its {level} interval. The bar under it is the"
        " coverage: which share of the responses was judged. Rows and columns go from the lowest mean to the highest.",
    )
    table = tag("div", *views, _inspector())
    body = (intro, _choice(names), _legend(scale), table, *_unreliable(view))
    return Section("rates", "Rates by language and model", "Rates", body, ("rates", "cells", "replicates"))


def _sound_rates(view: View) -> Iterator[Rate]:
    for cell in view.results.cells:
        yield from (rate for rate in cell.rates if is_sound(rate))


def _choice(names: list[str]) -> Markup:
    """Which estimate the table shows; without scripts the study's own stands alone."""
    if len(names) < 2:
        return Markup("")
    choices = [
        tag(
            "label",
            tag("input", type="radio", name="view", value=name, checked=index == 0),
            tag("span", name, title=estimator_words(name)),
        )
        for index, name in enumerate(names)
    ]
    legend = tag("legend", "Estimate")
    return tag("fieldset", legend, *choices, class_="choice", id="views", hidden=True)


def _legend(scale: HeatScale) -> Markup:
    digits = 0 if (100 * scale.width) % 1 < 1e-9 else 1
    digits = digits if 100 * scale.width >= 0.1 else 2
    steps = [
        tag(
            "li",
            f"{points(index * scale.width, digits)}–{points((index + 1) * scale.width, digits)}%",
            class_=f"heat-{scale.step_of(index)}",
        )
        for index in range(scale.classes)
    ]
    return tag("ul", *steps, tag("li", "unreliable", class_="hatched"), class_="scale", aria_label="Colours")


def _table(view: View, scale: HeatScale, estimator: str) -> Markup:
    own = estimator == view.results.estimator
    head = tag(
        "tr",
        tag("th", "Language", scope="col", class_="corner"),
        *(tag("th", model_label(name), scope="col") for name in view.models),
        tag("th", "Mean", scope="col", class_="mean") if own else None,
    )
    rows = [
        tag(
            "tr",
            tag("th", language_label(view.language(tag_), tag_), scope="row"),
            *(
                _cell(view.rate(name, tag_, estimator), scale, f"{column}-{row}")
                for column, name in enumerate(view.models)
            ),
            _mean(view.average(tag_)) if own else None,
        )
        for row, tag_ in enumerate(view.languages)
    ]
    foot = tag(
        "tr",
        tag("th", "Mean", scope="row"),
        *(_mean(view.average(name)) for name in view.models),
        _mean(view.results.overall),
        class_="mean",
    )
    caption = f"Rates by {estimator}: {estimator_words(estimator)}"
    return _scrolled(
        tag("caption", caption), tag("thead", head), tag("tbody", *rows), tag("tfoot", foot) if own else None
    )


def _scrolled(*parts: Child) -> Markup:
    return scrolled(tag("table", *parts, class_="heat"), "Table of rates")


def _cell(rate: Rate | None, scale: HeatScale, position: str) -> Markup:
    if rate is None:
        return tag("td", tag("span", "not estimated", class_="absent"), class_="cell", data_cell=position)
    if is_sound(rate) and rate.rate is not None:
        ends = interval(rate.low, rate.high)
        inner = (
            tag("b", percent(rate.rate)),
            tag("span", ends[1:-1].replace(", ", "–") if ends else "no interval", class_="interval"),
        )
        return tag(
            "td", *inner, coverage_bar(rate.coverage), class_=f"cell heat-{scale.step(rate.rate)}", data_cell=position
        )
    doubt = "no estimate" if rate.rate is None else f"({percent(rate.rate)}?)"
    return tag(
        "td", flag(), tag("span", doubt, class_="doubt"), hidden(f". {rate.reason}"), coverage_bar(rate.coverage),
        class_="cell hatched", data_cell=position,
    )  # fmt: skip


def _mean(average: Average | None) -> Markup:
    if average is None or average.mean is None:
        return tag("td", flag("no mean"), class_="mean")
    left_out = f"{average.unreliable} left out" if average.unreliable else None
    return tag(
        "td",
        tag("b", percent(average.mean)),
        tag("span", interval(average.low, average.high)[1:-1].replace(", ", "–"), class_="interval"),
        tag("span", left_out, class_="left-out", title="unreliable rates are in no mean") if left_out else None,
        class_="mean",
    )


def _replicates(view: View, scale: HeatScale) -> Markup:
    head = tag(
        "tr",
        tag("th", "Language", scope="col", class_="corner"),
        *(tag("th", model_label(name), scope="col") for name in view.models),
    )
    rows = [
        tag(
            "tr",
            tag("th", language_label(view.language(tag_), tag_), scope="row"),
            *(_spread(view.cell(name, tag_), scale, f"{column}-{row}") for column, name in enumerate(view.models)),
        )
        for row, tag_ in enumerate(view.languages)
    ]
    caption = "Mean and standard deviation of the reliable rates, one for each detector and seed"
    return _scrolled(tag("caption", caption), tag("thead", head), tag("tbody", *rows))


def _spread(cell: Cell | None, scale: HeatScale, position: str) -> Markup:
    if cell is None:
        return tag("td", tag("span", "not estimated", class_="absent"), class_="cell", data_cell=position)
    if cell.mean is None:
        return tag(
            "td", flag(), tag("span", "none is reliable", class_="doubt"), class_="cell hatched", data_cell=position
        )
    sound = sum(is_sound(rate) for rate in cell.replicates)
    spread = "one estimate" if cell.sd is None else f"± {points(cell.sd)}"
    return tag(
        "td",
        tag("b", percent(cell.mean)),
        tag("span", spread, class_="interval"),
        tag("span", f"{sound} of {len(cell.replicates)}", class_="left-out"),
        class_=f"cell heat-{scale.step(cell.mean)}",
        data_cell=position,
    )


def _inspector() -> Markup:
    hint = tag("p", "Point at a rate, or go to the table and use the arrow keys, to see all that is known of it.")
    return tag("div", hint, class_="inspector", id="inspector", aria_live="polite", hidden=True)


def _unreliable(view: View) -> Iterator[Markup]:
    """Every unreliable rate by its reason, so that paper and screen readers have it too."""
    if not view.unreliable:
        yield note(f"All {len(view.own_rates)} rates are reliable by the checks that are described under Methods.")
        return
    yield tag("h3", f"Unreliable: {len(view.unreliable)} of {len(view.own_rates)} rates")
    yield note("Not to be read as rates, and in no mean. A number in parentheses is what the estimator gave.")
    for reason, rates in view.by_reason.items():
        places = [
            joined(
                [model_label(name), " in ", ", ".join(view.language(rate.language) + _doubt(rate) for rate in group)]
            )
            for name, group in by_model(rates).items()
        ]
        yield tag(
            "div", tag("p", flag(), " ", reason), tag("p", joined(places, "; "), class_="places"), class_="reason"
        )


def _doubt(rate: Rate) -> str:
    return "" if rate.rate is None else f" ({percent(rate.rate)}?)"


def cell_facts(view: View) -> dict[str, dict[str, Any]]:
    """What the page shows of the cell at hand, by its place (column-row), as text."""
    return {
        f"{column}-{row}": _facts(view, cell)
        for column, name in enumerate(view.models)
        for row, tag_ in enumerate(view.languages)
        if (cell := view.cell(name, tag_)) is not None
    }


def _facts(view: View, cell: Cell) -> dict[str, Any]:
    counts = cell.coverage
    rest = [
        f"{number:,} {status.replace('_', ' ')}" for status, number in counts.statuses.items() if status != "scored"
    ]
    judged = f"{counts.statuses.get('scored', 0):,} of {count(counts.planned, 'response')} judged"
    reasons = dict.fromkeys(rate.reason for rate in cell.rates if rate.reason)
    lines = [", ".join([judged, *rest, *([f"{counts.failed:,} calls failed"] if counts.failed else [])])]
    lines.append(f"{cell.length:.1f} {view.units} in a response on average")
    if cell.mean is not None and cell.sd is not None:
        sound = sum(is_sound(rate) for rate in cell.replicates)
        lines.append(f"{percent(cell.mean)} ± {points(cell.sd)} over {sound} of {len(cell.replicates)} replicates")
    return {
        "model": cell.model,
        "language": view.language(cell.language),
        "rates": [[rate.estimator.value, rate_text(rate), is_sound(rate)] for rate in cell.rates],
        "reasons": list(reasons),
        "lines": lines,
    }


def model_means(view: View) -> Markup:
    """A row for each model: its mean over languages with the interval, and the languages as faint ticks behind it."""
    return _chart(view, view.results.by_model, "Model", "languages")


def language_means(view: View) -> Section:
    """A row for each language: its mean over models with the interval, and the models as faint ticks behind it."""
    intro = note(
        "The mean over models in each language; a faint tick is one model. Languages differ in what is asked, in the"
        " evidence and in the detector's profile, so a difference between two of them is not one of skill alone.",
    )
    chart = _chart(view, view.results.by_language, "Language", "models")
    return Section("languages", "Languages", "Languages", (intro, chart), ("languages",))


def _chart(view: View, averages: Sequence[Average], head: str, of: str) -> Markup:
    by_model = of == "languages"
    rates = [rate for rate in view.own_rates if is_sound(rate)]
    ends = [average.high for average in averages if average.high is not None]
    axis = axis_for([*ends, *(rate.rate for rate in rates if rate.rate is not None)])
    strips = []
    for average in averages:
        behind = [rate for rate in rates if average.name == (rate.model if by_model else rate.language)]
        name = average.name if by_model else view.language(average.name)
        label = model_label(name) if by_model else language_label(name, average.name)
        marks = joined([*_ticks(behind, axis), average_marks(average, axis, name)])
        strips.append(Strip(label, marks, (average_words(average, of), _of_how_many(average))))
    heads = (head, "Rate", "Mean and interval", of.capitalize())
    caption = f"Mean rate of each {head.lower()} over {of}"
    return strip_table(strips, axis, caption=caption, heads=heads, tick=axis.percent)


def _ticks(rates: Sequence[Rate], axis: Axis) -> Iterator[Markup]:
    for rate in rates:
        if rate.rate is not None:
            at = axis.at(rate.rate)
            yield tag("line", x1=at, x2=at, y1="24%", y2="76%", class_="faint")


def _of_how_many(average: Average) -> str:
    total = average.cells + average.unreliable
    return f"{average.cells}" if not average.unreliable else f"{average.cells} of {total}"


def shared_means(
    view: View, estimators: Sequence[str], models: Sequence[str] | None = None
) -> tuple[dict[str, float] | None, int]:
    """The plain mean of each estimator over the cells in which all of them are reliable.

    Args:
        view: the study.
        estimators: names of estimators.
        models: whose cells; None is all.

    Returns:
        The means by estimator, or None where there is no such cell; and the number of cells.
    """
    complete = []
    for model in models or view.models:
        for language in view.languages:
            rates = [view.rate(model, language, name) for name in estimators]
            values = [r.rate for r in rates if r is not None and is_sound(r) and r.rate is not None]
            if len(values) == len(estimators):
                complete.append(values)
    if not complete:
        return None, 0
    return {name: sum(row[index] for row in complete) / len(complete) for index, name in enumerate(estimators)}, len(
        complete
    )


# Raw beside corrected: what the detector marked, and what each estimator makes of it.


_SHAPES = {"label-shift": "circle", "raw": "diamond", "paper": "square", "em": "triangle", "ppi": "cross"}


def correction_section(view: View) -> Section | None:
    """Estimators side by side by model, every corrected rate against its raw one, and all of them as a table.

    None where the study has one estimator.
    """
    names = [each.value for each in view.estimators]
    if len(names) < 2:
        return None
    intro = note(
        "A detector marks some supported words and misses some unsupported ones, so the marked share is not the rate."
        f" Figures in this report are by {view.results.estimator}: {estimator_words(view.results.estimator)}."
    )
    body = [
        intro,
        *_by_model(view, names),
        *_against_raw(view),
        folded("All estimates as a table", _correction_table(view, names)),
    ]
    return Section("correction", "Raw beside corrected", "Raw and corrected", body, ("rates",))


def _key(names: list[str], own: str) -> Markup:
    items = [
        tag(
            "li",
            tag("svg", _mark(name, "50%", own), class_="key-mark", aria_hidden="true"),
            tag("b", name), " ", estimator_words(name),
        )
        for name in names
    ]  # fmt: skip
    return tag("ul", *items, class_="key")


def _mark(name: str, at: str, own: str) -> Markup:
    kind = "dot" if name == own else "other"
    return tag("use", href=f"#shape-{_SHAPES.get(name, 'circle')}", x=at, y="50%", class_=kind)


def _by_model(view: View, names: list[str]) -> Iterator[Markup]:
    own = view.results.estimator
    means = {model: shared_means(view, names, [model]) for model in view.models}
    axis = axis_for([value for values, _ in means.values() if values for value in values.values()])
    strips = []
    for model, (values, cells) in means.items():
        if values is None:
            strips.append(Strip(model_label(model), Markup(""), (*("–" for _ in names), "0")))
            continue
        ends = {"x1": axis.at(min(values.values())), "x2": axis.at(max(values.values()))}
        line = tag("line", **ends, y1="50%", y2="50%", class_="link")
        marks = joined([line, *(_mark(name, axis.at(values[name]), own) for name in reversed(names))])
        figures = (tag("b", percent(values[name])) if name == own else percent(values[name]) for name in names)
        strips.append(Strip(model_label(model), marks, (*figures, str(cells))))
    yield _key(names, own)
    heads = ("Model", "Rate", *names, "Languages")
    caption = "Mean of each estimator over the languages in which all of them are reliable"
    yield strip_table(strips, axis, caption=caption, heads=heads, tick=axis.percent)


def _against_raw(view: View) -> Iterator[Markup]:
    own = view.results.estimator
    if own == "raw" or "raw" not in view.estimators:
        return
    points = []
    for rate in view.own_rates:
        raw = view.rate(rate.model or "", rate.language, "raw")
        if raw is None or raw.rate is None or rate.rate is None:
            continue
        name = f"{rate.model}, {view.language(rate.language)}: raw {percent(raw.rate)}, {own} {rate_text(rate)}"
        points.append(Point(raw.rate, rate.rate, name, doubtful=not is_sound(rate)))
    if not points:
        return
    both = axis_for([value for point in points if not point.doubtful for value in (point.x, point.y)])
    yield tag("h3", "Every rate against its marked share")
    doubtful = sum(point.doubtful for point in points)
    beyond = sum(both.beyond(point.x) or both.beyond(point.y) for point in points)
    sentences = [f"{count(len(points), 'rate')}; on the line, correction changes nothing."]
    if doubtful:
        sentences.append(f"Hollow: {doubtful} unreliable.")
    if beyond:
        sentences.append(f"{beyond} of them lie beyond an axis and are drawn at its end.")
    yield note(" ".join(sentences))
    yield _plot(points, both, own)


def _plot(points: list[Point], both: Axis, own: str) -> Markup:
    return scatter(
        points, both, both, x_name="marked share (raw)", y_name=f"rate by {own}", x_tick=both.percent,
        y_tick=both.percent, told=f"Scatter of {len(points)} rates by {own} against the marked share.", diagonal=True,
    )  # fmt: skip


def _correction_table(view: View, names: list[str]) -> Markup:
    rows = [
        (
            model_label(model),
            language_label(view.language(language), language),
            *(rate_words(view.rate(model, language, name)) for name in names),
        )
        for model in view.models
        for language in view.languages
        if view.cell(model, language) is not None
    ]
    return Table("", "Every estimate", ("Model", "Language", *names), rows).to_html(tall=True)


def panel_section(view: View) -> Section:
    """Every language with its models, and every model with its languages."""
    axis = _axis(view)
    raw = "raw" in view.estimators and view.results.estimator != "raw"
    diamond = " A diamond is the marked share, not corrected." if raw else ""
    intro = note(
        f"Each dot is a rate with its interval.{diamond} A hollow dot with a broken line is unreliable. The axis is the"
        " same everywhere; what lies beyond it is drawn at its end.",
    )
    by_language = [_language(view, tag_, axis) for tag_ in view.languages]
    by_model = [_model(view, name, axis) for name in view.models]
    body = (
        intro,
        folded("By language", tag("div", *by_language, class_="panels"), opened=True),
        folded("By model", tag("div", *by_model, class_="panels"), opened=True),
    )
    return Section("panels", "Each language and each model", "Each one", body, ("rates",))


def _axis(view: View) -> Axis:
    ends = [rate.high if rate.high is not None else rate.rate for rate in view.own_rates if is_sound(rate)]
    raw = (view.rate(rate.model or "", rate.language, "raw") for rate in view.own_rates)
    marked = [rate.rate for rate in raw if is_sound(rate) and rate is not None]
    return axis_for([end for end in (*ends, *marked) if end is not None], count=5)


def _language(view: View, tag_: str, axis: Axis) -> Markup:
    strips = [_strip(view, name, tag_, axis, _name(name)) for name in view.models]
    return _panel(strips, axis, language_label(view.language(tag_), tag_), "Model")


def _model(view: View, name: str, axis: Axis) -> Markup:
    strips = [_strip(view, name, tag_, axis, _name(view.language(tag_))) for tag_ in view.languages]
    return _panel(strips, axis, model_label(name), "Language")


def _name(name: str) -> Markup:
    """A name that a narrow panel may cut short on the screen; it is whole in the title and for screen readers."""
    return bdi(name, title=name)


def _strip(view: View, model: str, language: str, axis: Axis, label: Markup) -> Strip:
    rate = view.rate(model, language)
    marks = rate_marks(rate, axis, f"{model}, {view.language(language)}")
    raw = view.rate(model, language, "raw") if view.results.estimator != "raw" else None
    return Strip(label, joined([_raw(raw, axis), marks]), (rate_words(rate),))


def _raw(rate: Rate | None, axis: Axis) -> Markup | None:
    if rate is None or rate.rate is None or not is_sound(rate):
        return None
    told = tag("title", f"raw: {rate_text(rate)}")
    return tag("g", told, tag("use", href="#shape-diamond", x=axis.at(rate.rate), y="50%", class_="other"))


def _panel(strips: list[Strip], axis: Axis, caption: Markup, head: str) -> Markup:
    chart = strip_table(strips, axis, caption=caption, heads=(head, "Rate", "Figures"), tick=axis.percent)
    return tag("div", chart, class_="panel")
