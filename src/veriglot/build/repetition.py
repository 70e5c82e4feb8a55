"""Whether a response goes round in circles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["is_repetitive", "repeated_share"]

_N = 4
_FEWEST = 8  # word 4-grams: in less text, one phrase that is said twice would decide
_MOST = 0.2  # share of repeated 4-grams from which a response counts as repetitive
_TIMES = 5  # how often in a row the same one to four words make a loop, however short the text
_LETTER_RUN = re.compile(r"(\w)\1{19}|(\S{1,4})\2{24}")


def repeated_share(words: Sequence[str]) -> float:
    """Share of the word 4-grams that stood in the text before, 0 to 1 (Welleck et al. 2020, `seq-rep-4`)."""
    total = len(words) - _N + 1
    if total < 1:
        return 0.0
    return 1 - len({tuple(words[start : start + _N]) for start in range(total)}) / total


def is_repetitive(words: Sequence[str], text: str = "") -> bool:
    """Whether a response repeats itself: a fifth of its 4-grams, one to four words five times in a row, or a letter.

    Args:
        words: the words of the response, folded.
        text: the response itself, for loops that no word boundary parts.
    """
    if len(words) - _N + 1 >= _FEWEST and repeated_share(words) >= _MOST:
        return True
    if any(_loops(words, period) for period in range(1, _N + 1)):
        return True
    return _LETTER_RUN.search(text) is not None


def _loops(words: Sequence[str], period: int) -> bool:
    """Whether `period` words stand `_TIMES` times in a row."""
    same = 0
    for first, second in zip(words, words[period:], strict=False):
        same = same + 1 if first == second else 0
        if same >= period * (_TIMES - 1):
            return True
    return False
