"""Bootstrap intervals, clustered: whole clusters of responses are drawn again, within each language.

A resample is a vector of weights: how often each cluster was drawn. Counts of a resample are weights times counts, so
a thousand resamples are one matrix product and no response is judged twice. Units of one response go wrong together,
and the same text labelled several times is one text; drawing units or rows instead would give intervals that are too
narrow (Efron and Tibshirani 1993, chapter 8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.provenance import digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["LEVEL", "Interval", "percentile", "resample", "stream", "weights"]

LEVEL = 0.95
_CELLS = 4_000_000  # numbers drawn at a time: 32 MB


class Interval(NamedTuple):
    """A percentile interval, and in how many resamples the figure was undefined (they are left out of it)."""

    low: float | None
    high: float | None
    undefined: int


def stream(seed: int, stratum: str) -> np.random.Generator:
    """The random numbers of one stratum: the same whichever other strata are measured beside it."""
    return np.random.default_rng([seed, int(digest([stratum])[:15], 16)])


def weights(clusters: int, resamples: int, generator: np.random.Generator) -> NDArray[np.uint16]:
    """How often each resample draws each cluster, shape `(resamples, clusters)`: multinomial rows of sum `clusters`."""
    table = np.empty((resamples, clusters), dtype=np.uint16)
    block = max(1, _CELLS // max(clusters, 1))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        picked = generator.integers(0, clusters, size=(rows, clusters))
        picked += clusters * np.arange(rows)[:, None]
        table[start : start + rows] = np.bincount(picked.ravel(), minlength=rows * clusters).reshape(rows, clusters)
    return table


def resample(counts: Array, resamples: int, generator: np.random.Generator) -> Array:
    """Sums of resampled clusters, `(resamples, columns)`, from counts per cluster, `(clusters, columns)`."""
    if not len(counts):
        return np.zeros((resamples, counts.shape[1]))
    sums: Array = weights(len(counts), resamples, generator).astype(np.float64) @ counts
    return sums


def percentile(values: Array, level: float = LEVEL) -> Interval:
    """The middle `level` share of resampled values of shape `(resamples,)`; NaN ones are counted and left out."""
    kept = values[~np.isnan(values)]
    undefined = len(values) - len(kept)
    if not len(kept):
        return Interval(None, None, undefined)
    low, high = np.quantile(kept, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), undefined)
