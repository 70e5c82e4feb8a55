"""Opinions of items by detectors and scorers, and the thresholds at which scores become verdicts, never tuned on test.

As HAT does (section 4.2): scores become labels at the threshold that is best on the development set for each pair of
system and measure; precision and recall take that of F1, for each alone would be best by marking next to nothing, or
everything. Detectors that give verdicts have a threshold of their own (`fixed`), as do Kang et al.'s scores (section
5.1: 0.5 for entailment and contradiction, 0 for their difference).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.units import judged_units
from veriglot.errors import UnknownNameError
from veriglot.metrics.measures import AT_THRESHOLD, badness_of
from veriglot.metrics.scores import COUNT_SCORES, Ranked
from veriglot.metrics.spans import marked, probabilities, ranges, unit_probabilities
from veriglot.records import Direction, Prediction, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.bench.labels import ItemTable
    from veriglot.records import Sample, Score, Span

__all__ = ["Opinion", "Threshold", "opinion_of_detector", "opinion_of_scorer", "tune"]


if TYPE_CHECKING:
    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]


TUNED = ("f1", "mcc", "accuracy")
_LIKE_F1 = "f1"
_DIGITS = 12  # in which figures of different thresholds have to differ


@dataclass(frozen=True)
class Threshold:
    """A threshold, in the system's own numbers.

    Attributes:
        value: items that reach it, in the direction of worse, are marked; None where none could be tuned.
        direction: of the system's numbers.
        tuned_for: the measure that it was tuned for; `fixed` where it was given.
        reached: the measure's value on the development split; None where it was given, or none could be tuned.
        items: scored items of the development split.
        positives: how many of them are non-factual.
        reason: why there is none.
    """

    value: float | None
    direction: Direction
    tuned_for: str
    reached: float | None = None
    items: int = 0
    positives: int = 0
    reason: str | None = None

    @property
    def cut(self) -> float | None:
        """The badness (greater is worse) from which items are marked, as `ItemMeasure` takes it."""
        if self.value is None:
            return None
        return self.value if self.direction is Direction.HIGHER_IS_WORSE else -self.value

    def marks(self, values: Sequence[float | None] | Array) -> Mask:
        """Which items are marked, shape `(n,)`; those without a score are not.

        Raises:
            ValueError: there is no threshold.
        """
        if self.cut is None:
            raise ValueError(f"there is no threshold: {self.reason}")
        reached: Mask = badness_of(values, self.direction) >= self.cut
        return reached


def fixed(value: float, direction: Direction | str) -> Threshold:
    """A threshold that was given, not tuned."""
    return Threshold(float(value), Direction(direction), "fixed")


def tune(
    values: Sequence[float | None] | Array,
    nonfactual: Sequence[bool] | Mask,
    measure: str = "f1",
    direction: Direction | str = Direction.HIGHER_IS_WORSE,
) -> Threshold:
    """The threshold that is best on a development split.

    It lies halfway between two scores that occur, so that it means the same to a score that lies a little off. Of
    several that are equally good, the one that marks the fewest items is taken.

    Args:
        values: the system's numbers on the development split, shape `(n,)`; None or NaN where it gave none.
        nonfactual: the labels, shape `(n,)`.
        measure: one of `TUNED`, or another of `AT_THRESHOLD`, which takes the threshold of F1 as HAT does.
        direction: of the numbers.

    Raises:
        UnknownNameError: the measure takes no threshold.
    """
    if measure not in AT_THRESHOLD:
        raise UnknownNameError("measure that takes a threshold", measure, AT_THRESHOLD)
    aim = measure if measure in TUNED else _LIKE_F1
    way = Direction(direction)
    badness, labels = badness_of(values, way), np.asarray(nonfactual, dtype=bool)
    known = ~np.isnan(badness)
    badness, labels = badness[known], labels[known]
    nowhere = Threshold(None, way, aim, None, len(labels), int(np.count_nonzero(labels)))
    missing = _untunable(badness, labels)
    if missing:
        return replace(nowhere, reason=missing)
    cuts, reached = _candidates(badness, labels, aim)
    if np.isnan(reached).all():
        return replace(nowhere, reason=f"{aim} is undefined at every threshold")
    best = int(np.nanargmax(reached.round(_DIGITS)))  # of equal figures the first, whatever their last digits
    value = float(cuts[best])
    own = value if way is Direction.HIGHER_IS_WORSE else -value
    return replace(nowhere, value=own, reached=float(reached[best]))


def tune_all(
    values: Sequence[float | None] | Array,
    nonfactual: Sequence[bool] | Mask,
    direction: Direction | str = Direction.HIGHER_IS_WORSE,
) -> dict[str, Threshold]:
    """The threshold of every measure of `AT_THRESHOLD`, those that are tuned apart and those that go with F1."""
    tuned = {name: tune(values, nonfactual, name, direction) for name in TUNED}
    return {name: tuned.get(name, tuned[_LIKE_F1]) for name in AT_THRESHOLD}


def _untunable(badness: Array, labels: Mask) -> str | None:
    if not len(badness):
        return "the development split has no scored and labelled items"
    if not labels.any():
        return "the development split has no non-factual items"
    if labels.all():
        return "the development split has no factual items"
    return None


def _candidates(badness: Array, labels: Mask, aim: str) -> tuple[Array, Array]:
    """Cuts from the one that marks nothing to the one that marks everything, and the measure at each."""
    ranked = Ranked.of(badness, labels)
    positives, negatives = (
        np.concatenate([[0.0], np.cumsum(part[0])]) for part in ranked.steps(np.ones((1, len(labels))))
    )
    counts = np.stack([positives, negatives, positives[-1] - positives, negatives[-1] - negatives], axis=1)
    upper, lower = ranked.cuts[:-1], ranked.cuts[1:]
    middle = lower + (upper - lower) / 2.0
    middle = np.where(middle > lower, middle, upper)  # neighbours among floating-point numbers have no middle
    nothing = np.nextafter(ranked.cuts[0], np.inf)
    return np.concatenate([[nothing], middle, [ranked.cuts[-1]]]), COUNT_SCORES[aim](counts)


# What a system said of each item: a number that is greater the worse the item is, and its own verdict.
#
# A detector's number of a word is its confidence, of a sentence what its facts add up to (`metrics.unit_scores`), of a
# response its score; where it gives no confidences of words, the greatest of the spans that touch the item, or 1 and 0
# where spans have none either. Its own verdict is whether a span touches the item; of a sentence with confidences,
# whether its number reaches the threshold, as in `veriglot evaluate`.


if TYPE_CHECKING:
    Bounds = NDArray[np.int32]


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
        items = table.of_sample(index)
        if prediction.status is not Status.SCORED or items.start == items.stop:
            continue
        bounds = table.places[items]
        values, graded = _numbers(sample, prediction, table.level, bounds)
        badness[items] = values
        hard += not graded
        touched = marked(bounds, ranges(prediction.spans or ())).astype(np.float64)
        if table.level == "response":
            touched[:] = float(bool(prediction.spans))
        elif table.level == "sentence" and prediction.words is not None and threshold is not None:
            touched = (values >= threshold).astype(np.float64)
        verdict[items] = touched
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
    result = np.zeros(length, dtype=np.float64)
    for span in spans:
        confidence = 1.0 if span.confidence is None else span.confidence
        result[span.start : span.end] = np.maximum(result[span.start : span.end], confidence)
    return result


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
