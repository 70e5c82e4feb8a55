"""Near-duplicates: n-gram sets of texts, candidates by MinHash (`Buckets`) or exactly (`similar_pairs`), comparison.

The similarity of two texts is that of their sets of character n-grams (`shingles`). Groups are chains of similar texts.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from functools import cache
from hashlib import blake2b
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from veriglot.signatures import digest
from veriglot.storage.cache import LRUCache
from veriglot.text.normalization import fold_codes
from veriglot.text.unicode import Kind, code_points, kind_table, script_names, script_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from veriglot.arrays import Bools, Float64s, Int64s, Numbers, UInt32s, UInt64s
    from veriglot.records import Sample

__all__ = [
    "BANDS",
    "SHINGLES_VERSION",
    "Buckets",
    "NearIndex",
    "ShingleCache",
    "dense_table",
    "equal_runs",
    "groups_of",
    "minhash",
    "mixed",
    "text_keys",
    "texts_of",
]


K = TypeVar("K", int, str)


# Texts as sets of character n-grams, many texts at once.
#
# Case, width, digits (all are replaced by 0), punctuation and white space are ignored. An n-gram has 5 characters, or 3
# if most letters are Chinese, Japanese or Korean; a shorter text is one n-gram.


SHINGLES_VERSION = "char-5-3@1"

_DENSE = frozenset({"Hani", "Hira", "Kana", "Hang", "Bopo"})
_SIZE, _DENSE_SIZE = 5, 3
_SPACE, _BORDER, _ZERO = 0x20, 0x0A, 0x30
_PRIME = np.uint64(0x100000001B3)


@cache
def dense_table() -> Bools:
    """For each code point, whether its script has letters for syllables or words."""
    return np.array([name in _DENSE for name in script_names()])[script_table()]


def shingles(texts: Sequence[str]) -> tuple[UInt64s, Int64s]:
    """The n-grams of all texts, one text after another, and their start offsets, with the total number at the end."""
    codes, starts, ends = _plain(texts)
    dense = np.concatenate([[0], np.cumsum(dense_table()[codes])])
    is_dense = 2 * (dense[ends] - dense[starts]) > ends - starts
    sizes = np.where(is_dense, _DENSE_SIZE, _SIZE)
    counts = np.where(ends > starts, np.maximum(ends - starts - sizes + 1, 1), 0)
    bounds = np.concatenate([[0], np.cumsum(counts)])
    owner = np.repeat(np.arange(len(texts)), counts)
    first = starts[owner] + np.arange(len(owner)) - bounds[owner]
    hashes = np.zeros(len(owner), np.uint64)
    padded = np.concatenate([codes, np.zeros(_SIZE, codes.dtype)])
    for offset in range(_SIZE):
        index = first + offset
        inside = (offset < sizes[owner]) & (index < ends[owner])
        hashes = (hashes ^ np.where(inside, padded[index], 0).astype(np.uint64)) * _PRIME
    return mixed(hashes), bounds


def _plain(texts: Sequence[str]) -> tuple[UInt32s, Int64s, Int64s]:
    """Letters, marks, zeros for digits and single spaces of all texts, and the start and end of each text."""
    composed = [text if text.isascii() else unicodedata.normalize("NFC", text) for text in texts]
    lengths = np.array([len(text) for text in composed], np.int64)
    codes = fold_codes(code_points("\n".join([*composed, ""])))
    is_border = np.zeros(len(codes), np.bool_)
    is_border[np.cumsum(lengths + 1) - 1] = True
    kinds = kind_table()[codes]
    is_word = (kinds & (Kind.LETTER | Kind.DIGIT | Kind.MARK) != 0) & ~is_border
    codes = np.where(kinds & Kind.DIGIT != 0, np.uint32(_ZERO), codes)
    codes = np.where(is_word, codes, np.where(is_border, np.uint32(_BORDER), np.uint32(_SPACE)))
    after_word = np.concatenate([[False], is_word[:-1]])
    chosen = is_word | is_border | after_word  # of characters between words, only the first
    codes, is_border = codes[chosen], is_border[chosen]
    chosen = ~((codes == _SPACE) & np.concatenate([is_border[1:], [True]]))  # and none at the end
    codes, is_border = codes[chosen], is_border[chosen]
    ends = np.flatnonzero(is_border)
    return codes, np.concatenate([[0], ends[:-1] + 1]).astype(np.int64), ends.astype(np.int64)


def shingle_sets(texts: Sequence[str]) -> list[UInt64s]:
    """The distinct n-grams of each text, sorted."""
    hashes, starts = shingles(texts)
    return [np.unique(hashes[start:end]) for start, end in pairwise(starts)]


def jaccard_with(text: UInt64s, others: Sequence[UInt64s]) -> Float64s:
    """Jaccard similarity (0 to 1) of one text to each of others, by their `shingle_sets`."""
    sizes = np.array([len(other) for other in others], np.int64)
    if not len(text) or not len(others):
        return np.zeros(len(others))
    ngrams = np.concatenate(list(others))
    nearest = np.minimum(np.searchsorted(text, ngrams), len(text) - 1)
    owners = np.repeat(np.arange(len(others)), sizes)
    shared = np.bincount(owners[text[nearest] == ngrams], minlength=len(others))
    return np.asarray(shared / (len(text) + sizes - shared))


def hash64(*texts: str) -> int:
    """A 64-bit hash of texts, each with its length. With 50 million texts, p = 7e-5 for a collision."""
    hasher = blake2b(digest_size=8)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(4, "little") + data)
    return int.from_bytes(hasher.digest(), "little")


def mixed(values: UInt64s) -> UInt64s:
    """A bijective mix of the bits of each number (the finaliser of splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


class UnionFind(Generic[K]):
    """Disjoint groups of keys, each named by its smallest key. Single keys take no memory."""

    def __init__(self) -> None:
        self._parents: dict[K, K] = {}

    def root(self, key: K) -> K:
        """The smallest key of the group of `key`."""
        parents = self._parents
        while key in parents:
            parent = parents[key]
            if parent in parents:
                parents[key] = parents[parent]
            key = parent
        return key

    def unite(self, first: K, second: K) -> None:
        """Merge two groups."""
        low, high = sorted((self.root(first), self.root(second)))
        if low != high:
            self._parents[high] = low


def text_keys(sample: Sample) -> list[str]:
    """Keys that a sample shares with others of its text: the response, a named group, every passage of evidence."""
    group = sample.meta.get("group")
    named = [f"group:{group}"] if isinstance(group, str | int) else []
    passages = [digest(["evidence", passage])[:16] for passage in sample.passages if passage.strip()]
    return [digest(["response", sample.response])[:16], *named, *passages]


def texts_of(keys: Sequence[Sequence[str]]) -> list[str]:
    """The text of each sample from its keys, as the smallest key of all linked samples; one common key links two."""
    groups = UnionFind[str]()
    for first, *others in keys:
        for other in others:
            groups.unite(first, other)
    return [groups.root(first) for first, *_ in keys]


def equal_runs(ordered: Numbers) -> Iterator[tuple[int, int]]:
    """Ranges of two or more equal neighbours, half-open."""
    borders = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    edges = np.flatnonzero(borders[: len(ordered) + 1])
    return ((int(start), int(end)) for start, end in pairwise(edges) if end - start > 1)


# Groups in some thousands of lines: all similar pairs are compared, because MinHash sometimes misses a pair.


def groups_of(columns: Sequence[Sequence[str]], near: float) -> Int64s:
    """The group of each line, numbered by its first line.

    Lines are in one group if any of their texts are equal or similar, or if a chain of such lines links them.

    Args:
        columns: texts of each line, such as all sources and all targets.
        near: Jaccard similarity of character n-grams from which two texts are similar.
    """
    groups = UnionFind[int]()
    for texts in columns:
        for first, second in similar_pairs(texts, near):
            groups.unite(first, second)
    return np.array([groups.root(line) for line in range(len(columns[0]))], np.int64)


def similar_pairs(texts: Sequence[str], near: float) -> Iterator[tuple[int, int]]:
    """Every pair of similar texts, and enough pairs of equal ones to link them; the earlier text first."""
    first_of: dict[str, int] = {}
    for number, text in enumerate(texts):
        first = first_of.setdefault(text, number)
        if first != number:
            yield first, number
    numbers = sorted(first_of.values())
    sets = shingle_sets([texts[number] for number in numbers])
    holders = defaultdict[int, list[int]](list)  # by n-gram, of the texts so far
    for index, own in enumerate(sets):
        for other, count in Counter(chain.from_iterable(map(holders.__getitem__, own.tolist()))).items():
            if count >= near * (len(own) + len(sets[other]) - count) - 1e-9:
                yield numbers[other], numbers[index]
        for ngram in own.tolist():
            holders[ngram].append(index)


# MinHash: two texts share each of these hashes with a probability equal to their Jaccard similarity (Broder 1997).
#
# Each text has 64 hashes in 16 bands of 4. Texts that agree in a band are candidates: at a similarity of 0.8 with
# probability 0.9998, at 0.7 with 0.988, at 0.05 with 0.0001. A sketch has one bit of each of the 64 hashes and excludes
# almost all candidates that are not similar before their texts are read.


BANDS = 16
_ROWS = 4
_HASHES = BANDS * _ROWS
_SPREAD = 4.0  # tolerance of the similarity from a sketch, in standard deviations
_NUMBERS = mixed(np.arange(2 * _HASHES, dtype=np.uint64))
_ONES = np.array([value.bit_count() for value in range(256)], np.uint8)


def minhash(texts: Sequence[str]) -> tuple[UInt64s, UInt64s]:
    """Bands and sketch of each text.

    Returns:
        Bands, shape (16, texts), and sketches, shape (texts,). A text without n-grams has 0 in both.
    """
    hashes, starts = shingles(texts)
    filled = np.flatnonzero(np.diff(starts))
    bands, sketch = np.zeros((BANDS, len(texts)), np.uint64), np.zeros(len(texts), np.uint64)
    if not filled.size:
        return bands, sketch
    for number in range(_HASHES):
        permuted = (hashes ^ _NUMBERS[number]) * (_NUMBERS[_HASHES + number] | np.uint64(1))
        smallest = mixed(np.minimum.reduceat(permuted, starts[filled]))
        bands[number // _ROWS, filled] = mixed(bands[number // _ROWS, filled] ^ smallest)
        sketch[filled] |= (smallest & np.uint64(1)) << np.uint64(number)
    return bands, sketch


def count_bits(values: UInt64s) -> Int64s:
    """Number of set bits in each number."""
    bytes_ = np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8)
    counts: Int64s = _ONES[bytes_].sum(axis=1, dtype=np.int64)
    return counts


def max_differing_bits(similarity: float) -> int:
    """Maximum number of different bits in sketches of texts with this similarity or more; 3 in 100,000 exceed it."""
    differs = (1 - similarity) / 2
    return math.ceil(_HASHES * differs + _SPREAD * math.sqrt(_HASHES * differs * (1 - differs)))


_BATCH = 512 << 10  # code points that are hashed at once
_COMPARED = 512  # pairs of texts that are read and compared at once
_REMEMBERED = 4 << 20  # n-grams of texts in memory at once: 32 MiB


class ShingleCache:
    """The distinct n-grams of texts by number, as an LRU cache, because texts of a bucket are compared many times.

    Args:
        read: reads the texts of numbers in ascending order.
    """

    def __init__(self, read: Callable[[list[int]], list[str]]) -> None:
        self._read = read
        self._recent: LRUCache[UInt64s] = LRUCache(_REMEMBERED, len)

    def similar(self, first: Numbers, second: Numbers, near: float) -> Bools:
        """Whether each pair of texts has a Jaccard similarity of at least `near`; pairs are ordered by `first`."""
        similar = np.zeros(len(first), np.bool_)
        for start in range(0, len(first), _COMPARED):
            leaders, others = first[start : start + _COMPARED], second[start : start + _COMPARED]
            numbers: list[int] = np.union1d(leaders, others).tolist()
            sets = {number: ngrams for number in numbers if (ngrams := self._recent.get(number)) is not None}
            absent = [number for number in numbers if number not in sets]
            for number, ngrams in zip(absent, shingle_sets(self._read(absent)) if absent else (), strict=True):
                sets[number] = ngrams
                self._recent.put(number, ngrams)
            edges = np.flatnonzero(np.concatenate([[True], leaders[1:] != leaders[:-1], [True]]))
            for low, high in pairwise(edges):
                jaccards = jaccard_with(sets[int(leaders[low])], [sets[other] for other in others[low:high].tolist()])
                similar[start + low : start + high] = jaccards >= near
        return similar


class Buckets:
    """Texts that agree in a band of hashes, bucket by bucket, the earliest text first, without single texts.

    Args:
        hashes: one band of each text.
        numbers: of the texts, ascending.
        sketches: of the texts.

    Attributes:
        numbers: of the texts without a decision so far.
    """

    def __init__(self, hashes: UInt64s, numbers: Numbers, sketches: UInt64s) -> None:
        order = np.argsort(hashes, kind="stable")
        self._hashes, self.numbers, self._sketches = hashes[order], numbers[order], sketches[order]
        self._keep(np.ones(len(order), np.bool_))

    def _keep(self, chosen: Bools) -> None:
        hashes = self._hashes[chosen]
        repeats = hashes[1:] == hashes[:-1]
        shared = np.concatenate([repeats, [False]]) | np.concatenate([[False], repeats])
        index = np.flatnonzero(chosen)[shared[: len(hashes)]]
        self._hashes, self.numbers, self._sketches = self._hashes[index], self.numbers[index], self._sketches[index]

    def each(self) -> Iterator[Buckets]:
        """Every bucket, in the order of the hashes."""
        for start, end in equal_runs(self._hashes):
            yield Buckets(self._hashes[start:end], self.numbers[start:end], self._sketches[start:end])

    def near_pairs(
        self,
        cache: ShingleCache,
        near: float,
        *,
        rounds: int,
        joined: Callable[[Numbers, Numbers], Bools] | None = None,
    ) -> Iterator[tuple[Numbers, Numbers]]:
        """Near-duplicates in rounds: the first text of every bucket, and the similar texts of the bucket.

        Both are removed from the bucket, so that the next text is its first. Texts that are left after the last round,
        in buckets that are too large for all comparisons, stay in `numbers`.

        Args:
            cache: of the texts.
            near: Jaccard similarity from which two texts are near-duplicates.
            rounds: number of texts of one bucket that the others are compared with.
            joined: which pairs are known to be in one group, and need no comparison.
        """
        most = max_differing_bits(near)
        for _ in range(rounds):
            if not self.numbers.size:
                return
            starts = np.concatenate([[True], self._hashes[1:] != self._hashes[:-1]])
            leaders = np.maximum.accumulate(np.where(starts, np.arange(len(starts)), 0))
            rest = np.flatnonzero(~starts)
            if joined is not None:
                rest = rest[~joined(self.numbers[leaders[rest]], self.numbers[rest])]
            left = np.zeros(len(starts), np.bool_)
            left[rest] = True
            close = rest[count_bits(self._sketches[rest] ^ self._sketches[leaders[rest]]) <= most]
            close = close[cache.similar(self.numbers[leaders[close]], self.numbers[close], near)]
            left[close] = False
            pairs = self.numbers[leaders[close]], self.numbers[close]
            self._keep(left)
            yield pairs


_ROUNDS = 64  # number of texts of one bucket that the others are compared with


class NearIndex:
    """Groups near-duplicates among texts that are added one by one.

    Hashes are on disk, in the file `path`; one band of them (16 bytes a text) is in memory.

    Attributes:
        uncompared: texts in buckets that were too large for all comparisons.
    """

    def __init__(self, path: Path) -> None:
        self._bands = path.open("w+b")
        self._sketches: list[UInt64s] = []
        self._waiting: list[str] = []
        self._weight = 0
        self._rows: list[int] = []
        self.uncompared = 0

    def add(self, text: str, row: int) -> None:
        """Add a text; `row` is its number, which must increase."""
        self._rows.append(row)
        self._waiting.append(text)
        self._weight += len(text)
        if self._weight >= _BATCH:
            self._take()

    def _take(self) -> None:
        bands, sketches = minhash(self._waiting)
        np.ascontiguousarray(bands.T).tofile(self._bands)
        self._sketches.append(sketches)
        self._waiting, self._weight = [], 0

    def groups(self, texts: Callable[[list[int]], list[str]], near: float) -> Iterator[list[int]]:
        """Rows of near-duplicate texts, one group of two or more at a time, ordered by their first rows.

        Args:
            texts: reads the texts of rows again.
            near: Jaccard similarity from which two texts are near-duplicates.
        """
        count = len(self._rows)
        if count < 2:
            return
        if self._waiting:
            self._take()
        self._bands.flush()
        bands = np.memmap(self._bands.name, np.uint64, "r", shape=(count, BANDS))
        sketches = np.concatenate(self._sketches)
        cache = ShingleCache(lambda numbers: texts([self._rows[number] for number in numbers]))
        groups = UnionFind[int]()

        def joined(first: Numbers, second: Numbers) -> Bools:
            pairs = zip(first.tolist(), second.tolist(), strict=True)
            return np.array([groups.root(a) == groups.root(b) for a, b in pairs], np.bool_)

        for band in range(BANDS):
            hashes = np.array(bands[:, band])
            filled = np.flatnonzero(hashes)
            for bucket in Buckets(hashes[filled], filled, sketches[filled]).each():
                for first, second in bucket.near_pairs(cache, near, rounds=_ROUNDS, joined=joined):
                    for pair in zip(first.tolist(), second.tolist(), strict=True):
                        groups.unite(*pair)
                self.uncompared += bucket.numbers.size
        roots = np.array([groups.root(number) for number in range(count)])
        order = np.argsort(roots, kind="stable")
        for start, end in equal_runs(roots[order]):
            yield [self._rows[number] for number in order[start:end]]

    def close(self) -> None:
        """Close the file of hashes; it is not deleted."""
        self._bands.close()
