"""What can be told of one sample by itself: its labels, its offsets, its characters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from veriglot.build.checking.repairs import Placed, is_blank, placed
from veriglot.errors import UnknownNameError
from veriglot.records import taxonomies, taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.errors import InputError
    from veriglot.records import Annotation, Sample, Span

__all__ = ["Fault", "is_labelled", "kind_of_error", "sample_faults", "span_faults"]

_BROKEN = re.compile(r"[\ufffd\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")
_OFFSETS = re.compile(r"\.(?:start|end|spans|units)\b|(?:spans|units|hard_labels|soft_labels)(?:\[|$)")


class Fault(NamedTuple):
    """Something wrong with a sample.

    Attributes:
        check: the check that it belongs to.
        detail: what is wrong, in a few words.
        kind: which kind of it, where the check tells kinds.
        text: the text concerned, if any.
        layer: whose labels, where the check tells them apart.
        lasting: whether no repair removes it, so that the row is left out where the check repairs.
    """

    check: str
    detail: str
    kind: str | None = None
    text: str | None = None
    lasting: bool = False
    layer: str | None = None


def kind_of_error(error: InputError) -> str:
    """The check that a row belongs to that could not be read."""
    if error.field == "id" and "occurred before" in error.detail:
        return "repeated_id"
    about_offsets = "half-open" in error.detail or "ends beyond" in error.detail
    if about_offsets or (error.field is not None and _OFFSETS.search(error.field)):
        return "bad_offsets"
    return "unreadable_row"


def is_labelled(sample: Sample) -> bool:
    """Whether somebody marked spans in it, or looked and found none."""
    return any(annotation.spans is not None for annotation in sample.annotations)


def sample_faults(sample: Sample) -> Iterator[Fault]:
    """Faults of the sample as a whole."""
    labelled = bool(sample.annotations)
    if labelled and not sample.response.strip():
        yield Fault("no_response", "it has labels and no response")
    if labelled and not any(passage.text.strip() for passage in sample.evidence):
        yield Fault("no_evidence", "there is nothing to hold it against")
    if sample.language is None:
        yield Fault("no_language", "no language is stated", text=sample.response or sample.question)
    tags = _tags().findall(sample.response)
    if tags:
        yield Fault("leftover_tags", f"{tags[0]} stands in the response", kind=tags[0].lower(), text=sample.response)
    for name, text in (("response", sample.response), *(("evidence", passage.text) for passage in sample.evidence)):
        broken = _BROKEN.search(text)
        if broken:
            around = text[max(0, broken.start() - 20) : broken.end() + 20]
            yield Fault("broken_characters", f"U+{ord(broken.group()):04X} in the {name}", kind=name, text=around)
            break


_pattern: dict[str, re.Pattern[str]] = {}


def _tags() -> re.Pattern[str]:
    """Inline tags of any taxonomy."""
    if "tags" not in _pattern:
        names = sorted({type_ for entry in taxonomies().values() for type_ in entry.types} | {"mark", "delete"})
        _pattern["tags"] = re.compile(rf"</?(?:{'|'.join(map(re.escape, names))})>", re.IGNORECASE)
    return _pattern["tags"]


def span_faults(sample: Sample) -> Iterator[Fault]:
    """Faults of single spans and of the spans of one annotator together; one for each span concerned."""
    for annotation in sample.annotations:
        spans = annotation.spans or ()
        lost = 0
        for span in spans:
            text = sample.response[span.start : span.end]
            yield from _type_fault(annotation, span, text)
            where = placed(span, sample.response)
            if where is not span:
                unit = where.unit if isinstance(where, Placed) else "unknown"
                detail = f"it says {span.text!r} and cuts out {text!r}"
                yield Fault("text_mismatch", detail, kind=unit, text=text, lasting=where is None)
            if is_blank(text):
                lost += 1
                alone = lost == len(spans)
                yield Fault("blank_span", f"{text!r} is marked", kind=str(annotation.kind), lasting=alone)
            elif text != text.strip():
                yield Fault("span_edges", f"{text!r} is marked", kind=str(annotation.kind))
        yield from _together(annotation.spans or (), sample.response)


def _type_fault(annotation: Annotation, span: Span, text: str) -> Iterator[Fault]:
    try:
        types = taxonomy(annotation.taxonomy).types
    except UnknownNameError:
        yield Fault("unknown_type", f"there is no taxonomy {annotation.taxonomy!r}", kind=annotation.taxonomy)
        return
    if span.type is not None and span.type not in types:
        detail = f"{span.type!r} is no type of {annotation.taxonomy}"
        yield Fault("unknown_type", detail, kind=span.type, text=text)


def _together(spans: Sequence[Span], response: str) -> Iterator[Fault]:
    """What spans of one annotator are to each other; each span is held against those that begin before it."""
    open_: list[Span] = []
    seen: set[tuple[int, int, str | None]] = set()
    for span in sorted(spans, key=lambda one: (one.start, -one.end)):
        key = (span.start, span.end, span.type)
        text = response[span.start : span.end]
        if key in seen:
            yield Fault("repeated_span", f"{span.type} twice", text=text)
            continue
        seen.add(key)
        open_ = [one for one in open_ if one.end > span.start]
        if any(one.end < span.end for one in open_):
            yield Fault("overlapping_spans", "it crosses another", kind="crossing", text=text)
        elif open_:
            yield Fault("overlapping_spans", "it lies in another", kind="nested", text=text)
        open_.append(span)
