"""The table of all rates: languages by models, coloured, each with its interval and its coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.report.study.axes import HeatScale, heat_scale
from veriglot.report.study.figures import coverage_bar, estimator_words, flag, language_label, model_label
from veriglot.report.study.grids import scrolled
from veriglot.report.study.markup import Child, Markup, hidden, joined, tag
from veriglot.report.study.numbers import count, interval, percent, points, rate_text
from veriglot.report.study.sections import Section, note
from veriglot.report.study.view import by_model, is_sound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.records import Rate
    from veriglot.report.study.view import View
    from veriglot.study.results import Average, Cell

__all__ = ["cell_facts", "heat_section"]


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
        tag("div", table, class_="view", data_view=name, hidden=place > 0)
        for place, (name, table) in enumerate(zip(names, tables, strict=True))
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
            tag("input", type="radio", name="view", value=name, checked=place == 0),
            tag("span", name, title=estimator_words(name)),
        )
        for place, name in enumerate(names)
    ]
    legend = tag("legend", "Estimate")
    return tag("fieldset", legend, *choices, class_="choice", id="views", hidden=True)


def _legend(scale: HeatScale) -> Markup:
    digits = 0 if (100 * scale.width) % 1 < 1e-9 else 1
    digits = digits if 100 * scale.width >= 0.1 else 2
    steps = [
        tag(
            "li",
            f"{points(place * scale.width, digits)}–{points((place + 1) * scale.width, digits)}%",
            class_=f"heat-{scale.step_of(place)}",
        )
        for place in range(scale.classes)
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


def _cell(rate: Rate | None, scale: HeatScale, place: str) -> Markup:
    if rate is None:
        return tag("td", tag("span", "not estimated", class_="absent"), class_="cell", data_cell=place)
    if is_sound(rate) and rate.rate is not None:
        ends = interval(rate.low, rate.high)
        inner = (
            tag("b", percent(rate.rate)),
            tag("span", ends[1:-1].replace(", ", "–") if ends else "no interval", class_="interval"),
        )
        return tag(
            "td", *inner, coverage_bar(rate.coverage), class_=f"cell heat-{scale.step(rate.rate)}", data_cell=place
        )
    doubt = "no estimate" if rate.rate is None else f"({percent(rate.rate)}?)"
    return tag(
        "td", flag(), tag("span", doubt, class_="doubt"), hidden(f". {rate.reason}"), coverage_bar(rate.coverage),
        class_="cell hatched", data_cell=place,
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


def _spread(cell: Cell | None, scale: HeatScale, place: str) -> Markup:
    if cell is None:
        return tag("td", tag("span", "not estimated", class_="absent"), class_="cell", data_cell=place)
    if cell.mean is None:
        return tag(
            "td", flag(), tag("span", "none is reliable", class_="doubt"), class_="cell hatched", data_cell=place
        )
    sound = sum(is_sound(rate) for rate in cell.replicates)
    spread = "one estimate" if cell.sd is None else f"± {points(cell.sd)}"
    return tag(
        "td",
        tag("b", percent(cell.mean)),
        tag("span", spread, class_="interval"),
        tag("span", f"{sound} of {len(cell.replicates)}", class_="left-out"),
        class_=f"cell heat-{scale.step(cell.mean)}",
        data_cell=place,
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
