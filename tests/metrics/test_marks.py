from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.metrics.counts import marked_types
from veriglot.metrics.spans import char_bounds, covered, marked, probabilities, unit_marks, unit_probabilities

LENGTH = 40
_starts = st.tuples(st.integers(0, LENGTH - 1), st.integers(1, 12))
spans = st.lists(_starts.map(lambda p: (p[0], min(p[0] + p[1], LENGTH))), max_size=6)


def array(rows: list[tuple[int, int]]) -> np.ndarray:
    return np.array(rows, dtype=np.int32).reshape(-1, 2)


@st.composite
def disjoint(draw: st.DrawFn) -> list[tuple[int, int]]:
    cuts = sorted(draw(st.sets(st.integers(0, LENGTH), max_size=16)))
    return list(zip(cuts[::2], cuts[1::2], strict=False))


@pytest.mark.fuzz
@given(disjoint(), spans)
def test_marked_is_overlap_in_one_code_point(units: list[tuple[int, int]], marks: list[tuple[int, int]]) -> None:
    expected = [any(set(range(*unit)) & set(range(*mark)) for mark in marks) for unit in units]
    assert marked(array(units), array(marks)).tolist() == expected


@pytest.mark.fuzz
@given(spans)
def test_covered_is_the_union(marks: list[tuple[int, int]]) -> None:
    expected = {point for mark in marks for point in range(*mark)}
    assert set(np.flatnonzero(covered(LENGTH, array(marks)))) == expected


def test_a_mark_with_the_range_of_a_unit_is_of_that_unit_alone() -> None:
    facts = array([(0, 37), (11, 27), (38, 47)])  # an apposition inside a clause
    assert unit_marks(facts, array([(0, 37)])).tolist() == [0, -1, -1]
    assert unit_marks(facts, array([(0, 37), (11, 27)])).tolist() == [0, 1, -1]
    assert unit_marks(facts, array([(0, 30)])).tolist() == [0, 0, -1]
    assert unit_marks(facts, array([(0, 40), (12, 14), (12, 14)])).tolist() == [1, 1, 0]


@pytest.mark.fuzz
@given(disjoint(), spans)
def test_words_take_the_shortest_mark_over_them(units: list[tuple[int, int]], marks: list[tuple[int, int]]) -> None:
    expected = [
        min(
            (i for i, (start, end) in enumerate(marks) if start < unit[1] and unit[0] < end),
            key=lambda i: marks[i][1] - marks[i][0],
            default=-1,
        )
        for unit in units
    ]
    assert unit_marks(array(units), array(marks)).tolist() == expected


def test_a_unit_may_hold_several_types() -> None:
    table = marked_types(
        array([(0, 3), (4, 8)]), array([(0, 5), (2, 3), (6, 7), (0, 8)]), ["entity", "invented", None, "odd"],
        ["entity", "invented", "relation"],
    )  # fmt: skip
    assert table.tolist() == [[True, True, False], [True, False, False]]


def test_gaps_take_the_smaller_neighbour_and_edges_none() -> None:
    #        "ab" cd. ef
    got = probabilities(9, array([(6, 8), (1, 3)]), np.array([0.2, 0.9]))
    assert got.tolist() == [0, 0.9, 0.9, 0.2, 0.2, 0.2, 0.2, 0.2, 0]
    assert unit_probabilities(array([(0, 1), (0, 3), (3, 9)]), got).tolist() == [0, 0.9, 0.2]


@pytest.mark.fuzz
@given(disjoint(), st.lists(st.floats(0, 1), min_size=8, max_size=8))
def test_a_word_keeps_its_own_probability(words: list[tuple[int, int]], values: list[float]) -> None:
    bounds, confidences = array(words), np.array(values[: len(words)])
    by_character = probabilities(LENGTH, bounds, confidences)
    assert by_character.shape == (LENGTH,)
    assert unit_probabilities(bounds, by_character).tolist() == confidences.tolist()


def test_characters_are_units_of_one_code_point() -> None:
    assert marked(char_bounds("ab cd"), array([(1, 4)])).tolist() == [False, True, True, False]
