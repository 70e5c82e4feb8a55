"""Ranking figures against scikit-learn, on scores of any range, with ties and weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from veriglot.metrics.scores import Ranked

pairs = st.lists(st.tuples(st.integers(-4, 4), st.booleans(), st.integers(0, 3)), min_size=1, max_size=40)


def test_by_hand() -> None:
    # Falling: 5 (positive), 3 and 3 (one of each), -1 (negative). Steps: 1/1, then 2/3.
    ranked = Ranked.of(np.array([3.0, -1.0, 5.0, 3.0]), np.array([True, False, True, False]))
    assert ranked.cuts.tolist() == [5.0, 3.0, -1.0]
    one = np.ones((1, 4))
    assert ranked.average_precision(one)[0] == pytest.approx((1 + 2 / 3) / 2)
    assert ranked.auroc(one)[0] == pytest.approx((2 + 1.5) / 4)  # 5 beats both; 3 ties one and beats the other


@pytest.mark.fuzz
@given(pairs)
def test_as_scikit_learn_says_of_the_repeated_data(rows: list[tuple[int, bool, int]]) -> None:
    scores = np.array([row[0] * 1e3 for row in rows])
    labels = np.array([row[1] for row in rows])
    times = np.array([row[2] for row in rows])
    ranked = Ranked.of(scores, labels)
    weights = np.stack([np.ones(len(rows)), times]).astype(float)
    precision, auroc = ranked.average_precision(weights), ranked.auroc(weights)
    for draw, repeats in enumerate(weights.astype(int)):
        repeated, truth = np.repeat(scores, repeats), np.repeat(labels, repeats)
        if truth.all() or not truth.any():
            assert np.isnan(precision[draw])
            assert np.isnan(auroc[draw])
        else:
            assert precision[draw] == pytest.approx(average_precision_score(truth, repeated), abs=1e-12)
            assert auroc[draw] == pytest.approx(roc_auc_score(truth, repeated), abs=1e-12)


@pytest.mark.fuzz
@given(pairs)
def test_the_order_of_items_is_nothing(rows: list[tuple[int, bool, int]]) -> None:
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    scores, labels = np.array([row[0] for row in rows], dtype=float), np.array([row[1] for row in rows])
    weights = np.array([[row[2] for row in rows]], dtype=float)
    first = Ranked.of(scores, labels).average_precision(weights)
    second = Ranked.of(scores[order], labels[order]).average_precision(weights[:, order])
    np.testing.assert_allclose(first, second, equal_nan=True)


def test_chance_has_the_share_of_positives() -> None:
    generator = np.random.default_rng(3)
    labels = generator.random(20_000) < 0.17
    ranked = Ranked.of(generator.normal(size=20_000), labels)
    assert ranked.average_precision(np.ones((1, 20_000)))[0] == pytest.approx(labels.mean(), abs=0.01)
    constant = Ranked.of(np.zeros(20_000), labels)
    assert constant.average_precision(np.ones((1, 20_000)))[0] == pytest.approx(labels.mean())


def test_nothing_is_undefined() -> None:
    ranked = Ranked.of(np.zeros(0), np.zeros(0, dtype=bool))
    assert np.isnan(ranked.average_precision(np.ones((2, 0)))).all()
    assert np.isnan(ranked.auroc(np.ones((2, 0)))).all()
