"""Spans from new confidences of words, with the types and pointers of the spans that stood there before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.confidences.curves import DIGITS
from veriglot.records import Pointer, Span, Word
from veriglot.text import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.records import Sample

    Bounds = NDArray[np.int32]

__all__ = ["Meant", "respanned", "rewritten", "runs", "span_of_each"]


@dataclass(frozen=True)
class Meant:
    """What a span says beside its place: its type, and where in the evidence it was held against."""

    type: str | None
    evidence: tuple[Pointer, ...] = ()


def span_of_each(bounds: Bounds, spans: Sequence[Span]) -> NDArray[np.int64]:
    """The first span that overlaps each word, or -1; shape (n,)."""
    found = np.full(len(bounds), -1, dtype=np.int64)
    for place in reversed(range(len(spans))):
        found[(bounds[:, 0] < spans[place].end) & (bounds[:, 1] > spans[place].start)] = place
    return found


def sentence_of_each(text: str, language: str | None, bounds: Bounds) -> NDArray[np.int64]:
    """The sentence that each word begins in; shape (n,)."""
    starts = np.array([start for start, _ in sentences(text, language)], dtype=np.int64)
    found: NDArray[np.int64] = np.searchsorted(starts, bounds[:, 0], side="right")
    return found


def runs(marked: NDArray[np.bool_], parts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Runs of marked words that lie in one part, as half-open word ranges, in order."""
    padded = np.concatenate([[False], marked, [False]])
    for low, high in np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2).tolist():
        cuts = (np.flatnonzero(np.diff(parts[low:high])) + 1 + low).tolist()
        yield from zip([low, *cuts], [*cuts, high], strict=True)


def respanned(
    sample: Sample,
    bounds: Bounds,
    confidences: NDArray[np.float64],
    threshold: float,
    parts: NDArray[np.int64],
    meant: Callable[[int, int], Meant],
) -> tuple[Span, ...]:
    """Runs of words of at least a confidence as spans, in order.

    Args:
        sample: what was judged.
        bounds: its words, shape (n, 2), in order.
        confidences: of the words, shape (n,).
        threshold: a word is marked from it on.
        parts: what a span may not cross the border of, such as sentences, shape (n,).
        meant: type and pointers of the words from one to another, half-open.

    Returns:
        Spans whose confidence is the mean of their words'.
    """
    found = []
    for low, high in runs(confidences >= threshold, parts):
        start, end = int(bounds[low, 0]), int(bounds[high - 1, 1])
        said = meant(low, high)
        mean = round(float(confidences[low:high].mean()), DIGITS)
        found.append(Span(start, end, said.type, mean, sample.response[start:end], said.evidence))
    return tuple(found)


def rewritten(
    bounds: Bounds,
    confidences: NDArray[np.float64],
    threshold: float,
    pointers: Callable[[int], tuple[Pointer, ...]],
) -> tuple[Word, ...]:
    """Words with new confidences; those below the threshold keep the places that support them."""
    return tuple(
        Word(start, end, confidence, pointers(place) if confidence < threshold else ())
        for place, ((start, end), confidence) in enumerate(zip(bounds.tolist(), confidences.tolist(), strict=True))
    )
