"""Thresholds against a search over every score, in both directions, and what cannot be tuned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from veriglot.bench.thresholds import TUNED, fixed, tune, tune_all
from veriglot.errors import UnknownNameError
from veriglot.metrics.measures import AT_THRESHOLD
from veriglot.records import Direction

REFERENCES = {"f1": f1_score, "mcc": matthews_corrcoef, "accuracy": accuracy_score}
rows = st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=30)


def test_by_hand() -> None:
    values, labels = [0.1, 0.2, 0.6, 0.7, 0.9, None], [False, False, True, False, True, True]
    best = tune(values, labels, "f1")
    assert best.value == pytest.approx(0.4)  # marks three of five, two of them rightly
    assert best.reached == pytest.approx(2 * 2 / (2 * 2 + 1))
    assert (best.items, best.positives) == (5, 2)
    assert best.marks(values).tolist() == [False, False, True, True, True, False]
    assert tune([-1.0, -2.0, -6.0], [False, False, True], "f1", "higher_is_better").value == -4.0


@pytest.mark.fuzz
@given(rows, st.sampled_from(TUNED), st.sampled_from(list(Direction)))
def test_no_threshold_is_better(given_rows: list[tuple[int, bool]], measure: str, direction: Direction) -> None:
    values, labels = np.array([v for v, _ in given_rows], dtype=float), np.array([y for _, y in given_rows])
    found = tune(values, labels, measure, direction)
    if labels.all() or not labels.any():
        assert found.value is None
        assert found.reason is not None
        return
    badness = values if direction is Direction.HIGHER_IS_WORSE else -values
    every = [badness >= cut for cut in [*np.unique(badness), np.inf]]
    if measure == "mcc":  # undefined where nothing or everything is marked
        every = [marks for marks in every if marks.any() and not marks.all()]
    best = max((REFERENCES[measure](labels, marks) for marks in every), default=None)
    if best is None:
        assert found.value is None
        assert found.reason == "mcc is undefined at every threshold"
        return
    assert found.reached == pytest.approx(best)
    marks = found.marks(values)
    assert REFERENCES[measure](labels, marks) == pytest.approx(best)
    equal = [m.sum() for m in every if REFERENCES[measure](labels, m) >= best - 1e-12]
    assert marks.sum() == min(equal)


@pytest.mark.fuzz
@given(rows)
def test_a_direction_is_a_sign(given_rows: list[tuple[int, bool]]) -> None:
    values, labels = [float(v) for v, _ in given_rows], [y for _, y in given_rows]
    worse = tune(values, labels, "f1", Direction.HIGHER_IS_WORSE)
    better = tune([-v for v in values], labels, "f1", Direction.HIGHER_IS_BETTER)
    assert worse.cut == better.cut
    assert worse.reached == better.reached


def test_precision_and_recall_take_the_threshold_of_f1() -> None:
    generator = np.random.default_rng(2)
    labels = generator.random(400) < 0.1
    values = labels + generator.normal(size=400)
    tuned = tune_all(values, labels)
    assert set(tuned) == set(AT_THRESHOLD)
    assert tuned["precision"] is tuned["recall"] is tuned["f1"]
    assert tune(values, labels, "precision") == tuned["f1"]
    assert tuned["mcc"].tuned_for == "mcc"
    assert tuned["accuracy"].value != tuned["f1"].value  # where 9 of 10 are clean, marking little is accurate


def test_neighbouring_floats_are_parted() -> None:
    low = 0.1
    high = float(np.nextafter(low, 1.0))
    found = tune([low, high], [False, True], "f1")
    assert found.marks([low, high]).tolist() == [False, True]


def test_what_cannot_be_tuned_says_why() -> None:
    assert tune([None, None], [True, False]).reason == "the development split has no scored and labelled items"
    assert tune([1.0, 2.0], [False, False]).reason == "the development split has no non-factual items"
    assert tune([1.0, 2.0], [True, True]).reason == "the development split has no factual items"
    with pytest.raises(ValueError, match="no factual items"):
        tune([1.0, 2.0], [True, True]).marks([1.0])
    with pytest.raises(UnknownNameError, match="threshold"):
        tune([1.0, 2.0], [True, False], "auroc")


def test_a_given_threshold_is_in_the_system_s_own_numbers() -> None:
    entailment = fixed(0.5, "higher_is_better")  # kang, section 5.1
    assert entailment.cut == -0.5
    assert entailment.marks([0.4, 0.6, None]).tolist() == [True, False, False]
    assert entailment.tuned_for == "fixed"
