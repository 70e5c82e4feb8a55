"""A dev part on which nothing can be tuned: the reason stands where the leaderboard would, in every view."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from small_bench import BENCH, ran, samples, written

from veriglot.bench.config import load
from veriglot.bench.data import DataSet
from veriglot.report.bench import bench_document, render_bench, write_bench

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.bench.results import BenchResults

_WHY = "no threshold could be tuned: the development split has no factual items (1 scored item)"


@pytest.fixture
def results(tmp_path: Path) -> BenchResults:
    """Texts of which the split takes one alone for tuning: one that is marked."""
    config = load(written(tmp_path, BENCH))
    every, dev = samples(), DataSet.read(config.data[0], config).dev
    held = {one.id for one in dev}
    marked = next(one for one in dev if one.annotations[0].spans)
    rows = [marked, *[one for one in every if one.id not in held and one.language == marked.language]]
    text = BENCH.replace('levels = ["word", "sentence", "response"]', 'levels = ["response"]')
    return ran(written(tmp_path, text, rows), tmp_path / "run")


def test_the_reason_is_that_of_the_threshold(results: BenchResults) -> None:
    reasons = {one.reason for one in results.figures if one.measure == "mcc" and one.at == "tuned"}
    assert reasons == {_WHY}


def test_every_view_says_why_and_what_was_taken(results: BenchResults, tmp_path: Path) -> None:
    number = 1 + sum(count for count, _ in results.data[0].languages.values())
    share = f"1 of {number} samples, {100 / number:.0f}%"
    write_bench(results, tmp_path / "page.html")
    console = Console(record=True, width=400)
    render_bench(results, console)
    markdown = bench_document(results, "markdown").replace("\\", "")
    page = html.unescape((tmp_path / "page.html").read_text("utf-8"))
    for text in (markdown, page, console.export_text()):
        assert f"Responses: no system has a figure of mcc: {_WHY}. Of animals {share} were taken for tuning" in text
        assert "Judged, but without mcc of responses, and why" in text
    assert f"| absent, rouge-l, top-ngram | animals | {_WHY} |" in markdown
    assert f"by a hash of the text (taken: {share})" in markdown
    assert f"by a hash of the text (taken: {share})" in page
