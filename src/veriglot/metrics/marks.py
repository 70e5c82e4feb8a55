"""Spans laid over units: which units are marked, as which types, and with what probability.

A unit is marked when a span overlaps it in at least one code point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.records import Span, Word

    Bounds = NDArray[np.int32]

__all__ = ["covered", "marked", "marked_types", "probabilities", "ranges", "unit_probabilities"]


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
    kept = confidences[order]
    values = np.zeros(len(edges) - 1, dtype=np.float64)
    values[1::2] = kept
    values[2:-1:2] = np.minimum(kept[:-1], kept[1:])
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
