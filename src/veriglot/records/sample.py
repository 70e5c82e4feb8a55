"""The sample: one response to judge, the evidence it is held against, and what annotators said of it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Annotation",
    "Evidence",
    "Generator",
    "JudgedUnit",
    "Kind",
    "Pointer",
    "Sample",
    "Span",
    "Task",
    "Unit",
    "Word",
]


def _check_range(start: int, end: int, what: str) -> None:
    if start < 0 or end <= start:
        raise ValueError(f"a {what} is half-open and never empty, but this one is [{start}, {end})")


def _check_share(value: float | None, what: str) -> None:
    if value is not None and not 0.0 <= value <= 1.0:
        raise ValueError(f"a {what} lies between 0 and 1, but this one is {value}")


class Pointer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place in the evidence: which passage, and `[start, end)` in code points of its text."""

    id: str
    start: int
    end: int

    def __post_init__(self) -> None:
        _check_range(self.start, self.end, "pointer")


class Span(msgspec.Struct, frozen=True, omit_defaults=True):
    """A marked part of a response.

    Attributes:
        start: first code point, counted from 0.
        end: one past the last code point; always greater than `start`.
        type: a type of the taxonomy that the span belongs to, or None where spans carry no type.
        confidence: probability between 0 and 1 that the span is what it says, or None where none is known.
        text: the marked text, for readers; offsets are what counts.
        evidence: the places in the evidence that the span was held against.
    """

    start: int
    end: int
    type: str | None = None
    confidence: float | None = None
    text: str | None = None
    evidence: tuple[Pointer, ...] = ()

    def __post_init__(self) -> None:
        _check_range(self.start, self.end, "span")
        _check_share(self.confidence, "confidence")


class Unit(msgspec.Struct, frozen=True, omit_defaults=True):
    """A labelled unit of a response: a sentence, an atomic fact, a token.

    Attributes:
        start: first code point, counted from 0.
        end: one past the last code point; always greater than `start`.
        label: a label of the annotation's taxonomy, such as `supported`.
        probability: the share of annotators who gave the label, where that is what the source holds (soft labels).
    """

    start: int
    end: int
    label: str
    probability: float | None = None

    def __post_init__(self) -> None:
        _check_range(self.start, self.end, "unit")
        _check_share(self.probability, "probability")


class Word(msgspec.Struct, frozen=True, omit_defaults=True):
    """One word of a response with the probability (0 to 1) that the evidence does not support it.

    Attributes:
        start: first code point, counted from 0.
        end: one past the last code point; always greater than `start`.
        confidence: probability that the word is unsupported.
        evidence: for a supported word, the places in the evidence that support it.
    """

    start: int
    end: int
    confidence: float
    evidence: tuple[Pointer, ...] = ()

    def __post_init__(self) -> None:
        _check_range(self.start, self.end, "word")
        _check_share(self.confidence, "confidence")


class JudgedUnit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One sentence or atomic fact of a response with the probability (0 to 1) that it holds anything unsupported.

    Attributes:
        start: first code point, counted from 0.
        end: one past the last code point; always greater than `start`.
        kind: `sentence`, or what kind of fact it is: `clause`, `aside`, `date`, `number`, `name`.
        score: probability that the evidence does not support all of it.
        parts: the places that it is made of, half-open and in order, where other units lie between them; empty where
            it is all of `[start, end)`.
    """

    start: int
    end: int
    kind: str
    score: float
    parts: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        _check_range(self.start, self.end, "unit")
        _check_share(self.score, "score")
        reached = self.start
        for start, end in self.parts:
            _check_range(start, end, "part of a unit")
            if start < reached or end > self.end:
                raise ValueError(f"the parts of a unit lie in it, in order, but [{start}, {end}) does not")
            reached = end


class Task(StrEnum):
    """What the response was asked to do."""

    QA = "qa"
    SUMMARIZATION = "summarization"
    TRANSLATION = "translation"
    BIOGRAPHY = "biography"
    DIALOGUE = "dialogue"
    OPEN = "open"


class Kind(StrEnum):
    """Who made a label: a person (gold) or a model (silver)."""

    HUMAN = "human"
    MODEL = "model"


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """One passage that the response is held against; in a translation, the source text.

    Attributes:
        text: the passage.
        id: its name inside the sample; `Sample` fills in `p0`, `p1` ... where it is None.
        title: its heading, if any.
        language: BCP 47 tag of the passage, if it is known; it may differ from the response's.
        url: where it stands.
    """

    text: str
    id: str | None = None
    title: str | None = None
    language: str | None = None
    url: str | None = None


class Generator(msgspec.Struct, frozen=True, omit_defaults=True):
    """The model that gave a response, with what is needed to ask it again."""

    name: str
    revision: str | None = None
    seed: int | None = None
    settings: dict[str, Any] = {}


class Annotation(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one annotator said of one sample.

    Attributes:
        annotator: who, by a chosen name ("gold", "annotator_1", "gpt-4").
        kind: a person or a model.
        taxonomy: the name of the taxonomy that types and labels belong to.
        spans: the marked spans; `()` where the annotator looked and found nothing, None where spans were not asked for.
        units: labelled units (sentences, facts, tokens), or None where units were not asked for.
        ratings: named ratings, such as `{"fools_reader": 4}`.
        flags: named flags, such as `context_conflict`.
    """

    annotator: str
    kind: Kind
    taxonomy: str
    spans: tuple[Span, ...] | None = None
    units: tuple[Unit, ...] | None = None
    ratings: dict[str, float | str] = {}
    flags: tuple[str, ...] = ()


class Sample(msgspec.Struct, frozen=True, omit_defaults=True):
    """One response to judge.

    Attributes:
        id: unique inside a file.
        response: the text to judge; offsets of spans are code points of this text.
        task: what was asked for.
        language: BCP 47 tag of the response, or None where it has to be detected.
        question: the question or prompt, if there was one.
        evidence: the passages, in order; each has an id once the sample exists.
        generator: the model that gave the response.
        annotations: one per annotator.
        meta: everything else that the source held.

    Raises:
        ValueError: two passages share an id, or a span or unit ends beyond the response. Decoding reports it as an
            `InputError` with file, line and field.
    """

    id: str
    response: str
    task: Task = Task.OPEN
    language: str | None = None
    question: str | None = None
    evidence: tuple[Evidence, ...] = ()
    generator: Generator | None = None
    annotations: tuple[Annotation, ...] = ()
    meta: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if any(passage.id is None for passage in self.evidence):
            named = tuple(
                passage if passage.id is not None else msgspec.structs.replace(passage, id=f"p{index}")
                for index, passage in enumerate(self.evidence)
            )
            msgspec.structs.force_setattr(self, "evidence", named)
        if len({passage.id for passage in self.evidence}) < len(self.evidence):
            raise ValueError("two passages share an id at `evidence`")
        for index, annotation in enumerate(self.annotations):
            self._check_marks(f"annotations[{index}].spans", annotation.spans or ())
            self._check_marks(f"annotations[{index}].units", annotation.units or ())

    def _check_marks(self, name: str, marks: Sequence[Span] | Sequence[Unit]) -> None:
        length = len(self.response)
        for position in range(len(marks)):
            mark = marks[position]
            if mark.end > length:
                raise ValueError(
                    f"[{mark.start}, {mark.end}) ends beyond the response of {length} code points"
                    f" at `{name}[{position}]`"
                )
