"""A static site of several studies and benches: leaderboards, their reports, and files to download.

It needs no server and makes no requests: put the folder on any web server. Each board has its own address, made from
its title, and so has each row; pages of a run that is later left out stay. Boards are not combined: studies differ in
questions, detectors and units, benches in data.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from veriglot.bench.results import BenchResults
from veriglot.errors import UsageError
from veriglot.metrics.estimate import MEAN
from veriglot.report import bench_tables
from veriglot.report.bench import board_table, write_bench
from veriglot.report.bench_findings import few_texts, findings, reading
from veriglot.report.charts import HeatScale
from veriglot.report.pages import Fold, Part, Section, macro, open_page, write_report
from veriglot.report.study import ALL, View, leaders, paper_texts, rank_reach, study_tables, write_tables
from veriglot.report.study_page import write_study
from veriglot.report.tables import Cell, Table, Value, as_json, write_csv
from veriglot.report.text_layout import count, interval, percent, printable
from veriglot.study.results import StudyResults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


__all__ = ["write_site"]

Results = StudyResults | BenchResults

_BOARD = "board sortable"
_HEADS = 2  # first columns of each part of a board: name and rank
_ON_PAPER = 7


class Board(NamedTuple):
    """One run on the site: its results, and the name of its folder, which is part of all its addresses."""

    name: str
    results: Results

    @property
    def kind(self) -> str:
        """`study` or `bench`."""
        return "study" if isinstance(self.results, StudyResults) else "bench"

    @property
    def address(self) -> str:
        """The address of its section on the first page."""
        return f"board-{self.name}"

    def link(self, row: str) -> Markup:
        """A name at the start of a row, linked to its own address."""
        return _html("permalink", f"{self.name}.{_address(row)}", row)


def write_site(runs: Sequence[Results], folder: str | Path, *, title: str = "Leaderboards") -> list[Path]:
    """Write the site: `index.html`, `leaderboards.csv` and `.json`, and a folder for each run.

    The same results give the same bytes. Other files in the folder stay.

    Args:
        runs: results of studies and benches, in the order of the boards.
        folder: where to write; created if it does not exist.
        title: heading of the first page.

    Returns:
        The files, the first page first.

    Raises:
        UsageError: no results.
        OSError: a file cannot be written.
    """
    if not runs:
        raise UsageError("A site needs the results of a study or a bench.", "Name the folder of at least one run.")
    folder, boards = Path(folder), _named(runs)
    pages = [path for board in boards for path in _write_run(board, folder / board.name)]
    tables = {"leaderboards": _rows(boards)}
    kinds = [board.kind for board in boards]
    shown = (("study", "studies"), ("bench", "benches"))
    subtitle = [count(kinds.count(kind), kind, plural) for kind, plural in shown if kind in kinds]
    sections = [_overview(boards), *(_section(board) for board in boards)]
    write_report(folder / "index.html", title=title, subtitle=subtitle, sections=sections, tables=tables, public=True)
    records = folder / "leaderboards.json"
    with open_page(records) as file:
        file.write(as_json(tables["leaderboards"].records()))
    return [folder / "index.html", *write_csv(tables, folder), records, *pages]


def _html(name: str, *values: object) -> Markup:
    return macro(name, "site.html")(*values)


def _address(text: str) -> str:
    """A text as a part of an address: letters and digits of any script, and hyphens."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[\W_]+", "-", plain).strip("-")[:60] or "board"


def _named(runs: Sequence[Results]) -> list[Board]:
    """Boards with unique names, compared without case."""
    taken: dict[str, int] = {}
    boards = []
    for results in runs:
        name = _address(results.title)
        while name in taken:
            taken[name] += 1
            name = f"{name}-{taken[name]}"
        taken[name] = 1
        boards.append(Board(name, results))
    return boards


def _write_run(board: Board, folder: Path) -> list[Path]:
    """The report of a run, its results and tables."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(board.results, StudyResults):
        write_study(board.results, folder / "index.html")
        written = write_tables(board.results, folder / "tables")
    else:
        write_bench(board.results, folder / "index.html")
        written = write_csv(bench_tables.bench_tables(board.results), folder / "tables")
    with open_page(folder / "results.json") as file:
        file.write(as_json(board.results))
    return [folder / "index.html", folder / "results.json", *written]


def _overview(boards: Sequence[Board]) -> Section:
    """The list of boards, with the main finding of each run."""
    rows = []
    for board in boards:
        results = board.results
        if isinstance(results, StudyResults):
            who, what = count(len(results.models), "model"), count(len(results.languages), "language")
            leads = _leads(board)
        else:
            who, what = count(len(results.systems), "system"), count(len(results.data), "data set")
            levels = tuple(f"{level.capitalize()}s: " for level in bench_tables.View(results).levels)
            leads = [text for text in _leads(board) if text.startswith(levels)]
        link = _html("board_link", board.address, results.title)
        rows.append((link, Markup(" ").join(leads) or "–", board.kind, who, what))
    parts: list[Part] = [
        _html("filter"),
        Table("Boards", ("board", "what its tests show", "kind", "of", "on"), rows, look=_BOARD),
        "Boards are not combined: studies differ in questions, detectors and units, benches in data. Each says how its"
        " figures were made.",
        _html("downloads", "", ("leaderboards.csv", "leaderboards.json")),
    ]
    return Section("boards", "Boards", "Boards", parts, ("leaderboards",))


def _leads(board: Board) -> list[str]:
    """The sentences above a board."""
    if isinstance(board.results, StudyResults):
        view = View(board.results)
        return [_html("sentence", text, view.models) for text in leaders(view)]
    return findings(bench_tables.View(board.results))


def _section(board: Board) -> Section:
    """One board: its description, its tables, how to read them, and its files."""
    title = printable(board.results.title)
    folded = [f"{board.name}/index.html", f"{board.name}/results.json"]
    parts: list[Part] = [_leads(board)]
    if isinstance(board.results, StudyResults):
        view = View(board.results)
        detectors = ", ".join(board.results.detectors) or "an unnamed detector"
        protocol = (
            f"Share of {view.units} that are hallucinated, detected by {detectors}, estimated by"
            f" {board.results.estimator}, with {view.level} intervals. Ranks are those that the intervals do not"
            " exclude."
        )
        parts = [protocol, *parts, *_for_paper(_study_board(board, view))]
        if view.shared_languages and view.unlike_means:
            parts.append(f"Means and ranks are over the {view.shared_words}.")
        names = [*(f"{name}.csv" for name in study_tables(board.results)), *paper_texts(board.results)]
    else:
        bench = bench_tables.View(board.results)
        for level in bench.levels:
            table = board_table(bench, bench.board(level))
            rows = [(board.link(str(row[0])), *row[1:]) for row in table.rows]
            parts += _for_paper(Table(table.title, table.columns, rows, look=_BOARD))
        parts = [[*_leads(board), *few_texts(parts)], *parts[1:], Fold("How to read it", [reading(bench)])]
        names = [f"{name}.csv" for name in bench_tables.bench_tables(board.results)]
    files = [*folded, *(f"{board.name}/tables/{name}" for name in names)]
    parts += [_html("downloads", board.name, files), _html("signed", board.results.signature)]
    return Section(board.address, title, title if len(title) <= 40 else f"{title[:39]}…", parts)


def _for_paper(table: Table) -> Iterator[Table]:
    """A board; if it is wider than paper, also its columns in parts, which are printed instead."""
    first, rest = table.columns[:_HEADS], table.columns[_HEADS:]
    if len(rest) <= _ON_PAPER:
        yield table
        return
    yield replace(table, look=f"{table.look} spread")
    for start in range(0, len(rest), _ON_PAPER):
        columns = slice(_HEADS + start, _HEADS + start + _ON_PAPER)
        rows = [(_html("plain", row[0]), *row[1:_HEADS], *row[columns]) for row in table.rows]
        title = f"{table.title}, part {start // _ON_PAPER + 1}"
        yield Table(title, (*first, *table.columns[columns]), rows, look="board paper")


# Studies: models by languages.


def _study_board(board: Board, view: View) -> Table:
    """Models by languages, those with a rank first."""
    ranks = {rank.model: rank for rank in view.results.ranks if rank.language == ALL}
    scale = HeatScale.of(view.reliable(view.own_rates))
    rows = []
    for model in sorted(view.models, key=lambda name: ranks[name].rank if name in ranks else len(ranks) + 1):
        rank = ranks.get(model)
        reach = Cell("–", kind="absent") if rank is None else Cell(rank_reach(rank), value=rank.low)
        cells = (_rate_cell(view, model, tag, scale) for tag in view.languages)
        rows.append((board.link(model), reach, _mean_cell(view, model), *cells))
    heads = ("model", "rank", "mean", *map(view.language, view.languages))
    return Table(printable(board.results.title), heads, rows, look=_BOARD)


def _mean_cell(view: View, model: str) -> Cell:
    """The mean over the languages in which every model has a rate; ranks use the same languages."""
    average, shared = view.average(model), view.shared_languages
    values = view.reliable(view.rate(model, tag) for tag in shared)
    if not shared or len(values) < len(shared):
        return Cell("–", kind="absent", hint="no mean over languages that all models have a rate in")
    mean = fmean(values)
    whole = average is not None and view.unlike_means is None  # otherwise its interval is over other languages
    ends = interval(average.low, average.high) if average is not None and whole else ""
    return Cell(percent(mean), ends, value=mean, hint=f"over {count(len(shared), 'language')}")


def _rate_cell(view: View, model: str, tag: str, scale: HeatScale) -> Cell:
    rate = view.rate(model, tag)
    if rate is None:
        return Cell("–", kind="absent", hint="not estimated")
    hint = f"{model}, {view.language(tag)}: {count(rate.responses, 'response')}, coverage {percent(rate.coverage, 0)}"
    if not view.is_reliable(rate) or rate.rate is None:
        return Cell("unreliable", kind="absent", hint=f"{hint}; {rate.reason}")
    heat = (scale.step(rate.rate) + 0.5) / 10
    return Cell(percent(rate.rate), interval(rate.low, rate.high), value=rate.rate, heat=heat, hint=hint)


# Every figure of every board, machine-readable.


def _rows(boards: Sequence[Board]) -> Table:
    columns = "board title kind name measure on value low high best_rank worst_rank note signature"
    rows = []
    for board in boards:
        results, first = board.results, (board.name, board.results.title, board.kind)
        figures = _study_rows(results) if isinstance(results, StudyResults) else _bench_rows(results)
        rows += [(*first, *row, results.signature) for row in figures]
    return Table.named("Every figure of every board", columns, rows)


def _study_rows(results: StudyResults) -> Iterator[tuple[Value, ...]]:
    view = View(results)
    ranks = {(rank.model, rank.language): (rank.low, rank.high) for rank in results.ranks}
    for model in view.models:
        mean = _mean_cell(view, model)
        if mean.value is not None:
            yield model, "rate", ALL, mean.value, None, None, *ranks.get((model, ALL), (None, None)), mean.hint
        for tag in view.languages:
            rate = view.rate(model, tag)
            if rate is not None:
                sound = (rate.rate, rate.low, rate.high) if view.is_reliable(rate) else (None, None, None)
                yield model, "rate", tag, *sound, *ranks.get((model, tag), (None, None)), rate.reason


def _bench_rows(results: BenchResults) -> Iterator[tuple[Value, ...]]:
    view = bench_tables.View(results)
    for level in view.levels:
        board = view.board(level)
        measure = f"{board.measure} of {level}s"
        for row in board.rows:
            at = row.standing
            if at is not None:
                yield row.system.name, measure, MEAN, at.value, at.low, at.high, at.best, at.worst, at.left_out
            for f in (figure for figure in row.cells.values() if figure is not None):
                note = "trained on this data" if f.seen else f.reason
                yield row.system.name, measure, f.data, f.value, f.low, f.high, None, None, note
