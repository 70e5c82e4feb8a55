"""A bench's results: one HTML or Markdown page, LaTeX, CSV and JSON, and the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs
from rich.text import Text

from veriglot.bench.figures import RELIABLE_TEXTS
from veriglot.bench.leaderboard import winner
from veriglot.errors import UnknownNameError
from veriglot.metrics.estimate import MEAN, too_few
from veriglot.metrics.measures import TYPES
from veriglot.plugins import read_package_data
from veriglot.records.languages import language_name
from veriglot.report.bench_findings import FEW, SEEN, few_texts, findings, reading, tuning_share
from veriglot.report.bench_tables import ALL, Board, Row, View, bench_tables
from veriglot.report.pages import Fold, Part, Section, macro, markdown_report, write_report
from veriglot.report.tables import Cell, Table, as_json
from veriglot.report.text_layout import count, note_words, number, percent, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rich.console import Console

    from veriglot.bench.results import (
        BenchCell,
        BenchComparison,
        BenchConfusion,
        BenchData,
        BenchError,
        BenchFigure,
        BenchResults,
        BenchWin,
    )

__all__ = ["bench_document", "board_table", "render_bench", "write_bench"]


_FORMATS = ("markdown", "latex", "csv", "json")


_BOARD = "board sortable"


_NOTHING = Cell("–", kind="absent")


def _ends(low: float | None, high: float | None, texts: int, *, percent: bool = False) -> str:
    """An interval over so many texts, marked if they are few; empty if there is none."""
    if low is None or high is None or too_few(texts) is not None:
        return ""
    shown = f"{100 * low:.0f}, {100 * high:.0f}" if percent else f"{number(low)}, {number(high)}"
    return f"[{shown}]{FEW if texts < RELIABLE_TEXTS else ''}"


# For people: cells of text with their intervals, for the pages and the terminal.


def board_table(view: View, board: Board) -> Table:
    """A leaderboard."""
    several = len(board.data) > 1
    heads = ("system", "rank", *(data.name for data in board.data), *(["mean"] if several else []), "wins or ties")
    rows = []
    for row in board.rows:
        cells = [_figure_cell(row.cells[data.name]) for data in board.data]
        mean = _NOTHING
        if row.mean is not None:
            texts = sum(f.clusters for f in row.cells.values() if f is not None and f.data in row.fair)
            ends = "" if row.standing is None else _ends(row.standing.low, row.standing.high, texts)
            mean = Cell(number(row.mean), f"{ends} (of {len(row.unseen)})".strip(), value=row.mean)
        cells += [mean] if several else []
        rows.append((row.system.name, _rank_cell(row), *cells, _win_cell(row.win, view.texts(board.level, ALL))))
    return Table(board.title, heads, rows, look=_BOARD)


def _rank_cell(row: Row) -> Cell:
    """The ranks that tests cannot exclude; `apart` for a system that left something out."""
    if row.standing is None:
        return _NOTHING
    if row.standing.best is None:
        return Cell("apart", kind="absent", hint=row.standing.left_out)
    return Cell(row.rank, value=row.standing.best)


def _figure_cell(figure: BenchFigure | None) -> Cell:
    """A figure with its interval; on a page its number of items is a tooltip."""
    if figure is None or figure.value is None:
        return Cell("–", kind="absent", hint=figure.reason if figure is not None else None)
    behind = f"{figure.items:,} items of {figure.clusters:,} texts, {figure.positives:,} positive"
    if figure.coverage < 1.0:
        behind += f"; coverage {100 * figure.coverage:.0f}%"
    if figure.p is not None:
        behind += f"; p {_p(figure.p)}"
    return Cell(
        number(figure.value) + (SEEN if figure.seen else ""),
        _ends(figure.low, figure.high, figure.clusters) or "no interval",
        kind="seen" if figure.seen else "",
        value=figure.value,
        heat=figure.value,
        hint="; ".join(part for part in (behind, figure.reason) if part),
    )


def _win_cell(win: BenchWin | None, texts: int) -> Cell:
    """A win rate with its interval over so many texts, and its number of cells."""
    if win is None or win.rate is None:
        return _NOTHING
    ties = f", {win.ties} tied" if win.ties else ""
    played = f", played {win.played}" if win.played < win.cells else ""
    interval = _ends(win.low, win.high, texts, percent=True)
    return Cell(
        f"{100 * win.rate:.0f}%", f"{interval} ({win.wins} of {win.cells}{ties}{played})".strip(), value=win.rate
    )


def _measure_table(view: View, level: str, data: str, *, at: str | None = None) -> Table:
    """Every measure of a level on one data set; `at` is `own` for the systems' own thresholds."""
    measures = [name for name in view.measures(level, at) if name != TYPES or view.accuracies(data)]
    rows = []
    chances: dict[str, tuple[int, float]] = {}  # with its number of items: the share differs if not all are scored
    for row in view.board(level).rows:
        figures = [view.figure(level, name, view.at(name, at), data, row.system.name) for name in measures]
        if any(figure is not None for figure in figures):
            rows.append((row.system.name, *map(_figure_cell, figures)))
        known = ((f.measure, (f.items, f.chance)) for f in figures if f is not None and f.chance is not None)
        chances |= {name: max(chance, chances.get(name, chance)) for name, chance in known}
    if chances:
        rows.append(("chance", *(Cell(number(chances[name][1])) if name in chances else _NOTHING for name in measures)))
    where = "at the systems' own thresholds" if at == "own" else "thresholds tuned on dev"
    return Table(f"{data}, {level}s: {where}", ("system", *measures), rows, look=_BOARD)


def _language_table(view: View, level: str, data: str) -> Table:
    """The ranking measure in each language of a data set."""
    rank_by = view.rank_by(level)
    figures = [f for f in view.results.figures if f.level == level and f.data == data and f.language != MEAN]
    tags = sorted({figure.language for figure in figures})
    rows = []
    for row in view.board(level).rows:
        name, at = row.system.name, view.at(rank_by)
        rows.append((name, *(_figure_cell(view.figure(level, rank_by, at, data, name, tag)) for tag in tags)))
    heads = ("system", *map(language_name, tags))
    return Table(f"{rank_by} of {level}s by language: {data}", heads, rows, look=_BOARD)


def _win_table(view: View, level: str) -> Table:
    """Win rates by group of languages."""
    board = view.board(level)
    scopes = [ALL, *(scope for scope in view.results.groups if scope != ALL)]
    wins = {
        scope: [view.win(level, board.measure, board.at, scope, row.system.name) for row in board.rows]
        for scope in scopes
    }
    wins = {scope: column for scope, column in wins.items() if any(win is not None and win.cells for win in column)}
    cells = ([_win_cell(win, view.texts(level, scope)) for win in column] for scope, column in wins.items())
    names = [row.system.name for row in board.rows]
    title = f"Win rates by {board.measure} of {level}s, with ties credited to all"
    return Table(title, ("system", *wins), list(zip(names, *cells, strict=True)), look=_BOARD)


def _comparison_table(view: View) -> Table:
    """Every difference from the baseline."""
    results = view.results
    measures = " and ".join(dict.fromkeys(c.measure for c in results.comparisons))
    title = f"Differences in {measures} from {results.baseline}, {_corrected_by(results)}"
    rows = [(c.system, c.data, c.level, *_tested(c)) for c in results.comparisons]
    return Table(title, ("system", "data", "level", *_TESTED), rows)


def _incomplete_table(view: View, board: Board) -> Table:
    """Systems that left something out, on the rows that they share with those of the first ranks."""
    alone = {row.system.name: row.standing for row in board.incomplete}
    first = [row.system.name for row in board.ranked if row.standing is not None and row.standing.best == 1]
    rows = []
    for pair in view.pairs(board.level):
        for name, other, sign in ((pair.system, pair.baseline, 1), (pair.baseline, pair.system, -1)):
            standing = alone.get(name)
            if standing is not None and (other in first or not first):
                turned = pair if sign > 0 else _reversed(pair)
                rows.append((name, standing.left_out or "", other, *_tested(turned)))
    title = "Without a rank, as rows were left out; differences on the rows that both judged"
    return Table(title, ("system", "left out", "against", *_TESTED), rows)


def _reversed(pair: BenchComparison) -> BenchComparison:
    difference, low, high = (None if end is None else -end for end in (pair.difference, pair.high, pair.low))
    return structs.replace(pair, system=pair.baseline, baseline=pair.system, difference=difference, low=low, high=high)


_TESTED = ("difference", "95% interval", "p", "corrected", "items / texts", "note")


def _tested(c: BenchComparison) -> tuple[str, ...]:
    return (
        number(c.difference), _ends(c.low, c.high, c.clusters), _p(c.p), _p(c.adjusted),
        f"{c.items:,} / {c.clusters:,}", c.reason or "",
    )  # fmt: skip


def _corrected_by(results: BenchResults) -> str:
    method = {"romano-wolf": "Romano and Wolf", "holm": "Holm", "bh": "Benjamini and Hochberg"}[results.correction]
    return f"paired bootstrap over texts, p-values corrected by {method} for all tests of a level"


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _cost_table(view: View) -> Table:
    """The cost of every cell."""
    heads = (
        "system", "data", "level", "status", "coverage", "rows a second", "processor seconds", "model calls", "tokens",
        "money",
    )  # fmt: skip
    rows = [_cost_row(cell) for cell in view.results.cells if cell.status not in {"unsuited", "unavailable"}]
    return _without_dashes("Cost and coverage", heads, rows)


def _without_dashes(title: str, heads: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    """A table without empty columns."""
    shown = [index for index, column in enumerate(zip(*rows, strict=True)) if set(column) != {"–"}]
    return Table(title, [heads[index] for index in shown], [tuple(row[index] for index in shown) for row in rows])


def _cost_row(cell: BenchCell) -> tuple[str, ...]:
    cost = cell.cost
    tokens = cost.tokens_in + cost.tokens_out
    return (
        cell.system, cell.data, cell.level, cell.status, f"{100 * cell.coverage:.0f}%",
        "–" if cost.speed is None else f"{cost.speed:,.1f}",
        f"{cost.cpu:,.1f}" if cost.rows else "–",
        f"{cost.calls:,}" if cost.calls else "–",
        f"{tokens:,}" if tokens else "–",
        "–" if cost.money is None else f"{cost.money:,.2f}",
    )  # fmt: skip


def _reason_table(title: str, heads: Sequence[str], reasons: Iterable[tuple[str, tuple[str, ...]]]) -> Table:
    """Systems with a reason each; those with the same reason in one row."""
    systems: dict[tuple[str, ...], dict[str, None]] = {}
    for system, reason in reasons:
        systems.setdefault(reason, {})[system] = None
    return Table(title, heads, [(", ".join(names), *reason) for reason, names in systems.items()])


def _missing_table(view: View) -> Table:
    """Cells without figures, or with figures on a part of the samples, and why."""
    reasons = (
        (c.system, ("all" if c.status == "unavailable" else f"{c.data} ({c.level})", c.status, c.reason or ""))
        for c in view.results.cells
        if c.status not in {"done", "unsuited"}
    )
    return _reason_table("Not judged, and why", ("systems", "data", "status", "why"), reasons)


def _undefined_table(view: View, level: str) -> Table:
    """Figures of a leaderboard that are undefined, and why."""
    title = f"Judged, but without {view.rank_by(level)} of {level}s, and why"
    reasons = ((figure.system, (figure.data, figure.reason or "")) for figure in view.undefined(level))
    return _reason_table(title, ("systems", "data", "why"), reasons)


def _data_table(view: View) -> Table:
    """The data sets."""
    rows = []
    for data in view.results.data:
        test, texts = (sum(counts[index] for counts in data.languages.values()) for index in (0, 1))
        items = "; ".join(f"{level} {data.items[level]:,} ({_unsupported(data, level)})" for level in data.levels)
        split = f"{data.split} (taken: {tuning_share(data)})" if data.labelled else data.split
        rows.append(
            (
                data.name, ", ".join(map(language_name, data.languages)), f"{test:,}", f"{texts:,}", f"{data.dev:,}",
                items, data.license or "not stated", split, data.note or "",
            )
        )  # fmt: skip
    heads = ("data", "languages", "test", "texts", "dev", "items of the test part", "licence", "split", "note")
    return Table("Data", heads, rows)


def _unsupported(data: BenchData, level: str) -> str:
    if level not in data.nonfactual:
        return "no labels"
    return f"{100 * data.nonfactual[level] / max(data.items[level], 1):.0f}% unsupported"


def _answer_tables(view: View) -> list[Table]:
    """Answers of systems on data without labels, a table for each data set and level."""
    rows: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for a in view.results.answers:
        flagged = f"{number(a.flagged)} {_ends(a.flagged_low, a.flagged_high, a.clusters)}".rstrip()
        mean = f"{number(a.mean)} {_ends(a.mean_low, a.mean_high, a.clusters)}".rstrip()
        items = f"{a.items:,} / {a.clusters:,}"
        row = (a.system, language_name(a.language), items, f"{100 * a.coverage:.0f}%", flagged, mean)
        rows.setdefault((a.data, a.level), []).append(row)
    heads = ("system", "language", "items / texts", "coverage", "marked", "mean of its numbers")
    return [
        Table(f"{data}, {level}s: what systems say, without labels", heads, of_one)
        for (data, level), of_one in rows.items()
    ]


_SHOWN_STATISTICS = read_package_data(__package__, "statistics.toml", dict[str, str])


def _statistics_table(view: View) -> Table:
    """Statistics of the test parts, as in HAT's Tables 1 and 2 and HalluVerse25's Table 2."""
    rows = [
        (data.name, *(_statistic(name, data.statistics.get(name)) for name in _SHOWN_STATISTICS))
        for data in view.results.data
        if not _SHOWN_STATISTICS.keys().isdisjoint(data.statistics)
    ]
    return _without_dashes("Statistics of the test parts", ("data", *_SHOWN_STATISTICS.values()), rows)


def _statistic(name: str, value: float | None) -> str:
    """A share as a percentage, a ratio or a mean with a suitable number of digits."""
    if name.endswith("ratio"):
        return number(value, 2)
    return number(value, 1) if name.startswith("mean") else percent(value)


def _correlation_tables(view: View, levels: Iterable[str], scope: str = ALL) -> list[Table]:
    """Correlations between systems at some levels, in a group of languages."""
    tables = []
    for matrix in view.results.correlations:
        if matrix.level not in levels or len(matrix.systems) < 2 or matrix.scope != scope:
            continue
        title = f"{matrix.method.title()} correlation between systems' numbers of {matrix.level}s"
        if matrix.method == "kappa":
            title = f"Cohen's kappa of systems' verdicts on {matrix.level}s"
        rows = [
            (name, *map(_correlation_cell, values, counts))
            for name, values, counts in zip(matrix.systems, matrix.r, matrix.cells, strict=True)
        ]
        title += ", averaged over languages" if scope == ALL else f", averaged over languages of the group {scope}"
        tables.append(Table(title, ("system", *matrix.systems), rows, look=_BOARD))
    return tables


def _pairwise_tables(view: View) -> list[Table]:
    """Scorers compared with themselves as `pairwise:`: a table for each data set and level, a row per language."""
    rows: dict[tuple[str, str], dict[str, dict[str, BenchFigure]]] = {}
    for figure in view.pairwise:
        rows.setdefault((figure.data, figure.level), {}).setdefault(figure.language, {})[figure.system] = figure
    tables = []
    for (data, level), languages in rows.items():
        title = f"{data}, {level}s: correlation of scorers by the evidence with the same ones, pairwise"
        lines = [(language_name(tag), *map(_figure_cell, row.values())) for tag, row in languages.items()]
        tables.append(Table(title, ("language", *languages[MEAN]), lines, look=_BOARD))
    return tables


def _correlation_cell(value: float | None, cells: int) -> Cell:
    if value is None:
        return _NOTHING
    return Cell(number(value, 2), value=value, heat=abs(value), hint=f"mean over {cells} cells")


# Confusion of types.


_HOW_TO_READ = (
    "Each row is a type of the labels, each column what the detector called it, at its own threshold. Where each"
    " response has one type, responses are counted; else marks of the labels, each by the type that covers most of it."
    " 'none': the detector did not mark it. 'other type': the labels have no such type. Shares are of the row."
)


def _type_parts(view: View) -> Iterator[Part]:
    """The matrices of all languages together, and detectors whose types cannot be compared with the data's."""
    yield _HOW_TO_READ
    by_data: dict[str, list[BenchConfusion]] = {}
    for confusion in (c for c in view.results.confusions if c.counts):
        by_data.setdefault(confusion.data, []).append(confusion)
    for data, matrices in by_data.items():
        whole = [confusion for confusion in matrices if confusion.language == ALL]
        parts = [part for confusion in whole for part in (_type_table(confusion), _type_summary(confusion))]
        parts = [*_filled(_accuracy_table(view, data)), *parts]
        yield Fold(f"{data}: {count(len(whole), 'detector')}", parts, opened=len(by_data) == 1)
        single = [_type_table(confusion) for confusion in matrices if confusion.language != ALL]
        yield from [Fold(f"{data}: each language", single)] if single else []
    reasons = ((c.system, (c.data, c.reason or "")) for c in view.results.confusions if not c.counts)
    yield from _filled(_reason_table("Types not compared, and why", ("systems", "data", "why"), reasons))


def _accuracy_table(view: View, data: str) -> Table:
    """Accuracy of each system for each type, in each language."""
    table = view.accuracies(data)
    types = [*sorted({name for figures in table.values() for name in figures} - {ALL}), ALL]
    rows = [
        (who, language_name(tag), *(_figure_cell(row.get(name)) for name in types)) for (who, tag), row in table.items()
    ]
    return Table(f"{TYPES} on {data}, by type", ("system", "language", *types), rows, lead=2, look=_BOARD)


def _type_table(confusion: BenchConfusion) -> Table:
    """One matrix: counts, and shares of the row."""
    rows = [
        (name, *(_type_cell(confusion, index, column) for column in range(len(row))), f"{sum(row):,}")
        for index, (name, row) in enumerate(zip(confusion.classes, confusion.counts, strict=True))
    ]
    seen = f"{SEEN * confusion.seen}{'' if confusion.language == ALL else f' in {language_name(confusion.language)}'}"
    title = f"{confusion.system} on {confusion.data}{seen}, types of {confusion.of}s ({confusion.taxonomy})"
    return Table(title, ("label", *confusion.answers, "all"), rows, look="board types")


def _type_cell(confusion: BenchConfusion, row: int, column: int) -> Cell:
    number_of, whole = confusion.counts[row][column], sum(confusion.counts[row])
    if not whole:
        return _NOTHING
    return Cell(
        f"{number_of:,}",
        f"({100 * number_of / whole:.0f}%)",
        kind="right" if column == row else "",
        value=number_of,
        heat=number_of / whole,
        hint=f"{confusion.classes[row]} called {confusion.answers[column]}",
    )


def _type_summary(confusion: BenchConfusion) -> str:
    """Number of correct ones, and what to know."""
    right = sum(row[index] for index, row in enumerate(confusion.counts))
    whole = sum(map(sum, confusion.counts))
    share = f" ({100 * right / whole:.1f}%)" if whole else ""
    left_out = f", {confusion.left_out:,} left out, not being of exactly one type" if confusion.left_out else ""
    words = f"{right:,} of {whole:,} have the right type{share}{left_out}"
    return f"{words}; {confusion.reason}." if confusion.reason else f"{words}."


# The pages.


_ERRORS_SHOWN = 5  # maximum of each kind, in each language of a data set
_LONGEST_SHOWN = 400  # maximum code points of a text


def _error_parts(view: View) -> Iterator[Part]:
    """The errors of each system on each data set, the most confident first."""
    yield (
        "Items that each system judged wrongly: at the threshold tuned on dev, or by its verdict if it gives no"
        f" score. The surest errors come first. The page shows {_ERRORS_SHOWN} of each kind in each language,"
        " shortened; the table as CSV has all that are listed."
    )
    cells: dict[str, list[BenchError]] = {}
    for error in view.results.errors:
        cells.setdefault(f"{error.system} on {error.data}, {error.level}s", []).append(error)
    heads = "error language id score source response labelled marked notes"
    for title, errors in cells.items():
        rows = [_error_row(error) for error in errors if error.number <= _ERRORS_SHOWN]
        yield Fold(title, [Table.named(title, heads, rows)])


def _error_row(error: BenchError) -> tuple[str | Cell, ...]:
    texts = (error.source, error.response, "; ".join(error.labelled), "; ".join(error.marked))
    kind = "false alarm" if error.kind == "false_positive" else "missed"
    shown = (printable(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…") for text in texts)
    numbered = f"{kind} {error.number} of {error.count:,}"
    notes = "; ".join(map(note_words, error.notes))
    return (numbered, error.language, error.id, number(error.score), *shown, notes)


def _sections(view: View, *, markup: bool) -> Iterator[Section]:
    """Findings, the leaderboards, and details; with `markup`, also elements that only a page can show."""
    rest = list(_figures(view, markup=markup))
    lead, how = [*findings(view), *few_texts(rest)], reading(view)
    if markup:
        yield Section("findings", "Findings", "Findings", (macro("findings")(lead, how),), ("figures",))
    else:
        yield Section("findings", "Findings", "Findings", (lead, Fold("How to read it", [how])))
    yield from rest


def _figures(view: View, *, markup: bool) -> Iterator[Section]:
    results = view.results
    for level in view.levels:
        title = f"{level.capitalize()}s"
        yield Section(
            level, title, title, list(_level(view, level)), (f"leaderboard_{level}", "languages", "wins", "pairs")
        )
    if results.answers:
        intro = "How much a system marks, and how high its numbers are. Neither says whether it is right."
        yield Section("unlabelled", "Without labels", "No labels", (intro, *_answer_tables(view)), ("answers",))
    if results.confusions:
        title = "Confusion of types"
        yield Section("types", title, "Types", list(_type_parts(view)), ("type_accuracy", "type_confusions"))
    if results.errors:
        title = "False alarms and missed hallucinations"
        yield Section("errors", title, "Errors", list(_error_parts(view)), ("errors",))
    if results.correlations:
        intro = (
            "Correlations of two systems' numbers on the same items (greater is worse in both), and agreement of their"
            " verdicts beyond chance (kappa); means over languages of data sets. Scorers that are in the bench as"
            " 'pairwise:' too are compared with themselves, by language. Dark grounds are strong relations of either"
            " sign."
        )
        levels = {matrix.level for matrix in results.correlations}
        related: list[Part] = [intro, *_correlation_tables(view, levels), *_pairwise_tables(view)]
        scopes = dict.fromkeys(matrix.scope for matrix in results.correlations if matrix.scope != ALL)
        related += [Fold(f"In the group {scope}", _correlation_tables(view, levels, scope)) for scope in scopes]
        saved = ("correlations", "pairwise")
        yield Section("correlations", "Correlations of systems", "Correlations", related, saved)
    if results.comparisons:
        intro = (
            "Both systems are measured on the items that both scored, under the same resamples. Systems that were"
            " trained on the data are compared too: see the mark in the leaderboards."
        )
        parts = (intro, _comparison_table(view))
        yield Section("comparisons", "Against the baseline", "Baseline", parts, ("comparisons",))
    tables = [table for table in (_data_table(view), _statistics_table(view)) if table.rows]
    yield Section("sets", "Data", "Data", tables, ("data",))
    intro = (
        "Processor seconds are those of all processes together; rows a second are by the clock of the machine that ran"
        " it. A detector is asked once for all levels, so that its cost is the same at each of them."
    )
    yield Section("cost", "Cost and coverage", "Cost", (intro, _cost_table(view)), ("cells", "coverage"))
    for missing in _filled(_missing_table(view)):
        yield Section("missing", missing.title, "Not judged", (missing,))
    systems = [
        f"{system.name} ({system.kind}): {system.signature or f'unavailable: {system.unavailable}'}"
        for system in results.systems
    ]
    signature = [macro("signature")(results.signature)] if markup else []
    yield Section("systems", "Systems", "Systems", (systems, *signature), ("systems", "thresholds"))


def _level(view: View, level: str) -> Iterator[Part]:
    board = view.board(level)
    yield board_table(view, board)
    yield from _filled(_undefined_table(view, level))
    yield from _filled(_incomplete_table(view, board))
    if pairs := view.pairs(level):  # the basis of the ranks
        title = f"Differences in {board.measure} of {level}s between all systems, {_corrected_by(view.results)}"
        rows = [(f"{c.system} − {c.baseline}", *_tested(c), winner(c) or "–") for c in pairs]
        yield Fold("Tests between all systems", [Table(title, ("systems", *_TESTED, "better"), rows)])
    yield Fold("Win rates by group of languages", [_win_table(view, level)])
    for data in board.data:
        tables = [_measure_table(view, level, data.name), *_filled(_measure_table(view, level, data.name, at="own"))]
        tables += [_language_table(view, level, data.name)] if len(data.languages) > 1 else []
        yield Fold(f"{data.name}: every measure, and each language", tables)


def _filled(table: Table) -> list[Table]:
    """The table, if it has rows."""
    return [table] if table.rows else []


def write_bench(results: BenchResults, path: str | Path) -> None:
    """Write the leaderboard as one self-contained page.

    The same results give the same bytes. The file gets its name only when complete.

    Args:
        results: of the bench.
        path: where to write; `-` is standard output.

    Raises:
        OSError: the file cannot be written.
    """
    view = View(results)
    ranked = " and ".join(dict.fromkeys(map(view.rank_by, view.levels)))
    tuned = ", thresholds tuned on dev" if any(figure.at == "tuned" for figure in results.figures) else ""
    subtitle = (
        f"{count(len(results.systems), 'system')} on {count(len(results.data), 'data set')}",
        f"ranked by {ranked}{tuned}" if view.levels else "no labels, so no ranking",
        f"95% intervals over {results.resamples:,} resamples of texts",
        f"Veriglot {results.version}",
    )
    sections = list(_sections(view, markup=True))
    write_report(path, title=results.title, subtitle=subtitle, sections=sections, tables=bench_tables(results))


def bench_document(results: BenchResults, format: str, *, table: str | None = None) -> str:  # noqa: A002  # as in the CLI
    """A bench as a document.

    Args:
        results: of the bench.
        format: `markdown` (everything, as a page), `latex` (the leaderboards), `csv` (one table) or `json`.
        table: the table for `csv`; None for every figure.

    Raises:
        UnknownNameError: no such format, or the bench has no such table.
    """
    if format not in _FORMATS:
        raise UnknownNameError("format of a leaderboard", format, _FORMATS)
    if format == "json":
        return as_json(results)
    if format == "csv":
        tables = bench_tables(results)
        if (table or "figures") not in tables:
            raise UnknownNameError("table of this bench", table or "figures", tables)
        return tables[table or "figures"].to_csv()
    view = View(results)
    if format == "markdown":
        return markdown_report(results.title, _sections(view, markup=False), results.signature)
    if not view.levels:
        return f"% no data set has labels: there is nothing to rank\n% {results.signature}\n"
    return "\n".join(_latex_board(view, view.board(level)) for level in view.levels)


def _latex_board(view: View, board: Board) -> str:
    """A `table*`: values over their intervals; means that no test shows to be worse than another are bold."""
    names = [data.name for data in board.data]
    rows = []
    for row in board.rows:
        first = row.standing is not None and row.standing.best == 1
        mean = Cell(number(row.mean), kind="best" if first else "")
        rate = row.win.rate if row.win is not None else None
        cells = (_figure_cell(row.cells[name]) for name in names)
        rows.append((row.system.name, row.rank or "–", *cells, mean, "–" if rate is None else f"{100 * rate:.0f}"))
    caption = "Under each value is its 95% interval over texts."
    if board.ranked:
        caption += (
            f" Ranks are those that tests of all pairs ({_corrected_by(view.results)}) cannot exclude; bold: first."
        )
    if board.incomplete:
        caption += " Systems that left rows out have no rank."
    caption = " ".join([caption, *few_texts(rows)])
    if any(figure is not None and figure.seen for row in board.rows for figure in row.cells.values()):
        caption += f" {SEEN}: the system was trained on the data, which is in no mean and win."
    table = Table(board.title, ("System", "Rank", *names, "Mean", "Wins or ties (%)"), rows)
    text = table.to_latex_float(f"{view.results.title}: {board.title}", caption, f"tab:bench-{board.level}")
    return f"{text}% {view.results.signature}\n"


def render_bench(results: BenchResults, console: Console) -> None:
    """Print a bench."""
    view = View(results)
    tables = []
    for level in view.levels:
        board = view.board(level)
        tables += [
            board_table(view, board),
            *_filled(_undefined_table(view, level)),
            *_filled(_incomplete_table(view, board)),
        ]
    tables += [table for data in view.data("response") for table in _filled(_accuracy_table(view, data.name))]
    tables += [_type_table(c) for c in results.confusions if c.counts and (c.of, c.language) == ("response", ALL)]
    unranked = [level for level in results.measures if level not in view.levels]
    together = [*_correlation_tables(view, unranked), *_pairwise_tables(view)]
    tables += [*_answer_tables(view), *together, *_filled(_missing_table(view))]
    console.print(Text(printable(results.title), style="bold"))
    for text in (*findings(view), *few_texts(tables)):
        console.print(Text(f"  {printable(text)}"))
    for table in tables:
        console.print()
        table.print(console)
