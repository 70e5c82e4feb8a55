"""Rolling hashes against brute force."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.detectors.grounding.document import Stretches, mixed, slots
from veriglot.detectors.grounding.features import contains, counts_of

# Few code points, so that stretches repeat; 0 and the highest one, where arithmetic goes wrong first.
FEW = st.lists(st.sampled_from([0, 1, 0x20, 0x61, 0x4E00, 0x1F600, 0x10FFFF]), max_size=24)
HASHES = st.lists(st.sampled_from([0, 1, 7, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1), max_size=60)


def codes(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint32)


def all_stretches(values: list[int]) -> dict[tuple[int, int], tuple[int, ...]]:
    n = len(values)
    return {(s, e): tuple(values[s:e]) for s in range(n + 1) for e in range(s, n + 1)}


@pytest.mark.fuzz
@given(one=FEW, other=FEW)
def test_hashes_are_equal_exactly_where_stretches_are(one: list[int], other: list[int]) -> None:
    meeting: dict[tuple[int, ...], set[int]] = {}
    for values in (one, other):
        places = all_stretches(values)
        starts, ends = np.array(list(places), np.int64).T
        for stretch, found in zip(places.values(), Stretches(codes(values)).of(starts, ends).tolist(), strict=True):
            meeting.setdefault(stretch, set()).add(found)
    assert all(len(found) == 1 for found in meeting.values())
    assert len({next(iter(found)) for found in meeting.values()}) == len(meeting)


@pytest.mark.fuzz
@given(values=FEW, size=st.integers(1, 30))
def test_grams_are_all_stretches_of_one_size(values: list[int], size: int) -> None:
    hashes = Stretches(codes(values))
    starts = np.arange(max(0, len(values) - size + 1))
    assert mixed(hashes.grams(size)).tolist() == hashes.of(starts, starts + size).tolist()


def test_stretches_meet_far_beyond_the_first_table_of_powers() -> None:
    period = np.arange(977, dtype=np.uint32)
    text = np.tile(period, 200)
    starts = np.array([0, 977, 977 * 100, 977 * 199, 5])
    found = Stretches(text).of(starts, starts + 900)
    assert len(set(found[:4].tolist())) == 1
    assert found[4] != found[0]
    assert Stretches(period).of(np.array([0]), np.array([900]))[0] == found[0]


@pytest.mark.fuzz
@given(table=HASHES, asked=HASHES)
def test_contains_misses_nothing(table: list[int], asked: list[int]) -> None:
    found = contains(np.array(table, np.uint64), np.array(asked, np.uint64))
    assert all(hit for value, hit in zip(asked, found.tolist(), strict=True) if value in set(table))
    if not table:
        assert not found.any()


@pytest.mark.parametrize("size", [100, 511, 512, 5000, 70_000])
def test_chance_hits_of_contains_are_one_in_32_at_most(size: int) -> None:
    rng = np.random.default_rng(size)
    table = rng.integers(0, 2**64, size, np.uint64)
    strangers = rng.integers(0, 2**64, 50_000, np.uint64)
    assert contains(table, strangers).mean() <= 1 / 32 + 0.003


@pytest.mark.fuzz
@given(table=HASHES, asked=HASHES)
def test_count_is_exact(table: list[int], asked: list[int]) -> None:
    counts = Counter(table)
    known = np.unique(np.array(table, np.uint64), return_counts=True)
    found = counts_of(*known, np.array(asked, np.uint64))
    assert found.tolist() == [counts[value] for value in asked]


@pytest.mark.fuzz
@given(table=st.sets(st.integers(0, 2**64 - 1), max_size=40), asked=HASHES)
def test_slots_give_the_place_or_minus_one(table: set[int], asked: list[int]) -> None:
    ordered = sorted(table)
    wanted = [*asked, *ordered]
    found = slots(np.array(ordered, np.uint64), np.array(wanted, np.uint64))
    assert found.tolist() == [ordered.index(value) if value in table else -1 for value in wanted]
