from __future__ import annotations

import numpy as np
import pytest

from veriglot.rates.comparison import Rank, rank_intervals


def drawn(estimates: np.ndarray, error: float, seed: int = 0, draws: int = 500) -> np.ndarray:
    return estimates[:, None] + np.random.default_rng(seed).normal(0, error, size=(len(estimates), draws))


def test_models_far_apart_have_one_rank_each() -> None:
    rates = np.array([0.3, 0.1, 0.2])
    assert rank_intervals(rates, drawn(rates, 0.001)) == [Rank(3, 3, 3), Rank(1, 1, 1), Rank(2, 2, 2)]


def test_models_that_cannot_be_told_apart_share_all_ranks() -> None:
    rates = np.array([0.201, 0.2, 0.199, 0.5])
    assert rank_intervals(rates, drawn(rates, 0.02)) == [Rank(3, 1, 3), Rank(2, 1, 3), Rank(1, 1, 3), Rank(4, 4, 4)]


def test_error_that_all_share_moves_no_rank() -> None:
    rates = np.array([0.10, 0.11, 0.12])
    shared = np.random.default_rng(1).normal(0, 0.2, size=500)
    assert rank_intervals(rates, drawn(rates, 0.0005) + shared) == [Rank(1, 1, 1), Rank(2, 2, 2), Rank(3, 3, 3)]


def test_equal_models_share_the_better_rank() -> None:
    rates = np.array([0.1, 0.1, 0.3])
    draws = drawn(np.array([0.1]), 0.01)
    assert rank_intervals(rates, np.vstack([draws, draws, draws + 0.2])) == [
        Rank(1, 1, 2),
        Rank(1, 1, 2),
        Rank(3, 3, 3),
    ]


def test_models_without_a_rate_are_not_ranked() -> None:
    rates = np.array([0.3, np.nan, 0.1])
    draws = drawn(rates, 0.001)
    assert rank_intervals(rates, draws) == [Rank(2, 2, 2), None, Rank(1, 1, 1)]
    assert rank_intervals([np.nan], np.full((1, 5), np.nan)) == [None]
    assert rank_intervals([0.2], drawn(np.array([0.2]), 0.1)) == [Rank(1, 1, 1)]


@pytest.mark.parametrize("spacing", [0.0, 0.2, 1.0, 3.0])
def test_intervals_hold_where_models_lie_close_together(spacing: float) -> None:
    """Simulation: all true ranks at once, also for exact ties, whose rank is any of those that they share."""
    generator = np.random.default_rng(11)
    truth = spacing * np.arange(6)
    best = np.array([1 + (truth < value).sum() for value in truth])
    worst = np.array([len(truth) - (truth > value).sum() for value in truth])
    held = 0
    for _ in range(600):
        estimates = truth + generator.normal(size=6)
        found = rank_intervals(estimates, estimates[:, None] + generator.normal(size=(6, 600)))
        held += all(rank and rank.best <= b and w <= rank.worst for rank, b, w in zip(found, best, worst, strict=True))
    assert held / 600 > 0.93


def test_draws_of_other_models_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(models, draws\)"):
        rank_intervals([0.1, 0.2], np.zeros((3, 5)))
