"""Laying an annotated copy of a text onto the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.formats.fava import align


def placed(first: str, second: str, what: str) -> str | None:
    start = first.index(what)
    found = align(first, second).span(start, start + len(what))
    return None if found is None else second[found[0] : found[1]]


def test_white_space_does_not_count() -> None:
    assert placed("It  rains \u00a0in Lima .", "It rains in Lima.", " Lima ") == "Lima"
    assert align("a b\nc", "ab c").exact


def test_a_letter_moved_over_a_tag_is_found() -> None:
    assert placed("Holz ist lbenholz E hart", "Holz ist Elbenholz hart", "lbenholz") == "lbenholz"


def test_moved_words_are_found_where_they_stand() -> None:
    first = "In it rains Lima every day of the long winter."
    assert placed(first, "In Lima it rains every day of the long winter.", "Lima") == "Lima"


def test_missing_words_have_no_place() -> None:
    assert placed("It rains fish today.", "It rains today.", "fish") is None


@pytest.mark.fuzz
@given(st.text(max_size=40), st.text(max_size=40))
def test_places_are_in_bounds_and_hold_the_same_letter(first: str, second: str) -> None:
    alignment = align(first, second)
    pairs = [(i, j) for i, j in enumerate(alignment.places) if j >= 0]
    assert all(first[i] == second[j] for i, j in pairs)
    assert len(pairs) == alignment.matched <= alignment.solid
    for start in range(len(first)):
        found = alignment.span(start, len(first))
        assert found is None or 0 <= found[0] < found[1] <= len(second)


@pytest.mark.fuzz
@given(st.lists(st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1), min_size=1, max_size=8), st.data())
def test_other_spacing_is_exact(words: list[str], data: st.DataObject) -> None:
    first, second = " ".join(words), "  \n".join(words)
    which = data.draw(st.integers(0, len(words) - 1))
    start = len(" ".join(words[:which])) + (which > 0)
    found = align(first, second).span(start, start + len(words[which]))
    assert found is not None
    assert second[found[0] : found[1]] == words[which]
