"""Paired tests: what is compared, how sure, and that equal systems are rarely told apart."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from small_bench import difference

from veriglot.bench import leaderboard
from veriglot.bench.figures import bench_draws
from veriglot.bench.leaderboard import ThresholdedItems
from veriglot.bench.results import BenchComparison
from veriglot.metrics.estimate import Resampling
from veriglot.metrics.measures import Items, draws


def judged(labels: np.ndarray, noise: float, seed: int) -> ThresholdedItems:
    generator = np.random.default_rng(seed)
    return ThresholdedItems(Items(labels + generator.normal(0, noise, len(labels)), labels), cut=0.5)


def labels_of(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(size) < 0.4


def test_a_better_system_is_told_from_a_worse_one() -> None:
    labels = labels_of(300)
    resampling = Resampling.of(range(300), resamples=500)
    good, bad = judged(labels, 0.3, 1), judged(labels, 1.5, 2)
    for measure in ("f1", "auroc", "auc_pr_nonfactual", "mcc"):
        found = difference(good, bad, measure, resampling)
        assert found.difference is not None
        assert found.low is not None
        assert found.low > 0
        assert found.p == pytest.approx(1 / 501)  # the least that 500 resamples can show
        back = difference(bad, good, measure, resampling)
        assert back.difference == pytest.approx(-found.difference)
        assert back.p == found.p


def test_the_difference_is_that_of_the_values_and_pairing_helps() -> None:
    labels = labels_of(200)
    resampling = Resampling.of(range(200), resamples=400)
    first = judged(labels, 1.0, 3)
    shifted = ThresholdedItems(Items(first.items.badness + np.random.default_rng(9).normal(0, 0.05, 200), labels))
    found = difference(first, shifted, "auroc", resampling)
    alone = [draws("auroc", one.items, resampling) for one in (first, shifted)]
    assert found.difference == pytest.approx(alone[0][0] - alone[1][0])
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low < 0.25 * (np.quantile(alone[0], 0.975) - np.quantile(alone[0], 0.025))


def test_only_items_that_both_scored_are_compared() -> None:
    labels = labels_of(100)
    first, second = judged(labels, 0.5, 1), judged(labels, 0.5, 2)
    first.items.badness[:10] = np.nan
    second.items.badness[5:30] = np.nan
    resampling = Resampling.of([k // 2 for k in range(100)], resamples=50)
    found = difference(first, second, "auroc", resampling)
    assert (found.items, found.left_out, found.clusters) == (70, (20, 5), 35)
    mask = np.arange(100) >= 30
    kept = [ThresholdedItems(one.items.select(mask), 0.5) for one in (first, second)]
    again = difference(*kept, "auroc", resampling.select(mask))
    assert (again.difference, again.p, again.low) == (found.difference, found.p, found.low)


def test_equal_systems_are_rarely_told_apart() -> None:
    found = []
    for seed in range(60):
        labels = labels_of(120, seed)
        resampling = Resampling.of(range(120), resamples=100, seed=seed)
        pair = judged(labels, 1.0, 1000 + seed), judged(labels, 1.0, 2000 + seed)
        found.append(difference(*pair, "auroc", resampling).p)
    assert all(p is not None for p in found)
    assert sum(p < 0.05 for p in found if p is not None) <= 9  # 3 expected; 10 or more has a chance below 0.001


def test_the_same_system_is_not_better_than_itself() -> None:
    labels = labels_of(50)
    one = judged(labels, 0.5, 1)
    found = difference(one, one, "f1", Resampling.of(range(50), resamples=100))
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_means_over_languages_count_each_the_same() -> None:
    labels = labels_of(90)
    strata = ["de"] * 60 + ["tr"] * 30
    resampling = Resampling.of(range(90), strata, resamples=50)
    pair = judged(labels, 0.4, 1), judged(labels, 1.0, 2)
    parts = [np.array([name == tag for name in strata]) for tag in ("de", "tr")]
    whole = difference(*pair, "auroc", resampling, parts=parts)
    single = [difference(*pair, "auroc", resampling, parts=[part]).difference for part in parts]
    assert whole.difference == pytest.approx(np.mean([value for value in single if value is not None]))
    assert whole.items == 90


def test_every_language_may_have_its_own_cut() -> None:
    labels = labels_of(80)
    tags = np.array(["de"] * 50 + ["tr"] * 30)
    resampling = Resampling.of(range(80), tags.tolist(), resamples=50)
    first, second = judged(labels, 0.6, 1).items, judged(labels, 0.9, 2).items
    cuts = np.where(tags == "de", 0.3, 0.7)
    shifted = Items(first.badness - cuts, labels)  # the same verdicts at a cut of 0 for all
    parts = [tags == "de", tags == "tr"]
    one = difference(ThresholdedItems(first, cuts), ThresholdedItems(second, 0.5), "f1", resampling, parts=parts)
    other = difference(ThresholdedItems(shifted, 0.0), ThresholdedItems(second, 0.5), "f1", resampling, parts=parts)
    assert one.difference is not None
    assert (one.difference, one.low, one.p) == (other.difference, other.low, other.p)
    with pytest.raises(ValueError, match="a cut is a number"):
        difference(ThresholdedItems(first, np.full(80, np.nan)), ThresholdedItems(second, 0.5), "f1", resampling)


def test_marks_that_are_all_alike_have_an_mcc_of_0_as_in_figures() -> None:
    labels = labels_of(120)
    resampling = Resampling.of(range(120), resamples=200)
    good = judged(labels, 0.5, 1)
    mute = ThresholdedItems(good.items, cut=np.inf)  # marks nothing
    found = difference(good, mute, "mcc", resampling)
    alone, alike = bench_draws("mcc", good.items, resampling, cut=0.5)
    assert (found.difference, found.reason, alike) == (pytest.approx(alone[0]), None, False)
    assert found.p == pytest.approx(1 / 201)
    zeros, alike = bench_draws("mcc", good.items, resampling, cut=np.inf)
    assert alike
    assert not zeros.any()
    assert np.isnan(draws("mcc", good.items, resampling, cut=np.inf)).all()  # the definition
    one_class = Items(good.items.badness, np.zeros(120, dtype=bool))
    assert np.isnan(bench_draws("mcc", one_class, resampling, cut=0.5)[0]).all()
    assert (
        difference(ThresholdedItems(one_class, 0.5), ThresholdedItems(one_class, 0.1), "mcc", resampling).difference
        is None
    )


def test_each_resample_follows_the_rule_by_itself() -> None:
    """One item alone is marked: resamples without it are 0; those without any item of a class stay undefined."""
    labels = np.array([True, True, False, False])
    items = Items(np.array([0.9, 0.1, 0.1, 0.1]), labels)
    resampling = Resampling.of(range(4), resamples=400, seed=2)
    found, alike = bench_draws("mcc", items, resampling, cut=0.5)
    weights = np.concatenate(list(resampling.blocks()))
    one_class = (weights[:, :2].sum(axis=1) == 0) | (weights[:, 2:].sum(axis=1) == 0)
    unmarked = weights[:, 0] == 0
    assert not alike
    assert (np.isnan(found) == one_class).all()
    assert (found[unmarked & ~one_class] == 0.0).all()
    assert (unmarked & ~one_class).sum() > 50
    assert one_class.any()


def test_what_cannot_be_compared_says_why() -> None:
    labels = labels_of(20)
    one, other = judged(labels, 0.5, 1), judged(labels, 0.5, 2)
    other.items.badness[:] = np.nan
    nothing = difference(one, other, "auroc", Resampling.of(range(20), resamples=20))
    assert (nothing.difference, nothing.p, nothing.items) == (None, None, 0)
    assert nothing.reason is not None
    alone = difference(one, judged(labels, 0.7, 3), "auroc", Resampling.of(["t"] * 20, resamples=20))
    assert alone.difference is not None
    assert (alone.p, alone.reason) == (None, "fewer than two texts in common")
    assert isinstance(alone, BenchComparison)


def _all_pairs(labels: np.ndarray, noises: list[float], seed: int) -> list[leaderboard.Test]:
    resampling = Resampling.of(range(len(labels)), resamples=199, seed=seed)
    rows = {f"s{index}": judged(labels, noise, 100 * seed + index) for index, noise in enumerate(noises)}
    return [
        leaderboard.difference(
            rows[first], rows[second], resampling, BenchComparison("", "response", "auroc", None, first, second)
        )
        for first, second in combinations(rows, 2)
    ]


def test_corrected_p_values_are_no_smaller_and_find_what_holm_cannot_with_so_few_resamples() -> None:
    tests = _all_pairs(labels_of(200), [0.3, *[1.5] * 9], 1)
    rows = {name: leaderboard._corrected(tests, name) for name in ("romano-wolf", "holm")}
    for corrected in rows.values():
        assert all((row.adjusted or 0.0) >= (test.row.p or 1.0) for row, test in zip(corrected, tests, strict=True))
    best = [row for row in rows["romano-wolf"] if row.system == "s0"]
    assert all(leaderboard.winner(row) == "s0" for row in best)
    assert not any(map(leaderboard.winner, rows["holm"]))  # 45 / 200 is the least p-value that it can give


def test_among_equal_systems_a_winner_is_rare() -> None:
    wrong = sum(
        any(
            map(
                leaderboard.winner,
                leaderboard._corrected(_all_pairs(labels_of(80, seed), [1.0] * 6, seed), "romano-wolf"),
            )
        )
        for seed in range(60)
    )
    assert wrong <= 9  # 3 expected; 10 or more has a chance below 0.001
