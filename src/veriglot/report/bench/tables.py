"""A bench's results as tables: what is saved as CSV, and what every other view is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.bench.results import MEAN
from veriglot.report.bench.leading import ranks
from veriglot.report.bench.type_grids import type_table
from veriglot.report.study.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from veriglot.report.bench.view import Board, View
    from veriglot.report.study.tables import Value

__all__ = ["bench_tables", "board_table"]


def bench_tables(view: View) -> dict[str, Table]:
    """Every table of a bench that has rows, by name."""
    boards = (board_table(view.board(level), f"leaderboard_{level}") for level in view.levels)
    tables = (*boards, *(table(view) for table in _TABLES))
    return {table.name: table for table in tables if table.rows}


def board_table(board: Board, name: str) -> Table:
    """A leaderboard: a row a system, value and interval of each data set, mean and win rate; see `leading.ranks`."""
    columns = ["rank", "system", "kind"]
    for data in board.data:
        columns += [data.name, f"{data.name}_low", f"{data.name}_high", f"{data.name}_seen", f"{data.name}_texts"]
    columns += ["mean", "data_sets", "win_rate", "win_low", "win_high", "wins", "ties", "cells", "played"]
    rows = []
    for rank, row in zip(ranks(board), board.rows, strict=True):
        values: list[Value] = [rank, row.system.name, row.system.kind]
        for data in board.data:
            figure = row.cells[data.name]
            shown = (figure.value, figure.low, figure.high, figure.seen, figure.clusters) if figure else (None,) * 5
            values += shown
        values += [row.mean, len(row.unseen)]
        win = row.win
        values += [win.rate, win.low, win.high, win.wins, win.ties, win.cells, win.played] if win else [None] * 7
        rows.append(tuple(values))
    return Table(name, board.title, tuple(columns), tuple(rows))


def _figures(view: View) -> Table:
    columns = (
        "system", "data", "level", "language", "measure", "at", "value", "low", "high", "items", "positives",
        "clusters", "chance", "coverage", "p", "seen", "reason", "signature",
    )  # fmt: skip
    rows = tuple(tuple(getattr(one, name) for name in columns) for one in view.results.figures)
    return Table("figures", "Every figure with its interval", columns, rows)


def _cells(view: View) -> Table:
    columns = (
        "system", "data", "level", "status", "reason", "coverage", "rows_timed", "seconds", "cpu_seconds",
        "rows_a_second", "model_calls", "tokens_in", "tokens_out", "money", "seen", "notes", "signature",
    )  # fmt: skip
    rows = tuple(
        (
            c.system, c.data, c.level, c.status, c.reason, c.coverage, c.cost.rows, c.cost.wall, c.cost.cpu,
            c.cost.speed, c.cost.calls, c.cost.tokens_in, c.cost.tokens_out, c.cost.money, c.seen,
            "; ".join(c.notes) or None, c.signature,
        )
        for c in view.results.cells
    )  # fmt: skip
    return Table("cells", "What became of every system on every data set, and what it took", columns, rows)


def _coverage(view: View) -> Table:
    statuses = sorted({s for c in view.results.cells for counts in c.statuses.values() for s in counts})
    rows: list[tuple[Value, ...]] = [
        (c.system, c.data, c.level, tag, *(counts.get(status, 0) for status in statuses))
        for c in view.results.cells
        for tag, counts in c.statuses.items()
    ]
    columns = ("system", "data", "level", "language", *statuses)
    return Table("coverage", "What became of the test samples, by language", columns, tuple(rows))


def _wins(view: View) -> Table:
    columns = (
        "level", "measure", "at", "scope", "system", "wins", "ties", "cells", "played", "rate", "low", "high", "mean",
    )  # fmt: skip
    rows = tuple(
        (*(getattr(one, name) for name in columns), view.texts(one.level, one.scope)) for one in view.results.wins
    )
    title = "Win rates, with ties credited to all, and means by group of languages"
    return Table("wins", title, (*columns, "texts"), rows)


def _comparisons(view: View) -> Table:
    columns = (
        "data", "level", "measure", "at", "system", "baseline", "difference", "low", "high", "p", "adjusted", "items",
        "clusters", "correction", "reason",
    )  # fmt: skip
    rows = tuple(tuple(getattr(one, name) for name in columns) for one in view.results.comparisons)
    return Table("comparisons", "Differences from the baseline, by paired bootstrap", columns, rows)


def _thresholds(view: View) -> Table:
    columns = (
        "system", "data", "level", "measure", "language", "value", "direction", "reached", "items", "positives",
        "reason",
    )  # fmt: skip
    rows = tuple(tuple(getattr(one, name) for name in columns) for one in view.results.thresholds)
    return Table("thresholds", "Thresholds as tuned on dev, in the systems' own numbers", columns, rows)


def _data(view: View) -> Table:
    names = tuple(dict.fromkeys(name for one in view.results.data for name in one.statistics))
    columns = (
        "data",
        "test",
        "texts",
        "dev",
        "unlabelled",
        "bad_rows",
        "languages",
        "license",
        "split",
        "note",
        *names,
    )
    rows: list[tuple[Value, ...]] = []
    for one in view.results.data:
        test, texts = (sum(counts[place] for counts in one.languages.values()) for place in (0, 1))
        given = (one.name, test, texts, one.dev, one.unlabelled, one.bad_rows, " ".join(one.languages))
        rows.append((*given, one.license, one.split, one.note, *(one.statistics.get(name) for name in names)))
    return Table("data", "The data sets, and statistics of their test parts", columns, tuple(rows))


def _correlations(view: View) -> Table:
    columns = ("level", "first", "second", "r", "cells", "largest_p", "method")
    return Table("correlations", "How systems' numbers go together", columns, tuple(_pairs(view)))


def _pairs(view: View) -> Iterator[tuple[Value, ...]]:
    for one in view.results.correlations:
        for row, first in enumerate(one.systems):
            for column in range(row + 1, len(one.systems)):
                second = one.systems[column]
                found = (one.r[row][column], one.cells[row][column], one.largest_p[row][column])
                yield (one.level, first, second, *found, one.method)


def _systems(view: View) -> Table:
    columns = ("system", "kind", "made_by", "options", "direction", "description", "unavailable", "signature")
    rows = tuple(
        (
            s.name, s.kind, s.made_by, "; ".join(f"{key}={value}" for key, value in s.options.items()) or None,
            s.direction, s.description, s.unavailable, s.signature,
        )
        for s in view.results.systems
    )  # fmt: skip
    return Table("systems", "The systems", columns, rows)


def _languages(view: View) -> Table:
    """The ranking measure of every language: what win rates are counted over."""
    rank_by = view.results.rank_by
    rows = tuple(
        (f.level, f.data, f.language, f.system, f.value, f.low, f.high, f.items, f.positives, f.seen, f.clusters)
        for f in view.results.figures
        if f.measure == rank_by and f.at == view.at(rank_by) and f.language != MEAN
    )
    columns = ("level", "data", "language", "system", rank_by, "low", "high", "items", "positives", "seen", "texts")
    return Table("languages", f"{rank_by} in each language", columns, rows)


def _answers(view: View) -> Table:
    columns = (
        "system", "data", "level", "language", "items", "clusters", "coverage", "flagged", "flagged_low",
        "flagged_high", "mean", "mean_low", "mean_high", "signature",
    )  # fmt: skip
    rows = tuple(tuple(getattr(one, name) for name in columns) for one in view.results.answers)
    return Table("answers", "What systems say of data without labels", columns, rows)


_TABLES: tuple[Callable[[View], Table], ...] = (
    _languages, _wins, _comparisons, _answers, _correlations, type_table, _cells, _coverage, _thresholds, _data,
    _systems, _figures,
)  # fmt: skip
