"""Scores of sentences and atomic facts, from the word confidences of any detector that gives them: see `WithUnits`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec.structs import replace

from veriglot.judging.base import DIGITS, has_fact_rules
from veriglot.metrics.spans import SCORING_RULE, fact_scores, sentence_scores, word_probabilities
from veriglot.records import Detector, JudgedUnit, Prediction, Record, Sample, Status
from veriglot.text.facts import facts
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


__all__ = ["WithUnits", "judged_units"]

Level = Literal["fact", "sentence"]

_NOTE_SENTENCES = "facts:sentences"  # the language has no rules: each sentence is one fact
_NOTE_OWN = "units:the detector's own"
_NOTE_NO_WORDS = "units:no word confidences"


class WithUnits(Record):
    """Wraps a detector and adds units to its predictions; only units, words and signature differ.

    Attributes:
        detector: should give word confidences; otherwise predictions get a note instead of units.
        level: `fact` or `sentence`.
        words: whether predictions also include the words.
    """

    detector: Detector
    level: Level
    words: bool = False

    @property
    def name(self) -> str:
        """Name and revision of the detector."""
        return self.detector.name

    @property
    def taxonomy(self) -> str:
        """Taxonomy of the spans."""
        return self.detector.taxonomy

    @property
    def thresholds(self) -> Mapping[str, float]:
        """The detector's thresholds by strictness."""
        return getattr(self.detector, "thresholds", {})

    @property
    def threshold(self) -> float:
        """Confidence from which a word is marked."""
        return self.detector.threshold

    @property
    def signature(self) -> str:
        """The detector's signature, and the rule for units."""
        return f"{self.detector.signature}|{self._rule}"

    @property
    def _rule(self) -> str:
        return f"units:{self.level}.{SCORING_RULE}"

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order."""
        predictions = self.detector.predict(samples)
        if [prediction.id for prediction in predictions] != [sample.id for sample in samples]:
            return predictions  # passed on, so that the caller's check of the protocol reports it
        return [self._with_units(sample, prediction) for sample, prediction in zip(samples, predictions, strict=True)]

    def _with_units(self, sample: Sample, prediction: Prediction) -> Prediction:
        full_signature = f"{prediction.signature}|{self._rule}" if prediction.signature else None
        if prediction.status is not Status.SCORED:
            return replace(prediction, signature=full_signature)
        units = judged_units(sample, prediction, self.level)
        notes = prediction.notes
        if units is None and self.level == "fact" and prediction.units:
            units, notes = prediction.units, (*notes, _NOTE_OWN)  # it judged facts itself, as `judge:facts` does
        elif units is None:
            notes = (*notes, _NOTE_NO_WORDS)
        elif self.level == "fact" and not has_fact_rules(prediction.language or sample.language):
            notes = (*notes, _NOTE_SENTENCES)
        words = prediction.words if self.words else None
        return replace(prediction, units=units, words=words, notes=notes, signature=full_signature)


def judged_units(sample: Sample, prediction: Prediction, level: Level) -> tuple[JudgedUnit, ...] | None:
    """The units of a response with their scores; see `metrics.unit_scores`.

    Args:
        sample: what was judged.
        prediction: with status `scored`.
        level: `fact` or `sentence`.

    Returns:
        Units in order; None if the prediction has no words, since there is nothing to compute a score from.
    """
    if prediction.words is None:
        return None
    language = prediction.language or sample.language
    by_character = word_probabilities(len(sample.response), prediction.words)
    claims = facts(sample.response, language)
    scores = fact_scores(claims, by_character)
    if level == "fact":
        parts = [fact.parts if len(fact.parts) > 1 else () for fact in claims]
        return tuple(
            JudgedUnit(fact.start, fact.end, fact.kind, round(score, DIGITS), several)
            for fact, score, several in zip(claims, scores.tolist(), parts, strict=True)
        )
    bounds = sentences(sample.response, language)
    by_sentence = sentence_scores(np.array(bounds, dtype=np.int32).reshape(-1, 2), claims, scores, by_character)
    return tuple(
        JudgedUnit(start, end, "sentence", round(score, DIGITS))
        for (start, end), score in zip(bounds, by_sentence.tolist(), strict=True)
    )
