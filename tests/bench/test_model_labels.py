"""What a detector marked is no reference by itself: not in a bench that does not name it, and never for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from absent_words import AbsentWords
from small_bench import BENCH, Listener, ran, samples, written

from veriglot.bench.config import load
from veriglot.bench.data import DataSet, has_labels
from veriglot.bench.evaluation import evaluate
from veriglot.bench.items import same_maker
from veriglot.bench.predictions import PredictedLabels, Predictions
from veriglot.errors import InputError
from veriglot.records import Annotation, Kind
from veriglot.report.bench import bench_document

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.bench.results import BenchResults
    from veriglot.records import Sample

NAMED = BENCH + 'annotator = "absent-words@1"\n'


def marked(name: str | None = None) -> list[Sample]:
    """The answers as `convert --predictions` gives them: with the marks of a detector, and nobody else's."""
    bare = [msgspec.structs.replace(row, annotations=()) for row in samples()]
    labels = PredictedLabels.of(
        Predictions({row.id: row for row in AbsentWords().predict(bare)}), annotator=name, taxonomy="fava"
    )
    return [labels.put_into(row) for row in bare]


def statuses(results: BenchResults) -> dict[str, str]:
    return {one.system: one.status for one in results.cells if one.level == "response"}


def test_marks_of_a_model_are_no_labels_by_default(tmp_path: Path) -> None:
    progress = Listener()
    results = ran(written(tmp_path, BENCH, marked()), tmp_path / "run", progress)
    assert not any((results.figures, results.wins, results.comparisons))
    (data,) = results.data
    assert (data.labelled, data.unlabelled) == (False, 40)
    told = "animals: annotations by models (absent-words@1) do not count as labels of samples that no person labelled"
    assert any(told in said for said in progress.said)
    assert told in bench_document(results, "markdown")


def test_named_they_are_labels_loudly_and_not_for_their_maker(tmp_path: Path) -> None:
    progress = Listener()
    results = ran(written(tmp_path, NAMED, marked()), tmp_path / "run", progress)
    assert {one.system for one in results.figures} == {"rouge-l", "top-ngram"}
    assert statuses(results)["absent"] == "unsuited"
    page = bench_document(results, "markdown")
    assert "absent is not judged on animals: the labels are its own marks" in page
    assert "LABELS BY A MODEL: absent-words@1" in page
    assert "its labels were made by a model, absent-words@1, not by people" in page
    assert any("its labels were made by a model" in said for said in progress.said)


def test_a_maker_under_another_name_is_known_by_what_it_stated(tmp_path: Path) -> None:
    text = BENCH + 'annotator = "silver"\n'
    assert statuses(ran(written(tmp_path, text, marked("silver")), tmp_path / "run"))["absent"] == "unsuited"


def test_predictions_made_elsewhere_are_not_held_against_themselves(tmp_path: Path) -> None:
    (tmp_path / "kept.jsonl").write_bytes(
        b"".join(msgspec.json.encode(one) + b"\n" for one in AbsentWords(words=True).predict(samples()))
    )
    text = NAMED.replace('scorer = "top-ngram"', 'predictions = "kept.jsonl"\nlabel = "kept"')
    assert statuses(ran(written(tmp_path, text, marked("absent-words@1")), tmp_path / "run"))["kept"] == "unsuited"


def test_published_silver_of_another_model_is_ground_for_all(tmp_path: Path) -> None:
    silver = [
        msgspec.structs.replace(
            row, annotations=(msgspec.structs.replace(row.annotations[0], annotator="silver", kind=Kind.MODEL),)
        )
        for row in samples()
    ]
    results = ran(written(tmp_path, BENCH + 'annotator = "silver"\nnote = "ours"\n', silver), tmp_path / "run")
    assert statuses(results)["absent"] == "done"
    assert results.data[0].note == "LABELS BY A MODEL: silver; ours"


def test_people_count_beside_models_and_models_alone_do_not(tmp_path: Path) -> None:
    mixed = [*samples(("en",)), *(row for row in marked() if row.language == "de")]
    path = written(tmp_path, BENCH, mixed)
    config = load(path)
    found = DataSet.read(config.data[0], config)
    assert {one.language for one in found.samples} == {"en"}
    assert (found.unlabelled, found.unnamed_models, found.makers) == (20, ("absent-words@1",), frozenset())
    several = msgspec.structs.replace(
        mixed[-1], annotations=tuple(Annotation(name, Kind.MODEL, "fava", spans=()) for name in ("a", "b"))
    )
    assert not has_labels(several, None)
    assert not has_labels(several, "majority")
    config = load(written(tmp_path, BENCH + 'annotator = "majority"\n', marked()))
    with pytest.raises(InputError, match="no sample has labels of 'majority'"):
        DataSet.read(config.data[0], config)


@pytest.mark.parametrize(
    ("maker", "name", "same"),
    [
        ("grounding@1.0", "grounding@1.1", True),
        ("grounding@1.0", "grounding", True),
        ("judge:spans@1+one", "judge:spans@1+two", False),
        ("judge:spans@1+one", "judge:spans", False),
        ("hf:mine@0a1b2c", "hf:mine@ffeedd", False),
    ],
)
def test_a_later_revision_is_the_same_maker_and_another_model_is_not(maker: str, name: str, same: bool) -> None:
    assert same_maker({maker}, {name, None}) is same


def test_evaluate_tells_whose_labels_it_holds_against() -> None:
    (whose, own, *_) = evaluate(marked(), AbsentWords(), resamples=0).notes
    assert "labels by a model, not by people: absent-words@1" in whose
    assert own == "40 samples are compared with the detector's own marks: their figures mean nothing"
    assert not any("model" in note or "own marks" in note for note in evaluate(samples(), AbsentWords()).notes)
