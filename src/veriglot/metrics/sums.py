"""Counts summed over a language and over its resamples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics.bootstrap import stream, weights
from veriglot.metrics.counts import HISTOGRAMS, dense
from veriglot.metrics.histogram import BINS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.metrics.counts import Counts

    Array = NDArray[np.float64]

__all__ = ["Sums", "added", "sums_of"]

_CLUSTERS = 1024  # clusters laid out densely at a time: about 70 MB


@dataclass(frozen=True)
class Sums:
    """Summed counts: the data in draw 0, resamples after it.

    Attributes:
        blocks: name of a block of `Counts` to sums, shape `(draws, k)`.
        histograms: level to sums, shape `(draws, 4, BINS)`; the four are those of `Histogram.values`.
    """

    blocks: dict[str, Array]
    histograms: dict[str, Array]


def _clusters(counts: Counts, language: str) -> tuple[NDArray[np.int64], int]:
    """The cluster of each response of a language (-1 for others), and how many there are."""
    group = np.full(len(counts), -1, dtype=np.int64)
    number: dict[str, int] = {}
    for index, (tag, key) in enumerate(zip(counts.languages, counts.clusters, strict=True)):
        if tag == language:
            group[index] = number.setdefault(key, len(number))
    return group, len(number)


def _table(counts: Counts, group: NDArray[np.int64], clusters: int) -> Array:
    """Every count of each cluster in one row: the blocks side by side, then the histograms."""
    chosen = group >= 0
    columns = []
    for block in counts.blocks.values():
        sums = np.zeros((clusters, block.shape[1]))
        np.add.at(sums, group[chosen], block[chosen])
        columns.append(sums)
    columns += [dense(counts.histograms[level], group, clusters).reshape(clusters, -1) for level in HISTOGRAMS]
    return np.concatenate(columns, axis=1)


def sums_of(counts: Counts, language: str, *, resamples: int, seed: int) -> tuple[Sums, int]:
    """The sums of one language and the number of its clusters.

    A language that the counts do not hold has sums of zero and no clusters.
    """
    group, clusters = _clusters(counts, language)
    drawn_weights = weights(clusters, resamples, stream(seed, language)) if clusters else None
    widths = [block.shape[1] for block in counts.blocks.values()] + [4 * BINS] * len(HISTOGRAMS)
    drawn = np.zeros((1 + resamples, sum(widths)))
    for first in range(0, clusters, _CLUSTERS):
        size = min(_CLUSTERS, clusters - first)
        inside = (group >= first) & (group < first + size)
        table = _table(counts, np.where(inside, group - first, -1), size)
        drawn[0] += table.sum(axis=0)
        used = np.flatnonzero(table.any(axis=0))  # most bins are empty: only what is used is multiplied
        if drawn_weights is not None:
            block = drawn_weights[:, first : first + size].astype(np.float64)
            drawn[1:, used] += block @ table[:, used]
    parts = np.split(drawn, np.cumsum(widths)[:-1], axis=1)
    blocks = dict(zip(counts.blocks, parts, strict=False))
    tables = [part.reshape(-1, 4, BINS) for part in parts[len(blocks) :]]
    return Sums(blocks, dict(zip(HISTOGRAMS, tables, strict=True))), clusters


def added(first: Sums | None, second: Sums) -> Sums:
    """The sums of two strata draw by draw; `first` is added to in place, and None stands for nothing yet."""
    if first is None:
        return Sums(
            {name: part.copy() for name, part in second.blocks.items()},
            {name: part.copy() for name, part in second.histograms.items()},
        )
    for mine, other in ((first.blocks, second.blocks), (first.histograms, second.histograms)):
        for name, part in other.items():
            mine[name] += part
    return first
