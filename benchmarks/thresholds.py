"""Figures of a decision: where to cut a score, counts under resampling, and the area under precision and recall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Flags = NDArray[np.bool_]


def best_cut(scores: Array, wrong: Flags, figure: Callable[[Array], Array]) -> float:
    """The threshold whose decision `score >= threshold` has the highest figure, halfway to the next score below.

    Args:
        scores: shape (n,); NaN is not scored and in no count.
        wrong: shape (n,).
        figure: from counts `(..., 4)` of true and false positives and negatives; NaN never wins.

    Of equal ones the highest threshold is taken; infinity (mark nothing) where there is nothing to choose from.
    """
    given = ~np.isnan(scores)
    scores, wrong = scores[given], wrong[given]
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], wrong[order].astype(np.float64)
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if len(ranked) else np.empty(0, np.int64)
    if not len(last):
        return float("inf")
    tp = np.cumsum(hits)[last]
    fp = last + 1 - tp
    fn, tn = hits.sum() - tp, (len(hits) - hits.sum()) - fp
    values = figure(np.stack([tp, fp, fn, tn], axis=1))
    chosen = int(np.argmax(np.where(np.isnan(values), -np.inf, values)))
    here = ranked[last[chosen]]
    return float((here + ranked[last[chosen] + 1]) / 2 if last[chosen] + 1 < len(ranked) else here)


def counted(marked: Flags, wrong: Flags, weight: Array) -> Array:
    """Counts `(tp, fp, fn, tn)` of every draw, shape (draws, 4), from decisions (n,) and weights (draws, n)."""
    kinds = np.stack([marked & wrong, marked & ~wrong, ~marked & wrong, ~marked & ~wrong], axis=1)
    return weight @ kinds.astype(np.float64)


def average_precision(scores: Array, wrong: Flags, weight: Array) -> Array:
    """The area under precision over recall of every draw, shape (draws,), in steps, equal scores as one step.

    NaN where a draw holds nothing wrong. By chance it is the share of wrong ones.
    """
    given = ~np.isnan(scores)
    scores, wrong, weight = scores[given], wrong[given], weight[:, given]
    order = np.argsort(-scores, kind="stable")
    ranked, weight = scores[order], weight[:, order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if len(ranked) else np.empty(0, np.int64)
    tp = np.cumsum(weight * wrong[order], axis=1)[:, last]
    seen = np.cumsum(weight, axis=1)[:, last]
    precision = np.divide(tp, seen, out=np.zeros_like(tp), where=seen > 0)
    steps = np.diff(tp, axis=1, prepend=0.0)
    total = tp[:, -1] if len(last) else np.zeros(len(weight))
    area: Array = np.divide((steps * precision).sum(axis=1), total, out=np.full(len(weight), np.nan), where=total > 0)
    return area
