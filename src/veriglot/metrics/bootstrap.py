"""The clustered bootstrap: random streams, resamples of whole clusters, and percentile intervals.

A resample is a vector of weights: how often each cluster was drawn. Counts of a resample are weights times counts, so
a thousand resamples are one matrix product and no response is judged twice. Units of one response go wrong together,
and the same text labelled several times is one text; drawing units or rows instead would give intervals that are too
narrow (Efron and Tibshirani 1993, chapter 8).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["LEVEL", "Resampling", "percentile", "stream", "weights"]


if TYPE_CHECKING:
    Array = NDArray[np.float64]


LEVEL = 0.95
_CELLS_DRAWN = 4_000_000  # numbers drawn at a time: 32 MB


def stream(seed: int, stratum: str) -> np.random.Generator:
    """The random numbers of one stratum: the same whichever other strata are measured beside it."""
    return np.random.default_rng([seed, int(digest([stratum])[:15], 16)])


def weights(clusters: int, resamples: int, generator: np.random.Generator) -> NDArray[np.uint16]:
    """How often each resample draws each cluster, shape `(resamples, clusters)`: multinomial rows of sum `clusters`."""
    table = np.empty((resamples, clusters), dtype=np.uint16)
    block = max(1, _CELLS_DRAWN // max(clusters, 1))
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


def percentile(values: Array, level: float = LEVEL) -> tuple[float | None, float | None, int]:
    """The ends of the middle `level` share of resampled values, shape `(resamples,)`, and how many of these are NaN.

    The NaN ones, of resamples in which the figure was undefined, are left out; without others there are no ends.
    """
    defined = values[~np.isnan(values)]
    undefined = len(values) - len(defined)
    if not len(defined):
        return None, None, undefined
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high), undefined


# One set of resamples for every system that judged the same items, so that systems are compared draw by draw.
#
# Texts are drawn again, whole and within each stratum (usually a language), as in `bootstrap`. All systems of a bench
# share the draws of a data set: a hard text is in or out for all of them at once, which is what makes a comparison
# paired (Efron and Tibshirani 1993, chapter 8; Koehn 2004). A stratum draws the same whatever stands beside it.


if TYPE_CHECKING:
    Mask = NDArray[np.bool_]


_CELLS_OF_RESAMPLES = 2_000_000  # numbers at a time: 16 MB


@dataclass(frozen=True)
class Resampling:
    """How often each resample draws each text.

    Attributes:
        table: shape `(1 + resamples, clusters)`; row 0 is the data itself, ones.
        cluster: the cluster of each item, shape `(n,)`.
    """

    table: NDArray[np.uint16]
    cluster: NDArray[np.int64]

    @classmethod
    def of(
        cls, clusters: Sequence[str | int], strata: Sequence[str] | None = None, *, resamples: int = 1000, seed: int = 1
    ) -> Resampling:
        """Draw the resamples of a data set.

        Args:
            clusters: what each item belongs to (its text), shape `(n,)`; the same name in two strata is two clusters.
            strata: the stratum of each item, or None for one.
            resamples: how many, at least 0.
            seed: of the random numbers.
        """
        names = [""] * len(clusters) if strata is None else list(strata)
        cluster = np.zeros(len(clusters), dtype=np.int64)
        tables: list[NDArray[np.uint16]] = []
        before = 0
        for stratum in sorted(set(names)):
            number: dict[str | int, int] = {}
            for index in (i for i, name in enumerate(names) if name == stratum):
                cluster[index] = before + number.setdefault(clusters[index], len(number))
            tables.append(weights(len(number), resamples, stream(seed, stratum)))
            before += len(number)
        drawn = np.concatenate(tables, axis=1) if tables else np.zeros((resamples, 0), dtype=np.uint16)
        return cls(np.concatenate([np.ones((1, before), dtype=np.uint16), drawn]), cluster)

    @property
    def resamples(self) -> int:
        """How many there are besides the data itself."""
        return len(self.table) - 1

    def select(self, mask: Mask) -> Resampling:
        """The same draws for some of the items; `mask` has shape `(n,)`."""
        return replace(self, cluster=self.cluster[mask])

    def clusters(self) -> int:
        """How many clusters the items belong to."""
        return len(np.unique(self.cluster))

    def blocks(self) -> Iterator[Array]:
        """Weights of the items, a block of draws after another, each of shape `(draws, n)`; the data comes first."""
        rows = max(1, _CELLS_OF_RESAMPLES // max(len(self.cluster), 1))
        for start in range(0, len(self.table), rows):
            yield self.table[start : start + rows][:, self.cluster].astype(np.float64)
