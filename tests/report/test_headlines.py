"""What no page may do, whatever the results: contradict a comparison, let a partial system lead, call a rate reliable
that its own labels exclude. Each test reads the page as it was written: of a bench, a study, a site, and of results.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench_random import plans as bench_plans
from bench_random import random_bench
from bench_sentences import board_holds, page_holds
from hypothesis import given, settings
from sentences import ROOT, held
from study_page import Node, Page
from study_random import Plan, plans, random_study
from study_sentences import close
from test_bench_leaders import Truth as BenchTruth
from test_study_findings import Truth as StudyTruth
from test_study_findings import disjoint

from veriglot.records.languages import language_name
from veriglot.report.bench import write_bench
from veriglot.report.site import write_site
from veriglot.report.study_page import write_study

sys.path.insert(0, str(ROOT / "benchmarks"))
import results as benchmark

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench_random import Plan as BenchPlan

    from veriglot.bench.results import BenchResults
    from veriglot.study.results import StudyResults

MANY = settings(max_examples=settings.default.max_examples * 6 // 5)


# The sentences of each page, as written.


def of_bench(results: BenchResults, folder: Path) -> list[str]:
    write_bench(results, folder / "page.html")
    page = Page((folder / "page.html").read_text("utf-8"))
    return [node.text for node in page.root.all("ul", "lead")[0].all("li")]


def of_site(results: BenchResults | StudyResults, folder: Path) -> list[str]:
    """Those beside its title and those above its board, which say the same."""
    page = site(results, folder)
    board = page.root.all("section")[1]
    told = [node.text for node in board.all("ul")[0].all("li")]
    summary = page.root.all("section")[0].all("tbody")[0].all("td")[0].text
    assert all(sentence in " ".join(told) for sentence in summary.split(". ")[:1])
    return told


def of_results(results: BenchResults, folder: Path) -> list[str]:
    (folder / "history.csv").write_text(f"{','.join(benchmark.Figure._fields)}\n", "utf-8")
    (folder / "history.toml").write_text('lead = "All of it."\npublished = []\n\n', "utf-8")
    benchmark.record(results, "today", folder)
    text = benchmark.page(folder, folder).replace("\\", "")
    told = [line.removeprefix("- ") for line in text.splitlines() if line.startswith("- ") and "**" not in line]
    match = re.search(r"What the tests of run A, the last one \(.+\), show:", text)
    assert bool(match) == bool(told)
    held("results", match[0] if match else "")
    return told


def site(results: BenchResults | StudyResults, folder: Path) -> Page:
    write_site([results], folder / "site")
    return Page((folder / "site" / "index.html").read_text("utf-8"))


def within(check: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder))


# Benches.


def bench_headline_holds(plan: BenchPlan, read: Callable[[BenchResults, Path], list[str]]) -> None:
    """Each sentence about who leads follows from figures and tests that are worked out anew."""
    results, judged = random_bench(plan)
    truth = BenchTruth(results, judged)

    def check(folder: Path) -> None:
        for text in read(results, folder):
            match = re.fullmatch(r"Responses: (.+)\.", text, re.DOTALL)
            if match is not None:
                truth.headline(match[1])
                lead = re.match(r"(s\d) leads by|only (s\d) has a rank", match[1])
                assert lead is None or (lead[1] or lead[2]) in truth.complete, "a partial system leads nobody"
                held(read.__name__, text)

    within(check)


READERS = (of_bench, of_site, of_results)


@pytest.mark.parametrize("read", READERS)
@MANY
@given(plan=bench_plans())
def test_no_headline_contradicts_a_comparison_and_no_partial_system_leads(
    read: Callable[[BenchResults, Path], list[str]], plan: BenchPlan
) -> None:
    bench_headline_holds(plan, read)


def site_board_holds(plan: BenchPlan) -> None:
    """On a site, those with a rank stand first by their means; who left rows out stands apart below them."""
    results, judged = random_bench(plan)
    truth = BenchTruth(results, judged)

    def check(folder: Path) -> None:
        tables = [t for t in site(results, folder).root.all("table", "board") if "paper" not in t.classes][1:]
        for table in tables:
            board_holds(results, table)
            rows = [(row.all("bdi")[0].text, row.all("td")[0].text) for row in table.all("tbody")[0].all("tr")]
            ranked = [name for name, rank in rows if rank not in {"–", "apart"}]
            assert set(ranked) <= truth.complete
            assert [name for name, _ in rows[: len(ranked)]] == ranked
            assert {name for name, rank in rows if rank == "apart"} <= truth.partial
            means = [truth.sign * truth.mean[name] for name in ranked]
            assert means == sorted(means, reverse=True)

    within(check)


@MANY
@given(plan=bench_plans())
def test_on_a_site_nobody_who_left_rows_out_stands_among_the_ranked(plan: BenchPlan) -> None:
    site_board_holds(plan)


@MANY
@given(plan=bench_plans())
def test_the_page_of_a_bench_says_what_its_records_say(plan: BenchPlan) -> None:
    page_holds(random_bench(plan)[0])


# Studies.


StudyReading = tuple[list[str], dict[tuple[str, str], str], Page]  # sentences, what stands in each cell, and the page


def of_study(results: StudyResults, folder: Path) -> StudyReading:
    write_study(results, folder / "page.html")
    page = Page((folder / "page.html").read_text("utf-8"))
    table = page.root.all("table", "heat")[0]
    models = [node.text for node in table.all("thead")[0].all("th")][1:-1]
    cells = {}
    for row in table.all("tbody")[0].all("tr"):
        tag = row.all("th")[0].text.rpartition(" ")[2]
        cells |= {(model, tag): _shown(node) for model, node in zip(models, row.all("td", "cell"), strict=True)}
    return [node.text for node in page.root.all("ul", "findings")[0].all("li")], cells, page


def of_study_site(results: StudyResults, folder: Path) -> StudyReading:
    page = site(results, folder)
    board = page.root.all("section")[1]
    table = next(table for table in board.all("table") if "paper" not in table.classes)
    heads = [node.text for node in table.all("thead")[0].all("th")][3:]
    tag_of = {language_name(tag): tag for tag in results.languages}
    cells = {}
    for row in table.all("tbody")[0].all("tr"):
        nodes = row.all("td")[2:]
        cells |= {(row.all("bdi")[0].text, tag_of[name]): _shown(td) for name, td in zip(heads, nodes, strict=True)}
    lists = board.all("ul")
    sentences = [node.text for node in lists[0].all("li")] if lists and not lists[0].classes else []
    return sentences, cells, page


def _shown(node: Node) -> str:
    bold = node.all("b")
    return bold[0].text if bold else ""


def study_page_holds(plan: Plan) -> None:
    """Who leads has tests for it; a rate that stands as a number is reliable, and not disjoint from its labels."""

    def check(folder: Path) -> None:
        (folder / "run").mkdir()
        results, rows = random_study(plan, folder / "run")
        truth = StudyTruth(results, rows)
        study_reading_holds(truth, of_study(results, folder), "of_study")
        on_site = of_study_site(results, folder)
        study_reading_holds(truth, on_site, "of_study_site")
        study_board_holds(truth, on_site[2])

    within(check)


def study_reading_holds(truth: StudyTruth, reading: StudyReading, name: str) -> None:
    """What a page of a study says, as it was read."""
    sentences, cells, _ = reading
    for text in sentences:
        truth.holds(text)
        held(name, text)
    for (model, tag), text in cells.items():
        rate = truth.own.get((model, tag))
        labels = truth.by_labels(model, tag)
        assert bool(re.search(r"\d", text)) == ((model, tag) in truth.sound)
        assert (model, tag) not in truth.sound or close(text, truth.sound[model, tag].rate or 0.0)
        if text and rate is not None:
            assert labels is None or not disjoint(rate, labels), "a reliable rate that its own labels exclude"
    partial = {model for model in truth.models if model not in truth.candidates}
    assert not any(text.startswith(f"{model} ") for text in sentences for model in partial), "nothing of it is known"


def study_board_holds(truth: StudyTruth, page: Page) -> None:
    """The board of a study on a site: its order, its means and what they are over."""
    board = page.root.all("section")[1]
    text = " ".join(node.text for node in board.all("p"))
    match = re.search(r"Means and ranks are over the (\d+) languages? with a reliable rate of [\w ]+\.", text)
    assert bool(match) == bool(truth.shared and truth.unlike)
    if match is not None:
        assert int(match[1]) == len(truth.shared)
        held("site", match[0])
    match = re.search(
        r"Share of \w+ that .+?, detected by .+?, estimated by \S+, with 95% intervals\. Ranks .+?\.", text
    )
    assert match is not None
    assert f"detected by {', '.join(truth.results.detectors)}, estimated by {truth.results.estimator}," in match[0]
    overview = page.root.all("section")[0].all("tbody")[0].all("td")
    assert [td.text.split()[0] for td in overview[2:]] == [str(len(truth.models)), str(len(truth.results.languages))]
    held("site", match[0])
    table = next(table for table in board.all("table") if "paper" not in table.classes)
    rows = table.all("tbody")[0].all("tr")
    ranks = [truth.ranks.get(row.all("bdi")[0].text) for row in rows]
    assert all(first.rank <= second.rank for first, second in pairwise(rank for rank in ranks if rank is not None))
    assert [rank is None for rank in ranks] == sorted(rank is None for rank in ranks)
    counts = Counter((row.model, row.language) for row in truth.rows if row.judged)
    for row, rank in zip(rows, ranks, strict=True):
        name, (reach, mean, *cells) = row.all("bdi")[0].text, row.all("td")
        low_high = "–" if rank is None else f"{rank.low}–{rank.high}".replace(f"{rank.low}–{rank.low}", f"{rank.low}")
        assert reach.text == ("–" if rank is None else str(rank.low) if rank.low == rank.high else low_high)
        whole = bool(truth.shared) and all((name, tag) in truth.sound for tag in truth.shared)
        hint = mean.attrs.get("title") or ""
        assert (hint == "no mean over languages that all models have a rate in") == (not whole)
        if whole:
            assert hint.split()[:2] == ["over", str(len(truth.shared))]
            value = truth.mean({(name, tag) for tag in truth.shared})
            assert value is None or abs(float(mean.attrs["data-value"] or 0) - value) < 1e-9
        held("site", hint)
        for cell in cells:
            hint = cell.attrs.get("title") or ""
            match = re.match(r"(m\d), (\w+): (\d+) responses?, coverage ([\d.<>]+)%", hint)
            if match is not None:
                tag = truth.name[match[2]]
                assert int(match[3]) == counts[name, tag]
                ends, rate = cell.all("span", "interval"), truth.sound.get((name, tag))
                if ends and rate is not None:
                    shown = [float(end) for end in ends[0].text.strip("[]").split(", ")]
                    assert shown == pytest.approx([100 * (end or 0.0) for end in (rate.low, rate.high)], abs=0.0501)
                held("site", hint)


@MANY
@given(plan=plans())
def test_no_reliable_rate_is_disjoint_from_its_labels_and_no_model_leads_without_tests(plan: Plan) -> None:
    study_page_holds(plan)
