from __future__ import annotations

import numpy as np
import pytest

from veriglot.rates.proportion import Share, Tallies


def share_of(tallies: Tallies) -> Share | None:
    return Share.of(tallies, every_cluster=True)


def tallies(marked: list[int], units: list[int], cluster: list[int]) -> Tallies:
    return Tallies(np.array(marked), np.array(units), np.array(cluster))


def test_a_share_is_of_all_units_and_influences_are_of_clusters() -> None:
    found = share_of(tallies([1, 0, 4, 1], [10, 10, 20, 10], [7, 3, 3, 7]))
    assert found is not None
    assert found.value == pytest.approx(6 / 50)
    assert found.ids.tolist() == [3, 7]
    assert found.influences == pytest.approx([(4 - 3.6) / 50, (2 - 2.4) / 50])


def test_leaving_a_cluster_out_moves_the_share_as_its_influence_says() -> None:
    generator = np.random.default_rng(1)
    units = generator.integers(5, 200, 400)
    whole = Tallies(generator.binomial(units, 0.1), units, np.arange(400) // 2)
    found = share_of(whole)
    assert found is not None
    for cluster in range(5):
        without = share_of(whole.select(whole.cluster != cluster))
        assert without is not None
        assert found.value - without.value == pytest.approx(found.influences[cluster], rel=0.02)


def test_one_response_a_unit_has_the_textbook_error() -> None:
    found = share_of(tallies([1] * 30 + [0] * 70, [1] * 100, list(range(100))))
    assert found is not None
    assert found.error == pytest.approx(np.sqrt(0.3 * 0.7 / 99))


def test_the_error_is_that_of_repeated_samples() -> None:
    """Simulation: clusters of four responses of very unequal length, half of the variance between clusters."""
    generator = np.random.default_rng(2)
    shares, errors = [], []
    for _ in range(1500):
        rate = np.repeat(generator.beta(2, 18, size=80), 4)
        units = generator.geometric(1 / 60, size=320)
        found = share_of(Tallies(generator.binomial(units, rate), units, np.arange(320) // 4))
        assert found is not None
        shares.append(found.value)
        errors.append(found.error)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(shares), rel=0.06)


def test_nothing_to_count_is_none_and_one_cluster_has_no_error() -> None:
    assert share_of(tallies([0, 0], [0, 0], [0, 1])) is None
    alone = share_of(tallies([1, 2], [10, 10], [4, 4]))
    assert alone is not None
    assert np.isnan(alone.error)
