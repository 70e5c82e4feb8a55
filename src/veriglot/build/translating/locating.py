"""The translation of a part of a text, found in the translation of the whole."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from veriglot.text import normalise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.build.translating.alignment import Side

__all__ = ["Located", "locate"]

_NORMALISED = 0.95
_LEAST = 0.7  # likeness of a passage that was translated a little differently
_UNDECIDED = 0.8  # what a place counts for that is one of several
_LONGEST = 60  # words of a part that is searched for among passages like it


class Located(NamedTuple):
    """Where a part stands.

    Attributes:
        start, end: half-open code point range of the translation.
        likeness: 0 to 1: 1 as it stands, 0.95 but for case, width and marks, otherwise the share of letters in common;
            times 0.8 where it stands at several places and the nearest to where it was expected is taken.
    """

    start: int
    end: int
    likeness: float


def locate(side: Side, part: str, expected: float) -> Located | None:
    """Find a translated part.

    Args:
        side: the translation of the whole.
        part: the translation of the part; signs around it are not looked for.
        expected: where it ought to begin, as a share of the whole, 0 to 1; it decides between several places.
    """
    part = _core(part)
    if not part:
        return None
    starts, ends = {start for start, _ in side.words}, {end for _, end in side.words}
    for likeness, places in ((1.0, _found(side.text, part)), (_NORMALISED, _found_normalised(side.text, part))):
        whole = [(start, end) for start, end in places if start in starts and end in ends]
        if whole:
            start, end = min(whole, key=lambda place: abs(place[0] / max(1, len(side.text)) - expected))
            return Located(start, end, likeness * (_UNDECIDED if len(whole) > 1 else 1.0))
    return _alike(side, part, expected)


def _core(part: str) -> str:
    """Without spaces and signs at either end."""
    places = [place for place, char in enumerate(part) if char.isalnum()]
    return part[places[0] : places[-1] + 1] if places else ""


def _found(text: str, part: str) -> Iterator[tuple[int, int]]:
    at = text.find(part)
    while at >= 0:
        yield at, at + len(part)
        at = text.find(part, at + 1)


def _found_normalised(text: str, part: str) -> Iterator[tuple[int, int]]:
    whole, wanted = normalise(text), normalise(part).text
    for start, end in _found(whole.text, wanted) if wanted else ():
        yield whole.original(start, end)


def _alike(side: Side, part: str, expected: float) -> Located | None:
    """The stretch of words that has the most in common with the part."""
    from veriglot.build.translating.alignment import side_of

    count = len(side_of(part, side.tag).words)
    if not count or count > _LONGEST or not side.words:
        return None
    wanted = normalise(part).text
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    best: tuple[float, float, int, int] | None = None
    for size in range(max(1, count - 2), count + 3):
        for first in range(len(side.words) - size + 1):
            start, end = side.words[first][0], side.words[first + size - 1][1]
            matcher.set_seq1(normalise(side.text[start:end]).text)
            floor = best[0] if best else _LEAST
            if matcher.real_quick_ratio() < floor or matcher.quick_ratio() < floor:
                continue
            one = (matcher.ratio(), -abs(start / max(1, len(side.text)) - expected), start, end)
            best = max(best, one) if best else one
    return Located(best[2], best[3], best[0]) if best and best[0] >= _LEAST else None
