"""A bench's results as one HTML file that needs nothing beside it and asks the network for nothing.

Every figure is text in the file; the script adds sorting, themes and saving of tables, and hides nothing from a reader
who has none.
"""

from __future__ import annotations

from html import escape
from string import Template
from typing import TYPE_CHECKING

from veriglot.report.assembly import colours, head, in_one_scope, opened, part
from veriglot.report.bench.sections import bench_sections
from veriglot.report.bench.tables import bench_tables
from veriglot.report.bench.view import View
from veriglot.report.page_data import script_safe
from veriglot.report.printable import printable
from veriglot.report.study.delimited import csv_text
from veriglot.report.study.markup import joined, tag
from veriglot.report.study.numbers import count
from veriglot.report.study.sections import framed

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.bench.results import BenchResults
    from veriglot.report.study.markup import Markup
    from veriglot.report.study.sections import Section

__all__ = ["write_bench"]

_SHARED, _OWN = "study/parts", "bench/parts"
_SCRIPTS = ((_SHARED, "tables.js"), (_OWN, "sort.js"), (_SHARED, "page.js"))
_STYLES = (
    (_SHARED, "page.css"), (_SHARED, "tables.css"), (_OWN, "bench.css"), (_SHARED, "narrow.css"),
    (_SHARED, "print.css"),
)  # fmt: skip


def write_bench(results: BenchResults, path: str | Path) -> None:
    """Write the leaderboard as one self-contained page.

    The same results give the same bytes. The file appears under its name once it is whole.

    Args:
        results: of the bench.
        path: where to write; `-` is standard output.

    Raises:
        OSError: the file cannot be written.
    """
    text = _page(results)
    with opened(path) as file:
        file.write(text)


def _page(results: BenchResults) -> str:
    view = View(results)
    tables = bench_tables(view)
    sections = bench_sections(view)
    script = in_one_scope(_SCRIPTS)
    style = colours() + "\n".join(part(folder, name) for folder, name in _STYLES)
    saved = {name: {"csv": csv_text(table), "file": f"{name}.csv"} for name, table in tables.items()}
    return Template(part(_OWN, "page.html")).substitute(
        head=head(results.title, script, style),
        title=escape(printable(results.title)),
        subtitle=_subtitle(view),
        script=script,
        navigation=_navigation(sections),
        sections=joined([framed(section, tables) for section in sections], "\n"),
        data=script_safe({"tables": saved}),
    )


def _subtitle(view: View) -> Markup:
    results = view.results
    parts = (
        f"{count(len(results.systems), 'system')} on {count(len(results.data), 'data set')}",
        f"ranked by {results.rank_by}, thresholds tuned on dev" if view.levels else "no labels: nobody is ranked",
        f"95% intervals over {results.resamples:,} resamples of texts",
        f"Veriglot {results.version}",
    )
    return joined([tag("span", text) for text in parts], " ")


def _navigation(sections: list[Section]) -> Markup:
    return joined([tag("a", section.short, href=f"#{section.name}") for section in sections], "\n")
