"""Rates as JSON, CSV and a table for the terminal."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Rate

__all__ = ["as_json", "print_csv", "print_table"]

_PLAIN_WIDTH = 200  # columns where no terminal says how many there are: enough for every table


def as_json(rates: Sequence[Rate]) -> bytes:
    """A list with one rate a line."""
    return b"[\n" + b",\n".join(msgspec.json.encode(rate) for rate in rates) + b"\n]\n"


def print_csv(rates: Sequence[Rate]) -> None:
    """One rate a row, under the names of its fields; empty where a field has no value."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    from veriglot.records import Rate

    fields = Rate.__struct_fields__
    writer.writerow(fields)
    for rate in rates:
        writer.writerow(["" if (value := getattr(rate, name)) is None else value for name in fields])


def print_table(rates: Sequence[Rate]) -> None:
    """Percentages with intervals; what is unreliable is said beside the number, and why below the table."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    named = {
        "model": [rate.model or "-" for rate in rates],
        "language": [rate.language for rate in rates],
        "estimator": [str(rate.estimator) for rate in rates],
        "seed": ["all" if rate.seed is None else str(rate.seed) for rate in rates],
    }
    # A column that says the same of all says it once, above.
    shown = [name for name, values in named.items() if name == "language" or len(set(values)) > 1]
    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in shown:
        table.add_column(name, overflow="fold", no_wrap=name != "model", min_width=8 if name == "model" else None)
    for name in ("rate", "interval, %", f"{rates[0].unit if rates else 'unit'}s", "judged"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, min_width=10 if any(rate.status != "ok" for rate in rates) else None)
    for place, rate in enumerate(rates):
        names = (named[name][place] for name in shown)
        table.add_row(*names, *_numbers(rate), "" if rate.status == "ok" else "unreliable")
    for name in ("model", "estimator"):
        if name not in shown and rates and named[name][0] != "-":
            console.print(f"{name}: {named[name][0]}", markup=False, highlight=False)
    console.print(table)
    for text in dict.fromkeys(f"{rate.model or '-'}, {rate.language}: {rate.reason}." for rate in rates if rate.reason):
        console.print(text, markup=False, highlight=False)
    for line in dict.fromkeys(_without_language(rate.signature) for rate in rates):
        console.print(f"Signature: {line}", markup=False, highlight=False, soft_wrap=True)


def _without_language(line: str) -> str:
    """The signature without the part that says which language's error rates were used: the table has a row for each."""
    return "|".join(part for part in line.split("|") if not part.startswith("rates:") or part == "rates:pooled")


def _numbers(rate: Rate) -> tuple[str, ...]:
    sure = "{:.2%}" if rate.status == "ok" else "({:.2%}?)"  # as in the report of a study
    value = "-" if rate.rate is None else sure.format(rate.rate)
    interval = "-" if rate.low is None or rate.high is None else f"{100 * rate.low:.2f} to {100 * rate.high:.2f}"
    given = round(rate.responses / rate.coverage) if rate.coverage else 0
    return value, interval, f"{rate.units:,}", f"{rate.responses:,} of {given:,}" if given else "0"
