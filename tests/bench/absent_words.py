"""A small real detector: a word is as likely unsupported as its letters are new to the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.records import Prediction, Span, Status, Word
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Sample

REFUSED = "xx"  # a language that this detector does not score


def _trigrams(text: str) -> set[str]:
    padded = f"  {text.casefold()}  "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}


class AbsentWords:
    """Marks words whose letters stand too seldom in the evidence. Numbers are of type `entity`, the rest `invented`."""

    name = "absent-words@1"
    taxonomy = "fava"

    def __init__(self, *, threshold: float | None = None, words: bool = True) -> None:
        self.threshold = 0.5 if threshold is None else threshold
        self.signature = f"detector:{self.name}|threshold:{self.threshold}"
        self._words = words

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        return [self._one(sample) for sample in samples]

    def _one(self, sample: Sample) -> Prediction:
        if sample.language == REFUSED:
            return Prediction(
                sample.id, Status.UNSUPPORTED_LANGUAGE, self.name, reason="not read", signature=self.signature
            )
        if not sample.evidence:
            return Prediction(sample.id, Status.NO_EVIDENCE, self.name, reason="no evidence", signature=self.signature)
        known = set().union(*(_trigrams(passage.text) for passage in sample.evidence))
        words, spans = [], []
        for start, end in word_bounds(sample.response, sample.language).tolist():
            text = sample.response[start:end]
            parts = _trigrams(text)
            confidence = len(parts - known) / len(parts)
            words.append(Word(start, end, confidence))
            if confidence >= self.threshold:
                spans.append(Span(start, end, "entity" if text.isdigit() else "invented", confidence))
        score = max((word.confidence for word in words), default=0.0)
        return Prediction(
            sample.id, Status.SCORED, self.name, score=score, spans=tuple(spans),
            words=tuple(words) if self._words else None, signature=self.signature,
        )  # fmt: skip


class Interrupted(AbsentWords):
    """Somebody presses Ctrl-C while it judges."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        raise KeyboardInterrupt
