"""Weighted correlations against scipy on data that is repeated as often as the weights say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, rankdata, spearmanr

from veriglot.metrics.scores import mid_ranks, pearson, spearman

triples = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30)


@pytest.mark.fuzz
@given(triples)
def test_as_scipy_says_of_the_repeated_data(rows: list[tuple[int, int, int]]) -> None:
    x, y, times = (np.array([row[place] for row in rows], dtype=float) for place in range(3))
    weights = np.stack([np.ones(len(rows)), times])
    found = {pearsonr: pearson(x, y, weights), spearmanr: spearman(x, y, weights)}
    for reference, values in found.items():
        for draw, repeats in enumerate(weights.astype(int)):
            one, two = np.repeat(x, repeats), np.repeat(y, repeats)
            if len(one) < 2 or np.ptp(one) == 0 or np.ptp(two) == 0:
                assert np.isnan(values[draw])
            else:
                assert values[draw] == pytest.approx(reference(one, two).statistic, abs=1e-9)


@pytest.mark.fuzz
@given(triples)
def test_mid_ranks_are_those_of_the_repeated_data(rows: list[tuple[int, int, int]]) -> None:
    values, times = np.array([row[0] for row in rows], dtype=float), np.array([row[2] for row in rows])
    ranks = mid_ranks(values, times[None, :].astype(float))[0]
    assert np.repeat(ranks, times).tolist() == rankdata(np.repeat(values, times)).tolist()


def test_a_large_offset_does_not_swallow_the_spread() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0])
    y = np.array([0.0, 1.0, 1.0, 4.0])
    expected = pearson(x, y, np.ones((1, 4)))[0]
    assert pearson(x + 1e9, y - 1e9, np.ones((1, 4)))[0] == pytest.approx(expected, abs=1e-6)


def test_one_value_has_no_correlation() -> None:
    assert np.isnan(pearson(np.full(5, 0.1), np.arange(5.0), np.ones((1, 5))))[0]
    assert np.isnan(spearman(np.arange(5.0), np.full(5, 0.3), np.ones((1, 5))))[0]
