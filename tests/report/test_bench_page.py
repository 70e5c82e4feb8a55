"""The views of a bench: one safe page, and tables for papers, from results made by hand."""

from __future__ import annotations

import csv
import re
from io import StringIO
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from veriglot.bench.results import (
    BenchCell,
    BenchComparison,
    BenchConfusion,
    BenchCorrelations,
    BenchData,
    BenchFigure,
    BenchResults,
    BenchStanding,
    BenchSystem,
    BenchWin,
    Cost,
)
from veriglot.errors import UnknownNameError
from veriglot.report.bench import bench_document, write_bench
from veriglot.report.bench_tables import View, bench_tables
from veriglot.report.tables import write_csv

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "</script><img src=x onerror=alert(1)> & | _x_ \\"


def data(name: str, seen: tuple[str, ...] = ()) -> BenchData:
    return BenchData(
        name=name, levels=("response",), languages={"de": (30, 28), "th": (30, 30)}, pairs={}, dev=12, bad_rows=0,
        unlabelled=0, items={"response": 60}, nonfactual={"response": 20}, license=None, split="by hash", seen=seen,
        sha256="0" * 64, statistics={"character_rate": 0.25},
    )  # fmt: skip


def figure(system: str, name: str, value: float | None, **parts: Any) -> BenchFigure:
    known = {
        "system": system, "data": name, "level": "response", "language": "mean", "measure": "mcc", "at": "tuned",
        "value": value, "low": None if value is None else value - 0.1, "high": None if value is None else value + 0.1,
        "items": 60, "positives": 20, "clusters": 58, "coverage": 1.0,
    }  # fmt: skip
    return msgspec.convert({**known, **parts}, BenchFigure)


def win(system: str, wins: int) -> BenchWin:
    return BenchWin("response", "mcc", "tuned", "all", system, wins, 0, 4, 4, wins / 4, 0.5, low=0.0, high=1.0)


@pytest.fixture
def results() -> BenchResults:
    systems = ("good", "poor", HOSTILE)
    return BenchResults(
        title=HOSTILE,
        measures={"response": ("mcc", "auroc")},
        rank_by="mcc",
        baseline="good",
        seed=1,
        resamples=100,
        correction="holm",
        data=(data("clean"), data("held", seen=("poor",))),
        systems=(*(BenchSystem(one, "scorer", one, signature=f"scorer:{one}") for one in systems),
                 BenchSystem("gone", "detector", "hf:x", unavailable="There is no folder 'x'. Give one.")),
        cells=(*(BenchCell(one, "clean", "response", "done", coverage=1.0, cost=Cost(60, 2.0, 1.5)) for one in systems),
               BenchCell("gone", "clean", "response", "unavailable", "There is no folder 'x'. Give one.")),
        figures=(
            figure("good", "clean", 0.61), figure("good", "held", 0.3),
            figure("poor", "clean", -0.2), figure("poor", "held", 0.99, seen=True),
            figure(HOSTILE, "clean", None, reason="all alike"),
            figure("good", "clean", 0.6123, language="de"), figure("good", "clean", 0.6077, language="th"),
        ),
        thresholds=(),
        wins=(win("good", 3), win("poor", 1), win(HOSTILE, 0)),
        comparisons=(
            BenchComparison("clean", "response", "mcc", "tuned", "poor", "good", -0.81, 0.0004,
                            0.0008, 60, 58, (0, 0), "holm", low=-0.9, high=-0.7),
        ),
        correlations=(
            BenchCorrelations("response", "pearson", ("good", "poor"), ((1.0, -0.4), (-0.4, 1.0)), ((2, 2), (2, 2)),
                              ((None, 0.01), (0.01, None))),
        ),
        groups={"all": ("clean/de", "clean/th")},
        notes=(),
        signature="bench:0123|version:0",
        version="0",
        confusions=(
            BenchConfusion(system=HOSTILE, data="clean", language="all", of="mark", taxonomy="halluverse",
                           classes=("entity", "relation"), answers=("entity", "relation", "none", "other type"),
                           counts=((6, 1, 2, 0), (0, 0, 0, 0)), left_out=3, reason="types of fava are compared"),
            BenchConfusion(system=HOSTILE, data="clean", language="de", of="mark", taxonomy="halluverse",
                           classes=("entity", "relation"), answers=("entity", "relation", "none", "other type"),
                           counts=((6, 1, 2, 0), (0, 0, 0, 0))),
            BenchConfusion(system="good", data="clean", language="all", of="mark", reason="no way leads there"),
            BenchConfusion(system="poor", data="clean", language="all", of="mark", reason="no way leads there"),
        ),
    )  # fmt: skip


def test_no_mark_of_markdown_stands_on_the_page(results: BenchResults, tmp_path: Path) -> None:
    write_bench(results, tmp_path / "page.html")
    sections = re.findall(r"<section.*?</section>", (tmp_path / "page.html").read_text("utf-8"), re.DOTALL)
    assert "compared with themselves" in "".join(sections)
    assert "`" not in "".join(sections)


def test_the_greatest_mean_stands_first_and_seen_data_is_in_no_mean(results: BenchResults) -> None:
    rows = View(results).board("response").rows
    assert [row.system.name for row in rows] == ["good", "poor", HOSTILE]
    assert [row.mean for row in rows] == [0.61, -0.2, None]


def test_the_page_is_one_file_that_runs_nothing_of_the_data(results: BenchResults, tmp_path: Path) -> None:
    write_bench(results, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    assert "Content-Security-Policy" in text
    for shown in ("0.610", "0.990†", "−0.200", "[0.510, 0.710]", "There is no folder", "all alike", "&lt;img"):
        assert shown in text


def test_the_same_results_give_the_same_bytes(results: BenchResults, tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        write_bench(results, tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_markdown_has_every_part_and_every_row_as_many_cells(results: BenchResults) -> None:
    text = bench_document(results, "markdown")
    for heading in (
        "## Responses",
        "## Confusion of types",
        "## Against the baseline",
        "## Data",
        "## Cost and coverage",
        "## Not judged, and why",
    ):
        assert heading in text
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) > 6
    for lines in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert r"0.610 \[0.510, 0.710\]" in text
    assert "<img" not in re.sub(r"`[^`]*`", "", text).replace("\\<img", "")  # code shows markup as it is


def test_latex_sets_in_bold_what_the_tests_put_first_and_escapes(results: BenchResults) -> None:
    assert r"\textbf{0.610}" not in bench_document(results, "latex")  # without tests nothing is first
    ranks = (
        BenchStanding("response", "mcc", "tuned", "good", 0.61, 1, best=1, worst=1),
        BenchStanding("response", "mcc", "tuned", "poor", -0.2, 1, best=2, worst=2),
    )
    text = bench_document(msgspec.structs.replace(results, standings=ranks), "latex")
    assert r"\textbf{0.610}" in text
    assert r"$^\dagger$" in text
    assert r"\textbf{0.990}" not in text
    assert r"\toprule" in text
    for part in text.split(r"\toprule")[1:]:
        rows = [line for line in part.splitlines() if line.endswith(r"\\")]
        assert len({len(re.findall(r"(?<!\\)&", line)) for line in rows}) == 1


def test_csv_has_full_precision_and_nothing_for_what_is_undefined(results: BenchResults) -> None:
    rows = list(csv.DictReader(StringIO(bench_document(results, "csv", table="figures"))))
    assert float(next(row for row in rows if row["language"] == "de")["value"]) == 0.6123
    assert next(row for row in rows if row["reason"] == "all alike")["value"] == ""


def test_types_are_a_grid_of_heat_with_the_right_ones_outlined(results: BenchResults, tmp_path: Path) -> None:
    write_bench(results, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    section = text[text.index('id="types"') : text.index('id="correlations"')]
    assert section.count("<table") == 3  # all languages together, each language, and what is not compared
    cells = re.findall(r'<td class="(heat-cell heat-\d[^"]*)"[^>]*><b>(\d+)</b>', section)
    assert cells[:4] == [("heat-cell heat-6 right", "6"), ("heat-cell heat-1", "1"), ("heat-cell heat-2", "2"),
                         ("heat-cell heat-0", "0")]  # fmt: skip
    assert "6 of 9 have the right type (66.7%), 3 left out, not being of exactly one type; types of fava" in section
    assert '<th scope="row">good, poor</th>' in section


def test_types_in_text_and_rows(results: BenchResults) -> None:
    text = bench_document(results, "markdown")
    assert "| entity | 6 (67%) | 1 (11%) | 2 (22%) | 0 (0%) | 9 |" in text
    assert "| relation | – | – | – | – | 0 |" in text
    assert "| good, poor | clean | no way leads there |" in text
    rows = list(csv.DictReader(StringIO(bench_document(results, "csv", table="type_confusions"))))
    assert len(rows) == 8 + 8 + 2
    assert (rows[2]["type"], rows[2]["answer"], rows[2]["count"], rows[2]["language"]) == ("entity", "none", "2", "all")
    assert rows[4]["share"] == ""
    assert rows[-1]["count"] == ""
    without = msgspec.structs.replace(results, confusions=())
    assert "Confusion of types" not in bench_document(without, "markdown")


def test_tables_are_written_by_name(results: BenchResults, tmp_path: Path) -> None:
    written = {path.stem for path in write_csv(bench_tables(results), tmp_path / "tables")}
    assert written >= {"leaderboard_response", "wins", "comparisons", "correlations", "cells", "data", "systems"}
    assert "thresholds" not in written


def test_unknown_names_are_refused(results: BenchResults) -> None:
    with pytest.raises(UnknownNameError, match="leaderboard"):
        bench_document(results, "doc")
    with pytest.raises(UnknownNameError, match="table of this bench"):
        bench_document(results, "csv", table="figure")


def test_what_chance_gives_stands_below_the_systems(results: BenchResults) -> None:
    name = results.data[0].name
    ranked = [
        figure("good", name, 0.8, measure="auc_pr_nonfactual", at=None, chance=0.3, items=60),
        figure("poor", name, 0.4, measure="auc_pr_nonfactual", at=None, chance=0.5, items=20, coverage=0.3),
    ]
    measured = msgspec.structs.replace(
        results, measures={"response": ("mcc", "auc_pr_nonfactual")}, figures=(*results.figures, *ranked)
    )
    page = bench_document(measured, "markdown")
    assert "| chance | – | 0.300 |" in page, "of the system that scored most items"
    assert "chance" not in bench_document(results, "markdown").split("tuned on dev:")[1].split("\n\n")[1]
