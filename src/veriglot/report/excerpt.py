"""The neighbourhood of a place in the evidence, and what in a prediction does not fit its sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.records import Pointer, Prediction, Sample, Span

__all__ = ["Excerpt", "excerpt", "fits", "misfits"]

_MOVE = 12
"""How far, in code points, a cut may move to fall on a space."""


class Excerpt(NamedTuple):
    """A pointed place with its surroundings: what comes before, the place, what comes after; cuts are marked by `…`."""

    before: str
    place: str
    after: str


def excerpt(text: str, start: int, end: int, *, around: int = 40, longest: int = 160) -> Excerpt:
    """Up to `around` code points on either side of `[start, end)`; a place over `longest` loses its middle, marked."""
    first = max(0, start - around)
    last = min(len(text), end + around)
    if first:
        space = text.find(" ", first, min(first + _MOVE, start))
        first = first if space < 0 else space + 1
    if last < len(text):
        space = text.rfind(" ", max(last - _MOVE, end), last)
        last = last if space < 0 else space
    place = text[start:end]
    if len(place) > longest:
        place = _without_middle(place, longest // 2)
    return Excerpt(
        ("…" if first else "") + text[first:start], place, text[end:last] + ("…" if last < len(text) else "")
    )


def _without_middle(place: str, half: int) -> str:
    """Its two ends, cut at spaces where one is near: half of a number is another number."""
    first, last = half, len(place) - half
    space = place.rfind(" ", first - _MOVE, first + 1)
    first = first if space < 0 else space
    space = place.find(" ", last - 1, last + _MOVE)
    last = last if space < 0 else space + 1
    return f"{place[:first].rstrip()} … {place[last:].lstrip()}"


def misfits(sample: Sample, prediction: Prediction) -> list[str]:
    """What of a prediction (spans, words, units, pointers) lies outside of its sample, in words; most often nothing."""
    lengths = {passage.id or "": len(passage.text) for passage in sample.evidence}
    found = []
    for span in prediction.spans or ():
        if span.end > len(sample.response):
            found.append(
                f"span [{span.start}, {span.end}) ends beyond the response of {len(sample.response)} code points"
            )
        found.extend(_lost(span, lengths))
    wrong = sum(word.end > len(sample.response) for word in prediction.words or ())
    if wrong:
        found.append(f"{wrong} words end beyond the response of {len(sample.response)} code points")
    beyond = sum(unit.end > len(sample.response) for unit in prediction.units or ())
    if beyond:
        found.append(f"{beyond} units end beyond the response of {len(sample.response)} code points")
    lost = sum(not fits(p, lengths.get(p.id)) for word in prediction.words or () for p in word.evidence)
    if lost:
        found.append(f"{lost} pointers of words lead outside of the evidence")
    return found


def fits(pointer: Pointer, length: int | None) -> bool:
    """Whether a pointer lies inside a passage of that many code points (None: there is no such passage)."""
    return length is not None and pointer.end <= length


def _lost(span: Span, lengths: dict[str, int]) -> Iterator[str]:
    for pointer in span.evidence:
        length = lengths.get(pointer.id)
        if length is None:
            yield f"span [{span.start}, {span.end}) points into passage {pointer.id!r}, which the sample does not have"
        elif not fits(pointer, length):
            yield f"span [{span.start}, {span.end}) points beyond the end of passage {pointer.id!r}"
