"""Which responses are of one text, and folds that never part them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["FOLDS", "folds_of", "texts_of"]

FOLDS = 5


def texts_of(keys: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """The number of the text of each response, in order of first appearance; a shared key makes two of one text.

    Args:
        keys: of each response: what it says, what it was held against, the group that its source names.

    Returns:
        Shape (n,).
    """
    parent = list(range(len(keys)))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    first: dict[str, int] = {}
    for place, own in enumerate(keys):
        for key in own:
            parent[root(place)] = root(first.setdefault(key, place))
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(root(place), len(numbers)) for place in range(len(keys))], dtype=np.int64)


def folds_of(texts: NDArray[np.int64], strata: Sequence[str | None], seed: int) -> NDArray[np.int64]:
    """The fold of each response, 0 to `FOLDS` - 1: whole texts, spread evenly inside each stratum.

    Args:
        texts: of each response, shape (n,).
        strata: of each response, such as its script; a text belongs to that of its first response.
        seed: of the draw.
    """
    home: dict[int, str | None] = {}
    for text, stratum in zip(texts.tolist(), strata, strict=True):
        home.setdefault(text, stratum)
    members: dict[str, list[int]] = defaultdict(list)
    for text, stratum in home.items():
        members[stratum or ""].append(text)
    fold = np.zeros(len(home), dtype=np.int64)
    generator = np.random.default_rng(seed)
    start = 0
    for _, own in sorted(members.items()):
        fold[generator.permutation(own)] = (start + np.arange(len(own))) % FOLDS
        start += len(own)  # small strata do not all begin in the first fold
    placed: NDArray[np.int64] = fold[texts]
    return placed
