"""Tuned or not: why nothing could be, in every view; verdicts that need no threshold; the errors at thresholds."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import msgspec
import pytest
from rich.console import Console
from small_bench import BENCH, ran, samples, written

from json_lines import write_lines
from veriglot.bench.config import load
from veriglot.bench.data import DataSet
from veriglot.records import Prediction, Sample, Span, Status
from veriglot.report.bench import bench_document, render_bench, write_bench

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.bench.results import BenchError, BenchResults

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


def _mislabelled() -> list[Sample]:
    """The samples, every fifth with the label of the other kind, which every system gets wrong."""
    return [
        msgspec.structs.replace(
            row,
            annotations=(
                msgspec.structs.replace(row.annotations[0], spans=() if row.annotations[0].spans else (Span(0, 3),)),
            ),
        )
        if number % 5 == 0
        else row
        for number, row in enumerate(samples())
    ]


def test_errors_are_as_many_as_the_figures_say_and_the_surest_come_first(tmp_path: Path) -> None:
    text = BENCH.replace("resamples = 60", 'resamples = 0\nrank_by = "f1"')
    results = ran(written(tmp_path, text, _mislabelled()), tmp_path / "out")
    figures = {(f.system, f.level, f.language, f.measure): f for f in results.figures if f.at == "tuned"}
    groups: dict[tuple[str, str, str], dict[str, list[BenchError]]] = {}
    for error in results.errors:
        kinds = groups.setdefault((error.system, error.level, error.language), {})
        kinds.setdefault(error.kind, []).append(error)
    assert {system for system, _, _ in groups} == {"absent", "rouge-l", "top-ngram"}
    for (system, level, language), kinds in groups.items():
        recall, precision = (figures[system, level, language, name] for name in ("recall", "precision"))
        alarms, misses = (kinds.get(kind, []) for kind in ("false_positive", "false_negative"))
        hits = recall.positives - len(misses)
        assert recall.value == pytest.approx(hits / recall.positives)
        marked = hits + len(alarms)
        assert precision.value == (pytest.approx(hits / marked) if marked else None)
        for errors in (alarms, misses):
            assert [(each.number, each.count) for each in errors] == [(n + 1, len(errors)) for n in range(len(errors))]


def test_an_error_has_its_texts_the_score_and_the_threshold(tmp_path: Path) -> None:
    text = BENCH.replace("resamples = 60", 'resamples = 0\nrank_by = "f1"\nerrors = 1')
    results = ran(written(tmp_path, text, _mislabelled()), tmp_path / "out")
    assert {error.number for error in results.errors} == {1}
    by_id = {row.id: row for row in _mislabelled()}
    thresholds = {(t.system, t.level): t.value for t in results.thresholds if t.measure == "f1"}
    for error in results.errors:
        row = by_id[error.id]
        assert error.source == row.evidence_text
        assert error.response in row.response
        assert error.threshold == thresholds[error.system, error.level]
        assert error.threshold is not None
        above = error.score >= error.threshold
        assert above == ((error.kind == "false_positive") == (error.system != "rouge-l"))
        assert bool(error.labelled) == (error.kind == "false_negative")
    (tmp_path / "none").mkdir()
    assert not ran(written(tmp_path / "none", text.replace("errors = 1", "errors = 0")), tmp_path / "none/out").errors


def test_verdicts_alone_count_as_they_are_and_no_threshold_is_tuned(tmp_path: Path) -> None:
    """Tuned, a judge that says the contrary of every label would be best by marking everything."""
    rows = samples()
    predictions = [
        Prediction(
            row.id, Status.SCORED, "contrary", language=row.language, score=0.0 if marks else 1.0,
            spans=() if marks else (Span(0, 3),), notes=("confidence:verdict",),
        )
        for row in rows
        for marks in [row.annotations[0].spans]
    ]  # fmt: skip
    write_lines(tmp_path / "contrary.jsonl", predictions)
    text = (
        '[bench]\nresamples = 0\nrank_by = "f1"\n[[systems]]\npredictions = "contrary.jsonl"\nlabel = "contrary"\n'
        '[[data]]\nname = "animals"\npath = "animals.jsonl"\ndev_share = 0.4\n'
    )
    results = ran(written(tmp_path, text), tmp_path / "out")
    values = {f.measure: f.value for f in results.figures if (f.at, f.language) == ("tuned", "en")}
    assert (values["recall"], values["precision"], values["mcc"]) == (0.0, 0.0, pytest.approx(-1.0))
    assert {(t.value, t.reached, t.reason) for t in results.thresholds} == {
        (0.5, None, "the system gives only verdicts, which count as they are")
    }
    (data,) = results.data
    assert {error.threshold for error in results.errors} == {None}
    assert sum(error.count for error in results.errors if error.number == 1) == data.items["response"]
