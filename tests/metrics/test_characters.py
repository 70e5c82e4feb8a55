from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.metrics.counts import intersection_over_union, soft_correlation

masks = st.integers(1, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.booleans(), min_size=n, max_size=n).map(np.array)] * 2)
)
vectors = st.integers(2, 25).flatmap(
    lambda n: st.tuples(*[st.lists(st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]), min_size=n, max_size=n)] * 2)
)


def test_iou_by_hand() -> None:
    gold = np.array([1, 1, 1, 0, 0], dtype=bool)
    assert intersection_over_union(gold, np.array([0, 1, 1, 1, 0], dtype=bool)) == 0.5
    assert intersection_over_union(gold, ~gold) == 0.0
    assert intersection_over_union(gold & False, gold & False) == 1.0
    assert intersection_over_union(gold & False, gold) == 0.0


@pytest.mark.fuzz
@given(masks)
def test_iou_is_symmetric_and_one_for_itself(pair: tuple[np.ndarray, np.ndarray]) -> None:
    first, second = pair
    value = intersection_over_union(first, second)
    assert value == intersection_over_union(second, first)
    assert 0.0 <= value <= 1.0
    assert (value == 1.0) == bool((first == second).all())


def naive_spearman(a: list[float], b: list[float]) -> float:
    def rank(values: list[float]) -> list[float]:
        return [sum(v < x for v in values) + (sum(v == x for v in values) + 1) / 2 for x in values]

    ra, rb = rank(a), rank(b)
    ma, mb = sum(ra) / len(a), sum(rb) / len(b)
    top = sum((x - ma) * (y - mb) for x, y in zip(ra, rb, strict=True))
    return top / math.sqrt(sum((x - ma) ** 2 for x in ra) * sum((y - mb) ** 2 for y in rb))


@pytest.mark.fuzz
@given(vectors)
def test_correlation_follows_the_shared_task(pair: tuple[list[float], list[float]]) -> None:
    gold, predicted = pair
    got = soft_correlation(np.array(gold), np.array(predicted))
    if len(set(gold)) == 1 or len(set(predicted)) == 1:
        assert got == float(len(set(gold)) == len(set(predicted)))
    else:
        assert got == pytest.approx(naive_spearman(gold, predicted), abs=1e-12)


def test_soft_correlation_against_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 6, 80) / 5, rng.random(80)
    assert soft_correlation(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)


def test_an_empty_response_is_constant_on_both_sides() -> None:
    assert soft_correlation(np.zeros(0), np.zeros(0)) == 1.0
