"""How well probabilities do on labels, with intervals over whole texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics.bootstrap import percentile, stream, weights
from veriglot.metrics.histogram import BINS, auroc, average_precision, bin_of, ece_equal_mass
from veriglot.metrics.scores import f1, ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["RESAMPLES", "Judged", "best_threshold", "judged"]

RESAMPLES = 1000
_TEXTS = 512  # laid out densely at a time


@dataclass(frozen=True)
class Judged:
    """One figure: its value, its 95% interval, and its value in every resample, shape (resamples,)."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    drawn: Array


def judged(
    confidences: Array,
    targets: NDArray[np.bool_],
    texts: NDArray[np.int64],
    *,
    seed: int,
    threshold: float | Array | None = None,
) -> list[Judged]:
    """Figures of probabilities held against labels.

    Resamples hang on the seed and the texts alone, so figures of the same units can be compared draw by draw.

    Args:
        confidences: of each unit, 0 to 1, shape (n,).
        targets: whether each is unsupported, shape (n,).
        texts: the text of each, shape (n,).
        seed: of the resamples.
        threshold: from which a unit is marked, for all or for each, for F1; None for no F1.

    Returns:
        `ece` over 15 groups of equal mass (Nixon et al. 2019), `brier`, `average_precision`, `auroc`, and `f1`.
    """
    _, number = np.unique(texts, return_inverse=True)
    count = int(number.max()) + 1 if len(number) else 0
    drawn = _draws(count, seed)
    positives, negatives, promised, errors = _histograms(confidences, targets, number, drawn)
    values = {
        "ece": ece_equal_mass(positives, negatives, promised),
        "brier": ratio(errors.sum(axis=-1), (positives + negatives).sum(axis=-1)),
        "average_precision": average_precision(positives, negatives),
        "auroc": auroc(positives, negatives),
    }
    if threshold is not None:
        values["f1"] = _f1(confidences >= threshold, targets, number, drawn)
    return [_figure(name, value) for name, value in values.items()]


def _figure(name: str, drawn: Array) -> Judged:
    if np.isnan(drawn[0]):
        return Judged(name, None, None, None, drawn[1:])
    low, high, _ = percentile(drawn[1:])
    return Judged(name, float(drawn[0]), low, high, drawn[1:])


def _draws(count: int, seed: int) -> Array:
    """How often each text is there: once in the data (row 0), and as drawn in each resample after it."""
    once = np.ones((1, count))
    return np.concatenate([once, weights(count, RESAMPLES, stream(seed, "quality"))]) if count > 1 else once


def _histograms(confidences: Array, targets: NDArray[np.bool_], number: NDArray[np.int64], drawn: Array) -> Array:
    """Histograms of every draw, shape (4, draws, BINS)."""
    place = bin_of(confidences)
    values = (targets, ~targets, confidences, (confidences - targets) ** 2)
    sums = np.zeros((len(drawn), len(values) * BINS))
    for start in range(0, drawn.shape[1], _TEXTS):
        end = min(start + _TEXTS, drawn.shape[1])
        here = (number >= start) & (number < end)
        table = np.zeros((end - start, len(values), BINS))
        for part, value in enumerate(values):
            np.add.at(table[:, part], (number[here] - start, place[here]), value[here].astype(np.float64))
        sums += drawn[:, start:end] @ table.reshape(end - start, -1)
    return np.moveaxis(sums.reshape(len(drawn), len(values), BINS), 1, 0)


def _f1(marked: NDArray[np.bool_], targets: NDArray[np.bool_], number: NDArray[np.int64], drawn: Array) -> Array:
    table = np.zeros((drawn.shape[1], 4))
    for part, kind in enumerate((marked & targets, marked & ~targets, ~marked & targets, ~marked & ~targets)):
        np.add.at(table[:, part], number[kind], 1.0)
    return f1(drawn @ table)


def best_threshold(confidences: Array, targets: NDArray[np.bool_]) -> float:
    """The confidence from which marking gives the best F1; the highest of several equals, and 0.5 without positives."""
    if not targets.any():
        return 0.5
    order = np.argsort(-confidences, kind="stable")
    ordered, found = confidences[order], np.cumsum(targets[order])
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # ties are marked together
    score = 2.0 * found[last] / (last + 1 + int(targets.sum()))
    return float(ordered[last[int(score.argmax())]])
