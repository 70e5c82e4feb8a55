"""Features of a word in its surroundings: does one place in the evidence hold the word *and* what stands around it?

The evidence is cut into overlapping windows of 24 words, never across passages. A word that stands in the evidence,
but far from everything that its sentence speaks of, is poorly supported; a word that is absent from a window which
holds all the rest of its sentence was probably exchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.hashing import slots

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.detectors.grounding.document import Document

__all__ = ["Windows", "around", "unit_length"]

STRIDE = 12  # words; a window is two strides long


class Windows:
    """Which stems stand in which window of the evidence.

    Attributes:
        first: the evidence word that each window begins with, shape (w,).
        last: one past the evidence word that it ends with, shape (w,).
    """

    def __init__(self, evidence: Document) -> None:
        passages = len(evidence.offsets) - 1
        sizes = np.bincount(evidence.passage, minlength=passages)
        counts = np.maximum(1, -(-sizes // STRIDE))
        bases = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        inside = np.arange(len(evidence)) - begins[evidence.passage]
        self._window = bases[evidence.passage] + inside // STRIDE
        self._opens = inside < STRIDE  # the first stride of a passage lies in one window only
        self._evidence = evidence
        owner = np.repeat(np.arange(passages), counts)
        order = np.arange(int(counts.sum())) - bases[owner]
        self.first = begins[owner] + order * STRIDE
        self.last = np.minimum(self.first + 2 * STRIDE, begins[owner + 1])

    def __len__(self) -> int:
        return len(self.first)

    def means(self, vectors: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """The weighted sum of the evidence words' vectors in each window, scaled to length 1; shape (w, d)."""
        sums = np.zeros((len(vectors) + 1, vectors.shape[1]), np.float32)
        np.cumsum(vectors * weights[:, None], axis=0, out=sums[1:])
        return unit_length(sums[self.last] - sums[self.first])

    def holding(self, *asked: NDArray[np.uint64]) -> list[NDArray[np.float32]]:
        """For each array of stems, which of them stand in which window: 0 or 1, shape (n, w)."""
        stems, rows = np.unique(np.concatenate(asked), return_inverse=True)
        held = np.zeros((len(stems), len(self)), np.float32)
        places = slots(stems, self._evidence.stem)
        words = np.flatnonzero(places >= 0)
        held[places[words], self._window[words]] = 1
        inner = words[~self._opens[words]]
        held[places[inner], self._window[inner] - 1] = 1
        splits = np.cumsum([len(part) for part in asked])[:-1]
        return [held[part] for part in np.split(rows, splits)]


def unit_length(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row scaled to length 1; rows of zeros stay so."""
    norms = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    scaled: NDArray[np.float32] = vectors / np.maximum(norms, 1e-6)
    return scaled


def around(held: NDArray[np.float32], rarity: NDArray[np.float32], reach: int) -> NDArray[np.float32]:
    """The share of the words up to `reach` away from each word that each window holds, by rarity.

    Args:
        held: which word stands in which window, shape (n, w).
        rarity: the weight of each word, shape (n,).
        reach: words on either side; the word itself does not count.

    Returns:
        Shares between 0 and 1, shape (n, w).
    """
    words = len(rarity)
    weighted = held * rarity[:, None]
    sums = np.zeros((words + 1, held.shape[1]), np.float32)
    np.cumsum(weighted, axis=0, out=sums[1:])
    totals = np.concatenate([np.zeros(1, np.float32), np.cumsum(rarity, dtype=np.float32)])
    low = np.maximum(np.arange(words) - reach, 0)
    high = np.minimum(np.arange(words) + reach + 1, words)
    share = sums[high]
    share -= sums[low]
    share -= weighted
    share /= np.maximum(totals[high] - totals[low] - rarity, 1e-6)[:, None]
    return share
