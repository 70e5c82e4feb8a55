"""Whether a sentence says by name whom it is about, in languages that decline names and in those without spaces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from veriglot.text import fold, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["names_person"]

_WITHOUT_SPACES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+")  # of such a name, the family's or the given part may stand alone
_SHORTEST = 3  # letters of a part of a name: shorter ones are initials and particles
_PREFIX = 4  # letters that an inflected form has in common with the name
_ENDING = 2  # letters that an inflection takes away: Толстой, Толстого
_PAIR = 2


def names_person(sentence: str, names: Iterable[str], language: str) -> bool:
    """Whether one of the names stands in a sentence, or a part of one: the family name, in whatever case.

    Args:
        sentence: one sentence.
        names: what the person may be called.
        language: BCP 47 tag of the sentence.
    """
    folded = fold(sentence)
    said = [folded[start:end] for start, end in words(folded, language)]
    return any(_stands(part, folded, said) for name in names for part in _parts(name))


def _parts(name: str) -> Iterator[str]:
    """The parts of a name that can stand for it; where there is case, `von` and `de la` are none."""
    cased = any(char.isupper() for char in name)
    for part in re.split(r"[\W\d_]+", name):
        least = _PAIR if _WITHOUT_SPACES.search(part) else _SHORTEST
        if len(part) >= least and (not cased or not part[0].islower()):
            yield fold(part)


def _stands(part: str, folded: str, said: list[str]) -> bool:
    if _WITHOUT_SPACES.search(part):
        pairs = (part[at : at + _PAIR] for at in range(len(part) - 1)) if _HAN.fullmatch(part) else ()
        return part in folded or any(pair in folded for pair in pairs)
    shared = max(_PREFIX, len(part) - _ENDING)
    for word in said:
        if word == part or (len(part) >= _PREFIX and (part in word or word[:shared] == part[:shared])):
            return True
    return False
