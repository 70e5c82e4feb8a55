"""Texts as sets of character n-grams, many texts at once: what near-duplicates are told by.

Case, width, digits (every one counts as 0), punctuation and white space make no difference. An n-gram has 5 characters,
or 3 where most letters are Chinese, Japanese or Korean; a shorter text is one n-gram.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from veriglot.text.folding import fold_codes
from veriglot.text.unicode_table import Kind, code_points, kind_table, script_names, script_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "SHINGLES_VERSION",
    "Shingles",
    "dense_table",
    "jaccard",
    "jaccard_with",
    "mixed",
    "shingle_sets",
    "shingles",
]

SHINGLES_VERSION = "char-5-3@1"

_DENSE = frozenset({"Hani", "Hira", "Kana", "Hang", "Bopo"})
_SIZE, _DENSE_SIZE = 5, 3
_SPACE, _BORDER, _ZERO = 0x20, 0x0A, 0x30
_PRIME = np.uint64(0x100000001B3)


@dataclass(frozen=True)
class Shingles:
    """The n-grams of several texts, one after another.

    Attributes:
        hashes: 64 bits an n-gram, repeats included; those of text `i` are `hashes[starts[i] : starts[i + 1]]`.
        starts: shape (texts + 1,); a text without letters and digits has no n-gram.
    """

    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]

    def owners(self) -> NDArray[np.int64]:
        """Which text each n-gram belongs to."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


@cache
def dense_table() -> NDArray[np.bool_]:
    """Whether a code point is of a script whose letters are syllables or words."""
    dense = np.array([name in _DENSE for name in script_names()])
    return dense[script_table()]


def shingles(texts: Sequence[str]) -> Shingles:
    """The n-grams of each text."""
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
        place = first + offset
        inside = (offset < sizes[owner]) & (place < ends[owner])
        hashes = (hashes ^ np.where(inside, padded[place], 0).astype(np.uint64)) * _PRIME
    return Shingles(mixed(hashes), bounds)


def _plain(texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
    """Letters, marks, zeros for digits and single spaces of all texts, and where each text begins and ends."""
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
    kept = is_word | is_border | after_word  # of what is between words, the first
    codes, is_border = codes[kept], is_border[kept]
    kept = ~((codes == _SPACE) & np.concatenate([is_border[1:], [True]]))  # and nothing at the end
    codes, is_border = codes[kept], is_border[kept]
    ends = np.flatnonzero(is_border)
    return codes, np.concatenate([[0], ends[:-1] + 1]).astype(np.int64), ends.astype(np.int64)


def jaccard(first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
    """Similarity of each text to the one at its place in `second`: shared n-grams over all n-grams, 0 to 1.

    Texts without letters and digits are similar to none.
    """
    one, other = (_distinct(shingles(texts)) for texts in (first, second))
    counts = [np.bincount(found[1], minlength=len(first)) for found in (one, other)]
    _, places, _ = np.intersect1d(one[0], other[0], assume_unique=True, return_indices=True)
    shared = np.bincount(one[1][places], minlength=len(first))
    union = counts[0] + counts[1] - shared
    return np.where(union > 0, shared / np.maximum(union, 1), 0.0)


def shingle_sets(texts: Sequence[str]) -> list[NDArray[np.uint64]]:
    """The distinct n-grams of each text, sorted: for texts that are compared again and again."""
    found = shingles(texts)
    return [np.unique(found.hashes[start:end]) for start, end in zip(found.starts, found.starts[1:], strict=False)]


def jaccard_with(one: NDArray[np.uint64], others: Sequence[NDArray[np.uint64]]) -> NDArray[np.float64]:
    """Similarity of one text to each of others, as `jaccard` has it, by their `shingle_sets`."""
    sizes = np.array([len(other) for other in others], np.int64)
    if not len(one) or not len(others):
        return np.zeros(len(others))
    every = np.concatenate(list(others))
    place = np.minimum(np.searchsorted(one, every), len(one) - 1)
    owners = np.repeat(np.arange(len(others)), sizes)
    shared = np.bincount(owners[one[place] == every], minlength=len(others))
    return np.asarray(shared / (len(one) + sizes - shared))


def _distinct(found: Shingles) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The distinct n-grams of each text as hashes that differ between texts, and which text each belongs to."""
    owners = found.owners()
    own = mixed(found.hashes ^ mixed(owners.astype(np.uint64)))
    hashes, places = np.unique(own, return_index=True)
    return hashes, owners[places]


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of a number spread over all bits of the result; one to one (the finaliser of splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
