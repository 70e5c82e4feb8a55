"""Marks in a text as markers that a translator carries along: `<1>...</1>`, and what is made of those that come back.

Numbers, since letters are transliterated into other scripts and words are translated. What a translator does to
brackets, digits and spaces is read with patience; a marker that is gone, or there twice, is not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MarkerFault", "MarkerReason", "Unmarked", "marked", "unmarked"]

MarkerReason = Literal["markers_lost", "markers_added", "markers_unpaired", "markers_empty", "markers_in_text"]

_ESCAPED = re.compile(r"&(lt|gt|#60|#62);", re.IGNORECASE)
_MARKER = re.compile(r"[<＜‹〈]\s*([/／\\]?)\s*(\d{1,3})\s*[>＞›〉]")
_LIKE = re.compile(r"[<＜‹〈]\s*[/／\\]?\s*\d{1,3}\s*[>＞›〉]|&lt;\s*/?\s*\d{1,3}\s*&gt;", re.IGNORECASE)
_OPEN_ENDED = re.compile(r"[<＜]\s*[/／]?\s*\d{0,3}\s*\Z")


class MarkerFault(msgspec.Struct, frozen=True):
    """Why the markers of a translation cannot be used.

    Attributes:
        reason: `markers_lost` (one did not come back), `markers_added` (one came back more often, or that was never
            there), `markers_unpaired` (closed before it is opened), `markers_empty` (around no word),
            `markers_in_text` (the original holds what looks like one).
        detail: the same in words.
    """

    reason: MarkerReason
    detail: str


class Unmarked(msgspec.Struct, frozen=True):
    """A translation without its markers.

    Attributes:
        text: the translation.
        spans: half-open code point ranges of it, by the number of the mark, from 0.
    """

    text: str
    spans: tuple[tuple[int, int], ...]


def marked(text: str, marks: Sequence[tuple[int, int]]) -> str | MarkerFault:
    """A text with markers around ranges of it; nested and crossing ones are each written as they stand.

    Args:
        text: any text.
        marks: half-open code point ranges; the first is number 1.
    """
    if _LIKE.search(text):
        return MarkerFault("markers_in_text", "the text holds what looks like a marker")
    edges: list[tuple[int, int, int, int, str]] = []  # place, closers first, the inner inside the outer at either edge
    for number, (start, end) in enumerate(marks, 1):
        edges.append((start, 1, start - end, number, f"<{number}>"))
        edges.append((end, 0, end - start, -number, f"</{number}>"))
    parts: list[str] = []
    at = 0
    for place, _, _, _, marker in sorted(edges):
        parts += (text[at:place], marker)
        at = place
    return "".join((*parts, text[at:]))


def unmarked(text: str, count: int) -> Unmarked | MarkerFault:
    """The translation, and where its marks stand; a fault unless each marker came back once, in pairs, around a word.

    Args:
        text: what a translator gave for a text with `count` marks.
        count: how many.
    """
    text = _ESCAPED.sub(lambda found: "<" if found[1].lower() in {"lt", "#60"} else ">", text)
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    parts: list[str] = []
    length = at = 0
    for found in _MARKER.finditer(text):
        piece = text[at : found.start()]
        parts.append(piece)
        length += len(piece)
        at = found.end()
        number = int(found[2]) - 1
        edges = ends if found[1] else starts
        if number in edges or not 0 <= number < count:
            return MarkerFault("markers_added", f"{found[0]!r} was not there, or only once")
        edges[number] = length
    parts.append(text[at:])
    whole = "".join(parts)
    if _OPEN_ENDED.search(whole):
        return MarkerFault("markers_lost", "it ends inside a marker")
    missing = [number + 1 for number in range(count) if number not in starts or number not in ends]
    if missing:
        return MarkerFault("markers_lost", f"{len(missing)} of {count} did not come back in pairs, first {missing[0]}")
    return _tidied(whole, [(starts[number], ends[number]) for number in range(count)])


def _tidied(text: str, spans: Sequence[tuple[int, int]]) -> Unmarked | MarkerFault:
    """Without the double spaces that markers leave, and with spans that begin and end in no space."""
    kept: list[str] = []
    place = []  # of each code point in the text that is left
    for char in text:
        place.append(len(kept))
        if char == " " and (not kept or kept[-1].isspace()):
            continue
        kept.append(char)
    place.append(len(kept))
    while kept and kept[-1].isspace():
        kept.pop()
    tidy = "".join(kept)
    found = []
    for start, end in spans:
        if end < start:
            return MarkerFault("markers_unpaired", "a marker is closed before it is opened")
        first, last = min(place[start], len(tidy)), min(place[end], len(tidy))
        while first < last and tidy[first].isspace():
            first += 1
        while first < last and tidy[last - 1].isspace():
            last -= 1
        if not any(char.isalnum() for char in tidy[first:last]):
            return MarkerFault("markers_empty", "a marker stands around no word")
        found.append((first, last))
    return Unmarked(tidy, tuple(found))
