"""A number with what stands behind it: its interval, how many items and texts, and what chance alone would give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics.bootstrap import LEVEL, percentile
from veriglot.records import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "FEWEST_TEXTS",
    "MEAN",
    "POOLED",
    "ClusteredEstimate",
    "MetricResult",
    "estimated",
    "mean_of_draws",
    "too_few",
]


if TYPE_CHECKING:
    Array = NDArray[np.float64]


_TOO_FEW = "one text: no interval"
FEWEST_TEXTS = 5
"""Texts under which no interval is given: a bootstrap of two to four texts says next to nothing of their spread."""


def too_few(texts: int, wanted: str = "an interval") -> str | None:
    """Why there is no interval of so many texts; None where there may be one."""
    if texts >= FEWEST_TEXTS:
        return None
    return f"too few texts for {wanted}: {texts} text{'' if texts == 1 else 's'}, and {FEWEST_TEXTS} are the fewest"


class ClusteredEstimate(Estimate, frozen=True):
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


def estimated(
    draws: Array,
    *,
    items: int,
    positives: int,
    clusters: int,
    why: str,
    chance: float | None = None,
    level: float = LEVEL,
) -> ClusteredEstimate:
    """The estimate that draws make.

    Args:
        draws: the data in draw 0, resamples after it, shape `(1 + resamples,)`; NaN where undefined.
        items, positives, clusters, chance: see `ClusteredEstimate`.
        why: the reason that stands beside an undefined value.
        level: of the interval, between 0 and 1.
    """
    if np.isnan(draws[0]):
        return ClusteredEstimate(items, positives, clusters, chance, why, value=None)
    value = float(draws[0])
    if clusters < 2 or len(draws) < 2:
        reason = _TOO_FEW if clusters < 2 else None
        return ClusteredEstimate(items, positives, clusters, chance, reason, value=value)
    low, high, undefined = percentile(draws[1:], level)
    gap = f"undefined in {undefined} of {len(draws) - 1} resamples" if undefined else None
    return ClusteredEstimate(items, positives, clusters, chance, gap, value=value, low=low, high=high)


def mean_of_draws(parts: Sequence[Array]) -> Array:
    """The mean over cells, draw by draw, of those that are defined in the data; NaN where none is.

    Args:
        parts: one array of shape `(1 + resamples,)` a cell. A resample in which one of the cells that count is
            undefined is undefined.
    """
    if not parts:
        raise ValueError("a mean is taken over one cell or more")
    defined = [part for part in parts if not np.isnan(part[0])]
    if not defined:
        return np.full(len(parts[0]), np.nan)
    mean: Array = np.mean(defined, axis=0)
    return mean


POOLED = "pooled"
MEAN = "mean"


class MetricResult(Estimate, frozen=True, kw_only=True, omit_defaults=True):
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
