"""What a reader takes for one character (Unicode's extended grapheme clusters, UAX 29), in code points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from icu4py.breakers import CharacterBreaker

from veriglot.text.unicode_table import code_points
from veriglot.text.utf16 import segment_ends

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["clusters", "grapheme_ends"]


def grapheme_ends(text: str) -> NDArray[np.int64]:
    """Where each character ends, in code points, in order; the last one is the length of the text."""
    return segment_ends(CharacterBreaker, text, code_points(text), "root")


def clusters(text: str) -> list[tuple[int, int]]:
    """The characters that are made of more than one code point, half-open, in order.

    A letter with combining marks, a syllable of Devanagari, a flag, a family of emoji: a mark that begins or ends
    inside one of them would cut a character in two.
    """
    ends = grapheme_ends(text)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if ends.size else ends
    long = ends - starts > 1
    return [(start, end) for start, end in zip(starts[long].tolist(), ends[long].tolist(), strict=True)]
