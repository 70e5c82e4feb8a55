"""One sentence as words and the gaps between them: what the rules of facts look at."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CLOSING", "OPENING", "Run", "SentenceWords", "joined_runs"]

Run = tuple[int, int]  # half-open, counted in words of the sentence

OPENING = frozenset("([{（［【〔")
CLOSING = frozenset(")]}）］】〕")
_PLAIN = re.compile(r"[\s'’\u00a0\-]*")


@dataclass(frozen=True)
class SentenceWords:
    """The words of one sentence.

    Attributes:
        text: the whole text.
        bounds: the words of the sentence, half-open in code points of the text, in order.
        folded: the same words, casefolded.
        gaps: what stands before each word, since the word before it or the beginning of the sentence.
    """

    text: str
    bounds: list[tuple[int, int]]
    folded: list[str]
    gaps: list[str]

    @classmethod
    def of(cls, text: str, start: int, bounds: list[tuple[int, int]]) -> SentenceWords:
        """The words `bounds` of the sentence that begins at `start`."""
        ends = [start, *(end for _, end in bounds)]
        gaps = [text[ends[place] : first] for place, (first, _) in enumerate(bounds)]
        return cls(text, bounds, [text[first:end].casefold() for first, end in bounds], gaps)

    def __len__(self) -> int:
        return len(self.bounds)

    def capitalised(self, place: int) -> bool:
        """Whether a word begins with a capital letter."""
        first = self.text[self.bounds[place][0]]
        return first.isupper() or first.istitle()

    def has_digit(self, place: int) -> bool:
        """Whether a word holds a decimal digit of any script."""
        return any(char.isdecimal() for char in self.folded[place])

    def joined(self, place: int) -> bool:
        """Whether nothing but space, an apostrophe or a hyphen parts a word from the one before it."""
        return _PLAIN.fullmatch(self.gaps[place]) is not None

    def glued(self, place: int) -> bool:
        """Whether a word is written together with the one before it, as a suffix is: `1921'de`, `1921-ben`."""
        gap = self.gaps[place]
        return gap != "" and not any(char.isspace() for char in gap) and _PLAIN.fullmatch(gap) is not None

    def places(self, runs: Iterable[Run]) -> tuple[tuple[int, int], ...]:
        """Runs of words as half-open ranges of code points; runs that follow on each other become one."""
        return tuple((self.bounds[first][0], self.bounds[end - 1][1]) for first, end in joined_runs(runs))


def joined_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Disjoint runs in order; those that follow on each other become one."""
    merged: list[Run] = []
    for first, end in sorted(runs):
        if merged and merged[-1][1] == first:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((first, end))
    return tuple(merged)
