from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.metrics import estimate
from veriglot.metrics.estimate import interval_of, percentile, stream, weights
from veriglot.metrics.scores import f1


def resample(counts: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    return weights(len(counts), resamples, generator).astype(float) @ counts


def test_weights_are_draws_with_replacement() -> None:
    table = weights(7, 4000, stream(1, "de"))
    assert table.shape == (4000, 7)
    assert (table.sum(axis=1) == 7).all()
    assert table.mean(axis=0) == pytest.approx(np.ones(7), abs=0.08)
    assert table.var(axis=0) == pytest.approx(np.full(7, 6 / 7), abs=0.1)  # of a multinomial count


@pytest.mark.fuzz
@given(st.integers(1, 8), st.integers(0, 5))
def test_matrix_product_equals_the_naive_loop(clusters: int, seed: int) -> None:
    counts = np.random.default_rng(seed).integers(0, 9, (clusters, 4)).astype(float)
    fast = resample(counts, 12, stream(seed, "x"))
    drawn = weights(clusters, 12, stream(seed, "x"))
    for row, weight in zip(fast, drawn, strict=True):
        slow = np.zeros(4)
        for cluster in range(clusters):
            for _ in range(int(weight[cluster])):
                slow += counts[cluster]
        assert row.tolist() == slow.tolist()


def test_block_size_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = weights(5, 40, stream(3, "tr"))
    monkeypatch.setattr(estimate, "_CELLS_DRAWN", 15)
    assert np.array_equal(weights(5, 40, stream(3, "tr")), whole)


def test_seed_and_stratum_fix_the_draws() -> None:
    first, again, other, elsewhere = (
        weights(9, 3, stream(seed, tag)) for seed, tag in ((1, "de"), (1, "de"), (2, "de"), (1, "ru"))
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, elsewhere)


def test_interval_holds_its_share_of_truths() -> None:
    """Drawn from a known rate, 95% intervals hold it in about 95% of trials."""
    rng = np.random.default_rng(11)
    held = 0
    for trial in range(200):
        marks = rng.random(150) < 0.4
        counts = np.stack([marks, ~marks], axis=1).astype(float)
        sums = resample(counts, 300, stream(trial, ""))
        low, high, _ = percentile(sums[:, 0] / sums.sum(axis=1))
        assert low is not None
        assert high is not None
        held += low <= 0.4 <= high
    assert 178 <= held <= 200


def test_undefined_resamples_are_counted() -> None:
    low, high, undefined = percentile(np.array([np.nan, 1.0, 1.0, 0.0]))
    assert low is not None
    assert high is not None
    assert low < high
    assert undefined == 1
    assert percentile(np.full(3, np.nan)) == (None, None, 3)


def test_resamples_that_all_agree_make_no_interval() -> None:
    """Ten hits of ten leave a recall of 0.7 possible (Clopper and Pearson); an interval [1, 1] would deny it."""
    assert interval_of(np.ones(100), resampled=True) == (None, None, "no interval: all resamples agree")
    assert interval_of(np.array([1.0, 1.0, 1.0 - 1e-16]), resampled=True)[:2] == (None, None)
    assert percentile(np.zeros(3)) == (0.0, 0.0, 0)  # a difference that no resample changes is one


def test_interval_of_f1_contains_the_point() -> None:
    rng = np.random.default_rng(5)
    inside = 0
    for trial in range(40):
        counts = rng.integers(0, 10, (30, 4)).astype(float)
        low, high, _ = percentile(f1(resample(counts, 200, stream(trial, "y"))))
        inside += bool(low is not None and high is not None and low <= f1(counts.sum(axis=0)) <= high)
    assert inside >= 38
