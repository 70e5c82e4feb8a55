"""Offsets as files give them, checked against the text: exact, or repaired and counted, or an error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError, UsageError
from veriglot.formats.base import need
from veriglot.records.taxonomy import taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.formats.base import Reading
    from veriglot.records import Annotation, Sample, Span

__all__ = [
    "RAGTRUTH_LABELS",
    "beside_spans",
    "located",
    "marked_ranges",
    "offsets_of",
    "pair_of_offsets",
    "placed",
    "type_in",
    "with_markers",
]


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


def offsets_of(item: Any, where: str) -> tuple[int, int]:
    """The `start` and `end` of an object in a file.

    Raises:
        InputError: one is missing, or no whole number.
    """
    return need(item, "start", int, within=where), need(item, "end", int, within=where)


def pair_of_offsets(item: Any, where: str) -> tuple[int, int]:
    """A pair `[start, end]` in a file.

    Raises:
        InputError: it is none.
    """
    if not (isinstance(item, list) and len(item) == 2 and all(type(edge) is int for edge in item)):
        raise InputError("a pair [start, end] of whole numbers is expected", field=where)
    return item[0], item[1]


def beside_spans(sample: Sample, key: str, spans: Sequence[Span]) -> list[Any] | None:
    """What `meta` keeps under `key`, an item for each span; None where it does not fit the spans."""
    items = sample.meta.get(key)
    return items if isinstance(items, list) and len(items) == len(spans) else None


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
    nearest = min(_occurrences(marked, text), key=lambda index: abs(index - start), default=None)
    if nearest is None:
        raise InputError(f"the text of the span, {marked[:60]!r}, is not in the response", field=where)
    reading.repaired("offsets_corrected_by_text", f"[{start}, {end}) does not hold {marked[:60]!r}", where=where)
    return nearest, nearest + len(marked)


def _occurrences(marked: str, text: str) -> Iterator[int]:
    index = text.find(marked)
    while index >= 0:
        yield index
        index = text.find(marked, index + 1)


# Span types in the taxonomy that a format writes.


# RAGTruth's names for the types of `support`; LettuceDetect's rows have them from there.
RAGTRUTH_LABELS = {"contradicted": "Evident Conflict", "unverified": "Evident Baseless Info"}


def type_in(target: str, annotation: Annotation, span: Span) -> str | None:
    """The span's type in the taxonomy `target`; None where it has no counterpart or the taxonomies no mapping."""
    try:
        return taxonomy(annotation.taxonomy).to(target).get(span.type or "")
    except UsageError:
        return None


def marked_ranges(marked: str, text: str, markers: tuple[str, str], *, field: str, of: str) -> list[tuple[int, int]]:
    """The marked parts as half-open code point ranges of `text`, in order; markers inside markers make one part.

    Args:
        marked: the text with its markers.
        text: the text without them.
        markers: what opens and what closes.
        field: the field of the marked text, for messages.
        of: the field of the text without markers, for messages.

    Raises:
        InputError: without its markers it is another text, or a marker lacks its counterpart.
    """
    opening, closing = markers
    pattern = re.compile("|".join(map(re.escape, markers)))
    if pattern.sub("", marked) != text:
        raise InputError(f"without its markers this is not `{of}`", field=field)
    ranges = []
    removed = depth = start = 0
    for match in pattern.finditer(marked):
        position = match.start() - removed
        removed += len(match.group())
        if match.group() == opening:
            start = position if depth == 0 else start
            depth += 1
            continue
        depth -= 1
        if depth < 0:
            raise InputError(f"{closing} at code point {match.start()} closes nothing", field=field)
        if depth == 0 and position > start:
            ranges.append((start, position))
    if depth:
        raise InputError(f"{opening} is never closed", field=field)
    return ranges


def with_markers(text: str, spans: Sequence[Span], markers: tuple[str, str]) -> str:
    """The text with markers around its spans: the inverse of `marked_ranges` where spans neither overlap nor touch."""
    opening, closing = markers
    edges = [(span.end, 0, closing) for span in spans] + [(span.start, 1, opening) for span in spans]
    for position, _, marker in sorted(edges, reverse=True):
        text = text[:position] + marker + text[position:]
    return text
