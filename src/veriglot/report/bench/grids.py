"""The tables that people read, as heads and rows of text: for the Markdown page, the HTML page and the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from veriglot.bench.results import MEAN
from veriglot.report.bench.view import ALL, ends, figure_text, number, taken, win_ends

if TYPE_CHECKING:
    from veriglot.bench.results import BenchAnswers, BenchCell, BenchCorrelations, BenchData, BenchWin
    from veriglot.report.bench.view import Board, View

__all__ = [
    "Grid", "answer_grids", "board_grid", "comparison_grid", "correlation_grids", "cost_grid", "data_grid",
    "language_grid", "measure_grid", "missing_grid", "related_title", "statistics_grid", "undefined_grid", "win_grid",
]  # fmt: skip

_SHOWN_STATISTICS = (
    "length_ratio", "hallucinated_length_ratio", "character_rate", "sentence_rate", "band_0_5", "band_5_25",
    "band_25_100", "mean_evidence_units", "mean_response_units", "support_rate",
)  # fmt: skip


class Grid(NamedTuple):
    """A table of text.

    Attributes:
        title: what it shows.
        heads: of the columns; the first names the rows.
        rows: a text for each column.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def board_grid(board: Board) -> Grid:
    """A leaderboard."""
    heads = ("system", *(data.name for data in board.data), "mean", "wins")
    rows = []
    for row in board.rows:
        cells = (figure_text(row.cells[data.name]) for data in board.data)
        of = len(row.unseen)
        mean = "–" if row.mean is None else f"{number(row.mean)} (of {of})"
        rows.append((row.system.name, *cells, mean, _win(row.win)))
    return Grid(board.title, heads, tuple(rows))


def _win(win: BenchWin | None) -> str:
    if win is None or win.rate is None:
        return "–"
    ties = f", {win.ties} tied" if win.ties else ""
    played = f", played {win.played}" if win.played < win.cells else ""
    return f"{100 * win.rate:.0f}% ({win.wins} of {win.cells}{ties}{played})"


def measure_grid(view: View, level: str, data: str, *, at: str | None = None) -> Grid:
    """Every measure of a level on one data set; `at` is `own` for the systems' own thresholds."""
    measures = view.measures(level, at)
    rows = []
    for row in view.board(level).rows:
        figures = [view.figure(level, name, view.at(name, at), data, row.system.name) for name in measures]
        if any(figure is not None for figure in figures):
            rows.append((row.system.name, *(figure_text(figure) for figure in figures)))
    where = "at the systems' own thresholds" if at == "own" else "thresholds tuned on dev"
    return Grid(f"{data}, {level}s: {where}", ("system", *measures), tuple(rows))


def language_grid(view: View, level: str, data: str) -> Grid:
    """The ranking measure in each language of a data set."""
    rank_by = view.results.rank_by
    tags = sorted(
        {f.language for f in view.results.figures if f.level == level and f.data == data and f.language != MEAN}
    )
    rows = tuple(
        (
            row.system.name,
            *(figure_text(view.figure(level, rank_by, view.at(rank_by), data, row.system.name, tag)) for tag in tags),
        )
        for row in view.board(level).rows
    )
    return Grid(f"{rank_by} of {level}s by language: {data}", ("system", *tags), rows)


def win_grid(view: View, level: str, measure: str | None = None) -> Grid:
    """Win rates by group of languages."""
    board = view.board(level, measure)
    scopes = [ALL, *(scope for scope in view.results.groups if scope != ALL)]
    found = {
        (row.system.name, scope): view.win(level, board.measure, board.at, scope, row.system.name)
        for row in board.rows
        for scope in scopes
    }
    shown = [scope for scope in scopes if any(w is not None and w.cells for (_, s), w in found.items() if s == scope)]
    rows = tuple(
        (row.system.name, *(_win_with_ends(found[row.system.name, s], view.texts(level, s)) for s in shown))
        for row in board.rows
    )
    title = f"Win rates by {board.measure} of {level}s, with ties credited to all"
    return Grid(title, ("system", *shown), rows)


def _win_with_ends(win: BenchWin | None, texts: int) -> str:
    if win is None or win.rate is None:
        return "–"
    return f"{100 * win.rate:.0f}%{win_ends(win, texts)} of {win.cells}"


def comparison_grid(view: View) -> Grid:
    """Every difference from the baseline."""
    rows = tuple(
        (
            c.system, c.data, c.level, number(c.difference), ends(c.low, c.high, c.clusters), _p(c.p), _p(c.adjusted),
            f"{c.items:,} / {c.clusters:,}", c.reason or "",
        )
        for c in view.results.comparisons
    )  # fmt: skip
    title = (
        f"Differences in {view.results.rank_by} from {view.results.baseline}, paired bootstrap over texts,"
        f" p-values corrected by {view.results.correction} within a level"
    )
    heads = ("system", "data", "level", "difference", "95% interval", "p", "corrected", "items / texts", "note")
    return Grid(title, heads, rows)


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def cost_grid(view: View) -> Grid:
    """What every cell took."""
    return Grid(
        "Cost and coverage",
        ("system", "data", "level", "status", "coverage", "a second", "CPU s", "model calls", "tokens", "money"),
        tuple(_cost_row(cell) for cell in view.results.cells if cell.status not in {"unsuited", "unavailable"}),
    )


def _cost_row(cell: BenchCell) -> tuple[str, ...]:
    cost = cell.cost
    tokens = cost.tokens_in + cost.tokens_out
    return (
        cell.system,
        cell.data,
        cell.level,
        cell.status,
        f"{100 * cell.coverage:.0f}%",
        "–" if cost.speed is None else f"{cost.speed:,.1f}",
        f"{cost.cpu:,.1f}" if cost.rows else "–",
        f"{cost.calls:,}" if cost.calls else "–",
        f"{tokens:,}" if tokens else "–",
        "–" if cost.money is None else f"{cost.money:,.2f}",
    )


def missing_grid(view: View) -> Grid:
    """Cells without figures, or with figures of a part of the samples, and why; those with one reason in one row."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for cell in view.missing():
        data = "all" if cell.status == "unavailable" else f"{cell.data} ({cell.level})"
        found.setdefault((data, cell.status, cell.reason or ""), {})[cell.system] = None
    rows = tuple((", ".join(systems), *key) for key, systems in found.items())
    return Grid("Not judged, and why", ("systems", "data", "status", "why"), rows)


def undefined_grid(view: View, level: str) -> Grid:
    """Figures of a leaderboard that are undefined, and why; those with one reason in one row."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for one in view.undefined(level):
        found.setdefault((one.data, one.reason or ""), {})[one.system] = None
    rows = tuple((", ".join(systems), *key) for key, systems in found.items())
    title = f"Judged, but without {view.results.rank_by} of {level}s, and why"
    return Grid(title, ("systems", "data", "why"), rows)


def data_grid(view: View) -> Grid:
    """The data sets."""
    rows = []
    for one in view.results.data:
        test, texts = (sum(counts[place] for counts in one.languages.values()) for place in (0, 1))
        items = "; ".join(f"{level} {one.items[level]:,} ({_unsupported(one, level)})" for level in one.levels)
        rows.append(
            (
                one.name, " ".join(one.languages), f"{test:,}", f"{texts:,}", f"{one.dev:,}", items,
                one.license or "not stated", _split(one), one.note or "",
            )
        )  # fmt: skip
    heads = ("data", "languages", "test", "texts", "dev", "items of the test part", "licence", "split", "note")
    return Grid("Data", heads, tuple(rows))


def _split(data: BenchData) -> str:
    """How it was parted, and what that took: a share of few texts may be far from the one that was asked for."""
    return f"{data.split} (taken: {taken(data)})" if data.labelled else data.split


def _unsupported(data: BenchData, level: str) -> str:
    if level not in data.nonfactual:
        return "no labels"
    return f"{100 * data.nonfactual[level] / max(data.items[level], 1):.0f}% unsupported"


def answer_grids(view: View) -> list[Grid]:
    """What systems said of data without labels, a table for each data set and level."""
    found: dict[tuple[str, str], list[BenchAnswers]] = {}
    for one in view.results.answers:
        found.setdefault((one.data, one.level), []).append(one)
    heads = ("system", "language", "items / texts", "coverage", "marked", "mean of its numbers")
    return [
        Grid(f"{data}, {level}s: what systems say, without labels", heads, tuple(map(_answer_row, rows)))
        for (data, level), rows in found.items()
    ]


def _answer_row(one: BenchAnswers) -> tuple[str, ...]:
    flagged = f"{number(one.flagged)} {ends(one.flagged_low, one.flagged_high, one.clusters)}".rstrip()
    mean = f"{number(one.mean)} {ends(one.mean_low, one.mean_high, one.clusters)}".rstrip()
    return (one.system, one.language, f"{one.items:,} / {one.clusters:,}", f"{100 * one.coverage:.0f}%", flagged, mean)


def statistics_grid(view: View) -> Grid:
    """Statistics of the test parts, as hat's Tables 1 and 2 and halluverse's Table 2 have them."""
    rows = tuple(
        (one.name, *(number(one.statistics.get(name)) for name in _SHOWN_STATISTICS))
        for one in view.results.data
        if one.labelled
    )
    return Grid("Statistics of the test parts", ("data", *_SHOWN_STATISTICS), rows)


def related_title(found: BenchCorrelations) -> str:
    """What a matrix of systems shows, in words."""
    if found.method == "kappa":
        return f"Cohen's kappa of systems' verdicts on {found.level}s, averaged over languages"
    return f"{found.method.title()} correlation between systems' numbers of {found.level}s, averaged over languages"


def correlation_grids(view: View, level: str) -> list[Grid]:
    """How what systems say goes together at one level."""
    found = []
    for one in (matrix for matrix in view.results.correlations if matrix.level == level):
        rows = tuple(
            (name, *(number(value, 2) for value in values)) for name, values in zip(one.systems, one.r, strict=True)
        )
        found.append(Grid(related_title(one), ("system", *one.systems), rows))
    return found
