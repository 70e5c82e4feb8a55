"""Chance-corrected coefficients from counts: Cohen's kappa, Scott's pi and Krippendorff's alpha.

All take counts that have already been summed, one draw after another, so that a thousand resamples cost one matrix
product. Each coefficient is 1 - observed / expected disagreement; where the expected one is 0 (everybody gave every
unit the same label) it is undefined, and NaN here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Scale", "alpha", "coincidences", "distances", "kappa", "pi"]

Scale = Literal["nominal", "ordinal", "interval"]


def kappa(tables: Array) -> Array:
    """Cohen's kappa of two annotators (Cohen 1960), each expected to label by the shares of their own labels.

    Args:
        tables: how many units one gave label `i` and the other label `j`, shape `(..., labels, labels)`.

    Returns:
        Shape `(...)`; NaN where there are no units, or where chance alone explains them all.
    """
    total = tables.sum(axis=(-2, -1))
    same = np.trace(tables, axis1=-2, axis2=-1)
    expected = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    return _corrected(same * total, expected, total * total)


def pi(tables: Array) -> Array:
    """Scott's pi (Scott 1955): both are expected to label by the shares of their labels together.

    It does not ask who of the two is who, so it is what can be had where annotators have no names.

    Args:
        tables: as for `kappa`; turned round, they give the same.
    """
    total = tables.sum(axis=(-2, -1))
    same = np.trace(tables, axis1=-2, axis2=-1)
    both = tables.sum(axis=-1) + tables.sum(axis=-2)
    return _corrected(same * total, (both * both).sum(axis=-1) / 4, total * total)


def _corrected(observed: Array, expected: Array, most: Array) -> Array:
    room = most - expected
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.where(room > 1e-12 * most, (observed - expected) / room, np.nan)
    return found


def coincidences(labels: NDArray[np.int64], values: int) -> Array:
    """Pairs of labels inside units, as Krippendorff counts them (2004, section 11.3): shape `(values, values)`.

    Each unit gives each ordered pair of its labels, weighted by 1 / (labels - 1); a unit with one label gives none.

    Args:
        labels: which value each annotator gave each unit, shape `(annotators, units)`; negative where none.
        values: how many values there are.
    """
    given = np.stack([(labels == value).sum(axis=0) for value in range(values)]).astype(np.float64)
    raters = given.sum(axis=0)
    share = np.divide(1.0, raters - 1, out=np.zeros_like(raters), where=raters > 1)
    pairs: Array = (given * share) @ given.T
    pairs[np.diag_indices(values)] -= (given * share).sum(axis=1)
    return pairs


def distances(counts: Array, scale: Scale, numbers: Sequence[float] | None = None) -> Array:
    """The squared difference of each two values, shape `(..., values, values)` (Krippendorff 2004, section 11.3).

    Args:
        counts: how often each value was given, shape `(..., values)`; an ordinal difference depends on it.
        scale: nominal (0 or 1), ordinal (how many labels lie between), interval (of `numbers`).
        numbers: what the values stand for, shape `(values,)`; only for intervals, 0, 1, 2 ... where None.
    """
    size = counts.shape[-1]
    if scale == "nominal":
        return np.broadcast_to(1.0 - np.eye(size), (*counts.shape, size))
    if scale == "interval":
        points = np.arange(size, dtype=np.float64) if numbers is None else np.asarray(numbers, np.float64)
        return np.broadcast_to((points[:, None] - points[None, :]) ** 2, (*counts.shape, size))
    middle = np.cumsum(counts, axis=-1) - counts / 2
    between: Array = (middle[..., :, None] - middle[..., None, :]) ** 2
    return between


def alpha(tables: Array, scale: Scale = "nominal", numbers: Sequence[float] | None = None) -> Array:
    """Krippendorff's alpha of any number of annotators.

    Args:
        tables: sums of `coincidences`, shape `(..., values, values)`.
        scale: how far apart two values are; see `distances`.
        numbers: what the values stand for, for the interval scale.

    Returns:
        Shape `(...)`; NaN where fewer than two labels can be paired, or all are the same.
    """
    counts = tables.sum(axis=-1)
    total = counts.sum(axis=-1)
    apart = distances(counts, scale, numbers)
    observed = (tables * apart).sum(axis=(-2, -1))
    expected = (counts[..., :, None] * counts[..., None, :] * apart).sum(axis=(-2, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.where(expected > 0, 1 - (total - 1) * observed / expected, np.nan)
    return found
