"""A bench's results arranged for looking up: which leaderboard, in which order, what stands in which cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from veriglot.bench.fewness import few, too_few
from veriglot.bench.results import MEAN
from veriglot.bench.span_figures import SPAN_MEASURES
from veriglot.metrics.item_measures import AT_THRESHOLD, ITEM_MEASURES

if TYPE_CHECKING:
    from veriglot.bench.results import (
        BenchCell,
        BenchComparison,
        BenchConfusion,
        BenchData,
        BenchFigure,
        BenchResults,
        BenchSystem,
        BenchWin,
    )  # fmt: skip

__all__ = ["ALL", "FEW", "SEEN", "Board", "Row", "View", "ends", "figure_text", "number", "taken", "win_ends"]

ALL = "all"
SEEN = "†"
"""Stands beside a figure on data that the system was trained on."""

FEW = "‡"
"""Stands beside an interval over few texts."""

_MINUS = "\N{MINUS SIGN}"


def number(value: float | None, digits: int = 3) -> str:
    """A figure as text; a dash for none."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", _MINUS)


def ends(low: float | None, high: float | None, texts: int) -> str:
    """An interval over so many texts, with its mark where they are few; empty for none, or of too few."""
    if low is None or high is None or too_few(texts) is not None:
        return ""
    return f"[{number(low)}, {number(high)}]{FEW if few(texts) else ''}"


def win_ends(win: BenchWin, texts: int) -> str:
    """The interval of a win rate in percent, likewise."""
    if win.low is None or win.high is None or too_few(texts) is not None:
        return ""
    return f" [{100 * win.low:.0f}, {100 * win.high:.0f}]{FEW if few(texts) else ''}"


def figure_text(figure: BenchFigure | None) -> str:
    """Value, mark of seen data, and interval; a dash for none."""
    if figure is None or figure.value is None:
        return "–"
    mark = SEEN if figure.seen else ""
    return f"{number(figure.value)}{mark} {ends(figure.low, figure.high, figure.clusters)}".rstrip()


def taken(data: BenchData) -> str:
    """How much of a data set thresholds were tuned on, in words: `1 of 15 samples, 7%`."""
    every = data.dev + sum(samples for samples, _ in data.languages.values())
    return f"{data.dev:,} of {every:,} samples, {100 * data.dev / max(every, 1):.0f}%"


class Board(NamedTuple):
    """One leaderboard.

    Attributes:
        level: of the items.
        measure: what systems are sorted by.
        at: `tuned`, `own` or None.
        data: data sets that have the level.
        rows: one a system that gives anything at this level, the best first.
    """

    level: str
    measure: str
    at: str | None
    data: tuple[BenchData, ...]
    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        """What it shows, in words."""
        summary = ITEM_MEASURES[self.measure].summary
        where = {"tuned": ", threshold tuned on dev", "own": ", at the system's own threshold"}.get(self.at or "", "")
        return f"{self.measure} of {self.level}s: {summary}{where}"


class Row(NamedTuple):
    """A system on a leaderboard.

    Attributes:
        system: it.
        cells: data set to the figure over its languages, or None.
        fair: data sets that no system of the bench was trained on.
        win: its win rate over all cells; None where nothing was compared.
    """

    system: BenchSystem
    cells: dict[str, BenchFigure | None]
    fair: frozenset[str]
    win: BenchWin | None

    @property
    def mean(self) -> float | None:
        """Over the data sets of `fair` in which it has a figure."""
        known = self.unseen
        return sum(known) / len(known) if known else None

    @property
    def unseen(self) -> list[float]:
        """The values that `mean` is taken over."""
        found = (figure for data, figure in self.cells.items() if data in self.fair)
        return [one.value for one in found if one is not None and one.value is not None]


class View:
    """Look-ups in the results of one bench.

    Attributes:
        results: the results.
        levels: those that any labelled data set was judged at, so that there is something to rank by.
        confusions: which types detectors take for which.
    """

    def __init__(self, results: BenchResults) -> None:
        self.results = results
        self.levels = tuple(level for level in results.measures if any(level in d.levels for d in _labelled(results)))
        self.confusions: tuple[BenchConfusion, ...] = getattr(results, "confusions", ())
        self._figures: dict[tuple[str | None, ...], BenchFigure] = {
            (f.level, f.measure, f.at, f.data, f.system, f.language): f for f in results.figures
        }
        self._cells: dict[tuple[str, ...], BenchCell] = {(c.level, c.data, c.system): c for c in results.cells}
        self._wins: dict[tuple[str | None, ...], BenchWin] = {
            (w.level, w.measure, w.at, w.scope, w.system): w for w in results.wins
        }

    def figure(
        self, level: str, measure: str, at: str | None, data: str, system: str, language: str = MEAN
    ) -> BenchFigure | None:
        """One figure, or None."""
        return self._figures.get((level, measure, at, data, system, language))

    def cell(self, level: str, data: str, system: str) -> BenchCell | None:
        """What became of a system on a data set."""
        return self._cells.get((level, data, system))

    def win(self, level: str, measure: str, at: str | None, scope: str, system: str) -> BenchWin | None:
        """A win rate, or None."""
        return self._wins.get((level, measure, at, scope, system))

    def data(self, level: str) -> tuple[BenchData, ...]:
        """The data sets with labels that were judged at a level."""
        return tuple(one for one in _labelled(self.results) if level in one.levels)

    def at(self, measure: str, wanted: str | None = None) -> str | None:
        """How a measure is taken: at tuned thresholds, or those wanted, where it takes one; of spans at their own."""
        if measure in SPAN_MEASURES:
            return "own"
        return (wanted or "tuned") if measure in AT_THRESHOLD else None

    def measures(self, level: str, at: str | None = None) -> tuple[str, ...]:
        """The measures of a level: at own thresholds those that take one, and those of spans at level `word`."""
        every = self.results.measures[level]
        if at != "own":
            return every
        return (*(name for name in every if name in AT_THRESHOLD), *(SPAN_MEASURES if level == "word" else ()))

    def board(self, level: str, measure: str | None = None, at: str | None = None) -> Board:
        """A leaderboard; without a measure the one that the bench is ranked by."""
        measure = measure or self.results.rank_by
        at = at or self.at(measure)
        data = self.data(level)
        fair = frozenset(one.name for one in data if not one.seen)
        rows = []
        for system in self.results.systems:
            cells = {one.name: self.figure(level, measure, at, one.name, system.name) for one in data}
            if any(figure is not None for figure in cells.values()):
                rows.append(Row(system, cells, fair, self.win(level, measure, at, ALL, system.name)))
        rows.sort(key=_rank)
        return Board(level, measure, at, data, tuple(rows))

    def texts(self, level: str, scope: str) -> int:
        """How many texts the win rates of a scope are drawn from: those of its cells that no system was trained on."""
        members = self.results.groups.get(scope, ())
        return sum(
            texts
            for one in self.data(level)
            if not one.seen
            for tag, (_, texts) in one.languages.items()
            if f"{one.name}/{tag}" in members
        )

    def undefined(self, level: str) -> list[BenchFigure]:
        """Figures over all languages of the ranking measure that have no value."""
        board = self.board(level)
        figures = (figure for row in board.rows for figure in row.cells.values())
        return [figure for figure in figures if figure is not None and figure.value is None]

    def own(self, level: str) -> bool:
        """Whether any system has a threshold of its own at a level."""
        return any(figure.level == level and figure.at == "own" for figure in self.results.figures)

    def comparison(self, level: str, data: str, system: str) -> BenchComparison | None:
        """A system held against the baseline."""
        wanted = (level, data, system)
        return next((c for c in self.results.comparisons if (c.level, c.data, c.system) == wanted), None)

    def missing(self) -> list[BenchCell]:
        """Cells without figures, or with figures of a part of the samples."""
        return [cell for cell in self.results.cells if cell.status not in {"done", "unsuited"}]


def _labelled(results: BenchResults) -> list[BenchData]:
    return [one for one in results.data if one.labelled]


def _rank(row: Row) -> tuple[float, float, str]:
    """The most wins first, then the greatest mean; those without are last."""
    rate = row.win.rate if row.win is not None and row.win.rate is not None else -1.0
    mean = row.mean if row.mean is not None else -2.0
    return -rate, -mean, row.system.name
