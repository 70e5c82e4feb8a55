"""A small real detector that reads its confidences off the words: `a37b62` is 0.37 to who reads `a`, 0.62 to `b`."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from veriglot.detectors.registry import DETECTORS
from veriglot.records import Annotation, Evidence, Kind, Pointer, Prediction, Sample, Span, Status, Word
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray


@contextmanager
def plugged_in(folder: Path) -> Iterator[None]:
    """The detector under the name `told-words`, as a package that was installed into a folder adds it."""
    about = folder / "told_words-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: told-words\nVersion: 1\n", "utf-8")
    (about / "entry_points.txt").write_text("[veriglot.detectors]\ntold-words = told_words:ToldWords\n", "utf-8")
    sys.path.append(str(folder))
    DETECTORS.__dict__.pop("_entries", None)  # what is installed is looked up once
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        DETECTORS.__dict__.pop("_entries", None)


class ToldWords:
    """Marks words that say so. One without the letter has confidence 0; `a37V` is a verdict without a confidence.

    Args:
        letter: which figure it reads.
        kind: the type of its spans.
        spans_alone: whether it gives no words.
        refuses: a language that it does not score.
    """

    def __init__(
        self, *, threshold: float | None = None, words: bool = False, letter: str = "a", kind: str = "entity",
        spans_alone: bool = False, refuses: str = "xx", taxonomy: str = "fava",
    ) -> None:  # fmt: skip
        self.threshold = 0.5 if threshold is None else threshold
        self.name = f"told-{letter}@1"
        self.taxonomy = taxonomy
        self.signature = f"detector:{self.name}|kind:{kind}|threshold:{self.threshold}|unit:word"
        self._words, self._kind, self._alone, self._refuses = words and not spans_alone, kind, spans_alone, refuses
        self._pattern = re.compile(rf"{letter}(\d\d\d?)")

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        return [self._one(sample) for sample in samples]

    def _one(self, sample: Sample) -> Prediction:
        if sample.language == self._refuses:
            return self._not(sample, Status.UNSUPPORTED_LANGUAGE, f"does not read {sample.language}")
        if not sample.evidence:
            return self._not(sample, Status.NO_EVIDENCE, "no evidence")
        if not sample.response.strip():
            return self._not(sample, Status.FAILED, "the response is empty")
        words = [self._word(sample, *bounds) for bounds in word_bounds(sample.response, sample.language).tolist()]
        here = (Pointer(str(sample.evidence[0].id), 0, 3),)
        spans = [
            Span(word.start, word.end, self._kind, None if text.endswith("V") else word.confidence, text, here)
            for word in words
            if word.confidence >= self.threshold
            for text in [sample.response[word.start : word.end]]
        ]
        return Prediction(
            sample.id, Status.SCORED, self.name, score=max((word.confidence for word in words), default=0.0),
            spans=tuple(spans), words=tuple(words) if self._words else None, language=sample.language,
            notes=("calibration:none",), signature=self.signature,
        )  # fmt: skip

    def _word(self, sample: Sample, start: int, end: int) -> Word:
        found = self._pattern.search(sample.response[start:end])
        confidence = int(found[1]) / 10 ** len(found[1]) if found else 0.0
        pointers = (Pointer(str(sample.evidence[0].id), 0, 3),) if confidence < self.threshold else ()
        return Word(start, end, confidence, pointers)

    def _not(self, sample: Sample, status: Status, reason: str) -> Prediction:
        return Prediction(sample.id, status, self.name, reason=reason, signature=self.signature)


def told(id_: str, text: str, language: str = "en", *, wrong: Sequence[str] | None = None) -> Sample:
    """A sample of such words, with the words that are labelled as unsupported, if it has labels."""
    spans = []
    for start, end in word_bounds(text, language).tolist() if wrong is not None else []:
        if text[start:end] in (wrong or ()):
            spans.append(Span(start, end, "entity"))
    labels = () if wrong is None else (Annotation("gold", Kind.HUMAN, "fava", spans=tuple(spans)),)
    return Sample(
        id_, text, language=language, evidence=(Evidence(f"the mill {id_}", language=language),), annotations=labels
    )


def drawn(
    count: int, generator: np.random.Generator, truth: NDArray[np.float64], *, language: str = "en", words: int = 20
) -> list[Sample]:
    """Responses whose words say 0.01 to 0.99, each unsupported with the probability that `truth` has for that."""
    found = []
    for place in range(count):
        said = generator.integers(1, 100, size=words)
        bad = generator.random(words) < truth[said]
        text = [f"a{value:02d}w{place}n{at}" for at, value in enumerate(said.tolist())]
        wrong = [word for word, is_bad in zip(text, bad.tolist(), strict=True) if is_bad]
        found.append(told(f"{language}-{place}", " ".join(text), language, wrong=wrong))
    return found
