"""Confusion matrices of types in a bench's results, by data set, system and language."""

from __future__ import annotations

import csv
import json
from collections import Counter
from io import StringIO
from typing import TYPE_CHECKING

import msgspec
import pytest
from rich.console import Console
from sklearn.metrics import accuracy_score, recall_score
from small_bench import BENCH, loading, ran, samples, written

from veriglot.bench.config import load
from veriglot.bench.evaluation import grain_of_types, response_types, type_confusions
from veriglot.errors import UsageError
from veriglot.records import Annotation, Kind, Prediction, Sample, Span, Status
from veriglot.report.bench import bench_document, render_bench, write_bench
from veriglot.report.bench_tables import View

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.bench.results import BenchConfusion, BenchFigure, BenchResults

TEXT = "one two three"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("types")


@pytest.fixture(scope="module")
def results(place: Path) -> BenchResults:
    return ran(written(place), place / "run")


def test_every_detector_has_a_matrix_of_each_language_and_of_all(results: BenchResults) -> None:
    assert [(one.system, one.language) for one in results.confusions] == [
        ("absent", "all"), ("absent", "de"), ("absent", "en"),
    ]  # fmt: skip
    whole, *parts = results.confusions
    assert (whole.of, whole.taxonomy) == ("response", "fava")
    added = [
        [sum(cells) for cells in zip(*rows, strict=True)] for rows in zip(*(one.counts for one in parts), strict=True)
    ]
    assert added == [list(row) for row in whole.counts]
    assert sum(map(sum, whole.counts)) == sum(count for count, _ in results.data[0].languages.values())
    assert "cell:" in whole.signature


def test_counts_are_those_of_the_detector_itself(results: BenchResults, place: Path, tmp_path: Path) -> None:
    """Each test response against the type that most of its marked characters have, counted here once more."""
    whole = results.confusions[0]
    size = sum(count for count, _ in results.data[0].languages.values())
    answers = next((place / "run" / "cells").glob("animals-absent-*/answers.jsonl")).read_text("utf-8").splitlines()
    ids = {json.loads(line)["id"] for line in answers[:size]}
    rows = [row for row in samples() if row.id in ids]
    expected: Counter[tuple[str, str]] = Counter()
    for row, said in zip(
        rows, loading("absent_words:AbsentWords", threshold=None, words=True).predict(rows), strict=True
    ):
        mass: Counter[str | None] = Counter()
        for span in said.spans or ():
            mass[span.type] += span.end - span.start
        top = max(mass, key=lambda name: mass[name]) if mass else "none"
        expected["invented" if row.annotations[0].spans else "none", str(top)] += 1
    found = {
        (name, answer): count
        for name, row in zip(whole.classes, whole.counts, strict=True)
        for answer, count in zip(whole.answers, row, strict=True)
        if count
    }
    assert found == expected
    assert expected["invented", "invented"] > 5
    path = written(tmp_path, BENCH.replace('levels = ["word", "sentence", "response"]', 'levels = ["word"]'))
    assert ran(path, tmp_path / "run").confusions[0].counts == whole.counts  # the same at whatever level


def sample(name: str, taxonomy: str, *spans: Span, language: str = "en") -> Sample:
    gold = Annotation("gold", Kind.HUMAN, taxonomy, spans=spans)
    return Sample(id=name, response=TEXT, language=language, annotations=(gold,))


def prediction(name: str, *spans: Span) -> Prediction:
    return Prediction(name, Status.SCORED, "d@1", score=float(bool(spans)), spans=spans)


def confused(rows: list[Sample], *answers: Prediction, taxonomy: str | None = "fava") -> list[BenchConfusion]:
    return list(
        type_confusions(
            "system", "data", rows, answers, detector_taxonomy=taxonomy, annotator=None, seen=False, suffix="cell:0"
        )
    )


def test_responses_with_several_types_are_counted_by_mark() -> None:
    one, two = Span(0, 3, "entity"), Span(4, 7, "relation")
    assert grain_of_types([sample("a", "fava", one), sample("b", "fava")]) == "response"
    assert grain_of_types([sample("a", "fava", one, two)]) == "mark"
    assert grain_of_types([sample("a", "hat", Span(0, 3, "hallucination"))]) is None
    assert grain_of_types([sample("a", "fava")]) is None
    assert grain_of_types([Sample(id="a", response=TEXT)]) is None
    (found,) = confused([sample("a", "fava", one, two)], prediction("a", Span(0, 3, "entity")))
    assert found.of == "mark"
    table = {
        name: dict(zip(found.answers, row, strict=True)) for name, row in zip(found.classes, found.counts, strict=True)
    }
    assert table["entity"]["entity"] == table["relation"]["none"] == 1


def test_the_column_none_is_there_when_nothing_is_in_it() -> None:
    (found,) = confused([sample("a", "fava", Span(0, 3, "entity"))], prediction("a", Span(0, 3, "entity")))
    assert found.answers == (*found.classes, "none")
    failed = Prediction("a", Status.FAILED, "d@1", reason="it broke")
    (found,) = confused([sample("a", "fava", Span(0, 3, "entity"))], failed)
    assert found.answers == (*found.classes, "none", "no answer")


def test_where_no_mapping_leads_one_record_says_so() -> None:
    rows = [sample("a", "fava", Span(0, 3, "entity")), sample("b", "fava", Span(0, 3, "entity"), language="de")]
    answers = [prediction(row.id, Span(0, 3, "critical_error")) for row in rows]
    (found,) = confused(rows, *answers, taxonomy="critical")
    assert found.counts == ()
    assert "none of fava and critical maps to the other" in (found.reason or "")


def test_results_of_an_earlier_version_are_read_without_matrices(results: BenchResults) -> None:
    from veriglot.bench.results import BenchResults as Results
    from veriglot.records import from_mapping

    old = msgspec.to_builtins(results)
    del old["confusions"]
    assert from_mapping(old, Results).confusions == ()


WRONG = {  # language and type of a pair to how many there are, and how many of these each system calls something else
    ("en", "entity"): (20, 1, 6), ("en", "relation"): (8, 2, 2), ("en", "sentence"): (12, 6, 12),
    ("de", "entity"): (10, 0, 3), ("de", "relation"): (10, 1, 5), ("de", "sentence"): (5, 4, 5),
}  # fmt: skip


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BenchResults]:
    """HalluVerse pairs, all of them unsupported, with the answers of two judges and a scorer that names no types."""
    folder = tmp_path_factory.mktemp("pairs")
    lines, answers = ["id,language,original_sentence,edited_sentence,hallucination_type"], {"one": "", "two": ""}
    for (language, type_), (number, *wrong) in WRONG.items():
        for index in range(number):
            name = f"{language}-{type_}-{index}"
            text = f"Mill {name} burnt."
            lines.append(f"{name},{language},Mill {name} stood.,{text},{type_}")
            for system, errors in zip(answers, wrong, strict=True):
                other = "relation" if type_ == "entity" else "entity"
                span = Span(0, len(text), other if index < errors else type_)
                row = Prediction(name, Status.SCORED, f"{system}@1", score=1.0, spans=(span,), language=language)
                answers[system] += msgspec.json.encode(row).decode() + "\n"
    (folder / "pairs.csv").write_text("\n".join(lines) + "\n", "utf-8")
    text = '[bench]\nresamples = 40\n[[data]]\nname = "pairs"\npath = "pairs.csv"\n[[systems]]\nscorer = "rouge-l"\n'
    for system, rows in answers.items():
        (folder / f"{system}.jsonl").write_text(rows, "utf-8")
        text += f'[[systems]]\npredictions = "{system}.jsonl"\nlabel = "{system}"\n'
    (folder / "bench.toml").write_text(text.replace("resamples = 40", 'resamples = 40\nbaseline = "two"'), "utf-8")
    return folder, ran(folder / "bench.toml", folder / "run")


def type_figures(results: BenchResults, system: str, language: str) -> dict[str, BenchFigure]:
    return {
        figure.measure.partition(":")[2] or "all": figure
        for figure in results.figures
        if figure.measure.startswith("type_accuracy") and (figure.system, figure.language) == (system, language)
    }


def test_accuracies_are_those_of_scikit_learn_on_all_rows(pairs: tuple[Path, BenchResults]) -> None:
    _, results = pairs
    (data,) = results.data
    assert (data.dev, sum(count for count, _ in data.languages.values())) == (0, 65)
    assert "call all unsupported" in data.split
    for column, system in enumerate(("one", "two"), 1):
        for language in ("en", "de"):
            gold, answers = [], []
            for (tag, type_), row in WRONG.items():
                if tag == language:
                    other = "relation" if type_ == "entity" else "entity"
                    gold += [type_] * row[0]
                    answers += [other] * row[column] + [type_] * (row[0] - row[column])
            known = type_figures(results, system, language)
            assert known["all"].value == pytest.approx(accuracy_score(gold, answers))
            names = ["entity", "relation", "sentence"]
            recalls = recall_score(gold, answers, labels=names, average=None)
            assert [known[name].value for name in names] == pytest.approx(list(recalls))
            wrong = {name: known[name].items - known[name].positives for name in names}
            assert wrong == {name: WRONG[language, name][column] for name in names}
            assert known["all"].low is not None
    assert type_figures(results, "one", "mean")["all"].value == pytest.approx((31 / 40 + 20 / 25) / 2)


def test_systems_are_ranked_and_tested_by_how_often_they_name_the_type(pairs: tuple[Path, BenchResults]) -> None:
    folder, results = pairs
    assert results.ranking == {"response": "type_accuracy"}
    board = View(results).board("response")
    assert [row.system.name for row in board.rows][:2] == ["one", "two"]
    assert [row.rank for row in board.rows] == ["1", "2", ""]
    (scorer,) = [figure for figure in results.figures if figure.measure == "type_accuracy" and figure.reason]
    assert (scorer.system, scorer.value, scorer.reason) == ("rouge-l", None, "a scorer names no types")
    (against,) = [row for row in results.comparisons if row.system == "one"]
    assert against.difference == pytest.approx((31 / 40 + 20 / 25) / 2 - (20 / 40 + 12 / 25) / 2)
    assert (against.p or 1.0) < 0.1
    rows = {
        (row["system"], row["language"], row["type"]): row
        for row in csv.DictReader(StringIO(bench_document(results, "csv", table="type_accuracy")))
    }
    assert (rows["one", "en", "sentence"]["wrong"], rows["one", "en", "sentence"]["responses"]) == ("6", "12")
    assert (rows["two", "mean", "all"]["wrong"], rows["two", "mean", "all"]["responses"]) == ("33", "65")
    console = Console(record=True, width=200)
    render_bench(results, console)
    shown = console.export_text()
    for title in ("type_accuracy on pairs, by type", "one on pairs, types of responses (halluverse)"):
        assert title in shown
        assert title in bench_document(results, "markdown").replace("\\", "")
    write_bench(results, folder / "page.html")
    assert "one on pairs in German, types of responses (halluverse)" in (folder / "page.html").read_text("utf-8")


def test_a_data_file_of_pairs_is_judged_by_response_alone(pairs: tuple[Path, BenchResults]) -> None:
    folder, _ = pairs
    assert load(folder / "pairs.csv", systems=["grounding"]).data[0].levels == ("response",)


def test_other_benches_are_ranked_as_before(results: BenchResults) -> None:
    assert set(results.ranking.values()) == {results.rank_by} == {"mcc"}
    named = [figure for figure in results.figures if figure.measure == "type_accuracy"]
    assert {figure.system for figure in named if figure.value is not None} == {"absent"}


def test_a_detector_whose_types_do_not_lead_to_those_of_the_data_has_no_accuracy() -> None:
    rows = [sample("a", "fava", Span(0, 3, "entity"))]
    with pytest.raises(UsageError, match="does not tell the types of fava apart"):
        response_types(rows, [prediction("a", Span(0, 3, "contradicted"))], None, "support")
    types, right = response_types(rows, [prediction("a", Span(0, 3, "entity"))], None, "fava")
    assert (types.tolist(), right.tolist()) == (["entity"], [1.0])
