"""Where a model stands among all, with the ranks that the data cannot exclude.

Percentiles of the ranks in resamples are too narrow where models lie close together: a resample adds noise to noise,
and ranks cannot be at both sides of 1 (Hall and Miller 2009; Xie, Singh and Zhang 2009). Here a rank is bounded by the
models that are surely better and surely worse, by simultaneous intervals of all differences (Mogstad, Romano, Shaikh
and Wilhelm 2024, "Inference for Ranks", sections 3.1 and 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Rank", "rank_intervals"]


@dataclass(frozen=True)
class Rank:
    """A place among all models. 1 has the lowest rate; models with equal rates share the better rank.

    Attributes:
        rank: by the estimates.
        low, high: best and worst rank that the data cannot exclude.
    """

    rank: int
    low: int
    high: int


def rank_intervals(
    rates: Sequence[float] | Array, draws: Array, *, confidence: float = 0.95, together: bool = True
) -> list[Rank | None]:
    """The rank of every model with its interval.

    Args:
        rates: estimates, shape `(models,)`; NaN for a model that is not ranked.
        draws: draws of each estimate, shape `(models, draws)`. Draw number b of all models must come from the same draw
            of what they share (the error profile, the queries): the error that they share moves no rank.
        confidence: of the intervals, between 0 and 1.
        together: True for intervals that hold for all models at once, as a table of them is read; False for intervals
            each of which holds for its own model.

    Returns:
        One of each model, in the order given; None where its rate is NaN.

    Raises:
        ValueError: shapes that do not fit.
    """
    estimates = np.asarray(rates, dtype=np.float64)
    if draws.ndim != 2 or len(draws) != len(estimates):
        raise ValueError(f"draws have the shape (models, draws): {len(estimates)} rates, draws of shape {draws.shape}")
    ranked = np.flatnonzero(~np.isnan(estimates))
    found: list[Rank | None] = [None] * len(estimates)
    if not len(ranked):
        return found
    chosen = estimates[ranked]
    better, worse = _surely(chosen, draws[ranked], confidence, together)
    for place, model in enumerate(ranked):
        rank = 1 + int((chosen < chosen[place]).sum())
        low, high = 1 + int(better[place].sum()), len(ranked) - int(worse[place].sum())
        found[model] = Rank(rank, min(low, rank), max(high, rank))
    return found


def _surely(estimates: Array, draws: Array, confidence: float, together: bool) -> tuple[NDArray[np.bool_], ...]:
    """Two tables `(model, other)`: which others are surely better (lower), and which surely worse."""
    models = len(estimates)
    defined = draws[:, np.isfinite(draws).all(axis=0)]
    nowhere = np.zeros((models, models), dtype=np.bool_)
    if models < 2 or defined.shape[1] < 2:
        return nowhere, nowhere
    centred = defined - defined.mean(axis=1, keepdims=True)
    errors = _errors(centred)
    differences = estimates[:, None] - estimates[None, :]
    critical = np.empty(models)
    largest = np.zeros((models, defined.shape[1]))
    for model in range(models):
        others = errors[model] > 0
        if others.any():
            gaps = np.abs(centred[model] - centred[others]) / errors[model][others][:, None]
            largest[model] = gaps.max(axis=0)
    if together:
        critical[:] = np.quantile(largest.max(axis=0), confidence)
    else:
        critical[:] = np.quantile(largest, confidence, axis=1)
    reach = critical[:, None] * errors
    # Two models that no draw tells apart have no error and no difference: neither is better.
    return differences > np.maximum(reach, 1e-15), -differences > np.maximum(reach, 1e-15)


def _errors(centred: Array) -> Array:
    """Standard errors of all differences, `(models, models)`, from centred draws `(models, draws)`."""
    covariance = np.atleast_2d(np.cov(centred))
    variances = np.diag(covariance)
    squares = variances[:, None] + variances[None, :] - 2 * covariance
    # Rounding leaves dust where two models share every draw.
    squares[squares < 1e-12 * np.maximum(variances[:, None], variances[None, :])] = 0.0
    errors: Array = np.sqrt(squares)
    return errors
