"""The share of a response's facts that are supported: FActScore (Min et al. 2023), kang's support rate N_vs / N_t.

Kept per response as columns that add, so that means over responses and their correlation cost additions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics.scores import ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["SUPPORT", "correlation", "mean_of", "support"]

# Responses with facts; the share supported by the labels, as marked, and as the scores expect; how far the latter is
# off; and the products that a correlation of the first with the last takes.
SUPPORT = ("responses", "gold", "marked", "expected", "off", "gold_squared", "expected_squared", "product")


def support(gold: NDArray[np.bool_], found: NDArray[np.bool_], scores: Array | None) -> list[float]:
    """The columns `SUPPORT` of one response; zeros where it has no facts.

    Args:
        gold: which facts the reference calls unsupported, shape `(n,)`.
        found: which the detector marks.
        scores: the probability that each is unsupported; None where the detector gives none: then marks stand for it.
    """
    if not len(gold):
        return [0.0] * len(SUPPORT)
    true, marked = 1.0 - float(gold.mean()), 1.0 - float(found.mean())
    expected = marked if scores is None else 1.0 - float(scores.mean())
    return [1.0, true, marked, expected, abs(expected - true), true**2, expected**2, true * expected]


def mean_of(sums: Array, column: str) -> Array:
    """The mean over responses of one column of `SUPPORT`; NaN where there are none.

    Args:
        sums: summed columns, shape `(..., len(SUPPORT))`.
        column: its name.
    """
    return ratio(sums[..., SUPPORT.index(column)], sums[..., 0])


def correlation(sums: Array) -> Array:
    """Pearson's correlation over responses of the share that the labels support with the one that the scores expect.

    NaN where either is the same in every response (kang, Table 6, column Pearson).
    """
    gold, expected, gold_squared, expected_squared, product = (
        mean_of(sums, name) for name in ("gold", "expected", "gold_squared", "expected_squared", "product")
    )
    spread = np.maximum(gold_squared - gold**2, 0.0) * np.maximum(expected_squared - expected**2, 0.0)
    found = ratio(product - gold * expected, np.sqrt(np.where(spread > 1e-18, spread, 0.0)))
    return np.clip(found, -1.0, 1.0)
