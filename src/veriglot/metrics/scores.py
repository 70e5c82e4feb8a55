"""Scores from counts of true and false positives and negatives, over arrays of any shape.

Every function takes counts whose last axis is `(tp, fp, fn, tn)` and gives one value per leading index. Where a
denominator is zero the value is NaN: it was not measured. Figures turn NaN into None with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["accuracy", "f1", "f1_of", "fpr", "mcc", "precision", "prevalence", "ratio", "recall"]


def ratio(part: Array, whole: Array) -> Array:
    """`part / whole`, NaN where `whole` is 0."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    out = np.full(np.broadcast_shapes(part.shape, whole.shape), np.nan)
    divided: Array = np.divide(part, whole, out=out, where=whole != 0)
    return divided


def precision(counts: Array) -> Array:
    """tp / (tp + fp): the share of marked units that are unsupported."""
    return ratio(counts[..., 0], counts[..., 0] + counts[..., 1])


def recall(counts: Array) -> Array:
    """tp / (tp + fn): the share of unsupported units that are marked; also called TPR."""
    return ratio(counts[..., 0], counts[..., 0] + counts[..., 2])


def fpr(counts: Array) -> Array:
    """fp / (fp + tn): the share of supported units that are marked."""
    return ratio(counts[..., 1], counts[..., 1] + counts[..., 3])


def f1(counts: Array) -> Array:
    """2 tp / (2 tp + fp + fn); NaN only where nothing is unsupported and nothing marked."""
    return ratio(2.0 * counts[..., 0], 2.0 * counts[..., 0] + counts[..., 1] + counts[..., 2])


def accuracy(counts: Array) -> Array:
    """(tp + tn) / all."""
    return ratio(counts[..., 0] + counts[..., 3], counts.sum(axis=-1))


def prevalence(counts: Array) -> Array:
    """(tp + fn) / all: the share of units that are unsupported."""
    return ratio(counts[..., 0] + counts[..., 2], counts.sum(axis=-1))


def mcc(counts: Array) -> Array:
    """Matthews correlation coefficient, in [-1, 1]; NaN where a row or column of the table is empty."""
    tp, fp, fn, tn = (counts[..., index].astype(np.float64) for index in range(4))
    root = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
    return ratio(tp * tn - fp * fn, root)


def f1_of(matched: Array, predicted: Array, gold: Array) -> Array:
    """2 matched / (predicted + gold), for things that are matched one to one."""
    return ratio(2.0 * matched, predicted + gold)
