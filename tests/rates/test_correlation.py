from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import UnknownNameError
from veriglot.rates.comparison import Correlated, correlate


def told(found: Correlated | None) -> Correlated:
    assert found is not None
    return found


def pair(generator: np.random.Generator, n: int, rho: float) -> tuple[np.ndarray, np.ndarray]:
    x = generator.normal(size=n)
    return x, rho * x + np.sqrt(1 - rho**2) * generator.normal(size=n)


def spearman(x: list[int], y: list[int]) -> float:
    n = len(x)
    return 1 - 6 * sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / (n * (n * n - 1))


def test_pearson_of_known_figures() -> None:
    # Anscombe's first quartet: r = 0.8164, p = 0.00217 (R's cor.test), interval 0.4243912 to 0.9506933.
    x = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
    y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]
    found = told(correlate(x, y))
    assert (found.r, found.p) == pytest.approx((0.8164205, 0.0021696), abs=1e-6)
    assert (found.low, found.high) == pytest.approx((0.4243912, 0.9506933), abs=1e-6)
    assert (found.points, found.method) == (11, "pearson")


@given(st.permutations(list(range(6))))
def test_spearman_of_few_points_counts_every_order(y: list[int]) -> None:
    x = list(range(6))
    r = spearman(x, y)
    every = [spearman(x, list(order)) for order in permutations(x)]
    found = told(correlate(x, y, method="spearman"))
    assert found.r == pytest.approx(r)
    assert found.p == pytest.approx(np.mean([abs(value) >= abs(r) - 1e-9 for value in every]))


@pytest.mark.parametrize("method", ["pearson", "spearman"])
@pytest.mark.parametrize("points", [6, 11, 30])
def test_no_relation_is_found_as_rarely_as_the_level_says(method: str, points: int) -> None:
    generator = np.random.default_rng(points)
    found = [told(correlate(*pair(generator, points, 0.0), method=method)) for _ in range(1200)]
    assert 0.033 < np.mean([test.p < 0.05 for test in found]) < 0.067


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_intervals_hold(rho: float) -> None:
    generator = np.random.default_rng(8)
    true_spearman = 6 / np.pi * np.arcsin(rho / 2)  # of a bivariate normal distribution
    held = {"pearson": 0, "spearman": 0}
    for _ in range(2000):
        x, y = pair(generator, 25, rho)
        for method, truth in (("pearson", rho), ("spearman", true_spearman)):
            found = told(correlate(x, y, method=method))
            assert found.low is not None
            assert found.high is not None
            held[method] += found.low <= truth <= found.high
    assert 0.93 < held["pearson"] / 2000 < 0.97
    assert 0.925 < held["spearman"] / 2000 < 0.975


def test_what_is_not_defined_is_none() -> None:
    assert correlate([1, 2], [2, 3]) is None
    assert correlate([1, 1, 1, 1], [1, 2, 3, 4]) is None
    assert told(correlate([1, 2, 3], [1, 3, 2])).low is None


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean spearman"):
        correlate([1, 2, 3], [1, 2, 3], method="spearmann")
    with pytest.raises(ValueError, match="pairs of numbers"):
        correlate([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="pairs of numbers"):
        correlate([1, 2, float("nan")], [1, 2, 3])
