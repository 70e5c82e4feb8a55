"""A study on the terminal: rates, languages by models, then the models in their order, then what to mind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from veriglot.report.printable import printable
from veriglot.report.study.findings import judged_of_planned
from veriglot.report.study.numbers import count, interval, percent, points
from veriglot.report.study.view import ALL, View, is_sound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.records import Rate
    from veriglot.study.results import Average, StudyResults

__all__ = ["render_study"]

_PLAIN_WIDTH = 200
"""Columns where no terminal says how many there are: enough for most studies."""
_LEAD, _COLUMN = 24, 17
_DOUBT = "yellow"


def render_study(results: StudyResults, console: Console) -> None:
    """Print a study.

    Args:
        results: the study's results.
        console: where to print; a table that is wider becomes several, and a pipe has 200 columns. Without colours
            nothing is lost: what is unreliable says so.
    """
    view = View(results)
    if not console.is_terminal:  # it says 80 columns, which is a guess
        console = Console(file=console.file, width=_PLAIN_WIDTH, color_system=None)
    _line(console, Text(printable(results.title), style="bold"))
    _line(console, Text(_caption(view), style="dim"))
    per_table = max(1, (console.width - _LEAD) // _COLUMN - 1)
    for start in range(0, len(view.models), per_table):
        models = view.models[start : start + per_table]
        console.print(_rates(view, models, last=start + per_table >= len(view.models)))
    console.print(_models(view))
    for line in _notes(view):
        _line(console, line)


def _caption(view: View) -> str:
    level = f"{100 * view.results.confidence:g}%"
    judged, planned = judged_of_planned(view)
    return (
        f"Share of {view.units} that the evidence does not support, by {view.results.estimator}, with {level} interval;"
        f" below it the coverage. {judged:,} of {count(planned, 'response')} judged."
    )


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True, markup=False, highlight=False, emoji=False)


def _frame(title: str | None = None) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)


def _rates(view: View, models: Sequence[str], *, last: bool) -> Table:
    table = _frame()
    table.add_column("language")
    for name in models:
        table.add_column(Text(printable(name)), justify="right", no_wrap=False, min_width=12)
    if last:
        table.add_column("mean", justify="right", no_wrap=True)
    for tag in view.languages:
        cells = [_cell(view.rate(name, tag)) for name in models]
        lead = Text.assemble(printable(view.language(tag)), (f" {printable(tag)}", "dim"))
        table.add_row(lead, *cells, *([_mean(view.average(tag))] if last else []))
    table.add_section()
    means = [_mean(view.average(name)) for name in models]
    table.add_row("mean", *means, *([_mean(view.results.overall)] if last else []))
    return table


def _cell(rate: Rate | None) -> Text:
    if rate is None:
        return Text("not estimated", style="dim")
    coverage = (f"\ncov. {percent(rate.coverage, 0)}", "dim")
    if is_sound(rate):
        return Text.assemble((percent(rate.rate), "bold"), (f" {_ends(rate.low, rate.high)}", "dim"), coverage)
    number = "no estimate" if rate.rate is None else f"({percent(rate.rate)}?)"
    return Text.assemble(("unreliable", f"bold {_DOUBT}"), (f" {number}", f"italic {_DOUBT}"), coverage)


def _ends(low: float | None, high: float | None) -> str:
    return "no interval" if low is None or high is None else f"{points(low)}–{points(high)}"


def _mean(average: Average | None) -> Text:
    if average is None or average.mean is None:
        return Text("no mean", style=_DOUBT)
    left_out = f"\n{average.unreliable} left out" if average.unreliable else ""
    ends = f" {_ends(average.low, average.high)}" if average.low is not None else ""
    return Text.assemble((percent(average.mean), "bold"), (ends, "dim"), (left_out, "dim"))


def _models(view: View) -> Table:
    ranks = {rank.model: rank for rank in view.results.ranks if rank.language == ALL}
    table = _frame("Models, over languages")
    table.add_column("model", overflow="fold")
    for head in ("mean", "interval", "rank", "not excluded", "languages"):
        table.add_column(head, justify="right", no_wrap=True)
    for average in view.results.by_model:
        rank = ranks.get(average.name)
        reach = "" if rank is None else str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}"
        table.add_row(
            Text(printable(average.name)),
            Text(percent(average.mean), style="bold") if average.mean is not None else Text("no mean", style=_DOUBT),
            interval(average.low, average.high),
            "" if rank is None else str(rank.rank),
            reach,
            f"{average.cells} of {average.cells + average.unreliable}" if average.unreliable else str(average.cells),
        )
    return table


def _notes(view: View) -> Iterator[Text]:
    for reason, rates in view.by_reason.items():
        told = f"{reason} ({view.places(rates)})"
        yield Text.assemble(("Unreliable: ", f"bold {_DOUBT}"), printable(told))
    if view.unlike_means:
        yield Text.assemble(("Note: ", "bold"), view.unlike_means)
    for warning in view.results.warnings:
        yield Text.assemble(("Warning: ", "bold"), printable(warning))
    yield Text(f"Signature: {printable(view.results.signature)}", style="dim")
