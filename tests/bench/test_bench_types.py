"""Confusion matrices of types in a bench's results, by data set, system and language."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest
from small_bench import BENCH, loading, ran, samples, written

from veriglot.bench.evaluation import grain_of_types, type_confusions
from veriglot.records import Annotation, Kind, Prediction, Sample, Span, Status

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.bench.results import BenchConfusion, BenchResults

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
    assert "none of fava and critical leads to the other" in (found.reason or "")


def test_results_of_an_earlier_version_are_read_without_matrices(results: BenchResults) -> None:
    from veriglot.bench.results import BenchResults as Results
    from veriglot.records import from_mapping

    old = msgspec.to_builtins(results)
    del old["confusions"]
    assert from_mapping(old, Results).confusions == ()
