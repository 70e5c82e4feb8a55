"""A bench from its file to its results: what is judged, what is kept, what is said of what could not be judged."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from absent_words import AbsentWords
from sklearn.metrics import f1_score, matthews_corrcoef, roc_auc_score
from small_bench import BENCH, Listener, ran, samples, written

from veriglot.bench.results import BenchResults, read_results
from veriglot.errors import InputError
from veriglot.metrics.estimate import MEAN
from veriglot.records import Sample, Span
from veriglot.scorers.registry import load_scorer

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def results(place: Path) -> BenchResults:
    return ran(written(place), place / "run")


def test_every_system_has_a_cell_at_every_level(results: BenchResults) -> None:
    found = {(one.system, one.level): one.status for one in results.cells}
    assert found == {
        (system, level): status
        for system, by_level in {
            "absent": ("done", "done", "done"),
            "rouge-l": ("unsuited", "done", "done"),
            "top-ngram": ("unsuited", "done", "done"),
            "missing": ("unavailable",) * 3,
        }.items()
        for level, status in zip(("word", "sentence", "response"), by_level, strict=True)
    }


def test_what_is_unavailable_says_what_to_do_and_has_no_figure(results: BenchResults) -> None:
    cell = next(one for one in results.cells if one.system == "missing")
    assert "no-such-folder" in (cell.reason or "")
    assert cell.coverage == 0.0
    assert not any(figure.system == "missing" for figure in results.figures)


def test_what_is_written_is_what_was_returned(place: Path, results: BenchResults) -> None:
    assert read_results(place / "run" / "results.json") == results


def figure(results: BenchResults, system: str, level: str, measure: str, at: str | None, language: str = MEAN) -> float:
    found = [
        one.value
        for one in results.figures
        if (one.system, one.level, one.measure, one.at, one.language) == (system, level, measure, at, language)
    ]
    assert len(found) == 1
    assert found[0] is not None
    return found[0]


def test_figures_are_those_of_an_independent_count(results: BenchResults, place: Path) -> None:
    """Responses of one language: own threshold and ranking, by scikit-learn from the scorer itself."""
    split = json.loads((place / "run" / "results.json").read_bytes())["data"][0]
    kept = {
        json.loads(line)["id"]
        for path in (place / "run" / "cells").glob("animals-rouge-l-*/answers.jsonl")
        for line in path.read_text("utf-8").splitlines()[: sum(count for count, _ in split["languages"].values())]
        if "#" not in json.loads(line)["id"]
    }
    rows = [row for row in samples(("en",)) if row.id in kept]
    assert 5 < len(rows) < 20
    scores = [one.value or 0.0 for one in load_scorer("rouge-l").score(rows)]
    truth = [bool(row.annotations[0].spans) for row in rows]
    marked = [score <= 0.7 for score in scores]
    assert figure(results, "rouge-l", "response", "f1", "own", "en") == pytest.approx(f1_score(truth, marked))
    assert figure(results, "rouge-l", "response", "mcc", "own", "en") == pytest.approx(matthews_corrcoef(truth, marked))
    assert figure(results, "rouge-l", "response", "auroc", None, "en") == pytest.approx(
        roc_auc_score(truth, [-score for score in scores])
    )


def test_the_mean_is_over_languages(results: BenchResults) -> None:
    parts = [figure(results, "absent", "word", "f1", "own", tag) for tag in ("de", "en")]
    assert figure(results, "absent", "word", "f1", "own") == pytest.approx(np.mean(parts))


def test_words_are_measured_as_evaluate_measures_them(results: BenchResults, place: Path) -> None:
    from veriglot.bench.evaluation import evaluate

    config_test = results.data[0]
    assert config_test.levels == ("word", "sentence", "response")
    judged = [
        json.loads(line)["id"]
        for line in next((place / "run" / "cells").glob("animals-absent-*/answers.jsonl")).read_text().splitlines()
    ][: sum(count for count, _ in config_test.languages.values())]
    by_id = {row.id: row for row in samples()}
    found = evaluate([by_id[id_] for id_ in judged], AbsentWords(), resamples=0)
    for measure in ("f1", "precision", "recall", "mcc"):
        assert figure(results, "absent", "word", measure, "own", "en") == pytest.approx(
            found.figure("unit", measure, "en").value
        )
    assert figure(results, "absent", "word", "iou", "own") == pytest.approx(found.figure("char", "iou", "mean").value)


def test_thresholds_are_tuned_on_dev_samples_only(results: BenchResults, place: Path, tmp_path: Path) -> None:
    tested = sum(count for count, _ in results.data[0].languages.values())
    answers = next((place / "run" / "cells").glob("animals-absent-*/answers.jsonl")).read_text("utf-8").splitlines()
    test_ids = {json.loads(line)["id"] for line in answers[:tested]}
    assert len(test_ids) == 40 - results.data[0].dev < 40
    flipped = [_flipped(row) if row.id in test_ids else row for row in samples()]
    found = ran(written(tmp_path, rows=flipped), tmp_path / "run")
    assert found.thresholds == results.thresholds
    assert found.figures != results.figures


def _flipped(row: Sample) -> Sample:
    """The same sample with other labels: clean where it was marked, and all of it marked where it was clean."""
    old = row.annotations[0]
    spans = () if old.spans else (Span(0, len(row.response), "invented"),)
    return msgspec.structs.replace(row, annotations=(msgspec.structs.replace(old, spans=spans),))


def test_several_processes_give_the_same_figures(results: BenchResults, tmp_path: Path) -> None:
    assert ran(written(tmp_path), tmp_path / "run", jobs=2, batch_size=3).figures == results.figures


def test_wins_count_languages_and_credit_ties(results: BenchResults) -> None:
    found = [one for one in results.wins if (one.level, one.measure, one.scope) == ("response", "mcc", "all")]
    assert {one.cells for one in found} == {2}
    assert sum(one.wins for one in found) == 2 + sum(one.ties for one in found) / 2


def test_comparisons_are_with_the_baseline_and_corrected(results: BenchResults) -> None:
    found = [one for one in results.comparisons if one.level == "response"]
    assert {one.baseline for one in found} == {"absent"}
    assert all(one.adjusted is None or one.p is None or one.adjusted >= one.p for one in found)


def test_a_second_call_judges_nothing_and_gives_the_same(place: Path, results: BenchResults) -> None:
    before = (place / "run" / "results.json").read_bytes()
    progress = Listener()
    assert ran(place / "bench.toml", place / "run", progress) == results
    assert progress.rows == 0
    assert (place / "run" / "results.json").read_bytes() == before


def test_another_seed_or_measure_judges_nothing_anew(place: Path, results: BenchResults) -> None:
    progress = Listener()
    text = BENCH.replace("resamples = 60", 'resamples = 40\nseed = 9\nmeasures = ["auroc"]\nrank_by = "auroc"')
    other = place / "other.toml"
    other.write_text(text, "utf-8")
    found = ran(other, place / "run", progress)
    assert progress.rows == 0
    assert found.measures["response"] == ("auroc",)
    assert found.signature != results.signature


def test_an_interrupted_bench_goes_on_where_it_stopped(tmp_path: Path, results: BenchResults) -> None:
    path, folder = written(tmp_path), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        ran(path, folder, Listener(stop_after=57), batch_size=5)
    progress = Listener()
    found = ran(path, folder, progress, batch_size=5)
    whole = Listener()
    ran(path, tmp_path / "whole", whole)
    assert progress.rows == whole.rows - 57
    timeless = [msgspec.structs.replace(one, cost=None) for one in found.cells]
    assert timeless == [msgspec.structs.replace(one, cost=None) for one in results.cells]
    assert found.figures == results.figures


def test_changed_data_is_judged_anew_and_the_rest_is_kept(tmp_path: Path) -> None:
    path, folder = written(tmp_path), tmp_path / "run"
    ran(path, folder)
    written(tmp_path, rows=[msgspec.structs.replace(row, response=row.response + " Yes.") for row in samples()])
    progress = Listener()
    ran(path, folder, progress)
    assert progress.rows > 0
    written(tmp_path)
    again = Listener()
    ran(path, folder, again)
    assert again.rows == 0


def test_languages_that_a_system_does_not_read_are_coverage_and_no_zero(tmp_path: Path) -> None:
    rows = [
        *samples(("en",)),
        *(msgspec.structs.replace(row, id=f"x{row.id}", language="xx") for row in samples(("de",))),
    ]
    found = ran(written(tmp_path, rows=rows), tmp_path / "run")
    cell = next(one for one in found.cells if (one.system, one.level) == ("absent", "response"))
    assert cell.status == "partial"
    assert set(cell.statuses["xx"]) == {"unsupported_language"}
    assert 0.0 < cell.coverage < 1.0
    values = [one.value for one in found.figures if one.system == "absent" and one.language == "xx"]
    assert values
    assert not any(value is not None for value in values)


def test_texts_that_name_nothing_are_coverage_and_no_failure(tmp_path: Path) -> None:
    rows = [
        *samples(),
        *(
            msgspec.structs.replace(one, id=f"few-{one.id}", response=re.sub(r"\d", "x", one.response))
            for one in samples()
        ),
    ]
    text = BENCH.replace('"top-ngram"', '"number-agreement"')
    found = ran(written(tmp_path, text, rows), tmp_path / "run")
    for level in ("response", "sentence"):
        cell = next(one for one in found.cells if (one.system, one.level) == ("number-agreement", level))
        assert cell.status == "partial"
        assert all(set(counts) == {"scored", "nothing_to_compare"} for counts in cell.statuses.values())
        assert "no number in the response" in (cell.reason or "")
    silent = ran(written(tmp_path, text, [one for one in rows if one.id.startswith("few")]), tmp_path / "run")
    cell = next(one for one in silent.cells if (one.system, one.level) == ("number-agreement", "response"))
    assert (cell.status, cell.coverage) == ("unscored", 0.0)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ('languages = ["sw"]', "in any of the languages sw.*Its languages are de, en"),
        ('annotator = "me"', "no sample has labels of 'me'.*Its annotators are gold"),
    ],
)
def test_data_that_nothing_is_left_of_says_what_there_is(tmp_path: Path, setting: str, said: str) -> None:
    path = written(tmp_path, f"{BENCH}{setting}\n")
    with pytest.raises(InputError) as error:
        ran(path, tmp_path / "run")
    assert re.search(said, f"{error.value} {error.value.remedy}", re.DOTALL)


def test_data_that_a_system_was_trained_on_is_marked_and_wins_nothing(tmp_path: Path) -> None:
    text = BENCH.replace("dev_share = 0.4", 'dev_share = 0.4\nseen = ["absent"]')
    found = ran(written(tmp_path, text), tmp_path / "run")
    assert all(one.seen == (one.system == "absent") for one in found.figures)
    assert not any(one.cells for one in found.wins)


def test_thresholds_can_be_tuned_in_each_language(tmp_path: Path, results: BenchResults) -> None:
    text = BENCH.replace("resamples = 60", 'resamples = 60\nthresholds = "language"')
    found = ran(written(tmp_path, text), tmp_path / "run")
    assert {one.language for one in found.thresholds} == {"de", "en"}
    both = {(one.system, one.level, one.measure): one.items for one in results.thresholds}
    for key, items in both.items():
        parts = [one.items for one in found.thresholds if (one.system, one.level, one.measure) == key]
        assert sum(parts) == items


def test_levels_stand_in_one_order_whatever_data_comes_first(tmp_path: Path) -> None:
    one = '[[data]]\nname = "first"\npath = "animals.jsonl"\nlevels = ["response"]\n\n[[data]]\nname = "animals"'
    found = ran(written(tmp_path, BENCH.replace('[[data]]\nname = "animals"', one)), tmp_path / "run")
    assert list(found.measures) == ["word", "sentence", "response"]
    assert {data.name: data.levels for data in found.data}["first"] == ("response",)
