"""Windows: within their room, without gaps, at sentence borders, and with what stands between two in one of them."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.judging.classifiers import split_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

SENTENCE = "The old lighthouse of Norva stands on a rock. "


def tokens_of(text: str) -> NDArray[np.int64]:
    """Tokens of at most three letters, the first of a word with the space before it, as SentencePiece has them."""
    found = [m.span() for m in re.finditer(r"\s?\w{1,3}|\s?[^\w\s]", text)]
    return np.array(found, np.int64).reshape(-1, 2)


def count(text: str) -> int:
    return len(tokens_of(text))


texts = st.lists(
    st.sampled_from(
        ["Norva ", "lighthouse ", "end. ", "Why? ", "灯塔建于岛上。", "a", "\n", "1901, ", "… ", "ประภาคาร "]
    ),
    max_size=120,
).map("".join)


@given(texts, st.integers(1, 40), st.booleans())
def test_stretches_fit_and_leave_nothing_out(text: str, room: int, overlap: bool) -> None:
    bounds = tokens_of(text)
    found = split_chunks(text, bounds, room, overlap=overlap)
    assert found[0][0] == 0
    assert found[-1][1] == len(text)
    for (start, end), (following, last) in pairwise(found):
        assert start < following <= end <= last, "in order, with no gap"
        if not overlap:
            assert following == end
    for start, end in found:
        inside = ((bounds[:, 0] >= start) & (bounds[:, 1] <= end)).sum()
        assert inside <= room


@pytest.mark.parametrize("room", [24, 33, 64, 200])
def test_whatever_fits_in_an_eighth_stands_whole_in_a_window(room: int) -> None:
    words = [f"w{number}" for number in range(2_100)]  # one sentence without end: the worst case
    text = " ".join(words)
    found = [text[start:end] for start, end in split_chunks(text, tokens_of(text), room, overlap=True)]
    size = max(room // 8 // 2, 1)  # a word has at most two tokens
    for place in range(len(words) - size):
        needle = " ".join(words[place : place + size])
        assert any(needle in window for window in found)


def test_neighbouring_sentences_stand_together_in_a_window() -> None:
    sentences = [f"The keeper number {number} lived on the rock." for number in range(300)]
    text = " ".join(sentences)
    room = 4 * count(sentences[0])
    found = [text[start:end] for start, end in split_chunks(text, tokens_of(text), room, overlap=True)]
    for one, other in pairwise(sentences):
        assert any(f"{one} {other}" in window for window in found)
    assert all(re.fullmatch(r"\s*The keeper number .*\.\s*", window) for window in found), "no sentence is cut"


def test_a_text_that_fits_is_one_stretch() -> None:
    assert split_chunks(SENTENCE, tokens_of(SENTENCE), count(SENTENCE), overlap=True) == [(0, len(SENTENCE))]
    assert split_chunks("", tokens_of(""), 1, overlap=True) == [(0, 0)]


@pytest.mark.parametrize("overlap", [True, False])
def test_the_number_of_windows_grows_with_the_text_alone(overlap: bool) -> None:
    text = SENTENCE * 2_000
    found = split_chunks(text, tokens_of(text), 100, overlap=overlap)
    assert len(found) <= 2 * len(tokens_of(text)) / 100 + 2
