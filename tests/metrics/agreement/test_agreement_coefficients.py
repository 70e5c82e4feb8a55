"""Coefficients against scikit-learn and the package krippendorff, and against tables worked out by hand."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from veriglot.metrics.agreement import alpha, coincidences, kappa, pi

LABELS = st.integers(2, 5).flatmap(
    lambda values: st.tuples(
        st.just(values),
        st.lists(st.tuples(*[st.integers(0, values - 1)] * 2), min_size=1, max_size=60),
    )
)


def table(pairs: list[tuple[int, int]], values: int) -> np.ndarray:
    found = np.zeros((values, values))
    for a, b in pairs:
        found[a, b] += 1
    return found


@given(LABELS)
def test_kappa_is_that_of_scikit_learn(case: tuple[int, list[tuple[int, int]]]) -> None:
    values, pairs = case
    ours = kappa(table(pairs, values))
    first, second = zip(*pairs, strict=True)
    if len(set(first) | set(second)) == 1:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)


def test_kappa_and_pi_of_a_table_by_hand() -> None:
    counts = np.array([[20.0, 5.0], [10.0, 15.0]])  # same 35 of 50
    assert kappa(counts) == pytest.approx((0.7 - 0.5) / 0.5)  # 25/50 * 30/50 + 25/50 * 20/50
    chance = (55 / 100) ** 2 + (45 / 100) ** 2
    assert pi(counts) == pytest.approx((0.7 - chance) / (1 - chance))
    assert pi(counts) == pi(counts.T)


def test_draws_are_computed_side_by_side() -> None:
    tables = np.random.default_rng(1).integers(0, 9, (7, 3, 3)).astype(float)
    assert kappa(tables) == pytest.approx([float(kappa(one)) for one in tables])
    assert alpha(tables + tables.swapaxes(1, 2)) == pytest.approx([float(alpha(one + one.T)) for one in tables])


@given(
    st.integers(2, 5).flatmap(
        lambda values: st.tuples(
            st.just(values),
            st.integers(2, 5).flatmap(
                lambda raters: st.lists(
                    st.lists(st.integers(-1, values - 1), min_size=raters, max_size=raters), min_size=2, max_size=25
                )
            ),
        )
    )
)
def test_alpha_is_that_of_krippendorff(case: tuple[int, list[list[int]]]) -> None:
    values, units = case
    labels = np.array(units).T
    sums = coincidences(labels, values)
    ours = float(alpha(sums))
    paired = [value for unit in units for value in unit if value >= 0 and sum(one >= 0 for one in unit) > 1]
    if len(set(paired)) < 2:
        assert np.isnan(ours)
        return
    theirs = krippendorff.alpha(
        reliability_data=np.where(labels < 0, np.nan, labels).tolist(),
        level_of_measurement="nominal",
        value_domain=list(range(values)),
    )
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_a_unit_with_one_label_counts_for_nothing() -> None:
    labels = np.array([[0, 1, 1], [0, 1, -1]])
    assert coincidences(labels, 2).tolist() == coincidences(labels[:, :2], 2).tolist() == [[2, 0], [0, 2]]
