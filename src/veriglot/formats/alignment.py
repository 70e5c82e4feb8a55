"""Two copies of one text that differ a little: where each code point of one stands in the other.

Annotation tools move white space, lose a full stop, or (dragging across right-to-left text) shift a letter over a
tag. White space never counts. Words are matched first, then letters inside the stretches where words differ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Alignment", "align"]

_TOKEN = re.compile(r"\w+|[^\w\s]")
_MATCHED_SHARE = 0.5
_STRETCH = 1.5
_STRETCH_SLACK = 8


@dataclass(frozen=True)
class Alignment:
    """Where the code points of one text stand in another.

    Attributes:
        first: the one text.
        second: the other.
        places: for each code point of the first text its index in the second, or -1.
        solid: code points of the first text that are not white space.
        matched: how many of those have a counterpart.
    """

    first: str
    second: str
    places: list[int]
    solid: int
    matched: int

    @property
    def exact(self) -> bool:
        """Whether nothing but white space differs, seen from the first text."""
        return self.solid == self.matched

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """The range of the second text that `[start, end)` of the first stands for, white space at its edges left out.

        Where less than half of it has a counterpart, or its parts lie far apart there, the words were moved: then it
        is the nearest place where they stand, or None where they stand nowhere.
        """
        found = [place for place in self.places[start:end] if place >= 0]
        if found and len(found) >= _MATCHED_SHARE * self._solid_in(start, end):
            low, high = min(found), max(found) + 1
            if high - low <= _STRETCH * (end - start) + _STRETCH_SLACK:
                return low, high
        return self._moved(start, end)

    def _moved(self, start: int, end: int) -> tuple[int, int] | None:
        words = self.first[start:end].split()
        if not words:
            return None
        pattern = re.compile(r"\s+".join(map(re.escape, words)))
        near = next((place for place in reversed(self.places[:start]) if place >= 0), 0)
        found = min(pattern.finditer(self.second), key=lambda match: abs(match.start() - near), default=None)
        return found.span() if found else None

    def _solid_in(self, start: int, end: int) -> int:
        return sum(place != _SPACE for place in self.places[start:end])


_SPACE = -2


def align(first: str, second: str) -> Alignment:
    """Align `first` onto `second`. Time is linear where only white space differs."""
    places = [_SPACE if char.isspace() else -1 for char in first]
    solid = sum(place == -1 for place in places)
    here = [i for i, place in enumerate(places) if place == -1]
    there = [i for i, char in enumerate(second) if not char.isspace()]
    if len(here) == len(there) and all(first[i] == second[j] for i, j in zip(here, there, strict=True)):
        for i, j in zip(here, there, strict=True):
            places[i] = j
        return Alignment(first, second, places, solid, solid)
    matched = _align_words(first, second, places)
    return Alignment(first, second, places, solid, matched)


def _align_words(first: str, second: str, places: list[int]) -> int:
    ours, theirs = list(_TOKEN.finditer(first)), list(_TOKEN.finditer(second))
    matcher = SequenceMatcher(None, [m.group() for m in ours], [m.group() for m in theirs], autojunk=False)
    matched = 0
    for operation, a, b, c, d in matcher.get_opcodes():
        if operation == "equal":
            for mine, other in zip(ours[a:b], theirs[c:d], strict=True):
                matched += _pair(places, mine.start(), other.start(), mine.end() - mine.start())
        elif operation == "replace":
            matched += _align_letters(_letters(ours[a:b]), _letters(theirs[c:d]), first, second, places)
    return matched


def _letters(tokens: Sequence[re.Match[str]]) -> list[int]:
    return [index for token in tokens for index in range(token.start(), token.end())]


def _align_letters(ours: list[int], theirs: list[int], first: str, second: str, places: list[int]) -> int:
    matcher = SequenceMatcher(None, [first[i] for i in ours], [second[i] for i in theirs], autojunk=False)
    matched = 0
    for a, c, size in matcher.get_matching_blocks():
        for offset in range(size):
            matched += _pair(places, ours[a + offset], theirs[c + offset], 1)
    return matched


def _pair(places: list[int], mine: int, other: int, size: int) -> int:
    for offset in range(size):
        places[mine + offset] = other + offset
    return size
