"""From word confidences to spans, with a type and the places in the evidence that they were held against."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.records import Pointer, Span, Word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from veriglot.detectors.grounding.features import Extract
    from veriglot.records import Sample

__all__ = ["DIGITS", "mark", "word_list"]

DIGITS = 4  # of a confidence


def _runs(marked: NDArray[np.bool_], sentence: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Runs of marked words inside one sentence, as half-open word ranges."""
    padded = np.concatenate([[False], marked, [False]])
    for low, high in np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2).tolist():
        cuts = (np.flatnonzero(np.diff(sentence[low:high])) + 1 + low).tolist()
        yield from zip([low, *cuts], [*cuts, high], strict=True)


def mark(
    sample: Sample,
    found: Extract,
    confidences: NDArray[np.float64],
    types: NDArray[np.float64],
    names: tuple[str, ...],
    threshold: float,
) -> tuple[Span, ...]:
    """The unsupported spans of a response, in order.

    Neighbouring marked words of one sentence make one span; its type is the likeliest on the average of its words, its
    confidence the mean of theirs.

    Args:
        sample: the sample.
        found: its features, for words, sentences and windows.
        confidences: probability that each word is unsupported, shape (n,).
        types: probability of each type given that the word is unsupported, shape (n, t).
        names: the types.
        threshold: a word is marked from this confidence on.
    """
    spans = []
    bounds = found.response.bounds
    for low, high in _runs(confidences >= threshold, found.sentence):
        start, end = int(bounds[low, 0]), int(bounds[high - 1, 1])
        pointer = _window_pointer(sample, found, int(found.sentence_window[found.sentence[low]]))
        span = Span(
            start=start,
            end=end,
            type=names[int(types[low:high].mean(axis=0).argmax())],
            confidence=round(float(confidences[low:high].mean()), DIGITS),
            text=sample.response[start:end],
            evidence=() if pointer is None else (pointer,),
        )
        spans.append(span)
    return tuple(spans)


def word_list(
    sample: Sample,
    found: Extract,
    confidences: NDArray[np.float64],
    threshold: float,
    places: NDArray[np.int64] | None = None,
) -> tuple[Word, ...]:
    """Every word with its confidence; supported words with the place in the evidence that supports them best.

    Args:
        sample: the sample.
        found: its features.
        confidences: probability that each word is unsupported, shape (n,).
        threshold: a word counts as supported below it.
        places: an evidence word for words that do not stand in the evidence as they are, or -1, shape (n,).
    """
    words = []
    for i, ((start, end), confidence) in enumerate(
        zip(found.response.bounds.tolist(), confidences.tolist(), strict=True)
    ):
        pointer = _word_pointer(sample, found, i) if confidence < threshold else None
        if pointer is None and confidence < threshold and places is not None and places[i] >= 0:
            pointer = _pointer(sample, found, int(places[i]), int(places[i]))
        words.append(Word(start, end, confidence, () if pointer is None else (pointer,)))
    return tuple(words)


def _pointer(sample: Sample, found: Extract, first: int, last: int) -> Pointer:
    """The stretch of evidence from its word `first` to its word `last`, both included."""
    evidence = found.evidence
    passage = int(evidence.passage[first])
    offset = int(evidence.offsets[passage])
    start, end = int(evidence.bounds[first, 0]) - offset, int(evidence.bounds[last, 1]) - offset
    return Pointer(str(sample.evidence[passage].id), start, end)


def _window_pointer(sample: Sample, found: Extract, window: int) -> Pointer | None:
    """A window of the evidence; None where it is the window of a passage without words."""
    first, last = int(found.windows.first[window]), int(found.windows.last[window])
    return _pointer(sample, found, first, last - 1) if last > first else None


def _word_pointer(sample: Sample, found: Extract, word: int) -> Pointer | None:
    """The word itself, or else its stem, in the window that supports it; None where no window holds it."""
    window = int(found.word_window[word])
    if window < 0:
        return None
    first, last = int(found.windows.first[window]), int(found.windows.last[window])
    for ours, theirs in (
        (found.response.word, found.evidence.word),
        (found.response.stem, found.evidence.stem),
    ):
        places = np.flatnonzero(theirs[first:last] == ours[word])
        if len(places):
            return _pointer(sample, found, first + int(places[0]), first + int(places[0]))
    return None
