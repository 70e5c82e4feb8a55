"""Whole statements put between the sentences: invented, subjective, unverifiable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.build.perturbation.edits import Edit
from veriglot.build.perturbation.entities import exchanged, in_digits_of, values_differ
from veriglot.build.perturbation.phrases import phrases_of
from veriglot.build.perturbation.values import has_case

if TYPE_CHECKING:
    from random import Random

    from veriglot.build.perturbation.edits import Quotation
    from veriglot.build.perturbation.material import Material

__all__ = ["invented_error", "subjective_error", "unverifiable_error"]

_OPENED = 0.4  # of the judgements: with words before them that say whose they are
_HEDGED = 0.6  # of what cannot be verified: a sentence from elsewhere, said to be hearsay
_YEARS = (1650, 2015)
_NUMBERS = (3, 48)


def invented_error(quotation: Quotation, number: int, material: Material, rng: Random) -> Edit | None:
    """A sentence of another article, said of this one where it names what it is about, with a value changed."""
    found = material.other_sentence(number, rng)
    if found is None:
        return None
    other, sentence = found
    return _inserted(quotation, _made_up(sentence, other, number, material, rng), "sentence", material, rng)


def _made_up(sentence: str, other: int, number: int, material: Material, rng: Random) -> str:
    """The sentence with its subject's name replaced by this article's, and with one of its values exchanged."""
    theirs, ours = material.articles[other].title, material.articles[number].title
    values = [v for v in material.values(sentence, other) if sentence[v.start : v.end] != theirs]
    for value in rng.sample(values, len(values)):
        old = sentence[value.start : value.end]
        new = exchanged(old, value, other, material, rng)
        if new is not None and values_differ(old, new):
            sentence = sentence[: value.start] + new + sentence[value.end :]
            break
    if theirs and ours and sentence.startswith(theirs) and not sentence[len(theirs) : len(theirs) + 1].isalnum():
        sentence = ours + sentence[len(theirs) :]
    return sentence


def subjective_error(quotation: Quotation, _number: int, material: Material, rng: Random) -> Edit | None:
    """A sentence that says what somebody thinks; None in a language that none is known of."""
    phrases = phrases_of(material.language, quotation.text)
    if phrases is None:
        return None
    judgement = rng.choice(phrases.judgements)
    if phrases.openings and rng.random() < _OPENED:
        opening = rng.choice(phrases.openings)
        lowered = judgement[0].lower() + judgement[1:] if has_case(material.language) else judgement
        judgement = opening.replace("{}", lowered)
    return _inserted(quotation, judgement, "judgement", material, rng)


def unverifiable_error(quotation: Quotation, number: int, material: Material, rng: Random) -> Edit | None:
    """A claim that nobody can check, or hearsay; None in a language that none is known of."""
    phrases = phrases_of(material.language, quotation.text)
    if phrases is None:
        return None
    found = material.other_sentence(number, rng) if rng.random() < _HEDGED else None
    if found is None:
        year, some = (in_digits_of(quotation.text, rng.randint(*bounds)) for bounds in (_YEARS, _NUMBERS))
        claim = rng.choice(phrases.claims).replace("{year}", year).replace("{number}", some)
        return _inserted(quotation, claim, "claim", material, rng)
    said = _made_up(found[1], found[0], number, material, rng)
    return _inserted(quotation, rng.choice(phrases.hedges).replace("{sentence}", said), "hearsay", material, rng)


def _inserted(quotation: Quotation, statement: str, way: str, material: Material, rng: Random) -> Edit | None:
    """The statement after one of the sentences; None where it stands there, or no place is free."""
    if statement in quotation.text:
        return None
    taken = {edit.start for edit, _ in quotation.edits if edit.start == edit.end}
    ends = [end for _, end in quotation.places if end not in taken]
    if not ends:
        return None
    place = rng.choice(ends)
    return Edit(place, place, material.space + statement, way)
