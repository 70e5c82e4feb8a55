"""The part of an evaluation that rates of a study are corrected with: counts per response, by language."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics.counts import dense
from veriglot.metrics.histogram import coarse
from veriglot.records import CONFIDENCE_BINS, Confusion, LanguageProfile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.metrics.counts import Counts

__all__ = ["language_profile"]


def language_profile(counts: Counts, language: str | None = None) -> LanguageProfile:
    """Error rates at the level of units in one language, or in all.

    Args:
        counts: of an evaluation.
        language: BCP 47 tag; None for all together.
    """
    kept = np.array([language is None or tag == language for tag in counts.languages], dtype=bool)
    places = np.flatnonzero(kept)
    names: dict[str, int] = {}
    clusters = [names.setdefault(counts.clusters[place], len(names)) for place in places]
    return LanguageProfile.of(
        (Confusion(*map(int, row)) for row in counts.blocks["unit"][places]),
        clusters=clusters if len(names) < len(clusters) else (),
        confidences=_confidences(counts, kept),
    )


def _confidences(counts: Counts, kept: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """Unsupported and supported units by confidence; empty where not every judged response has confidences."""
    histogram = counts.histograms["unit"]
    with_units = kept & (counts.blocks["unit"].sum(axis=1) > 0)
    if not with_units.any() or not np.isin(np.flatnonzero(with_units), histogram.response).all():
        return ()
    positives, negatives, *_ = dense(histogram, np.where(kept, 0, -1), 1)[0]
    columns = (coarse(column, CONFIDENCE_BINS).round().astype(int).tolist() for column in (positives, negatives))
    return tuple(zip(*columns, strict=True))
