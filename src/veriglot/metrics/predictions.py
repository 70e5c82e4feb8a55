"""A prediction as arrays, and a prediction held at another threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from veriglot.errors import InputError
from veriglot.metrics.marks import probabilities, ranges
from veriglot.metrics.reference import Marks
from veriglot.records import Prediction, Span, Status, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Answer", "answer", "at_threshold"]

Array = NDArray[np.float64]


class Answer(NamedTuple):
    """What a scored prediction says of its response.

    Attributes:
        marks: the marked spans.
        probability: of each code point, from the words; None where the prediction has no words.
        soft: of each code point, for the correlation with soft labels: as `probability`, or else the confidence of the
            span it lies in and 0 elsewhere (as in the shared task); None where neither is given.
    """

    marks: Marks
    probability: Array | None
    soft: Array | None


def answer(prediction: Prediction, length: int) -> Answer:
    """The arrays of a scored prediction.

    Args:
        prediction: with status `scored`.
        length: code points of the response.

    Raises:
        InputError: it marks beyond the end of the response.
    """
    spans = prediction.spans or ()
    named: tuple[tuple[str, Sequence[Span] | Sequence[Word]], ...] = (
        ("spans", spans),
        ("words", prediction.words or ()),
    )
    for name, places in named:
        for index in range(len(places)):
            place = places[index]
            if place.end > length:
                raise InputError(
                    f"the prediction of {prediction.id!r} marks [{place.start}, {place.end}) in a response of {length}"
                    " code points",
                    field=f"{name}[{index}]",
                    remedy="Was it made from another version of the data?",
                )
    marks = Marks(ranges(spans), tuple(span.type for span in spans))
    if prediction.words is not None:
        confidences = np.array([word.confidence for word in prediction.words], dtype=np.float64)
        by_word = probabilities(length, ranges(prediction.words), confidences)
        return Answer(marks, by_word, by_word)
    if any(span.confidence is None for span in spans):
        return Answer(marks, None, None)
    soft = np.zeros(length, dtype=np.float64)
    for span in spans:
        soft[span.start : span.end] = np.maximum(soft[span.start : span.end], span.confidence or 0.0)
    return Answer(marks, None, soft)


def at_threshold(prediction: Prediction, threshold: float, sentences: NDArray[np.int32] | None = None) -> Prediction:
    """The prediction with the spans that it has at another threshold.

    With words, runs of words of at least that confidence are the spans, each with the type of the span that shares
    most of it with the original ones (None where none does). Runs end where a sentence does, unless an original span
    goes on there, so that its own threshold gives the spans that it has. Without words, spans below the threshold are
    dropped and those without a confidence kept, so the threshold can only be raised.

    Args:
        prediction: any prediction; one that was not scored stays as it is.
        threshold: confidence from which a word is marked, 0 to 1.
        sentences: the sentences of the response, in order, shape `(m, 2)`; None for runs that end at no sentence.
    """
    if prediction.status is not Status.SCORED:
        return prediction
    spans = prediction.spans or ()
    if prediction.words is None:
        kept = tuple(span for span in spans if span.confidence is None or span.confidence >= threshold)
        return msgspec.structs.replace(prediction, spans=kept)
    cuts = _cuts(spans, sentences)
    runs: list[Span] = []
    open_run: list[float] = []
    for word in sorted(prediction.words, key=lambda word: word.start):
        if word.confidence < threshold:
            open_run = []
            continue
        if open_run and np.searchsorted(cuts, runs[-1].end) < np.searchsorted(cuts, word.start, side="right"):
            open_run = []
        start = runs.pop().start if open_run else word.start
        open_run.append(word.confidence)
        runs.append(_typed(start, word.end, max(open_run), spans))
    return msgspec.structs.replace(prediction, spans=tuple(runs))


def _cuts(spans: tuple[Span, ...], sentences: NDArray[np.int32] | None) -> NDArray[np.int32]:
    """Where a sentence begins, but not inside a span."""
    if sentences is None:
        return np.zeros(0, dtype=np.int32)
    starts = sentences[:, 0]
    return starts[[not any(span.start < start < span.end for span in spans) for start in starts.tolist()]]


def _typed(start: int, end: int, confidence: float, spans: tuple[Span, ...]) -> Span:
    shares = [(min(end, span.end) - max(start, span.start), -index) for index, span in enumerate(spans)]
    shared, place = max(shares, default=(0, 0))
    return Span(start, end, type=spans[-place].type if shared > 0 else None, confidence=confidence)
