"""What detectors and scorers share: why a sample is not scored, and one prediction per sample."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from veriglot.errors import UsageError
from veriglot.judging.language import resolve_language
from veriglot.plugins import Configured
from veriglot.records import Prediction, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from veriglot.judging.language import ResolvedLanguage
    from veriglot.records import JudgedUnit, Sample, Span, Word

__all__ = [
    "UNKNOWN_LANGUAGE",
    "BaseDetector",
    "NotScored",
    "TooLongError",
    "admit",
    "check_threshold",
    "has_evidence",
    "without_words",
]

PlanT = TypeVar("PlanT")
ResultT = TypeVar("ResultT")
T = TypeVar("T")


class NotScored(NamedTuple):
    """Why a sample has no score: the status and the reason of its prediction."""

    status: Status
    reason: str

    @classmethod
    def failed(cls, error: Exception) -> NotScored:
        """What an exception makes of a sample."""
        if isinstance(error, TooLongError):
            return cls(Status.TOO_LONG, str(error))
        return cls(Status.FAILED, f"{type(error).__name__}: {error}")


class TooLongError(Exception):
    """A sample that does not fit into the model: its status is `too_long`."""


_NO_EVIDENCE = NotScored(Status.NO_EVIDENCE, "there is no evidence to hold the response against")
UNKNOWN_LANGUAGE = NotScored(
    Status.UNSUPPORTED_LANGUAGE, "the language of the response was not recognised; give it as `language`"
)


def has_evidence(sample: Sample) -> bool:
    """Whether a passage of a sample holds more than white space."""
    return any(passage.text.strip() for passage in sample.evidence)


def admit(sample: Sample) -> ResolvedLanguage | NotScored:
    """The language of a sample that can be judged, or why it cannot be."""
    if not sample.response.strip():
        return NotScored(Status.FAILED, "the response is empty")
    try:
        sample.response.encode()
    except UnicodeEncodeError:
        return NotScored(Status.FAILED, "the response holds half of a surrogate pair")
    if not has_evidence(sample):
        return _NO_EVIDENCE
    return resolve_language(sample) or UNKNOWN_LANGUAGE


def without_words(sample: Sample) -> NotScored:
    """Why a sample cannot be judged in which one of the two texts has no word."""
    if any(any(c.isalnum() for c in passage.text) for passage in sample.evidence):
        return NotScored(Status.FAILED, "the response holds no word, only marks or symbols")
    return NotScored(Status.NO_EVIDENCE, "the evidence holds no word, only marks or symbols")


def check_threshold(threshold: float | None) -> None:
    """Raise where a threshold is no probability.

    Raises:
        UsageError: see there.
    """
    if threshold is not None and not 0.0 <= threshold <= 1.0:
        raise UsageError(f"A threshold is a probability between 0 and 1, but {threshold} was given.")


class BaseDetector(Configured, ABC, Generic[PlanT, ResultT]):
    """A detector: `_plan` reads a sample, `_run` judges what was read, `_scored` makes the prediction.

    Each may answer `NotScored`, and an exception in `_plan` or `_scored` costs its own sample only. A detector travels
    to another process as its options, and loads its model there.

    Args:
        threshold: confidence from which a word is marked, 0 to 1.
        words: whether predictions carry every word.
    """

    taxonomy: str

    def __init__(self, threshold: float, *, words: bool) -> None:
        self._threshold = threshold
        self._words = words

    @property
    @abstractmethod
    def name(self) -> str:
        """Name and revision."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """Name and all settings that change a prediction, in one line."""

    @property
    def threshold(self) -> float:
        """Confidence from which a word is marked."""
        return self._threshold

    @abstractmethod
    def _plan(self, sample: Sample) -> PlanT | NotScored:
        """What is judged of a sample, or why it cannot be."""

    @abstractmethod
    def _run(self, plans: Sequence[tuple[Sample, PlanT]]) -> Iterable[ResultT | NotScored]:
        """One result per plan, in order. It may be a generator: each result is used before the next is asked for."""

    @abstractmethod
    def _scored(self, sample: Sample, plan: PlanT, result: ResultT) -> Prediction | NotScored:
        """The prediction of a sample."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order. No sample makes it raise."""
        plans = [self._guarded(self._plan, sample) for sample in samples]
        planned = [
            (sample, plan) for sample, plan in zip(samples, plans, strict=True) if not isinstance(plan, NotScored)
        ]
        results = iter(self._run(planned))
        return [self._answer(sample, plan, results) for sample, plan in zip(samples, plans, strict=True)]

    def _answer(self, sample: Sample, plan: PlanT | NotScored, results: Any) -> Prediction:
        result = plan if isinstance(plan, NotScored) else next(results)
        if not isinstance(result, NotScored):
            result = self._guarded(self._scored, sample, plan, result)
        return self._not_scored(sample, result) if isinstance(result, NotScored) else result

    def _guarded(self, function: Callable[..., T], *arguments: Any) -> T | NotScored:
        """What a function returns, or what its exception makes of the sample: no sample may lose the batch."""
        try:
            return function(*arguments)
        except Exception as error:
            return self._failure(error)

    def _failure(self, error: Exception) -> NotScored:
        return NotScored.failed(error)

    def _not_scored(self, sample: Sample, why: NotScored) -> Prediction:
        return Prediction(
            id=sample.id, status=why.status, detector=self.name, reason=why.reason, signature=self.signature,
            language=sample.language,
        )  # fmt: skip

    def _prediction(
        self,
        sample: Sample,
        *,
        score: float,
        spans: tuple[Span, ...],
        words: tuple[Word, ...] | None,
        language: str | None,
        notes: Iterable[str],
        units: tuple[JudgedUnit, ...] | None = None,
    ) -> Prediction:
        return Prediction(
            id=sample.id,
            status=Status.SCORED,
            detector=self.name,
            score=score,
            spans=spans,
            words=words,
            language=language,
            notes=tuple(notes),
            signature=self.signature,
            units=units,
        )
