"""A bench's results for look-up: leaderboards, cells, ranks; and every table as rows of plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from veriglot.bench.figures import WITH_PAIRWISE
from veriglot.bench.leaderboard import LESS_IS_BETTER
from veriglot.metrics.estimate import MEAN
from veriglot.metrics.measures import AT_THRESHOLD, ITEM_MEASURES, SPAN_MEASURES, TYPES
from veriglot.plugins import read_package_data
from veriglot.report.tables import Table, Value

if TYPE_CHECKING:
    from veriglot.bench.results import (
        BenchComparison,
        BenchData,
        BenchFigure,
        BenchResults,
        BenchStanding,
        BenchSystem,
        BenchWin,
    )

__all__ = ["ALL", "Board", "Row", "View", "bench_tables"]


ALL = "all"
"""The group of all languages."""


class Board(NamedTuple):
    """One leaderboard.

    Attributes:
        level: of the items.
        measure: the sort key of systems, as mean over data that no system was trained on.
        at: `tuned`, `own` or None.
        data: data sets that have the level.
        rows: one per system with results at this level: those with a rank, the best first, then those that left
            something out, then those without a figure that counts.
    """

    level: str
    measure: str
    at: str | None
    data: tuple[BenchData, ...]
    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        """Its title, in words."""
        summary = ITEM_MEASURES[self.measure].summary
        where = {"tuned": ", threshold tuned on dev", "own": ", at the system's own threshold"}.get(self.at or "", "")
        return f"{self.measure} of {self.level}s: {summary}{where}"

    @property
    def ranked(self) -> list[Row]:
        """The rows with a rank: systems that left nothing out."""
        return [row for row in self.rows if row.rank]

    @property
    def incomplete(self) -> list[Row]:
        """The rows of systems with figures that count, but without a rank, since they left something out."""
        return [row for row in self.rows if row.standing is not None and not row.rank]


class Row(NamedTuple):
    """A system on a leaderboard, with its figure on each data set and its win rate over all cells.

    `fair` are the data sets that no system of the bench was trained on; `standing` has its rank over these.
    """

    system: BenchSystem
    cells: dict[str, BenchFigure | None]
    fair: frozenset[str]
    win: BenchWin | None
    standing: BenchStanding | None = None

    @property
    def mean(self) -> float | None:
        """Over the data sets of `fair` in which it has a figure."""
        known = self.unseen
        return sum(known) / len(known) if known else None

    @property
    def unseen(self) -> list[float]:
        """The values in `mean`."""
        figures = (figure for data, figure in self.cells.items() if data in self.fair)
        return [figure.value for figure in figures if figure is not None and figure.value is not None]

    @property
    def rank(self) -> str:
        """The ranks that the tests cannot exclude, such as `1` or `2–4`; empty for a system without a rank."""
        if self.standing is None or self.standing.best is None:
            return ""
        best, worst = self.standing.best, self.standing.worst
        return f"{best}" if best == worst else f"{best}–{worst}"


class View:
    """Look-ups in the results of one bench.

    Attributes:
        results: the results.
        pairwise: figures of scorers that are also in the bench as `pairwise:`.
        levels: those of the labelled data sets, so that systems can be ranked.
    """

    def __init__(self, results: BenchResults) -> None:
        self.results = results
        self.pairwise = [figure for figure in results.figures if figure.measure == WITH_PAIRWISE]
        self.levels = tuple(level for level in results.measures if any(level in d.levels for d in _labelled(results)))
        self._figures: dict[tuple[str | None, ...], BenchFigure] = {
            (f.level, f.measure, f.at, f.data, f.system, f.language): f for f in results.figures
        }
        self._wins: dict[tuple[str | None, ...], BenchWin] = {
            (w.level, w.measure, w.at, w.scope, w.system): w for w in results.wins
        }

    def figure(
        self, level: str, measure: str, at: str | None, data: str, system: str, language: str = MEAN
    ) -> BenchFigure | None:
        """One figure, or None."""
        return self._figures.get((level, measure, at, data, system, language))

    def win(self, level: str, measure: str, at: str | None, scope: str, system: str) -> BenchWin | None:
        """A win rate, or None."""
        return self._wins.get((level, measure, at, scope, system))

    def data(self, level: str) -> tuple[BenchData, ...]:
        """The labelled data sets that were scored at a level."""
        return tuple(data for data in _labelled(self.results) if level in data.levels)

    def at(self, measure: str, wanted: str | None = None) -> str | None:
        """The threshold of a measure: the tuned or requested one, if the measure needs one; for spans their own."""
        if measure in SPAN_MEASURES:
            return "own"
        return (wanted or "tuned") if measure in AT_THRESHOLD else None

    def rank_by(self, level: str) -> str:
        """The measure that the leaderboard of a level is sorted by."""
        return self.results.ranking.get(level, self.results.rank_by)

    def measures(self, level: str, at: str | None = None) -> tuple[str, ...]:
        """The measures of a level: at own thresholds those that need one, and those of spans at level `word`."""
        every = self.results.measures[level]
        if at != "own":
            return every
        return (*(name for name in every if name in AT_THRESHOLD), *(SPAN_MEASURES if level == "word" else ()))

    def board(self, level: str) -> Board:
        """The leaderboard of a level."""
        measure = self.rank_by(level)
        at = self.at(measure)
        data = self.data(level)
        fair = frozenset(each.name for each in data if not each.seen)
        standings = {each.system: each for each in self.results.standings if each.level == level}
        rows = []
        for system in self.results.systems:
            cells = {each.name: self.figure(level, measure, at, each.name, system.name) for each in data}
            if any(figure is not None for figure in cells.values()):
                win = self.win(level, measure, at, ALL, system.name)
                rows.append(Row(system, cells, fair, win, standings.get(system.name)))
        sign = 1.0 if measure in LESS_IS_BETTER else -1.0
        rows.sort(key=lambda row: (_group(row), sign * (row.mean or 0.0), row.system.name))
        return Board(level, measure, at, data, tuple(rows))

    def pairs(self, level: str) -> list[BenchComparison]:
        """Every two systems of a level, by the mean over data that none was trained on."""
        return [pair for pair in self.results.pairs if pair.level == level]

    def texts(self, level: str, scope: str) -> int:
        """Number of texts resampled for the win rates of a scope: those of its cells that no system was trained on."""
        members = self.results.groups.get(scope, ())
        return sum(
            texts
            for data in self.data(level)
            if not data.seen
            for tag, (_, texts) in data.languages.items()
            if f"{data.name}/{tag}" in members
        )

    def accuracies(self, data: str) -> dict[tuple[str, str], dict[str, BenchFigure]]:
        """System (the best first) and language to its accuracy of types: for each type, and for all under `ALL`."""
        order = [row.system.name for row in self.board("response").rows] if "response" in self.levels else []
        parts = [(f, *f.measure.partition(":")[::2]) for f in self.results.figures if f.data == data and f.items]
        result: dict[tuple[str, str], dict[str, BenchFigure]] = {}
        chosen = [(f, type_ or ALL) for f, measure, type_ in parts if measure == TYPES and f.system in order]
        for f, type_ in sorted(chosen, key=lambda pair: (order.index(pair[0].system), pair[0].language == MEAN)):
            result.setdefault((f.system, f.language), {})[type_] = f
        return result

    def undefined(self, level: str) -> list[BenchFigure]:
        """Figures over all languages of the ranking measure that have no value."""
        board = self.board(level)
        figures = (figure for row in board.rows for figure in row.cells.values())
        return [figure for figure in figures if figure is not None and figure.value is None]


def _labelled(results: BenchResults) -> list[BenchData]:
    return [data for data in results.data if data.labelled]


def _group(row: Row) -> int:
    """The order of groups: systems with a rank, those that left something out, those without figures that count."""
    if row.mean is None:
        return 2
    return int(row.standing is not None and not row.rank)


# For programs: every table as rows of plain values.


_FIELDS = read_package_data(__package__, "bench_tables.toml", dict[str, dict[str, str]])


def bench_tables(results: BenchResults) -> dict[str, Table]:
    """Every table of a bench that has rows, by name."""
    view = View(results)
    of = {
        name: Table.of(table["title"], getattr(results, name), table["fields"], table.get("heads"))
        for name, table in _FIELDS.items()
    }
    wins = of["wins"]
    texts = [(*row, view.texts(win.level, win.scope)) for row, win in zip(wins.rows, results.wins, strict=True)]
    tables = {
        **{f"leaderboard_{level}": _board_rows(view.board(level)) for level in view.levels},
        "languages": _languages(view),
        **of,
        "wins": Table(wins.title, (*wins.columns, "texts"), texts),
        "correlations": _correlations(view),
        "pairwise": Table.of(
            "Pearson's correlation of scorers with themselves, pairwise",
            view.pairwise,
            "system data level language value low high p items clusters reason",
            "system data level language r low high p items texts reason",
        ),
        "type_accuracy": _type_accuracy(view),
        "type_confusions": _types(view),
        "coverage": _coverage(view),
        "data": _data(view),
    }
    return {name: table for name, table in tables.items() if table.rows}


def _board_rows(board: Board) -> Table:
    """A leaderboard: a row per system, its ranks, value and interval for each data set, mean and win rate."""
    columns = ["best_rank", "worst_rank", "system", "kind"]
    for data in board.data:
        columns += [data.name, f"{data.name}_low", f"{data.name}_high", f"{data.name}_seen", f"{data.name}_texts"]
    after = "mean mean_low mean_high data_sets left_out win_rate win_low win_high wins ties cells played"
    rows = []
    for row in board.rows:
        at = row.standing
        ranks, ends = ((at.best, at.worst), (at.low, at.high)) if at is not None else ((None,) * 2, (None,) * 2)
        values: list[Value] = [*ranks, row.system.name, row.system.kind]
        for data in board.data:
            f = row.cells[data.name]
            values += (f.value, f.low, f.high, f.seen, f.clusters) if f else (None,) * 5
        win = row.win
        values += [row.mean, *ends, len(row.unseen), at.left_out if at is not None else None]
        values += [win.rate, win.low, win.high, win.wins, win.ties, win.cells, win.played] if win else [None] * 7
        rows.append(tuple(values))
    return Table(board.title, (*columns, *after.split()), rows)


def _languages(view: View) -> Table:
    """The ranking measure in every language: the cells of the win rates."""
    ranks = {level: view.rank_by(level) for level in view.levels}
    figures = (f for f in view.results.figures if f.measure == ranks.get(f.level) and f.language != MEAN)
    names = list(dict.fromkeys(ranks.values()))
    fields = "level data language system value low high items positives seen clusters"
    columns = (
        f"level data language system {names[0] if len(names) == 1 else 'value'} low high items positives seen texts"
    )
    chosen = [f for f in figures if f.at == view.at(f.measure)]
    return Table.of(f"{' and '.join(names)} in each language", chosen, fields, columns)


def _type_accuracy(view: View) -> Table:
    """Accuracy of each type (HalluVerse25, Table 3), and the number of errors (Table 4)."""
    rows = [
        (system, f.data, tag, type_, f.value, f.low, f.high, f.items, f.items - f.positives, f.clusters, f.seen)
        for data in view.data("response")
        for (system, tag), figures in view.accuracies(data.name).items()
        for type_, f in figures.items()
    ]
    columns = "system data language type accuracy low high responses wrong texts seen"
    return Table.named("How often types are named", columns, rows)


def _correlations(view: View) -> Table:
    rows = [
        (c.level, c.scope, first, second, c.r[row][column], c.cells[row][column], c.largest_p[row][column], c.method)
        for c in view.results.correlations
        for row, first in enumerate(c.systems)
        for column, second in enumerate(c.systems)
        if column > row
    ]
    return Table.named("Correlations of systems' numbers", "level scope first second r cells largest_p method", rows)


def _types(view: View) -> Table:
    """Every matrix, also by language, a row per cell; a row without counts has the reason."""
    columns = "system data language of taxonomy type answer count share left_out seen reason signature"
    rows = []
    for c in view.results.confusions:
        cells: list[tuple[Value, ...]] = [] if c.counts else [(None,) * 4]
        for name, counts in zip(c.classes, c.counts, strict=True):
            whole = sum(counts)
            cells += [
                (name, answer, n, n / whole if whole else None) for answer, n in zip(c.answers, counts, strict=True)
            ]
        first, last = (c.system, c.data, c.language, c.of, c.taxonomy), (c.left_out, c.seen, c.reason, c.signature)
        rows += [(*first, *cell, *last) for cell in cells]
    return Table.named("Confusion of types", columns, rows)


def _coverage(view: View) -> Table:
    statuses = sorted({s for c in view.results.cells for counts in c.statuses.values() for s in counts})
    rows = [
        (c.system, c.data, c.level, tag, *(counts.get(status, 0) for status in statuses))
        for c in view.results.cells
        for tag, counts in c.statuses.items()
    ]
    columns = ("system", "data", "level", "language", *statuses)
    return Table("Outcomes of the test samples, by language", columns, rows)


def _data(view: View) -> Table:
    names = tuple(dict.fromkeys(name for data in view.results.data for name in data.statistics))
    columns = (
        "data", "test", "texts", "dev", "unlabelled", "bad_rows", "languages", "license", "split", "note", *names,
    )  # fmt: skip
    rows = []
    for data in view.results.data:
        test, texts = (sum(counts[index] for counts in data.languages.values()) for index in (0, 1))
        given = (data.name, test, texts, data.dev, data.unlabelled, data.bad_rows, " ".join(data.languages))
        rows.append((*given, data.license, data.split, data.note, *(data.statistics.get(name) for name in names)))
    return Table("The data sets, and statistics of their test parts", columns, rows)
