"""Contradictory errors: a sentence of the evidence with a negation put in, or taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.build.perturbation.edits import Edit
from veriglot.build.perturbation.forms import cased, occurrences
from veriglot.build.perturbation.phrases import phrases_of
from veriglot.text import words

if TYPE_CHECKING:
    from random import Random

    from veriglot.build.perturbation.edits import Quotation
    from veriglot.build.perturbation.material import Material
    from veriglot.build.perturbation.phrases import Phrases

__all__ = ["contradictory_error", "negated"]


def contradictory_error(quotation: Quotation, _number: int, material: Material, rng: Random) -> Edit | None:
    """A whole sentence with its negation in place of it; None where no sentence can be negated."""
    phrases = phrases_of(material.language, quotation.text)
    if phrases is None:
        return None
    for start, end in quotation.shuffled(rng):
        if not quotation.untouched(start, end):
            continue
        found = negated(quotation.text[start:end], material.language, phrases)
        if found is not None:
            return Edit(start, end, *found)
    return None


def negated(sentence: str, language: str, phrases: Phrases) -> tuple[str, str] | None:
    """The sentence with one negation more or less, and which (`negated`, `affirmed`); None if neither can be.

    A negation that stands there is taken out; one is put in only where no other stands there.
    """
    bounds = words(sentence, language)
    for form, negation in sorted(phrases.negations, key=lambda pair: -len(pair[1])):
        for start, end in occurrences(sentence, bounds, negation):
            return _replaced(sentence, start, end, form), "affirmed"
    if any(sentence[start:end].casefold() in phrases.negators for start, end in bounds):
        return None
    for form, negation in phrases.negations:
        for start, end in occurrences(sentence, bounds, form):
            if _may_be_negated(sentence, bounds, start, end, phrases):
                return _replaced(sentence, start, end, negation), "negated"
    return _ending_changed(sentence, bounds, phrases)


def _may_be_negated(sentence: str, bounds: list[tuple[int, int]], start: int, end: int, phrases: Phrases) -> bool:
    before = next((sentence[s:e].casefold() for s, e in reversed(bounds) if e <= start), "")
    after = next((sentence[s:e].casefold() for s, e in bounds if s >= end), "")
    if before in phrases.not_after or after in phrases.not_before:
        return False
    return not phrases.inside or (sentence[end : end + 1] == " " and sentence[end + 1 : end + 2].isalnum())


def _ending_changed(sentence: str, bounds: list[tuple[int, int]], phrases: Phrases) -> tuple[str, str] | None:
    """The sentence with another ending, where endings negate."""
    if not bounds:
        return None
    end = bounds[-1][1]
    for form, negation in phrases.endings:
        for old, new, way in ((negation, form, "affirmed"), (form, negation, "negated")):
            if sentence[:end].endswith(old) and len(old) < end:
                return sentence[: end - len(old)] + new + sentence[end:], way
    return None


def _replaced(sentence: str, start: int, end: int, form: str) -> str:
    return sentence[:start] + cased(form, sentence[start:end]) + sentence[end:]
