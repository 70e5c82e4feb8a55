"""A bench's results for papers and programs: Markdown, LaTeX (booktabs), CSV and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import UnknownNameError
from veriglot.report.assembly import opened
from veriglot.report.bench.latex import latex_boards
from veriglot.report.bench.markdown import markdown_report
from veriglot.report.bench.tables import bench_tables
from veriglot.report.bench.view import View
from veriglot.report.study.delimited import csv_text

if TYPE_CHECKING:
    from veriglot.bench.results import BenchResults

__all__ = ["FORMATS", "bench_document", "write_bench_tables"]

FORMATS = ("markdown", "latex", "csv", "json")


def bench_document(results: BenchResults, format: str, *, table: str | None = None) -> str:  # noqa: A002  # as in the CLI
    """A bench as a document.

    Args:
        results: of the bench.
        format: `markdown` (everything, as a page), `latex` (the leaderboards), `csv` (one table) or `json`.
        table: which table for `csv`; None for every figure.

    Raises:
        UnknownNameError: no such format, or the bench has no such table.
    """
    if format not in FORMATS:
        raise UnknownNameError("format of a leaderboard", format, FORMATS)
    if format == "json":
        return msgspec.json.format(msgspec.json.encode(results), indent=2).decode() + "\n"
    view = View(results)
    if format == "csv":
        tables = bench_tables(view)
        if (table or "figures") not in tables:
            raise UnknownNameError("table of this bench", table or "figures", tables)
        return csv_text(tables[table or "figures"])
    return markdown_report(view) if format == "markdown" else latex_boards(view)


def write_bench_tables(results: BenchResults, folder: str | Path) -> list[Path]:
    """Write every table of a bench as `NAME.csv` into a folder, which is made where there is none.

    Raises:
        OSError: a file cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in bench_tables(View(results)).values():
        path = folder / f"{table.name}.csv"
        with opened(path) as file:
            file.write(csv_text(table))
        written.append(path)
    return written
