"""What kind of character each code point is, and its script, as arrays; texts as arrays of code points.

The table is `unicode_ranges.json`, written by `unicode_build`. It is unpacked on first use (about 2 ms, 2 MB).
"""

from __future__ import annotations

from enum import IntFlag
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Kind", "code_points", "kind_table", "script_names", "script_table", "text_of"]

CODE_SPACE = 0x110000


class Kind(IntFlag):
    """What a code point is, as bits of one byte.

    LETTER: letters of any script, letter numbers, and squared words such as the sign for square kilometres.
    DIGIT: decimal digits of any script, superscripts, fractions, enclosed numbers.
    MARK: combining marks and the two joiners, which belong to the letter before them.
    EDGE: format characters (bidirectional marks, soft hyphen) and connectors such as the underscore: they may stand
        inside a word and never at its edge.
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
    data = files(__package__).joinpath("unicode_ranges.json").read_bytes()
    return msgspec.json.decode(data, type=_Ranges)


def _unpacked(values: list[int]) -> NDArray[np.uint8]:
    lengths = np.diff(np.array([*_ranges().starts, CODE_SPACE]))
    table = np.repeat(np.array(values, np.uint8), lengths)
    table.flags.writeable = False
    return table


@cache
def kind_table() -> NDArray[np.uint8]:
    """`Kind` bits of every code point, shape (0x110000,)."""
    return _unpacked(_ranges().kind)


@cache
def script_table() -> NDArray[np.uint8]:
    """The script of every code point as an index into `script_names()`, shape (0x110000,)."""
    return _unpacked(_ranges().script)


@cache
def script_names() -> tuple[str, ...]:
    """ISO 15924 codes in the order of the script table's numbers; the first three are Zzzz, Zyyy and Zinh."""
    return tuple(_ranges().scripts)


def code_points(text: str) -> NDArray[np.uint32]:
    """The code points of a text, shape (len(text),). Lone surrogates are kept as what they are."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def text_of(codes: NDArray[np.uint32]) -> str:
    """The text of an array of code points; the inverse of `code_points`."""
    return codes.astype("<u4", copy=False).tobytes().decode("utf-32-le", "surrogatepass")
