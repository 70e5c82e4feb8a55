"""A bench over data without labels: what can be had is there, and there is no ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from small_bench import BENCH, Listener, ran, samples, written

from json_lines import write_lines
from veriglot.bench.leaderboard import correlation_matrix
from veriglot.bench.results import read_results
from veriglot.cli import main
from veriglot.cli.bench import render
from veriglot.report.bench import bench_document
from veriglot.report.bench_tables import View

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.bench.results import BenchAnswers, BenchResults


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> tuple[BenchResults, Listener, Path]:
    folder = tmp_path_factory.mktemp("bare")
    listener = Listener()
    rows = [msgspec.structs.replace(row, annotations=()) for row in samples()]
    text = BENCH.replace('label = "absent"', 'label = "absent"\nthreshold = 0.7')
    return ran(written(folder, text, rows), folder / "run", listener), listener, folder / "run"


def of(results: BenchResults, system: str, level: str, language: str) -> BenchAnswers:
    (found,) = (
        one for one in results.answers if (one.system, one.level, one.language) == (system, level, language)
    )  # fmt: skip
    return found


def test_nothing_is_measured_tuned_or_ranked(bare: tuple[BenchResults, Listener, Path]) -> None:
    results, listener, _ = bare
    assert not any((results.figures, results.thresholds, results.wins, results.comparisons, results.confusions))
    (data,) = results.data
    assert (data.labelled, data.nonfactual, data.statistics, data.dev, data.unlabelled) == (False, {}, {}, 0, 40)
    assert any("animals has no labels" in said for said in listener.said)
    assert View(results).levels == ()


def test_shares_and_means_are_those_of_the_answers(bare: tuple[BenchResults, Listener, Path]) -> None:
    results, *_ = bare
    marked = of(results, "absent", "response", "en")
    assert (marked.flagged, marked.items, marked.coverage) == (0.5, 20, 1.0), (
        "every second answer has a foreign sentence"
    )
    assert marked.flagged_low is not None
    assert marked.flagged_high is not None
    assert 0.2 < marked.flagged_low < 0.5 < marked.flagged_high < 0.8
    overlap = of(results, "rouge-l", "response", "mean")
    both = [of(results, "rouge-l", "response", tag) for tag in ("de", "en")]
    assert overlap.mean == pytest.approx(np.mean([one.mean for one in both]))
    assert 0.0 < (overlap.mean or 0.0) < 1.0, "in its own direction: more is better"
    assert of(results, "top-ngram", "response", "en").flagged is None, "it has no threshold"
    assert {one.level for one in results.answers if one.system == "absent"} == {"word", "sentence", "response"}


def test_agreement_cost_and_statuses_are_there(bare: tuple[BenchResults, Listener, Path]) -> None:
    results, *_ = bare
    found = {(one.level, one.method): one for one in results.correlations}
    assert found["response", "kappa"].systems == ("absent", "rouge-l")
    assert found["response", "kappa"].r[0][1] == pytest.approx(1.0), "both mark the answers with a foreign sentence"
    assert set(found["response", "spearman"].systems) == {"absent", "rouge-l", "top-ngram"}
    statuses = {(cell.system, cell.level): cell.status for cell in results.cells}
    assert statuses["absent", "word"] == "done"
    assert statuses["missing", "word"] == "unavailable"
    assert next(cell for cell in results.cells if cell.system == "absent").cost.rows == 40


def test_the_views_call_it_no_leaderboard(
    bare: tuple[BenchResults, Listener, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    results, _, folder = bare
    render(results, folder)
    assert read_results(folder / "results.json") == results
    assert main(["report", str(folder)]) == 0
    assert not any(folder.glob("leaderboard*"))
    page = (folder / "answers.html").read_text("utf-8")
    for text in (capsys.readouterr().out, bench_document(results, "markdown"), page):
        assert "Without labels, and so without a ranking: animals." in text
        assert "what systems say, without labels" in text
        assert "leads" not in text
        assert "tuned on dev" not in text
    assert "nothing to rank" in bench_document(results, "latex")
    assert bench_document(results, "csv", table="answers").startswith("system,data,level,language")


def test_labelled_data_beside_it_is_ranked_as_ever(tmp_path: Path) -> None:
    text = (
        written(tmp_path).read_text("utf-8")
        + '\n[[data]]\nname = "wild"\npath = "wild.jsonl"\nlevels = ["word", "response"]\n'
    )
    rows = [msgspec.structs.replace(row, id=f"wild-{row.id}", annotations=()) for row in samples(("de",))]
    write_lines(tmp_path / "wild.jsonl", rows)
    alone = ran(written(tmp_path), tmp_path / "alone")
    results = ran(written(tmp_path, text), tmp_path / "both")
    assert results.figures == alone.figures
    assert results.wins == alone.wins
    assert {one.data for one in results.answers} == {"wild"}
    assert View(results).data("word") == View(alone).data("word")


def test_kappa_is_cohens() -> None:
    one, two = np.array([1.0, 1, 0, 0, 1, np.nan]), np.array([1.0, 0, 0, 0, 1, 1])
    found = correlation_matrix({"x/en": {"a": one, "b": two}}, method="kappa")
    assert found is not None
    assert found.r[0][1] == pytest.approx((0.8 - 0.48) / (1 - 0.48))
    assert found.largest_p[0][1] is None
