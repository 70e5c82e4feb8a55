from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.metrics.scores import (
    BINS,
    EDGES,
    auroc,
    average_precision,
    bin_of,
    coarse_bin,
    ece_equal_mass,
    ece_equal_width,
    reliability,
)


def tables(confidence: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    place = bin_of(confidence)
    return (
        np.bincount(place, weights=labels, minlength=BINS),
        np.bincount(place, weights=1 - labels, minlength=BINS),
        np.bincount(place, weights=confidence, minlength=BINS),
    )


def naive_ap(scores: np.ndarray, labels: np.ndarray) -> float:
    total, before, area = labels.sum(), 0.0, 0.0
    for cut in sorted(set(scores.tolist()), reverse=True):
        taken = labels[scores >= cut]
        area += (taken.sum() - before) / total * taken.mean()
        before = taken.sum()
    return area


def naive_auroc(scores: np.ndarray, labels: np.ndarray) -> float:
    yes, no = scores[labels == 1], scores[labels == 0]
    return float(((yes[:, None] > no).sum() + 0.5 * (yes[:, None] == no).sum()) / (len(yes) * len(no)))


def naive_ece(confidence: np.ndarray, labels: np.ndarray, groups: np.ndarray) -> float:
    return sum(
        (groups == g).mean() * abs(labels[groups == g].mean() - confidence[groups == g].mean()) for g in set(groups)
    )


data = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=2, max_size=80).map(
    lambda rows: (np.array([c for c, _ in rows]), np.array([y for _, y in rows], dtype=float))
)


def test_the_grid() -> None:
    assert EDGES[0] == 0.0
    assert EDGES[-1] == 1.0
    assert (np.diff(EDGES) > 0).all()
    assert bin_of(np.array([0.0, 1.0])).tolist() == [0, BINS - 1]
    assert all(np.isclose(EDGES, k / 15, atol=1e-12).any() for k in range(16))


@pytest.mark.fuzz
@given(data)
def test_ranking_equals_the_definition_on_the_grid(rows: tuple[np.ndarray, np.ndarray]) -> None:
    confidence, labels = rows
    yes, no, _ = tables(confidence, labels)
    ranked = bin_of(confidence).astype(float)
    if 0 < labels.sum() < len(labels):
        assert average_precision(yes, no) == pytest.approx(naive_ap(ranked, labels))
        assert auroc(yes, no) == pytest.approx(naive_auroc(ranked, labels))
    else:
        assert np.isnan(average_precision(yes, no))
        assert np.isnan(auroc(yes, no))


def test_the_grid_costs_little() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.beta(0.3, 1.5, 20_000)
    labels = (rng.random(20_000) < confidence).astype(float)
    yes, no, sums = tables(confidence, labels)
    metrics = pytest.importorskip("sklearn.metrics")
    assert average_precision(yes, no) == pytest.approx(metrics.average_precision_score(labels, confidence), abs=1e-3)
    assert auroc(yes, no) == pytest.approx(metrics.roc_auc_score(labels, confidence), abs=1e-3)
    even = np.array_split(np.argsort(confidence), 15)
    groups = np.zeros(20_000, dtype=int)
    for index, members in enumerate(even):
        groups[members] = index
    assert ece_equal_mass(yes, no, sums) == pytest.approx(naive_ece(confidence, labels, groups), abs=3e-3)


@pytest.mark.fuzz
@given(data)
def test_equal_width_error_is_the_definition(rows: tuple[np.ndarray, np.ndarray]) -> None:
    confidence, labels = rows
    groups = np.minimum(np.searchsorted(np.linspace(0, 1, 601)[:600:40], confidence, side="right") - 1, 14)
    yes, no, sums = tables(confidence, labels)
    assert ece_equal_width(yes, no, sums) == pytest.approx(naive_ece(confidence, labels, groups), abs=1e-9)
    table = reliability(yes, no, sums)
    assert sum(row.units for row in table) == len(labels)
    from_table = sum(row.units * abs(row.positive - row.confidence) for row in table if row.units) / len(labels)
    assert from_table == pytest.approx(ece_equal_width(yes, no, sums), abs=1e-9)


def test_perfect_confidences() -> None:
    labels = np.array([1.0, 0, 1, 0, 0])
    yes, no, sums = tables(labels, labels)
    assert average_precision(yes, no) == 1.0
    assert auroc(yes, no) == 1.0
    assert ece_equal_width(yes, no, sums) == 0.0
    assert ece_equal_mass(yes, no, sums) == 0.0


def test_constant_confidence_ranks_nothing() -> None:
    labels = np.array([1.0, 0, 0, 0])
    yes, no, sums = tables(np.full(4, 0.5), labels)
    assert average_precision(yes, no) == 0.25
    assert auroc(yes, no) == 0.5
    assert ece_equal_width(yes, no, sums) == 0.25
    assert ece_equal_mass(yes, no, sums) == 0.25


def test_rows_of_a_stack_equal_single_ones() -> None:
    rng = np.random.default_rng(1)
    singles = [tables(c, (rng.random(50) < c).astype(float)) for c in (rng.random(50), rng.random(50) ** 3)]
    stack = [np.stack(part) for part in zip(*singles, strict=True)]
    for index, single in enumerate(singles):
        assert ece_equal_mass(*stack)[index] == ece_equal_mass(*single)
        assert ece_equal_width(*stack)[index] == ece_equal_width(*single)
        assert average_precision(*stack[:2])[index] == average_precision(*single[:2])


def test_nothing_is_nan() -> None:
    empty = np.zeros(BINS)
    assert np.isnan(ece_equal_width(empty, empty, empty))
    assert np.isnan(ece_equal_mass(empty, empty, empty))


@given(st.lists(st.integers(0, 599), min_size=1, max_size=50), st.sampled_from([10, 15, 20, 100]))
def test_coarse_bins_hold_what_equal_bins_would(steps: list[int], bins: int) -> None:
    values = (np.array(steps) + 0.5) / 600  # off the edges, where rounding decides
    edges = np.linspace(0, 1, bins + 1)
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, bins - 1)
    assert coarse_bin(bin_of(values), bins).tolist() == place.tolist()
