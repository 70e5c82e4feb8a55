"""A small real detector for the tests of `run` and `cli`: a word is unsupported if the evidence does not hold it.

Its subclasses misbehave on command, by what a response says, so that the engine can be shown to survive them.
"""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from veriglot.records import Prediction, Span, Status, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Sample

_WORD = re.compile(r"\w+")


class WordAbsence:
    """Marks words whose casefolded form no passage holds; confidence 0.9 for those and 0.1 for the others."""

    name = "word-absence@1"
    taxonomy = "hat"

    def __init__(self, threshold: float | None = None, words: bool = False) -> None:
        self.threshold = 0.5 if threshold is None else threshold
        self.words = words
        self.signature = f"word-absence@1|threshold:{self.threshold}"

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        return [self.judge(sample) for sample in samples]

    def judge(self, sample: Sample) -> Prediction:
        if not sample.evidence:
            return Prediction(
                sample.id, Status.NO_EVIDENCE, self.name, reason="the sample has no evidence", signature=self.signature
            )
        known = {word.casefold() for passage in sample.evidence for word in _WORD.findall(passage.text)}
        words = [
            Word(found.start(), found.end(), 0.1 if found.group().casefold() in known else 0.9)
            for found in _WORD.finditer(sample.response)
        ]
        spans = tuple(
            Span(word.start, word.end, "hallucination", word.confidence, sample.response[word.start : word.end])
            for word in words
            if word.confidence >= self.threshold
        )
        return Prediction(
            id=sample.id,
            status=Status.SCORED,
            detector=self.name,
            score=max((word.confidence for word in words), default=0.0),
            spans=spans,
            words=tuple(words) if self.words else None,
            language=sample.language,
            signature=self.signature,
        )


class Slow(WordAbsence):
    """Takes 2 ms a sample, so that a kill finds it at work."""

    def judge(self, sample: Sample) -> Prediction:
        time.sleep(0.002)
        return super().judge(sample)


class Raises(WordAbsence):
    """Raises over every response that says `raise`."""

    def judge(self, sample: Sample) -> Prediction:
        if "raise" in sample.response:
            raise ArithmeticError(f"no number fits {sample.id}")
        return super().judge(sample)


class Forgets(WordAbsence):
    """Loses the last sample of a batch that holds more than one."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        done = super().predict(samples)
        return done[:-1] if len(done) > 1 else done


class Unwritable(WordAbsence):
    """Names half of a surrogate pair as the language of every response that says `half`, which JSON cannot hold."""

    def judge(self, sample: Sample) -> Prediction:
        made = super().judge(sample)
        return msgspec.structs.replace(made, language="\ud800") if "half" in sample.response else made


class Dies(WordAbsence):
    """Is killed over every response that says `die`, and once, ever, over the one that says `once`.

    The folder in `WORD_ABSENCE_MARKS` remembers the latter, and counts the deaths.
    """

    def judge(self, sample: Sample) -> Prediction:
        marks = Path(os.environ["WORD_ABSENCE_MARKS"])
        if "die" in sample.response or ("once" in sample.response and not (marks / sample.id).exists()):
            (marks / sample.id).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().judge(sample)


class DiesAtStart(WordAbsence):
    """Cannot be made: its process is killed while it tries."""

    def __init__(self, threshold: float | None = None, words: bool = False) -> None:
        os.kill(os.getpid(), signal.SIGKILL)
        super().__init__(threshold, words)


class BrokenDescription(WordAbsence):
    """Breaks where nothing catches it: over its own name."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(1 // 0)
