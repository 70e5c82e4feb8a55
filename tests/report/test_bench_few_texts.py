"""Intervals over few texts: none under five, a mark and one note under thirty, in every view."""

from __future__ import annotations

import csv
import html
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from bench_made import bench_of
from msgspec import structs
from rich.console import Console

from veriglot.bench.results import BenchAnswers, BenchComparison
from veriglot.report.bench import bench_document, render_bench, write_bench
from veriglot.report.bench_findings import FEW_TEXTS
from veriglot.report.site import write_site

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.bench.results import BenchResults


def made(texts: int) -> BenchResults:
    comparison = BenchComparison("sums", "response", "mcc", "tuned", "a", "b", 0.1, 0.01, 0.01, texts, texts,
                                 (0, 0), "holm", low=0.0, high=0.2)  # fmt: skip
    return bench_of({"a": (0.61, 3), "b": (0.5, 2)}, texts=texts, comparisons=(comparison,))


def views(results: BenchResults, folder: Path) -> dict[str, str]:
    """Every view as plain text, with its own ways to write brackets and marks undone."""
    write_bench(results, folder / "page.html")
    console = Console(record=True, width=600)
    render_bench(results, console)
    return {
        "markdown": bench_document(results, "markdown").replace("\\", ""),
        "latex": bench_document(results, "latex").replace(r"$^\ddagger$", "‡").replace(r"\%", "%"),
        "page": html.unescape((folder / "page.html").read_text("utf-8")),
        "terminal": console.export_text(),
    }


@pytest.mark.parametrize("texts", [5, 29])
def test_few_texts_are_marked_in_every_view_with_one_note(texts: int, tmp_path: Path) -> None:
    for name, text in views(made(texts), tmp_path).items():
        assert "[0.510, 0.610]‡" in text, name
        assert "[0.510, 0.610] " not in text, name
        assert text.count(FEW_TEXTS) == 1, name
        if name in {"markdown", "page"}:
            assert "[0.000, 0.200]‡" in text, name
            assert "[0, 100]‡" in text, name


def test_thirty_texts_are_not_marked(tmp_path: Path) -> None:
    for name, text in views(made(30), tmp_path).items():
        assert "[0.510, 0.610]" in text, name
        assert "‡" not in text, name


def test_under_five_texts_no_interval_is_shown_even_of_older_results(tmp_path: Path) -> None:
    for name, text in views(made(4), tmp_path).items():
        assert "0.610" in text, name
        assert "[0.510" not in text, name
        assert "‡" not in text, name
        assert "no interval" in text, name
        if name in {"markdown", "page"}:
            assert "[0.000, 0.200]" not in text, name
            assert "[0, 100]" not in text, name


def test_a_view_without_the_mark_has_no_note_on_it(tmp_path: Path) -> None:
    """A site shows no tables of data without labels."""
    answers = BenchAnswers(system="a", data="sums", level="response", language="mean", clusters=9, flagged=0.5,
                           flagged_low=0.2, flagged_high=0.8)  # fmt: skip
    labelled = bench_of({"a": (0.61, 3), "b": (0.5, 2)}, texts=9)
    bare = structs.replace(labelled, data=(structs.replace(labelled.data[0], labelled=False),), figures=(), wins=(),
                           answers=(answers,))  # fmt: skip
    for results, on_site in ((labelled, 1), (bare, 0)):
        write_site([results], tmp_path / f"site-{on_site}")
        page = html.unescape((tmp_path / f"site-{on_site}" / "index.html").read_text("utf-8"))
        assert (page.count(FEW_TEXTS), "]‡" in page) == (on_site, bool(on_site))
        assert views(results, tmp_path)["page"].count(FEW_TEXTS) == 1


@pytest.mark.parametrize(
    ("table", "column"), [("leaderboard_response", "sums_texts"), ("languages", "texts"), ("wins", "texts")]
)
def test_rows_say_how_many_texts_are_behind_them(table: str, column: str) -> None:
    rows = csv.DictReader(StringIO(bench_document(made(7), "csv", table=table)))
    assert {row[column] for row in rows} == {"7"}
