"""A number with what stands behind it, and the clustered bootstrap that gives its interval.

Texts are drawn again, whole and within each stratum (usually a language): units of one response go wrong together, and
the same text labelled several times is one text; drawing units or rows instead would give intervals that are too narrow
(Efron and Tibshirani 1993, chapter 8). A resample is a vector of weights: how often each text was drawn. Counts of a
resample are weights times counts, so a thousand resamples are one matrix product and no response is judged twice.
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
    """The random numbers of one stratum: the same whichever other strata are measured beside it."""
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

    The NaN ones, of resamples in which the figure was undefined, are left out; without others there are no ends.
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
    """How often each resample draws each text: one set of resamples for all systems that judged the same items.

    A hard text is in or out for all of them at once, which makes a comparison paired (Koehn 2004). A stratum draws the
    same whatever stands beside it.

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
            clusters: what each item belongs to (its text), shape `(n,)`; the same name in two strata is two clusters.
            strata: the stratum of each item, or None for one.
            resamples: how many, at least 0.
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
        """How many clusters the items belong to."""
        return len(np.unique(self.cluster))

    def blocks(self) -> Iterator[Array]:
        """Weights of the items, a block of draws after another, each of shape `(draws, n)`; the data comes first."""
        rows = max(1, _CELLS_OF_RESAMPLES // max(len(self.cluster), 1))
        for start in range(0, len(self.table), rows):
            yield self.table[start : start + rows][:, self.cluster].astype(np.float64)


FEWEST_TEXTS = 5
"""Texts under which no interval is given: a bootstrap of two to four texts says next to nothing of their spread."""


def too_few(texts: int, wanted: str = "an interval") -> str | None:
    """Why there is no interval of so many texts; None where there may be one."""
    if texts >= FEWEST_TEXTS:
        return None
    return f"too few texts for {wanted}: {texts} text{'' if texts == 1 else 's'}, and {FEWEST_TEXTS} are the fewest"


class ClusteredEstimate(Estimate):
    """An estimate from items in clusters (texts), with its percentile interval over resampled clusters.

    Attributes:
        items: scored and labelled items behind it.
        positives: how many of them are positive (non-factual, unless the measure says otherwise).
        clusters: texts among them; the bootstrap draws these.
        chance: what a system that knows nothing would get; None where that depends on how much it marks.
        reason: why the value or the interval is missing, or what to know about it.
    """

    items: int
    positives: int
    clusters: int
    chance: float | None = None
    reason: str | None = None


def interval_of(draws: Array, resampled: bool) -> tuple[float | None, float | None, str | None]:
    """The ends of an interval and what to know about it, from draws whose first, the data itself, is defined.

    `resampled` is false where a single text was drawn from itself. Where fewer than half of the resamples have a value,
    these are unlike the data and give no interval. Nor do equal ones: of 10 hits in 10, no resample has another share.
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
    """The estimate that draws make.

    Args:
        draws: the data in draw 0, resamples after it, shape `(1 + resamples,)`; NaN where undefined.
        items, positives, clusters, chance: see `ClusteredEstimate`.
        why: the reason that stands beside an undefined value.
    """
    if np.isnan(draws[0]):
        return ClusteredEstimate(items, positives, clusters, chance, why, value=None)
    low, high, reason = interval_of(draws, clusters > 1)
    return ClusteredEstimate(items, positives, clusters, chance, reason, value=float(draws[0]), low=low, high=high)


def mean_of_draws(parts: Sequence[Array]) -> Array:
    """The mean over cells, draw by draw, of those that are defined in the data; NaN where none is.

    Args:
        parts: one array of shape `(1 + resamples,)` a cell; of none the mean has one draw. A resample in which one of
            the cells that count is undefined is undefined.
    """
    defined = [part for part in parts if not np.isnan(part[0])]
    return np.mean(defined, axis=0) if defined else np.full(len(parts[0]) if parts else 1, np.nan)


POOLED = "pooled"
MEAN = "mean"


class MetricResult(Estimate, kw_only=True, omit_defaults=True):
    """A metric in one language, with what it was measured on and how it was made.

    Attributes:
        level: what is judged: `unit`, `category` (units with their type), `type:<type>`, `span`, `char`, `sentence` or
            `response`.
        name: the measure, such as `f1`.
        language: BCP 47 tag, `pooled` (the counts of all languages added) or `mean` (the mean over languages).
        reason: why the value or the interval is missing, or what to know about it.
        unit: `char`, `word` or `hf:<tokenizer>`.
        n_responses: responses that were scored and labelled.
        n_clusters: texts among them; the bootstrap draws these.
        n_units: how many things of the level stand behind the figure (units, reference spans, sentences ...).
        coverage: share of the labelled responses that the detector scored; the figure stands on these alone.
        prevalence: share of these (for `span`, of the units) that the reference calls unsupported.
        signature: one line that says how the figure was made.
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
