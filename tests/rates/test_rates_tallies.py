"""Counts per response: what fits together, and what joining and selecting keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.rates.proportion import Tallies
from veriglot.records import CONFIDENCE_BINS


def tallies(units: list[int], *, confidences: bool = True) -> Tallies:
    """Half of each response marked; all units of one confidence."""
    counts = np.array(units, dtype=np.int64)
    table = np.zeros((len(units), CONFIDENCE_BINS), dtype=np.int64)
    table[:, 3] = counts
    return Tallies(counts // 2, counts, np.arange(len(units)) % 4, table if confidences else None)


def same(first: Tallies, second: Tallies) -> bool:
    columns = (np.array_equal(getattr(first, name), getattr(second, name)) for name in ("marked", "units", "cluster"))
    if first.confidences is None or second.confidences is None:
        return all(columns) and first.confidences is second.confidences
    return all(columns) and np.array_equal(first.confidences, second.confidences)


@given(st.lists(st.lists(st.integers(0, 50), max_size=6), max_size=5))
def test_joining_and_selecting_undo_each_other(parts: list[list[int]]) -> None:
    whole = Tallies.join([tallies(part) for part in parts])
    assert len(whole) == sum(map(len, parts))
    start = 0
    for part in parts:
        assert same(whole.select(np.arange(start, start + len(part))), tallies(part))
        start += len(part)


def test_a_mask_selects_as_places_do() -> None:
    whole = tallies([3, 0, 8, 9])
    assert same(whole.select(np.array([True, False, False, True])), whole.select(np.array([0, 3])))


def test_confidences_are_kept_where_all_have_them() -> None:
    with_them, without = tallies([4, 5]), tallies([6], confidences=False)
    assert Tallies.join([with_them, without]).confidences is None
    joined = Tallies.join([with_them, with_them]).confidences
    assert joined is not None
    assert joined.sum() == 18


def test_nothing_joined_is_empty() -> None:
    assert len(Tallies.join([])) == 0


@pytest.mark.parametrize(
    ("marked", "units", "cluster", "confidences", "said"),
    [
        ([1], [2, 3], [0, 1], None, "2 counts of units"),
        ([1, 1], [2, 3], [0], None, "clusters"),
        ([3, 1], [2, 3], [0, 1], None, "between 0 and all"),
        ([-1, 1], [2, 3], [0, 1], None, "between 0 and all"),
        ([1, 1], [2, 3], [0, 1], np.zeros((2, 10), dtype=np.int64), "the shape"),
    ],
)
def test_what_does_not_fit_is_refused(
    marked: list[int], units: list[int], cluster: list[int], confidences: np.ndarray | None, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Tallies(np.array(marked), np.array(units), np.array(cluster), confidences)


def test_bins_are_those_of_a_profile() -> None:
    assert CONFIDENCE_BINS == CONFIDENCE_BINS == 20
