"""Span metrics: spans matched one to one, exact, overlapping or partial; character IoU and soft labels.

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

from veriglot.metrics.ranking import mid_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.records import Span, Word

__all__ = [
    "covered",
    "exact",
    "intersection_over_union",
    "marked",
    "marked_types",
    "overlap",
    "partial",
    "probabilities",
    "ranges",
    "soft_correlation",
    "unit_probabilities",
]


if TYPE_CHECKING:
    Bounds = NDArray[np.int32]
    Types = Sequence[str | None]


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


# Character-level agreement of one response, as the Mu-SHROOM shared task defines it (SemEval-2025 task 3).
#
# Both figures count every code point of the response, white space included, as the task's scorer does.


_DIGITS = 8  # the task's scorer rounds to 8 digits before it asks whether a vector is constant


def intersection_over_union(gold: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> float:
    """Characters marked by both over characters marked by either; 1.0 where neither marks any.

    Args:
        gold: which code points the reference marks, shape `(n,)`.
        predicted: which the detector marks, shape `(n,)`.
    """
    either = int(np.count_nonzero(gold | predicted))
    return int(np.count_nonzero(gold & predicted)) / either if either else 1.0


def spearman(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Spearman's rank correlation with ties at their mean rank; NaN where either is constant."""
    a, b = (mid_ranks(values, np.ones((1, len(values))))[0] for values in (first, second))
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else float("nan")


def soft_correlation(gold: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    """Spearman's correlation of predicted probabilities with soft labels, per code point of one response.

    Where either vector is constant the correlation is undefined, and the task's scorer gives 1.0 if both are constant
    (both say that nothing stands out) and 0.0 if only one is. An empty response counts as constant on both sides.
    """
    constant = [len(np.unique(np.round(vector, _DIGITS))) <= 1 for vector in (gold, predicted)]
    if any(constant):
        return float(all(constant))
    return spearman(gold, predicted)


# Spans laid over units: which units are marked, as which types, and with what probability.
#
# A unit is marked when a span overlaps it in at least one code point.


def ranges(marks: Sequence[Span] | Sequence[Word]) -> Bounds:
    """Spans or words as an array of half-open ranges, shape `(n, 2)`."""
    return np.array([(mark.start, mark.end) for mark in marks], dtype=np.int32).reshape(-1, 2)


def marked(bounds: Bounds, spans: Bounds) -> NDArray[np.bool_]:
    """Which units overlap any span.

    Args:
        bounds: units, shape `(n, 2)`, with starts and ends that never fall.
        spans: half-open ranges of shape `(m, 2)`, in any order, overlapping or not.
    """
    steps = np.zeros(len(bounds) + 1, dtype=np.int64)
    if len(spans) and len(bounds):
        first = np.searchsorted(bounds[:, 1], spans[:, 0], side="right")
        after = np.searchsorted(bounds[:, 0], spans[:, 1], side="left")
        hit = after > first
        np.add.at(steps, first[hit], 1)
        np.add.at(steps, after[hit], -1)
    touched: NDArray[np.bool_] = np.cumsum(steps[:-1]) > 0
    return touched


def marked_types(bounds: Bounds, spans: Bounds, types: Sequence[str | None], names: Sequence[str]) -> NDArray[np.bool_]:
    """Which units overlap a span of which type, shape `(n, len(names))`; a unit may hold several types.

    A span whose type is None or not in `names` marks no column.
    """
    table = np.zeros((len(bounds), len(names)), dtype=bool)
    labels = np.array([name if name is not None else "" for name in types], dtype=object)
    for column, name in enumerate(names):
        chosen = labels == name
        if chosen.any():
            table[:, column] = marked(bounds, spans[chosen])
    return table


def covered(length: int, spans: Bounds) -> NDArray[np.bool_]:
    """Which of `length` code points lie in any span, white space included; shape `(length,)`."""
    steps = np.zeros(length + 1, dtype=np.int64)
    np.add.at(steps, spans[:, 0], 1)
    np.add.at(steps, spans[:, 1], -1)
    inside: NDArray[np.bool_] = np.cumsum(steps[:-1]) > 0
    return inside


def probabilities(length: int, words: Bounds, confidences: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of each code point, from those of words; shape `(length,)`.

    A code point between two words (white space, punctuation) takes the smaller probability of its neighbours, and one
    before the first or after the last word takes 0: a gap is unsupported only where both sides are. Where words
    overlap, the earlier one holds.
    """
    if not len(words):
        return np.zeros(length, dtype=np.float64)
    order = np.argsort(words[:, 0], kind="stable")
    edges = np.concatenate([[0], np.maximum.accumulate(words[order].ravel()), [length]])
    values_of_words = confidences[order]
    values = np.zeros(len(edges) - 1, dtype=np.float64)
    values[1::2] = values_of_words
    values[2:-1:2] = np.minimum(values_of_words[:-1], values_of_words[1:])
    return np.repeat(values, np.diff(edges))


def unit_probabilities(bounds: Bounds, by_character: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of each unit: the greatest of its code points; shape `(n,)`."""
    if not len(bounds):
        return np.zeros(0, dtype=np.float64)
    widths = bounds[:, 1] - bounds[:, 0]
    places = np.repeat(bounds[:, 0] - np.concatenate([[0], np.cumsum(widths)[:-1]]), widths) + np.arange(widths.sum())
    result: NDArray[np.float64] = np.maximum.reduceat(
        by_character[places], np.concatenate([[0], np.cumsum(widths)[:-1]])
    )
    return result
