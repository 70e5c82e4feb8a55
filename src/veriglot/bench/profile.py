"""The part of an evaluation that rates of a study are corrected with: counts per response, by language."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics.histogram import coarse_bin
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
        histograms=_histograms(counts, places),
    )


def _histograms(counts: Counts, places: NDArray[np.intp]) -> list[list[tuple[int, int, int]]]:
    """Units of each response by confidence; empty where not every judged response has confidences."""
    histogram = counts.histograms["unit"]
    with_units = places[counts.blocks["unit"][places].sum(axis=1) > 0]
    if not len(with_units) or not np.isin(with_units, histogram.response).all():
        return []
    order = np.full(len(counts), -1, dtype=np.int64)
    order[places] = np.arange(len(places))
    home = order[histogram.response]
    kept = home >= 0
    flat = home[kept] * CONFIDENCE_BINS + coarse_bin(histogram.bin[kept], CONFIDENCE_BINS)
    units = [np.bincount(flat, weights=histogram.values[kept, column]).round().astype(int) for column in (0, 1)]
    cells: list[list[tuple[int, int, int]]] = [[] for _ in places]
    for place in np.flatnonzero(units[0] + units[1]).tolist():
        response, bin_ = divmod(place, CONFIDENCE_BINS)
        cells[response].append((bin_, int(units[0][place]), int(units[1][place])))
    return cells
