"""Noise in texts: glued words ("RomeParis"), loops, and characters that a tokenizer did not know.

Where a model injected errors and only the tags were taken out of what it wrote, both words stay. A detector can learn
to spot the seam instead of the error, so such spans are pointed out.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["garbled", "looks_glued"]


_LOWER = "a-z\u00df-\u00f6\u00f8-\u00ff\u0430-\u045f"
_UPPER = "A-Z\u00c0-\u00d6\u00d8-\u00de\u0400-\u042f"
_SEAM = re.compile(
    rf"[{_LOWER}][{_UPPER}][{_LOWER}{_UPPER}]"  # RomeParis
    r"|\d{8}"  # 20142015
    r"|[\"\u201d\u00bb][\"\u201c\u00ab]|\)\("  # "a""b", (a)(b)
    rf"|[{_LOWER}]\d\d|\d[{_LOWER}]{{3}}"  # in 2014seven
)
_WORD = re.compile(r"[^\W\d_]+")
_SHORTEST = 3


def looks_glued(span: str, evidence: str = "") -> bool:
    """Whether a marked text shows a seam: a lower bound, since not every seam shows.

    A seam is a capital inside a word, two years or two quotations in a row, letters run into digits, or a word that
    is two words of the evidence put together.
    """
    known = _words_of(evidence)
    if _SEAM.search(span):
        return True
    words = {word.lower() for word in _WORD.findall(span)} - known
    cuts = ((word, cut) for word in words for cut in range(_SHORTEST, len(word) - _SHORTEST + 1))
    return any(word[:cut] in known and word[cut:] in known for word, cut in cuts)


@lru_cache(4)
def _words_of(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))


# Text that machine translation or a tokenizer broke: loops, and characters it did not know.


_WINDOW = 12
_REACH = 150
_LOOPING = 0.3
_UNKNOWN = "\u2047"  # what some tokenizers print for a character outside their vocabulary
_UNKNOWN_PER_CODE_POINT = 0.01


def looping_share(text: str) -> float:
    """The share of `text` (0 to 1, in code points) that repeats what stood within the 150 code points before it.

    A place repeats if the 12 code points that start there also start at one of the 150 places before. Fluent text
    in any language stays below 0.1; a translation model in a loop is above 0.3. Time is linear.
    """
    last: dict[str, int] = {}
    repeated = 0
    places = len(text) - _WINDOW + 1
    for start in range(max(0, places)):
        window = text[start : start + _WINDOW]
        before = last.get(window)
        repeated += before is not None and start - before <= _REACH
        last[window] = start
    return repeated / places if places > 0 else 0.0


def garbled(text: str) -> str | None:
    """Why a reference is unusable: `looping`, `unknown_characters`, or None where it looks sound."""
    if text.count(_UNKNOWN) > _UNKNOWN_PER_CODE_POINT * len(text):
        return "unknown_characters"
    return "looping" if looping_share(text) >= _LOOPING else None
