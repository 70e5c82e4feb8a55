"""How well a score tells wrong from right: the area under the ROC curve, with resampled ones for intervals.

The area is the chance that a wrong response has a higher score than a right one, ties counted as half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.metrics.estimate import percentile, stream, weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def draws_of(clusters: Sequence[str], resamples: int, seed: int) -> dict[str, Array]:
    """Cluster to its weight in each draw, shape (1 + resamples,); draw 0 is the data."""
    names = sorted(set(clusters))
    table = weights(len(names), resamples, stream(seed, "clusters")).astype(np.float64)
    whole = np.concatenate([np.ones((1, len(names))), table])
    return {name: whole[:, i] for i, name in enumerate(names)}


def auc(scores: Array, wrong: NDArray[np.bool_], weight: Array) -> Array:
    """The area of each draw, shape (draws,); NaN where a draw holds no wrong or no right response.

    Args:
        scores: shape (n,); NaN where there is none, and that response is in no figure.
        wrong: shape (n,).
        weight: of each response in each draw, shape (draws, n).
    """
    given = ~np.isnan(scores)
    bad, good = given & wrong, given & ~wrong
    above = scores[bad][:, None] - scores[good][None, :]
    wins = (above > 0) + 0.5 * (above == 0)
    of_bad, of_good = weight[:, bad], weight[:, good]
    pairs = of_bad.sum(axis=1) * of_good.sum(axis=1)
    won = ((of_bad @ wins) * of_good).sum(axis=1)
    area: Array = np.divide(won, pairs, out=np.full(len(weight), np.nan), where=pairs > 0)
    return area


def mean_of(areas: Sequence[Array]) -> Array:
    """The mean of several areas draw by draw, over those that are defined."""
    table = np.array(areas)
    known = ~np.isnan(table)
    count = known.sum(axis=0)
    mean: Array = np.divide(
        np.where(known, table, 0.0).sum(axis=0), count, out=np.full(len(count), np.nan), where=count > 0
    )
    return mean


def shown(values: Array, digits: int = 3) -> str:
    """The figure of draw 0 with its 95% interval, or a dash."""
    if np.isnan(values[0]):
        return "-"
    low, high, _ = percentile(values[1:])
    interval = f" [{low:.{digits}f}, {high:.{digits}f}]" if low is not None else ""
    return f"{values[0]:.{digits}f}{interval}"


def as_number(values: Array) -> dict[str, Any]:
    """The figure of draw 0 with its 95% interval, as numbers."""
    low, high, _ = percentile(values[1:])
    value = None if np.isnan(values[0]) else round(float(values[0]), 5)
    return {"value": value, "low": low, "high": high}
