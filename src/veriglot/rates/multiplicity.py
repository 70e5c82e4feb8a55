"""Many comparisons at once: p-values that stay honest when several are looked at together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.errors import UnknownNameError
from veriglot.rates.scientific import statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["METHODS", "adjust"]


def adjust(p_values: Sequence[float] | Array, method: str = "holm") -> Array:
    """P-values after correction for all that stand beside them.

    Args:
        p_values: shape `(n,)`, between 0 and 1; NaN where a test could not be made.
        method: `holm` holds the chance of any false finding at the level (Holm 1979), whatever the dependence between
            the tests; `bh` holds the expected share of false findings among all findings (Benjamini and Hochberg 1995),
            for independent or positively dependent tests.

    Returns:
        Shape `(n,)`, in the order given, between 0 and 1. NaN stays NaN and is not counted as a test.

    Raises:
        UnknownNameError: no such method.
        ValueError: a p-value outside [0, 1].
        MissingExtraError: `bh` without the extra `stats`.
    """
    if method not in METHODS:
        raise UnknownNameError("correction for many comparisons", method, METHODS)
    given = np.asarray(p_values, dtype=np.float64)
    tested = ~np.isnan(given)
    kept = given[tested]
    if kept.size and (kept.min() < 0 or kept.max() > 1):
        raise ValueError(f"p-values lie between 0 and 1, not {kept.min():g} to {kept.max():g}")
    adjusted = np.full_like(given, np.nan)
    if kept.size:
        adjusted[tested] = METHODS[method](kept)
    return adjusted


def _holm(p_values: Array) -> Array:
    """Step down: the smallest is multiplied by the number of tests, the next by one less; never out of order."""
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def _benjamini_hochberg(p_values: Array) -> Array:
    controlled: Array = statistics("The correction `bh`").false_discovery_control(p_values, method="bh")
    return controlled


METHODS: dict[str, Callable[[Array], Array]] = {"holm": _holm, "bh": _benjamini_hochberg}
