"""What the detector knows of words beforehand: how common each is, and a small vector of its meaning.

Frequencies are a table of 2^17 slots each for words and stems, indexed by hash and blind to the language: a slot
holds the highest frequency that any word in it has in any language. Vectors were distilled from a multilingual
sentence encoder, so that words of one meaning lie close across languages; a word that has none borrows that of
its longest known core, and else is zero, which the features say. Both are made by `veriglot.training.grounding`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.document import slots

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.detectors.grounding.document import Document

__all__ = ["FREQUENCY_BITS", "MEANING", "VECTOR_SCALE", "Lexicon", "vector_key"]

FREQUENCY_BITS = 17
FREQUENCY_SCALE = 12.0  # log2(1 + 8192 * share of the words) of the commonest words, and so the largest frequency
VECTOR_SCALE = 127.0
MEANING = 24  # the first numbers of a vector have length 1 and say what a word means; the rest say how it is used
_STEPS_PER_UNIT = 20.0  # a frequency is stored as an unsigned byte in twentieths

# How many code points to take off the front and the back of an unknown word, in the order of trying.
_ENDINGS = ((0, 1), (0, 2), (0, 3))
_CLITICS = ((2, 0), (1, 0), (3, 0), (0, 1), (2, 1), (1, 1), (0, 2), (2, 2))
_SEMITIC = (0x0590, 0x0700)  # Hebrew, Arabic: articles and conjunctions are written on to the word
_MIN_CORE = 3
_MIN_SHARE = 0.6


def vector_key(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The part of a word's hash that the vector table is keyed by: its upper 32 bits, as 64-bit numbers."""
    return words >> np.uint64(32)


@dataclass(frozen=True)
class Lexicon:
    """Word frequencies and vectors.

    Attributes:
        frequencies: unsigned bytes, shape (2, 2^17): stems, then words.
        keys: sorted keys of the words that have a vector, shape (v,).
        vectors: signed bytes, shape (v, d).
    """

    frequencies: NDArray[np.uint8]
    keys: NDArray[np.uint64]
    vectors: NDArray[np.int8]

    @classmethod
    def load(cls, folder: Path) -> Lexicon:
        """Read the three tables from a folder of weights; the vectors are mapped, not read."""
        return cls(
            np.load(folder / "frequencies.npy"),
            np.load(folder / "vector_keys.npy").astype(np.uint64),
            np.load(folder / "vectors.npy", mmap_mode="r"),
        )

    def save(self, folder: Path) -> None:
        """Write the three tables into a folder of weights."""
        np.save(folder / "frequencies.npy", self.frequencies)
        np.save(folder / "vector_keys.npy", self.keys.astype(np.uint32))
        np.save(folder / "vectors.npy", self.vectors)

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        return int(self.vectors.shape[1])

    def stem_frequency(self, hashes: NDArray[np.uint64]) -> NDArray[np.float32]:
        """log2(1 + 8192 * share) of each stem, 0 to 12; 0 for a stem never seen."""
        return self._frequency(0, hashes)

    def word_frequency(self, hashes: NDArray[np.uint64]) -> NDArray[np.float32]:
        """log2(1 + 8192 * share) of each word, 0 to 12; 0 for a word never seen."""
        return self._frequency(1, hashes)

    def _frequency(self, row: int, hashes: NDArray[np.uint64]) -> NDArray[np.float32]:
        index = (hashes >> np.uint64(64 - FREQUENCY_BITS)).astype(np.int64)
        stored: NDArray[np.float32] = self.frequencies[row, index].astype(np.float32)
        stored /= np.float32(_STEPS_PER_UNIT)
        return stored

    @staticmethod
    def stored_frequency(shares: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Shares of the words of a language as the bytes of `frequencies`."""
        scaled = np.minimum(np.log2(1.0 + shares * 8192.0), FREQUENCY_SCALE)
        return np.round(scaled * _STEPS_PER_UNIT).astype(np.uint8)

    def rarity(self, document: Document) -> NDArray[np.float32]:
        """How much each word of a text tells, from near 0 (function words) to 1 (rare words); shape (n,).

        Very short words outside ideographs tell less.
        """
        common = self.stem_frequency(document.stem)
        weight = np.clip(FREQUENCY_SCALE - common, 0.5, FREQUENCY_SCALE) / FREQUENCY_SCALE
        short = np.minimum(1.0, document.lengths / 3.0)
        rarity: NDArray[np.float32] = np.where(document.ideographic, weight, weight * short).astype(np.float32)
        return rarity

    def places_of(self, document: Document) -> NDArray[np.int64]:
        """The row of `vectors` that each word has, or -1; shape (n,)."""
        words = document.distinct
        places = slots(self.keys, vector_key(words.hashes))
        unknown = np.flatnonzero((places < 0) & ~document.ideographic[words.first])
        if len(unknown):
            places[unknown] = self._by_core(document, words.first[unknown])
        return places[words.inverse]

    def vectors_at(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of such rows, zero for -1; shape (n, d)."""
        known = places >= 0
        vectors = np.zeros((len(places), self.dimensions), np.float32)
        vectors[known] = self.vectors[places[known]]
        vectors /= np.float32(VECTOR_SCALE)
        return vectors

    def meanings_of(self, document: Document) -> NDArray[np.float32]:
        """The part of each word's vector whose dot product says how alike two words are; shape (n, m)."""
        return self.vectors_at(self.places_of(document))[:, :MEANING]

    def _by_core(self, document: Document, asked: NDArray[np.int64]) -> NDArray[np.int64]:
        """The table place of the longest known core of each asked word, or -1."""
        places = np.full(len(asked), -1, np.int64)
        first = document.folded[document.bounds[asked, 0]]
        semitic = (first >= _SEMITIC[0]) & (first < _SEMITIC[1])
        for applies, cuts in ((semitic, _CLITICS), (~semitic, _ENDINGS)):
            for front, back in cuts:
                lengths = document.lengths[asked]
                core = lengths - front - back
                fits = (places < 0) & applies & (core >= np.maximum(_MIN_CORE, _MIN_SHARE * lengths))
                if fits.any():
                    words = asked[fits]
                    hashes = document.hashes.of(document.starts[words] + front, document.ends[words] - back)
                    places[fits] = slots(self.keys, vector_key(hashes))
        return places
