"""Places in a text: half-open `[start, end)` in Unicode code points."""

from __future__ import annotations

import msgspec

__all__ = ["JudgedUnit", "Pointer", "Span", "Unit", "Word"]


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
        place = self.start
        for start, end in self.parts:
            _check_range(start, end, "part of a unit")
            if start < place or end > self.end:
                raise ValueError(f"the parts of a unit lie in it, in order, but [{start}, {end}) does not")
            place = end
