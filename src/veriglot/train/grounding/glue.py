"""Repair of glued spans: where a generator replaced words, the published text holds old and new word in one.

In most silver files an entity or relation span reads `HellasRoma`: the word that was deleted and the one that was
put in its place, without a space. A detector would learn to see the seam. `unglue` finds it by the words that the
language's references and clean text hold, and leaves the new word alone; where it finds none and the
span holds a word never seen elsewhere, the span is ignored in training.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from veriglot.text import fold, words
from veriglot.train.grounding.example import Example, Mark

if TYPE_CHECKING:
    from collections import Counter

__all__ = ["unglue", "vocabulary_of"]

_REPLACING = frozenset({"entity", "relation"})
_MIN_PART = 2  # code points: of both words at a seam
_TRUSTED = 1.0
_SEEN_WHOLE = 2  # a word that occurs so often elsewhere is no glue


def vocabulary_of(example: Example) -> list[str]:
    """The folded words of an example's references and of its response outside replaced spans."""
    found = [_folded(p, s, e) for p in example.passages for s, e in words(p, example.language)]
    replaced = [m for m in example.marks if m.type in _REPLACING]
    for start, end in words(example.response, example.language):
        if not any(m.start < end and start < m.end for m in replaced):
            found.append(_folded(example.response, start, end))
    return found


def _folded(text: str, start: int, end: int) -> str:
    return fold(text[start:end])


def unglue(example: Example, vocabulary: Counter[str]) -> Example | None:
    """The example with its glued spans repaired or ignored; None where spans cross, so that no repair is safe.

    Args:
        example: a silver example; types other than entity and relation are left alone.
        vocabulary: folded words of the language with their counts (`vocabulary_of`).
    """
    parts: list[str] = []
    marks: list[Mark] = []
    ignored: list[tuple[int, int]] = []
    read = written = 0
    reference = "\n".join(example.passages)
    for mark in sorted(example.marks, key=lambda m: (m.start, m.end)):
        if mark.start < read:
            return None
        before = example.response[read : mark.start]
        inside = example.response[mark.start : mark.end]
        start = written + len(before)
        sound = True
        if mark.type in _REPLACING:
            inside, sound = _without_old(inside, vocabulary, reference)
        parts += [before, inside]
        read, written = mark.end, start + len(inside)
        marks.append(Mark(start, written, mark.type))
        if not sound:
            ignored.append((start, written))
    parts.append(example.response[read:])
    return replace(example, response="".join(parts), marks=tuple(marks), ignored=tuple(ignored))


def _without_old(span: str, vocabulary: Counter[str], reference: str) -> tuple[str, bool]:
    """The span without the deleted words, and whether it can be trusted."""
    best, seam = 0.0, 0
    for place in range(_MIN_PART, len(span) - _MIN_PART + 1):
        if span[place - 1].isalnum() and span[place].isalnum():
            trust = _trust(span, place, vocabulary, reference)
            if trust > best:
                best, seam = trust, place
    if best > _TRUSTED:
        return span[seam:], True
    return span, all(vocabulary[_folded(span, s, e)] >= _SEEN_WHOLE for s, e in words(span))


def _trust(span: str, place: int, vocabulary: Counter[str], reference: str) -> float:
    """How likely two words meet at `place`: both known, the two as one unknown, the first part in the reference."""
    old, new = span[:place], span[place:]
    last = old[words(old)[-1][0] :]
    first = new[slice(*words(new)[0])]
    known = min(vocabulary[fold(last)], vocabulary[fold(first)])
    whole = vocabulary[fold(last + first)]
    if not known or whole >= _SEEN_WHOLE or min(len(last), len(first)) < _MIN_PART:
        return 0.0
    trust = known / (1 + 3 * whole) * (len(last) + len(first))
    if old in reference:
        trust *= 10
    if last[-1].islower() and first[0].isupper():
        trust *= 10
    return trust
