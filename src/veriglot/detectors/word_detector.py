"""What detectors of words share: one prediction per sample whatever happens, and spans from what is said of words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.admission import Refusal, admitted, without_words
from veriglot.detectors.grounding.calibration import sigmoid
from veriglot.detectors.grounding.marking import DIGITS, mark, word_list
from veriglot.records import Prediction, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.grounding.calibration import Calibration
    from veriglot.detectors.grounding.features import Extract
    from veriglot.detectors.grounding.language import Spoken
    from veriglot.records import Sample

__all__ = ["Seen", "WordDetector"]


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
    calibration: Calibration
    types: tuple[str, ...]
    notes: tuple[str, ...] = ()
    places: NDArray[np.int64] | None = None


class WordDetector(ABC):
    """A detector that gives every word a confidence.

    Args:
        threshold: confidence from which a word is marked, 0 to 1.
        words: whether predictions carry every word.
    """

    taxonomy = "fava"

    def __init__(self, threshold: float, *, words: bool) -> None:
        self._threshold = threshold
        self._words = words

    @property
    @abstractmethod
    def name(self) -> str:
        """Name and revision of the weights."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """One line that says how predictions are made."""

    @property
    def threshold(self) -> float:
        """Confidence from which a word is marked."""
        return self._threshold

    @abstractmethod
    def _see(self, sample: Sample, spoken: Spoken) -> Seen | None:
        """Look at a sample that has response, evidence and language; None where one of the two texts has no word."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order. No sample makes it raise."""
        return [self._judge(sample) for sample in samples]

    def _judge(self, sample: Sample) -> Prediction:
        try:
            return self._judged(sample)
        except Exception as error:  # one sample's failure must not lose the batch; it is said, not hidden
            return self._not_scored(sample, Status.FAILED, f"{type(error).__name__}: {error}")

    def _not_scored(self, sample: Sample, status: Status, reason: str) -> Prediction:
        return Prediction(
            id=sample.id, status=status, detector=self.name, reason=reason, signature=self.signature,
            language=sample.language,
        )  # fmt: skip

    def _judged(self, sample: Sample) -> Prediction:
        spoken = admitted(sample)
        if isinstance(spoken, Refusal):
            return self._not_scored(sample, spoken.status, spoken.reason)
        seen = self._see(sample, spoken)
        if seen is None:
            refusal = without_words(sample)
            return self._not_scored(sample, refusal.status, refusal.reason)
        if seen.extract.markup.all():
            return self._not_scored(sample, Status.FAILED, "the response holds nothing but control tokens")
        return self._scored(sample, seen, spoken)

    def _scored(self, sample: Sample, seen: Seen, spoken: Spoken) -> Prediction:
        found, logits, calibration = seen.extract, seen.logits, seen.calibration
        confidences = calibration.confidences(logits[:, 0], spoken.tag, spoken.script)
        confidences[found.markup] = 0.0
        confidences = confidences.round(DIGITS)  # first, so that what is shown and what is marked agree
        types = sigmoid(logits[:, 1:].astype(np.float64))
        notes = (*spoken.notes, *seen.notes)
        if not calibration.covers(spoken.tag, spoken.script):
            notes = (*notes, "calibration:default")
        threshold = self._threshold
        return Prediction(
            id=sample.id,
            status=Status.SCORED,
            detector=self.name,
            score=round(calibration.score(logits[~found.markup, 0]), DIGITS),
            spans=mark(sample, found, confidences, types, seen.types, threshold),
            words=word_list(sample, found, confidences, threshold, seen.places) if self._words else None,
            language=spoken.tag,
            notes=notes,
            signature=self.signature,
        )
