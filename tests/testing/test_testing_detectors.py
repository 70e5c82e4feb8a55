"""The checks of a detector: ours pass, and each way of breaking the contract is told."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import pytest

from veriglot.detectors.registry import load_detector
from veriglot.records import Prediction, Sample, Span, Status, Word
from veriglot.testing import ContractError, check_detector, hostile_samples, ordinary_samples
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence


class Longest:
    """Marks the longest word of a response; right in every way."""

    name = "longest@1"
    taxonomy = "hat"

    def __init__(self, *, threshold: float | None = None, words: bool = False) -> None:
        self.threshold = 0.5 if threshold is None else threshold
        self._words = words

    @property
    def signature(self) -> str:
        return f"detector:{self.name}|threshold:{self.threshold}"

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        return [self._judge(sample) for sample in samples]

    def _judge(self, sample: Sample) -> Prediction:
        found = Prediction(sample.id, Status.FAILED, self.name, reason="there is no word", signature=self.signature)
        if not any(passage.text.strip() for passage in sample.evidence):
            return msgspec.structs.replace(found, status=Status.NO_EVIDENCE, reason="there is no evidence")
        if any(0xD800 <= ord(char) < 0xE000 for char in sample.response):
            return found
        places = word_bounds(sample.response).tolist()
        if not places:
            return found
        longest = max(end - start for start, end in places)
        words = tuple(Word(start, end, 0.9 if end - start == longest else 0.1) for start, end in places)
        return msgspec.structs.replace(
            found, status=Status.SCORED, reason=None, score=0.9, words=words if self._words else None,
            spans=tuple(self._span(sample, word) for word in words if word.confidence >= self.threshold),
        )  # fmt: skip

    def _span(self, sample: Sample, word: Word) -> Span:
        text = sample.response[word.start : word.end]
        return Span(word.start, word.end, "hallucination", word.confidence, text)


def broken(load: Any, **options: Any) -> str:
    with pytest.raises(ContractError) as caught:
        check_detector(load, **options)
    assert caught.value.report.breaches
    return str(caught.value)


def test_a_right_one_passes_in_new_processes_too() -> None:
    report = check_detector(Longest, processes=True, scored=0.9)
    assert (report.samples, report.scored) == (len(ordinary_samples()), len(ordinary_samples()))
    assert report.checks[-1] == "processes"
    assert "the contract is kept" in str(report)


def test_ours_pass() -> None:
    assert check_detector(partial(load_detector, "grounding"), scored=0.9).breaches == ()


def change(prediction: Prediction, **fields: Any) -> Prediction:
    return msgspec.structs.replace(prediction, **fields)


class Changed(Longest):
    """Breaks one rule: `alter` changes each prediction."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        return [self.alter(one, sample) for one, sample in zip(super().predict(samples), samples, strict=True)]

    def alter(self, one: Prediction, sample: Sample) -> Prediction:
        raise NotImplementedError


class Shifted(Changed):
    def alter(self, one: Prediction, sample: Sample) -> Prediction:
        spans = tuple(msgspec.structs.replace(s, start=s.start + 1, end=s.end + 1) for s in one.spans or ())
        return change(one, spans=spans) if one.spans else one


class BeyondTheEnd(Changed):
    def alter(self, one: Prediction, sample: Sample) -> Prediction:
        return change(one, spans=(Span(0, len(sample.response) + 2, "hallucination"),)) if one.spans else one


class OtherTypes(Changed):
    def alter(self, one: Prediction, sample: Sample) -> Prediction:
        spans = tuple(msgspec.structs.replace(span, type="nonsense") for span in one.spans or ())
        return change(one, spans=spans) if one.spans else one


class OtherSignature(Changed):
    def alter(self, one: Prediction, sample: Sample) -> Prediction:
        return change(one, signature="mine")


class WordsUnasked(Changed):
    def alter(self, one: Prediction, sample: Sample) -> Prediction:
        return change(one, words=(Word(0, 1, 0.1),)) if one.spans is not None else one


class CleanWhereEmpty(Changed):
    """What fails reads as clean: the worst of all."""

    def alter(self, one: Prediction, sample: Sample) -> Prediction:
        return one if one.spans is not None else change(one, status=Status.SCORED, reason=None, spans=(), score=0.0)


class ScoreByThreshold(Changed):
    def alter(self, one: Prediction, sample: Sample) -> Prediction:
        return change(one, score=self.threshold) if one.spans is not None else one


class UnmarkedWords(Changed):
    def alter(self, one: Prediction, sample: Sample) -> Prediction:
        return change(one, spans=()) if one.spans is not None else one


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Shifted, "and the response has"),
        (BeyondTheEnd, "ends beyond the response"),
        (OtherTypes, "is not in the taxonomy 'hat'"),
        (OtherSignature, "not the detector's"),
        (WordsUnasked, "words that nobody asked for"),
        (CleanWhereEmpty, "a response that says nothing is scored"),
        (CleanWhereEmpty, "scored without evidence"),
        (ScoreByThreshold, "hang on the threshold"),
        (UnmarkedWords, "is not inside a span"),
    ],
)
def test_a_wrong_prediction_is_told(kind: type, told: str) -> None:
    assert told in broken(kind)


class Stateful(Longest):
    """Scores what it saw before."""

    seen: ClassVar[int] = 0

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        type(self).seen += 1
        score = 1 / self.seen
        return [change(one, score=score) if one.spans is not None else one for one in super().predict(samples)]


class BatchMinded(Longest):
    """Scores by what else is in the batch."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        score = 1 / (1 + len(samples))
        return [change(one, score=score) if one.spans is not None else one for one in super().predict(samples)]


class Sorted(Longest):
    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        return sorted(super().predict(samples), key=lambda one: one.id)


class Dropping(Longest):
    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        return [one for one in super().predict(samples) if one.status is Status.SCORED]


class Raising(Longest):
    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        for sample in samples:
            sample.response.encode()
        return super().predict(samples)


class Eating(Longest):
    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        found = super().predict(samples)
        if isinstance(samples, list):
            samples.clear()
        return found


class Writing(Longest):
    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        for sample in samples:
            sample.meta["seen"] = True
        return super().predict(samples)


class Refusing(Longest):
    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        return [Prediction(one.id, Status.FAILED, self.name, reason="no", signature=self.signature) for one in samples]


class Unpicklable(Longest):
    def __reduce__(self) -> Any:
        raise TypeError("it holds a lock")


class Nameless(Longest):
    name = "longest"


class NoTaxonomy(Longest):
    taxonomy = "mine"


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Stateful, "determinism: asked again"),
        (BatchMinded, "batches: one by one"),
        (Sorted, "the answer in its place is to"),
        (Dropping, "predictions for"),
        (Raising, "hostile samples: raised UnicodeEncodeError"),
        (Eating, "the list that was given"),
        (Writing, "the samples are changed"),
        (Refusing, "only 0 of 16 samples are scored"),
        (Unpicklable, "pickling: raised TypeError: it holds a lock"),
        (Nameless, "should be a name and a revision"),
        (NoTaxonomy, "is none of"),
        (lambda: Longest(), "words: raised TypeError"),
        (lambda: object(), "what was made lacks name, predict, signature, taxonomy, threshold"),
        (lambda: 1 / 0, "loading: raised ZeroDivisionError"),
    ],
)
def test_a_wrong_detector_is_told(kind: Any, told: str) -> None:
    assert told in broken(kind, samples=ordinary_samples())


def test_a_tolerance_lets_numbers_differ() -> None:
    assert "one by one" in broken(BatchMinded)
    assert check_detector(BatchMinded, tolerance=0.6).breaches == ()


def test_every_breach_is_told_at_once() -> None:
    class Both(OtherTypes):
        name = "both"

    told = broken(Both)
    assert "should be a name and a revision" in told
    assert "is not in the taxonomy" in told
    assert told.count("- predictions: sample") == 4, "four of a kind are enough to see what is wrong"
    assert "- predictions: and " in told


def test_the_samples_are_what_they_are_called() -> None:
    ordinary, hostile = ordinary_samples(), hostile_samples()
    assert len({sample.language for sample in ordinary}) >= 12
    assert all(sample.evidence and sample.response for sample in ordinary)
    names = {sample.id for sample in hostile}
    assert {"empty", "blank", "no evidence", "blank evidence"} <= names
    assert not next(sample for sample in hostile if sample.id == "blank").response.strip(" \t\n\u3000\u200b")
