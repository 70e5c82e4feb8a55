"""Relation errors: a form gives way to its opposite, or two values change places."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from veriglot.build.perturbation.edits import Edit
from veriglot.build.perturbation.entities import values_differ
from veriglot.build.perturbation.forms import cased, differing_words, occurrences
from veriglot.build.perturbation.phrases import phrases_of
from veriglot.text import words
from veriglot.text.fact_rules import rules_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from veriglot.build.perturbation.edits import Quotation
    from veriglot.build.perturbation.material import Material

    Maker = Callable[[Quotation, int, Material, Random], Edit | None]

__all__ = ["relation_error"]

_TURNED = 0.5  # of the errors: values in each other's place before opposites are tried
_FARTHEST = 60  # code points between two values that change places: what stands there is part of the error
_SENTENCE_END = re.compile(r"[.!?]\s")
_LEAST_BETWEEN = 2  # words between two values; numbers do with a preposition: `from 1914 to 1918`


def relation_error(quotation: Quotation, number: int, material: Material, rng: Random) -> Edit | None:
    """A form turned into its opposite, or two values in each other's place; None where neither fits.

    In a language whose opposites are not known, a word gives way to another one of its ending.
    """
    known = phrases_of(material.language, quotation.text) is not None
    ways: list[Maker] = [_opposite if known else _other_word, _turned]
    if rng.random() < _TURNED:
        ways.reverse()
    return next((edit for way in ways if (edit := way(quotation, number, material, rng)) is not None), None)


def _opposite(quotation: Quotation, _number: int, material: Material, rng: Random) -> Edit | None:
    phrases = phrases_of(material.language, quotation.text)
    if phrases is None:
        return None
    text = quotation.text
    bounds = words(text, material.language)
    found: list[Edit] = []
    for form, opposite in phrases.opposites:
        for start, end in occurrences(text, bounds, form):
            if quotation.untouched(start, end) and all(end <= one.start or one.end <= start for one in found):
                first, last, put = differing_words(text[start:end], cased(opposite, text[start:end]))
                found.append(Edit(start + first, start + last, put, "opposite"))
    return rng.choice(found) if found else None


def _turned(quotation: Quotation, number: int, material: Material, rng: Random) -> Edit | None:
    """Two values of one shape in each other's place, as one error from the first to the end of the second."""
    text = quotation.text
    for start, end in quotation.shuffled(rng):
        values = material.values(text[start:end], number)
        pairs = [
            (one, other)
            for place, one in enumerate(values)
            for other in values[place + 1 :]
            if one[2:] == other[2:]  # kind and shape, so that endings still agree
        ]
        for one, other in rng.sample(pairs, len(pairs)):
            first, last = text[start + one.start : start + one.end], text[start + other.start : start + other.end]
            between = text[start + one.end : start + other.start]
            whole = start + one.start, start + other.end
            if not quotation.untouched(*whole) or not values_differ(first, last):
                continue
            if _relates(between, one.kind == "name", material.language):
                return Edit(*whole, last + between + first, "turned")
    return None


def _relates(between: str, names: bool, language: str) -> bool:
    """Whether what stands between two values makes their order matter: more than a comma or an `and`.

    `Ada and Bea` says the same as `Bea and Ada`.
    """
    if len(between) > _FARTHEST or _SENTENCE_END.search(between) or any(mark in between for mark in ",،，、;；()（）"):
        return False
    rules = rules_of(language)
    joining = rules.perhaps if rules is not None else frozenset[str]()
    leading = rules.before if rules is not None else frozenset[str]()
    said = [between[s:e].casefold() for s, e in words(between, language)]
    if any(word in joining for word in said):
        return False
    return len(said) >= _LEAST_BETWEEN or (not names and len(said) == 1 and said[0] in leading)


def _other_word(quotation: Quotation, number: int, material: Material, rng: Random) -> Edit | None:
    text = quotation.text
    found = [(s, e) for s, e in material.middling(text) if quotation.untouched(s, e)]
    for start, end in rng.sample(found, min(len(found), 12)):
        other = material.other_word(text[start:end], number, rng)
        if other is not None:
            return Edit(start, end, other, "word")
    return None
