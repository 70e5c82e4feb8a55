"""Unicode properties as arrays: kinds and scripts of code points, and transliteration of letters.

`tools/build_unicode_tables.py` writes `unicode_ranges.json`, which is unpacked on first use (about 2 ms, 2 MB).
"""

from __future__ import annotations

import re
import unicodedata
from enum import IntFlag
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.plugins import read_package_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.arrays import UInt8s, UInt32s

__all__ = [
    "Kind",
    "alphabet_table",
    "code_points",
    "kind_table",
    "main_script",
    "script_names",
    "script_of",
    "script_shares",
    "script_table",
    "text_of",
    "trimmed",
    "without_surrogates",
]


class Kind(IntFlag):
    """Properties of a code point, as bits of one byte.

    LETTER: letters of any script, letter numbers, and squared words such as the sign for square kilometres.
    DIGIT: decimal digits of any script, superscripts, fractions, enclosed numbers.
    MARK: combining marks and the two joiners, which belong to the letter before them.
    EDGE: format characters (bidirectional marks, soft hyphen) and connectors such as the underscore: they may occur
        inside a word, but not at its ends.
    SPACE: Unicode White_Space. UPPER, LOWER: case; title case counts as upper. RTL: strong right-to-left.
    """

    LETTER = 1
    DIGIT = 2
    MARK = 4
    EDGE = 8
    SPACE = 16
    UPPER = 32
    LOWER = 64
    RTL = 128


class _Ranges(msgspec.Struct):
    scripts: list[str]
    starts: list[int]
    kind: list[int]
    script: list[int]


@cache
def _ranges() -> _Ranges:
    return read_package_data(__package__, "unicode_ranges.json", _Ranges)


def _unpacked(values: list[int]) -> UInt8s:
    lengths = np.diff(np.array([*_ranges().starts, 0x110000]))
    table = np.repeat(np.array(values, np.uint8), lengths)
    table.flags.writeable = False
    return table


@cache
def kind_table() -> UInt8s:
    """`Kind` bits of every code point, shape (0x110000,)."""
    return _unpacked(_ranges().kind)


@cache
def script_table() -> UInt8s:
    """The script of every code point as an index into `script_names()`, shape (0x110000,)."""
    return _unpacked(_ranges().script)


@cache
def script_names() -> tuple[str, ...]:
    """ISO 15924 codes in the order of the script table's numbers; the first three are Zzzz, Zyyy and Zinh."""
    return tuple(_ranges().scripts)


def code_points(text: str) -> UInt32s:
    """The code points of a text, shape (len(text),). Lone surrogates stay as they are."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def text_of(codes: UInt32s) -> str:
    """The text of an array of code points; the inverse of `code_points`."""
    return codes.astype("<u4", copy=False).tobytes().decode("utf-32-le", "surrogatepass")


# Scripts of code points and texts, by ISO 15924 code.


_SHARED = 3  # the first three are Zzzz, Zyyy and Zinh: unknown, common and inherited


def script_shares(text: str) -> dict[str, float]:
    """The share of each script among the letters with a script of their own, largest first; they sum to 1."""
    codes = code_points(text)
    of_letters = script_table()[codes][kind_table()[codes] & Kind.LETTER != 0]
    counts = np.bincount(of_letters, minlength=_SHARED)
    counts[:_SHARED] = 0
    total = int(counts.sum())
    numbers = np.flatnonzero(counts).tolist()
    names = script_names()
    return {names[i]: int(counts[i]) / total for i in sorted(numbers, key=lambda i: (-int(counts[i]), i))}


@lru_cache(16)  # several callers use the texts of a sample
def script_of(text: str) -> str | None:
    """The script of most letters of the text (`Latn`, `Cyrl`, `Hani` ...), or None if it has no letters.

    Kana and Han count separately: Japanese text may be `Hira` or `Hani`.
    """
    return next(iter(script_shares(text)), None)


_SURROGATE = re.compile("[\ud800-\udfff]")


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A half-open range without leading and trailing white space; empty if there is nothing else."""
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    return start, start + len(inside.strip())


def without_surrogates(text: str) -> str:
    """The text with surrogates, which UTF-8 cannot encode, replaced by the replacement character; the same length."""
    return _SURROGATE.sub("\ufffd", text)


# Transliteration of Cyrillic and Greek to Latin, one letter for one letter, so that offsets stay.
#
# It is used to compare Serbian in Latin letters with Cyrillic pages, or Russian names with English ones. It is rough: a
# word in both scripts only needs to share most letters. It is not used if both texts are in one script.


_SIZE = 0x1F00  # Latin, Greek and Cyrillic all lie below
_ALPHABETS = frozenset({"Latn", "Cyrl", "Grek"})
_SCRIPT_SAMPLE = 2000  # code points of a text that determine its script


@cache
def _latin_letters() -> UInt32s:
    """Mapping by code point: Latin letters without accents, Cyrillic and Greek letters transliterated."""
    table = np.arange(_SIZE, dtype=np.uint32)
    for code in range(0xC0, 0x250):
        base = unicodedata.normalize("NFD", chr(code))[0]
        if base.isascii():
            table[code] = ord(base)
    for letter, latin in read_package_data(__package__, "latin_letters.json", dict[str, str]).items():
        table[ord(letter)] = ord(latin)
    return table


def main_script(*texts: str) -> str | None:
    """The script of most letters in the first 2000 code points of the first three texts."""
    return script_of(" ".join(text[:_SCRIPT_SAMPLE] for text in texts[:3]))


def alphabet_table(response: str, passages: Sequence[str]) -> UInt32s | None:
    """The transliteration table for response and evidence; None if both are in one script or in another alphabet."""
    of_response, of_evidence = main_script(response), main_script(*passages)
    return _latin_letters() if of_response != of_evidence and {of_response, of_evidence} <= _ALPHABETS else None
