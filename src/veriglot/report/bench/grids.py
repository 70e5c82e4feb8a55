"""The tables of a bench as heads and rows of text, for the Markdown page, the HTML page and the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.bench.results import MEAN
from veriglot.report.bench.view import ALL, SEEN, ends, number, taken, win_ends
from veriglot.report.html import folded, note
from veriglot.report.pages import Section
from veriglot.report.tables import Cell, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from veriglot.bench.results import (
        BenchAnswers,
        BenchCell,
        BenchConfusion,
        BenchCorrelations,
        BenchData,
        BenchFigure,
        BenchWin,
    )
    from veriglot.report.bench.view import Board, View
    from veriglot.report.tables import Value

__all__ = [
    "HOW_TO_READ",
    "answer_grids",
    "board_grid",
    "comparison_grid",
    "correlation_grids",
    "cost_grid",
    "data_grid",
    "language_grid",
    "measure_grid",
    "missing_grid",
    "statistics_grid",
    "type_grid",
    "type_section",
    "type_summary",
    "type_table",
    "typed",
    "undefined_grid",
    "untyped_grid",
    "win_grid",
]


_SHOWN_STATISTICS = (
    "length_ratio", "hallucinated_length_ratio", "character_rate", "sentence_rate", "band_0_5", "band_5_25",
    "band_25_100", "mean_evidence_units", "mean_response_units", "support_rate",
)  # fmt: skip


def board_grid(view: View, board: Board) -> Table:
    """A leaderboard."""
    heads = ("system", *(data.name for data in board.data), "mean", "wins")
    rows = []
    for row in board.rows:
        cells = (figure_cell(row.cells[data.name]) for data in board.data)
        of = len(row.unseen)
        mean = Cell("–", kind="absent") if row.mean is None else Cell(number(row.mean), f"(of {of})", value=row.mean)
        rows.append((row.system.name, *cells, mean, win_cell(row.win, view.texts(board.level, ALL))))
    return Table("", board.title, heads, tuple(rows))


def figure_cell(figure: BenchFigure | None) -> Cell:
    """A figure with its interval; a page shows under the pointer how many items are behind it."""
    if figure is None or figure.value is None:
        return Cell("–", kind="absent", hint=figure.reason if figure is not None else None)
    behind = f"{figure.items:,} items of {figure.clusters:,} texts, {figure.positives:,} positive"
    if figure.coverage < 1.0:
        behind += f"; coverage {100 * figure.coverage:.0f}%"
    return Cell(
        number(figure.value) + (SEEN if figure.seen else ""),
        ends(figure.low, figure.high, figure.clusters) or "no interval",
        kind="seen" if figure.seen else "",
        value=figure.value,
        heat=figure.value,
        hint="; ".join(part for part in (behind, figure.reason) if part),
    )


def win_cell(win: BenchWin | None, texts: int) -> Cell:
    """A win rate with its interval, which is over so many texts, and what it is counted over."""
    if win is None or win.rate is None:
        return Cell("–", kind="absent")
    ties = f", {win.ties} tied" if win.ties else ""
    played = f", played {win.played}" if win.played < win.cells else ""
    detail = f"{win_ends(win, texts)} ({win.wins} of {win.cells}{ties}{played})".strip()
    return Cell(f"{100 * win.rate:.0f}%", detail, value=win.rate)


def measure_grid(view: View, level: str, data: str, *, at: str | None = None) -> Table:
    """Every measure of a level on one data set; `at` is `own` for the systems' own thresholds."""
    measures = view.measures(level, at)
    rows = []
    for row in view.board(level).rows:
        figures = [view.figure(level, name, view.at(name, at), data, row.system.name) for name in measures]
        if any(figure is not None for figure in figures):
            rows.append((row.system.name, *(figure_cell(figure) for figure in figures)))
    where = "at the systems' own thresholds" if at == "own" else "thresholds tuned on dev"
    return Table("", f"{data}, {level}s: {where}", ("system", *measures), tuple(rows))


def language_grid(view: View, level: str, data: str) -> Table:
    """The ranking measure in each language of a data set."""
    rank_by = view.results.rank_by
    tags = sorted(
        {f.language for f in view.results.figures if f.level == level and f.data == data and f.language != MEAN}
    )
    rows = tuple(
        (
            row.system.name,
            *(figure_cell(view.figure(level, rank_by, view.at(rank_by), data, row.system.name, tag)) for tag in tags),
        )
        for row in view.board(level).rows
    )
    return Table("", f"{rank_by} of {level}s by language: {data}", ("system", *tags), rows)


def win_grid(view: View, level: str, measure: str | None = None) -> Table:
    """Win rates by group of languages."""
    board = view.board(level, measure)
    scopes = [ALL, *(scope for scope in view.results.groups if scope != ALL)]
    wins = {
        (row.system.name, scope): view.win(level, board.measure, board.at, scope, row.system.name)
        for row in board.rows
        for scope in scopes
    }
    shown = [scope for scope in scopes if any(w is not None and w.cells for (_, s), w in wins.items() if s == scope)]
    rows = tuple(
        (row.system.name, *(win_cell(wins[row.system.name, s], view.texts(level, s)) for s in shown))
        for row in board.rows
    )
    title = f"Win rates by {board.measure} of {level}s, with ties credited to all"
    return Table("", title, ("system", *shown), rows)


def comparison_grid(view: View) -> Table:
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
    return Table("", title, heads, rows)


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def cost_grid(view: View) -> Table:
    """What every cell took."""
    return Table(
        "",
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


def missing_grid(view: View) -> Table:
    """Cells without figures, or with figures of a part of the samples, and why; those with one reason in one row."""
    systems_by_reason: dict[tuple[str, str, str], dict[str, None]] = {}
    for cell in view.missing():
        data = "all" if cell.status == "unavailable" else f"{cell.data} ({cell.level})"
        systems_by_reason.setdefault((data, cell.status, cell.reason or ""), {})[cell.system] = None
    rows = tuple((", ".join(systems), *key) for key, systems in systems_by_reason.items())
    return Table("", "Not judged, and why", ("systems", "data", "status", "why"), rows)


def undefined_grid(view: View, level: str) -> Table:
    """Figures of a leaderboard that are undefined, and why; those with one reason in one row."""
    systems_by_reason: dict[tuple[str, str], dict[str, None]] = {}
    for figure in view.undefined(level):
        systems_by_reason.setdefault((figure.data, figure.reason or ""), {})[figure.system] = None
    rows = tuple((", ".join(systems), *key) for key, systems in systems_by_reason.items())
    title = f"Judged, but without {view.results.rank_by} of {level}s, and why"
    return Table("", title, ("systems", "data", "why"), rows)


def data_grid(view: View) -> Table:
    """The data sets."""
    rows = []
    for data in view.results.data:
        test, texts = (sum(counts[index] for counts in data.languages.values()) for index in (0, 1))
        items = "; ".join(f"{level} {data.items[level]:,} ({_unsupported(data, level)})" for level in data.levels)
        rows.append(
            (
                data.name, " ".join(data.languages), f"{test:,}", f"{texts:,}", f"{data.dev:,}", items,
                data.license or "not stated", _split(data), data.note or "",
            )
        )  # fmt: skip
    heads = ("data", "languages", "test", "texts", "dev", "items of the test part", "licence", "split", "note")
    return Table("", "Data", heads, tuple(rows))


def _split(data: BenchData) -> str:
    """How it was parted, and what that took: a share of few texts may be far from the one that was asked for."""
    return f"{data.split} (taken: {taken(data)})" if data.labelled else data.split


def _unsupported(data: BenchData, level: str) -> str:
    if level not in data.nonfactual:
        return "no labels"
    return f"{100 * data.nonfactual[level] / max(data.items[level], 1):.0f}% unsupported"


def answer_grids(view: View) -> list[Table]:
    """What systems said of data without labels, a table for each data set and level."""
    answers: dict[tuple[str, str], list[BenchAnswers]] = {}
    for answer in view.results.answers:
        answers.setdefault((answer.data, answer.level), []).append(answer)
    heads = ("system", "language", "items / texts", "coverage", "marked", "mean of its numbers")
    return [
        Table("", f"{data}, {level}s: what systems say, without labels", heads, tuple(map(_answer_row, rows)))
        for (data, level), rows in answers.items()
    ]


def _answer_row(answers: BenchAnswers) -> tuple[str, ...]:
    flagged = f"{number(answers.flagged)} {ends(answers.flagged_low, answers.flagged_high, answers.clusters)}".rstrip()
    mean = f"{number(answers.mean)} {ends(answers.mean_low, answers.mean_high, answers.clusters)}".rstrip()
    return (
        answers.system,
        answers.language,
        f"{answers.items:,} / {answers.clusters:,}",
        f"{100 * answers.coverage:.0f}%",
        flagged,
        mean,
    )


def statistics_grid(view: View) -> Table:
    """Statistics of the test parts, as HAT's Tables 1 and 2 and HalluVerse25's Table 2 have them."""
    rows = tuple(
        (data.name, *(number(data.statistics.get(name)) for name in _SHOWN_STATISTICS))
        for data in view.results.data
        if data.labelled
    )
    return Table("", "Statistics of the test parts", ("data", *_SHOWN_STATISTICS), rows)


def related_title(correlations: BenchCorrelations) -> str:
    """What a matrix of systems shows, in words."""
    if correlations.method == "kappa":
        return f"Cohen's kappa of systems' verdicts on {correlations.level}s, averaged over languages"
    method = correlations.method.title()
    return f"{method} correlation between systems' numbers of {correlations.level}s, averaged over languages"


def correlation_grids(view: View, level: str) -> list[Table]:
    """How what systems say goes together at one level."""
    tables = []
    for correlations in (matrix for matrix in view.results.correlations if matrix.level == level):
        rows = tuple(
            (name, *map(_correlation_cell, values, counts))
            for name, values, counts in zip(correlations.systems, correlations.r, correlations.cells, strict=True)
        )
        tables.append(Table("", related_title(correlations), ("system", *correlations.systems), rows))
    return tables


def _correlation_cell(value: float | None, cells: int) -> Cell:
    if value is None:
        return Cell("–", kind="absent")
    return Cell(number(value, 2), value=value, heat=abs(value), hint=f"mean over {cells} cells")


# Confusion matrices of types: as text, as small grids of heat, and as rows to save.


HOW_TO_READ = (
    "Rows are the types of the labels, columns what the detector called them, at its own threshold: of whole responses"
    " where each has one type, else of each mark of the labels, by most of the characters that the detector marks in"
    " it. The column `none` is what it did not mark, `other type` what it marked as nothing that the labels have a type"
    " for. Shares are of the row."
)


def typed(view: View) -> list[BenchConfusion]:
    """The matrices of all languages together."""
    return [confusion for confusion in view.confusions if confusion.language == ALL and confusion.counts]


def untyped_grid(view: View) -> Table:
    """Detectors whose types cannot be held against the data's, and why; those with one reason in one row."""
    systems_by_reason: dict[tuple[str, str], dict[str, None]] = {}
    for confusion in view.confusions:
        if not confusion.counts:
            systems_by_reason.setdefault((confusion.data, confusion.reason or ""), {})[confusion.system] = None
    rows = tuple((", ".join(systems), *key) for key, systems in systems_by_reason.items())
    return Table("", "Types not compared, and why", ("systems", "data", "why"), rows)


def type_grid(confusion: BenchConfusion) -> Table:
    """One matrix as text: how many, and which share of the row."""
    rows = tuple(
        (name, *(_confusion_cell(confusion, index, column) for column in range(len(row))), f"{sum(row):,}")
        for index, (name, row) in enumerate(zip(confusion.classes, confusion.counts, strict=True))
    )
    return Table("", _title(confusion), ("label", *confusion.answers, "all"), rows)


def _confusion_cell(confusion: BenchConfusion, row: int, column: int) -> Cell:
    count, whole = confusion.counts[row][column], sum(confusion.counts[row])
    if not whole:
        return Cell("–", kind="absent")
    return Cell(
        f"{count:,}",
        f"({100 * count / whole:.0f}%)",
        kind="right" if column == row else "",
        value=count,
        heat=count / whole,
        hint=f"{confusion.classes[row]} called {confusion.answers[column]}",
    )


def _title(confusion: BenchConfusion) -> str:
    seen = SEEN if confusion.seen else ""
    return f"{confusion.system} on {confusion.data}{seen}, types of {confusion.of}s ({confusion.taxonomy})"


def type_summary(confusion: BenchConfusion) -> str:
    """How many are right, and what to know."""
    right = sum(row[index] for index, row in enumerate(confusion.counts))
    whole = sum(map(sum, confusion.counts))
    share = f" ({100 * right / whole:.1f}%)" if whole else ""
    left_out = f", {confusion.left_out:,} left out for want of one type" if confusion.left_out else ""
    words = f"{right:,} of {whole:,} are called what they are{share}{left_out}"
    return f"{words}; {confusion.reason}." if confusion.reason else f"{words}."


def type_section(view: View) -> Iterator[Section]:
    """The part of the page; nothing where no data has types."""
    if not view.confusions:
        return
    body: list[Markup] = [note(HOW_TO_READ)]
    by_data: dict[str, list[BenchConfusion]] = {}
    for confusion in typed(view):
        by_data.setdefault(confusion.data, []).append(confusion)
    for data, matrices in by_data.items():
        grids = [
            part
            for confusion in matrices
            for part in (type_grid(confusion).to_html(class_="board types"), note(type_summary(confusion)))
        ]
        body.append(
            folded(f"{data}: {len(matrices)} detector{'s' * (len(matrices) > 1)}", *grids, opened=len(by_data) == 1)
        )
    missing = untyped_grid(view)
    if missing.rows:
        body.append(missing.to_html())
    yield Section("types", "Which types are taken for which", "Types", body, ("type_confusions",))


def type_table(view: View) -> Table:
    """Every matrix, by language too, a row a cell; a row without counts says why there are none."""
    columns = (
        "system", "data", "language", "of", "taxonomy", "type", "answer", "count", "share", "left_out", "seen",
        "reason", "signature",
    )  # fmt: skip
    rows = tuple(row for confusion in view.confusions for row in _rows(confusion))
    return Table("type_confusions", "Which types are taken for which", columns, rows)


def _rows(confusion: BenchConfusion) -> Iterator[tuple[Value, ...]]:
    first: tuple[Value, ...] = (confusion.system, confusion.data, confusion.language, confusion.of, confusion.taxonomy)
    last: Sequence[Value] = (confusion.left_out, confusion.seen, confusion.reason, confusion.signature)
    if not confusion.counts:
        yield (*first, None, None, None, None, *last)
    for name, row in zip(confusion.classes, confusion.counts, strict=True):
        for answer, count in zip(confusion.answers, row, strict=True):
            yield (*first, name, answer, count, count / sum(row) if sum(row) else None, *last)
