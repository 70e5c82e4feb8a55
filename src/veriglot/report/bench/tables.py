"""A bench's results as tables: CSV, JSON, LaTeX, the Markdown report, and the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.text import Text

from veriglot.bench.comparison import SURE_TEXTS
from veriglot.bench.results import MEAN
from veriglot.errors import UnknownNameError
from veriglot.report.bench.grids import (
    HOW_TO_READ,
    answer_grids,
    board_grid,
    comparison_grid,
    correlation_grids,
    cost_grid,
    data_grid,
    language_grid,
    measure_grid,
    missing_grid,
    statistics_grid,
    type_grid,
    type_summary,
    type_table,
    typed,
    undefined_grid,
    untyped_grid,
    win_grid,
)
from veriglot.report.bench.view import FEW_TEXTS, View, ends, findings, number, ranks, reading
from veriglot.report.html import opened
from veriglot.report.tables import BOOKTABS, PLAIN_WIDTH, Table, escape_latex, escape_markdown, latex_row
from veriglot.report.text_layout import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from veriglot.bench.results import BenchFigure, BenchResults
    from veriglot.report.bench.view import Board
    from veriglot.report.tables import Value

__all__ = ["FORMATS", "bench_document", "bench_tables", "render_bench", "write_bench_tables"]


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
    rows = tuple(tuple(getattr(figure, name) for name in columns) for figure in view.results.figures)
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
        (*(getattr(win, name) for name in columns), view.texts(win.level, win.scope)) for win in view.results.wins
    )
    title = "Win rates, with ties credited to all, and means by group of languages"
    return Table("wins", title, (*columns, "texts"), rows)


def _comparisons(view: View) -> Table:
    columns = (
        "data", "level", "measure", "at", "system", "baseline", "difference", "low", "high", "p", "adjusted", "items",
        "clusters", "correction", "reason",
    )  # fmt: skip
    rows = tuple(tuple(getattr(comparison, name) for name in columns) for comparison in view.results.comparisons)
    return Table("comparisons", "Differences from the baseline, by paired bootstrap", columns, rows)


def _thresholds(view: View) -> Table:
    columns = (
        "system", "data", "level", "measure", "language", "value", "direction", "reached", "items", "positives",
        "reason",
    )  # fmt: skip
    rows = tuple(tuple(getattr(threshold, name) for name in columns) for threshold in view.results.thresholds)
    return Table("thresholds", "Thresholds as tuned on dev, in the systems' own numbers", columns, rows)


def _data(view: View) -> Table:
    names = tuple(dict.fromkeys(name for data in view.results.data for name in data.statistics))
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
    for data in view.results.data:
        test, texts = (sum(counts[index] for counts in data.languages.values()) for index in (0, 1))
        given = (data.name, test, texts, data.dev, data.unlabelled, data.bad_rows, " ".join(data.languages))
        rows.append((*given, data.license, data.split, data.note, *(data.statistics.get(name) for name in names)))
    return Table("data", "The data sets, and statistics of their test parts", columns, tuple(rows))


def _correlations(view: View) -> Table:
    columns = ("level", "first", "second", "r", "cells", "largest_p", "method")
    return Table("correlations", "How systems' numbers go together", columns, tuple(_pairs(view)))


def _pairs(view: View) -> Iterator[tuple[Value, ...]]:
    for correlations in view.results.correlations:
        for row, first in enumerate(correlations.systems):
            for column in range(row + 1, len(correlations.systems)):
                second = correlations.systems[column]
                values = (
                    correlations.r[row][column],
                    correlations.cells[row][column],
                    correlations.largest_p[row][column],
                )
                yield (correlations.level, first, second, *values, correlations.method)


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
    rows = tuple(tuple(getattr(answers, name) for name in columns) for answers in view.results.answers)
    return Table("answers", "What systems say of data without labels", columns, rows)


_TABLES: tuple[Callable[[View], Table], ...] = (
    _languages, _wins, _comparisons, _answers, _correlations, type_table, _cells, _coverage, _thresholds, _data,
    _systems, _figures,
)  # fmt: skip


def latex_boards(view: View) -> str:
    """A `table*` for each level: values over their intervals, the best value of a column in bold."""
    if not view.levels:
        return f"% no data set has labels: there is nothing to rank\n% {view.results.signature}\n"
    return "\n".join(_board(view, view.board(level)) for level in view.levels)


def _board(view: View, board: Board) -> str:
    best = {data.name: _best(board, data.name) for data in board.data}
    heads = ["System", *(escape_latex(data.name) for data in board.data), "Mean", "Wins (\\%)"]
    lines = [
        BOOKTABS, r"\begin{table*}", r"\centering", r"\small",
        rf"\begin{{tabular}}{{l{'c' * (len(board.data) + 2)}}}", r"\toprule", latex_row(heads), r"\midrule",
    ]  # fmt: skip
    for row in board.rows:
        figures = [row.cells[data.name] for data in board.data]
        values = [_value(figure, best[data.name]) for figure, data in zip(figures, board.data, strict=True)]
        rate = row.win.rate if row.win is not None else None
        wins = "--" if rate is None else f"{100 * rate:.0f}"
        mean = "--" if row.mean is None else escape_latex(number(row.mean))
        lines.append(latex_row([escape_latex(row.system.name), *values, mean, wins]))
        under = [
            rf"{{\scriptsize {escape_latex(ends(figure.low, figure.high, figure.clusters))}}}" if figure else ""
            for figure in figures
        ]
        lines.append(latex_row(["", *under, "", ""]))
    caption = escape_latex(f"{view.results.title}: {board.title}. Under each value its 95% interval over texts.")
    shown = [figure for row in board.rows for figure in row.cells.values() if figure is not None]
    if any(figure.value is not None and figure.clusters < SURE_TEXTS for figure in shown):
        caption += f" {escape_latex(FEW_TEXTS)}"
    if any(figure.seen for figure in shown):
        caption += r" $\dagger$: the system was trained on the data, which is in no mean and win."
    lines += [
        r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", rf"\label{{tab:bench-{board.level}}}",
        r"\end{table*}", f"% {view.results.signature}", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _best(board: Board, data: str) -> str | None:
    """The best value of a column as it is printed, among systems that were not trained on the data."""
    figures = (row.cells[data] for row in board.rows)
    values = [figure.value for figure in figures if figure is not None and figure.value is not None and not figure.seen]
    return number(max(values)) if values else None


def _value(figure: BenchFigure | None, best: str | None) -> str:
    if figure is None or figure.value is None:
        return "--"
    text = escape_latex(number(figure.value))
    if figure.seen:
        return rf"{text}$^\dagger$"
    return rf"\textbf{{{text}}}" if number(figure.value) == best else text


def markdown_report(view: View) -> str:
    """The page."""
    lines = [f"# {escape_markdown(view.results.title)}", "", *_list(findings(view)), "", "## How to read it", ""]
    lines += [*_list(reading(view)), ""]
    for level in view.levels:
        lines += _level(view, level)
    lines += [*_unlabelled(view), *_types(view)]
    lines += ["## Against the baseline", "", *_table(comparison_grid(view))] if view.results.comparisons else []
    lines += ["## Data", "", *_table(data_grid(view))]
    counted = statistics_grid(view)
    lines += _table(counted, titled=True) if counted.rows else []
    lines += ["## Cost and coverage", "", *_table(cost_grid(view))]
    missing = missing_grid(view)
    if missing.rows:
        lines += [f"## {missing.title}", "", *_table(missing)]
    lines += ["## Systems", ""]
    for system in view.results.systems:
        what = system.signature or f"unavailable: {system.unavailable}"
        lines.append(f"- **{escape_markdown(system.name)}** ({system.kind}): {_code(what)}")
    return "\n".join([*lines, "", f"Signature: {_code(view.results.signature)}", ""])


def _level(view: View, level: str) -> Iterator[str]:
    board = view.board(level)
    yield f"## {level.capitalize()}s"
    yield ""
    yield f"{escape_markdown(board.title)}."
    yield ""
    yield from _table(board_grid(view, board))
    undefined = undefined_grid(view, level)
    if undefined.rows:
        yield from _table(undefined, titled=True)
    for data in board.data:
        yield f"### {escape_markdown(data.name)}, {level}s"
        yield ""
        yield from _table(measure_grid(view, level, data.name), titled=True)
        own = measure_grid(view, level, data.name, at="own")
        if view.own(level) and own.rows:
            yield from _table(own, titled=True)
        if len(data.languages) > 1:
            yield from _table(language_grid(view, level, data.name), titled=True)
    yield from _table(win_grid(view, level), titled=True)
    for grid in correlation_grids(view, level):
        yield from _table(grid, titled=True)


def _unlabelled(view: View) -> Iterator[str]:
    """Of data without labels: what systems say, and how it goes together where no leaderboard shows that."""
    if not view.results.answers:
        return
    yield from ("## Without labels", "")
    related = [
        grid for level in view.results.measures if level not in view.levels for grid in correlation_grids(view, level)
    ]
    for grid in (*answer_grids(view), *related):
        yield from _table(grid, titled=True)


def _types(view: View) -> Iterator[str]:
    if not view.confusions:
        return
    yield from ("## Which types are taken for which", "", escape_markdown(HOW_TO_READ), "")
    for confusion in typed(view):
        yield from _table(type_grid(confusion), titled=True)
        yield escape_markdown(type_summary(confusion))
        yield ""
    missing = untyped_grid(view)
    if missing.rows:
        yield from _table(missing, titled=True)


def _table(table: Table, *, titled: bool = False) -> Iterator[str]:
    if titled:
        yield f"{escape_markdown(table.title)}:"
        yield ""
    yield table.to_markdown()


def _list(words: list[str]) -> Iterator[str]:
    return (f"- {escape_markdown(text)}" for text in words)


def _code(text: str) -> str:
    return f"`{' '.join(text.replace('`', '').split())}`"


# A bench's results for papers and programs: Markdown, LaTeX (booktabs), CSV and JSON.


FORMATS = ("markdown", "latex", "csv", "json")


def bench_document(results: BenchResults, format: str, *, table: str | None = None) -> str:  # noqa: A002  # as in the CLI
    """A bench as a document.

    Args:
        results: of the bench.
        format: `markdown` (everything, as a page), `latex` (the leaderboards), `csv` (one table) or `json`.
        table: which table for `csv`; None for every figure.

    Raises:
        UnknownNameError: no such format, or the bench has no such table.
    """
    if format not in FORMATS:
        raise UnknownNameError("format of a leaderboard", format, FORMATS)
    if format == "json":
        return msgspec.json.format(msgspec.json.encode(results), indent=2).decode() + "\n"
    view = View(results)
    if format == "csv":
        tables = bench_tables(view)
        if (table or "figures") not in tables:
            raise UnknownNameError("table of this bench", table or "figures", tables)
        return tables[table or "figures"].to_csv()
    return markdown_report(view) if format == "markdown" else latex_boards(view)


def write_bench_tables(results: BenchResults, folder: str | Path) -> list[Path]:
    """Write every table of a bench as `NAME.csv` into a folder, which is made where there is none.

    Raises:
        OSError: a file cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in bench_tables(View(results)).values():
        path = folder / f"{table.name}.csv"
        with opened(path) as file:
            file.write(table.to_csv())
        written.append(path)
    return written


def render_bench(results: BenchResults, console: Console) -> None:
    """Print a bench.

    Args:
        results: of it.
        console: where to print; a pipe has 200 columns.
    """
    view = View(results)
    if not console.is_terminal:  # it says 80 columns, which is a guess
        console.width = max(console.width, PLAIN_WIDTH)
    console.print(Text(printable(results.title), style="bold"))
    for text in findings(view):
        console.print(Text(f"  {printable(text)}"))
    for level in view.levels:
        console.print()
        board_grid(view, view.board(level)).print(console)
        undefined = undefined_grid(view, level)
        if undefined.rows:
            console.print()
            undefined.print(console)
    bare = [level for level in results.measures if level not in view.levels]
    for grid in (*answer_grids(view), *(table for level in bare for table in correlation_grids(view, level))):
        console.print()
        grid.print(console)
    missing = missing_grid(view)
    if missing.rows:
        console.print()
        missing.print(console)
