"""Rolling hashes: the hash of any stretch of a text in constant time, whole arrays at a time.

A text of code points c_0 .. c_{n-1} has the prefix sums P_i = sum of f(c_k) * B^k over k < i, modulo 2^64, with an odd
base B. A stretch [s, e) hashes to (P_e - P_s) * B^-s, whatever its place, so equal stretches meet. Odd numbers
have inverses modulo 2^64, which makes B^-s a table look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Stretches", "contains", "count", "count_sorted", "mixed", "slots"]

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
    found: NDArray[np.bool_] = bitmap[(asked * _MIX) >> shift]
    return found


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
