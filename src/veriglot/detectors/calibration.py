"""Calibration files with curves by script, and the detector `calibrated` that applies one to another detector."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from veriglot.errors import InputError, UsageError
from veriglot.judging.base import (
    DIGITS,
    SpanLabel,
    resolve_language,
    sentence_of_each,
    spans_from_words,
    words_from_confidences,
)
from veriglot.metrics.spans import marked, probabilities, ranges, unit_probabilities
from veriglot.plugins import PickledByArguments
from veriglot.records import DataSource, Detector, Estimate, Pointer, Prediction, Sample, Span, Status
from veriglot.records.settings import Record
from veriglot.signatures import digest, signature
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from veriglot.arrays import Bools, Float64s, Int32s, Int64s

__all__ = [
    "ByScript",
    "Calibrated",
    "Calibration",
    "Isotonic",
    "Measured",
    "Platt",
    "Reading",
    "Source",
    "Versioned",
    "WordCurve",
    "logit",
    "predicted_language",
    "read_words",
    "settings_of",
    "sigmoid",
    "span_of_each",
]


def sigmoid(values: Float64s) -> Float64s:
    """The logistic function, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * values))


# Calibration curves from confidence to probability: Platt scaling, and isotonic regression with interpolation.
#
# A curve never falls, so calibration keeps the ranking within a script.


_EDGE = 0.5 * 10.0**-DIGITS  # confidences of 0 and 1 have no logit; they move inwards by half a step


class Platt(Record, tag_field="kind", tag="platt"):
    """A probability as the logistic function of `slope * logit + offset` (Platt 1999); the slope is not negative."""

    slope: float
    offset: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.slope < float("inf"):
            raise ValueError(f"a calibration never falls, but the slope of this one is {self.slope}")


class Isotonic(Record, tag_field="kind", tag="isotonic"):
    """Isotonic regression (Zadrozny and Elkan 2002), linear between its points and constant outside of them.

    Attributes:
        logits: of the points, increasing.
        values: their probabilities, never falling.
    """

    logits: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.logits or len(self.logits) != len(self.values):
            raise ValueError("an isotonic calibration has one value for each of its points, and at least one point")
        if list(self.logits) != sorted(set(self.logits)) or list(self.values) != sorted(self.values):
            raise ValueError("the points of an isotonic calibration rise, and its values never fall")
        if not 0.0 <= self.values[0] <= self.values[-1] <= 1.0:
            raise ValueError("the values of a calibration lie between 0 and 1")


Curve = Platt | Isotonic


def logit(confidences: Float64s) -> Float64s:
    """Log odds of confidences, which are rounded to `DIGITS` and clipped away from 0 and 1; NaN stays NaN."""
    clipped = np.clip(np.round(confidences, DIGITS), _EDGE, 1.0 - _EDGE)
    return np.log(clipped / (1.0 - clipped))


def apply_curve(curve: Curve, confidences: Float64s) -> Float64s:
    """Calibrated probabilities, rounded to `DIGITS`, in the same shape; NaN stays NaN."""
    odds = logit(confidences)
    if isinstance(curve, Platt):
        return np.round(sigmoid(curve.slope * odds + curve.offset), DIGITS)
    values: Float64s = np.interp(odds, curve.logits, curve.values)
    values[np.isnan(odds)] = np.nan
    return np.round(values, DIGITS)


def lowest_confidence(curve: Curve, threshold: float) -> float:
    """The lowest confidence (in steps of `DIGITS` digits) with a calibrated value from `threshold` on; 1.0 if none."""
    grid = np.linspace(0.0, 1.0, 10**DIGITS + 1)
    reached = np.flatnonzero(apply_curve(curve, grid) >= threshold)
    return float(np.round(grid[reached[0]], DIGITS)) if len(reached) else 1.0


Source = Literal["words", "spans"]


class Versioned(Record, kw_only=True):
    """Content of a JSON file that states its format.

    Attributes:
        known: the supported format, with its version.
        what: kind of file, for messages.
        command: the command that writes such files.
        format: format of this file.
    """

    known: ClassVar[str]
    what: ClassVar[str]
    command: ClassVar[str]

    format: str

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file.

        Raises:
            InputError: it is missing or has another format.
        """
        remedy = f"Make one with {cls.command}."
        try:
            content = msgspec.json.decode(Path(path).read_bytes(), type=cls)
        except FileNotFoundError as error:
            raise InputError(f"there is no such {cls.what}", path=str(path), remedy=remedy) from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InputError(f"this is no {cls.what}: {error}", path=str(path), remedy=remedy) from error
        if content.format != cls.known:
            raise InputError(
                f"a {cls.what} of format {content.format!r}, where {cls.known!r} is known",
                path=str(path),
                remedy=f"Make it again with {cls.command}.",
            )
        return content


class WordCurve(Record):
    """Calibration of a detector's confidences in one script.

    Attributes:
        curve: for words or spans with a confidence; None if nothing in the labels had one.
        unmarked: for detectors that only give spans, the share of unsupported words outside of spans.
        verdict: for detectors that only give spans, the share of unsupported words inside spans; used for spans without
            a confidence.
        languages: base tags of the languages of the fit; empty for the default.
    """

    curve: Curve | None
    unmarked: float | None = None
    verdict: float | None = None
    languages: tuple[str, ...] = ()

    def probabilities(self, given: Float64s, inside: Bools, source: Source) -> Float64s:
        """The calibrated probability of each word, or of each response, shape (n,).

        Args:
            given: the detector's confidences, NaN if there is none, shape (n,).
            inside: whether a span overlaps each word, shape (n,); used only with source `spans`.
            source: what the curve was fitted on.
        """
        known = np.full(given.shape, np.nan) if self.curve is None else apply_curve(self.curve, given)
        if source == "words":
            return known
        assert self.verdict is not None
        assert self.unmarked is not None
        return np.where(~inside, self.unmarked, np.where(np.isnan(known), self.verdict, known))


class _Fitted(Protocol):
    @property
    def languages(self) -> tuple[str, ...]: ...


FittedT = TypeVar("FittedT", bound=_Fitted)


class ByScript(Record, Generic[FittedT]):
    """Fits by ISO 15924 script, and the default for all other texts."""

    default: FittedT
    scripts: dict[str, FittedT] = {}

    def covers(self, tag: str | None, script: str | None) -> bool:
        """Whether the fit of the script included texts of the language."""
        fitted = self.scripts.get(script or "")
        return fitted is not None and (tag or "").split("-")[0] in fitted.languages

    def of(self, tag: str | None, script: str | None) -> FittedT:
        """The fit for a language in a script."""
        return self.scripts[script] if script is not None and self.covers(tag, script) else self.default


class Measured(Estimate):
    """One metric of a fit on held-out texts, with its 95% interval over texts.

    Attributes:
        level: `word` or `response`.
        script: ISO 15924 code, or `all`.
        what: the confidences that were measured, such as `given` or `calibrated`.
        name: `ece`, `brier`, `average_precision`, `auroc` or `f1`.
        units: number of words or responses.
        texts: number of texts, which were resampled as wholes.
    """

    level: str
    script: str
    what: str
    name: str
    units: int
    texts: int


class Calibration(Versioned, kw_only=True):
    """A calibration of one detector.

    Attributes:
        detector: name and revision of the detector that was calibrated.
        settings: its signature, without the threshold if words were calibrated; None if it has no signature.
        source: `words` if it gave word confidences, `spans` if it only gave spans.
        method: `platt` or `isotonic`.
        threshold: calibrated confidence from which a word is marked by default: the one with the best F1 of words.
        words: curves of words.
        responses: curves of response scores; None if there was nothing to fit.
        quality: metrics by cross-fitting.
        data: the labels.
        signature: one line with all settings of the fit.
    """

    known = "veriglot-calibration/1"
    what = "calibration"
    command = "veriglot evaluate --calibrate"

    detector: str
    settings: str | None
    source: Source
    method: str
    threshold: float
    words: ByScript[WordCurve]
    responses: ByScript[WordCurve] | None
    quality: tuple[Measured, ...]
    data: DataSource
    signature: str

    def __post_init__(self) -> None:
        for curve in (self.words.default, *self.words.scripts.values()):
            if self.source == "words" and curve.curve is None:
                raise ValueError("a calibration of words has a curve")
            if self.source == "spans" and (curve.unmarked is None or curve.verdict is None):
                raise ValueError("a calibration of spans has the shares of words outside and inside of them")

    @property
    def revision(self) -> str:
        """A short hash of all that changes a prediction."""
        return digest([msgspec.json.encode([self.words, self.responses, self.threshold])])[:8]


def settings_of(signature: str | None) -> str | None:
    """A signature without its threshold, which changes spans but no confidences."""
    if signature is None:
        return None
    return "|".join(part for part in signature.split("|") if not part.startswith("threshold:"))


@dataclass(frozen=True)
class Reading:
    """The words of a response as a prediction judges them.

    Attributes:
        bounds: half-open ranges in the response, shape (n, 2).
        confidences: probability that each word is unsupported, shape (n,); NaN if the detector gave none.
        marked: whether a span overlaps each word, shape (n,).
        source: `words` if the detector gave word confidences, `spans` if it only gave spans.
    """

    bounds: Int32s
    confidences: Float64s
    marked: Bools
    source: Source


def predicted_language(sample: Sample, prediction: Prediction | None) -> tuple[str | None, str | None]:
    """BCP 47 tag and script of a response: from the prediction, the sample, or its text; None if unknown."""
    tag = (prediction.language if prediction is not None else None) or sample.language
    resolved = resolve_language(replace(sample, language=tag))
    return (None, None) if resolved is None else (resolved.tag, resolved.script)


def read_words(sample: Sample, prediction: Prediction, bounds: Int32s | None = None) -> Reading:
    """The words of a scored prediction, with their confidences.

    If the prediction has no words, a word gets the highest confidence of the spans that overlap it.

    Args:
        sample: the sample of the prediction.
        prediction: of any detector, with status `scored`.
        bounds: words as half-open ranges in the response, in order, shape (n, 2), to align several detectors; None for
            the prediction's own words, or else those of the response.
    """
    spans = prediction.spans or ()
    if prediction.words is not None:
        own = ranges(prediction.words)
        confidences = np.array([word.confidence for word in prediction.words], dtype=np.float64)
        if bounds is not None:
            confidences = unit_probabilities(bounds, probabilities(len(sample.response), own, confidences))
        bounds = own if bounds is None else bounds
        return Reading(bounds, confidences, marked(bounds, ranges(spans)), "words")
    if bounds is None:
        bounds = word_bounds(sample.response, predicted_language(sample, prediction)[0])
    confidences = np.full(len(bounds), np.nan)
    for span in spans:
        if span.confidence is not None:
            here = marked(bounds, ranges([span]))
            confidences[here] = np.fmax(confidences[here], span.confidence)
    return Reading(bounds, confidences, marked(bounds, ranges(spans)), "spans")


def span_of_each(bounds: Int32s, spans: Sequence[Span]) -> Int64s:
    """The first span that overlaps each word, or -1; shape (n,)."""
    indices = np.full(len(bounds), -1, dtype=np.int64)
    for index in reversed(range(len(spans))):
        indices[(bounds[:, 0] < spans[index].end) & (bounds[:, 1] > spans[index].start)] = index
    return indices


_HALF_A_STEP = 0.5e-4
_OUTDATED = ("calibration:", "words:no confidences")  # notes that no longer hold after calibration


class Calibrated(PickledByArguments):
    """Wraps a detector and applies a calibration that was fitted on labels.

    Words get calibrated probabilities, spans are built from them again, and the score of the response is calibrated if
    the labels allowed it. For a detector that only gives spans, words outside of spans get the share of such words that
    was unsupported in the labels. Predictions in a language outside of the fit have the note `calibration:default`. See
    `docs/ensembles.md`.

    Args:
        detector: the name of a detector, or a picklable function that takes `threshold` and `words` and returns one.
        calibration: a file that `veriglot evaluate --calibrate` wrote for that detector.
        threshold: calibrated confidence from which a word is marked, 0 to 1; None takes that of the file.
        words: whether predictions include every word.
        options: further options of a detector given by name.

    Raises:
        InputError: the file is missing or is not a calibration.
        UsageError: the calibration was fitted for another detector or other settings.
    """

    def __init__(
        self,
        detector: str | Callable[..., Detector],
        *,
        calibration: str | Path,
        threshold: float | None = None,
        words: bool = False,
        **options: Any,
    ) -> None:
        self._file = Calibration.read(calibration)
        self._threshold = self._file.threshold if threshold is None else threshold
        self._words = words
        if isinstance(detector, str):
            from veriglot.detectors.registry import load_named

            detector = partial(load_named, detector, **options)
        self._inner = detector(threshold=self._threshold_within(), words=True)
        self._check(calibration)

    @cached_property
    def name(self) -> str:
        """`calibrated@`, the wrapped detector and its revision, and a hash of the calibration."""
        return f"calibrated@{self._inner.name.replace('@', '-')}+{self._file.revision}"

    @property
    def taxonomy(self) -> str:
        """Taxonomy of the wrapped detector."""
        return self._inner.taxonomy

    @property
    def threshold(self) -> float:
        """Calibrated confidence from which a word is marked."""
        return self._threshold

    @cached_property
    def signature(self) -> str:
        """Name, a hash of the wrapped detector's settings, calibration, threshold and unit in one line."""
        return signature(
            detector=self.name,
            within=digest([self._settings or ""])[:12],
            calibration=self._file.revision,
            threshold=self._threshold,
            unit="word",
        )

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order."""
        predictions = self._inner.predict(samples)
        if [prediction.id for prediction in predictions] != [sample.id for sample in samples]:
            return predictions  # passed on, so that the caller's check of the protocol reports it
        return [self._calibrated(sample, own) for sample, own in zip(samples, predictions, strict=True)]

    @property
    def _settings(self) -> str | None:
        own = self._inner.signature
        return settings_of(own) if self._file.source == "words" else own

    def _threshold_within(self) -> float | None:
        """A threshold at which the wrapped detector marks at least the words marked here, so that all have a type.

        If it only gives spans, None: its own threshold, as in the calibration.
        """
        if self._file.source == "spans":
            return None
        curves = [self._file.words.default, *self._file.words.scripts.values()]
        first = min(lowest_confidence(own.curve, self._threshold) for own in curves if own.curve is not None)
        return max(0.0, first - _HALF_A_STEP)

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
            return replace(prediction, detector=self.name, signature=self.signature)
        tag, script = predicted_language(sample, prediction)
        reading = read_words(sample, prediction)
        curve = self._file.words.of(tag, script)
        confidences = curve.probabilities(reading.confidences, reading.marked, reading.source)
        notes = tuple(note for note in prediction.notes if not note.startswith(_OUTDATED))
        if not self._file.words.covers(tag, script):
            notes = (*notes, "calibration:default")

        def pointers(word: int) -> tuple[Pointer, ...]:
            return prediction.words[word].evidence if prediction.words is not None else ()

        return replace(
            prediction,
            detector=self.name,
            score=self._score(prediction, tag, script),
            spans=self._spans(sample, prediction, reading, confidences, tag, script),
            words=words_from_confidences(reading.bounds, confidences, self._threshold, pointers)
            if self._words
            else None,
            units=None,
            notes=notes,
            signature=self.signature,
        )

    def _score(self, prediction: Prediction, tag: str | None, script: str | None) -> float | None:
        curve = self._file.responses.of(tag, script).curve if self._file.responses is not None else None
        if curve is None or prediction.score is None:
            return prediction.score
        return float(apply_curve(curve, np.array([prediction.score]))[0])

    def _spans(
        self,
        sample: Sample,
        prediction: Prediction,
        reading: Reading,
        confidences: Float64s,
        tag: str | None,
        script: str | None,
    ) -> tuple[Span, ...]:
        before = prediction.spans or ()
        of_word = span_of_each(reading.bounds, before)
        by_sentence = -1 - sentence_of_each(sample.response, tag, reading.bounds)
        parts = np.where(of_word >= 0, of_word, by_sentence)

        def label(low: int, _: int) -> SpanLabel:
            index = int(of_word[low])
            return SpanLabel(before[index].type, before[index].evidence) if index >= 0 else SpanLabel(None)

        spans = spans_from_words(sample.response, reading.bounds, confidences, self._threshold, parts, label)
        if reading.source == "words":
            return spans
        curve = self._file.words.of(tag, script)
        for span in before:
            if not marked(reading.bounds, ranges([span])).any():  # a span without words, such as a bracket
                given = np.array([np.nan if span.confidence is None else span.confidence])
                confidence = float(curve.probabilities(given, np.array([True]), "spans")[0])
                if confidence >= self._threshold:
                    spans += (replace(span, confidence=confidence),)
        return tuple(sorted(spans, key=lambda span: span.start))
