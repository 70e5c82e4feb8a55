"""Matching predicted spans to reference spans, one to one.

Three ways, each giving how much was matched out of how many predicted and how many in the reference:

- `exact`: the same start and end.
- `overlap`: intersection over union of at least a threshold. The number of pairs is the largest possible (a maximum
  bipartite matching), so it depends on no order; where the spans of each side do not overlap among themselves, as a
  detector's never do, it equals what greedy matching finds.
- `partial`: as in MUC-5, 1 for an exact match and 0.5 for a pair that overlaps at all, matched after the exact ones.

Typed matching asks for the same type as well.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Bounds = NDArray[np.int32]
    Types = Sequence[str | None]

__all__ = ["IOU_THRESHOLD", "Matched", "exact", "overlap", "pairwise_iou", "partial"]

IOU_THRESHOLD = 0.5


class Matched(NamedTuple):
    """Matched credit, and the numbers of predicted and of reference spans of one response."""

    matched: float
    predicted: int
    gold: int


def pairwise_iou(first: Bounds, second: Bounds) -> NDArray[np.float64]:
    """Intersection over union of every pair of half-open ranges, shape `(len(first), len(second))`."""
    low = np.maximum(first[:, None, 0], second[None, :, 0])
    high = np.minimum(first[:, None, 1], second[None, :, 1])
    shared = np.maximum(high - low, 0)
    sizes = (first[:, 1] - first[:, 0])[:, None] + (second[:, 1] - second[:, 0])[None, :]
    result: NDArray[np.float64] = shared / (sizes - shared) if shared.size else np.zeros(shared.shape)
    return result


def _maximum_matching(allowed: NDArray[np.bool_]) -> dict[int, int]:
    """Column to row of a largest one-to-one matching, by augmenting paths (Kuhn 1955)."""
    row_of: dict[int, int] = {}
    edges = [np.flatnonzero(row).tolist() for row in allowed]

    def place(root: int) -> None:
        seen: set[int] = set()
        path: list[tuple[int, int]] = []  # (row, column) pairs tried on the way down
        pending = [(root, iter(edges[root]))]
        while pending:
            row, columns = pending[-1]
            for column in columns:
                if column in seen:
                    continue
                seen.add(column)
                path.append((row, column))
                if column not in row_of:
                    row_of.update({taken: by for by, taken in path})
                    return
                pending.append((row_of[column], iter(edges[row_of[column]])))
                break
            else:
                pending.pop()
                if path:
                    path.pop()

    for row in range(len(edges)):
        place(row)
    return row_of


def _allowed(scores: NDArray[np.bool_], types: Types | None, gold_types: Types | None) -> NDArray[np.bool_]:
    if types is None or gold_types is None:
        return scores
    same = np.array([[a is not None and a == b for b in gold_types] for a in types], dtype=bool)
    both: NDArray[np.bool_] = scores & same.reshape(scores.shape)
    return both


def exact(predicted: Bounds, gold: Bounds, types: Types | None = None, gold_types: Types | None = None) -> Matched:
    """Spans with the same start and end (and the same type, where types are given)."""
    left = Counter(zip(map(tuple, predicted.tolist()), types or [None] * len(predicted), strict=True))
    right = Counter(zip(map(tuple, gold.tolist()), gold_types or [None] * len(gold), strict=True))
    shared = left & right
    if types is not None and gold_types is not None:
        shared = Counter({key: count for key, count in shared.items() if key[1] is not None})
    return Matched(shared.total(), len(predicted), len(gold))


def overlap(
    predicted: Bounds,
    gold: Bounds,
    types: Types | None = None,
    gold_types: Types | None = None,
    threshold: float = IOU_THRESHOLD,
) -> Matched:
    """The most pairs with an intersection over union of at least `threshold` (0 < threshold <= 1)."""
    close = _allowed(pairwise_iou(predicted, gold) >= threshold, types, gold_types)
    return Matched(len(_maximum_matching(close)), len(predicted), len(gold))


def partial(predicted: Bounds, gold: Bounds) -> Matched:
    """MUC credit: 1 for the same range, 0.5 for another pair that overlaps."""
    scores = pairwise_iou(predicted, gold)
    same = _maximum_matching(scores == 1.0)
    rest = scores > 0.0
    rest[list(same.values()), :] = False
    rest[:, list(same)] = False
    return Matched(len(same) + 0.5 * len(_maximum_matching(rest)), len(predicted), len(gold))
