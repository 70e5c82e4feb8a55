"""Which of some thousands of lines belong together: every pair that is similar enough, found without fail.

MinHash misses a pair now and then; between training and test data none may be missed. So few lines can be joined
exactly: two sets with a Jaccard similarity of `t` share an element among the rarest `n - ceil(t n) + 1` of each (prefix
filter; Chaudhuri et al. 2006, Bayardo et al. 2007).
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from veriglot.build.sampling.shingles import shingles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["groups_of", "similar_pairs"]


def groups_of(columns: Sequence[Sequence[str]], near: float) -> NDArray[np.int64]:
    """The group of each line, numbered by its first line.

    Lines are in one group where any of their texts are equal or similar, or where a chain of such lines joins them.

    Args:
        columns: texts of each line, such as all sources and all targets.
        near: Jaccard similarity of character n-grams from which two texts are similar.
    """
    parents = list(range(len(columns[0])))

    def root(line: int) -> int:
        while parents[line] != line:
            parents[line] = parents[parents[line]]
            line = parents[line]
        return line

    for texts in columns:
        for first, second in similar_pairs(texts, near):
            one, other = sorted((root(first), root(second)))
            parents[other] = one
    return np.array([root(line) for line in range(len(parents))], np.int64)


def similar_pairs(texts: Sequence[str], near: float) -> Iterator[tuple[int, int]]:
    """Every pair of texts that are similar, and enough of those that are equal to join them.

    Args:
        texts: some thousands.
        near: Jaccard similarity, above 0 to 1.
    """
    first_of: dict[str, int] = {}
    for number, text in enumerate(texts):
        first = first_of.setdefault(text, number)
        if first != number:
            yield first, number
    numbers = sorted(first_of.values())
    sets = _by_rarity([texts[number] for number in numbers])
    holders: dict[int, list[int]] = defaultdict(list)
    for place, own in enumerate(sets):
        prefix = own[: len(own) - math.ceil(near * len(own) - 1e-9) + 1]
        candidates = {other for element in prefix for other in holders[element]}
        elements = set(own)
        for other in sorted(candidates):
            if _similar(elements, sets[other], near):
                yield numbers[other], numbers[place]
        for element in prefix:
            holders[element].append(place)


def _similar(elements: set[int], other: list[int], near: float) -> bool:
    fewer, more = sorted((len(elements), len(other)))
    if fewer < near * more - 1e-9:
        return False
    shared = len(elements.intersection(other))
    return shared >= near * (len(elements) + len(other) - shared) - 1e-9


def _by_rarity(texts: Sequence[str]) -> list[list[int]]:
    """The distinct n-grams of each text as numbers, the rarest first; texts without any are empty."""
    found = shingles(texts)
    own = [np.unique(found.hashes[start:end]) for start, end in zip(found.starts[:-1], found.starts[1:], strict=True)]
    if not own:
        return []
    hashes, counts = np.unique(np.concatenate(own), return_counts=True)
    ranks = np.empty(len(hashes), np.int64)
    ranks[np.lexsort((hashes, counts))] = np.arange(len(hashes))
    return [np.sort(ranks[np.searchsorted(hashes, one)]).tolist() for one in own]
