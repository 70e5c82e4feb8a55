"""Types are drawn so that accepted errors are balanced; diversity measures agree with hand calculations."""

from __future__ import annotations

import random
from collections import Counter
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.datasets.halluverse.pairs import (
    TYPES,
    BalancedDraw,
    assign_types,
    births_of,
    block_sizes,
    diversity_of,
    spread_of,
)
from veriglot.wikipedia.wikidata import Item, Person


def drawn(total: int, passing: dict[str, float], seed: int) -> tuple[Counter[str], Counter[str]]:
    """Requested and accepted errors, for given acceptance rates of the types."""
    draw, chance = BalancedDraw(TYPES, f"test {seed}"), random.Random(seed)
    asked: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for size in block_sizes(total):
        for type_ in draw.block(size):
            passed = chance.random() < passing[type_]
            draw.note(type_, taken=passed)
            asked[type_] += 1
            taken[type_] += passed
    return asked, taken


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("passing", [(1.0, 1.0, 1.0), (0.95, 0.7, 0.5), (1.0, 0.35, 0.9)])
def test_what_passes_is_even(passing: tuple[float, float, float], seed: int) -> None:
    asked, taken = drawn(600, dict(zip(TYPES, passing, strict=True)), seed)
    assert asked.total() == 600
    assert max(taken.values()) - min(taken.values()) <= 6


def test_what_never_passes_does_not_take_all() -> None:
    asked, taken = drawn(600, {"entity": 1.0, "relation": 0.0, "sentence": 1.0}, 1)
    assert asked["relation"] <= 420
    assert abs(taken["entity"] - taken["sentence"]) <= 2


@given(st.integers(min_value=0, max_value=3000))
def test_blocks_are_all_there_is(total: int) -> None:
    sizes = list(block_sizes(total))
    assert sum(sizes) == total
    assert all(0 < size <= 24 for size in sizes)


@given(
    st.lists(st.tuples(st.sampled_from(TYPES), st.sets(st.sampled_from(TYPES))), max_size=30),
)
def test_a_deck_is_dealt_as_it_is(given_: list[tuple[str, set[str]]]) -> None:
    deck, able = [one for one, _ in given_], [types for _, types in given_]
    found = assign_types(deck, able)
    assert sorted(found) == sorted(deck)
    fitting = sum(one in types for one, types in zip(found, able, strict=True))
    assert fitting >= sum(one in types for one, types in zip(deck, able, strict=True)) / 2


def test_rare_gifts_are_used() -> None:
    able = [{"entity", "relation"}, {"entity"}, {"entity"}]
    assert assign_types(["entity", "entity", "relation"], able) == ["relation", "entity", "entity"]


def test_spread_counts_people_and_shares_them_out() -> None:
    spread = spread_of([["a"], ["a", "b"], ["b", "b"], []], {"a": "actor"})
    assert (spread.people, spread.known, spread.coverage) == (4, 3, 0.75)
    assert [(one.label, one.people, one.weight) for one in spread.categories] == [("actor", 2, 1.5), ("b", 2, 1.5)]
    assert spread.entropy == pytest.approx(log(2))
    assert spread.evenness == pytest.approx(1)
    assert spread.effective == pytest.approx(2)
    assert spread.largest == 0.5
    uneven = spread_of([["a"]] * 3 + [["b"]], {})
    entropy = -(0.75 * log(0.75) + 0.25 * log(0.25))
    assert uneven.entropy == pytest.approx(entropy)
    assert uneven.evenness == pytest.approx(entropy / log(2))
    assert uneven.effective == pytest.approx(exp(entropy))
    nothing = spread_of([[], []], {})
    assert (nothing.coverage, nothing.evenness, nothing.effective, nothing.largest) == (0, None, 0, None)
    assert spread_of([], {}).coverage is None


def test_years_of_birth_fall_into_equal_spans() -> None:
    births = births_of([1903, 1909, 1910, None, 1951])
    assert (births.people, births.known, births.earliest, births.latest, births.median) == (5, 4, 1903, 1951, 1909.5)
    assert [(one.start, one.people) for one in births.spans] == [
        (1900, 2), (1910, 1), (1920, 0), (1930, 0), (1940, 0), (1950, 1),
    ]  # fmt: skip
    old = births_of([-43, 1990])
    assert (old.spans[0].start, old.spans[0].years, len(old.spans)) == (-100, 100, 21)
    assert sum(one.people for one in old.spans) == 2
    assert births_of([1900], within=(1850, 1960)).spans[0].start == 1850
    assert births_of([None]).spans == ()


def test_people_are_described_by_all_three() -> None:
    people = [
        Person("Q1", 1, born=1900, occupations=(Item("Q9", "writer"),), citizenships=(Item("Q40", "Austria"),)),
        Person("Q2", 1, occupations=(Item("Q9", "writer"), Item("Q8"))),
    ]
    found = diversity_of(people)
    assert [(one.label, one.people) for one in found.professions.categories] == [("writer", 2), ("Q8", 1)]
    assert found.countries.coverage == 0.5
    assert found.births.known == 1
