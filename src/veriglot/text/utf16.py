"""ICU's break iterators, whose offsets count UTF-16 units, brought to code points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.text.unicode_table import text_of

if TYPE_CHECKING:
    from icu4py.breakers import BaseBreaker
    from numpy.typing import NDArray

__all__ = ["segment_ends"]


def segment_ends(breaker: type[BaseBreaker], text: str, codes: NDArray[np.uint32], locale: str) -> NDArray[np.int64]:
    """Where each segment of `text` ends, in code points, in order; the segments cover the text.

    A lone surrogate, which ICU cannot be given, is shown to it as a replacement character.
    """
    try:
        segments = breaker(text, locale).segments()
    except UnicodeEncodeError:
        surrogate = (codes >= 0xD800) & (codes < 0xE000)
        segments = breaker(text_of(np.where(surrogate, np.uint32(0xFFFD), codes)), locale).segments()
    ends = np.array([end for _, end in segments], np.int64)
    astral = codes > 0xFFFF
    if not astral.any():
        return ends
    in_utf16 = np.arange(1, len(codes) + 1) + np.cumsum(astral)
    return np.searchsorted(in_utf16, ends) + 1
