"""Noise in texts: glued words ("RomeParis"), repetition loops, and characters unknown to a tokenizer.

If a model injected errors with tags and only the tags were removed, both the old and the new word remain. A detector
could learn to find the seam instead of the error, so such spans are reported.
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
_MIN_LETTERS = 3  # of each word of a glued one


def looks_glued(span: str, evidence: str = "") -> bool:
    """Whether a span has a visible seam of glued words; not every seam is visible.

    A seam is a capital inside a word, two years or two quotations without a space, digits glued to letters, or a word
    made of two words of the evidence.
    """
    known = _words_of(evidence)
    if _SEAM.search(span):
        return True
    words = {word.lower() for word in _WORD.findall(span)} - known
    cuts = ((word, cut) for word in words for cut in range(_MIN_LETTERS, len(word) - _MIN_LETTERS + 1))
    return any(word[:cut] in known and word[cut:] in known for word, cut in cuts)


@lru_cache(4)
def _words_of(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))


# Text broken by machine translation or a tokenizer: repetition loops, and unknown characters.


_WINDOW = 12  # code points that are compared
_REACH = 150  # most code points between repetitions
_LOOPING = 0.3  # least share of repetitions in a loop
_UNKNOWN = "\u2047"  # the output of some tokenizers for characters outside their vocabulary
_UNKNOWN_PER_CODE_POINT = 0.01


def looping_share(text: str) -> float:
    """The share of `text` (0 to 1) that repeats text of the 150 code points before.

    An offset counts as repeated if the 12 code points from there also begin at one of the 150 offsets before. Fluent
    text in any language is below 0.1, a translation model in a loop above 0.3. Runs in linear time.
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
    """Why a reference is unusable: `looping` or `unknown_characters`; None if it looks fine."""
    if text.count(_UNKNOWN) > _UNKNOWN_PER_CODE_POINT * len(text):
        return "unknown_characters"
    return "looping" if looping_share(text) >= _LOOPING else None
