"""What a system said of each item: a number that is greater the worse the item is, and its own verdict.

A detector's number of a word is its confidence, of a sentence what its facts add up to (`metrics.unit_scores`), of a
response its score; where it gives no confidences of words, the greatest of the spans that touch the item, or 1 and 0
where spans have none either. Its own verdict is whether a span touches the item; of a sentence with confidences,
whether its number reaches the threshold, as in `veriglot evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.units import judged_units
from veriglot.metrics.items import badness_of
from veriglot.metrics.marks import marked, probabilities, ranges, unit_probabilities
from veriglot.records import Direction, Prediction, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.bench.items import ItemTable
    from veriglot.records import Sample, Score, Span

    Array = NDArray[np.float64]
    Bounds = NDArray[np.int32]

__all__ = ["Opinion", "opinion_of_detector", "opinion_of_scorer"]

HARD = "spans without confidences: a mark counts 1 and no mark 0, so figures of ranking rest on verdicts"


@dataclass(frozen=True)
class Opinion:
    """What a system said of every item of a table.

    Attributes:
        badness: greater is worse, NaN where the item was not scored, shape `(n,)`.
        verdict: 1 where its own threshold marks the item, 0 where not, NaN where not scored; None where it has none.
        notes: what a reader of figures must know.
    """

    badness: Array
    verdict: Array | None
    notes: tuple[str, ...] = ()


def opinion_of_detector(table: ItemTable, predictions: Sequence[Prediction], threshold: float | None) -> Opinion:
    """A detector's opinion of each item.

    Args:
        table: the items.
        predictions: of the table's samples, in order.
        threshold: confidence from which it marks; None where it is not known, so that spans alone are its verdict.
    """
    badness, verdict = np.full(len(table), np.nan), np.full(len(table), np.nan)
    hard = 0
    for index, (sample, prediction) in enumerate(zip(table.samples, predictions, strict=True)):
        place = table.of_sample(index)
        if prediction.status is not Status.SCORED or place.start == place.stop:
            continue
        bounds = table.places[place]
        found, graded = _numbers(sample, prediction, table.level, bounds)
        badness[place] = found
        hard += not graded
        touched = marked(bounds, ranges(prediction.spans or ())).astype(np.float64)
        if table.level == "response":
            touched[:] = float(bool(prediction.spans))
        elif table.level == "sentence" and prediction.words is not None and threshold is not None:
            touched = (found >= threshold).astype(np.float64)
        verdict[place] = touched
    return Opinion(badness, verdict, (HARD,) if hard else ())


def _numbers(sample: Sample, prediction: Prediction, level: str, bounds: Bounds) -> tuple[Array, bool]:
    """The number of each item, and whether it is more than a verdict."""
    spans = prediction.spans or ()
    if level == "response":
        assert prediction.score is not None
        return np.array([prediction.score]), not any(note.startswith("confidence:verdict") for note in prediction.notes)
    length = len(sample.response)
    if prediction.words is None:
        graded = all(span.confidence is not None for span in spans)
        return unit_probabilities(bounds, _by_span(length, spans)), graded or not spans
    if level == "sentence":
        units = {(unit.start, unit.end): unit.score for unit in judged_units(sample, prediction, "sentence") or ()}
        if all((start, end) in units for start, end in bounds.tolist()):
            return np.array([units[start, end] for start, end in bounds.tolist()], dtype=np.float64), True
    confidences = np.array([word.confidence for word in prediction.words], dtype=np.float64)
    return unit_probabilities(bounds, probabilities(length, ranges(prediction.words), confidences)), True


def _by_span(length: int, spans: Sequence[Span]) -> Array:
    """The greatest confidence of the spans that cover each code point, 0 where none does, shape `(length,)`."""
    found = np.zeros(length, dtype=np.float64)
    for span in spans:
        confidence = 1.0 if span.confidence is None else span.confidence
        found[span.start : span.end] = np.maximum(found[span.start : span.end], confidence)
    return found


def opinion_of_scorer(scores: Sequence[Score], direction: Direction | str, threshold: float | None) -> Opinion:
    """A scorer's opinion of each item.

    Args:
        scores: one an item, in order.
        direction: of its numbers.
        threshold: in its own numbers; None where it has none.
    """
    badness = badness_of([score.value for score in scores], direction)
    if threshold is None:
        return Opinion(badness, None)
    cut = threshold if Direction(direction) is Direction.HIGHER_IS_WORSE else -threshold
    return Opinion(badness, np.where(np.isnan(badness), np.nan, (badness >= cut).astype(np.float64)))
