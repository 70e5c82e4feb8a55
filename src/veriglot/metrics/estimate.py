"""Estimates with their numbers of items and clusters, and the clustered bootstrap for their intervals.

Whole texts are resampled within each stratum (usually a language): units of one response are not independent, and the
same text labelled several times is one text. Resampling units or rows instead would give intervals that are too narrow
(Efron and Tibshirani 1993, chapter 8). A resample is a vector of weights: how often each text was drawn. Counts of a
resample are weights times counts, so a thousand resamples are one matrix product and no response is scored twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from veriglot.records import Estimate
from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.arrays import Bools, Float64s, Int64s

    Array = Float64s

__all__ = [
    "FEWEST_TEXTS",
    "MEAN",
    "POOLED",
    "ClusteredEstimate",
    "MetricResult",
    "Resampling",
    "estimated",
    "mean_of_draws",
    "percentile",
    "stream",
    "too_few",
    "weights",
]

_LEVEL = 0.95
_CELLS_DRAWN = 4_000_000  # numbers drawn at a time: 32 MB
_CELLS_OF_RESAMPLES = 2_000_000  # numbers at a time: 16 MB


def stream(seed: int, stratum: str) -> np.random.Generator:
    """The random generator of one stratum; independent of the other strata."""
    return np.random.default_rng([seed, int(digest([stratum])[:15], 16)])


def weights(clusters: int, resamples: int, generator: np.random.Generator) -> NDArray[np.uint16]:
    """How often each resample draws each cluster, shape `(resamples, clusters)`: multinomial rows of sum `clusters`."""
    table = np.empty((resamples, clusters), np.uint16)
    block = max(1, _CELLS_DRAWN // max(clusters, 1))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        picked = generator.integers(0, clusters, size=(rows, clusters))
        picked += clusters * np.arange(rows)[:, None]
        table[start : start + rows] = np.bincount(picked.ravel(), minlength=rows * clusters).reshape(rows, clusters)
    return table


def percentile(values: Array) -> tuple[float | None, float | None, int]:
    """The ends of the middle 95% of resampled values, shape `(resamples,)`, and how many of these are NaN.

    NaN, from resamples in which the figure is undefined, is left out; if all are NaN there are no ends.
    """
    defined = values[~np.isnan(values)]
    undefined = len(values) - len(defined)
    if not len(defined):
        return None, None, undefined
    low, high = np.quantile(defined, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high), undefined


def number(value: float) -> float | None:
    """A figure as a number, None for NaN."""
    return None if np.isnan(value) else float(value)


@dataclass(frozen=True)
class Resampling:
    """How often each resample draws each text: one set of resamples for all systems with the same items.

    A hard text is in or out for all systems alike, which makes a comparison paired (Koehn 2004). The draws of a stratum
    do not depend on the other strata.

    Attributes:
        table: shape `(1 + resamples, clusters)`; row 0 is the data itself, ones.
        cluster: the cluster of each item, shape `(n,)`.
    """

    table: NDArray[np.uint16]
    cluster: Int64s

    @classmethod
    def of(
        cls, clusters: Sequence[str | int], strata: Sequence[str] | None = None, *, resamples: int = 1000, seed: int = 0
    ) -> Resampling:
        """Draw the resamples of a data set.

        Args:
            clusters: the cluster of each item (its text), shape `(n,)`; the same name in two strata is two clusters.
            strata: the stratum of each item, or None for one.
            resamples: number of resamples, at least 0.
            seed: of the random numbers.
        """
        names = [""] * len(clusters) if strata is None else list(strata)
        cluster = np.zeros(len(clusters), np.int64)
        tables = []
        before = 0
        for stratum in sorted(set(names)):
            number: dict[str | int, int] = {}
            for index in (i for i, name in enumerate(names) if name == stratum):
                cluster[index] = before + number.setdefault(clusters[index], len(number))
            tables.append(weights(len(number), resamples, stream(seed, stratum)))
            before += len(number)
        drawn = np.concatenate(tables, axis=1) if tables else np.zeros((resamples, 0), np.uint16)
        return cls(np.concatenate([np.ones((1, before), np.uint16), drawn]), cluster)

    def select(self, mask: Bools) -> Resampling:
        """The same draws for some of the items; `mask` has shape `(n,)`."""
        return replace(self, cluster=self.cluster[mask])

    def clusters(self) -> int:
        """Number of clusters of the items."""
        return len(np.unique(self.cluster))

    def blocks(self) -> Iterator[Array]:
        """Weights of the items in blocks of draws, each of shape `(draws, n)`; the data comes first."""
        rows = max(1, _CELLS_OF_RESAMPLES // max(len(self.cluster), 1))
        for start in range(0, len(self.table), rows):
            yield self.table[start : start + rows][:, self.cluster].astype(np.float64)


FEWEST_TEXTS = 5
"""With fewer texts there is no interval: a bootstrap of two to four texts hardly shows their spread."""


def too_few(texts: int, wanted: str = "an interval") -> str | None:
    """Why there is no interval of so many texts; None if there may be one."""
    if texts >= FEWEST_TEXTS:
        return None
    return f"too few texts for {wanted}: {texts} text{'' if texts == 1 else 's'}, and {FEWEST_TEXTS} are the fewest"


class ClusteredEstimate(Estimate):
    """An estimate from items in clusters (texts), with its percentile interval over resampled clusters.

    Attributes:
        items: number of scored and labelled items.
        positives: number of positive ones among them (non-factual, unless the measure says otherwise).
        clusters: number of their texts; the bootstrap draws these.
        chance: value of a random baseline; None if that depends on how much it marks.
        reason: why the value or the interval is missing, or what to know about it.
    """

    items: int
    positives: int
    clusters: int
    chance: float | None = None
    reason: str | None = None


def interval_of(draws: Array, resampled: bool) -> tuple[float | None, float | None, str | None]:
    """The ends of an interval and what to know about it, from draws whose first (the data) is defined.

    `resampled` is false if the only resamples are of a single text. If fewer than half of the resamples have a value,
    these are not representative and give no interval. Nor do equal ones: of 10 hits in 10, no
    resample has another share.
    """
    if not resampled:
        return None, None, "one text: no interval"
    if len(draws) < 2:
        return None, None, None
    low, high, undefined = percentile(draws[1:])
    agree = low is None or high is None or high - low < 1e-9
    unsure = "no interval: all resamples agree" if agree else None
    reason = f"undefined in {undefined} of {len(draws) - 1} resamples" if undefined else unsure
    return (None, None, reason) if agree or 2 * undefined > len(draws) - 1 else (low, high, reason)


def estimated(
    draws: Array, *, items: int, positives: int, clusters: int, why: str, chance: float | None = None
) -> ClusteredEstimate:
    """The estimate from draws.

    Args:
        draws: the data in draw 0, resamples after it, shape `(1 + resamples,)`; NaN if undefined.
        items, positives, clusters, chance: see `ClusteredEstimate`.
        why: the reason of an undefined value.
    """
    if np.isnan(draws[0]):
        return ClusteredEstimate(items, positives, clusters, chance, why, value=None)
    low, high, reason = interval_of(draws, clusters > 1)
    return ClusteredEstimate(items, positives, clusters, chance, reason, value=float(draws[0]), low=low, high=high)


def mean_of_draws(parts: Sequence[Array]) -> Array:
    """The mean over cells in each draw, over the cells that are defined in the data; NaN if none is.

    Args:
        parts: one array of shape `(1 + resamples,)` per cell; without cells the mean has one draw. A resample is
            undefined if one of the cells in the mean is undefined in it.
    """
    defined = [part for part in parts if not np.isnan(part[0])]
    return np.mean(defined, axis=0) if defined else np.full(len(parts[0]) if parts else 1, np.nan)


POOLED = "pooled"
MEAN = "mean"


class MetricResult(Estimate, kw_only=True, omit_defaults=True):
    """A metric in one language, with its unit, its data and its signature.

    Attributes:
        level: what is scored: `unit`, `category` (units with their type), `type:<type>`, `span`, `char`, `sentence` or
            `response`.
        name: the measure, such as `f1`.
        language: BCP 47 tag, `pooled` (summed counts of all languages) or `mean` (the mean over languages).
        reason: why the value or the interval is missing, or what to know about it.
        unit: `char`, `word` or `hf:<tokenizer>`.
        n_responses: number of scored and labelled responses.
        n_clusters: number of their texts; the bootstrap draws these.
        n_units: number of items of the level (units, reference spans, sentences ...).
        coverage: share of the labelled responses that the detector scored; the figure uses only these.
        prevalence: share of these (for `span`, of the units) that the reference calls unsupported.
        signature: one line that says how the figure was computed.
    """

    level: str
    name: str
    language: str
    reason: str | None = None
    unit: str
    n_responses: int
    n_clusters: int
    n_units: int
    coverage: float | None
    prevalence: float | None
    signature: str
