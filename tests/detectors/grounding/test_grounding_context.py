"""Windows of the evidence, and the surroundings of a word in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.detectors.grounding.document import Document
from veriglot.detectors.grounding.features import STRIDE, Windows, around, unit_length

WORDS = st.sampled_from(["rome", "old", "mill", "river", "stands", "1998", "roman", "romans"])
# Lists of a drawn length: left to itself, hypothesis draws few that are longer than a window.
PASSAGE = st.integers(0, 60).flatmap(lambda n: st.lists(WORDS, min_size=n, max_size=n)).map(" ".join)
PASSAGES = st.lists(PASSAGE, min_size=1, max_size=4)


@pytest.mark.fuzz
@given(passages=PASSAGES)
def test_windows_never_cross_passages_and_hold_every_word(passages: list[str]) -> None:
    evidence = Document(passages, "en")
    windows = Windows(evidence)
    seen = np.zeros(len(evidence), int)
    for first, last in zip(windows.first.tolist(), windows.last.tolist(), strict=True):
        assert 0 <= last - first <= 2 * STRIDE
        assert len(set(evidence.passage[first:last].tolist())) <= 1
        seen[first:last] += 1
    assert ((seen == 1) | (seen == 2)).all()
    for number in range(len(passages)):
        inside = np.flatnonzero(evidence.passage == number)
        assert (seen[inside[STRIDE:]] == 2).all()


@pytest.mark.fuzz
@given(passages=PASSAGES, asked=st.lists(st.sampled_from(["rome", "old", "mill", "nothing", "romanesque"]), max_size=8))
def test_holding_says_which_stem_stands_in_which_window(passages: list[str], asked: list[str]) -> None:
    evidence, response = Document(passages, "en"), Document([" ".join(asked)], "en")
    windows = Windows(evidence)
    ours, none = windows.holding(response.stem, response.stem[:0])
    bounds = list(zip(windows.first.tolist(), windows.last.tolist(), strict=True))
    wanted = [[float(stem in evidence.stem[s:e]) for s, e in bounds] for stem in response.stem]
    assert ours.tolist() == wanted
    assert none.shape == (0, len(windows))


@pytest.mark.fuzz
@given(words=st.integers(1, 12), windows=st.integers(1, 5), reach=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_around_is_the_share_of_the_neighbours_by_rarity(words: int, windows: int, reach: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    held = rng.integers(0, 2, (words, windows)).astype(np.float32)
    rarity = rng.uniform(0.05, 1, words).astype(np.float32)
    found = around(held, rarity, reach)
    for i in range(words):
        near = [k for k in range(max(0, i - reach), min(words, i + reach + 1)) if k != i]
        total = sum(rarity[k] for k in near)
        for w in range(windows):
            wanted = sum(held[k, w] * rarity[k] for k in near) / total if near else 0.0
            assert found[i, w] == pytest.approx(wanted, abs=2e-3)


def test_means_are_weighted_and_of_length_one() -> None:
    evidence = Document(["one two", "", "three"], "en")
    vectors = np.array([[1, 0], [0, 1], [0, 0]], np.float32)
    means = Windows(evidence).means(vectors, np.array([3, 4, 1], np.float32))
    assert means.tolist() == [pytest.approx([0.6, 0.8]), [0, 0], [0, 0]]
    assert unit_length(np.zeros((2, 3), np.float32)).tolist() == [[0, 0, 0]] * 2
