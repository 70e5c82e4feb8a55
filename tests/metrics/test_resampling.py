"""Shared resamples: whole texts, within strata, the same whatever stands beside them."""

from __future__ import annotations

import numpy as np

from veriglot.metrics.estimate import Resampling, mean_of_draws


def weights_of(resampling: Resampling) -> np.ndarray:
    return np.concatenate(list(resampling.blocks()))


def test_the_data_comes_first_and_texts_are_drawn_whole() -> None:
    resampling = Resampling.of(["a", "b", "a", "c"], resamples=50)
    table = weights_of(resampling)
    assert table.shape == (51, 4)
    assert (table[0] == 1).all()
    assert (table[:, 0] == table[:, 2]).all()
    assert (table[:, [0, 1, 3]].sum(axis=1) == 3).all()
    assert len(resampling.table) == 51
    assert resampling.clusters() == 3


def test_a_stratum_draws_the_same_alone() -> None:
    together = Resampling.of(["x", "y", "x", "z", "w"], ["de", "de", "tr", "tr", "de"], resamples=30, seed=7)
    mask = np.array([True, True, False, False, True])
    alone = Resampling.of(["x", "y", "w"], ["de"] * 3, resamples=30, seed=7)
    assert (weights_of(together.select(mask)) == weights_of(alone)).all()
    assert together.clusters() == 5  # the text x of de is not that of tr
    assert (weights_of(together)[:, mask].sum(axis=1) == 3).all()


def test_blocks_are_one_table() -> None:
    resampling = Resampling.of([k // 2 for k in range(4000)], resamples=1000)
    blocks = list(resampling.blocks())
    assert len(blocks) > 1
    assert (np.concatenate(blocks) == resampling.table[:, resampling.cluster]).all()


def test_nothing_to_draw() -> None:
    resampling = Resampling.of([], resamples=4)
    assert weights_of(resampling).shape == (5, 0)
    assert resampling.clusters() == 0


def test_a_mean_over_cells_leaves_out_what_the_data_does_not_define() -> None:
    first, second, never = np.array([0.2, 0.4, np.nan]), np.array([0.6, 0.6, 0.6]), np.array([np.nan, 1.0, 1.0])
    mean = mean_of_draws([first, second, never])
    assert mean[:2].tolist() == [0.4, 0.5]
    assert np.isnan(mean[2])  # a cell that counts is undefined in this resample
    assert np.isnan(mean_of_draws([never])).all()
