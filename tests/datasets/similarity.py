"""Exact pairwise similarity of texts, as a reference for near-duplicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.datasets.near_duplicates import jaccard_with, shingle_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def jaccard(first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
    """Jaccard similarity of each text of `first` and the text of `second` at the same index."""
    pairs = zip(shingle_sets(first), shingle_sets(second), strict=True)
    return np.array([jaccard_with(own, [other])[0] for own, other in pairs], np.float64)
