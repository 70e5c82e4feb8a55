"""Exact repeats among any number of keys, in bounded memory: a range of hash values at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.build.sampling.fates import Fate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from veriglot.build.sampling.store import LineStore

__all__ = ["AT_ONCE", "in_slice", "mark_repeats", "slices_of"]

AT_ONCE = 2_000_000
"""How many hash values are sorted at once: 16 MB of them, and five times that while they are sorted."""

_BLOCK = 1 << 20


def slices_of(count: int, at_once: int) -> int:
    """Into how many ranges so many hash values are cut, for about `at_once` in each."""
    return max(1, -(-count // at_once))


def in_slice(hashes: NDArray[np.uint64], slice_: int, slices: int) -> NDArray[np.bool_]:
    """Which hashes belong to range number `slice_` of `slices`."""
    own: NDArray[np.uint64] = ((hashes >> np.uint64(32)) * np.uint64(slices)) >> np.uint64(32)
    inside: NDArray[np.bool_] = own == np.uint64(slice_)
    return inside


def mark_repeats(store: LineStore, fates: NDArray[np.uint8], *, at_once: int = AT_ONCE) -> None:
    """Give every kept line whose key an earlier kept line has the fate `REPEATED`, in place."""
    slices = slices_of(store.count, at_once)
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
