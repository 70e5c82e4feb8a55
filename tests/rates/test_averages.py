from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.rates.comparison import average
from veriglot.rates.proportion import Share, Tallies


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_mean_and_sample_standard_deviation(values: list[float]) -> None:
    found = average(values)
    assert found.mean == pytest.approx(statistics.mean(values))
    assert found.sd == pytest.approx(statistics.stdev(values), abs=1e-12)
    assert (found.low, found.high, found.cells, found.left_out) == (None, None, len(values), 0)


def test_cells_without_a_value_are_left_out_and_counted() -> None:
    draws = np.vstack([np.linspace(0.1, 0.3, 101), np.full(101, np.nan), np.linspace(0.3, 0.5, 101)])
    found = average([0.2, np.nan, 0.4], draws)
    assert (found.mean, found.cells, found.left_out) == (pytest.approx(0.3), 2, 1)
    assert (found.low, found.high) == (pytest.approx(0.205), pytest.approx(0.395))


def test_nothing_to_average_gives_no_number() -> None:
    found = average([np.nan, np.nan], np.zeros((2, 5)))
    assert (found.mean, found.sd, found.low, found.high, found.cells, found.left_out) == (None, None, None, None, 0, 2)
    assert average([0.3]).sd is None


def test_error_that_cells_share_does_not_average_away() -> None:
    """Simulation: cells with one shared error and one of their own; the interval of their mean holds."""
    generator = np.random.default_rng(7)
    truth = np.linspace(0.02, 0.2, 8)
    held = held_alone = 0
    for _ in range(1500):
        estimates = truth + generator.normal(0, 0.02) + generator.normal(0, 0.02, size=8)
        shared = estimates[:, None] + generator.normal(0, 0.02, size=400) + generator.normal(0, 0.02, size=(8, 400))
        alone = estimates[:, None] + generator.normal(0, 0.02 * np.sqrt(2), size=(8, 400))
        found, apart = average(estimates, shared), average(estimates, alone)
        assert found.low is not None
        assert found.high is not None
        assert apart.low is not None
        assert apart.high is not None
        held += found.low <= truth.mean() <= found.high
        held_alone += apart.low <= truth.mean() <= apart.high
    assert 0.93 < held / 1500 < 0.97
    assert held_alone / 1500 < 0.85


def test_intervals_of_a_mean_of_many_low_rates_hold() -> None:
    """Simulation: half a unit in each of 30 languages moved the mean out of its own interval in 4 of 5 studies."""
    generator = np.random.default_rng(3)
    truth = np.linspace(0.005, 0.015, 30)
    held = 0
    for _ in range(200):
        rates = generator.beta(truth * 6, (1 - truth) * 6, (30, 30))
        shares = [Share.of(Tallies(generator.binomial(20, each), np.full(30, 20), np.arange(30))) for each in rates.T]
        values, draws = zip(*((share.value, share.draws(300, generator)) for share in shares if share), strict=True)
        found = average(values, np.array(draws))
        assert found.low < found.mean < found.high  # type: ignore[operator]
        held += found.low <= truth.mean() <= found.high  # type: ignore[operator]
    assert held > 180
