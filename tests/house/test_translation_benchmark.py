"""The benchmark of translations: its figures against independent ones, and a whole run over small files of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from veriglot.metrics.scores import f1, mcc
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task, Unit

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SEEDS = range(20)


@pytest.fixture
def thresholds(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("thresholds")


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("translation_data")


def drawn(seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    generator = np.random.default_rng(seed)
    wrong = generator.random(60) < 0.3
    scores: NDArray[np.float64] = generator.integers(0, 10, 60) + 3.0 * wrong  # whole numbers, so that scores tie
    return scores, wrong


@pytest.mark.parametrize("seed", SEEDS)
def test_average_precision_is_the_usual_one(thresholds: ModuleType, seed: int) -> None:
    from sklearn.metrics import average_precision_score  # type: ignore[import-untyped]

    scores, wrong = drawn(seed)
    weight = np.random.default_rng(seed).integers(0, 4, (5, 60)).astype(float)
    found = thresholds.average_precision(scores, wrong, weight)
    wanted = [average_precision_score(wrong, scores, sample_weight=row) for row in weight]
    assert found == pytest.approx(wanted)
    missing = np.where(np.arange(60) % 7 == 0, np.nan, scores)
    kept = ~np.isnan(missing)
    (without,) = thresholds.average_precision(missing, wrong, np.ones((1, 60)))
    assert without == pytest.approx(average_precision_score(wrong[kept], scores[kept]))
    assert np.isnan(thresholds.average_precision(scores, np.zeros(60, bool), weight)).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("figure", [f1, mcc])
def test_the_best_cut_is_the_best_of_all(thresholds: ModuleType, seed: int, figure: Any) -> None:
    scores, wrong = drawn(seed)

    def at(cut: float) -> float:
        return float(figure(thresholds.counted(scores >= cut, wrong, np.ones((1, 60))))[0])

    best = max(value for value in map(at, scores) if not np.isnan(value))
    cut = thresholds.best_cut(scores, wrong, figure)
    assert at(cut) == pytest.approx(best)
    assert cut not in set(scores) or cut == scores.min()


def test_nothing_to_choose_from_marks_nothing(thresholds: ModuleType) -> None:
    assert thresholds.best_cut(np.array([np.nan]), np.array([True]), f1) == float("inf")


def translation(source: str, **labels: Any) -> Sample:
    annotation = Annotation(annotator="gold", kind=Kind.HUMAN, taxonomy="hat", **labels)
    return Sample(
        id=source,
        response="one two-three, two",
        task=Task.TRANSLATION,
        language="en",
        evidence=(Evidence(source, language="de"),),
        annotations=(annotation,),
    )


def test_a_source_is_in_one_half(data: ModuleType) -> None:
    parts = {text: data.part_of(translation(text)) for text in map(str, range(400))}
    assert set(parts.values()) == {"development", "test"}
    assert 150 < list(parts.values()).count("test") < 250
    assert (parts["0"], parts["2"]) == ("development", "test"), "the split never moves"


def test_tokens_are_what_white_space_parts(data: ModuleType) -> None:
    labels = data.token_labels(translation("s", spans=(Span(4, 14, "hallucination"),)))
    assert labels == [(0, 3, False), (4, 14, True), (15, 18, False)]


def test_what_a_pathology_is_held_against(data: ModuleType) -> None:
    whole = (Unit(0, 3, "hallucination"),)
    said = {
        "clean": translation("a", units=()),
        "omission": translation("b", units=(), flags=("omission",)),
        "strong": translation("c", units=whole, flags=("strong_detachment", "omission")),
        "full": translation("d", units=whole, flags=("full_detachment",)),
    }
    table = {name: {key: data.pathology(s, name) for key, s in said.items()} for name in data.PATHOLOGIES}
    assert table["any hallucination"] == {"clean": False, "omission": False, "strong": True, "full": True}
    assert table["full detachment"] == {"clean": False, "omission": False, "strong": None, "full": True}
    assert table["omission"] == {"clean": False, "omission": True, "strong": True, "full": None}


def written(folder: Path) -> Path:
    """Forty translations in two of the sets: odd ones repeat themselves."""
    sources = [f"Die Mühle Nummer {i} steht seit dem Jahr {1800 + i} am Fluss." for i in range(40)]
    good = "The mill number {0} has stood by the river since {1} ."
    bad = "The mill by the river by the river by the river by the river ."
    targets = [(bad if i % 2 else good).format(i, 1800 + i) for i in range(40)]
    mlqe, zhou = folder / "mt_mlqe_catastrophic", folder / "mt_zhou_zhen"
    mlqe.mkdir()
    zhou.mkdir()
    rows = [
        f"{i}\t{source}\t{target}\t{'[1, 1, 0]' if i % 2 else '[0, 0, 1]'}\t{'ERR' if i % 2 else 'NOT'}\n"
        for i, (source, target) in enumerate(zip(sources, targets, strict=True))
    ]
    (mlqe / "deen_majority_dev.tsv").write_text("".join(rows), encoding="utf-8")
    labels = [" ".join(str(int(i % 2)) for _ in target.split()) for i, target in enumerate(targets)]
    for ending, lines in (("label", labels), ("source", sources), ("target", targets)):
        (zhou / f"sys.{ending}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_a_run_finds_repetition_where_it_is(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "translation.py"), "--json", "--data", str(written(tmp_path))]
    done = subprocess.run(
        [*command, "--sets", "zhou", "mlqe", "--resamples", "50"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    zhou, mlqe = (json.loads(line)["tables"] for line in done.stdout.splitlines())
    tokens = {row["system"]: row for row in zhou["F1 of hallucinated tokens"]}
    sentences = {row["system"]: row["de-en"]["value"] for row in mlqe["Matthews correlation"]}
    assert sentences["top-ngram"] == 1.0
    assert sentences["chance"] < 0.9
    assert tokens["top-ngram"]["sys"]["value"] == 1.0
    assert {"grounding", "top-ngram, graded", "length-ratio", "chance"} <= tokens.keys()
    assert sentences.keys() >= {"grounding, score", "grounding, best word", "grounding, mean word"}
