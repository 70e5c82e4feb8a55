"""The fusion of reader and grounding follows the one that is right, for each relation of response and evidence."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tokenizers", reason="needs the extra `reader`: pip install 'veriglot[reader]'")
pytest.importorskip("onnx", reason="needs the extra `reader`: pip install 'veriglot[reader]'")
pytest.importorskip("onnxscript", reason="training writes ONNX: install the extra `train`")

from tiny_reader import features_of
from veriglot.detectors.reader.detector import GROUNDING_COLUMN, RELATIONS, RESPONSE_COLUMN, FusionWeights
from veriglot.training.grounding.examples import Example, Labels
from veriglot.training.reader.fusion import JudgedRow, calibration_rows, fit_fusion
from veriglot.training.reader.sources import Row

WORDS = 12


def judged(
    knows: str, *, relation: str = "same", located: bool = True, count: int = 150, seed: int = 0
) -> list[JudgedRow]:
    """Rows in which one of the two knows the wrong words, and the other is random."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        target = ((rng.random(WORDS) < 0.3) & (number % 2 > 0)).astype(np.float32)
        informed = (4 * target - 2 + rng.normal(0, 1.5, WORDS)).astype(np.float32)
        lots = rng.normal(0, 2, WORDS).astype(np.float32)
        ours, by_words = (informed, lots) if knows == "reader" else (lots, informed)
        numbers = np.zeros(WORDS, np.int64)
        numbers[::5] = np.where(target[::5] > 0, -1, 1)  # numbers that the evidence lacks are wrong
        features = features_of(ours, by_words, np.arange(WORDS) // 4, numbers=numbers)
        example = Example("natural", "made up", f"{number}", "en", "a " * WORDS, ("b",))
        weight = np.full(WORDS, float(located), np.float32)
        labels = Labels(example, target, weight, np.zeros((WORDS, 6), np.float32))
        row = Row(example, bool(target.any()), located)
        counted, quoted = np.ones(WORDS, bool), np.zeros(WORDS, bool)
        rows.append(JudgedRow(row, labels, features, counted, quoted, relation))
    return rows


@pytest.mark.parametrize(
    ("name", "knows", "other"), [("reader", 0, GROUNDING_COLUMN), ("grounding", GROUNDING_COLUMN, 0)]
)
def test_the_one_that_knows_counts(name: str, knows: int, other: int) -> None:
    fusion = fit_fusion(judged(name))
    assert set(fusion) == set(RELATIONS)
    weights = fusion["same"].weights
    assert weights[knows] > 0.5
    assert weights[knows] > 3 * abs(weights[other])


def test_relations_are_joined_apart_and_those_without_rows_as_all() -> None:
    rows = judged("reader") + judged("grounding", relation="across", seed=1)
    fusion = fit_fusion(rows)
    same, across = (fusion[relation].weights for relation in ("same", "across"))
    assert same[0] > same[GROUNDING_COLUMN]
    assert across[GROUNDING_COLUMN] > across[0]
    both = fit_fusion(judged("reader") + judged("grounding", seed=1))["same"].weights
    for column in (0, GROUNDING_COLUMN):
        assert fusion["translation"].weights[column] == pytest.approx(both[column], abs=0.1)


def test_a_relation_without_a_labelled_word_is_joined_as_all() -> None:
    fusion = fit_fusion(judged("reader") + judged("grounding", relation="across", located=False, count=5))
    assert fusion["across"].weights == fusion["translation"].weights
    assert fusion["across"].calibration.scripts == fusion["translation"].calibration.scripts


def test_a_false_alarm_weighs_more_with_evidence_in_another_language() -> None:
    fusion = fit_fusion(judged("reader", relation="same asked") + judged("reader", relation="across"))
    row = next(row for row in judged("reader", seed=3) if row.row.unsupported)
    same, across = (
        fusion[relation].calibration.score(
            (row.features @ np.array(fusion[relation].weights)).astype(np.float32),
            float(row.features[:, RESPONSE_COLUMN].max()),
        )
        for relation in ("same asked", "across")
    )
    assert np.log(same / (1 - same)) - np.log(across / (1 - across)) == pytest.approx(
        np.log(0.55 / 0.45 * 0.6 / 0.4), abs=0.2
    )


def test_natural_answers_say_which_words_are_wrong_and_change_nothing_else() -> None:
    rows = judged("reader", relation="same asked")
    answers = [
        replace(row, labels=replace(row.labels, example=replace(row.labels.example, source="qa")))
        for row in judged("grounding", relation="same asked", seed=2)
    ]
    alone, fusion = fit_fusion(rows), fit_fusion(rows + answers)
    locating = fusion["same asked"].locating
    assert locating is not None
    assert locating[GROUNDING_COLUMN] > fusion["same asked"].weights[GROUNDING_COLUMN] + 0.1
    assert {name: replace_locating(fused) for name, fused in fusion.items()} == alone


def replace_locating(fused: FusionWeights) -> FusionWeights:
    return FusionWeights(fused.weights, fused.calibration)


def test_probabilities_of_words_and_responses_are_calibrated() -> None:
    rows = judged("reader", count=400)
    fused = fit_fusion(rows)["same"]
    held_out = judged("reader", count=400, seed=7)
    logits = [(row.features @ np.array(fused.weights)).astype(np.float32) for row in held_out]
    words = np.concatenate([fused.calibration.confidences(values, "en", "Latn") for values in logits])
    targets = np.concatenate([row.labels.target for row in held_out])
    assert words.mean() == pytest.approx(targets.mean(), abs=0.04)
    assert words[targets > 0].mean() > words[targets == 0].mean() + 0.4
    wholes = [float(row.features[:, RESPONSE_COLUMN].max()) for row in held_out]
    scores = np.array([fused.calibration.score(*pair) for pair in zip(logits, wholes, strict=True)])
    wrong = np.array([bool(row.row.unsupported) for row in held_out])
    assert ((scores >= 0.5) == wrong).mean() > 0.8


def test_rows_that_calibrate_are_some_of_every_source() -> None:
    examples = [Example("clean", source, "g", "en", "r", ("e",)) for source in "ab" for _ in range(300)]
    held_out = [Row(example, False, True) for example in [*examples, replace(examples[0], kind="wrong")]]
    rows = calibration_rows(held_out, 0)
    counts = Counter((row.example.source, row.example.kind) for row in rows)
    assert counts == {("a", "clean"): 120, ("b", "clean"): 120, ("a", "wrong"): 1}
    assert rows == calibration_rows(held_out, 0)
    written = [Row(replace(examples[0], source="written", evidence_language=tag), False, True) for tag in ("de", None)]
    drawn = Counter(row.example.evidence_language for row in calibration_rows(written * 500, 0))
    assert drawn == {"de": 400, None: 500}, "all of one language, some across"
