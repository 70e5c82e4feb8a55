"""From what judges marked to the spans of a prediction: crossing marks parted, several opinions put to the vote."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from veriglot.records import Span, Word
from veriglot.text import sentences, words

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DIGITS", "Ballot", "Mark", "spans_of"]

DIGITS = 4  # of a confidence
_NO_MARK = -1


@dataclass(frozen=True)
class Mark:
    """A part of a response that a judge marked: half-open, in code points.

    Attributes:
        start: first code point.
        end: one past the last one.
        type: a type of the taxonomy.
        confidence: probability of the mark, 0 to 1, or None where none is known.
    """

    start: int
    end: int
    type: str
    confidence: float | None = None


def spans_of(response: str, marks: Sequence[Mark]) -> tuple[tuple[Span, ...], int]:
    """Spans that do not overlap, in order, and how many marks crossed another and were parted.

    Where marks overlap the shorter one holds, since it says more exactly what is wrong, and the longer one keeps what
    is left of it.
    """
    once = list(dict.fromkeys(marks))
    painted = _painted(len(response), once)
    spans = []
    for start, end, owner in _runs(painted):
        low, high = _trimmed(response, start, end)
        if low < high:
            mark = once[owner]
            confidence = None if mark.confidence is None else round(mark.confidence, DIGITS)
            spans.append(Span(low, high, mark.type, confidence, response[low:high]))
    crossing = sum(
        any(other is not mark and mark.start < other.end and other.start < mark.end for other in once) for mark in once
    )
    return tuple(spans), crossing


def _painted(length: int, marks: Sequence[Mark]) -> list[int]:
    """Which mark each code point belongs to; -1 for none."""
    painted = [_NO_MARK] * length
    for index in sorted(range(len(marks)), key=lambda n: marks[n].start - marks[n].end):
        mark = marks[index]
        painted[mark.start : mark.end] = [index] * (mark.end - mark.start)
    return painted


def _runs(painted: Sequence[int]) -> list[tuple[int, int, int]]:
    """Runs of code points of one mark: start, end, mark."""
    runs: list[tuple[int, int, int]] = []
    start = 0
    for place in range(1, len(painted) + 1):
        if place == len(painted) or painted[place] != painted[start]:
            if painted[start] != _NO_MARK:
                runs.append((start, place, painted[start]))
            start = place
    return runs


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


class Ballot:
    """The votes of several opinions of one response, by code point.

    A mark that begins or ends inside a word votes for all of it: how much of a word a judge quotes is chance.

    Args:
        response: the text.
        language: BCP 47 tag of it, or None.
        opinions: the marks of each opinion; at least one opinion.
    """

    def __init__(self, response: str, language: str | None, opinions: Sequence[Sequence[Mark]]) -> None:
        self._response = response
        self._words = words(response, language)
        self._sentence_starts = {start for start, _ in sentences(response, language)}
        self._count = len(opinions)
        self._votes: list[Counter[str]] = [Counter() for _ in response]
        for marks in opinions:
            self._count_in(marks)

    def _count_in(self, marks: Sequence[Mark]) -> None:
        painted = _painted(len(self._response), marks)
        for start, end in self._words:
            owner = max(painted[start:end])
            if owner != _NO_MARK:
                painted[start:end] = [owner] * (end - start)
        for place, owner in enumerate(painted):
            if owner != _NO_MARK:
                self._votes[place][marks[owner].type] += 1

    def words(self) -> tuple[Word, ...]:
        """Every word with the share of opinions that marked it."""
        return tuple(Word(start, end, self._share(start)) for start, end in self._words)

    def spans(self, threshold: float, types: Sequence[str]) -> tuple[Span, ...]:
        """What at least this share of the opinions marked.

        Neighbouring code points of one sentence and one type make one span. The type is that of most opinions which
        marked the place (of equals, the first of the taxonomy); the confidence the mean share over the span.

        Args:
            threshold: a share, 0 to 1; from 0 on everything is marked.
            types: the types of the taxonomy, in its order.
        """
        kinds = [self._kind(place, threshold, types) for place in range(len(self._response))]
        spans = []
        for start, end, kind in _runs(self._bridged(kinds)):
            for low, high in self._by_sentence(start, end):
                shares = [self._share(place) for place in range(low, high)]
                confidence = round(sum(shares) / len(shares), DIGITS)
                spans.append(Span(low, high, types[kind], confidence, self._response[low:high]))
        return tuple(spans)

    def _share(self, place: int) -> float:
        return round(self._votes[place].total() / self._count, DIGITS)

    def _kind(self, place: int, threshold: float, types: Sequence[str]) -> int:
        if self._share(place) < threshold:
            return _NO_MARK
        votes = self._votes[place]
        return max(range(len(types)), key=lambda n: (votes[types[n]], -n))

    def _bridged(self, kinds: list[int]) -> list[int]:
        """With the marks and spaces between two words of one kind, so that a run of words is one span."""
        edges = [end for _, end in self._words]
        for end, (start, _) in zip(edges, self._words[1:], strict=False):
            if kinds[end - 1] == kinds[start] != _NO_MARK:
                kinds[end:start] = [kinds[start]] * (start - end)
        return kinds

    def _by_sentence(self, start: int, end: int) -> list[tuple[int, int]]:
        cuts = [start, *sorted(place for place in self._sentence_starts if start < place < end), end]
        pieces = (_trimmed(self._response, low, high) for low, high in pairwise(cuts))
        return [piece for piece in pieces if piece[0] < piece[1]]
