"""Evidence in another alphabet: Cyrillic and Greek letters by their sound in Latin ones, one letter for one.

Serbian answers in Latin are held against Cyrillic pages, Russian names against English ones. The tables give one
letter for each letter (no offset moves), and so are rough: what counts is that the same word written both ways
shares most of its letters. Texts in one script are never touched.
"""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.text.script import script_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["SAMPLE", "beginning_of", "main_script", "shared_alphabet"]

_SIZE = 0x1F00  # Latin, Greek and Cyrillic all lie below
_ALPHABETS = frozenset({"Latn", "Cyrl", "Grek"})
SAMPLE = 2000  # code points of a text that its script is judged by


@cache
def _latin_letters() -> NDArray[np.uint32]:
    """Code point to code point: accents dropped from Latin letters, Cyrillic and Greek letters by sound."""
    table = np.arange(_SIZE, dtype=np.uint32)
    for code in range(0xC0, 0x250):
        base = unicodedata.normalize("NFD", chr(code))[0]
        if base.isascii():
            table[code] = ord(base)
    pairs = msgspec.json.decode(files(__package__).joinpath("latin_letters.json").read_bytes(), type=dict[str, str])
    for letter, latin in pairs.items():
        table[ord(letter)] = ord(latin)
    return table


def beginning_of(passages: Sequence[str]) -> str:
    """As much of the evidence as its script is judged by."""
    return " ".join(passage[:SAMPLE] for passage in passages[:3])


@lru_cache(maxsize=16)
def main_script(text: str) -> str | None:
    """`script_of`, which one sample asks several times of the same texts."""
    return script_of(text)


def shared_alphabet(
    response: str, passages: Sequence[str]
) -> tuple[NDArray[np.uint32] | None, NDArray[np.uint32] | None]:
    """The letter tables for response and evidence: None and None where they are in one script already."""
    ours = main_script(response[:SAMPLE])
    theirs = main_script(beginning_of(passages))
    if ours == theirs or ours not in _ALPHABETS or theirs not in _ALPHABETS:
        return None, None
    return _latin_letters(), _latin_letters()
