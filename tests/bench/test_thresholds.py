"""Thresholds against a search over every score, in both directions, and what cannot be tuned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from veriglot.bench.figures import Threshold, tune
from veriglot.errors import UnknownNameError
from veriglot.metrics.measures import AT_THRESHOLD, badness_of
from veriglot.records import Direction

REFERENCES = {"f1": f1_score, "mcc": matthews_corrcoef, "accuracy": accuracy_score}
TUNED = tuple(REFERENCES)
rows = st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=30)


def marks_of(threshold: Threshold, badness: np.ndarray) -> np.ndarray:
    assert threshold.cut is not None
    return badness >= threshold.cut


def test_by_hand() -> None:
    badness = np.array([0.1, 0.2, 0.6, 0.7, 0.9, np.nan])
    best = tune(badness, np.array([False, False, True, False, True, True]), "f1")
    assert best.cut == pytest.approx(0.4)  # marks three of five, two of them rightly
    assert best.reached == pytest.approx(2 * 2 / (2 * 2 + 1))
    assert (best.items, best.positives) == (5, 2)
    assert marks_of(best, badness).tolist() == [False, False, True, True, True, False]


@pytest.mark.fuzz
@given(rows, st.sampled_from(TUNED), st.sampled_from(list(Direction)))
def test_no_threshold_is_better(given_rows: list[tuple[int, bool]], measure: str, direction: Direction) -> None:
    values, labels = np.array([v for v, _ in given_rows], dtype=float), np.array([y for _, y in given_rows])
    badness = badness_of(values, direction)
    found = tune(badness, labels, measure)
    if labels.all() or not labels.any():
        assert found.cut is None
        assert found.reason is not None
        return
    every = [badness >= cut for cut in [*np.unique(badness), np.inf]]
    if measure == "mcc":  # undefined where nothing or everything is marked
        every = [marks for marks in every if marks.any() and not marks.all()]
    best = max((REFERENCES[measure](labels, marks) for marks in every), default=None)
    if best is None:
        assert found.cut is None
        assert found.reason == "mcc is undefined at every threshold"
        return
    assert found.reached == pytest.approx(best)
    marks = marks_of(found, badness)
    assert REFERENCES[measure](labels, marks) == pytest.approx(best)
    equal = [m.sum() for m in every if REFERENCES[measure](labels, m) >= best - 1e-12]
    assert marks.sum() == min(equal)


def test_precision_and_recall_take_the_threshold_of_f1() -> None:
    generator = np.random.default_rng(2)
    labels = generator.random(400) < 0.1
    values = labels + generator.normal(size=400)
    tuned = {name: tune(values, labels, name) for name in AT_THRESHOLD}
    assert tuned["precision"] == tuned["recall"] == tuned["f1"]
    assert tuned["accuracy"].cut != tuned["f1"].cut  # where 9 of 10 are clean, marking little is accurate


def test_neighbouring_floats_are_parted() -> None:
    low = 0.1
    high = float(np.nextafter(low, 1.0))
    badness = np.array([low, high])
    assert marks_of(tune(badness, np.array([False, True]), "f1"), badness).tolist() == [False, True]


def test_what_cannot_be_tuned_says_why() -> None:
    unscored, scored = np.full(2, np.nan), np.array([1.0, 2.0])
    mixed, clean = np.array([True, False]), np.zeros(2, dtype=bool)
    assert tune(unscored, mixed).reason == "the development split has no scored and labelled items"
    assert tune(scored, clean).reason == "the development split has no non-factual items"
    assert tune(scored, ~clean).reason == "the development split has no factual items"
    with pytest.raises(UnknownNameError, match="threshold"):
        tune(scored, mixed, "auroc")
