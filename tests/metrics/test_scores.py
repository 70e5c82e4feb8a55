from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.metrics import scores

# Counts worked out by hand: 6 + 2 + 4 + 8 units.
TABLE = np.array([6, 2, 4, 8])


def test_hand_computed_table() -> None:
    assert scores.precision(TABLE) == pytest.approx(0.75)
    assert scores.recall(TABLE) == pytest.approx(0.6)
    assert scores.f1(TABLE) == pytest.approx(2 * 0.75 * 0.6 / 1.35)
    assert scores.fpr(TABLE) == pytest.approx(0.2)
    assert scores.accuracy(TABLE) == pytest.approx(0.7)
    assert scores.prevalence(TABLE) == pytest.approx(0.5)
    assert scores.mcc(TABLE) == pytest.approx((48 - 8) / math.sqrt(8 * 10 * 10 * 12))


def test_zero_denominators_are_nan_not_zero() -> None:
    nothing = np.zeros(4)
    for score in (scores.precision, scores.recall, scores.f1, scores.fpr, scores.accuracy, scores.mcc):
        assert np.isnan(score(nothing)), score
    missed_all = np.array([0, 0, 5, 5])
    assert np.isnan(scores.precision(missed_all))
    assert scores.f1(missed_all) == 0.0
    assert scores.recall(missed_all) == 0.0


def test_leading_axes_are_kept() -> None:
    stack = np.stack([TABLE, TABLE[::-1]])
    assert scores.f1(stack).tolist() == [float(scores.f1(TABLE)), float(scores.f1(TABLE[::-1]))]


@pytest.mark.fuzz
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_scores_equal_their_definitions(pairs: list[tuple[bool, bool]]) -> None:
    gold = np.array([g for g, _ in pairs], dtype=float)
    mark = np.array([m for _, m in pairs], dtype=float)
    counts = np.array([gold @ mark, (1 - gold) @ mark, gold @ (1 - mark), (1 - gold) @ (1 - mark)])
    if gold.std() > 0 and mark.std() > 0:  # MCC is Pearson's correlation of the two labels
        assert scores.mcc(counts) == pytest.approx(np.corrcoef(gold, mark)[0, 1], abs=1e-9)
    else:
        assert np.isnan(scores.mcc(counts))
    assert scores.accuracy(counts) == pytest.approx((gold == mark).mean())
    if gold.sum() and mark.sum():
        p, r = scores.precision(counts), scores.recall(counts)
        assert scores.f1(counts) == pytest.approx(0 if p + r == 0 else 2 * p * r / (p + r))
