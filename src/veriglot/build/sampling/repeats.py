"""Exact repeats among any number of keys, in bounded memory: a range of hash values at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.build.sampling.fates import Fate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from veriglot.build.sampling.store import LineStore

__all__ = ["in_slice", "mark_repeats", "slices_of"]

_SLICE = 2_000_000  # numbers that are sorted at once: 16 MB of keys, five times that while sorting
_BLOCK = 1 << 20


def slices_of(count: int) -> int:
    """Into how many ranges of hash values so many numbers are cut."""
    return max(1, -(-count // _SLICE))


def in_slice(hashes: NDArray[np.uint64], slice_: int, slices: int) -> NDArray[np.bool_]:
    """Which hashes belong to range number `slice_` of `slices`."""
    own: NDArray[np.uint64] = ((hashes >> np.uint64(32)) * np.uint64(slices)) >> np.uint64(32)
    inside: NDArray[np.bool_] = own == np.uint64(slice_)
    return inside


def mark_repeats(store: LineStore, fates: NDArray[np.uint8]) -> None:
    """Give every kept line whose key an earlier kept line has the fate `REPEATED`, in place."""
    slices = slices_of(store.count)
    for slice_ in range(slices):
        keys, rows = _joined(_selected(store, fates, slice_, slices))
        order = np.argsort(keys, kind="stable")  # rows come in ascending order, so the first of equals is the earliest
        again = np.flatnonzero(keys[order[1:]] == keys[order[:-1]]) + 1
        fates[rows[order[again]]] = Fate.REPEATED


def _selected(
    store: LineStore, fates: NDArray[np.uint8], slice_: int, slices: int
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint32]]]:
    for start in range(0, store.count, _BLOCK):
        stop = min(start + _BLOCK, store.count)
        keys = store.keys(start, stop)
        chosen = np.flatnonzero(in_slice(keys, slice_, slices) & (fates[start:stop] == Fate.KEPT))
        yield keys[chosen], (chosen + start).astype(np.uint32)


def _joined(
    parts: Iterator[tuple[NDArray[np.uint64], NDArray[np.uint32]]],
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    found = list(parts)
    return np.concatenate([np.zeros(0, np.uint64), *(keys for keys, _ in found)]), np.concatenate(
        [np.zeros(0, np.uint32), *(rows for _, rows in found)]
    )
