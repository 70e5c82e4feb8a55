"""Small repairs between Python's texts and tokenizers, that move no code point."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["without_space", "without_surrogates"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """`text` with the replacement character for halves of UTF-16 pairs, which UTF-8 cannot write; as long as before."""
    return _SURROGATE.sub("\ufffd", text)


def without_space(text: str, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """`bounds`, shape (t, 2), changed in place: without the white space that tokens begin with."""
    for token, (start, end) in enumerate(bounds.tolist()):
        while start < end and text[start].isspace():
            start += 1
        bounds[token, 0] = start
    return bounds
