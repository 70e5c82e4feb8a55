"""A bench's results arranged for views: leaderboards, cells, ranks, and the findings in sentences."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from veriglot.bench.figures import SURE_TEXTS, UNTUNED, few
from veriglot.bench.results import MEAN
from veriglot.metrics.estimate import FEWEST_TEXTS, too_few
from veriglot.metrics.measures import AT_THRESHOLD, ITEM_MEASURES, SPAN_MEASURES
from veriglot.report.text_layout import MINUS, count

if TYPE_CHECKING:
    from veriglot.bench.results import (
        BenchData,
        BenchFigure,
        BenchResults,
        BenchSystem,
        BenchWin,
    )

__all__ = ["ALL", "FEW_TEXTS", "SEEN", "Board", "View", "ends", "findings", "number", "ranks", "reading", "taken"]


ALL = "all"
SEEN = "†"
"""Stands beside a figure on data that the system was trained on."""

FEW = "‡"
"""Stands beside an interval over few texts."""


def number(value: float | None, digits: int = 3) -> str:
    """A figure as text; a dash for none."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", MINUS)


def ends(low: float | None, high: float | None, texts: int, *, percent: bool = False) -> str:
    """An interval over so many texts, with its mark where they are few; empty for none, or of too few."""
    if low is None or high is None or too_few(texts) is not None:
        return ""
    shown = f"{100 * low:.0f}, {100 * high:.0f}" if percent else f"{number(low)}, {number(high)}"
    return f"[{shown}]{FEW if few(texts) else ''}"


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
    """A system on a leaderboard, with its figure on each data set and its win rate over all cells.

    `fair` names the data sets that no system of the bench was trained on.
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
        figures = (figure for data, figure in self.cells.items() if data in self.fair)
        return [figure.value for figure in figures if figure is not None and figure.value is not None]


class View:
    """Look-ups in the results of one bench.

    Attributes:
        results: the results.
        levels: those that any labelled data set was judged at, so that there is something to rank by.
    """

    def __init__(self, results: BenchResults) -> None:
        self.results = results
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
        """The data sets with labels that were judged at a level."""
        return tuple(data for data in _labelled(self.results) if level in data.levels)

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
        fair = frozenset(each.name for each in data if not each.seen)
        rows = []
        for system in self.results.systems:
            cells = {each.name: self.figure(level, measure, at, each.name, system.name) for each in data}
            if any(figure is not None for figure in cells.values()):
                rows.append(Row(system, cells, fair, self.win(level, measure, at, ALL, system.name)))
        rows.sort(key=_rank)
        return Board(level, measure, at, data, tuple(rows))

    def texts(self, level: str, scope: str) -> int:
        """How many texts the win rates of a scope are drawn from: those of its cells that no system was trained on."""
        members = self.results.groups.get(scope, ())
        return sum(
            texts
            for data in self.data(level)
            if not data.seen
            for tag, (_, texts) in data.languages.items()
            if f"{data.name}/{tag}" in members
        )

    def undefined(self, level: str) -> list[BenchFigure]:
        """Figures over all languages of the ranking measure that have no value."""
        board = self.board(level)
        figures = (figure for row in board.rows for figure in row.cells.values())
        return [figure for figure in figures if figure is not None and figure.value is None]


def _labelled(results: BenchResults) -> list[BenchData]:
    return [data for data in results.data if data.labelled]


def _rank(row: Row) -> tuple[float, float, str]:
    """The most wins first, then the greatest mean; those without are last."""
    rate = row.win.rate if row.win is not None and row.win.rate is not None else -1.0
    mean = row.mean if row.mean is not None else -2.0
    return -rate, -mean, row.system.name


def ranks(board: Board) -> list[int | None]:
    """The place of every row: by wins, then by the mean as it is printed; those equal in both share a place.

    A system without a figure on data that counts has no place.
    """
    places: list[int | None] = []
    previous: tuple[int, tuple[float | None, str]] | None = None
    for row in board.rows:
        if row.mean is None:
            places.append(None)
            continue
        key = _standing(row)
        if previous is None or key != previous[1]:
            previous = sum(rank is not None for rank in places) + 1, key
        places.append(previous[0])
    return places


def _standing(row: Row) -> tuple[float | None, str]:
    return (row.win.rate if row.win is not None else None), number(row.mean)


def headline(board: Board, baseline: str | None) -> str:
    """One sentence on a leaderboard in which any system has a figure: who leads, or why nobody does."""
    level, places = f"{board.level.capitalize()}s", ranks(board)
    standing = [row for row in board.rows if row.mean is not None]
    if not standing:
        data_names = ", ".join(data.name for data in board.data if data.seen)
        return f"{level}: nobody leads: a system was trained on all data that has figures ({data_names})."
    if len(standing) == 1:
        return f"{level}: {standing[0].system.name} alone has figures that count{_mean(standing)}."
    first = [row for row in standing if _wins(row) == _wins(standing[0])]
    rank = next((n for n, row in zip(places, board.rows, strict=True) if row.system.name == baseline), None)
    behind = baseline not in {row.system.name for row in first}
    other = f"; {baseline} is number {rank}" if behind and rank is not None and rank > 1 else ""
    systems = f" ({count(len(board.rows), 'system')})"
    return f"{level}: {_leaders(first, standing, board.measure)}{systems}{other}."


def _leaders(first: list[Row], standing: list[Row], measure: str) -> str:
    names, wins = and_list([row.system.name for row in first]), _won(first, measure)
    best = [row for row in first if _standing(row) == _standing(first[0])]
    if len(first) == 1:
        return f"{names} leads{wins}{_mean(first)}"
    if len(best) == len(standing):
        return f"nobody leads: {names} are equal{wins}{_mean(first)}"
    if len(best) == len(first):
        return f"{names} lead together{wins}{_mean(first)}"
    greatest = and_list([row.system.name for row in best])
    have = "has" if len(best) == 1 else "have"
    if not wins:  # no wins were counted: the mean alone says who leads
        return f"{greatest} {'leads' if len(best) == 1 else 'lead together'}{_mean(best)}"
    return f"{names} lead together{wins}; {greatest} {have} the greatest mean, {_mean(best).removeprefix(', mean ')}"


def _wins(row: Row) -> int | None:
    return row.win.wins if row.win is not None and row.win.rate is not None else None


def _won(rows: list[Row], measure: str) -> str:
    win = rows[0].win
    if win is None or win.rate is None:
        return ""
    each = "each " if len(rows) > 1 else ""
    return f", {each}with the most {measure} in {win.wins} of {win.cells} cells of language and data set"


def _mean(rows: list[Row]) -> str:
    """The mean of rows that have the same one."""
    sets = sorted({len(row.unseen) for row in rows})
    over = count(sets[0], "data set") if len(sets) == 1 else f"{sets[0]} to {sets[-1]} data sets"
    return f", mean {number(rows[0].mean)} over {over}"


def and_list(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# What a reader of a leaderboard must know, in words: how to read it, and who leads by how much.


FEW_TEXTS = (
    f"{FEW} marks intervals over {FEWEST_TEXTS} to {SURE_TEXTS - 1} texts: so few, drawn again, show too little of how"
    " other texts would differ (in simulations, 65% to 94% of such intervals held the truth, not 95%). Believe neither"
    f" them nor a test or a lead on so few texts. Under {FEWEST_TEXTS} texts no interval is given."
)


_RANKED = (
    "Thresholds are tuned on the dev part of each data set for each system and measure (precision and recall take that"
    " of F1), and never on the test part that figures stand on.",
    "A win is a language of a data set in which no system has more, at two decimals; all who tie are credited. A dash"
    " is a figure that is undefined or was not measured; it is never a zero.",
)
_REMEDY = "more labelled texts, a greater dev_share, or files named as dev can bring items of both kinds"


def reading(view: View) -> list[str]:
    """How to read the tables."""
    results = view.results
    words = list(_RANKED) if view.levels else []
    words[:0] = [
        "Figures are means over a data set's languages, each measured alone, with 95% intervals over"
        f" {results.resamples:,} resamples of whole texts; all systems share the resamples of a data set.",
    ]
    if results.answers:
        words.append(
            "Of data without labels it is shown how much a system marks and how high its numbers are. Who marks more,"
            " or agrees with more of the others, is not better by that: without labels nobody is ranked."
        )
    if any(figure.seen for figure in results.figures):
        words.append(
            f"{SEEN} marks figures on data that the system was trained on. Such data is in no mean over data sets and"
            " in no win rate, of whatever system."
        )
    if any(cell.coverage < 1.0 for cell in results.cells if cell.status == "partial"):
        words.append(
            "Where a system scored only a part of the samples, its figures stand on that part: see the coverage, and"
            " the comparisons, which take the samples that both scored."
        )
    return [*words, *results.notes]


def findings(view: View) -> list[str]:
    """Who leads at each level, and what of it is beyond chance; what there is where there are no labels."""
    bare = [each.name for each in view.results.data if not each.labelled]
    sentences = []
    if bare:
        sentences.append(f"Without labels, so that nobody is ranked by it: {', '.join(bare)}.")
    for level in view.levels:
        board = view.board(level)
        if not board.rows:
            continue
        if not any(
            figure is not None and figure.value is not None for row in board.rows for figure in row.cells.values()
        ):
            sentences.append(f"{level.capitalize()}s: no system has a figure of {board.measure}{_why(view, level)}.")
            continue
        sentences.append(headline(board, view.results.baseline))
    compared = [each for each in view.results.comparisons if each.adjusted is not None]
    firm = [each.difference or 0.0 for each in compared if each.adjusted is not None and each.adjusted < 0.05]
    if compared:
        better, worse = sum(value > 0 for value in firm), sum(value < 0 for value in firm)
        sentences.append(
            f"Against {view.results.baseline}, {better} of {len(compared)} comparisons are better and {worse} worse"
            " beyond chance (corrected p below 0.05)."
        )
    missing = {cell.system for cell in view.results.cells if cell.status == "unavailable"}
    if missing:
        sentences.append(f"Not available here: {', '.join(sorted(missing))}.")
    return [*sentences, FEW_TEXTS] if _few(view) else sentences


def _few(view: View) -> bool:
    """Whether any number stands on fewer texts than make an interval sound."""
    figures = (each.clusters for each in view.results.figures if each.value is not None)
    answers = (each.clusters for each in view.results.answers if each.items)
    compared = (each.clusters for each in view.results.comparisons if each.difference is not None)
    return any(texts < SURE_TEXTS for texts in (*figures, *answers, *compared))


def _why(view: View, level: str) -> str:
    """What most of the undefined figures of the measure that systems are ranked by say of themselves."""
    every = view.undefined(level)
    reasons = [reason for reason, _ in Counter(figure.reason for figure in every).most_common() if reason]
    if not reasons:
        return ""
    if not reasons[0].startswith(f"{UNTUNED}: the development split has no"):
        return f": {reasons[0]}"
    bare = {figure.data for figure in every if figure.reason == reasons[0]}
    tried = "; of ".join(f"{data.name} {taken(data)}" for data in view.data(level) if data.name in bare)
    return f": {reasons[0]}. Of {tried} were taken for tuning; {_REMEDY}"
