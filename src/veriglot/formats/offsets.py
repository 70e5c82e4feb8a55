"""Offsets as files give them, checked against the text: exact, or repaired and counted, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.format import Reading

__all__ = ["located", "placed"]


def placed(start: int, end: int, where: str, text: str, reading: Reading) -> tuple[int, int] | None:
    """A half-open range in `text`. An empty one gives None; one that ends a single place too far is cut.

    Both are counted in the report.

    Raises:
        InputError: the range does not lie in the text, or a repair is needed and refused.
    """
    length = len(text)
    if start == end and 0 <= start <= length:
        reading.repaired("empty_spans", f"the span [{start}, {end}) is empty", where=where)
        return None
    if end == length + 1 and 0 <= start < length:
        reading.repaired("spans_cut_to_the_text", f"[{start}, {end}) ends one beyond {length}", where=where)
        end = length
    if not 0 <= start < end <= length:
        raise InputError(f"[{start}, {end}) does not lie in the response of {length} code points", field=where)
    return start, end


def located(
    marked: str | None, start: int, end: int, where: str, text: str, reading: Reading, *, usual: int = 0
) -> tuple[int, int] | None:
    """The range of a span whose text is given too: the text decides where the offsets are off.

    Args:
        marked: the span's text, or None where the file gives none; then the offsets count as they stand.
        start: first place as the file gives it.
        end: end as the file gives it, one past the last.
        where: field, for messages.
        text: the response.
        reading: where repairs are counted.
        usual: how far the file's offsets are from code points counted from 0, by its own convention.

    Raises:
        InputError: the text does not occur in the response, or a repair is needed and refused.
    """
    start, end = start - usual, end - usual
    if marked is None:
        return placed(start, end, where, text, reading)
    if not marked.strip():
        reading.repaired("empty_spans", "the span holds no text", where=where)
        return None
    if start >= 0 and text[start:end] == marked:
        return start, end
    found = min(_occurrences(marked, text), key=lambda place: abs(place - start), default=None)
    if found is None:
        raise InputError(f"the text of the span, {marked[:60]!r}, is not in the response", field=where)
    reading.repaired("offsets_corrected_by_text", f"[{start}, {end}) does not hold {marked[:60]!r}", where=where)
    return found, found + len(marked)


def _occurrences(marked: str, text: str) -> Iterator[int]:
    place = text.find(marked)
    while place >= 0:
        yield place
        place = text.find(marked, place + 1)
