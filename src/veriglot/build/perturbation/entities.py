"""Entity errors: a name, number or date gives way to another one of its kind."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from veriglot.build.perturbation.edits import Edit
from veriglot.text import fold, words

if TYPE_CHECKING:
    from random import Random

    from veriglot.build.perturbation.edits import Quotation
    from veriglot.build.perturbation.material import Material
    from veriglot.build.perturbation.values import Value, ValueKind

__all__ = ["altered_number", "entity_error", "exchanged", "in_digits_of", "values_differ"]

_KINDS: tuple[ValueKind, ...] = ("name", "name", "number", "date")
_NEAR = 0.35  # of the exchanges: with a value of the same article, which is harder to see
_REWRITTEN = 0.6  # of the numbers: other digits, instead of another article's number
_EARLIEST_YEAR, _LATEST_YEAR = 1000, 2025
_APART = 60  # years


def entity_error(quotation: Quotation, number: int, material: Material, rng: Random) -> Edit | None:
    """One value of the quotation exchanged within its kind; None where it holds none that can be."""
    found = [
        (start + value.start, start + value.end, value)
        for start, end in quotation.places
        for value in material.values(quotation.text[start:end], number)
        if quotation.untouched(start + value.start, start + value.end)
    ]
    kinds = rng.sample(_KINDS, len(_KINDS))  # so that names, which are many, do not push the others out
    for start, end, value in sorted(rng.sample(found, len(found)), key=lambda one: kinds.index(one[2].kind)):
        old = quotation.text[start:end]
        new = exchanged(old, value, number, material, rng)
        if new is not None and values_differ(old, new) and new.startswith("0") <= old.startswith("0"):
            return Edit(start, end, new, value.kind)
    return None


def exchanged(old: str, value: Value, number: int, material: Material, rng: Random) -> str | None:
    """Another value of the same kind and shape: of the same article, of another one, or a number with other digits."""
    if value.kind == "number" and rng.random() < _REWRITTEN:
        return altered_number(old, rng)
    if rng.random() < _NEAR:
        near = _near(old, value, number, material, rng)
        if near is not None:
            return near
    found = material.other_value(value, number, rng)
    return altered_number(old, rng) if found is None and value.kind == "number" else found


def _near(old: str, value: Value, number: int, material: Material, rng: Random) -> str | None:
    """A value of the same kind that stands elsewhere in the article."""
    listed = [one for some in material.sentences(number) for one in some if old not in one]
    for sentence in rng.sample(listed, min(len(listed), 6)):
        found = [sentence[v.start : v.end] for v in material.values(sentence, number) if v[2:] == value[2:]]
        if found:
            return rng.choice(found)
    return None


def altered_number(number: str, rng: Random) -> str:
    """The number with other digits, as many and of the same script; a year stays one."""
    digits = [char for char in number if char.isdecimal()]
    if len(digits) == 4 and number[:4].isdecimal() and _EARLIEST_YEAR <= int(number[:4]) <= _LATEST_YEAR:
        year = int(number[:4])
        years = range(max(_EARLIEST_YEAR, year - _APART), min(_LATEST_YEAR, year + _APART) + 1)
        return _written(str(rng.choice([one for one in years if one != year])), number[:4]) + number[4:]
    changed = number
    while changed == number:
        changed = "".join(
            _digit(rng.randint(1 if place == 0 else 0, 9), char) if char.isdecimal() and rng.random() < 0.7 else char
            for place, char in enumerate(number)
        )
    return changed


def _written(digits: str, like: str) -> str:
    """ASCII digits in the script of others, as many."""
    return "".join(_digit(int(digit), char) for digit, char in zip(digits, like, strict=True))


def in_digits_of(text: str, number: int) -> str:
    """A number in the digits that a text is written with: ASCII, unless others stand there."""
    like = next((char for char in text if char.isdecimal()), "0")
    return "".join(_digit(int(digit), like) for digit in str(number))


def _digit(value: int, like: str) -> str:
    """A digit in the script of another."""
    return chr(ord(like) - unicodedata.decimal(like) + value)


def values_differ(old: str, new: str) -> bool:
    """Whether neither says what the other does: `Filangieri` may stand for `Carlo Filangieri`, `05` for `5`."""
    before, after = fold(old), fold(new)
    one = {before[s:e].lstrip("0") for s, e in words(before)}
    other = {after[s:e].lstrip("0") for s, e in words(after)}
    return not (one <= other or other <= one)
