"""Near-duplicates among any number of lines, in bounded memory: candidates by MinHash, a verdict by their texts.

Band by band, lines whose band agrees stand together; the earliest of them is held against the others, and those that
are similar enough fall out; then the earliest of the rest, until every line was held against those before it. A line
falls out once, so the work is bounded by the lines and not by the pairs. What a line is a near-duplicate of may itself
fall out in a later band, as one of a line before: of a chain of near-duplicates the first stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.build.sampling.examining import compared_text
from veriglot.build.sampling.fates import Fate
from veriglot.build.sampling.minhash import BANDS, apart_bits, bits_of
from veriglot.build.sampling.repeats import AT_ONCE, in_slice, slices_of
from veriglot.build.sampling.shingles import shingles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.build.sampling.shards import Shards
    from veriglot.build.sampling.store import LineStore
    from veriglot.run.watch import Watch

__all__ = ["mark_near_duplicates"]

_PAIRS = 512  # pairs of texts that are compared at once
_KEPT = 500_000  # n-grams of texts that are kept from one comparison to the next: about 50 MB
_ROUNDS = 1_000  # lines of one bucket that the others are held against


def mark_near_duplicates(
    store: LineStore,
    shards: Shards,
    fates: NDArray[np.uint8],
    *,
    near: float,
    unique: str,
    watch: Watch,
    at_once: int = AT_ONCE,
) -> int:
    """Give every kept line that is a near-duplicate of an earlier one the fate `NEAR_DUPLICATE`, in place.

    Args:
        store: the lines.
        shards: with the arrays `bands` and `sketches` of every line.
        fates: of every line.
        near: Jaccard similarity from which a line is a near-duplicate.
        unique: `source` or `pair`, what is compared.
        watch: told of every band.
        at_once: about how many lines are sorted at once.

    Returns:
        Lines that stood in a bucket too full for all to be compared; 0 unless thousands of different lines agree.
    """
    slices = slices_of(int((fates == Fate.KEPT).sum()), at_once)
    ngrams, uncompared = _Ngrams(store, unique), 0
    for band in range(BANDS):
        for slice_ in range(slices):
            bucket = _Bucket(*_selected(shards, fates, band, slice_, slices))
            uncompared += _thin(bucket, ngrams, fates, near)
        watch.advance()
    return uncompared


class _Bucket:
    """Lines sorted by what they agree in, each run of equals a bucket, the earliest line of it first."""

    def __init__(self, hashes: NDArray[np.uint64], rows: NDArray[np.uint32], sketches: NDArray[np.uint64]) -> None:
        order = np.argsort(hashes, kind="stable")
        self.hashes, self.rows, self.sketches = hashes[order], rows[order], sketches[order]
        self.keep(np.ones(len(order), np.bool_))

    def keep(self, chosen: NDArray[np.bool_]) -> None:
        """Keep the lines chosen, without those that are left alone."""
        hashes = self.hashes[chosen]
        again = hashes[1:] == hashes[:-1]
        company = np.concatenate([again, [False]]) | np.concatenate([[False], again])
        place = np.flatnonzero(chosen)[company[: len(hashes)]]
        self.hashes, self.rows, self.sketches = self.hashes[place], self.rows[place], self.sketches[place]

    def leaders(self) -> NDArray[np.int64]:
        """For each line the place of the first one of its bucket."""
        is_first = np.concatenate([[True], self.hashes[1:] != self.hashes[:-1]])[: len(self.hashes)]
        return np.maximum.accumulate(np.where(is_first, np.arange(len(is_first)), 0))


def _selected(
    shards: Shards, fates: NDArray[np.uint8], band: int, slice_: int, slices: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint64]]:
    hashes, rows, sketches = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint32)], [np.zeros(0, np.uint64)]
    for (start, bands), (_, own_sketches) in zip(shards.arrays("bands"), shards.arrays("sketches"), strict=True):
        own = np.array(bands[band])
        wanted = (own != 0) & (fates[start : start + len(own)] == Fate.KEPT) & in_slice(own, slice_, slices)
        chosen = np.flatnonzero(wanted)
        hashes.append(own[chosen])
        rows.append((chosen + start).astype(np.uint32))
        sketches.append(own_sketches[chosen])
    return np.concatenate(hashes), np.concatenate(rows), np.concatenate(sketches)


class _Ngrams:
    """The n-grams of lines; those looked at last are kept, since of many alike each is looked at many times."""

    def __init__(self, store: LineStore, unique: str) -> None:
        self._store, self._unique = store, unique
        self._kept: dict[int, frozenset[int]] = {}
        self._count = 0

    def of(self, rows: NDArray[np.uint32]) -> dict[int, frozenset[int]]:
        """The n-grams of lines, in ascending order of their numbers, and of some others."""
        if self._count > _KEPT:
            self._kept = {row: self._kept[row] for row in rows.tolist() if row in self._kept}
            self._count = sum(map(len, self._kept.values()))
        missing = np.array([row for row in rows.tolist() if row not in self._kept], np.uint32)
        found = shingles([compared_text(line, self._unique) for line in self._store.pick(missing)])
        bounds = found.starts.tolist()
        for place, row in enumerate(missing.tolist()):
            self._kept[row] = frozenset(found.hashes[bounds[place] : bounds[place + 1]].tolist())
            self._count += len(self._kept[row])
        return self._kept


def _thin(bucket: _Bucket, ngrams: _Ngrams, fates: NDArray[np.uint8], near: float) -> int:
    """Take near-duplicates out of buckets; returns how many lines were left without being compared."""
    most = apart_bits(near)
    for _ in range(_ROUNDS):
        if not bucket.rows.size:
            return 0
        leaders = bucket.leaders()
        is_other = leaders != np.arange(len(leaders))
        alike = bits_of(bucket.sketches ^ bucket.sketches[leaders]) <= most
        places = np.flatnonzero(is_other & alike)
        same = _similar(ngrams, bucket.rows[leaders[places]], bucket.rows[places], near)
        fates[bucket.rows[places[same]]] = Fate.NEAR_DUPLICATE
        is_other[places[same]] = False
        bucket.keep(is_other)
    return int(bucket.rows.size)


def _similar(ngrams: _Ngrams, first: NDArray[np.uint32], second: NDArray[np.uint32], near: float) -> NDArray[np.bool_]:
    """Which pairs of lines are as similar as `near` by their texts."""
    same = np.zeros(len(first), np.bool_)
    for start in range(0, len(first), _PAIRS):
        pairs = first[start : start + _PAIRS], second[start : start + _PAIRS]
        own = ngrams.of(np.unique(np.concatenate(pairs)))
        for place, (one, other) in enumerate(zip(*(rows.tolist() for rows in pairs), strict=True), start=start):
            same[place] = _is_near(own[one], own[other], near)
    return same


def _is_near(one: frozenset[int], other: frozenset[int], near: float) -> bool:
    fewer, more = sorted((len(one), len(other)))
    if not fewer or fewer < near * more - 1e-9:
        return False
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) >= near
