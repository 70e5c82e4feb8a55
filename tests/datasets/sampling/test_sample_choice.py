"""The choice of lines, and their parts: by hand, and compared with plain Python."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.datasets.generation import apportioned
from veriglot.datasets.sampling.sample import Choice, Sampling, Scored, choose, split
from veriglot.errors import UsageError
from veriglot.records import Direction

if TYPE_CHECKING:
    from numpy.typing import NDArray

BETTER, WORSE = Direction.HIGHER_IS_BETTER, Direction.HIGHER_IS_WORSE
NAN = math.nan
HAT = {"train": 5_000, "dev": 2_000, "test": 3_000}


def scored(label: str, direction: Direction, values: list[float]) -> Scored:
    return Scored(label, direction, lambda: np.array(values, np.float64))


def keys_of(count: int) -> NDArray[np.uint64]:
    draw = random.Random(11)
    return np.array([draw.getrandbits(64) for _ in range(count)], np.uint64)


def by_hand(choice: Choice, label: str, step: str) -> set[int]:
    places = choice.places.tolist()
    return {place for place, by in zip(places, choice.chosen_by, strict=True) if by.get(label) == step}


def test_the_worst_are_chosen_in_the_direction_of_each_scorer() -> None:
    rising = [float(number) for number in range(100)]
    chosen = choose(
        [scored("good", BETTER, rising), scored("bad", WORSE, rising)],
        keys_of(100),
        Sampling(worst=3, drawn=2, percentile=10, most=100),
    )
    assert by_hand(chosen, "good", "worst") == {0, 1, 2}
    assert by_hand(chosen, "bad", "worst") == {97, 98, 99}
    assert by_hand(chosen, "good", "drawn") < {3, 4, 5, 6, 7, 8, 9}
    assert by_hand(chosen, "bad", "drawn") < {90, 91, 92, 93, 94, 95, 96}
    assert (chosen.worst, chosen.drawn, len(chosen.places)) == (6, 4, 10)
    good, bad = chosen.scorers
    assert (good.worst_border, good.percentile_border, bad.worst_border, bad.percentile_border) == (2, 9, 97, 90)
    assert (good.percentile, good.drawn, good.missing, good.in_sample) == (10, 2, 0, 5)


def test_hat_s_numbers_come_out_as_hat_says() -> None:
    draw = np.random.default_rng(4)
    columns = [draw.normal(size=250_000) for _ in range(6)]
    keys = draw.integers(0, 2**63, 250_000).astype(np.uint64)
    scorers = [scored(str(number), BETTER, values.tolist()) for number, values in enumerate(columns)]
    chosen = choose(scorers, keys, Sampling())
    assert [(one.worst, one.percentile, one.drawn, one.missing) for one in chosen.scorers] == [
        (1_000, 2_500, 1_000, 0)
    ] * 6
    worst = [set(np.argsort(values)[:1_000].tolist()) for values in columns]
    pools = [set(np.argsort(values)[:2_500].tolist()) for values in columns]
    assert chosen.worst == len(set.union(*worst))
    assert (chosen.drawn, len(chosen.places)) == (6_000, 10_000)
    for number in range(6):
        assert by_hand(chosen, str(number), "worst") <= worst[number]
        assert by_hand(chosen, str(number), "drawn") <= pools[number] - set.union(*worst)
    parts = split(np.arange(10_000), keys[chosen.places], Sampling().parts, seed=0)
    assert {name: parts.count(name) for name in HAT} == HAT


def test_what_one_scorer_chose_no_other_draws() -> None:
    same = [float(number) for number in range(100)]
    scorers = [scored(label, BETTER, same) for label in ("a", "b", "c")]
    chosen = choose(scorers, keys_of(100), Sampling(worst=4, drawn=3, percentile=10, most=100))
    assert (chosen.worst, chosen.drawn) == (4, 6)
    assert chosen.places.tolist() == list(range(10))
    assert chosen.chosen_by[0] == {"a": "worst", "b": "worst", "c": "worst"}
    assert all(len(by) == 1 for by in chosen.chosen_by[4:])
    assert [(one.drawn, one.missing) for one in chosen.scorers] == [(3, 0), (3, 0), (0, 3)]


def test_lines_without_a_score_are_no_ones_worst_and_counted() -> None:
    values = [NAN, 5.0, NAN, 1.0, 3.0, math.inf]
    (chosen,) = [choose([scored("s", BETTER, values)], keys_of(6), Sampling(worst=2, drawn=5, percentile=100))]
    assert by_hand(chosen, "s", "worst") == {3, 4}
    assert by_hand(chosen, "s", "drawn") == {1}
    (account,) = chosen.scorers
    assert (account.scored, account.unscored, account.percentile, account.missing) == (3, 3, 3, 4)


def test_a_scorer_that_scored_nothing_gives_nothing() -> None:
    chosen = choose([scored("none", WORSE, [NAN] * 9)], keys_of(9), Sampling())
    assert (len(chosen.places), chosen.scorers[0].worst_border, chosen.scorers[0].percentile) == (0, None, 0)


def test_ties_are_decided_by_the_text_and_not_by_the_order() -> None:
    keys, values = keys_of(1_000), [float(number < 300) for number in range(1_000)]
    sampling = Sampling(worst=100, drawn=50, percentile=20, most=120)
    chosen = choose([scored("repeats", WORSE, values)], keys, sampling)
    (account,) = chosen.scorers
    assert (account.worst_border, account.worst_tied, account.percentile_tied) == (1, 300, 300)
    turned = np.random.default_rng(1).permutation(1_000)
    again = choose([scored("repeats", WORSE, [values[place] for place in turned])], keys[turned], sampling)
    assert set(keys[chosen.places].tolist()) == set(keys[turned][again.places].tolist())
    assert max(chosen.places.tolist()) > 200  # not simply the first ones


COLUMN = st.lists(st.sampled_from([NAN, 0.0, 1.0, 2.0, 3.5, -1.0]), min_size=30, max_size=30)


@given(
    st.lists(COLUMN, min_size=1, max_size=3),
    st.integers(0, 8),
    st.integers(0, 8),
    st.integers(1, 20),
    st.integers(1, 40),
)
def test_the_counts_are_those_of_the_definition(
    columns: list[list[float]], worst: int, drawn: int, most: int, percentile: int
) -> None:
    if worst + drawn == 0:
        worst = 1
    sampling = Sampling(worst=worst, drawn=drawn, percentile=percentile, most=most)
    scorers = [scored(str(number), WORSE, values) for number, values in enumerate(columns)]
    keys = keys_of(30)
    chosen = choose(scorers, keys, sampling)
    first: set[int] = set()
    for number, (values, account) in enumerate(zip(columns, chosen.scorers, strict=True)):
        usable = sorted(-value for value in values if value == value)
        pool = math.ceil(len(usable) * percentile / 100)
        assert (account.scored, account.percentile) == (len(usable), pool)
        assert account.worst == min(worst, len(usable))
        if account.worst:
            assert account.worst_border == -usable[account.worst - 1]
        own = by_hand(chosen, str(number), "worst")
        assert all(values[place] >= account.worst_border for place in own)
        first |= own
    assert len(chosen.places) == min(most, chosen.worst + chosen.drawn) == len(set(chosen.places.tolist()))
    assert chosen.places.tolist() == sorted(chosen.places.tolist())
    assert len(first) <= chosen.worst


def test_the_bound_draws_from_the_whole_union() -> None:
    values = [float(number) for number in range(1_000)]
    sampling = Sampling(worst=100, drawn=100, percentile=50, most=60)
    chosen = choose([scored("s", BETTER, values)], keys_of(1_000), sampling)
    assert (chosen.worst, chosen.drawn, len(chosen.places)) == (100, 100, 60)
    assert 15 < len(by_hand(chosen, "s", "worst")) < 45
    other = choose([scored("s", BETTER, values)], keys_of(1_000), Sampling(100, 100, 50, 60, seed=1))
    assert other.places.tolist() != chosen.places.tolist()


@pytest.mark.parametrize("total", [0, 1, 2, 7, 9_999, 10_000, 12_345])
def test_sizes_are_the_parts_or_their_shares(total: int) -> None:
    sizes = apportioned(HAT, total)
    assert sum(sizes.values()) == total
    assert all(abs(sizes[name] - total * HAT[name] / 10_000) < 1 for name in HAT)
    if total == 10_000:
        assert sizes == HAT


def test_the_split_has_the_sizes_asked_for_and_keeps_groups_together() -> None:
    draw = random.Random(2)
    groups = np.array([draw.randrange(2_500) if draw.random() < 0.3 else 10_000 + i for i in range(10_000)])
    keys = keys_of(10_000)
    parts = split(groups, keys, HAT, seed=0)
    assert {name: parts.count(name) for name in HAT} == HAT
    members: dict[int, set[str]] = {}
    for group, part in zip(groups.tolist(), parts, strict=True):
        members.setdefault(group, set()).add(part)
    assert all(len(found) == 1 for found in members.values())
    turned = np.random.default_rng(3).permutation(10_000)
    assert [parts[place] for place in turned] == split(groups[turned], keys[turned], HAT, seed=0)
    assert split(groups, keys, HAT, seed=1) != parts


def test_a_line_more_moves_few_others() -> None:
    keys = keys_of(1_001)
    parts = split(np.arange(1_000), keys[:1_000], HAT, seed=0)
    more = split(np.arange(1_001), keys, HAT, seed=0)[:1_000]
    assert sum(one != other for one, other in zip(parts, more, strict=True)) <= 2


def test_a_group_larger_than_any_part_goes_where_most_room_is() -> None:
    groups = np.array([0] * 8 + [1, 2])
    parts = split(groups, keys_of(10), {"train": 5, "test": 5}, seed=0)
    assert len(set(parts[:8])) == 1
    assert set(parts[8:]).isdisjoint(parts[:8])


@pytest.mark.parametrize(
    "wrong",
    [
        {"worst": -1}, {"worst": 0, "drawn": 0}, {"percentile": 0}, {"percentile": 101}, {"most": 0}, {"parts": {}},
        {"parts": {"train": 0}}, {"near": 0}, {"near": 1.1},
    ],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Sampling(**wrong)
