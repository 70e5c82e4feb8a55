"""The detector `calibrated`: another detector's predictions, with confidences that were fitted on a user's labels."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

from veriglot.detectors.confidences.calibration import read_calibration, settings_of
from veriglot.detectors.confidences.curves import curved, lowest
from veriglot.detectors.confidences.readings import language_of, read_words
from veriglot.detectors.confidences.respanning import Meant, respanned, rewritten, sentence_of_each, span_of_each
from veriglot.errors import UsageError
from veriglot.metrics.marks import marked, ranges
from veriglot.provenance import digest, signature
from veriglot.records import Span, Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.detectors.confidences.calibration import WordCurve
    from veriglot.detectors.confidences.readings import Reading
    from veriglot.records import Detector, Pointer, Prediction, Sample

__all__ = ["Calibrated", "Make"]

_HALF_A_STEP = 0.5e-4
_OVERTAKEN = ("calibration:", "words:no confidences")  # notes that hold of what was given, and no more


class Make(Protocol):
    """Makes a detector. Has to be picklable: a function or class of a module, or a `partial` of one."""

    def __call__(self, *, threshold: float | None, words: bool) -> Detector:
        """The detector at a threshold (None for its own), with words or without."""


class Calibrated:
    """Puts a calibration that was fitted on labels between a detector and whoever reads its confidences.

    Words get calibrated probabilities, spans are made of them anew, and the score of the response is calibrated where
    the labels allowed it. A detector that gives spans alone gets words: those outside its spans have the share of such
    words that was unsupported in the labels. A prediction of a language that the calibration was not fitted on
    carries the note `calibration:default`. See `docs/ensembles.md`.

    Args:
        detector: the name of the detector, or what makes it.
        calibration: a file that `veriglot evaluate --calibrate` wrote for that detector.
        threshold: calibrated confidence from which a word is marked, 0 to 1; None takes that of the file.
        words: whether predictions carry every word.
        options: further options of a detector that is named.

    Raises:
        InputError: the file is missing or no calibration.
        UsageError: it was fitted for another detector, or for other settings of this one.
    """

    def __init__(
        self,
        detector: str | Make,
        *,
        calibration: str | Path,
        threshold: float | None = None,
        words: bool = False,
        **options: Any,
    ) -> None:
        self._again = (detector, {"calibration": calibration, "threshold": threshold, "words": words, **options})
        self._file = read_calibration(calibration)
        self._threshold = self._file.threshold if threshold is None else threshold
        self._words = words
        make = _named(detector, options) if isinstance(detector, str) else detector
        self._inner = make(threshold=self._threshold_within(), words=True)
        self._check(calibration)

    def __reduce__(self) -> tuple[Any, ...]:
        """A detector travels to another process as what makes it."""
        return _remade, self._again

    @cached_property
    def name(self) -> str:
        """`calibrated@`, the detector within and its revision, and a hash of the calibration."""
        return f"calibrated@{self._inner.name.replace('@', '-')}+{self._file.revision}"

    @property
    def taxonomy(self) -> str:
        """Taxonomy of the detector within."""
        return self._inner.taxonomy

    @property
    def threshold(self) -> float:
        """Calibrated confidence from which a word is marked."""
        return self._threshold

    @cached_property
    def signature(self) -> str:
        """Name, the settings of the detector within as a hash, calibration, threshold and unit in one line."""
        return signature(
            detector=self.name,
            within=digest([self._settings or ""])[:12],
            calibration=self._file.revision,
            threshold=self._threshold,
            unit="word",
        )

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order."""
        found = self._inner.predict(samples)
        if [one.id for one in found] != [sample.id for sample in samples]:
            return found  # the detector breaks its protocol; whoever holds it to that is to see how
        return [self._calibrated(sample, one) for sample, one in zip(samples, found, strict=True)]

    @property
    def _settings(self) -> str | None:
        made = self._inner.signature
        return settings_of(made) if self._file.source == "words" else made

    def _threshold_within(self) -> float | None:
        """The threshold at which the detector marks at least what is marked here, so that all of it has a type.

        Spans alone are asked for at the detector's own threshold, as when they were calibrated.
        """
        if self._file.source == "spans":
            return None
        curves = [self._file.words.default, *self._file.words.scripts.values()]
        least = min(lowest(one.curve, self._threshold) for one in curves if one.curve is not None)
        return max(0.0, least - _HALF_A_STEP)

    def _check(self, path: str | Path) -> None:
        if self._file.detector != self._inner.name:
            raise UsageError(
                f"The calibration {path} was fitted for {self._file.detector}, not for {self._inner.name}.",
                remedy="Fit one for this detector with veriglot evaluate --calibrate.",
            )
        if self._file.settings is not None and self._file.settings != self._settings:
            raise UsageError(
                f"The calibration {path} was fitted for other settings of {self._inner.name}: {self._file.settings},"
                f" where these are {self._settings}.",
                remedy="Give the options that it was fitted with, or fit one for these.",
            )

    def _calibrated(self, sample: Sample, prediction: Prediction) -> Prediction:
        if prediction.status is not Status.SCORED:
            return msgspec.structs.replace(prediction, detector=self.name, signature=self.signature)
        tag, script = language_of(sample, prediction)
        reading = read_words(sample, prediction)
        curve = self._file.words.of(tag, script)
        confidences = curve.probabilities(reading.confidences, reading.marked, reading.source)
        notes = tuple(note for note in prediction.notes if not note.startswith(_OVERTAKEN))
        if not self._file.words.covers(tag, script):
            notes = (*notes, "calibration:default")
        return msgspec.structs.replace(
            prediction,
            detector=self.name,
            score=self._score(prediction, tag, script),
            spans=self._spans(sample, prediction, reading, confidences, tag, script),
            words=self._word_list(prediction, reading, confidences) if self._words else None,
            units=None,
            notes=notes,
            signature=self.signature,
        )

    def _score(self, prediction: Prediction, tag: str | None, script: str | None) -> float | None:
        curve = self._file.responses.of(tag, script).curve if self._file.responses is not None else None
        if curve is None or prediction.score is None:
            return prediction.score
        return float(curved(curve, np.array([prediction.score]))[0])

    def _spans(
        self,
        sample: Sample,
        prediction: Prediction,
        reading: Reading,
        confidences: NDArray[np.float64],
        tag: str | None,
        script: str | None,
    ) -> tuple[Span, ...]:
        before = prediction.spans or ()
        of_word = span_of_each(reading.bounds, before)
        by_sentence = -1 - sentence_of_each(sample.response, tag, reading.bounds)
        parts = np.where(of_word >= 0, of_word, by_sentence)

        def meant(low: int, _: int) -> Meant:
            place = int(of_word[low])
            return Meant(before[place].type, before[place].evidence) if place >= 0 else Meant(None)

        found = respanned(sample, reading.bounds, confidences, self._threshold, parts, meant)
        if reading.source == "words":
            return found
        curve = self._file.words.of(tag, script)
        wordless = [span for span in before if not marked(reading.bounds, ranges([span])).any()]
        kept = [self._recalibrated(span, curve) for span in wordless]
        return tuple(sorted((*found, *(one for one in kept if one is not None)), key=lambda span: span.start))

    def _recalibrated(self, span: Span, curve: WordCurve) -> Span | None:
        """A span without a word in it, such as one of a bracket, calibrated; None where that is below the threshold."""
        given = np.array([np.nan if span.confidence is None else span.confidence])
        confidence = float(curve.probabilities(given, np.array([True]), "spans")[0])
        return msgspec.structs.replace(span, confidence=confidence) if confidence >= self._threshold else None

    def _word_list(self, prediction: Prediction, reading: Reading, confidences: NDArray[np.float64]) -> tuple[Any, ...]:
        words = prediction.words

        def pointers(place: int) -> tuple[Pointer, ...]:
            return words[place].evidence if words is not None else ()

        return rewritten(reading.bounds, confidences, self._threshold, pointers)


def _named(name: str, options: dict[str, Any]) -> Make:
    from veriglot.detectors.own_class import load_named

    return partial(load_named, name, **options)


def _remade(detector: str | Make, options: dict[str, Any]) -> Calibrated:
    return Calibrated(detector, **options)
