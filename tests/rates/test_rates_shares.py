"""Shares of units: their error against a bootstrap of whole clusters, and draws that stay right near 0."""

from __future__ import annotations

import numpy as np
import pytest
from clustered_texts import shares, texts
from hypothesis import given
from hypothesis import strategies as st

from veriglot.rates.proportion import Share, Tallies


def found(marked: object, units: object, cluster: object) -> Share:
    share = Share.of(Tallies(*(np.asarray(each, dtype=np.int64) for each in (marked, units, cluster))))
    assert share is not None
    return share


@st.composite
def counts(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Marked units, units and clusters of a few responses, with some unit."""
    units = draw(st.lists(st.integers(0, 60), min_size=1, max_size=30).filter(any))
    marked = [draw(st.integers(0, each)) for each in units]
    return marked, units, [draw(st.integers(0, 9)) for _ in units]


@pytest.mark.parametrize("rate", [0.03, 0.2])
def test_the_error_is_that_of_a_bootstrap_of_clusters(rate: float) -> None:
    draw = np.random.default_rng(1)
    told, cluster = texts(draw, 600, rate).tallies, np.repeat(np.arange(200), 3)
    share = found(told.marked, told.units, cluster)
    by_cluster = np.stack([np.bincount(cluster, weights=each) for each in (told.marked, told.units)])
    again = by_cluster[:, draw.integers(0, 200, (4000, 200))].sum(axis=2)
    of_bootstrap = (again[0] / again[1]).std()
    error = (share.value * (1 - share.value) / share.effective) ** 0.5
    assert error == pytest.approx(of_bootstrap, rel=0.07)
    assert share.draws(8000, draw).std() == pytest.approx(of_bootstrap, rel=0.12)


def test_independent_units_are_worth_one_each() -> None:
    marked = np.random.default_rng(2).random(500) < 0.3
    share = found(marked, np.ones(500), np.arange(500))
    assert share.effective == pytest.approx(499)
    assert share.value == marked.mean()


def test_units_that_never_differ_within_a_cluster_are_worth_one_together() -> None:
    marked = np.where(np.random.default_rng(3).random(400) < 0.4, 50, 0)
    assert found(marked, np.full(400, 50), np.arange(400)).effective == pytest.approx(399)


@given(counts())
def test_order_and_names_of_clusters_do_not_count(given_: tuple[list[int], list[int], list[int]]) -> None:
    marked, units, cluster = given_
    turned = found(marked[::-1], units[::-1], [7 * each + 3 for each in cluster[::-1]])
    share = found(marked, units, cluster)
    assert turned.value == share.value
    assert (turned.clusters, turned.units) == (share.clusters, share.units)
    assert turned.effective == pytest.approx(share.effective)
    assert turned.freedom == pytest.approx(share.freedom)


@given(counts(), st.integers(2, 9))
def test_a_response_told_several_times_over_adds_nothing(
    given_: tuple[list[int], list[int], list[int]], times: int
) -> None:
    marked, units, cluster = given_
    share, again = found(marked, units, cluster), found(marked * times, units * times, cluster * times)
    assert again.value == pytest.approx(share.value)
    assert again.clusters == share.clusters
    varies = len({sum(m for m, c in zip(marked, cluster, strict=True) if c == name) / total
                  for name in set(cluster)
                  if (total := sum(u for u, c in zip(units, cluster, strict=True) if c == name))}) > 1  # fmt: skip
    if varies and share.effective < share.units:  # without variation the units are all there is to go by
        assert again.effective == pytest.approx(share.effective)


@given(counts(), st.integers(0, 2**32 - 1))
def test_draws_are_shares(given_: tuple[list[int], list[int], list[int]], seed: int) -> None:
    share = found(*given_)
    drawn = share.draws(50, np.random.default_rng(seed))
    assert drawn.shape == (50,)
    assert ((drawn >= 0) & (drawn <= 1)).all()
    binomial = share.units == share.clusters  # one unit in each: no spread of clusters is estimated
    assert share.freedom == 1e9 if binomial else 1 <= share.freedom <= max(1, share.clusters - 1)
    assert 0 < share.effective <= share.units


@given(counts())
def test_responses_without_units_are_no_clusters(given_: tuple[list[int], list[int], list[int]]) -> None:
    marked, units, cluster = given_
    more, share = found([*marked, 0], [*units, 0], [*cluster, 99]), found(marked, units, cluster)
    names = ("value", "units", "clusters", "effective", "freedom")
    assert [getattr(more, name) for name in names] == [getattr(share, name) for name in names]


def test_no_units_have_no_share() -> None:
    nothing = np.zeros(3, dtype=np.int64)
    assert Share.of(Tallies(nothing, nothing, np.arange(3))) is None
    assert Share.of(Tallies(nothing[:0], nothing[:0], nothing[:0])) is None


def test_nothing_marked_is_the_less_likely_chance_the_more_texts_there_are() -> None:
    draw = np.random.default_rng(4)
    highs = [np.quantile(found(np.zeros(k), np.full(k, 50), np.arange(k)).draws(4000, draw), 0.975)
             for k in (8, 40, 200)]  # fmt: skip
    assert highs == sorted(highs, reverse=True)
    assert 3 / (8 * 50) < highs[0] < 3 / 8, "between what as many units and as many clusters would say"


def test_a_share_of_responses_that_are_all_independent_is_binomial() -> None:
    """One response of 40 marked was an interval from 0.1% to 33%: longer than that of three, and than Clopper's 13%."""
    draw = np.random.default_rng(6)
    ends = [
        np.quantile(
            found([1] * marked + [0] * (40 - marked), [1] * 40, list(range(40))).draws(4000, draw), [0.025, 0.975]
        )
        for marked in (1, 2, 3)
    ]
    assert ends[0][1] < ends[1][1] < ends[2][1]
    assert ends[0] == pytest.approx([0.0006, 0.132], abs=0.025), "Clopper and Pearson's, which is at least as long"


@pytest.mark.parametrize(("rate", "clusters"), [(0.01, 200), (0.1, 40), (0.5, 15)])
def test_draws_hold_the_truth(rate: float, clusters: int) -> None:
    draw = np.random.default_rng([5, clusters])
    held = 0
    for _ in range(500):
        units = draw.integers(20, 120, clusters)
        marked = draw.binomial(units, shares(draw, rate, 0.1, clusters))
        low, high = np.quantile(found(marked, units, np.arange(clusters)).draws(1000, draw), [0.025, 0.975])
        held += low <= rate <= high
    assert 0.925 <= held / 500 <= 0.985
