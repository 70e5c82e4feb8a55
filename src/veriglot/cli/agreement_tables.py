"""Agreement of annotators as tables for people: a row a language or a pair, intervals under values."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from veriglot.metrics.agreement import FEWEST_TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from veriglot.annotate.agreement import AgreementReport, AgreementRow

    Key = Callable[[AgreementRow], tuple[str, ...]]

__all__ = ["show"]

_PLAIN_WIDTH = 160  # columns where no terminal says how many there are: enough for every table
_ALL = "all"
_HEADS = {
    "kappa": "kappa",
    "pi": "pi",
    "alpha": "alpha",
    "span_f1": "span F1",
    "span_f1_exact": "exact",
    "gamma": "gamma",
}
_TITLES = {
    "people": "People with each other",
    "silver": "People with silver labels",
    "models": "Models with each other",
}
_LEGEND = (
    "kappa (pi): of pairs, averaged; alpha, gamma: of all annotators of a text at once. span F1: spans with an"
    " intersection over union of at least 0.5; exact: with the same ends. typed: of the same type as well."
    " 0 is chance for kappa, pi, alpha and gamma; 1 is full agreement."
)
_INTERVALS = " Under each value: its 95% interval, from a bootstrap that draws whole texts."
_FEW = f" too few: fewer than {FEWEST_TEXTS} texts, which give no interval."


def show(found: AgreementReport) -> None:
    """Print agreement on standard output."""
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)
    for among, title in _TITLES.items():
        rows = [row for row in found.rows if row.among == among]
        whole = [row for row in rows if row.between == (_ALL, _ALL)]
        parts = [row for row in rows if row.between != (_ALL, _ALL)]
        if whole:
            console.print(_table(title, whole, lambda row: (row.language or "?",), ("language",)))
        if len({row.between for row in parts}) > 1:
            names = ("language", "annotator", "and")
            console.print(_table(f"{title}, each pair", parts, lambda row: (row.language or "?", *row.between), names))
    intervals = _INTERVALS if any(row.low is not None for row in found.rows) else ""
    few = _FEW if any(_is_few(row) for row in found.rows) else ""
    console.print(f"{_LEGEND}{intervals}{few}", style="dim", soft_wrap=True)
    _close(console, found)


def _close(console: Console, found: AgreementReport) -> None:
    people = ", ".join(f"{name} ({count:,})" for name, count in found.annotators.items())
    console.print(
        f"{found.texts:,} texts, {found.shared:,} of them with two people or more" + (f"; {people}" if people else ""),
        soft_wrap=True,
        markup=False,
    )
    for language, name in found.best.items():
        console.print(f"Best with silver in {language or '?'}: {name}", soft_wrap=True, markup=False)
    reasons = {
        f"{row.measure} ({row.scope}) in {row.language}: {row.reason}"
        for row in found.rows
        if row.reason and row.between == (_ALL, _ALL) and not _is_few(row)
    }
    for line in (*found.notes, *sorted(reasons)):
        console.print(f"Note: {line}", soft_wrap=True, markup=False)
    console.print(f"Signature: {found.signature}", soft_wrap=True, markup=False)


def _table(title: str, rows: Sequence[AgreementRow], key: Key, heads: Sequence[str]) -> Table:
    columns = [
        (scope, measure)
        for scope in ("binary", "typed")
        for measure in _HEADS
        if any(row.scope == scope and row.measure == measure for row in rows)
    ]
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, no_wrap=True)
    for head in ("texts", *(_HEADS[measure] + ("\ntyped" if scope == "typed" else "") for scope, measure in columns)):
        table.add_column(head, justify="right", no_wrap=True)
    by_name: dict[tuple[str, ...], list[AgreementRow]] = {}
    for row in rows:
        by_name.setdefault(key(row), []).append(row)
    for name, cells in by_name.items():
        values = {(row.scope, row.measure): row for row in cells}
        if name == (_ALL,):
            table.add_section()
        table.add_row(
            *name,
            f"{max(row.texts for row in cells):,}",
            *(_cell(values.get(column)) for column in columns),
        )
    return table


def _cell(row: AgreementRow | None) -> Text:
    if row is None or row.value is None:
        return Text("–")
    text = Text(f"{row.value:.3f}")
    if row.low is not None and row.high is not None:
        text.append(f"\n{row.low:.2f} {row.high:.2f}", style="dim")
    elif _is_few(row):
        text.append("\ntoo few", style="dim")
    return text


def _is_few(row: AgreementRow) -> bool:
    """Whether a figure stands without an interval since it is of too few texts."""
    return row.value is not None and row.texts < FEWEST_TEXTS
