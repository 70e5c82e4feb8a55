"""How a benchmark is called, and how it shows its figures: a small table for people, or a JSON object with `--json`."""

from __future__ import annotations

import argparse
import json
import os
import platform
from typing import Any

import veriglot

WIDTH = 120  # columns of a table that goes to a file


def command_line(about: str | None, *, draws: bool = False) -> argparse.ArgumentParser:
    """A parser that takes `--json`, and what is drawn by, if there are draws; `about` is the benchmark's docstring."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON, one object a table")
    if draws:
        parser.add_argument("--resamples", type=int, default=1000)
        parser.add_argument("--seed", type=int, default=1)
    return parser


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    return {
        "veriglot": veriglot.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
    }


def show(title: str, rows: list[dict[str, Any]], *, as_json: bool, notes: list[str]) -> None:
    """Print `rows` (all with the same keys) under `title`, with `notes` that a reader needs to judge them."""
    if as_json:
        print(json.dumps({"title": title, "rows": rows, "notes": notes, "machine": machine()}, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for key in rows[0]:
        table.add_column(key, justify="left" if isinstance(rows[0][key], str) else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    console.print(table)
    for note in notes:
        console.print(f"- {note}", highlight=False)
    console.print(f"- {', '.join(f'{key} {value}' for key, value in machine().items())}\n", highlight=False)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
