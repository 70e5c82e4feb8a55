"""From what claims got to what is marked: confidences, types, spans, words, and places in the evidence."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from veriglot.records import Pointer, Span, Word
from veriglot.text import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.detectors.grounding.language import Spoken
    from veriglot.entailment import Claim, Premise, Support
    from veriglot.records import Sample

__all__ = ["Held", "JudgedClaim", "judged_claims", "spans_of", "words_of"]

_DIGITS = 4
_CONTRADICTED = 0.5  # kang's threshold for CON


@dataclass(frozen=True)
class Held:
    """A sample, and what of it is held against what."""

    sample: Sample
    spoken: Spoken
    claims: list[Claim]
    premises: list[Premise]


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with what is said of it.

    Attributes:
        parts: its places in the response.
        confidence: probability that the evidence does not support it, `1 - ENT`.
        type: what it is if it is marked: `contradicted` or `unverified`.
        support: the premise that supports it best.
        against: what a mark points at: the premise that contradicts it most where one does, else `support`.
    """

    parts: tuple[tuple[int, int], ...]
    confidence: float
    type: str
    support: Pointer
    against: Pointer


def judged_claims(held: Held, support: Support) -> list[JudgedClaim]:
    """What is said of each claim, in order."""
    found = []
    for place, claim in enumerate(held.claims):
        contradicted = float(support.contradiction[place]) >= _CONTRADICTED
        nearest = _pointer(held.premises[int(support.nearest[place])])
        opposed = _pointer(held.premises[int(support.opposed[place])])
        found.append(
            JudgedClaim(
                claim.parts,
                min(max(round(1.0 - float(support.entailment[place]), _DIGITS), 0.0), 1.0),
                "contradicted" if contradicted else "unverified",
                nearest,
                opposed if contradicted else nearest,
            )
        )
    return found


def spans_of(sample: Sample, judged: Sequence[JudgedClaim], threshold: float) -> tuple[Span, ...]:
    """A span for each part of each claim whose confidence reaches the threshold, in order of the text."""
    spans = [
        Span(start, end, claim.type, claim.confidence, sample.response[start:end], (claim.against,))
        for claim in judged
        if claim.confidence >= threshold
        for start, end in claim.parts
    ]
    return tuple(sorted(spans, key=lambda span: span.start))


def words_of(sample: Sample, language: str, judged: Sequence[JudgedClaim], threshold: float) -> tuple[Word, ...]:
    """Every word with its claim's confidence; a supported one with the premise that supports it."""
    parts = sorted((start, end, place) for place, claim in enumerate(judged) for start, end in claim.parts)
    starts = [start for start, _, _ in parts]
    found = []
    for start, end in words(sample.response, language):
        claim = judged[parts[bisect_right(starts, start) - 1][2]]
        evidence = () if claim.confidence >= threshold else (claim.support,)
        found.append(Word(start, end, claim.confidence, evidence))
    return tuple(found)


def _pointer(premise: Premise) -> Pointer:
    return Pointer(premise.passage, premise.start, premise.end)
