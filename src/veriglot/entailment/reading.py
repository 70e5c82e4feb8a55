"""What of a sample is held against what: claims of the response, premises of the evidence, with their places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from veriglot.errors import UnknownNameError, UsageError
from veriglot.records.languages import language
from veriglot.text import fact_languages, facts, sentences, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.entailment.entailment import Entailment
    from veriglot.records import Evidence
    from veriglot.text import Fact

__all__ = [
    "LEVELS",
    "Claim",
    "Level",
    "Premise",
    "check_reading",
    "claims_of",
    "declared_for",
    "has_rules",
    "premises_of",
]

Level = Literal["sentence", "fact"]
LEVELS: tuple[str, ...] = get_args(Level)
Range = tuple[int, int]
_VALUES = frozenset({"date", "number", "name"})


@dataclass(frozen=True)
class Claim:
    """A sentence or an atomic fact of a response.

    Attributes:
        text: what is held against the evidence; of a fact, with the context that it needs to be read by itself.
        kind: `sentence`, or the kind of fact.
        parts: its own places in the response, half-open, in order; together the claims of a response hold each of its
            words once.
    """

    text: str
    kind: str
    parts: tuple[Range, ...]


@dataclass(frozen=True)
class Premise:
    """A stretch of the evidence: `[start, end)` of the passage `passage`."""

    text: str
    passage: str
    start: int
    end: int


def check_reading(claim: str, premise_sentences: int) -> None:
    """Raise for options that make no sense.

    Raises:
        UnknownNameError: no such kind of claim.
        UsageError: a negative number of sentences.
    """
    if claim not in LEVELS:
        raise UnknownNameError("kind of claim", claim, LEVELS)
    if premise_sentences < 0:
        raise UsageError(
            f"A premise is made of {premise_sentences} sentences.",
            remedy="Give premise_sentences 1 or more, or 0 for whole passages.",
        )


def claims_of(response: str, tag: str | None, level: Level, question: str | None = None) -> list[Claim]:
    """The claims of a response, in order.

    Args:
        response: any text; one without words has no claim.
        tag: BCP 47 tag of its language; it decides how sentences and facts are parted.
        level: `sentence`, or `fact`: in a language without rules for facts (`veriglot.text.fact_languages`) each
            sentence is one.
        question: stands before the text of each claim, where it is given: `In 1901.` by itself says little.
    """
    if level == "fact":
        found = _fact_claims(response, facts(response, tag))
    else:
        places = (place for place in sentences(response, tag) if words(response[slice(*place)], tag))
        found = [Claim(response[start:end], "sentence", ((start, end),)) for start, end in places]
    if question is None or not question.strip():
        return found
    return [replace(claim, text=f"{question.strip()} {claim.text}") for claim in found]


def _fact_claims(response: str, found: list[Fact]) -> list[Claim]:
    """Facts as texts, without the dates, numbers and names in their context that are checked apart."""
    apart = [part for fact in found if fact.kind in _VALUES for part in fact.parts]
    claims = []
    for fact in found:
        context = [left for place in fact.context for left in _without(place, apart)]
        texts = (response[start:end].strip() for start, end in sorted({*fact.parts, *context}))
        claims.append(Claim(" ".join(text for text in texts if text), fact.kind, fact.parts))
    return claims


def _without(place: Range, cuts: list[Range]) -> list[Range]:
    """What is left of a range without others that lie in it, in order."""
    start, end = place
    left = []
    for low, high in sorted(cut for cut in cuts if start <= cut[0] and cut[1] <= end):
        left.append((start, low))
        start = high
    return [(low, high) for low, high in [*left, (start, end)] if low < high]


def has_rules(tag: str | None) -> bool:
    """Whether sentences of a language can be parted into facts."""
    return tag is not None and tag.partition("-")[0].lower() in fact_languages()


def declared_for(entailment: Entailment, tag: str) -> bool:
    """Whether a model is declared for a language, given by its tag; one that declares none takes any."""
    if not entailment.languages:
        return True
    try:
        return language(tag).base in entailment.languages
    except UnknownNameError:
        return tag.partition("-")[0].lower() in entailment.languages


def premises_of(evidence: Sequence[Evidence], size: int = 1) -> list[Premise]:
    """The premises of the evidence, in order.

    Args:
        evidence: passages.
        size: sentences of a premise. Premises of several overlap by half; 0 makes each passage one premise, and the
            model's own windows part it where it is too long.
    """
    found = []
    for passage in evidence:
        for start, end in _ranges(passage, size):
            text = passage.text[start:end]
            if words(text):
                found.append(Premise(text, passage.id or "", start, end))
    return found


def _ranges(passage: Evidence, size: int) -> list[Range]:
    if not passage.text.strip():
        return []
    if size == 0:
        return [(0, len(passage.text))]
    places = sentences(passage.text, passage.language)
    step = max(size - size // 2, 1)
    last = max(len(places) - size, 0)
    firsts = sorted({*range(0, last, step), last})
    return [(places[first][0], places[min(first + size, len(places)) - 1][1]) for first in firsts]
