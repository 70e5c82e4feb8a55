"""Word vectors are the plain means of the token vectors that overlap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.encoders.base import TokenVectors

EDGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12)
WORDS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), max_size=8)


def encoded(bounds: list[tuple[int, int]]) -> TokenVectors:
    vectors = np.random.default_rng(0).normal(size=(len(bounds), 3)).astype(np.float32)
    return TokenVectors(np.array(bounds, np.int64).reshape(-1, 2), vectors)


@pytest.mark.fuzz
@given(gaps_and_lengths=EDGES, words=WORDS)
def test_each_word_is_the_mean_of_what_overlaps(
    gaps_and_lengths: list[tuple[int, int]], words: list[tuple[int, int]]
) -> None:
    bounds, place = [], 0
    for gap, length in gaps_and_lengths:
        bounds.append((place + gap, place + gap + length))
        place += gap + length
    text = encoded(bounds)
    wanted = np.array([(start, start + length) for start, length in words], np.int64).reshape(-1, 2)
    found = text.of_words(wanted)
    for (low, high), vector in zip(wanted.tolist(), found, strict=True):
        # An empty token counts for a word that it lies inside.
        overlap = [n for n, (a, b) in enumerate(bounds) if a < high and b > low]
        mean = text.vectors[overlap].mean(0) if overlap else np.zeros(3)
        assert vector == pytest.approx(mean, abs=1e-6)


def test_tokens_that_share_a_place_all_count() -> None:
    text = encoded([(0, 1), (0, 1), (1, 2)])
    (vector,) = text.of_words(np.array([[0, 1]], np.int64))
    assert vector == pytest.approx(text.vectors[:2].mean(0))


def test_a_word_without_tokens_is_zero() -> None:
    text = encoded([(0, 2), (5, 7)])
    found = text.of_words(np.array([[3, 4], [1, 6], [9, 12]], np.int64))
    assert not found[[0, 2]].any()
    assert found[1] == pytest.approx(text.vectors.mean(0))
    assert encoded([]).of_words(np.array([[0, 3]], np.int64)).tolist() == [[0.0] * 3]
    assert text.of_words(np.zeros((0, 2), np.int64)).shape == (0, 3)
