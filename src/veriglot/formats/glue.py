"""Spans in which the text that was replaced and the one that replaced it stand glued together ("RomeParis").

Where a model injected errors and only the tags were taken out of what it wrote, both words stay. A detector can learn
to spot the seam instead of the error, so such spans are pointed out.
"""

from __future__ import annotations

import re

__all__ = ["looks_glued", "words_of"]

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


def looks_glued(span: str, known: frozenset[str]) -> bool:
    """Whether a marked text shows a seam: a lower bound, since not every seam shows.

    A seam is a capital inside a word, two years or two quotations in a row, letters run into digits, or a word that
    is two known ones put together.

    Args:
        span: the marked text.
        known: words of the evidence, in lower case.
    """
    return bool(_SEAM.search(span)) or any(_two_words(word.lower(), known) for word in _WORD.findall(span))


def _two_words(word: str, known: frozenset[str]) -> bool:
    if len(word) < 2 * _SHORTEST or word in known:
        return False
    return any(word[:cut] in known and word[cut:] in known for cut in range(_SHORTEST, len(word) - _SHORTEST + 1))


def words_of(text: str) -> frozenset[str]:
    """The words of a text in lower case, for `looks_glued`."""
    return frozenset(word.lower() for word in _WORD.findall(text))
