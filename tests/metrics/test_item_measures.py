"""Measures of judged items: by hand, against repeated data, and what happens to items without scores or rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import UnknownNameError, UsageError
from veriglot.metrics.estimate import ClusteredEstimate, Resampling, interval_of
from veriglot.metrics.measures import AT_THRESHOLD, CORRELATIONS, ITEM_MEASURES, Items, badness_of, described, draws

CUT = 0.5


def measure(name: str, items: Items, resampling: Resampling, cut: float | None = None) -> ClusteredEstimate:
    return described(name, items, resampling, draws(name, items, resampling, cut=cut))


def random_items(size: int, seed: int, missing: float = 0.0) -> Items:
    generator = np.random.default_rng(seed)
    badness = np.round(generator.normal(size=size), 1)
    badness[generator.random(size) < missing] = np.nan
    support = np.round(generator.random(size), 1)
    return Items(badness, support < 0.6, support, np.round((1 - support) * generator.random(size), 1))


def repeated(items: Items, times: np.ndarray) -> Items:
    places = np.repeat(np.arange(len(items)), times)
    assert items.support is not None
    assert items.unverified is not None
    return Items(items.badness[places], items.nonfactual[places], items.support[places], items.unverified[places])


def test_a_table_by_hand() -> None:
    items = Items(np.array([0.9, 0.8, 0.7, 0.1, 0.2, np.nan]), np.array([True, False, True, True, False, True]))
    resampling = Resampling.of(range(6), resamples=0)
    found = {name: measure(name, items, resampling, cut=CUT) for name in AT_THRESHOLD}
    # Marked: the first three, of which two are bad; one bad item is missed; the unscored one counts nowhere.
    assert found["precision"].value == pytest.approx(2 / 3)
    assert found["recall"].value == pytest.approx(2 / 3)
    assert found["accuracy"].value == pytest.approx(3 / 5)
    assert found["fpr"].value == pytest.approx(1 / 2)
    assert found["mcc"].value == pytest.approx((2 * 1 - 1 * 1) / np.sqrt(3 * 3 * 2 * 2))
    assert (found["f1"].items, found["f1"].positives, found["f1"].clusters) == (5, 3, 5)
    precise = measure("auc_pr_nonfactual", items, resampling)
    assert precise.value == pytest.approx((1 + 2 / 3 + 3 / 5) / 3)
    assert precise.chance == pytest.approx(3 / 5)
    factual = measure("auc_pr_factual", items, resampling)
    assert factual.value == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert factual.chance == pytest.approx(2 / 5)


@pytest.mark.fuzz
@given(st.integers(2, 40), st.integers(0, 10_000), st.sampled_from(sorted(ITEM_MEASURES)))
def test_a_resample_is_the_repeated_data(size: int, seed: int, name: str) -> None:
    items = random_items(size, seed)
    clusters = np.random.default_rng(seed).integers(0, max(size // 2, 1), size)
    resampling = Resampling.of(clusters.tolist(), resamples=3, seed=seed)
    found = draws(name, items, resampling, cut=CUT)
    assert len(found) == 4
    for draw in range(4):
        times = resampling.table[draw][resampling.cluster].astype(int)
        again = repeated(items, times)
        plain = draws(name, again, Resampling.of(range(len(again)), resamples=0), cut=CUT) if len(again) else [np.nan]
        np.testing.assert_allclose(found[draw], plain[0], atol=1e-9, equal_nan=True)


def test_good_systems_are_positive_in_every_correlation_and_above_chance_in_every_ranking() -> None:
    support = np.linspace(0, 1, 60)
    items = Items(1 - support, support < 0.5, support, (1 - support) ** 2, 2 - support)
    resampling = Resampling.of(range(60), resamples=0)
    for name in CORRELATIONS:
        assert draws(name, items, resampling)[0] > 0.8, name
    for name in (name for name, entry in ITEM_MEASURES.items() if entry.kind == "ranking"):
        found = measure(name, items, resampling)
        assert found.value is not None
        assert found.chance is not None
        if name != "auc_pr_verified":  # one item holds nothing unverified, and it stands first
            assert found.value > found.chance, name
    worse = badness_of(support, "higher_is_better")
    assert (worse == -support).all()


def test_no_score_and_no_rate_are_left_out_and_said() -> None:
    nothing = Items(np.full(3, np.nan), np.array([True, False, True]))
    resampling = Resampling.of(range(3), resamples=5)
    found = measure("f1", nothing, resampling, cut=CUT)
    assert (found.value, found.items, found.reason) == (None, 0, "no labelled item was scored")
    unknown = Items(np.arange(3.0), np.array([True, False, True]))
    assert "unverified rate" in str(measure("auc_pr_unverified", unknown, resampling).reason)
    one_class = measure("auroc", Items(np.arange(3.0), np.ones(3, dtype=bool)), resampling)
    assert (one_class.value, one_class.reason) == (None, "all labels are the same")


def test_intervals_hold_the_value_and_need_two_texts() -> None:
    items = random_items(300, 5)
    estimate = measure("auroc", items, Resampling.of([k // 3 for k in range(300)], resamples=200))
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.value is not None
    assert estimate.low < estimate.value < estimate.high
    assert estimate.clusters == 100
    alone = measure("auroc", items, Resampling.of(["same"] * 300, resamples=200))
    assert (alone.low, alone.high, alone.reason) == (None, None, "one text: no interval")


def test_few_resamples_in_which_a_figure_is_defined_are_no_interval() -> None:
    draws = np.array([0.5, 0.6, 0.7, np.nan, np.nan, np.nan])
    assert interval_of(draws, True) == (None, None, "undefined in 3 of 5 resamples")
    low, high, _ = interval_of(draws[:5], True)
    assert low is not None
    assert high is not None


def test_resamples_in_which_a_figure_is_undefined_are_counted() -> None:
    items = Items(np.arange(4.0), np.array([False, False, False, True]))
    found = measure("recall", items, Resampling.of(range(4), resamples=400), cut=2.5)
    assert found.value == 1.0
    assert found.reason is not None
    assert found.reason.startswith("undefined in ")


def test_wrong_calls() -> None:
    items, resampling = random_items(4, 1), Resampling.of(range(4), resamples=0)
    with pytest.raises(UsageError, match="needs a threshold"):
        draws("f1", items, resampling)
    with pytest.raises(UnknownNameError, match="auroc"):
        draws("auorc", items, resampling)
    with pytest.raises(ValueError, match="4 items"):
        draws("auroc", items, Resampling.of(range(5), resamples=0))
    with pytest.raises(ValueError, match="as many scores"):
        Items(np.zeros(3), np.zeros(2, dtype=bool))
