"""Seams: places where an edit left old and new text run together ("RomeParis", "in 1950.He").

The published silver sets are full of them, and a detector that learns from them learns to see the seam. Unlike
`formats.glue`, which has nothing but the marked text, this knows what stood there before.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from veriglot.text import fold, words
from veriglot.text.unicode_table import Kind, code_points, kind_table

if TYPE_CHECKING:
    from veriglot.build.injection.changes import Change

__all__ = ["edge_seam", "inner_seam", "word_edges"]

_UNSPACED = re.compile(r"[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_CLOSING = re.compile(r"[.!?…,;:\u0964\u06d4\u061f\u060c\u061b]")
_SHORTEST = 2  # code points of the old word: shorter ones begin or end any other
_REST = 4  # code points beside the old word, where they are no known word: fewer may be an ending


def word_edges(text: str, language: str) -> tuple[frozenset[int], list[tuple[int, int]]]:
    """The places inside words of a text, and the words."""
    bounds = words(text, language)
    return frozenset(place for start, end in bounds for place in range(start + 1, end)), bounds


def inner_seam(old: str, new: str, known: frozenset[str], *, spaced: bool) -> str:
    """The part of `new` that is a word of `old` with another one run into it; empty where there is none.

    Such a word is not one that is known, begins or ends with a whole word of `old`, and the rest begins with a
    capital or a digit where a small letter stood before, or is a known word, or has at least 4 letters. Where words
    are written without spaces, `new` may not keep all of `old` at its beginning or its end.

    Args:
        old: what was replaced.
        new: what replaced it.
        known: folded words of the original and of the evidence.
        spaced: whether the language sets spaces between words.
    """
    if not spaced:
        kept, after = fold(old).strip(), fold(new).strip()
        whole = len(kept) >= _SHORTEST and kept != after and (after.startswith(kept) or after.endswith(kept))
        return new if whole else ""
    before = {old[start:end] for start, end in words(old) if end - start >= _SHORTEST}
    for start, end in words(new):
        word = new[start:end]
        if fold(word) in known:
            continue
        if any(_runs_into(piece, word, known) for piece in before):
            return word
    return ""


def _runs_into(old: str, word: str, known: frozenset[str]) -> bool:
    folded, stem = fold(word), fold(old)
    if len(folded) <= len(stem):
        return False
    if folded.startswith(stem):
        left, right, rest = old, word[len(old) :], folded[len(stem) :]
    elif folded.endswith(stem):
        left, right, rest = word[: -len(old)], word[-len(old) :], folded[: -len(stem)]
    else:
        return False
    if old.isdigit() and rest.isdigit():
        return len(old) >= 3 and len(rest) >= 3
    turned = left[-1].islower() and right[0].isupper()
    mixed = left[-1].isdigit() != right[0].isdigit() and len(rest) >= _SHORTEST
    return turned or mixed or (len(rest) >= _SHORTEST and rest in known) or (len(stem) >= _REST <= len(rest))


def edge_seam(original: str, text: str, change: Change, inside: tuple[frozenset[int], frozenset[int]]) -> str:
    """What of the edited text runs together at the edges of a change and did not before; empty where nothing does.

    Args:
        original: the text before.
        text: the text after.
        change: one change.
        inside: the places inside words of `original` and of `text` (`word_edges`).
    """
    for place, old in ((change.start, change.old_start), (change.end, change.old_end)):
        if not 0 < place < len(text) or change.start == change.end:
            continue
        left, right = text[place - 1], text[place]
        if _UNSPACED.match(left) or _UNSPACED.match(right):
            continue
        joined = place in inside[1] and old not in inside[0]
        if joined or (_unparted(left, right) and not _was_unparted(original, old)):
            return text[max(0, place - 20) : place + 20]
    return ""


def _was_unparted(original: str, place: int) -> bool:
    return 0 < place < len(original) and _unparted(original[place - 1], original[place])


def _unparted(left: str, right: str) -> bool:
    """Whether a letter stands right after the end of a sentence or a clause."""
    return _CLOSING.match(left) is not None and bool(kind_table()[code_points(right)][0] & Kind.LETTER)
