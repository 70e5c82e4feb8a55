"""Names across scripts: words written in Latin letters and reduced to their consonants, so that spellings meet.

`Luther`, `Лютер`, `لوثر` and `लूथर` all become `ltl`. Vowels go because half of the world's scripts leave them out, and
sounds that transliteration confuses are made one (`consonants.json`). So rough a form meets by chance where it is
short; a match of short forms counts for less.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from anyascii import anyascii
from rapidfuzz import fuzz
from rapidfuzz.process import cdist

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["likeness", "skeleton"]

_NO_LETTER = re.compile("[^a-z]")
_INNER_VOWEL = re.compile("(?<=.)[aeiouy]")
_DOUBLED = re.compile(r"(.)\1+")
_VOWELS = frozenset("aeiouy")
_FULL = 4  # consonants from which on a match counts in full
_LEAST = 2  # consonants below which nothing is compared
_CUT = 60.0  # per cent of likeness below which two forms have nothing to do with each other


@cache
def _confused() -> list[tuple[str, str]]:
    """Letters and groups with the one that stands for them, in the order of replacement."""
    table = msgspec.json.decode(files(__package__).joinpath("consonants.json").read_bytes(), type=list[tuple[str, str]])
    return [(old, new) for old, new in table]


@lru_cache(maxsize=1 << 17)
def skeleton(word: str) -> str:
    """The consonants of a word of any script in Latin letters, and `a` for a vowel that it begins with."""
    letters = _NO_LETTER.sub("", anyascii(word).lower())
    for old, new in _confused():
        letters = letters.replace(old, new)
    letters = _INNER_VOWEL.sub("", letters)
    if letters and letters[0] in _VOWELS:
        letters = "a" + letters[1:]
    return _DOUBLED.sub(r"\1", letters)


def likeness(ours: Sequence[str], theirs: Sequence[str]) -> NDArray[np.float32]:
    """How alike the skeletons of words are, 0 to 1, shape (len(ours), len(theirs)); 0 for short or unlike ones."""
    found = np.zeros((len(ours), len(theirs)), np.float32)
    first, second = [skeleton(word) for word in ours], [skeleton(word) for word in theirs]
    rows = np.array([i for i, form in enumerate(first) if len(form) >= _LEAST], np.int64)
    columns = np.array([i for i, form in enumerate(second) if len(form) >= _LEAST], np.int64)
    if len(rows) and len(columns):
        alike = cdist(
            [first[i] for i in rows],
            [second[i] for i in columns],
            scorer=fuzz.ratio,
            score_cutoff=_CUT,
            dtype=np.float32,
            workers=1,
        )
        trusted = np.minimum(_trust(first, rows)[:, None], _trust(second, columns)[None])
        found[np.ix_(rows, columns)] = alike / 100 * trusted
    return found


def _trust(forms: Sequence[str], chosen: NDArray[np.int64]) -> NDArray[np.float32]:
    """What a match of each of the chosen forms counts for, by its length."""
    return np.array([min(1.0, len(forms[i]) / _FULL) for i in chosen.tolist()], np.float32)
