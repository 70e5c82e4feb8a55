"""What was changed in a text: places of the new text beside the places of the old one that they stand for."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from veriglot.records import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Change", "changes_of", "restored", "spans_of"]


class Change(msgspec.Struct, frozen=True, order=True):
    """One error that was put into a text. Offsets are half-open, in code points.

    Attributes:
        start, end: the error, in the edited text; equal where something was taken out and nothing put in its place.
        old_start, old_end: what stood there, in the original; equal where something was put between.
        type: a type of the taxonomy.
    """

    start: int
    end: int
    old_start: int
    old_end: int
    type: str


def spans_of(changes: Iterable[Change], text: str) -> tuple[Span, ...]:
    """The spans that changes make in the edited text, in order, without white space at their edges.

    Changes without a text of their own have none.
    """
    trimmed = (_trimmed(text, change.start, change.end) for change in sorted(changes))
    types = (change.type for change in sorted(changes))
    return tuple(Span(s, e, type_, text=text[s:e]) for (s, e), type_ in zip(trimmed, types, strict=True) if s < e)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def restored(original: str, text: str, changes: Sequence[Change]) -> str:
    """The edited text with what stood there before put back; equal to `original` if nothing else was changed.

    The changes must be in order and must not overlap.
    """
    parts: list[str] = []
    read = 0
    for change in changes:
        parts += [text[read : change.start], original[change.old_start : change.old_end]]
        read = change.end
    return "".join([*parts, text[read:]])


def changes_of(original: str, text: str, spans: Sequence[Span]) -> list[Change] | None:
    """The changes that make `text` of `original`, if it differs in its spans alone; None where it does not.

    What stands between the spans is looked for in the original, in order. Where it stands several times, the place is
    taken that makes what was replaced most nearly as long as what replaced it. White space beside a span may differ,
    since whoever puts a sentence in puts a space in too; it is then part of the change.

    Args:
        original: the text before.
        text: the text after.
        spans: in order, not overlapping; those without a type get an empty one.
    """
    if not spans:
        return [] if original == text else None
    if any(before.end > after.start for before, after in pairwise(spans)):
        return None
    kept = _kept(text, spans)
    pieces = [text[start:end] for start, end in kept]
    places = _places(original, pieces, [span.end - span.start for span in spans])
    if places is None:
        return None
    return [
        _shrunk(
            original,
            text,
            Change(kept[i][1], kept[i + 1][0], places[i] + len(pieces[i]), places[i + 1], span.type or ""),
        )
        for i, span in enumerate(spans)
    ]


def _kept(text: str, spans: Sequence[Span]) -> list[tuple[int, int]]:
    """The places between the spans, without the white space beside them."""
    between = [(before.end, after.start) for before, after in pairwise(spans)]
    first = (0, len(text[: spans[0].start].rstrip()))
    last = (len(text) - len(text[spans[-1].end :].lstrip()), len(text))
    return [first, *(_trimmed(text, start, end) for start, end in between), last]


def _shrunk(original: str, text: str, change: Change) -> Change:
    """The change without the white space at its edges that stood there before too."""
    start, end, old_start, old_end, type_ = msgspec.structs.astuple(change)
    while start < end and old_start < old_end and text[start].isspace() and text[start] == original[old_start]:
        start, old_start = start + 1, old_start + 1
    while start < end and old_start < old_end and text[end - 1].isspace() and text[end - 1] == original[old_end - 1]:
        end, old_end = end - 1, old_end - 1
    return Change(start, end, old_start, old_end, type_)


def _places(original: str, pieces: list[str], lengths: list[int]) -> list[int] | None:
    """Where each piece begins in the original: the first at its beginning, the last at its end, the others between."""
    first, *middle, last = pieces
    end = len(original) - len(last)
    if not original.startswith(first) or not original.endswith(last) or len(first) > end:
        return None
    latest: list[int] = []
    bound = end
    for piece in reversed(middle):
        bound = original.rfind(piece, len(first), bound)
        if bound < 0:
            return None
        latest.insert(0, bound)
    places, at = [0], len(first)
    for piece, most, length in zip(middle, latest, lengths, strict=False):
        start = _nearest(original, piece, at, most, at + length)
        places.append(start)
        at = start + len(piece)
    return [*places, end]


def _nearest(original: str, piece: str, least: int, most: int, wanted: int) -> int:
    """The place of a piece between `least` and `most` (where it stands at the latest) that is nearest to `wanted`."""
    before = original.rfind(piece, least, min(most, max(wanted, least)) + len(piece))
    after = original.find(piece, min(most, max(wanted, least)), most + len(piece))
    return min((place for place in (before, after) if place >= 0), key=lambda place: abs(place - wanted))
