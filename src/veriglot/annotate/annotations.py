"""Layers to and from the annotations of samples, which files hold.

An annotation holds less than a layer: notes, comments, counts and pointers of units into the evidence stay in the
layer, which exports keep beside it. Answers per span and per unit are named by their place: `fools_reader[3:9]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.annotate.checking import Borders
from veriglot.annotate.entries import TaskKind
from veriglot.annotate.layers import Layer, LayerSpan, LayerUnit
from veriglot.errors import InputError
from veriglot.records import Annotation, Kind, Span, Unit, taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.annotate.forms import Form
    from veriglot.records import Sample

__all__ = ["from_annotation", "to_annotation"]

_NO_HALLUCINATION = "0"


def to_annotation(layer: Layer, form: Form, sample: Sample, annotator: str) -> Annotation | None:
    """What records hold of a layer; None where the item was skipped.

    Args:
        layer: one that `checking.check` lets pass.
        form: the form that it was filled in on.
        sample: its item.
        annotator: the name that the annotation bears.
    """
    if layer.skip is not None:
        return None
    text = sample.response
    spans = tuple(
        Span(span.start, span.end, span.type, text=text[span.start : span.end])
        for span in sorted(layer.spans, key=lambda span: (span.start, span.end, span.type))
    )
    ratings: dict[str, float | str] = dict(layer.ratings)
    if form.span_rating is not None:
        name = form.span_rating.name
        ratings |= {f"{name}[{s.start}:{s.end}]": s.rating for s in layer.spans if s.rating is not None}
    unit_flags = [f"{flag}[{unit.start}:{unit.end}]" for unit in layer.units for flag in unit.flags]
    return Annotation(
        annotator=annotator,
        kind=Kind.HUMAN,
        taxonomy=form.taxonomy,
        spans=spans if form.has_spans else None,
        units=_units(layer, form, text),
        ratings=ratings,
        flags=(*layer.flags, *layer.source_flags, *unit_flags),
    )


def _units(layer: Layer, form: Form, text: str) -> tuple[Unit, ...] | None:
    if form.unit is not None:
        found = sorted(layer.units, key=lambda unit: (unit.start, unit.end))
        return tuple(Unit(unit.start, unit.end, unit.label) for unit in found if unit.label is not None)
    if not form.labels:
        return None
    if layer.label in {None, _NO_HALLUCINATION} or not text:
        return ()
    return (Unit(0, len(text), str(layer.label)),)


def from_annotation(annotation: Annotation, form: Form, sample: Sample) -> Layer:
    """The layer that an annotation of a file stands for; marks are widened to whole characters.

    Spans of types that count as supported are left out where the form marks spans; types of another taxonomy are
    mapped.

    Raises:
        InputError: it holds nothing that the form asks for.
        UsageError: its taxonomy cannot be brought to the form's.
    """
    borders = Borders.of(sample.response)
    types = taxonomy(annotation.taxonomy).to(form.taxonomy)
    if form.task is TaskKind.PAIRS:
        return Layer(label=_label(annotation, types))
    if form.unit is not None:
        if annotation.units is None:
            raise InputError(f"the layer of {annotation.annotator!r} labels no units", field="annotations")
        units = [(*borders.widened(unit.start, unit.end), types.get(unit.label)) for unit in annotation.units]
        return Layer(units=tuple(LayerUnit(*unit) for unit in dict.fromkeys(units) if unit[2] is not None))
    if annotation.spans is None:
        raise InputError(f"the layer of {annotation.annotator!r} marks no spans", field="annotations")
    found = dict.fromkeys(_spans(annotation, form, types, borders))
    return Layer(spans=tuple(LayerSpan(f"s{number}", *span) for number, span in enumerate(found, 1)))


def _spans(
    annotation: Annotation, form: Form, types: dict[str, str], borders: Borders
) -> Iterator[tuple[int, int, str]]:
    known = {choice.name for choice in form.types}
    only = next(iter(known)) if len(known) == 1 else None
    for span in annotation.spans or ():
        type_ = types.get(span.type) if span.type is not None else only
        if type_ in known and type_ is not None:
            yield (*borders.widened(span.start, span.end), type_)


def _label(annotation: Annotation, types: dict[str, str]) -> str:
    """The label of a pair: that of the unit over the whole; no unit is no hallucination."""
    if annotation.units is None:
        raise InputError(f"the layer of {annotation.annotator!r} labels no pair", field="annotations")
    labels = {types.get(unit.label) for unit in annotation.units} - {None}
    if len(labels) > 1:
        raise InputError(f"the layer of {annotation.annotator!r} has several labels", field="annotations")
    return next((label for label in labels if label is not None), _NO_HALLUCINATION)
