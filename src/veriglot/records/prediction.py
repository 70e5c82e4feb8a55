"""What a detector said of one sample. What was not checked is never reported as clean."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from veriglot.errors import VeriglotError
from veriglot.records.sample import JudgedUnit, Span, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records.sample import Sample

__all__ = ["Detector", "Direction", "Prediction", "Score", "Scorer", "Status"]


_CHOOSER = "chooser:"


class Status(StrEnum):
    """Whether the sample was checked, or why not.

    `nothing_to_compare` is what scorers say of a share of nothing: a text without names has none that agree. It is no
    failure, for nothing went wrong and no second try will help.
    """

    SCORED = "scored"
    UNSUPPORTED_LANGUAGE = "unsupported_language"
    NO_EVIDENCE = "no_evidence"
    TOO_LONG = "too_long"
    NOTHING_TO_COMPARE = "nothing_to_compare"
    FAILED = "failed"


class Prediction(msgspec.Struct, frozen=True, omit_defaults=True):
    """One detector's answer for one sample.

    Attributes:
        id: the sample's id.
        status: `scored`, or why not.
        detector: name and revision of the detector that judged the sample, such as `grounding@1.0`.
        score: probability between 0 and 1 that the response holds any unsupported span; None unless scored.
        spans: the unsupported spans, in order; None unless scored.
        words: every word with its confidence, where they were asked for.
        language: BCP 47 tag that the detector worked in (given or detected).
        notes: what a reader of this prediction must know, such as `calibration:default`.
        reason: why the sample was not scored.
        signature: one line that says how the prediction was made.
        units: the sentences or atomic facts of the response, each with its score, where they were asked for.

    Raises:
        ValueError: a scored prediction without spans, or spans or no reason on one that was not scored.
    """

    id: str
    status: Status
    detector: str
    score: float | None = None
    spans: tuple[Span, ...] | None = None
    words: tuple[Word, ...] | None = None
    language: str | None = None
    notes: tuple[str, ...] = ()
    reason: str | None = None
    signature: str | None = None
    units: tuple[JudgedUnit, ...] | None = None

    @property
    def asked(self) -> str:
        """Name and revision of the detector that was asked; it may have handed the sample on to `detector`."""
        parts = (self.signature or "").split("|")
        return next((part.removeprefix(_CHOOSER) for part in parts if part.startswith(_CHOOSER)), self.detector)

    def as_dicts(self) -> list[dict[str, Any]]:
        """The spans as plain dictionaries with `start`, `end`, `text`, `confidence` and, where known, `type`.

        Raises:
            VeriglotError: the sample was not scored; an empty list would read as clean.
        """
        if self.spans is None:
            raise VeriglotError(f"The sample {self.id!r} was not checked ({self.status}): {self.reason}.")
        spans: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(self.spans))
        return spans

    def __post_init__(self) -> None:
        if self.status is Status.SCORED:
            if self.spans is None or self.score is None:
                raise ValueError("a scored prediction has `spans` (possibly empty) and a `score`")
            if not 0.0 <= self.score <= 1.0:
                raise ValueError(f"a `score` lies between 0 and 1, but this one is {self.score}")
        elif any(given is not None for given in (self.spans, self.score, self.words, self.units)):
            raise ValueError(f"a prediction with status {self.status} has no `spans`, `words`, `units` or `score`")
        elif not self.reason:
            raise ValueError(f"a prediction with status {self.status} has a `reason`")


class Direction(StrEnum):
    """Which way a scorer's numbers go."""

    HIGHER_IS_WORSE = "higher_is_worse"
    HIGHER_IS_BETTER = "higher_is_better"


class Score(msgspec.Struct, frozen=True, omit_defaults=True):
    """One scorer's number for one sample.

    Attributes:
        id: the sample's id.
        status: `scored`, or why not.
        scorer: name and revision, such as `top-ngram@1`.
        value: the number; None unless scored. Its range is the scorer's own, and no probability.
        parts: the numbers that it was made from, by name.
        language: BCP 47 tag of the response that the scorer worked with (given or identified).
        reason: why the sample was not scored.
        signature: one line that says how the score was made.

    Raises:
        ValueError: a scored one without a finite value, or a value or no reason on one that was not scored.
    """

    id: str
    status: Status
    scorer: str
    value: float | None = None
    parts: dict[str, float] = {}
    language: str | None = None
    reason: str | None = None
    signature: str | None = None

    def __post_init__(self) -> None:
        if self.status is Status.SCORED:
            if self.value is None or not abs(self.value) < float("inf"):
                raise ValueError(f"a score with status scored has a finite `value`, not {self.value}")
        elif self.value is not None:
            raise ValueError(f"a score with status {self.status} has no `value`")
        elif not self.reason:
            raise ValueError(f"a score with status {self.status} has a `reason`")


@runtime_checkable
class Detector(Protocol):
    """Samples in, predictions out: batch first, no state between calls.

    `predict` gives one prediction per sample, in order. It never raises because of a sample: what it cannot
    judge comes back with a status other than `scored` and a reason. The result for a sample does not depend
    on the rest of its batch.

    A detector that hands samples on to others names those in its predictions, and itself in their signature, as
    `chooser:name`; `Prediction.asked` finds it there.
    """

    @property
    def name(self) -> str:
        """Name and revision, such as `grounding@1.0`."""

    @property
    def taxonomy(self) -> str:
        """Name of the taxonomy that its span types belong to."""

    @property
    def threshold(self) -> float:
        """Confidence from which a word counts as marked."""

    @property
    def signature(self) -> str:
        """One line that says how its predictions are made."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch."""


@runtime_checkable
class Scorer(Protocol):
    """Samples in, numbers out: like a detector, but with one number a sample, no spans, and no calibration.

    `score` gives one score per sample, in order. It never raises because of a sample: what it cannot score comes back
    with a status other than `scored` and a reason. The score of a sample does not depend on the rest of its batch.
    """

    @property
    def name(self) -> str:
        """Name and revision, such as `top-ngram@1`."""

    @property
    def direction(self) -> Direction:
        """Whether a higher number speaks against a response or for it."""

    @property
    def signature(self) -> str:
        """One line that says how its scores are made."""

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Score a batch."""
