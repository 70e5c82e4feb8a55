"""A study's results as one self-contained HTML file; `templates/study.html` is the template.

Every figure is text in the file: charts are SVG made here, tables are HTML tables. Without the page's script (other
estimates in the heat map, details of a cell, saving tables, filters), nothing is hidden.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from veriglot.metrics.reference import merged_runs
from veriglot.metrics.spans import covered
from veriglot.records import Pointer, Rate, Span, encode
from veriglot.report.charts import Axis, HeatScale, Mark, Point, Strip, share_chart, strip_table
from veriglot.report.pages import Section, macro, write_report
from veriglot.report.palette import UNTYPED, slot_of
from veriglot.report.study import ALL, View, findings, paper_texts, profile_table, rank_reach, study_tables
from veriglot.report.tables import Cell as TableCell
from veriglot.report.tables import Table
from veriglot.report.text_layout import (
    count,
    direction,
    excerpt,
    interval,
    is_in_passage,
    likelihood,
    misplaced_parts,
    number,
    percent,
    points,
    segments,
    signed,
)
from veriglot.study.methods import bibtex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from markupsafe import Markup

    from veriglot.datasets.quality import Quality
    from veriglot.study.results import Average, Cell, Comparison, Example, Model, RankInterval, StudyResults

    _Rows = list[tuple[Markup, list[Cell]]]

__all__ = ["write_study"]


def write_study(results: StudyResults, path: str | Path) -> None:
    """Write the report of a study as one self-contained page.

    The same results give the same bytes. The file gets its name only when complete.

    Args:
        results: the study's results.
        path: where to write; `-` is standard output.

    Raises:
        OSError: the file cannot be written.
    """
    view = View(results)
    tables = study_tables(results)
    texts = paper_texts(results)
    with suppress(UnicodeEncodeError):  # a text that cannot be encoded
        texts["results.json"] = encode(results).decode() + "\n"
    sections = (
        _rates(view), _models(view), _languages(view), _correction(view), _two_profiles(view), _panels(view),
        _relations(view),        _profile(view), _responses(view), _examples(view), _method(view, tables, texts),
    )  # fmt: skip
    write_report(
        path,
        title=results.title,
        subtitle=(
            f"Hallucination rates of {count(len(view.models), 'model')} in {count(len(view.languages), 'language')}",
            f"share of {view.units}",
            f"estimator {results.estimator}",
            f"{view.level} intervals",
            f"detected by {', '.join(results.detectors) or 'unnamed detector'}",
        ),
        sections=[section for section in sections if section is not None],
        tables=tables,
        texts=texts,
        lead=_html("findings", view, *view.judged_of_planned, list(findings(view))),
        cells={  # details of the selected cell, by its position (column-row), as text
            f"{column}-{row}": _facts(view, cell)
            for column, name in enumerate(view.models)
            for row, tag in enumerate(view.languages)
            if (cell := view.cell(name, tag)) is not None
        },
        wide=len(view.models) > 6,
    )


def _html(name: str, *values: Any, **named: Any) -> Markup:
    """A macro of the study's template, filled in."""
    return macro(name, "study.html")(*values, **named)


def _language(view: View, tag: str) -> Markup:
    return _html("language_of", view, tag)


# Rates: languages by models, means, corrections by estimator, each cell with its interval.


def _rates(view: View) -> Section:
    scale = HeatScale.of(view.reliable(rate for cell in view.results.cells for rate in cell.rates))
    body = _html("rates", view, scale, list(_scale_steps(scale)))
    return Section("rates", "Rates by language and model", "Rates", (body,), ("rates", "cells", "replicates"))


def _scale_steps(scale: HeatScale) -> Iterator[tuple[str, int]]:
    digits = 0 if (100 * scale.width) % 1 < 1e-9 else 1
    digits = digits if 100 * scale.width >= 0.1 else 2
    borders = (points(index * scale.width, digits) for index in range(scale.classes + 1))
    for index, (low, high) in enumerate(pairwise(borders)):
        yield f"{low}–{high}%", scale.step_of(index)


def _facts(view: View, cell: Cell) -> dict[str, Any]:
    counts = cell.coverage
    outcomes = [f"{counts.statuses.get('scored', 0):,} of {count(counts.planned, 'response')} judged"]
    outcomes += [f"{n:,} {status.replace('_', ' ')}" for status, n in counts.statuses.items() if status != "scored"]
    outcomes += [count(counts.failed, "failed call")] if counts.failed else []
    lines = [", ".join(outcomes), f"{cell.length:.1f} {view.units} in a response on average"]
    if cell.mean is not None and cell.sd is not None:
        replicates = f"{len(view.reliable(cell.replicates))} of {len(cell.replicates)} replicates"
        lines.append(f"{percent(cell.mean)} ± {points(cell.sd)} over {replicates}")
    return {
        "model": cell.model,
        "language": view.language(cell.language),
        "rates": [[rate.estimator.value, view.rate_text(rate), view.is_reliable(rate)] for rate in cell.rates],
        "reasons": list(dict.fromkeys(rate.reason for rate in cell.rates if rate.reason)),
        "lines": lines,
    }


def _languages(view: View) -> Section | None:
    """The mean of each language; None if the chart would have a single row, or equal ones."""
    if not _differ(each.mean for each in view.results.by_language):
        return None
    chart = _mean_chart(view, view.results.by_language, "Language", "models")
    return Section("languages", "Languages", "Languages", (_html("language_part", chart),), ("languages",))


def _mean_chart(view: View, averages: Sequence[Average], head: str, of: str) -> Markup:
    """A row for each average: its mean with the interval, and its single values as faint ticks."""
    axis = Axis.of([*(a.high for a in averages if a.high is not None), *view.reliable(view.own_rates)])
    strips = []
    for average in averages:
        over_languages = of == "languages"
        rates = [r for r in view.own_rates if average.name == (r.model if over_languages else r.language)]
        marks = [Mark("tick", value) for value in view.reliable(rates)]
        if average.mean is None:
            words = _html("flag", "no mean", f"no reliable {of}")
        else:
            ends = interval(average.low, average.high)
            title = f"{average.name if over_languages else view.language(average.name)}: {percent(average.mean)} {ends}"
            marks.append(_estimate(average.mean, average.low, average.high, "", title))
            words = _html("figure", percent(average.mean), ends or "no interval")
        left_out = f" of {average.cells + average.unreliable}" if average.unreliable else ""
        label = _html("model", average.name) if over_languages else _language(view, average.name)
        strips.append(Strip(label, marks, (words, f"{average.cells}{left_out}")))
    heads = (head, "Rate", "Mean and interval", of.capitalize())
    caption = f"Mean rate of each {head.lower()} over {of}"
    return strip_table(strips, axis, caption=caption, heads=heads)


def _differ(values: Iterable[float | None]) -> bool:
    """Whether a chart of these shows a difference: two values that are not equal."""
    return len({round(value, 6) for value in values if value is not None}) > 1


def _estimate(value: float, low: float | None, high: float | None, look: str, title: str) -> Mark:
    interval = None if low is None or high is None else (low, high)
    return Mark("estimate", value, look=look, title=title, interval=interval)


_SHAPE_OF = {"label-shift": "circle", "raw": "diamond", "paper": "square", "em": "triangle", "ppi": "cross"}


def _correction(view: View) -> Section | None:
    """Estimators side by side by model, and every corrected rate against its raw one; None with one estimator."""
    names = [each.value for each in view.estimators]
    if len(names) < 2:
        return None
    rows = [
        (
            _html("model", cell.model),
            _language(view, cell.language),
            *(_rate_words(view, view.rate(cell.model, cell.language, name)) for name in names),
        )
        for cell in view.cells
    ]
    table = Table("Every estimate", ("Model", "Language", *names), rows)
    points = list(_against_raw(view))
    points = points if len(points) >= _MIN_POINTS and _differ(point.x for point in points) else []
    axis = Axis.of([value for point in points if not point.doubtful for value in (point.x, point.y)])
    body = _html("correction", view, names, _SHAPE_OF, _estimator_chart(view, names), points, axis, table)
    return Section("correction", "Raw beside corrected", "Raw and corrected", (body,), ("rates",))


def _estimator_chart(view: View, names: list[str]) -> Markup | None:
    own = view.results.estimator
    means = {model: view.shared_means(names, [model]) for model in view.models}
    axis = Axis.of([value for values, _ in means.values() if values for value in values.values()])
    strips = []
    for model, (values, cells) in means.items():
        if values is None:
            continue
        looks = {name: "dot" if name == own else "other" for name in reversed(names)}
        marks = [Mark("line", min(values.values()), max(values.values()), "link")]
        marks += [Mark(_SHAPE_OF.get(name, "circle"), values[name], look=look) for name, look in looks.items()]
        texts = {name: percent(values[name]) for name in names}
        figures = (_html("figure", text) if name == own else text for name, text in texts.items())
        strips.append(Strip(_html("model", model), marks, (*figures, str(cells))))
    if not _differ(value for values, _ in means.values() if values for value in values.values()):
        return None
    heads = ("Model", "Rate", *names, "Languages")
    caption = f"Mean of each estimator over the languages in which {own} is reliable and the data support the others"
    return strip_table(strips, axis, caption=caption, heads=heads)


def _against_raw(view: View) -> Iterator[Point]:
    own = view.results.estimator
    for rate in view.own_rates if own != "raw" else ():
        raw = view.rate(rate.model or "", rate.language, "raw")
        if raw is not None and raw.rate is not None and rate.rate is not None:
            where = f"{rate.model}, {view.language(rate.language)}"
            name = f"{where}: raw {percent(raw.rate)}, {own} {view.rate_text(rate)}"
            yield Point(raw.rate, rate.rate, name, doubtful=not view.is_reliable(rate))


def _two_profiles(view: View) -> Section | None:
    """Rates by a detector's two profiles against each other; None if the study has no second one."""
    both = [each for each in view.results.profiles if each.rate.rate is not None and each.compared.rate is not None]
    drawn = [
        Point(each.compared.rate or 0.0, each.rate.rate or 0.0, name, doubtful=each.difference is None)
        for each in both
        for where in (f"{each.rate.model}, {view.language(each.rate.language)}",)
        for name in (f"{where}: {view.rate_text(each.rate)}, by compare_profile {view.rate_text(each.compared)}",)
    ]
    if view.profiles_agree is None:
        return None
    drawn = drawn if len(drawn) >= _MIN_POINTS else []
    axis = Axis.of([value for point in drawn if not point.doubtful for value in (point.x, point.y)])
    body = _html("two_profiles", view, drawn, axis, profile_table(view))
    return Section("two-profiles", "Two error profiles", "Two profiles", (body,), ("profiles", "correlations"))


def _rate_words(view: View, rate: Rate | None) -> Markup:
    if rate is None:
        return _html("absent", "not estimated")
    if view.is_reliable(rate):
        return _html("figure", percent(rate.rate), interval(rate.low, rate.high) or "no interval")
    return _html("flag", doubt=view.doubt(rate))


def _panels(view: View) -> Section | None:
    """Every language with its models, and every model with its languages, on one axis; None for a single rate."""
    if len(view.own_rates) < 2:
        return None
    raw = view.results.estimator != "raw" and "raw" in view.estimators
    ends = [rate.high if rate.high is not None else rate.rate for rate in view.own_rates if view.is_reliable(rate)]
    marked = view.figures(view.rate(rate.model or "", rate.language, "raw") for rate in view.own_rates)
    axis = Axis.of([end for end in (*ends, *marked) if end is not None], count=5)

    def panel(caption: Markup, head: str, rows: Iterable[tuple[str, str, str]]) -> Markup:
        strips = [_panel_strip(view, model, tag, name) for model, tag, name in rows]
        return strip_table(strips, axis, caption=caption, heads=(head, "Rate", "Figures"))

    languages = {tag: view.language(tag) for tag in view.languages}
    by_language = [panel(_language(view, tag), "Model", [(m, tag, m) for m in view.models]) for tag in languages]
    by_model = [
        panel(_html("model", model), "Language", [(model, tag, name) for tag, name in languages.items()])
        for model in view.models
    ]
    panels = {
        "By language": by_language if len(view.models) > 1 else [],
        "By model": by_model if len(languages) > 1 else [],
    }
    body = _html("panels", view, raw, panels)
    return Section("panels", "Each language and each model", "Each one", (body,), ("rates",))


def _panel_strip(view: View, model: str, tag: str, name: str) -> Strip:
    rate, marks = view.rate(model, tag), []
    raw = view.rate(model, tag, "raw") if view.results.estimator != "raw" else None
    if raw is not None and raw.rate is not None and view.figures([raw]):
        marks.append(Mark("diamond", raw.rate, look="other", title=f"raw: {view.rate_text(raw)}"))
    if rate is not None and rate.rate is not None:
        look = "" if view.is_reliable(rate) else "doubtful"
        title = f"{model}, {view.language(tag)}: {view.rate_text(rate)}"
        marks.append(_estimate(rate.rate, rate.low, rate.high, look, title))
    return Strip(_html("short", name), marks, (_rate_words(view, rate),))


# Models: rank intervals, pairs of models, and rates against size, languages and length.


_LISTED = 60
"""Maximum number of comparisons within languages in the list; the table for programs has all."""


def _models(view: View) -> Section | None:
    """Means, rank intervals and comparisons of the models; None for a single one."""
    if len(view.models) < 2:
        return None
    by_language: dict[str, list[RankInterval]] = {}
    for rank in view.results.ranks:
        by_language.setdefault(rank.language, []).append(rank)
    overall_ranks = by_language.pop(ALL, [])
    settled = any(rank.low > 1 or rank.high < len(overall_ranks) for rank in overall_ranks)
    shared, every = len(view.shared_languages), len(view.languages)
    over = "Rank over all languages" if shared == every else f"Rank over the {view.shared_words} (of {every})"
    overall = {(c.first, c.second): c for c in view.results.comparisons if c.language == ALL}
    within = [c for c in view.results.comparisons if c.language != ALL]
    body = _html(
        "model_part",
        view,
        _mean_chart(view, view.results.by_model, "Model", "languages")
        if _differ(each.mean for each in view.results.by_model)
        else None,
        over,
        _rank_chart(overall_ranks, over) if settled else None,
        _rank_table(view, by_language) if by_language else None,
        {
            "matrix": _matrix(view, overall) if overall else None,
            "overall": _comparison_table(view, overall.values()),
            "within": _comparison_table(view, within) if 0 < len(within) <= _LISTED else None,
        },
        _tests(view.results.comparisons),
        len(within),
    )
    return Section("models", "Models", "Models", (body,), ("models", "ranks", "comparisons", "settings"))


def _tests(comparisons: Sequence[Comparison]) -> str:
    """The tests, and the correction; the table has what each of them leaves out."""
    parts = [comparison.method.partition("; ") for comparison in comparisons]
    names = dict.fromkeys(part.split(",")[0].split(" (")[0] for part, _, _ in parts)
    return "; ".join([" or ".join(names), *dict.fromkeys(correction for _, _, correction in parts if correction)])


def _rank_chart(ranks: Sequence[RankInterval], caption: str) -> Markup:
    axis = Axis(1.0, float(max(len(ranks), 2)), tuple(map(float, range(1, len(ranks) + 1))))
    strips = [
        Strip(
            _html("model", rank.model),
            [Mark("line", rank.low, rank.high, "span broad"), Mark("dot", rank.rank)],
            (_html("figure", rank.rank), rank_reach(rank)),
        )
        for rank in sorted(ranks, key=lambda rank: (rank.rank, rank.low))
    ]
    heads = ("Model", "Rank", "Rank", "Not excluded")
    return strip_table(strips, axis, caption=caption, heads=heads, tick=axis.plain, class_="ranks")


def _rank_table(view: View, by_language: Mapping[str, Sequence[RankInterval]]) -> Table:
    rows = []
    for tag in view.languages:
        ranks = {rank.model: rank for rank in by_language.get(tag, ())}
        cells = (
            _html("figure", ranks[name].rank, f"[{rank_reach(ranks[name])}]") if name in ranks else _html("absent", "–")
            for name in view.models
        )
        rows += [(_language(view, tag), *cells)] if ranks else []
    title = "Rank in each language, with the ranks that the data do not exclude"
    return Table(title, ("Language", *(_html("model", name) for name in view.models)), rows)


def _matrix(view: View, comparisons: dict[tuple[str, str], Comparison]) -> Table:
    labels = {name: _html("model", name) for name in view.models}
    rows = [
        (label, *(_difference(view, comparisons, first, second) for second in labels))
        for first, label in labels.items()
    ]
    title = "Differences of mean rates over all languages, row minus column"
    return Table(title, ("", *labels.values()), rows, look="matrix")


def _difference(view: View, comparisons: dict[tuple[str, str], Comparison], first: str, second: str) -> TableCell:
    if first == second:
        return TableCell("", kind="diagonal")
    sign = 1 if (first, second) in comparisons else -1
    comparison = comparisons.get((first, second)) or comparisons.get((second, first))
    if comparison is None:
        return TableCell("–", kind="absent")
    value, p = sign * comparison.difference, f"p = {_p_text(comparison.p_adjusted)}".replace("= <", "<")
    clear = comparison.p_adjusted < 1 - view.results.confidence
    kind = ("clear less" if value < 0 else "clear more") if clear else "unclear"
    return TableCell(_html("difference", signed(value), clear), p, kind=kind)


def _comparison_table(view: View, comparisons: Iterable[Comparison]) -> Table:
    heads = ("First", "Second", "In", "Difference", "Interval", "p", "p adjusted", "Effect", "Queries")
    rows = [
        (
            _html("model", c.first), _html("model", c.second), view.language(c.language), signed(c.difference),
            interval(c.low, c.high), _p_text(c.p), _p_text(c.p_adjusted), number(c.effect, 2),
            f"{c.queries:,}{' paired' if c.paired else ' unpaired'}",
        )
        for c in comparisons
    ]  # fmt: skip
    return Table("First minus second, in percentage points", heads, rows)


def _p_text(p: float) -> str:
    return "<\u00a00.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


_SHAPES = ("circle", "square", "triangle", "diamond", "cross", "plus")
_SLOTS = ("blue", "rust", "moss", "violet", "teal", "rose", "ochre", "indigo", "red", "slate")
_MIN_POINTS = 3
"""Minimum number of points of a scatter chart."""


def _relations(view: View) -> Section | None:
    """Length against the rate and the amount, models by size and languages, and every correlation as a figure."""
    names = [model.name for model in view.results.models]  # neighbours differ in colour and shape
    looks = {name: (_SHAPES[i % len(_SHAPES)], _SLOTS[i % len(_SLOTS)]) for i, name in enumerate(names)}
    shares = []
    for rate in view.own_rates:
        cell = view.cell(rate.model or "", rate.language)
        if cell is not None and rate.rate is not None:
            where = f"{cell.model}, {view.language(cell.language)}"
            name = f"{where}: {view.rate_text(rate)}, {cell.length:.1f} {view.units}"
            shares.append(Point(cell.length, rate.rate, name, *looks[cell.model], doubtful=not view.is_reliable(rate)))
    shares = shares if _differ(point.x for point in shares) else []  # otherwise all responses have the same length
    amounts = [point._replace(y=point.x * point.y) for point in shares]
    heads = ("Compared with the rate", "Points", "Method", "Coefficient or difference", "Interval", "p")
    rows = [
        (
            c.name, f"{c.points:,} {c.of}", c.method, TableCell(number(c.r, 2), kind="strong"),
            "none" if c.low is None or c.high is None else f"[{number(c.low, 2)}, {number(c.high, 2)}]",
            _p_text(c.p),
        )
        for c in view.results.correlations
    ]  # fmt: skip
    plots = (
        _by_model(view, looks, lambda model: model.parameters, "billions of parameters"),
        _by_model(view, looks, lambda model: model.languages, "languages that its makers declare"),
    )
    body = _html(
        "relations",
        view,
        looks,
        any(rate.rate is not None for rate in view.unreliable),
        *({"points": drawn, "axis": Axis.of([p.y for p in drawn if not p.doubtful])} for drawn in (shares, amounts)),
        Axis.of([point.x for point in shares]),
        [plot for plot in plots if plot is not None],
        Table("Relations of rates with other quantities", heads, rows),
    )
    if len(shares) < _MIN_POINTS and not rows:
        return None
    title = "Length, size and number of languages"
    return Section("relations", title, "Length and size", (body,), ("correlations", "cells"))


def _by_model(
    view: View, looks: Mapping[str, tuple[str, str]], measure: Callable[[Model], float | None], name: str
) -> tuple[str, list[Point], Axis, Axis] | None:  # fmt: skip
    models = {model.name: model for model in view.results.models}
    drawn = []
    for average in view.results.by_model:
        value = measure(models[average.name]) if average.name in models else None
        if value is not None and average.mean is not None:
            title = f"{average.name}: {value:g} {name}, mean rate {percent(average.mean)}"
            drawn.append(Point(value, average.mean, title, *looks[average.name], label=average.name))
    if len(drawn) < _MIN_POINTS or not _differ(point.x for point in drawn):
        return None
    x, y = Axis.of([point.x for point in drawn]), Axis.of([point.y for point in drawn])
    reach, height = 0.4 * (x.high - x.low), 0.06 * (y.high - y.low)

    def crowded(point: Point) -> bool:
        return sum(abs(other.x - point.x) < reach and abs(other.y - point.y) < height for other in drawn) > 1

    # A name is shown if there is room for it: the legend has all.
    return name, [point._replace(label=None) if crowded(point) else point for point in drawn], x, y


# Responses: coverage, quality, types of errors by model, and examples.


_SCORED, _NO_CALL, _NO_ANSWER = "judged", "call failed", "not answered"
_STATUS_SLOTS = {
    _SCORED: "moss", "no evidence": "ochre", "unsupported language": "violet", "too long": "teal", "failed": "red",
    _NO_CALL: "rust", _NO_ANSWER: "slate",
}  # fmt: skip
_SHARES = ("detectable", "right_language", "refused", "repetitive", "truncated", "empty")
_NAMES = ("Words", "Sentences", "Detectable", "Right language", "Refused", "Repetitive", "Truncated", "Empty")
_MAX_SHARE = {"refused": 0.1, "repetitive": 0.1, "truncated": 0.2, "empty": 0.02}
_MIN_SHARE = {"detectable": 0.9, "right_language": 0.9}


def _grouped_cells(view: View) -> tuple[_Rows, _Rows]:
    """The cells of each model, and of each language."""
    cells = view.results.cells
    models = [(_html("model", name), [cell for cell in cells if cell.model == name]) for name in view.models]
    languages = [(_language(view, tag), [cell for cell in cells if cell.language == tag]) for tag in view.languages]
    return models, languages


def _by_both(models: _Rows, languages: _Rows, chart: Callable[[_Rows, str], Markup]) -> dict[str, Markup]:
    """A chart by model and one by language; one with a single row only if the other has a single row too."""
    both = {"By model": (models, "Model"), "By language": (languages, "Language")}
    several = {name: part for name, part in both.items() if len(part[0]) > 1} or {"By model": both["By model"]}
    return {name: chart(*part) for name, part in several.items()}


def _responses(view: View) -> Section:
    """Coverage by model and by language, quality by model and by cell."""
    models, languages = _grouped_cells(view)
    slots = {name: _STATUS_SLOTS.get(name, "rose") for name in _outcomes(view.results.cells)}
    quality = [(label, *_quality([(c.quality, c.coverage.answered) for c in cells])) for label, cells in models]
    by_cell = [
        (
            _html("model", cell.model),
            _language(view, cell.language),
            TableCell(view.language(most) if most else "–", kind="" if most in {None, cell.language} else "watch"),
            *_quality([(cell.quality, max(cell.coverage.answered, 1))]),
        )
        for cell in view.cells
        for most in (cell.quality.most_frequent_language,)
    ]
    charts = _by_both(models, languages, _coverage) if len(slots) > 1 else {}
    body = _html(
        "responses",
        slots,
        view.judged_of_planned[1],
        charts,
        Table("Mean over the answered responses", ("Model", *_NAMES), quality),
        Table("Quality in each language", ("Model", "Language", "Most frequent", *_NAMES), by_cell),
    )
    return Section("responses", "Coverage and quality", "Coverage", (body,), ("coverage", "quality"))


def _outcomes(cells: Sequence[Cell]) -> dict[str, int]:
    """Number of planned responses by outcome; they add up to all planned ones."""
    outcomes = Counter({_SCORED: 0})
    for cell in cells:
        for status, times in cell.coverage.statuses.items():
            outcomes[_SCORED if status == "scored" else status.replace("_", " ")] += times
    outcomes[_NO_CALL] = sum(cell.coverage.failed for cell in cells)
    outcomes[_NO_ANSWER] = max(sum(cell.coverage.planned for cell in cells) - outcomes.total(), 0)
    return {name: times for name, times in outcomes.items() if times or name == _SCORED}


def _coverage(rows: _Rows, head: str) -> Markup:
    strips = []
    for label, cells in rows:
        outcomes = _outcomes(cells)
        judged, planned = outcomes[_SCORED], sum(outcomes.values())
        share = _html("figure", percent(judged / planned if planned else None))
        strips.append((label, outcomes, (share, f"{judged:,} of {planned:,}")))
    heads = (head, "Responses", "Coverage", "Judged of planned")
    caption = "Outcomes of the responses"
    return share_chart(strips, lambda name: _STATUS_SLOTS.get(name, "rose"), caption=caption, heads=heads)


def _quality(parts: Sequence[tuple[Quality, int]]) -> Iterator[TableCell]:
    """Means weighted by the number of responses, over the cells that have the figure."""
    for name in ("words", "sentences", *_SHARES):
        weighted = [(getattr(q, name), n * (q.detectable if name == "right_language" else 1)) for q, n in parts]
        known = [(value, weight) for value, weight in weighted if value is not None]
        total = sum(weight for _, weight in known)
        value = sum(value * weight for value, weight in known) / total if total else None
        if name in _SHARES:
            bad = value is not None and (value > _MAX_SHARE.get(name, 2.0) or value < _MIN_SHARE.get(name, -1.0))
            yield TableCell(percent(value), kind="watch" if bad else "")
        else:
            yield TableCell("–" if value is None else f"{value:.1f}")


def _profile(view: View) -> Section | None:
    """Shares of the types among the marks; None if no mark has a type."""
    total = _all_types(view.results.cells)
    types = [name for name, times in total.most_common() if times]
    if not types:
        return None
    models, languages = _grouped_cells(view)
    charts = _by_both(models, languages, lambda rows, head: _type_chart(rows, types, head, view))
    body = _html("profile", view, types, total[types[0]], charts if len(types) > 1 else {})
    return Section("types", "Type profile", "Types", (body,), ("types",))


def _all_types(cells: Iterable[Cell]) -> Counter[str]:
    return sum((Counter(cell.types) for cell in cells), Counter[str]())


def _type_chart(rows: _Rows, types: Sequence[str], head: str, view: View) -> Markup:
    strips = []
    for label, cells in rows:
        counts = _all_types(cells)
        largest = _html("absent", "nothing marked")
        if counts.total():
            name, most = min(counts.items(), key=lambda item: (-item[1], item[0]))
            largest = _html("largest", name, percent(most / counts.total(), 0))
        strips.append((label, {name: counts[name] for name in types}, (f"{counts.total():,}", largest)))
    heads = (head, "Types", f"Marked {view.units}", "Most frequent")
    return share_chart(strips, slot_of, caption=f"Share of each type among the marked {view.units}", heads=heads)


_LONG = 1600
"""A longer response, in code points, is shown around its marks only, with the number of code points left out."""
_AROUND = 240
_PLACES = 2
_JOINERS = "\u200c\u200d"


class _Piece(NamedTuple):
    text: str
    look: str = ""
    title: str = ""
    left_out: int = 0  # code points not shown here


def _examples(view: View) -> Section | None:
    """The most confident marks to read; None without examples."""
    if not view.results.examples:
        return None
    body = _html("examples", view, [_card(example) for example in view.results.examples])
    return Section("examples", "Examples to read", "Examples", (body,), ("examples",))


def _card(example: Example) -> dict[str, Any]:
    sample, prediction = example.sample, example.prediction
    tag = sample.language or prediction.language or ""
    spans = prediction.spans or ()
    return {
        "sample": sample,
        "tag": tag,
        "model": sample.generator.name if sample.generator else "unnamed model",
        "way": direction(sample.response, tag),
        "asked_way": direction(sample.question or "", tag),
        "pieces": list(_pieces(sample.response, [_visible(span, sample.response) for span in spans])),
        "marks": list(_marks(example)),
        "problems": misplaced_parts(sample, prediction),
        "detector": prediction.detector,
    }


def _visible(span: Span, text: str) -> Span:
    """The span with edges that do not split a visible character: a letter and its diacritics, a joined emoji."""
    start, end = min(span.start, len(text)), min(span.end, len(text))
    while 0 < start < len(text) and _continues_character(text, start):
        start -= 1
    while 0 < end < len(text) and _continues_character(text, end):
        end += 1
    return replace(span, start=start, end=max(end, start + 1))


def _continues_character(text: str, at: int) -> bool:
    """Whether the code point at `at` belongs to the visible character before it."""
    return unicodedata.category(text[at]) in {"Mn", "Mc", "Me"} or text[at] in _JOINERS or text[at - 1] == "\u200d"


def _pieces(text: str, spans: Sequence[Span]) -> Iterator[_Piece]:
    """The response split at the edges of its spans; of a long one, only the context of the spans."""
    shown_to = 0
    windows = _windows(text, spans)
    for piece in segments(len(text), spans):
        look, title = _look([spans[index] for index in piece.covering])
        for first, last in windows:
            start, end = max(piece.start, first), min(piece.end, last)
            if start < end:
                if start > shown_to:
                    yield _Piece("", left_out=start - shown_to)
                yield _Piece(text[start:end], look, title)
                shown_to = end
    if shown_to < len(text):
        yield _Piece("", left_out=len(text) - shown_to)


def _windows(text: str, spans: Sequence[Span]) -> list[tuple[int, int]]:
    """The parts of a response that are shown."""
    if len(text) <= _LONG:
        return [(0, len(text))]
    parts = [(0, _AROUND), *((max(0, s.start - _AROUND), min(len(text), s.end + _AROUND)) for s in spans)]
    return [(first, last) for first, last in merged_runs(covered(len(text), np.array(parts))).tolist()]


def _look(covering: Sequence[Span]) -> tuple[str, str]:
    """CSS classes and title of the covering spans, the innermost first."""
    if not covering:
        return "", ""
    inner = covering[-1]
    strength = 5 if inner.confidence is None else min(int(inner.confidence * 5), 4) + 1
    titles = (
        f"{span.type or UNTYPED}{'' if span.confidence is None else f', confidence {likelihood(span.confidence)}'}"
        for span in reversed(covering)
    )
    nested = " nested" if len(covering) > 1 else ""
    return f"part slot-{slot_of(inner.type)} strength-{strength}{nested}", ", ".join(titles)


def _marks(example: Example) -> Iterator[dict[str, Any]]:
    """The marks, with the passages that each was compared with; a passage is quoted once."""
    sample = example.sample
    passages = {passage.id or "": passage for passage in sample.evidence}
    quoted: dict[Pointer, int] = {}
    for rank, span in enumerate(example.prediction.spans or (), 1):
        text = sample.response[span.start : span.end]
        pointers = list(dict.fromkeys(span.evidence))
        yield {
            "type": span.type or UNTYPED,
            "slot": slot_of(span.type),
            "confidence": span.confidence,
            "quoted": excerpt(sample.response, span.start, min(span.end, len(sample.response)), around=0).quoted,
            "held": [
                {
                    "id": pointer.id,
                    "earlier": first if (first := quoted.setdefault(pointer, rank)) < rank else None,
                    "excerpt": excerpt(passage.text, pointer.start, pointer.end, mark=text, around=60),
                    "way": direction(passage.text, passage.language),
                    "tag": passage.language or "",
                }
                for pointer in pointers[:_PLACES]
                if (passage := passages.get(pointer.id)) is not None and is_in_passage(pointer, len(passage.text))
            ],
            "more": len(pointers) - _PLACES,
        }


def _method(view: View, tables: Mapping[str, Table], texts: Iterable[str]) -> Section:
    """Methods with references, assumptions, the models' settings, terms, downloads and the signature."""
    heads = ("Model", "Family", "Asked with", "Parameters (billions)", "Declared languages")
    rows = []
    for model in view.results.models:
        settings = ", ".join(f"{key} {value}" for key, value in sorted(model.settings.items()) if value is not None)
        rows.append(
            (
                _html("model", model.name),
                model.family or "–",
                settings or _html("absent", "the server's defaults, or responses that were given"),
                "–" if model.parameters is None else f"{model.parameters:g}",
                "–" if model.languages is None else f"{model.languages:,}",
            )
        )
    references = bibtex(view.results)
    body = _html("method", view, tables, list(texts), references, Table("What the study file declares", heads, rows))
    return Section("methods", "Methods and assumptions", "Methods", (body,), ("settings",))
