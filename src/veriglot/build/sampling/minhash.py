"""MinHash: numbers that two texts share with the probability of their Jaccard similarity (Broder 1997).

64 of them a text, in 16 bands of 4: texts that agree in a band are candidates, which at a similarity of 0.8 happens
with probability 0.9998, at 0.7 with 0.988, at 0.05 with 0.0001. A sketch of one bit of each of the 64 sets aside almost
all candidates that are not similar before their texts are read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from veriglot.build.sampling.shingles import mixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.build.sampling.shingles import Shingles

__all__ = ["BANDS", "apart_bits", "bits_of", "minhash"]

BANDS = 16
_ROWS = 4
_HASHES = BANDS * _ROWS
_SPREAD = 4.0  # standard deviations by which a sketch may miss the similarity that it stands for
_NUMBERS = mixed(np.arange(2 * _HASHES, dtype=np.uint64))
_ONES = np.array([value.bit_count() for value in range(256)], np.uint8)


def minhash(found: Shingles) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Bands and sketch of each text.

    Returns:
        Bands, shape (16, texts), and sketches, shape (texts,). Those of a text without n-grams are 0 and say nothing.
    """
    texts = len(found.starts) - 1
    filled = np.flatnonzero(np.diff(found.starts))
    bands, sketch = np.zeros((BANDS, texts), np.uint64), np.zeros(texts, np.uint64)
    if not filled.size:
        return bands, sketch
    starts = found.starts[filled]
    own, own_sketch = np.zeros((BANDS, filled.size), np.uint64), np.zeros(filled.size, np.uint64)
    for number in range(_HASHES):
        turned = (found.hashes ^ _NUMBERS[number]) * (_NUMBERS[_HASHES + number] | np.uint64(1))
        least = mixed(np.minimum.reduceat(turned, starts))
        own[number // _ROWS] = mixed(own[number // _ROWS] ^ least)
        own_sketch |= (least & np.uint64(1)) << np.uint64(number)
    bands[:, filled], sketch[filled] = own, own_sketch
    return bands, sketch


def bits_of(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many bits are set in each number."""
    bytes_ = np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8)
    counts: NDArray[np.int64] = _ONES[bytes_].sum(axis=1, dtype=np.int64)
    return counts


def apart_bits(similarity: float) -> int:
    """In how many bits the sketches of two texts of at least this similarity may differ; beyond, 3 in 100,000 do.

    A bit differs with probability (1 - J) / 2 (b-bit minwise hashing, Li and König 2010, with b = 1).
    """
    differs = (1 - similarity) / 2
    return math.ceil(_HASHES * differs + _SPREAD * math.sqrt(_HASHES * differs * (1 - differs)))
