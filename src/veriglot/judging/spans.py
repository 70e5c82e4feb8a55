"""Spans and words of a prediction from the confidence of each word."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.records import Pointer, Span, Word
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Bounds = NDArray[np.int32] | NDArray[np.int64]

__all__ = ["DIGITS", "SpanLabel", "runs", "sentence_of_each", "spans_from_words", "words_from_confidences"]

DIGITS = 4  # of a confidence


class SpanLabel(NamedTuple):
    """The type of a span, and where in the evidence it was held against."""

    type: str | None
    evidence: tuple[Pointer, ...] = ()


def runs(marked: NDArray[np.bool_], parts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Runs of marked words that lie in one part, as half-open word ranges, in order."""
    padded = np.concatenate([[False], marked, [False]])
    for low, high in np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2).tolist():
        cuts = (np.flatnonzero(np.diff(parts[low:high])) + 1 + low).tolist()
        yield from zip([low, *cuts], [*cuts, high], strict=True)


def sentence_of_each(text: str, language: str | None, bounds: Bounds) -> NDArray[np.int64]:
    """The sentence that each word begins in, counted from 1; shape (n,)."""
    starts = np.array([start for start, _ in sentences(text, language)], dtype=np.int64)
    numbers: NDArray[np.int64] = np.searchsorted(starts, bounds[:, 0], side="right")
    return numbers


def spans_from_words(
    text: str,
    bounds: Bounds,
    confidences: NDArray[np.float64],
    threshold: float,
    parts: NDArray[np.int64],
    label: Callable[[int, int], SpanLabel],
    *,
    digits: int = DIGITS,
) -> tuple[Span, ...]:
    """Runs of words from a confidence on as spans, in order.

    Args:
        text: the response.
        bounds: its words, half-open code point ranges in order, shape (n, 2).
        confidences: probability that each word is unsupported, shape (n,).
        threshold: a word is marked from it on.
        parts: what a span may not cross the border of, such as sentences, shape (n,).
        label: type and pointers of the words from one to another, half-open.
        digits: of a span's confidence, the mean of its words'.
    """
    spans = []
    for low, high in runs(confidences >= threshold, parts):
        start, end = int(bounds[low, 0]), int(bounds[high - 1, 1])
        type_, evidence = label(low, high)
        mean = round(float(confidences[low:high].mean()), digits)
        spans.append(Span(start, end, type_, mean, text[start:end], evidence))
    return tuple(spans)


def words_from_confidences(
    bounds: Bounds,
    confidences: NDArray[np.float64] | Sequence[float],
    threshold: float,
    pointers: Callable[[int], tuple[Pointer, ...]],
) -> tuple[Word, ...]:
    """Every word with its confidence; those below the threshold with the places that support them."""
    pairs = zip(bounds.tolist(), np.asarray(confidences).tolist(), strict=True)
    return tuple(
        Word(start, end, confidence, pointers(index) if confidence < threshold else ())
        for index, ((start, end), confidence) in enumerate(pairs)
    )
