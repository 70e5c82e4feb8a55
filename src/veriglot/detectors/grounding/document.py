"""Texts made ready for comparison: folded, in words, with hashes; and what is known of words beforehand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.text.normalization import fold_codes
from veriglot.text.segmentation import word_bounds
from veriglot.text.unicode import Kind, code_points, kind_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from veriglot.arrays import Bools, Float32s, Float64s, Int8s, Int64s, Numbers, UInt8s, UInt32s, UInt64s

__all__ = ["MEANING", "Document", "Lexicon", "mixed", "slots"]


# Rolling hashes: the hash of any stretch of a text in constant time, whole arrays at a time.
#
# A text of code points c_0 .. c_{n-1} has the prefix sums P_i = sum of f(c_k) * B^k over k < i, modulo 2^64, with an
# odd base B. A stretch [s, e) hashes to (P_e - P_s) * B^-s, whatever its place, so equal stretches meet. Odd numbers
# have inverses modulo 2^64, which makes B^-s a table look-up.


_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)
_SPREAD = np.uint64(0xBF58476D1CE4E5B9)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_MIN_TABLE = 1 << 14

_tables: dict[str, UInt64s] = {}


def _powers(length: int) -> tuple[UInt64s, UInt64s]:
    """B^k and B^-k for k < length at least, from a table that grows by doubling."""
    if not _tables or len(_tables["powers"]) < length:
        size = max(_MIN_TABLE, 1 << (length - 1).bit_length())
        for name, base in (("powers", _BASE), ("inverses", _INVERSE)):
            factors = np.full(size, base, np.uint64)
            factors[0] = 1
            _tables[name] = np.multiply.accumulate(factors)
    return _tables["powers"], _tables["inverses"]


def mixed(hashes: UInt64s) -> UInt64s:
    """Spread every input bit over the output, so that the top bits can be a table index."""
    hashes = hashes * _MIX
    hashes ^= hashes >> np.uint64(32)
    hashes *= _MIX
    hashes ^= hashes >> np.uint64(29)
    return hashes


class Stretches:
    """Hashes of stretches of one text."""

    def __init__(self, codes: UInt32s) -> None:
        powers, self._inverses = _powers(len(codes) + 1)
        self._sums = np.zeros(len(codes) + 1, np.uint64)
        values = (codes.astype(np.uint64) + np.uint64(1)) * _SPREAD
        np.cumsum(values * powers[: len(codes)], out=self._sums[1:])

    def of(self, starts: Int64s, ends: Int64s) -> UInt64s:
        """The hash of each stretch [start, end), shape of the inputs."""
        return mixed((self._sums[ends] - self._sums[starts]) * self._inverses[starts])

    def grams(self, size: int) -> UInt64s:
        """The hash of every stretch of `size` code points, in order; shape (max(0, n - size + 1),). Not mixed."""
        count = max(0, len(self._sums) - size)
        return (self._sums[size:] - self._sums[:count]) * self._inverses[:count]


def slots(sorted_table: UInt64s, asked: UInt64s) -> Int64s:
    """The index of each asked hash in a sorted table, or -1 where it is absent."""
    if not len(sorted_table):
        return np.full(len(asked), -1, np.int64)
    places = np.searchsorted(sorted_table, asked)
    places[places == len(sorted_table)] = 0
    places[sorted_table[places] != asked] = -1
    return places


STEM = 5  # code points: words that agree in their first five count as one stem
_GAP = 0x20  # what parts words in the stream
_WALL = 0xFFFF  # what parts passages in the stream: no stretch crosses it
_GROUPED = re.compile(r"(?<![\d.,'’٬])\d{1,3}([.,'’٬])\d{3}(?:\1\d{3})*(?!\d|\1\d)")  # 1,200
_IDEOGRAPHS = ((0x2E80, 0xA000), (0xF900, 0xFB00), (0x20000, 0x32000))


class Distinct(NamedTuple):
    """The different words of a text, sorted by hash."""

    hashes: UInt64s  # shape (k,)
    first: Int64s  # a word of the text that each stands for, shape (k,)
    inverse: Int64s  # which of them each word of the text is, shape (n,)
    counts: Int64s  # how often each occurs, shape (k,)


class Document:
    """One text, or several passages as one, in the form that features are taken from.

    The stream is the text with every run of characters between words made one blank, so that stretches of it compare
    words and their order and are blind to punctuation, and to what groups digits: 1,200 is 1200. Chinese and Japanese
    words touch each other in it, as they do in the text.

    Attributes:
        codes: code points of the joined text, as written.
        folded: the same, folded (`text.fold`), same shape.
        kinds: what each code point is (`unicode_table.Kind`), same shape.
        bounds: the words, half-open, shape (n, 2).
        passage: the passage of each word, shape (n,).
        offsets: where each passage begins in the joined text.
        starts, ends: where each word stands in the stream, shape (n,).
        lengths: code points of each word in the stream, shape (n,).
        word, stem: hashes, shape (n,).
        ideographic: whether a word is written in ideographs or kana, shape (n,).
    """

    def __init__(self, passages: Sequence[str], language: str | None, table: UInt32s | None = None) -> None:
        text = "\n".join(passages)
        self.codes = code_points(text)
        self.folded = fold_codes(self.codes)
        if table is not None:  # another alphabet's letters by sound; see text/unicode.py
            known = self.folded < len(table)
            self.folded = np.where(known, table[np.where(known, self.folded, 0)], self.folded)
        self.kinds = kind_table()[self.codes]
        self.bounds = word_bounds(text, language).astype(np.int64)
        lengths = np.array([len(p) + 1 for p in passages], np.int64)
        self.offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        self.passage = np.searchsorted(self.offsets, self.bounds[:, 0], side="right") - 1
        self._lay_stream(text)
        self.word = self.hashes.of(self.starts, self.ends)
        self.stem = self.hashes.of(self.starts, self.starts + np.minimum(self.lengths, STEM))
        first = self.folded[self.bounds[:, 0]]
        self.ideographic = np.zeros(len(self), bool)
        for low, high in _IDEOGRAPHS:
            self.ideographic |= (first >= low) & (first < high)

    def __len__(self) -> int:
        return len(self.bounds)

    def _lay_stream(self, text: str) -> None:
        edges = np.zeros(len(self.codes) + 1, np.int8)
        edges[self.bounds[:, 0]] += 1
        edges[self.bounds[:, 1]] -= 1
        inside = np.cumsum(edges[:-1], dtype=np.int8) > 0
        keep = inside.copy()
        keep[1:] |= inside[:-1]  # the first character after a word stands for all up to the next
        for number in _GROUPED.finditer(text):
            keep[[index for index in range(*number.span()) if text[index] == number[1]]] = False
        laid = np.where(inside, self.folded, np.uint32(_GAP))
        walls = self.offsets[1:-1] - 1
        laid[walls] = _WALL
        keep[walls] = True
        places = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)]) + 1
        self.stream = np.concatenate([[_GAP], laid[keep], [_GAP]]).astype(np.uint32)
        self.hashes = Stretches(self.stream)
        self.starts = places[self.bounds[:, 0]]
        self.ends = places[self.bounds[:, 1] - 1] + 1
        self.lengths = self.ends - self.starts

    @cached_property
    def distinct(self) -> Distinct:
        """The different words of the text."""
        return Distinct(*np.unique(self.word, return_index=True, return_inverse=True, return_counts=True))

    def counts_in_words(self, flags: Bools) -> Int64s:
        """How many flagged code points each word holds; `flags` has the shape of `codes`."""
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(flags)])
        counts: Int64s = sums[self.bounds[:, 1]] - sums[self.bounds[:, 0]]
        return counts

    def mean_in_words(self, flags: Bools) -> Float64s:
        """The flagged share of each word; `flags` has the shape of `stream`."""
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(flags)])
        means: Float64s = (sums[self.ends] - sums[self.starts]) / self.lengths
        return means

    def of_kind(self, kind: Kind) -> Bools:
        """Which code points are of a kind, shape of `codes`."""
        flags: Bools = (self.kinds & kind) != 0
        return flags


# What the detector knows of words beforehand: how common each is, and a small vector of its meaning.
#
# Frequencies are a table of 2^17 slots each for words and stems, indexed by hash and blind to the language: a slot
# holds the highest frequency that any word in it has in any language. Vectors were distilled from a multilingual
# sentence encoder, so that words of one meaning lie close across languages; a word that has none borrows that of
# its longest known core, and else is zero, which the features say. Both are made by `veriglot.training.grounding`.


_FREQUENCY_BITS = 17
FREQUENCY_SCALE = 12.0  # log2(1 + 8192 * share of the words) of the commonest words, and so the largest frequency
_VECTOR_SCALE = 127.0
MEANING = 24  # the first numbers of a vector have length 1 and say what a word means; the rest say how it is used
_STEPS_PER_UNIT = 20.0  # a frequency is stored as an unsigned byte in twentieths

# How many code points to take off the front and the back of an unknown word, in the order of trying.
_ENDINGS = ((0, 1), (0, 2), (0, 3))
_CLITICS = ((2, 0), (1, 0), (3, 0), (0, 1), (2, 1), (1, 1), (0, 2), (2, 2))
_SEMITIC = (0x0590, 0x0700)  # Hebrew, Arabic: articles and conjunctions are written on to the word
_MIN_CORE = 3
_MIN_SHARE = 0.6


@dataclass(frozen=True)
class Lexicon:
    """Word frequencies and vectors.

    Attributes:
        frequencies: unsigned bytes, shape (2, 2^17): stems, then words.
        keys: sorted keys of the words that have a vector, shape (v,).
        vectors: signed bytes, shape (v, d).
    """

    frequencies: UInt8s
    keys: UInt64s
    vectors: Int8s

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

    @staticmethod
    def keys_of(words: UInt64s) -> UInt64s:
        """The part of words' hashes that vectors are keyed by: their upper 32 bits, as 64-bit numbers."""
        return words >> np.uint64(32)

    @staticmethod
    def frequency_slots(hashes: UInt64s) -> Int64s:
        """The column of `frequencies` that each word or stem has."""
        return (hashes >> np.uint64(64 - _FREQUENCY_BITS)).astype(np.int64)

    @staticmethod
    def no_frequencies(kind: type[np.generic] = np.uint8) -> Numbers:
        """Zeros in the shape of `frequencies`."""
        return np.zeros((2, 1 << _FREQUENCY_BITS), kind)

    @staticmethod
    def stored_vectors(vectors: Float32s) -> Int8s:
        """Vectors of numbers from -1 to 1 as the bytes of `vectors`."""
        return np.round(vectors * _VECTOR_SCALE).astype(np.int8)

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        return int(self.vectors.shape[1])

    def stem_frequency(self, hashes: UInt64s) -> Float32s:
        """log2(1 + 8192 * share) of each stem, 0 to 12; 0 for a stem never seen."""
        return self._frequency(0, hashes)

    def word_frequency(self, hashes: UInt64s) -> Float32s:
        """log2(1 + 8192 * share) of each word, 0 to 12; 0 for a word never seen."""
        return self._frequency(1, hashes)

    def _frequency(self, row: int, hashes: UInt64s) -> Float32s:
        stored: Float32s = self.frequencies[row, self.frequency_slots(hashes)].astype(np.float32)
        stored /= np.float32(_STEPS_PER_UNIT)
        return stored

    @staticmethod
    def stored_frequency(shares: Float64s) -> UInt8s:
        """Shares of the words of a language as the bytes of `frequencies`."""
        scaled = np.minimum(np.log2(1.0 + shares * 8192.0), FREQUENCY_SCALE)
        return np.round(scaled * _STEPS_PER_UNIT).astype(np.uint8)

    def rarity(self, document: Document) -> Float32s:
        """How much each word of a text tells, from near 0 (function words) to 1 (rare words); shape (n,).

        Very short words outside ideographs tell less.
        """
        common = self.stem_frequency(document.stem)
        weight = np.clip(FREQUENCY_SCALE - common, 0.5, FREQUENCY_SCALE) / FREQUENCY_SCALE
        short = np.minimum(1.0, document.lengths / 3.0)
        rarity: Float32s = np.where(document.ideographic, weight, weight * short).astype(np.float32)
        return rarity

    def places_of(self, document: Document) -> Int64s:
        """The row of `vectors` that each word has, or -1; shape (n,)."""
        words = document.distinct
        places = slots(self.keys, self.keys_of(words.hashes))
        unknown = np.flatnonzero((places < 0) & ~document.ideographic[words.first])
        if len(unknown):
            places[unknown] = self._by_core(document, words.first[unknown])
        return places[words.inverse]

    def vectors_at(self, places: Int64s) -> Float32s:
        """The vectors of such rows, zero for -1; shape (n, d)."""
        known = places >= 0
        vectors = np.zeros((len(places), self.dimensions), np.float32)
        vectors[known] = self.vectors[places[known]]
        vectors /= np.float32(_VECTOR_SCALE)
        return vectors

    def meanings_of(self, document: Document) -> Float32s:
        """The part of each word's vector whose dot product says how alike two words are; shape (n, m)."""
        return self.vectors_at(self.places_of(document))[:, :MEANING]

    def _by_core(self, document: Document, asked: Int64s) -> Int64s:
        """The table place of the longest known core of each asked word, or -1."""
        places = np.full(len(asked), -1, np.int64)
        first = document.folded[document.bounds[asked, 0]]
        semitic = (first >= _SEMITIC[0]) & (first < _SEMITIC[1])
        for applies, cuts in ((semitic, _CLITICS), (~semitic, _ENDINGS)):
            for front, back in cuts if applies.any() else ():
                lengths = document.lengths[asked]
                core = lengths - front - back
                fits = (places < 0) & applies & (core >= np.maximum(_MIN_CORE, _MIN_SHARE * lengths))
                if fits.any():
                    words = asked[fits]
                    hashes = document.hashes.of(document.starts[words] + front, document.ends[words] - back)
                    places[fits] = slots(self.keys, self.keys_of(hashes))
        return places
