"""One set of resamples for every system that judged the same items, so that systems are compared draw by draw.

Texts are drawn again, whole and within each stratum (usually a language), as in `bootstrap`. All systems of a bench
share the draws of a data set: a hard text is in or out for all of them at once, which is what makes a comparison paired
(Efron and Tibshirani 1993, chapter 8; Koehn 2004). A stratum draws the same whatever stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics.bootstrap import stream, weights

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["Resampling"]

_CELLS = 2_000_000  # numbers at a time: 16 MB


@dataclass(frozen=True)
class Resampling:
    """How often each resample draws each text.

    Attributes:
        table: shape `(1 + resamples, clusters)`; row 0 is the data itself, ones.
        place: the cluster of each item, shape `(n,)`.
    """

    table: NDArray[np.uint16]
    place: NDArray[np.int64]

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
        place = np.zeros(len(clusters), dtype=np.int64)
        tables: list[NDArray[np.uint16]] = []
        before = 0
        for stratum in sorted(set(names)):
            number: dict[str | int, int] = {}
            for index in (i for i, name in enumerate(names) if name == stratum):
                place[index] = before + number.setdefault(clusters[index], len(number))
            tables.append(weights(len(number), resamples, stream(seed, stratum)))
            before += len(number)
        drawn = np.concatenate(tables, axis=1) if tables else np.zeros((resamples, 0), dtype=np.uint16)
        return cls(np.concatenate([np.ones((1, before), dtype=np.uint16), drawn]), place)

    @property
    def resamples(self) -> int:
        """How many there are besides the data itself."""
        return len(self.table) - 1

    def select(self, mask: Mask) -> Resampling:
        """The same draws for some of the items; `mask` has shape `(n,)`."""
        return replace(self, place=self.place[mask])

    def clusters(self) -> int:
        """How many clusters the items belong to."""
        return len(np.unique(self.place))

    def blocks(self) -> Iterator[Array]:
        """Weights of the items, a block of draws after another, each of shape `(draws, n)`; the data comes first."""
        rows = max(1, _CELLS // max(len(self.place), 1))
        for start in range(0, len(self.table), rows):
            yield self.table[start : start + rows][:, self.place].astype(np.float64)
