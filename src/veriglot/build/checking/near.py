"""Near-duplicates among texts that are all different: candidates by MinHash on disk, a verdict by the texts.

Memory holds one band of hashes (16 bytes a text) at a time, and the n-grams of the texts that were compared last. Texts
are as similar as their sets of character n-grams (`build.sampling.shingles`); those at least as similar as asked are
one group, and so is a chain of such.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from veriglot.build.sampling.minhash import BANDS, apart_bits, bits_of, minhash
from veriglot.build.sampling.shingles import jaccard_with, shingle_sets, shingles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["NEAR", "NearIndex"]

NEAR = 0.8
_BATCH = 512 << 10  # code points taken in at once
_COMPARED = 128  # texts read at once
_REMEMBERED = 4 << 20  # n-grams of texts in memory at once: 32 MiB
_ROUNDS = 64  # texts of one bucket that the others are held against


class NearIndex:
    """Takes texts one by one and groups those that are nearly the same.

    Args:
        folder: an existing folder for the hashes.
        name: of the files in it.

    Attributes:
        rows: what each text was called when it was added.
        uncompared: texts that stood in a bucket too full for all to be compared.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._bands = (folder / f"{name}.bands").open("w+b")
        self._sketches: list[NDArray[np.uint64]] = []
        self._waiting: list[str] = []
        self._weight = 0
        self._sets: OrderedDict[int, NDArray[np.uint64]] = OrderedDict()
        self._remembered = 0
        self.rows: list[int] = []
        self.uncompared = 0

    def add(self, text: str, row: int) -> None:
        """Take in a text."""
        self.rows.append(row)
        self._waiting.append(text)
        self._weight += len(text)
        if self._weight >= _BATCH:
            self._take()

    def _take(self) -> None:
        if not self._waiting:
            return
        bands, sketches = minhash(shingles(self._waiting))
        np.ascontiguousarray(bands.T).tofile(self._bands)
        self._sketches.append(sketches)
        self._waiting, self._weight = [], 0

    def groups(self, texts: Callable[[list[int]], list[str]], near: float) -> Iterator[list[int]]:
        """Rows of texts that are nearly the same, a group of two or more at a time, by the first of each.

        Args:
            texts: the texts of rows, read again.
            near: Jaccard similarity from which two texts are near-duplicates.
        """
        self._take()
        count = len(self.rows)
        if count < 2:
            return
        self._bands.flush()
        hashes = np.memmap(self._bands.name, np.uint64, "r", shape=(count, BANDS))
        sketches = np.concatenate(self._sketches)
        parents = np.arange(count)
        for band in range(BANDS):
            self._unite(np.array(hashes[:, band]), sketches, parents, texts, near)
        yield from self._united(parents)

    def close(self) -> None:
        """Close the file of hashes; it stays where it is."""
        self._bands.close()

    def _unite(
        self,
        hashes: NDArray[np.uint64],
        sketches: NDArray[np.uint64],
        parents: NDArray[np.int64],
        texts: Callable[[list[int]], list[str]],
        near: float,
    ) -> None:
        order = np.argsort(hashes, kind="stable")
        edges = np.flatnonzero(np.concatenate([[True], hashes[order][1:] != hashes[order][:-1], [True]]))
        for at in np.flatnonzero(np.diff(edges) > 1):
            bucket = order[edges[at] : edges[at + 1]]
            if not hashes[bucket[0]]:
                continue
            for _ in range(_ROUNDS):
                bucket = self._without_alike(bucket, sketches, parents, texts, near)
                if len(bucket) < 2:
                    break
            else:
                self.uncompared += len(bucket)

    def _without_alike(
        self,
        bucket: NDArray[np.int64],
        sketches: NDArray[np.uint64],
        parents: NDArray[np.int64],
        texts: Callable[[list[int]], list[str]],
        near: float,
    ) -> NDArray[np.int64]:
        """The bucket without its first text and without those that are of one group with it, which they join."""
        leader, others = int(bucket[0]), bucket[1:]
        apart = np.array([_root(parents, int(one)) != _root(parents, leader) for one in others])
        others = others[apart]
        close = bits_of(sketches[others] ^ sketches[leader]) <= apart_bits(near)
        candidates = others[close]
        alike = np.zeros(len(others), np.bool_)
        alike[np.flatnonzero(close)] = self._similar(leader, candidates, texts, near)
        for one in others[alike]:
            first, second = sorted((_root(parents, leader), _root(parents, int(one))))
            parents[second] = first
        left: NDArray[np.int64] = others[~alike]
        return left

    def _similar(
        self, leader: int, others: NDArray[np.int64], texts: Callable[[list[int]], list[str]], near: float
    ) -> NDArray[np.bool_]:
        found = [np.zeros(0, np.bool_)]
        for start in range(0, len(others), _COMPARED):
            own, *part = self._sets_of([leader, *map(int, others[start : start + _COMPARED])], texts)
            found.append(jaccard_with(own, part) >= near)
        return np.concatenate(found)

    def _sets_of(self, places: list[int], texts: Callable[[list[int]], list[str]]) -> list[NDArray[np.uint64]]:
        """The n-grams of texts. Texts of one bucket meet many times, so those that were used last are kept."""
        absent = [one for one in places if one not in self._sets]
        if absent:
            for one, found in zip(absent, shingle_sets(texts([self.rows[one] for one in absent])), strict=True):
                self._sets[one] = found
                self._remembered += len(found)
        chosen = []
        for one in places:
            self._sets.move_to_end(one)
            chosen.append(self._sets[one])
        while self._remembered > _REMEMBERED:
            self._remembered -= len(self._sets.popitem(last=False)[1])
        return chosen

    def _united(self, parents: NDArray[np.int64]) -> Iterator[list[int]]:
        roots = np.array([_root(parents, one) for one in range(len(parents))])
        order = np.argsort(roots, kind="stable")
        edges = np.flatnonzero(np.concatenate([[True], roots[order][1:] != roots[order][:-1], [True]]))
        for at in np.flatnonzero(np.diff(edges) > 1):
            yield [self.rows[one] for one in order[edges[at] : edges[at + 1]]]


def _root(parents: NDArray[np.int64], one: int) -> int:
    while parents[one] != one:
        parents[one] = parents[parents[one]]
        one = int(parents[one])
    return one
