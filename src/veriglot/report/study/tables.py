"""Every table of a study as rows: CSV, JSON, Markdown and LaTeX.

A rate that is `unreliable` stands in columns of its own, so that nobody who reads the column `rate` takes it for one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import UnknownNameError
from veriglot.report.html import opened
from veriglot.report.study.view import View, is_sound
from veriglot.report.tables import BOOKTABS, Table, escape_latex, escape_markdown, latex_row, markdown_row
from veriglot.report.text_layout import count, interval, percent, points, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from veriglot.records import Rate
    from veriglot.report.tables import Value
    from veriglot.study.results import Average, Cell, StudyResults

__all__ = ["FORMATS", "study_table", "study_tables", "write_tables"]


def study_tables(results: StudyResults) -> dict[str, Table]:
    """Every table of a study that has rows, by name."""
    view = View(results)
    tables = (table(view) for table in _TABLES)
    return {table.name: table for table in tables if table.rows}


_RATE_COLUMNS = (
    "model", "language", "estimator", "rate", "low", "high", "status", "reason", "unreliable_rate", "unreliable_low",
    "unreliable_high", "unit", "units", "responses", "coverage", "detector", "seed", "signature",
)  # fmt: skip


def _rate_row(rate: Rate) -> tuple[Value, ...]:
    numbers, nothing = (rate.rate, rate.low, rate.high), (None, None, None)
    sound = is_sound(rate)
    return (
        rate.model, rate.language, rate.estimator.value, *(numbers if sound else nothing), rate.status.value,
        rate.reason, *(nothing if sound else numbers), rate.unit, rate.units, rate.responses, rate.coverage,
        rate.detector, rate.seed, rate.signature,
    )  # fmt: skip


def _in_order(view: View) -> Iterator[Cell]:
    for model in view.models:
        for language in view.languages:
            cell = view.cell(model, language)
            if cell is not None:
                yield cell


def _rates(view: View) -> Table:
    rows = (_rate_row(rate) for cell in _in_order(view) for rate in cell.rates)
    return Table("rates", "Rates by model, language and estimator", _RATE_COLUMNS, tuple(rows))


def _replicates(view: View) -> Table:
    rows = (_rate_row(rate) for cell in _in_order(view) for rate in cell.replicates)
    return Table("replicates", "Rates by detector and seed", _RATE_COLUMNS, tuple(rows))


def _cells(view: View) -> Table:
    columns = ("model", "language", "replicates_mean", "replicates_sd", "mean_length", "unit")
    unit = view.results.unit
    rows = ((c.model, c.language, c.mean, c.sd, c.length, unit) for c in _in_order(view))
    return Table("cells", "Mean and standard deviation over detectors and seeds, and mean length", columns, tuple(rows))


def _average_rows(averages: Iterable[Average]) -> tuple[tuple[Value, ...], ...]:
    return tuple((a.name, a.mean, a.low, a.high, a.sd, a.cells, a.unreliable) for a in averages)


def _by_model(view: View) -> Table:
    columns = ("model", "mean", "low", "high", "sd", "languages", "unreliable_left_out")
    return Table("models", "Mean rate of each model over languages", columns, _average_rows(view.results.by_model))


def _by_language(view: View) -> Table:
    columns = ("language", "mean", "low", "high", "sd", "models", "unreliable_left_out")
    return Table(
        "languages", "Mean rate in each language over models", columns, _average_rows(view.results.by_language)
    )


def _settings(view: View) -> Table:
    keys = sorted({key for model in view.results.models for key in model.settings})
    columns = ("model", "family", "parameters_billions", "declared_languages", *keys)
    rows: list[tuple[Value, ...]] = []
    for model in view.results.models:
        declared = (model.name, model.family, model.parameters, model.languages)
        rows.append((*declared, *(model.settings.get(key) for key in keys)))
    return Table("settings", "The models and what they were asked with", columns, tuple(rows))


def _ranks(view: View) -> Table:
    rows = tuple((r.language, r.model, r.rank, r.low, r.high) for r in view.results.ranks)
    return Table("ranks", "Ranks with their intervals", ("language", "model", "rank", "low", "high"), rows)


def _comparisons(view: View) -> Table:
    columns = (
        "first", "second", "language", "difference", "low", "high", "p", "p_adjusted", "effect", "paired", "queries",
        "method",
    )  # fmt: skip
    rows = tuple(
        (
            c.first, c.second, c.language, c.difference, c.low, c.high, c.p, c.p_adjusted, c.effect, c.paired,
            c.queries, c.method,
        )
        for c in view.results.comparisons
    )  # fmt: skip
    return Table("comparisons", "Differences between models, first minus second", columns, rows)


def _correlations(view: View) -> Table:
    columns = ("name", "of", "r", "low", "high", "p", "points", "method")
    rows = tuple((c.name, c.of, c.r, c.low, c.high, c.p, c.points, c.method) for c in view.results.correlations)
    return Table("correlations", "Relations of rates with other things", columns, rows)


def _types(view: View) -> Table:
    unit = view.results.unit
    rows = tuple(
        (cell.model, cell.language, type_, number, unit)
        for cell in _in_order(view)
        for type_, number in sorted(cell.types.items())
    )
    columns = ("model", "language", "type", "marked_units", "unit")
    return Table("types", "Marked units by type, as the first detector marked them (raw counts)", columns, rows)


def _coverage(view: View) -> Table:
    statuses = sorted({status for cell in view.results.cells for status in cell.coverage.statuses})
    columns = ("model", "language", "planned", "answered", "failed", *statuses)
    rows: list[tuple[Value, ...]] = []
    for cell in _in_order(view):
        counts = cell.coverage
        given = (cell.model, cell.language, counts.planned, counts.answered, counts.failed)
        rows.append((*given, *(counts.statuses.get(status, 0) for status in statuses)))
    return Table("coverage", "What became of the responses", columns, tuple(rows))


def _quality(view: View) -> Table:
    columns = (
        "model", "language", "mean_words", "mean_sentences", "detectable", "most_frequent_language", "right_language",
        "refused", "repetitive", "truncated", "empty",
    )  # fmt: skip
    rows = tuple(
        (
            cell.model, cell.language, q.words, q.sentences, q.detectable, q.most_frequent_language, q.right_language,
            q.refused, q.repetitive, q.truncated, q.empty,
        )
        for cell in _in_order(view)
        for q in (cell.quality,)
    )  # fmt: skip
    return Table("quality", "Quality of the responses", columns, rows)


def _examples(view: View) -> Table:
    columns = ("model", "language", "sample", "start", "end", "type", "confidence", "text", "detector")
    rows = tuple(
        (
            example.sample.generator.name if example.sample.generator else None, example.sample.language,
            example.sample.id, span.start, span.end, span.type, span.confidence,
            example.sample.response[span.start : span.end], example.prediction.detector,
        )
        for example in view.results.examples
        for span in example.prediction.spans or ()
    )  # fmt: skip
    return Table("examples", "Marks of the examples; offsets are code points, half-open", columns, rows)


_TABLES: tuple[Callable[[View], Table], ...] = (
    _rates, _by_model, _by_language, _ranks, _comparisons, _correlations, _types, _coverage, _quality, _cells,
    _replicates, _settings, _examples,
)  # fmt: skip


def markdown_matrix(view: View) -> str:
    """Title, table, what is unreliable and why, and the signature."""
    lines = [f"**{escape_markdown(view.results.title)}**", "", escape_markdown(_caption(view)), ""]
    heads = ["Language", *(escape_markdown(name) for name in view.models), "Mean"]
    lines += [markdown_row(heads), markdown_row(["---", *("---:" for _ in heads[1:])])]
    for tag in view.languages:
        cells = [_markdown_cell(view.rate(name, tag)) for name in view.models]
        lines.append(markdown_row([f"{view.language(tag)} ({tag})", *cells, _average(view.average(tag))]))
    means = [_average(view.average(name)) for name in view.models]
    lines += [markdown_row(["**Mean**", *means, _average(view.results.overall)]), ""]
    lines += [f"- {escape_markdown(text)}" for text in _notes(view)]
    return "\n".join([*lines, "", f"Signature: `{view.results.signature.replace('`', '')}`", ""])


def _caption(view: View) -> str:
    level = f"{100 * view.results.confidence:g}%"
    return (
        f"Share of {view.units} that the evidence does not support, by {view.results.estimator}, with {level} intervals"
        " in percentage points and coverage (judged responses over those asked for or given)."
    )


def _markdown_cell(rate: Rate | None) -> str:
    if rate is None:
        return "not estimated"
    coverage = f"cov. {percent(rate.coverage, 0)}"
    if is_sound(rate):
        return f"{percent(rate.rate)} {interval(rate.low, rate.high)} {coverage}".replace("  ", " ")
    number = "no estimate" if rate.rate is None else f"{percent(rate.rate)}?"
    return f"*unreliable* ({number}) {coverage}"


def _average(average: Average | None) -> str:
    if average is None or average.mean is None:
        return "no mean"
    left_out = f" ({average.unreliable} left out)" if average.unreliable else ""
    return f"{percent(average.mean)} {interval(average.low, average.high)}".rstrip() + left_out


def _notes(view: View) -> Iterator[str]:
    """Why rates are unreliable, then the warnings of the study."""
    if view.unreliable:
        yield f"Unreliable, and in no mean: {count(len(view.unreliable), 'rate')} of {len(view.own_rates)}."
    for reason, rates in view.by_reason.items():
        yield f"{reason} ({view.places(rates)})"
    if view.unlike_means:
        yield view.unlike_means
    yield from view.results.warnings


def latex_matrix(view: View) -> str:
    """A `table*` for a paper (needs the package booktabs): rates over their intervals and coverage."""
    columns = "l" + "c" * len(view.models) + "c"
    heads = ["Language", *(escape_latex(name) for name in view.models), "Mean"]
    lines = [
        BOOKTABS, r"\begin{table*}", r"\centering", r"\small",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", latex_row(heads), r"\midrule",
    ]  # fmt: skip
    for tag in view.languages:
        rates = [view.rate(name, tag) for name in view.models]
        mean = view.average(tag)
        lines.append(latex_row([escape_latex(view.language(tag)), *map(_latex_rate, rates), _latex_mean(mean)]))
        lines.append(latex_row(["", *map(_latex_under, rates), _latex_ends(mean)]))
    means = [view.average(name) for name in view.models] + [view.results.overall]
    lines += [r"\midrule", latex_row(["Mean", *map(_latex_mean, means)])]
    lines += [latex_row(["", *map(_latex_ends, means)]), r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\caption{{{_latex_caption(view)}}}", r"\label{tab:rates}", r"\end{table*}"]
    lines += [f"% {' '.join(printable(text).split())}" for text in (*_notes(view), view.results.signature)]
    return "\n".join([*lines, ""])


def _latex_caption(view: View) -> str:
    text = escape_latex(f"{view.results.title}. {_caption(view)} Rates in %; under each its interval and coverage.")
    doubtful = r" \emph{unr.}: unreliable, not a rate and in no mean; in parentheses what the estimator gave."
    return text + (doubtful if view.unreliable else "")


def _latex_rate(rate: Rate | None) -> str:
    if rate is None or rate.rate is None:
        return "--" if rate is None else r"\emph{unr.}"
    number = escape_latex(points(rate.rate))
    return number if is_sound(rate) else rf"\emph{{unr.}} ({number}?)"


def _latex_under(rate: Rate | None) -> str:
    if rate is None:
        return ""
    coverage = escape_latex(percent(rate.coverage, 0))
    ends = interval(rate.low, rate.high) if is_sound(rate) else ""
    return rf"{{\scriptsize {' '.join(filter(None, (escape_latex(ends), coverage)))}}}"


def _latex_mean(average: Average | None) -> str:
    return r"--" if average is None or average.mean is None else rf"\textbf{{{escape_latex(points(average.mean))}}}"


def _latex_ends(average: Average | None) -> str:
    ends = interval(average.low, average.high) if average is not None else ""
    return rf"{{\scriptsize {escape_latex(ends)}}}" if ends else ""


# A study's tables as text for papers and programs: CSV, JSON, Markdown, LaTeX.


FORMATS = ("csv", "json", "markdown", "latex")


def study_table(results: StudyResults, format: str, *, table: str | None = None) -> str:  # noqa: A002  # as in the CLI
    """One table of a study, or what a format shows where none is named.

    Args:
        results: the study's results.
        format: `csv` (without a name: `rates`), `json` (without a name: an object with every table), `markdown` or
            `latex` (without a name: rates, languages by models, as a paper prints them).
        table: the name of a table: `rates`, `models`, `languages`, `ranks`, `comparisons`, `correlations`, `types`,
            `coverage`, `quality`, `cells`, `replicates`, `settings`, `examples`.

    Raises:
        UnknownNameError: no such format, or the study has no such table.
    """
    if format not in FORMATS:
        raise UnknownNameError("format of a table", format, FORMATS)
    tables = study_tables(results)
    if table is not None and table not in tables:
        raise UnknownNameError("table of this study", table, tables)
    if format == "json":
        return _json(results, tables, table)
    if format == "csv":
        return tables[table or "rates"].to_csv() if tables else ""
    if table is None:
        return (markdown_matrix if format == "markdown" else latex_matrix)(View(results))
    return tables[table].to_markdown() if format == "markdown" else tables[table].to_latex()


def write_tables(results: StudyResults, folder: str | Path) -> list[Path]:
    """Write every table of a study as `NAME.csv` into a folder, which is made where there is none.

    Returns:
        The files that were written.

    Raises:
        OSError: a file cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in study_tables(results).values():
        path = folder / f"{table.name}.csv"
        with opened(path) as file:
            file.write(table.to_csv())
        written.append(path)
    return written


def _json(results: StudyResults, tables: dict[str, Table], wanted: str | None) -> str:
    data: Any
    if wanted is not None:
        data = tables[wanted].records()
    else:
        data = {
            "title": results.title,
            "unit": results.unit,
            "estimator": results.estimator,
            "confidence": results.confidence,
            "warnings": results.warnings,
            "signature": results.signature,
            "tables": {name: table.records() for name, table in tables.items()},
        }
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode("utf-8") + "\n"
