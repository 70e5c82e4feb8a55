"""The page of results: made of what is recorded, with nothing lost, and runs that keep their figures."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests" / "report")]
results = pytest.importorskip("results")
from bench_random import Plan, random_bench  # noqa: E402
from msgspec import structs  # noqa: E402

from veriglot.bench.results import BenchSystem  # noqa: E402
from veriglot.report.bench_findings import findings  # noqa: E402
from veriglot.report.bench_tables import View  # noqa: E402

if TYPE_CHECKING:
    from veriglot.bench.results import BenchResults

HISTORY = ROOT / "benchmarks"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("history.csv", "history.toml"):
        shutil.copy(HISTORY / name, tmp_path / name)
    return tmp_path


@pytest.fixture(scope="module")
def bench() -> BenchResults:
    made = random_bench(Plan(2, "mcc", (3.0, 0.5), (0, 0), (40,), (-1, -1)))[0]
    detector = BenchSystem("s0", "detector", "s0", signature="detector:s0@2.0|weights:1")
    return structs.replace(made, systems=(detector, made.systems[1]))


def test_the_page_is_what_is_recorded_and_short(shared_facts: Path) -> None:
    text = (HISTORY / "results.md").read_text("utf-8")
    assert text == results.page(HISTORY, shared_facts)
    assert len(text.split()) < 2000


def test_every_figure_of_a_detector_stands_on_the_page_with_its_interval(shared_facts: Path) -> None:
    text = results.page(HISTORY, shared_facts).replace("\\", "")
    rows = [row for row in results.figures(HISTORY) if row.language == "mean" and row.at == "tuned" and row.value]
    versions = [row for row in rows if re.search(r" \d", row.system)]
    assert len(versions) > 50
    for row in versions:
        shown = f"{results.number(float(row.value))}{'†' if row.seen else ''}"
        line = next(each for each in text.splitlines() if each.startswith(f"| {row.system} |") and f"{shown} [" in each)
        assert f"[{results.number(float(row.low))}, {results.number(float(row.high))}]" in line


def test_each_published_figure_states_how_its_protocol_differs(shared_facts: Path) -> None:
    history = tomllib.loads((HISTORY / "history.toml").read_text("utf-8"))
    text = results.page(HISTORY, shared_facts)
    for entry in history["published"]:
        told = " ".join(entry["differences"])
        for topic in ("Unit", "Texts", "Model", "Training", "Evidence", "Threshold", "Labels", "Intervals"):
            assert f"{topic}: " in told
        assert all(difference in text for difference in entry["differences"])


def test_a_run_is_added_once_and_takes_nothing_from_others(
    folder: Path, bench: BenchResults, shared_facts: Path
) -> None:
    before = results.figures(folder)
    for _ in range(2):
        results.record(bench, 'of "today"', folder)
    after = results.figures(folder)
    assert after[: len(before)] == before
    own = after[len(before) :]
    assert {(row.run, row.system) for row in own} == {('of "today"', "s0 2.0"), ('of "today"', "s1")}
    means = {figure.system: figure for figure in bench.figures if figure.language == "mean"}
    for row in own:
        assert float(row.value) == pytest.approx(means[row.system.split()[0]].value, abs=5e-5)
    runs = tomllib.loads((folder / "history.toml").read_text("utf-8"))["runs"]
    assert [run["name"] for run in runs].count('of "today"') == 1
    assert runs[-1]["findings"] == findings(View(bench))
    page = results.page(folder, shared_facts).replace("\\", "")
    assert f"- {findings(View(bench))[0]}" in page
    assert "| s0 2.0 |" in page


def test_a_part_of_the_bench_can_run() -> None:
    whole = tomllib.loads(results.bench_file(None, None))
    part = tomllib.loads(results.bench_file("reader,rouge-l", "wice,xsum"))
    assert part["bench"] == whole["bench"]
    assert [entry.get("detector") or entry["scorer"] for entry in part["systems"]] == ["reader", "rouge-l"]
    assert [entry["name"] for entry in part["data"]] == ["wice", "xsum"]
    assert len(whole["systems"]) == 14
