"""`fold`: letters that differ only in how they are written become one, and no offset moves.

The table is `fold_pairs.json`, written by `unicode_build` from Unicode's case folding and compatibility forms, plus
the letters that writers of one language interchange, plus OpenCC's traditional to simplified Chinese characters.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.text.unicode_table import code_points, text_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["fold", "fold_codes"]

_TABLE_SIZE = 0x30000  # planes 0 to 2: nothing folds beyond them


class _Pairs(msgspec.Struct):
    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")


@cache
def _table() -> NDArray[np.uint32]:
    pairs = msgspec.json.decode(files(__package__).joinpath("fold_pairs.json").read_bytes(), type=_Pairs)
    table = np.arange(_TABLE_SIZE, dtype=np.uint32)
    table[code_points(pairs.source)] = code_points(pairs.target)
    return table


def fold_codes(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """`fold` on an array of code points; same shape."""
    if codes.size and int(codes.max()) >= _TABLE_SIZE:
        low = codes < _TABLE_SIZE
        folded = codes.copy()
        folded[low] = _table()[codes[low]]
        return folded
    return _table()[codes]


def fold(text: str) -> str:
    """The text with case, width, digits and interchangeable letter forms made one; always of the same length.

    Folded, code point by code point: case (Turkish dotted and dotless i meet at `i`); full width, half width and
    other compatibility forms of one code point; digits of every script and superscripts to ASCII by value; Arabic
    alef, yeh, kaf and heh forms; Hebrew final letters; Cyrillic yo; apostrophes, quotation marks, dashes, spaces and
    sentence marks to ASCII; traditional Chinese characters to simplified ones. Not folded: accents, marks, and
    whatever would need more or fewer code points (`normalise` does that). Folding twice changes nothing more.
    """
    if text.isascii():
        return text.lower()
    return text_of(fold_codes(code_points(text)))
