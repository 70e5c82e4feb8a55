"""The contracts of detectors and scorers, as checks for any plug-in."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from veriglot.records import (
    Detector,
    Direction,
    Prediction,
    Score,
    Scorer,
    Status,
    decode_json,
    encode,
    from_mapping,
)
from veriglot.records.taxonomy import taxonomies
from veriglot.testing.contract import Trial, differences, try_out
from veriglot.testing.samples import BARE, EMPTY, hostile_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from veriglot.records import Pointer, Sample, Span
    from veriglot.testing.contract import Report

__all__ = ["LoadDetector", "LoadScorer", "check_detector", "check_scorer"]


_LADDER = (0.0, 0.2, 0.5, 0.8, 1.0)


class LoadDetector(Protocol):
    """Makes a detector: a class, or anything that is called like one."""

    def __call__(self, *, threshold: float | None = None, words: bool = False) -> Detector:
        """A detector with these options."""


def check_detector(
    load: LoadDetector,
    samples: Sequence[Sample] | None = None,
    *,
    tolerance: float = 0.0,
    needs_evidence: bool = True,
    scored: float = 0.0,
    processes: bool = False,
) -> Report:
    """Put a detector through the contract of detectors; docs/plugins.md lists what is checked.

    It runs under any test runner and without one. Everything is checked before the first breach is told.

    Args:
        load: the detector's class, or a function of the same keywords: `functools.partial(load_detector, "mine")`.
        samples: what to try it on beside the hostile samples; None for `ordinary_samples()`. Choose your own for a
            detector of one language or one task.
        tolerance: by how much a number may differ between batches; for networks that run batches, 1e-5.
        needs_evidence: whether a sample without evidence cannot be scored.
        scored: more than this share of `samples` has to be scored, 0 to below 1; a detector that refuses everything
            keeps to nothing.
        processes: whether to try it in new processes too, which takes seconds. The class has to be importable there.

    Returns:
        What was checked.

    Raises:
        ContractError: the contract is broken; the message lists how.
    """
    return try_out(
        _Trial, Detector, load, samples, processes=processes, tolerance=tolerance, share=scored,
        needs_evidence=needs_evidence,
    )  # fmt: skip


class _Trial(Trial):
    answers = "predictions"
    method = "predict"

    def __init__(self, *given: Any, needs_evidence: bool) -> None:
        super().__init__(*given)
        self.needs_evidence = needs_evidence

    def checks(self) -> dict[str, Callable[[], Iterator[str]]]:
        return {
            "description": self.description,
            "predictions": self.ordinary,
            "hostile samples": self.hostile,
            "batches": self.batches,
            "samples untouched": self.untouched,
            "determinism": self.determinism,
            "words": self.words,
            "thresholds": self.thresholds,
            "pickling": self.pickling,
        }

    def description(self) -> Iterator[str]:
        yield from self.described()
        known = taxonomies()
        if self.subject.taxonomy not in known:
            yield f"the taxonomy {self.subject.taxonomy!r} is none of {', '.join(sorted(known))}"
        if not 0 <= self.subject.threshold <= 1:
            yield f"the threshold {self.subject.threshold} is no probability"

    def hostile(self) -> Iterator[str]:
        samples = hostile_samples()
        predictions = self.ask(samples)
        yield from self.all_answers(samples, predictions)
        scored = {prediction.id for prediction in predictions if prediction.status is Status.SCORED}
        for name in scored & set(EMPTY):
            yield f"sample {name!r}: a response that says nothing is scored"
        for name in scored & set(BARE) if self.needs_evidence else ():
            yield f"sample {name!r}: it is scored without evidence to hold it against"

    def answer(self, sample: Sample, prediction: Prediction) -> Iterator[str]:
        if prediction.asked != self.subject.name:
            yield f"the prediction says that {prediction.asked!r} was asked, not {self.subject.name!r}"
        if prediction.signature != self.subject.signature:
            yield f"its signature is {prediction.signature!r}, not the detector's"
        if from_mapping(decode_json(encode(prediction)), Prediction) != prediction:
            yield "the prediction is another one after it was written as JSON and read again"
        for span in prediction.spans or ():
            yield from _span(sample, span, self.subject.taxonomy)
        places = [(span.start, span.end) for span in prediction.spans or ()]
        if places != sorted(places):
            yield "the spans are not in order"
        words = [(word.start, word.end) for word in prediction.words or ()]
        if any(word[1] > other[0] for word, other in pairwise(words)) or (
            words and words[-1][1] > len(sample.response)
        ):
            yield "the words are not in order, overlap, or end beyond the response"
        for word in prediction.words or ():
            yield from _pointers(sample, word.evidence)

    def words(self) -> Iterator[str]:
        for prediction in self.found:
            if prediction.words is not None:
                yield f"sample {prediction.id!r}: the prediction has words that nobody asked for"
        detector = self.load(words=True)
        predictions = self.ask(self.samples, detector)
        bare = [msgspec.structs.replace(prediction, words=None) for prediction in predictions]
        yield from differences(self.found, bare, self.tolerance, "with words=True")
        for what in self.all_answers(self.samples, predictions):
            yield f"with words=True, {what}"
        for prediction in predictions:
            for what in _unmarked(prediction, detector.threshold, self.tolerance):
                yield f"with words=True, sample {prediction.id!r}: {what}"

    def thresholds(self) -> Iterator[str]:
        steps = []
        for value in _LADDER:
            detector = self.load(threshold=value)
            if detector.threshold != value:
                yield f"made with threshold={value}, the detector says {detector.threshold}"
            steps.append((value, self.ask(self.samples, detector)))
        for (low, lower), (high, higher) in pairwise(steps):
            for at_low, other in zip(lower, higher, strict=True):
                if not _marked(other) <= _marked(at_low):
                    yield f"sample {at_low.id!r}: the threshold {high} marks what {low} does not"
                if at_low.status is not other.status or abs((at_low.score or 0) - (other.score or 0)) > self.tolerance:
                    yield f"sample {at_low.id!r}: status or score hang on the threshold"


def _span(sample: Sample, span: Span, taxonomy: str) -> Iterator[str]:
    text = sample.response[span.start : span.end]
    if span.end > len(sample.response):
        yield f"the span [{span.start}, {span.end}) ends beyond the response"
    elif span.text is not None and span.text != text:
        yield f"the span [{span.start}, {span.end}) says {span.text!r}, and the response has {text!r} there"
    elif not text.strip() or text != text.strip():
        yield f"the span [{span.start}, {span.end}) begins or ends with white space, or holds nothing else"
    known = taxonomies().get(taxonomy)
    if span.type is not None and known is not None and span.type not in known.types:
        yield f"the span's type {span.type!r} is not in the taxonomy {taxonomy!r}"
    yield from _pointers(sample, span.evidence)


def _pointers(sample: Sample, pointers: Sequence[Pointer]) -> Iterator[str]:
    lengths = {passage.id: len(passage.text) for passage in sample.evidence}
    for pointer in pointers:
        if pointer.id not in lengths:
            yield f"a pointer leads to the passage {pointer.id!r}, which the sample does not have"
        elif pointer.end > lengths[pointer.id]:
            yield f"a pointer ends at {pointer.end}, beyond the passage {pointer.id!r}"


def _unmarked(prediction: Prediction, threshold: float, tolerance: float) -> Iterator[str]:
    """Where words have confidences, spans hold exactly those from the threshold on."""
    marked = _marked(prediction)
    for word in prediction.words or ():
        inside = marked.issuperset(range(word.start, word.end))
        # confidences are rounded: at the threshold itself a rounded one says nothing
        if inside != (word.confidence >= threshold) and abs(word.confidence - threshold) > tolerance:
            where = "inside a span" if inside else "not inside a span"
            yield (
                f"the word [{word.start}, {word.end}) has the confidence {word.confidence} at the threshold"
                f" {threshold}, and is {where}"
            )


def _marked(prediction: Prediction) -> set[int]:
    return {index for span in prediction.spans or () for index in range(span.start, span.end)}


class LoadScorer(Protocol):
    """Makes a scorer: a class, or anything that is called like one."""

    def __call__(self) -> Scorer:
        """A scorer."""


def check_scorer(
    load: LoadScorer,
    samples: Sequence[Sample] | None = None,
    *,
    tolerance: float = 0.0,
    scored: float = 0.0,
    processes: bool = False,
) -> Report:
    """Put a scorer through the contract of scorers; docs/plugins.md lists what is checked.

    Args:
        load: the scorer's class, or a function without arguments: `functools.partial(load_scorer, "mine", n=3)`.
        samples: what to try it on beside the hostile samples; None for `ordinary_samples()`.
        tolerance: by how much a number may differ between batches; for networks that run batches, 1e-5.
        scored: more than this share of `samples` has to be scored, 0 to below 1.
        processes: whether to try it in new processes too, which takes seconds.

    Returns:
        What was checked.

    Raises:
        ContractError: the contract is broken; the message lists how.
    """
    return try_out(_ScorerTrial, Scorer, load, samples, processes=processes, tolerance=tolerance, share=scored)


class _ScorerTrial(Trial):
    answers = "scores"
    method = "score"

    def checks(self) -> dict[str, Callable[[], Iterator[str]]]:
        return {
            "description": self.description,
            "scores": self.ordinary,
            "hostile samples": self.hostile,
            "batches": self.batches,
            "samples untouched": self.untouched,
            "determinism": self.determinism,
            "pickling": self.pickling,
        }

    def description(self) -> Iterator[str]:
        yield from self.described()
        if not isinstance(self.subject.direction, Direction):
            yield f"the direction is {self.subject.direction!r}, and should be a veriglot.records.Direction"

    def hostile(self) -> Iterator[str]:
        samples = hostile_samples()
        yield from self.all_answers(samples, self.ask(samples))

    def answer(self, sample: Sample, score: Score) -> Iterator[str]:  # noqa: ARG002  # scores point at nothing in it
        if score.scorer != self.subject.name:
            yield f"the score names {score.scorer!r}, not {self.subject.name!r}"
        if score.signature != self.subject.signature:
            yield f"its signature is {score.signature!r}, not the scorer's"
        if any(not abs(value) < float("inf") for value in score.parts.values()):
            yield f"a part is not finite: {score.parts}"
        if from_mapping(decode_json(encode(score)), Score) != score:
            yield "the score is another one after it was written as JSON and read again"
