"""What a cleaned copy changes in a sample: offsets in another unit, edges of spans, spans twice, glued words."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from veriglot.records import Span, Unit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from veriglot.records import Annotation, Sample

__all__ = ["Placed", "is_blank", "placed", "repaired", "without_ranges"]

Mark = TypeVar("Mark", Span, Unit)

_STALE = ("glued",)  # what readers left in `meta` of the text as it was


class Placed(NamedTuple):
    """A span in code points, and the unit that its offsets were in: `utf-16` or `utf-8`."""

    span: Span
    unit: str


def placed(span: Span, response: str) -> Span | Placed | None:
    """The span itself where it cuts out the text that it carries, or carries none.

    Otherwise the span as it is meant if its offsets count UTF-16 units or UTF-8 bytes, or None if they do not either.
    """
    if span.text is None or response[span.start : span.end] == span.text:
        return span
    for unit, coding, width in (("utf-16", "utf-16-le", 2), ("utf-8", "utf-8", 1)):
        data = response.encode(coding, "surrogatepass")
        try:
            start = len(data[: width * span.start].decode(coding))
            inside = data[width * span.start : width * span.end].decode(coding)
        except UnicodeDecodeError:
            continue
        if inside == span.text:
            return Placed(msgspec.structs.replace(span, start=start, end=start + len(inside)), unit)
    return None


def repaired(sample: Sample, keep: Collection[str] = ()) -> tuple[Sample, Counter[str]]:
    """The sample with its spans put right, and how many changes were made, by check.

    A span that `placed` cannot place stays as it is, and so does a blank span that is the only one of its annotation:
    such rows are left out, since no repair is right.

    Args:
        sample: any sample.
        keep: checks whose faults stay.
    """
    changes: Counter[str] = Counter()
    annotations = tuple(_annotation(one, sample.response, changes, keep) for one in sample.annotations)
    return (msgspec.structs.replace(sample, annotations=annotations) if changes else sample), changes


def _annotation(annotation: Annotation, response: str, changes: Counter[str], keep: Collection[str]) -> Annotation:
    kept: list[Span] = []
    seen: set[tuple[int, int, str | None]] = set()
    for span in annotation.spans or ():
        found = placed(span, response)
        if isinstance(found, Placed) and "text_mismatch" not in keep:
            changes["text_mismatch"] += 1
            span = found.span
        trimmed = _trimmed(span, response)
        if trimmed is None and "blank_span" not in keep:
            changes["blank_span"] += 1
            continue
        if trimmed is None or "span_edges" in keep:
            trimmed = span
        if trimmed is not span:
            changes["span_edges"] += 1
        key = (trimmed.start, trimmed.end, trimmed.type)
        if key in seen and "repeated_span" not in keep:
            changes["repeated_span"] += 1
            continue
        seen.add(key)
        kept.append(trimmed)
    return annotation if annotation.spans is None else msgspec.structs.replace(annotation, spans=tuple(kept))


def is_blank(text: str) -> bool:
    """Whether a marked text holds nothing that could be wrong: no letter, no digit, no symbol."""
    return not any(char.isalnum() or unicodedata.category(char)[0] in "SM" for char in text)


def _trimmed(span: Span, response: str) -> Span | None:
    """Without white space at its edges; None where nothing is left that could be wrong."""
    text = response[span.start : span.end]
    if is_blank(text):
        return None
    start = span.start + len(text) - len(text.lstrip())
    end = span.end - (len(text) - len(text.rstrip()))
    if (start, end) == (span.start, span.end):
        return span
    return msgspec.structs.replace(span, start=start, end=end, text=None if span.text is None else response[start:end])


def without_ranges(sample: Sample, ranges: Iterable[tuple[int, int]]) -> Sample | None:
    """The sample without parts of its response, all marks moved along.

    Args:
        sample: with any number of annotations.
        ranges: half-open ranges of the response.

    Returns:
        None where a mark would be empty after it, or where the ranges leave nothing.
    """
    gone = bytearray(len(sample.response))
    for start, end in ranges:
        gone[start:end] = b"\x01" * (end - start)
    response = "".join(char for char, out in zip(sample.response, gone, strict=True) if not out)
    moved = [0]
    for out in gone:
        moved.append(moved[-1] + (not out))
    annotations = []
    for annotation in sample.annotations:
        spans, units = _moved(annotation.spans, moved), _moved(annotation.units, moved)
        if (spans is None) != (annotation.spans is None) or (units is None) != (annotation.units is None):
            return None
        spans = None if spans is None else tuple(_with_text(span, response) for span in spans)
        annotations.append(msgspec.structs.replace(annotation, spans=spans, units=units))
    if not response.strip():
        return None
    meta = {key: value for key, value in sample.meta.items() if key not in _STALE}
    return msgspec.structs.replace(sample, response=response, annotations=tuple(annotations), meta=meta)


def _moved(marks: Sequence[Mark] | None, moved: Sequence[int]) -> tuple[Mark, ...] | None:
    """Marks at their new places; None where there are none, or one would be empty."""
    if marks is None or any(moved[mark.start] == moved[mark.end] for mark in marks):
        return None
    return tuple(msgspec.structs.replace(mark, start=moved[mark.start], end=moved[mark.end]) for mark in marks)


def _with_text(span: Span, response: str) -> Span:
    return span if span.text is None else msgspec.structs.replace(span, text=response[span.start : span.end])
