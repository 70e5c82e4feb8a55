"""Every table of a study as plain rows, for CSV, JSON and the page's downloads.

A rate that is `unreliable` stands in columns of its own, so that nobody who reads the column `rate` takes it for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from veriglot.report.study.view import View, is_sound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from veriglot.records import Rate
    from veriglot.study.results import Average, Cell, StudyResults

__all__ = ["Table", "Value", "study_tables"]

Value = str | int | float | bool | None


class Table(NamedTuple):
    """One table.

    Attributes:
        name: short name, also of its file.
        title: what it holds, in words.
        columns: heads of the columns; shares are between 0 and 1.
        rows: a value for each column.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


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
