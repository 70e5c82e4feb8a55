"""Scripts of code points and texts, by ISO 15924 code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from veriglot.text.unicode_table import Kind, code_points, kind_table, script_names, script_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["direction_of", "script_of", "script_shares", "scripts"]

_SHARED = 3  # the first three numbers are Zzzz, Zyyy and Zinh: no script of their own


def scripts(text: str) -> NDArray[np.uint8]:
    """The script of every code point as an index into `unicode_table.script_names()`, shape (len(text),)."""
    return script_table()[code_points(text)]


def script_shares(text: str) -> dict[str, float]:
    """The share of each script among the letters of the text that have a script, largest first; they sum to 1."""
    codes = code_points(text)
    of_letters = script_table()[codes][kind_table()[codes] & Kind.LETTER != 0]
    counts = np.bincount(of_letters, minlength=_SHARED)
    counts[:_SHARED] = 0
    total = int(counts.sum())
    found = np.flatnonzero(counts).tolist()
    names = script_names()
    return {names[i]: int(counts[i]) / total for i in sorted(found, key=lambda i: (-int(counts[i]), i))}


def script_of(text: str) -> str | None:
    """The script that most letters of the text are in (`Latn`, `Cyrl`, `Hani` ...), or None where it has no letter.

    Kana and Han count as themselves: Japanese text may be `Hira` or `Hani`.
    """
    return next(iter(script_shares(text)), None)


def direction_of(text: str) -> Literal["ltr", "rtl"] | None:
    """The direction that most letters of the text are written in, or None where it has no letter."""
    kinds = kind_table()[code_points(text)]
    letters = kinds[kinds & Kind.LETTER != 0]
    if not letters.size:
        return None
    return "rtl" if 2 * int(np.count_nonzero(letters & Kind.RTL)) > letters.size else "ltr"
