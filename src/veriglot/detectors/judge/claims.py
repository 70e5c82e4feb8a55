"""The claims of a response that a judge checks one by one: found by rules, or by a model that quotes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from veriglot.detectors.judge.locating import Quote, locate
from veriglot.detectors.judge.notes import location_notes
from veriglot.text import fact_languages, facts, words

__all__ = ["Answered", "Claim", "claims_by_rules", "claims_of_model", "decomposition_schema"]

Range = tuple[int, int]


class _Claimed(msgspec.Struct, frozen=True):
    claim: str
    text: str
    before: str = ""


class Answered(msgspec.Struct, frozen=True):
    """The facts that a model parted a response into."""

    facts: tuple[_Claimed, ...]


@dataclass(frozen=True)
class Claim:
    """One thing that a response says.

    Attributes:
        text: the claim, to be read by itself.
        kind: as `Fact.kind`, or `claim` where a model found it.
        parts: its places in the response, half-open, in order.
    """

    text: str
    kind: str
    parts: tuple[Range, ...]


def claims_by_rules(response: str, language: str) -> tuple[list[Claim], tuple[str, ...]]:
    """The atomic facts of a response, which hold each of its words once, and what to note.

    Args:
        response: the text.
        language: BCP 47 tag; without rules for it each sentence is one fact, which the note `facts:sentences` says.
    """
    found = [Claim(fact.text(response), fact.kind, fact.parts) for fact in facts(response, language)]
    has_rules = language.partition("-")[0].lower() in fact_languages()
    return found, () if has_rules else ("facts:sentences",)


def claims_of_model(response: str, language: str, answered: Answered) -> tuple[list[Claim], tuple[str, ...]]:
    """The facts that a model found, in order of their places, and what to note.

    A fact whose words do not stand in the response is left out and noted; so is how many words of the response stand
    in no fact, which nobody checks.
    """
    quotes = [Quote(one.text, one.before) for one in answered.facts]
    places = locate(response, quotes, language)
    notes = location_notes(quotes, places)
    found = [
        Claim(one.claim.strip() or one.text, "claim", ((place.start, place.end),))
        for one, place in zip(answered.facts, places, strict=True)
        if place is not None
    ]
    held = {place for claim in found for start, end in claim.parts for place in range(start, end)}
    outside = sum(start not in held for start, _ in words(response, language))
    if outside:
        notes = (*notes, f"facts:{outside} words in no fact")
    return sorted(found, key=lambda claim: claim.parts), notes


def decomposition_schema() -> dict[str, Any]:
    """The JSON schema of the answer of a model that parts a response."""
    text = {"type": "string"}
    fields = {"claim": text, "before": text, "text": text}
    fact = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    listed = {"type": "array", "items": fact}
    return {"type": "object", "properties": {"facts": listed}, "required": ["facts"], "additionalProperties": False}
