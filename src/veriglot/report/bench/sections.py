"""The parts of a bench's page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.bench.cells import absent, figure_cell, mean_cell, plain_table, shade, sortable, win_cell
from veriglot.report.bench.grids import (
    answer_grids,
    comparison_grid,
    cost_grid,
    data_grid,
    missing_grid,
    related_title,
    statistics_grid,
    undefined_grid,
)
from veriglot.report.bench.type_grids import type_section
from veriglot.report.bench.view import ALL, number
from veriglot.report.bench.words import findings, reading
from veriglot.report.study.markup import Markup, tag
from veriglot.report.study.sections import Section, folded, note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.bench.results import BenchCorrelations
    from veriglot.report.bench.view import View

__all__ = ["bench_sections"]


def bench_sections(view: View) -> list[Section]:
    """Findings, the leaderboards, what stands behind them."""
    boards = (_board(view, level) for level in view.levels)
    found = [_findings(view), *boards, *_unlabelled(view), *type_section(view), *_correlated(view)]
    if view.results.comparisons:
        intro = note(
            "Both systems are measured on the items that both scored, under the same resamples. Systems that were"
            " trained on the data are compared too: mind the mark in the leaderboards."
        )
        body = (intro, plain_table(comparison_grid(view)))
        found.append(Section("comparisons", "Against the baseline", "Baseline", body, ("comparisons",)))
    return [*found, _data(view), _cost(view), *_missing(view), _systems(view)]


def _findings(view: View) -> Section:
    lead = tag("ul", *(tag("li", text) for text in findings(view)), class_="findings lead")
    how = tag("ul", *(tag("li", text) for text in reading(view)))
    body = (lead, tag("h3", "How to read it"), how)
    return Section("findings", "Findings", "Findings", body, ("figures",))


def _board(view: View, level: str) -> Section:
    board = view.board(level)
    heads = ("system", *(data.name for data in board.data), "mean", "wins")
    rows = (
        (
            row.system.name,
            [
                *(figure_cell(row.cells[data.name]) for data in board.data),
                mean_cell(row.mean, len(row.unseen)),
                win_cell(row.win, view.texts(level, ALL)),
            ],
        )
        for row in board.rows
    )
    body = [note(f"{board.title}. A head sorts its column."), sortable(board.title, heads, rows)]
    undefined = undefined_grid(view, level)
    body += [plain_table(undefined)] if undefined.rows else []
    body.append(folded("Win rates by group of languages", _wins(view, level)))
    for data in board.data:
        parts = [_measures(view, level, data.name, None)]
        if view.own(level):
            parts.append(_measures(view, level, data.name, "own"))
        if len(data.languages) > 1:
            parts.append(_languages(view, level, data.name))
        body.append(folded(f"{data.name}: every measure, and each language", *parts))
    title = f"{level.capitalize()}s"
    return Section(level, title, title, body, (f"leaderboard_{level}", "languages", "wins"))


def _wins(view: View, level: str) -> Markup:
    board = view.board(level)
    names = [row.system.name for row in board.rows]
    scopes = [ALL, *(scope for scope in view.results.groups if scope != ALL)]
    found = {(n, s): view.win(level, board.measure, board.at, s, n) for n in names for s in scopes}
    shown = [s for s in scopes if any((win := found[n, s]) is not None and win.cells for n in names)]
    rows = ((name, [win_cell(found[name, scope], view.texts(level, scope)) for scope in shown]) for name in names)
    title = f"Win rates by {board.measure}, ties credited to all"
    return sortable(title, ("system", *shown), rows)


def _measures(view: View, level: str, data: str, at: str | None) -> Markup:
    """Every measure on one data set."""
    measures = view.measures(level, at)
    rows = (
        (
            row.system.name,
            [figure_cell(view.figure(level, name, view.at(name, at), data, row.system.name)) for name in measures],
        )
        for row in view.board(level).rows
    )
    where = "at the systems' own thresholds" if at == "own" else "thresholds tuned on dev"
    return sortable(f"{data}, {where}", ("system", *measures), rows)


def _languages(view: View, level: str, data: str) -> Markup:
    """The ranking measure by language: the heat map."""
    rank_by = view.results.rank_by
    tags = sorted(next(one for one in view.results.data if one.name == data).languages)
    rows = (
        (
            row.system.name,
            [figure_cell(view.figure(level, rank_by, view.at(rank_by), data, row.system.name, tag_)) for tag_ in tags],
        )
        for row in view.board(level).rows
    )
    return sortable(f"{rank_by} by language: {data}", ("system", *tags), rows)


def _unlabelled(view: View) -> Iterator[Section]:
    grids = answer_grids(view)
    if grids:
        intro = note("How much a system marks, and how high its numbers are. Neither says whether it is right.")
        body = (intro, *(markup for grid in grids for markup in (tag("h3", grid.title), plain_table(grid))))
        yield Section("unlabelled", "Without labels", "No labels", body, ("answers",))


def _correlated(view: View) -> Iterator[Section]:
    if not view.results.correlations:
        return
    intro = note(
        "How the numbers of two systems go together on the same items, greater being worse in both, and how far their"
        " verdicts agree beyond chance (kappa); the mean over languages of data sets. Dark grounds are strong relations"
        " of either sign."
    )
    body = [intro, *(_matrix(one) for one in view.results.correlations)]
    yield Section("correlations", "How systems go together", "Correlations", body, ("correlations",))


def _matrix(found: BenchCorrelations) -> Markup:
    rows = (
        (name, [_r(value, cells) for value, cells in zip(values, counts, strict=True)])
        for name, values, counts in zip(found.systems, found.r, found.cells, strict=True)
    )
    return sortable(related_title(found), ("system", *found.systems), rows)


def _r(value: float | None, cells: int) -> Markup:
    if value is None:
        return absent()
    return tag(
        "td", tag("b", number(value, 2)), class_=f"heat-cell {shade(abs(value))}", data_value=repr(value),
        title=f"mean over {cells} cells",
    )  # fmt: skip


def _data(view: View) -> Section:
    grids = (data_grid(view), statistics_grid(view))
    body = tuple(plain_table(grid) for grid in grids if grid.rows)
    return Section("sets", "Data", "Data", body, ("data",))


def _cost(view: View) -> Section:
    intro = note(
        "Seconds of processor time are of all processes together, rows a second of the clock on the wall, on the"
        " machine that ran it. A detector's cell at one level is that of all its levels: it is asked once."
    )
    body = (intro, plain_table(cost_grid(view)))
    return Section("cost", "Cost and coverage", "Cost", body, ("cells", "coverage"))


def _missing(view: View) -> Iterator[Section]:
    grid = missing_grid(view)
    if grid.rows:
        yield Section("missing", grid.title, "Not judged", (plain_table(grid),))


def _systems(view: View) -> Section:
    items = [
        tag("div", tag("dt", one.name), tag("dd", one.signature or f"unavailable: {one.unavailable}"))
        for one in view.results.systems
    ]
    signature = tag("p", tag("code", view.results.signature, id="signature"), class_="signature")
    copy = tag("button", "Copy the signature", type="button", id="copy", class_="tool", hidden=True)
    body = (tag("dl", *items, class_="words"), tag("h3", "Signature"), signature, copy)
    return Section("systems", "Systems", "Systems", body, ("systems", "thresholds"))
