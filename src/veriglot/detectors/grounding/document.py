"""Texts made ready for comparison, and what of a word, its parts and its neighbours stands in another text."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.text.normalization import fold_codes
from veriglot.text.segmentation import word_bounds
from veriglot.text.unicode import Kind, code_points, kind_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "Document",
    "beginnings",
    "contains",
    "count",
    "count_sorted",
    "endings",
    "has_pair",
    "has_swapped_pair",
    "mixed",
    "number_values",
    "numbers_shared",
    "occurrences",
    "pairs",
    "slots",
    "stretch_coverage",
    "word_occurrences",
]


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
_BITMAP_SPARE_BITS = 5  # a bitmap at most 1/32 full: chance hits stay rare

_tables: dict[str, NDArray[np.uint64]] = {}


def _powers(length: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """B^k and B^-k for k < length at least, from a table that grows by doubling."""
    if not _tables or len(_tables["powers"]) < length:
        size = max(_MIN_TABLE, 1 << (length - 1).bit_length())
        for name, base in (("powers", _BASE), ("inverses", _INVERSE)):
            factors = np.full(size, base, np.uint64)
            factors[0] = 1
            _tables[name] = np.multiply.accumulate(factors)
    return _tables["powers"], _tables["inverses"]


def mixed(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every input bit over the output, so that the top bits can be a table index."""
    hashes = hashes * _MIX
    hashes ^= hashes >> np.uint64(32)
    hashes *= _MIX
    hashes ^= hashes >> np.uint64(29)
    return hashes


class Stretches:
    """Hashes of stretches of one text.

    Args:
        codes: its code points, shape (n,).
    """

    def __init__(self, codes: NDArray[np.uint32]) -> None:
        powers, self._inverses = _powers(len(codes) + 1)
        self._sums = np.zeros(len(codes) + 1, np.uint64)
        values = (codes.astype(np.uint64) + np.uint64(1)) * _SPREAD
        np.cumsum(values * powers[: len(codes)], out=self._sums[1:])

    def of(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The hash of each stretch [start, end), shape of the inputs."""
        return mixed((self._sums[ends] - self._sums[starts]) * self._inverses[starts])

    def grams(self, size: int) -> NDArray[np.uint64]:
        """The hash of every stretch of `size` code points, in order; shape (max(0, n - size + 1),). Not mixed."""
        count = max(0, len(self._sums) - size)
        return (self._sums[size:] - self._sums[:count]) * self._inverses[:count]


def contains(table: NDArray[np.uint64], asked: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether each asked hash is in `table`, through a bitmap: linear time, and a chance hit in 32 at most.

    For features that average over many stretches, where a rare chance hit is harmless; `count` is exact.
    """
    if not len(table):
        return np.zeros(len(asked), bool)
    bits = max(14, len(table).bit_length() + _BITMAP_SPARE_BITS)
    shift = np.uint64(64 - bits)
    bitmap = np.zeros(1 << bits, bool)
    bitmap[(table * _MIX) >> shift] = True
    present: NDArray[np.bool_] = bitmap[(asked * _MIX) >> shift]
    return present


def slots(sorted_table: NDArray[np.uint64], asked: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The index of each asked hash in a sorted table, or -1 where it is absent."""
    if not len(sorted_table):
        return np.full(len(asked), -1, np.int64)
    places = np.searchsorted(sorted_table, asked)
    places[places == len(sorted_table)] = 0
    places[sorted_table[places] != asked] = -1
    return places


def count(table: NDArray[np.uint64], asked: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How often each asked hash occurs in `table` (in any order); shape of `asked`."""
    known, counts = np.unique(table, return_counts=True)
    return count_sorted(known, counts, asked)


def count_sorted(known: NDArray[np.uint64], counts: NDArray[np.int64], asked: NDArray[np.uint64]) -> NDArray[np.int64]:
    """`count` where the different hashes are already sorted and counted."""
    places = slots(known, asked)
    return np.where(places >= 0, np.append(counts, 0)[places], 0)


STEM = 5  # code points: words that agree in their first five count as one stem
_GAP = 0x20  # what parts words in the stream
_WALL = 0xFFFF  # what parts passages in the stream: no stretch crosses it
_IDEOGRAPHS = ((0x2E80, 0xA000), (0xF900, 0xFB00), (0x20000, 0x32000))


class Distinct(NamedTuple):
    """The different words of a text, sorted by hash.

    Attributes:
        hashes: shape (k,).
        first: a word of the text that each stands for, shape (k,).
        inverse: which of them each word of the text is, shape (n,).
        counts: how often each occurs, shape (k,).
    """

    hashes: NDArray[np.uint64]
    first: NDArray[np.int64]
    inverse: NDArray[np.int64]
    counts: NDArray[np.int64]


class Document:
    """One text, or several passages as one, in the form that features are taken from.

    The stream is the text with every run of characters between words made one blank, so that stretches of it compare
    words and their order and are blind to punctuation. Chinese and Japanese words touch each other in it, as
    they do in the text.

    Attributes:
        codes: code points of the joined text, as written.
        folded: the same, folded (`text.fold`), same shape.
        kinds: what each code point is (`unicode_table.Kind`), same shape.
        bounds: the words, half-open, shape (n, 2).
        passage: the passage of each word, shape (n,).
        offsets: where each passage begins in the joined text.
        starts, ends: where each word stands in the stream, shape (n,).
        lengths: code points in each word, shape (n,).
        word, stem: hashes, shape (n,).
        ideographic: whether a word is written in ideographs or kana, shape (n,).
    """

    def __init__(self, passages: Sequence[str], language: str | None, table: NDArray[np.uint32] | None = None) -> None:
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
        self.lengths = self.bounds[:, 1] - self.bounds[:, 0]
        self._lay_stream()
        self.word = self.hashes.of(self.starts, self.ends)
        self.stem = self.hashes.of(self.starts, self.starts + np.minimum(self.lengths, STEM))
        first = self.folded[self.bounds[:, 0]]
        self.ideographic = np.zeros(len(self), bool)
        for low, high in _IDEOGRAPHS:
            self.ideographic |= (first >= low) & (first < high)

    def __len__(self) -> int:
        return len(self.bounds)

    def _lay_stream(self) -> None:
        edges = np.zeros(len(self.codes) + 1, np.int8)
        edges[self.bounds[:, 0]] += 1
        np.subtract.at(edges, self.bounds[:, 1], 1)
        inside = np.cumsum(edges[:-1], dtype=np.int8) > 0
        keep = inside.copy()
        keep[1:] |= inside[:-1]  # the first character after a word stands for all up to the next
        laid = np.where(inside, self.folded, np.uint32(_GAP))
        walls = self.offsets[1:-1] - 1
        laid[walls] = _WALL
        keep[walls] = True
        places = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)]) + 1
        self.stream = np.concatenate([[_GAP], laid[keep], [_GAP]]).astype(np.uint32)
        self.hashes = Stretches(self.stream)
        self.starts = places[self.bounds[:, 0]]
        self.ends = self.starts + self.lengths

    @cached_property
    def distinct(self) -> Distinct:
        """The different words of the text."""
        return Distinct(*np.unique(self.word, return_index=True, return_inverse=True, return_counts=True))

    def counts_in_words(self, flags: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many flagged code points each word holds; `flags` has the shape of `codes`."""
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(flags)])
        counts: NDArray[np.int64] = sums[self.bounds[:, 1]] - sums[self.bounds[:, 0]]
        return counts

    def mean_in_words(self, flags: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The flagged share of each word; `flags` has the shape of `stream`."""
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(flags)])
        means: NDArray[np.float64] = (sums[self.ends] - sums[self.starts]) / self.lengths
        return means

    def digits(self) -> NDArray[np.bool_]:
        """Which code points are digits, shape of `codes`."""
        flags: NDArray[np.bool_] = (self.kinds & Kind.DIGIT) != 0
        return flags

    def uppers(self) -> NDArray[np.bool_]:
        """Which code points are capitals, shape of `codes`."""
        flags: NDArray[np.bool_] = (self.kinds & Kind.UPPER) != 0
        return flags


_ODD = np.uint64(31)


def covered(response: Document, other: Document, size: int) -> NDArray[np.bool_]:
    """Which places of the response's stream lie in a stretch of `size` that the other text holds too."""
    if not len(other):
        return np.zeros(len(response.stream), bool)
    asked = response.hashes.grams(size)
    edges = np.zeros(len(response.stream) + 1, np.int32)
    if len(asked):
        shared = contains(other.hashes.grams(size), asked)
        edges[: len(shared)] += shared
        edges[size : size + len(shared)] -= shared
    flags: NDArray[np.bool_] = np.cumsum(edges[:-1]) > 0
    return flags


def stretch_coverage(response: Document, other: Document, sizes: tuple[int, ...]) -> list[NDArray[np.float64]]:
    """For each size, the share of each word that lies in a shared stretch of that many code points."""
    return [response.mean_in_words(covered(response, other, size)) for size in sizes]


def _shared_edge(response: Document, other: Document, sizes: tuple[int, ...], *, front: bool) -> NDArray[np.float64]:
    ours, other_words = response.distinct.first, other.distinct.first
    longest = np.zeros(len(ours))
    places = np.arange(len(ours))
    for size in sizes:
        long = response.lengths[ours[places]] >= size
        places = places[long]
        other_words = other_words[other.lengths[other_words] >= size]
        if not len(places) or not len(other_words):
            break
        asked = _edge(response, ours[places], size, front=front)
        known = np.sort(_edge(other, other_words, size, front=front))
        longest[places[slots(known, asked) >= 0]] = size
    return longest[response.distinct.inverse]


def _edge(document: Document, words: NDArray[np.int64], size: int, *, front: bool) -> NDArray[np.uint64]:
    if front:
        return document.hashes.of(document.starts[words], document.starts[words] + size)
    return document.hashes.of(document.ends[words] - size, document.ends[words])


def beginnings(response: Document, other: Document) -> NDArray[np.float64]:
    """How many code points at its beginning each word shares with a word of the other text (0, 2, 3, 4, 6, 8, 10)."""
    return _shared_edge(response, other, (2, 3, 4, 6, 8, 10), front=True)


def endings(response: Document, other: Document) -> NDArray[np.float64]:
    """How many code points at its end each word shares with a word of the other text (0, 3, 4, 6)."""
    return _shared_edge(response, other, (3, 4, 6), front=False)


def pairs(document: Document, gap: int) -> NDArray[np.uint64]:
    """A hash of each pair of stems `gap` words apart in one passage, in order; n - gap of them in a single passage."""
    count = max(0, len(document) - gap)
    hashes = mixed(document.stem[:count] * _ODD + document.stem[gap:])
    inside = document.passage[:count] == document.passage[gap:]
    return hashes if inside.all() else hashes[inside]


def has_pair(
    response: Document, known: NDArray[np.uint64], gap: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Whether each word stands in the evidence's pairs with the word `gap` before it, and with the one after it."""
    before = np.zeros(len(response), np.float32)
    after = np.zeros(len(response), np.float32)
    if len(response) > gap:
        known_pairs = contains(known, pairs(response, gap))
        before[gap:] = known_pairs
        after[:-gap] = known_pairs
    return before, after


def has_swapped_pair(response: Document, known: NDArray[np.uint64]) -> NDArray[np.float32]:
    """Whether each word and a neighbour stand in the evidence in the other order, as after a swap of arguments."""
    swapped = np.zeros(len(response), np.float32)
    if len(response) > 1:
        turned = mixed(response.stem[1:] * _ODD + response.stem[:-1])
        known_pairs = contains(known, turned).astype(np.float32)
        swapped[1:] += known_pairs
        swapped[:-1] += known_pairs
    return swapped


def number_values(document: Document) -> tuple[NDArray[np.int64], list[str]]:
    """Words with digits, and the digits of each without thousands marks and the like."""
    words = np.flatnonzero(document.counts_in_words(document.digits()) > 0)
    values = []
    for start, end in document.bounds[words].tolist():
        digits = "".join(chr(c) for c in document.folded[start:end].tolist() if 0x30 <= c <= 0x39)
        values.append(digits.lstrip("0") or "0")
    return words, values


def numbers_shared(response: Document, *others: Document) -> list[NDArray[np.float32]]:
    """For each other text, whether each number of the response stands in it by value; 0 for words that are none."""
    words, values = number_values(response)
    shared = []
    for other in others:
        flags = np.zeros(len(response), np.float32)
        if len(words):
            known = set(number_values(other)[1])
            flags[words] = [value in known for value in values]
        shared.append(flags)
    return shared


def occurrences(response: Document, other: Document) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How often each word of the response, and each stem, occurs in the other text."""
    return word_occurrences(response, other), count(other.stem, response.stem)


def word_occurrences(response: Document, other: Document) -> NDArray[np.int64]:
    """How often each word of the response occurs in the other text."""
    return count_sorted(other.distinct.hashes, other.distinct.counts, response.word)
