"""Parts of given sizes by a stable hash, with groups that stay together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.build.sampling.choosing import salted
from veriglot.build.sampling.shingles import mixed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["sizes_of", "split"]


def sizes_of(total: int, parts: Mapping[str, int]) -> dict[str, int]:
    """How many of `total` lines each part gets: its size, where the parts hold just so many; else in proportion."""
    held = sum(parts.values())
    exact = {name: total * size / held for name, size in parts.items()}
    sizes = {name: int(share) for name, share in exact.items()}
    for name in sorted(parts, key=lambda name: sizes[name] - exact[name])[: total - sum(sizes.values())]:
        sizes[name] += 1
    return sizes


def split(groups: NDArray[np.int64], keys: NDArray[np.uint64], parts: Mapping[str, int], seed: int) -> list[str]:
    """The part of each line.

    A hash of a group's least key decides its part; where that has no room left for all of it, the part with the most
    room takes it. Lines on their own then fill the parts in the order of their hashes. So the sizes are exact unless
    groups are too large for that, and a line's place does not depend on the order of the data.

    Args:
        groups: of each line; equal numbers stay together.
        keys: of each line.
        parts: name to size; see `sizes_of`.
        seed: of the hash.
    """
    if not len(groups):
        return []
    least, members = _least(groups, keys)
    hashes = mixed(least ^ salted(seed, "split"))
    order = np.argsort(hashes, kind="stable").tolist()
    counts = np.bincount(members).tolist()
    wanted = sizes_of(len(groups), parts)
    room, part_of = dict(wanted), [""] * len(counts)
    for group in (group for group in order if counts[group] > 1):
        part = _at(float(hashes[group]) / 2.0**64, wanted)
        part = part if room[part] >= counts[group] else max(room, key=lambda name: room[name])
        part_of[group] = part
        room[part] -= counts[group]
    for group in (group for group in order if counts[group] == 1):
        part = next(name for name, left in room.items() if left > 0)
        part_of[group] = part
        room[part] -= 1
    return [part_of[group] for group in members.tolist()]


def _least(groups: NDArray[np.int64], keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The least key of each group, and for each line which of the groups, in ascending order, is its own."""
    names, members = np.unique(groups, return_inverse=True)
    least = np.full(len(names), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(least, members, keys)
    return least, members


def _at(share: float, sizes: Mapping[str, int]) -> str:
    """The part that a number between 0 and 1 falls into."""
    reached, total = 0, sum(sizes.values())
    for name, size in sizes.items():
        reached += size
        if share * total < reached:
            return name
    return list(sizes)[-1]
