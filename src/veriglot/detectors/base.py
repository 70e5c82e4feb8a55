"""What the detectors `grounding` and `semantic` share: from logits of words to spans that point at the evidence."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.calibration import sigmoid
from veriglot.judging.base import BaseDetector, NotScored, admit, without_words
from veriglot.judging.language import ResolvedLanguage
from veriglot.judging.spans import DIGITS, SpanLabel, spans_from_words, words_from_confidences
from veriglot.records import Pointer, Prediction, Span, Status, Word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.calibration import ScriptCalibration
    from veriglot.detectors.grounding.features import Extract
    from veriglot.records import Sample

__all__ = ["Seen", "WordDetector"]


def mark(
    sample: Sample,
    extract: Extract,
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
        extract: its features, for words, sentences and windows.
        confidences: probability that each word is unsupported, shape (n,).
        types: probability of each type given that the word is unsupported, shape (n, t).
        names: the types.
        threshold: a word is marked from this confidence on.
    """

    def label(low: int, high: int) -> SpanLabel:
        window = int(extract.sentence_window[extract.sentence[low]])
        first, last = int(extract.windows.first[window]), int(extract.windows.last[window])
        # The window of a passage without words is empty.
        evidence = (_pointer(sample, extract, first, last - 1),) if last > first else ()
        return SpanLabel(names[int(types[low:high].mean(axis=0).argmax())], evidence)

    return spans_from_words(sample.response, extract.response.bounds, confidences, threshold, extract.sentence, label)


def word_list(
    sample: Sample,
    extract: Extract,
    confidences: NDArray[np.float64],
    threshold: float,
    places: NDArray[np.int64] | None = None,
) -> tuple[Word, ...]:
    """Every word with its confidence; supported words with the place in the evidence that supports them best.

    Args:
        sample: the sample.
        extract: its features.
        confidences: probability that each word is unsupported, shape (n,).
        threshold: a word counts as supported below it.
        places: an evidence word for words that do not stand in the evidence as they are, or -1, shape (n,).
    """

    def pointers(word: int) -> tuple[Pointer, ...]:
        index = _supporting_word(extract, word)
        if index < 0 and places is not None:
            index = int(places[word])
        return (_pointer(sample, extract, index, index),) if index >= 0 else ()

    return words_from_confidences(extract.response.bounds, confidences, threshold, pointers)


def _pointer(sample: Sample, extract: Extract, first: int, last: int) -> Pointer:
    """The stretch of evidence from its word `first` to its word `last`, both included."""
    evidence = extract.evidence
    passage = int(evidence.passage[first])
    offset = int(evidence.offsets[passage])
    start, end = int(evidence.bounds[first, 0]) - offset, int(evidence.bounds[last, 1]) - offset
    return Pointer(str(sample.evidence[passage].id), start, end)


def _supporting_word(extract: Extract, word: int) -> int:
    """The same word, or else one of its stem, in the evidence window that supports it; -1 where no window holds it."""
    window = int(extract.word_window[word])
    if window < 0:
        return -1
    first, last = int(extract.windows.first[window]), int(extract.windows.last[window])
    response, evidence = extract.response, extract.evidence
    for hash_, hashes in ((response.word[word], evidence.word), (response.stem[word], evidence.stem)):
        matches = np.flatnonzero(hashes[first:last] == hash_)
        if len(matches):
            return first + int(matches[0])
    return -1


@dataclass(frozen=True)
class Seen:
    """What a detector makes of one response, before thresholds.

    Attributes:
        extract: words, sentences and windows.
        logits: unsupported, then one per type, shape (n, 1 + t).
        calibration: what makes probabilities of the logits.
        types: the span types, in the order of the logits.
        notes: what a reader of the prediction must know.
        places: the evidence word that supports each word best, or -1, shape (n,); None where only words that stand in
            the evidence as they are can be pointed at.
    """

    extract: Extract
    logits: NDArray[np.float32]
    calibration: ScriptCalibration
    types: tuple[str, ...]
    notes: tuple[str, ...] = ()
    places: NDArray[np.int64] | None = None


class WordDetector(BaseDetector[ResolvedLanguage, Seen]):
    """A detector that gives every word of a response logits, one response at a time."""

    taxonomy = "fava"

    @abstractmethod
    def _see(self, sample: Sample, resolved: ResolvedLanguage) -> Seen | None:
        """Look at a sample that has response, evidence and language; None where one of the two texts has no word."""

    def _plan(self, sample: Sample) -> ResolvedLanguage | NotScored:
        return admit(sample)

    def _run(self, plans: Sequence[tuple[Sample, ResolvedLanguage]]) -> Iterator[Seen | NotScored]:
        return (self._guarded(self._seen, sample, resolved) for sample, resolved in plans)

    def _seen(self, sample: Sample, resolved: ResolvedLanguage) -> Seen | NotScored:
        seen = self._see(sample, resolved)
        if seen is None:
            return without_words(sample)
        if seen.extract.markup.all():
            return NotScored(Status.FAILED, "the response holds nothing but control tokens")
        return seen

    def _scored(self, sample: Sample, plan: ResolvedLanguage, result: Seen) -> Prediction:
        extract, logits, calibration = result.extract, result.logits, result.calibration
        confidences = calibration.confidences(logits[:, 0], plan.tag, plan.script)
        confidences[extract.markup] = 0.0
        confidences = confidences.round(DIGITS)  # first, so that what is shown and what is marked agree
        types = sigmoid(logits[:, 1:].astype(np.float64))
        uncovered = () if calibration.covers(plan.tag, plan.script) else ("calibration:default",)
        threshold = self._threshold
        return self._prediction(
            sample,
            score=round(calibration.score(logits[~extract.markup, 0]), DIGITS),
            spans=mark(sample, extract, confidences, types, result.types, threshold),
            words=word_list(sample, extract, confidences, threshold, result.places) if self._words else None,
            language=plan.tag,
            notes=(*plan.notes, *result.notes, *uncovered),
        )
