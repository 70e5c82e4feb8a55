"""A bench's results as one HTML file that needs nothing beside it and asks the network for nothing.

Every figure is text in the file; the script adds sorting, themes and saving of tables, and hides nothing from a reader
who has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.bench.grids import (
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
    type_section,
    undefined_grid,
    win_grid,
)
from veriglot.report.bench.tables import bench_tables
from veriglot.report.bench.view import View, findings, reading
from veriglot.report.html import folded, macro, note, tag
from veriglot.report.pages import Section, write_report
from veriglot.report.text_layout import count

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from veriglot.bench.results import BenchResults

__all__ = ["write_bench"]


_BOARD = "board sortable"


def bench_sections(view: View) -> list[Section]:
    """Findings, the leaderboards, what stands behind them."""
    boards = (_board(view, level) for level in view.levels)
    sections = [_findings(view), *boards, *_unlabelled(view), *type_section(view), *_correlated(view)]
    if view.results.comparisons:
        intro = note(
            "Both systems are measured on the items that both scored, under the same resamples. Systems that were"
            " trained on the data are compared too: mind the mark in the leaderboards."
        )
        body = (intro, comparison_grid(view).to_html())
        sections.append(Section("comparisons", "Against the baseline", "Baseline", body, ("comparisons",)))
    return [*sections, _data(view), _cost(view), *_missing(view), _systems(view)]


def _findings(view: View) -> Section:
    lead = tag("ul", *(tag("li", text) for text in findings(view)), class_="findings lead")
    how = tag("ul", *(tag("li", text) for text in reading(view)))
    body = (lead, tag("h3", "How to read it"), how)
    return Section("findings", "Findings", "Findings", body, ("figures",))


def _board(view: View, level: str) -> Section:
    board = view.board(level)
    table = board_grid(view, board).to_html(class_=_BOARD)
    body = [note(f"{board.title}. A head sorts its column."), table]
    undefined = undefined_grid(view, level)
    body += [undefined.to_html()] if undefined.rows else []
    body.append(folded("Win rates by group of languages", win_grid(view, level).to_html(class_=_BOARD)))
    for data in board.data:
        parts = [measure_grid(view, level, data.name).to_html(class_=_BOARD)]
        if view.own(level):
            parts.append(measure_grid(view, level, data.name, at="own").to_html(class_=_BOARD))
        if len(data.languages) > 1:
            parts.append(language_grid(view, level, data.name).to_html(class_=_BOARD))
        body.append(folded(f"{data.name}: every measure, and each language", *parts))
    title = f"{level.capitalize()}s"
    return Section(level, title, title, body, (f"leaderboard_{level}", "languages", "wins"))


def _unlabelled(view: View) -> Iterator[Section]:
    grids = answer_grids(view)
    if grids:
        intro = note("How much a system marks, and how high its numbers are. Neither says whether it is right.")
        body = (intro, *(markup for grid in grids for markup in (tag("h3", grid.title), grid.to_html())))
        yield Section("unlabelled", "Without labels", "No labels", body, ("answers",))


def _correlated(view: View) -> Iterator[Section]:
    if not view.results.correlations:
        return
    intro = note(
        "How the numbers of two systems go together on the same items, greater being worse in both, and how far their"
        " verdicts agree beyond chance (kappa); the mean over languages of data sets. Dark grounds are strong relations"
        " of either sign."
    )
    levels = dict.fromkeys(matrix.level for matrix in view.results.correlations)
    tables = (table for level in levels for table in correlation_grids(view, level))
    body = [intro, *(table.to_html(class_=_BOARD) for table in tables)]
    yield Section("correlations", "How systems go together", "Correlations", body, ("correlations",))


def _data(view: View) -> Section:
    grids = (data_grid(view), statistics_grid(view))
    body = tuple(grid.to_html() for grid in grids if grid.rows)
    return Section("sets", "Data", "Data", body, ("data",))


def _cost(view: View) -> Section:
    intro = note(
        "Seconds of processor time are of all processes together, rows a second of the clock on the wall, on the"
        " machine that ran it. A detector's cell at one level is that of all its levels: it is asked once."
    )
    body = (intro, cost_grid(view).to_html())
    return Section("cost", "Cost and coverage", "Cost", body, ("cells", "coverage"))


def _missing(view: View) -> Iterator[Section]:
    grid = missing_grid(view)
    if grid.rows:
        yield Section("missing", grid.title, "Not judged", (grid.to_html(),))


def _systems(view: View) -> Section:
    items = [
        tag("div", tag("dt", system.name), tag("dd", system.signature or f"unavailable: {system.unavailable}"))
        for system in view.results.systems
    ]
    signature = macro("signature")(view.results.signature)
    body = (tag("dl", *items, class_="words"), tag("h3", "Signature"), signature)
    return Section("systems", "Systems", "Systems", body, ("systems", "thresholds"))


def write_bench(results: BenchResults, path: str | Path) -> None:
    """Write the leaderboard as one self-contained page.

    The same results give the same bytes. The file appears under its name once it is whole.

    Args:
        results: of the bench.
        path: where to write; `-` is standard output.

    Raises:
        OSError: the file cannot be written.
    """
    view = View(results)
    write_report(
        path, title=results.title, subtitle=_subtitle(view), sections=bench_sections(view), tables=bench_tables(view)
    )


def _subtitle(view: View) -> tuple[str, ...]:
    results = view.results
    return (
        f"{count(len(results.systems), 'system')} on {count(len(results.data), 'data set')}",
        f"ranked by {results.rank_by}, thresholds tuned on dev" if view.levels else "no labels: nobody is ranked",
        f"95% intervals over {results.resamples:,} resamples of texts",
        f"Veriglot {results.version}",
    )
