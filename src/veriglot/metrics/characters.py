"""Character-level agreement of one response, as the Mu-SHROOM shared task defines it (SemEval-2025 task 3).

Both figures count every code point of the response, white space included, as the task's scorer does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["intersection_over_union", "soft_correlation", "spearman"]

_DIGITS = 8  # the task's scorer rounds to 8 digits before it asks whether a vector is constant


def intersection_over_union(gold: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> float:
    """Characters marked by both over characters marked by either; 1.0 where neither marks any.

    Args:
        gold: which code points the reference marks, shape `(n,)`.
        predicted: which the detector marks, shape `(n,)`.
    """
    either = int(np.count_nonzero(gold | predicted))
    return int(np.count_nonzero(gold & predicted)) / either if either else 1.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2.0)[place]
    return ranks


def spearman(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Spearman's rank correlation with ties at their mean rank; NaN where either is constant."""
    a, b = _ranks(first), _ranks(second)
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
