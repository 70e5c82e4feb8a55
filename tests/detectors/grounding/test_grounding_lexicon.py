"""Word frequencies and vectors: stored and read again, found by word or by its core."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from small_lexicon import SHARES, VECTORS, hashes_of

from veriglot.detectors.grounding.document import FREQUENCY_SCALE, MEANING, Document, Lexicon

if TYPE_CHECKING:
    from pathlib import Path


def place(lexicon: Lexicon, word: str) -> int:
    (found,) = lexicon.places_of(hashes_of([word])).tolist()
    return found


def test_what_is_saved_is_loaded(lexicon: Lexicon, tmp_path: Path) -> None:
    lexicon.save(tmp_path)
    again = Lexicon.load(tmp_path)
    assert again.dimensions == lexicon.dimensions
    for name in ("frequencies", "keys", "vectors"):
        before, after = getattr(lexicon, name), getattr(again, name)
        assert np.array_equal(before, after)
        assert before.dtype == after.dtype


def test_frequencies_come_back_to_a_twentieth(lexicon: Lexicon) -> None:
    document = hashes_of(list(SHARES))
    expected = np.minimum(np.log2(1 + np.array(list(SHARES.values())) * 8192), FREQUENCY_SCALE)
    assert np.abs(lexicon.word_frequency(document.word) - expected).max() <= 0.5 / 20 + 1e-6
    assert np.abs(lexicon.stem_frequency(document.stem) - expected).max() <= 0.5 / 20 + 1e-6


def test_frequencies_have_a_ceiling_and_order() -> None:
    stored = Lexicon.stored_frequency(np.array([0.0, 1e-6, 1e-4, 0.01, 0.5, 1.0]))
    assert stored.tolist() == sorted(stored.tolist())
    assert stored[0] == 0
    assert stored[-1] == stored[-2] == FREQUENCY_SCALE * 20


def test_common_and_short_words_tell_less(lexicon: Lexicon) -> None:
    words = ["the", "river", "zyx", "zy", "的", "河"]
    rarity = dict(zip(words, lexicon.rarity(hashes_of(words)).tolist(), strict=True))
    assert 0 < rarity["the"] < rarity["river"] < rarity["zyx"] <= 1
    assert rarity["zy"] == pytest.approx(2 / 3)
    assert rarity["的"] < rarity["河"] == 1  # ideographs are short and tell all the same


@pytest.mark.parametrize("word", VECTORS)
def test_a_listed_word_has_its_vector(lexicon: Lexicon, word: str) -> None:
    found = lexicon.vectors_at(lexicon.places_of(hashes_of([word])))
    assert found.shape == (1, lexicon.dimensions)
    assert found[0, :2].tolist() == pytest.approx(VECTORS[word], abs=0.005)
    assert np.array_equal(lexicon.meanings_of(hashes_of([word])), found[:, :MEANING])


@pytest.mark.parametrize(
    ("word", "core"),
    [("rivers", "river"), ("Flusses", "fluss"), ("STONES", "stone"), ("الكتاب", "كتاب"), ("وكتاب", "كتاب")],
)
def test_an_inflected_word_borrows_the_vector_of_its_core(lexicon: Lexicon, word: str, core: str) -> None:
    assert place(lexicon, word) == place(lexicon, core) >= 0


@pytest.mark.parametrize("word", ["riversides", "unknown", "hausboote", "riv", "x", "河川"])
def test_a_word_without_a_known_core_has_none(lexicon: Lexicon, word: str) -> None:
    assert place(lexicon, word) == -1
    assert not lexicon.vectors_at(np.array([-1])).any()


def test_places_of_many_words_at_once(lexicon: Lexicon) -> None:
    document = Document(["The rivers of stone, unknown HAUS und Haus: الكتاب 河"], None)
    one_by_one = [
        place(lexicon, w) for w in ["The", "rivers", "of", "stone", "unknown", "HAUS", "und", "Haus", "الكتاب", "河"]
    ]
    assert lexicon.places_of(document).tolist() == one_by_one
    assert sum(p >= 0 for p in one_by_one) == 6


def test_an_empty_table_knows_nothing() -> None:
    empty = Lexicon(np.zeros((2, 1 << 17), np.uint8), np.zeros(0, np.uint64), np.zeros((0, 40), np.int8))
    document = Document(["The rivers"], "en")
    assert empty.places_of(document).tolist() == [-1, -1]
    assert not empty.meanings_of(document).any()
