"""Spans that nest or cross, cut into pieces that do not: what a drawing needs."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.records import Span

__all__ = ["Segment", "any_cross", "segments"]


class Segment(NamedTuple):
    """A piece `[start, end)` of a text, in code points, and the indices of the spans that cover all of it.

    `covering` goes from the outermost (longest) span to the innermost (shortest).
    """

    start: int
    end: int
    covering: tuple[int, ...]


def segments(length: int, spans: Sequence[Span]) -> Iterator[Segment]:
    """Cut a text of `length` code points at every end of a span; the pieces, in order, cover it exactly.

    A span that reaches beyond the text is cut at its end. Time is linear in the spans, times how deep they lie on
    each other.
    """
    opening: dict[int, list[int]] = {}
    closing: dict[int, list[int]] = {}
    for index, span in enumerate(spans):
        if span.start < length:
            opening.setdefault(span.start, []).append(index)
            closing.setdefault(min(span.end, length), []).append(index)
    active: set[int] = set()
    places = sorted({0, length, *opening, *closing})
    for start, end in pairwise(places):
        active.difference_update(closing.get(start, ()))
        active.update(opening.get(start, ()))
        yield Segment(start, end, tuple(sorted(active, key=lambda i: (spans[i].start - spans[i].end, i))))


def any_cross(spans: Sequence[Span]) -> bool:
    """Whether two spans overlap without one holding the other."""
    enclosing: list[int] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        while enclosing and enclosing[-1] <= span.start:
            enclosing.pop()
        if enclosing and span.end > enclosing[-1]:
            return True
        enclosing.append(span.end)
    return False
