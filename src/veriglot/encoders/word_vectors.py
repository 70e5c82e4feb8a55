"""From token vectors to word vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.encoders.encoder import Encoded

__all__ = ["word_vectors"]


def word_vectors(encoded: Encoded, word_bounds: NDArray[np.int64]) -> NDArray[np.float32]:
    """The mean of the token vectors that overlap each word, shape (n, token_dimension); zero where none does.

    Args:
        encoded: a text.
        word_bounds: words as half-open code point ranges of that text, shape (n, 2), in any order.
    """
    words = np.asarray(word_bounds, np.int64).reshape(-1, 2)
    vectors = encoded.token_vectors
    means = np.zeros((len(words), vectors.shape[1]), np.float32)
    first = np.searchsorted(encoded.token_bounds[:, 1], words[:, 0], side="right")
    after = np.searchsorted(encoded.token_bounds[:, 0], words[:, 1], side="left")
    counts = np.maximum(after - first, 0)
    found = np.flatnonzero(counts)
    means[found] = vectors[first[found]]
    # A word has few tokens, so this goes round a few times, over ever fewer words. np.add.reduceat would need
    # the words in order and apart.
    for nth in range(1, int(counts.max(initial=0))):
        longer = np.flatnonzero(counts > nth)
        means[longer] += vectors[first[longer] + nth]
    several = counts > 1
    means[several] /= counts[several, None]
    return means
