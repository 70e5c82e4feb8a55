"""Features of a word by itself: what of it, of its parts and of its immediate neighbours stands in the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.document import contains, count, count_sorted, mixed, slots

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.detectors.grounding.document import Document

__all__ = [
    "beginnings",
    "endings",
    "has_pair",
    "has_swapped_pair",
    "number_values",
    "numbers_shared",
    "occurrences",
    "pairs",
    "stretch_coverage",
    "word_occurrences",
]

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
