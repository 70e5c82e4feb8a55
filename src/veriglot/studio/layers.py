"""Layers: one person's annotation of one item; validation, and conversion to and from the page's data and records.

Offsets are half-open and count code points of the item's response (of a passage, for pointers into the evidence).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from veriglot.errors import InputError
from veriglot.records import Annotation, Kind, Pointer, Sample, Span, Unit
from veriglot.records.settings import StrictRecord, require
from veriglot.records.taxonomy import taxonomy
from veriglot.studio.project import NO_HALLUCINATION, Choice, Form, RatingEntry, TaskKind
from veriglot.text.segmentation import clusters

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence


__all__ = ["Layer", "LayerSpan", "LayerUnit"]


MAX_MARKS = 5000
"""Maximum number of spans, and of units, of one layer."""
MAX_ID = 64
"""Maximum characters of a span's id."""
_MAX_NOTE = 2000
_MAX_COMMENT = 10_000


class LayerSpan(StrictRecord):
    """A marked span.

    Attributes:
        id: unique in the layer; it stays when the span is changed.
        start: first code point.
        end: one past the last one.
        type: one of the form's types.
        rating: step in the form's rating of spans, from 1; None if not answered.
        note: the annotator's note.
    """

    id: str
    start: int
    end: int
    type: str
    rating: int | None = None
    note: str = ""


class LayerUnit(StrictRecord):
    """A labelled sentence or fact.

    Attributes:
        start: first code point.
        end: one past the last one.
        label: one of the form's labels of units; None if only facts were counted.
        evidence: pointers to the evidence for the label ("evidence copied", Kang et al., Table 5).
        flags: of the form's flags of units, such as `context_conflict`.
        counts: label to number of facts in the unit (Kang et al., Table 5, steps 2 to 5); empty if not counted.
    """

    start: int
    end: int
    label: str | None = None
    evidence: tuple[Pointer, ...] = ()
    flags: tuple[str, ...] = ()
    counts: dict[str, int] = {}  # noqa: RUF012


class Layer(StrictRecord):
    """One person's annotation of one item.

    Attributes:
        spans: in any order; they may nest and overlap.
        units: labelled sentences or facts.
        label: of the whole item.
        ratings: of the item: name to step, from 1.
        flags: of the item.
        source_flags: problems of the source or the question.
        skip: the reason for skipping the item, or None.
        comment: the annotator's comment.
        rejected: ids of rejected suggestions (`comparison.suggested_id`).
    """

    spans: tuple[LayerSpan, ...] = ()
    units: tuple[LayerUnit, ...] = ()
    label: str | None = None
    ratings: dict[str, int] = {}  # noqa: RUF012
    flags: tuple[str, ...] = ()
    source_flags: tuple[str, ...] = ()
    skip: str | None = None
    comment: str = ""
    rejected: tuple[str, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """Plain data with every field, but `rejected` only if not empty, so that older layers are written unchanged."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        if not self.rejected:
            del data["rejected"]
        return data

    def encode(self) -> str:
        """JSON in ASCII, which any database stores unchanged; the same for equal layers."""
        return json.dumps(self.to_data(), ensure_ascii=True, sort_keys=True, separators=(",", ":"))

    def marks(self, form: Form, length: int = 1) -> Iterator[tuple[int, int, str]]:
        """The marks of wrong text in a response of some length: start, end and type of spans and of units that are not
        clean.

        A layer that skips the item marks nothing; a label of the whole item is a mark over all of it.
        """
        if self.skip is not None:
            return
        yield from ((span.start, span.end, span.type) for span in self.spans)
        clean = taxonomy(form.taxonomy).clean if form.unit is not None else ()
        for unit in self.units:
            label = _label_of(unit, form)
            if label is not None and label not in clean:
                yield unit.start, unit.end, label
        if self.label not in {None, NO_HALLUCINATION} and length:
            yield 0, length, str(self.label)

    def content(self, form: Form, text: str) -> frozenset[tuple[int, int, str]] | None:
        """The content as a set of (start, end, type or label), for comparison; None if the layer skips the item.

        White space at the ends of spans is ignored; clean labels of units count.
        """
        if self.skip is not None:
            return None
        content = {(*_trimmed(text, span.start, span.end), span.type) for span in self.spans}
        labels = ((unit.start, unit.end, _label_of(unit, form)) for unit in self.units)
        content |= {(start, end, label) for start, end, label in labels if label is not None}
        if self.label is not None:
            content.add((0, len(text), self.label))
        return frozenset(mark for mark in content if mark[0] < mark[1])

    def check(self, form: Form, sample: Sample, *, complete: bool = False) -> None:
        """Reject a layer that does not fit the form and the item.

        With `complete` (for submission), every unit, label and required rating must have an answer, unless the item is
        skipped.

        Raises:
            InputError: it does not fit; `field` names the position, such as `spans[2].end`.
        """
        borders = CharBoundaries.of(sample.response)
        _check_spans(self, form, borders)
        _check_units(self, form, sample, borders)
        _check_item(self, form)
        if complete and self.skip is None:
            _check_complete(self, form, sample)

    def to_annotation(self, form: Form, sample: Sample, annotator: str) -> Annotation | None:
        """The annotation record of a layer that passed `check`, by an annotator; None if it skips the item."""
        if self.skip is not None:
            return None
        text = sample.response
        spans = tuple(
            Span(span.start, span.end, span.type, text=text[span.start : span.end])
            for span in sorted(self.spans, key=lambda span: (span.start, span.end, span.type))
        )
        ratings: dict[str, float | str] = dict(self.ratings)
        if form.span_rating is not None:
            name = form.span_rating.name
            ratings |= {f"{name}[{s.start}:{s.end}]": s.rating for s in self.spans if s.rating is not None}
        unit_flags = [f"{flag}[{unit.start}:{unit.end}]" for unit in self.units for flag in unit.flags]
        return Annotation(
            annotator=annotator,
            kind=Kind.HUMAN,
            taxonomy=form.taxonomy,
            spans=spans if form.has_spans else None,
            units=_annotation_units(self, form, text),
            ratings=ratings,
            flags=(*self.flags, *self.source_flags, *unit_flags),
        )

    @classmethod
    def from_annotation(cls, annotation: Annotation, form: Form, sample: Sample) -> Layer:
        """The layer for an annotation of a file; marks are extended to whole characters.

        If the form marks spans, spans with a supported type are dropped; types of another taxonomy are mapped.

        Raises:
            InputError: it has nothing that the form asks for.
            UsageError: its taxonomy cannot be mapped to the form's.
        """
        borders = CharBoundaries.of(sample.response)
        types = taxonomy(annotation.taxonomy).to(form.taxonomy)
        if form.task is TaskKind.PAIRS:
            return cls(label=_label(annotation, types))
        if form.unit is not None:
            if annotation.units is None:
                raise InputError(f"the layer of {annotation.annotator!r} labels no units", field="annotations")
            return cls(units=tuple(_layer_units(annotation.units, types, borders)))
        if annotation.spans is None:
            raise InputError(f"the layer of {annotation.annotator!r} marks no spans", field="annotations")
        spans = dict.fromkeys(_spans(annotation, form, types, borders))
        return cls(spans=tuple(LayerSpan(f"s{number}", *span) for number, span in enumerate(spans, 1)))


# Validation against the item and the form: spans inside the text and on whole characters, names that the form
# has.


Range = tuple[int, int]


class CharBoundaries(NamedTuple):
    """Allowed ends of marks in a text of a length, in code points: not inside characters of several code points."""

    length: int
    inside: frozenset[int]

    @classmethod
    def of(cls, text: str) -> CharBoundaries:
        """The borders of a text."""
        return cls(len(text), frozenset(offset for start, end in clusters(text) for offset in range(start + 1, end)))

    def refuse(self, start: int, end: int, field: str) -> None:
        """Reject a range that is empty, ends outside the text, or splits a character."""
        fits, marked = 0 <= start < end <= self.length, f"[{start}, {end})"
        require(fits, f"{marked} is empty or lies outside the text of {self.length} code points", field)
        for offset in (start, end):
            require(offset not in self.inside, f"{marked} cuts a character in two at {offset}", field)

    def widened(self, start: int, end: int) -> Range:
        """The smallest range of whole characters around a range in the text."""
        while start in self.inside:
            start -= 1
        while end in self.inside:
            end += 1
        return start, end


def _trimmed(text: str, start: int, end: int) -> Range:
    """A range of whole characters without outer white space; empty if there is nothing else."""
    if not (text[start].isspace() or text[end - 1].isspace()):
        return start, end
    long = [(start + first, start + after) for first, after in clusters(text[start:end])]  # a space may have an accent
    after, before = dict(long), {end: start for start, end in long}
    while start < end and text[start : after.get(start, start + 1)].isspace():
        start = after.get(start, start + 1)
    while start < end and text[before.get(end, end - 1) : end].isspace():
        end = before.get(end, end - 1)
    return start, end


def _check_spans(layer: Layer, form: Form, borders: CharBoundaries) -> None:
    require(form.has_spans or not layer.spans, "no spans are marked in this project", "spans")
    _check_count(layer.spans, "spans")
    types = _names(form.types)
    for number, span in enumerate(layer.spans):
        field = f"spans[{number}]"
        require(span.id, f"an id has 1 to {MAX_ID} characters", f"{field}.id")
        _check_text(span.id, MAX_ID, f"{field}.id")
        borders.refuse(span.start, span.end, field)
        _check_word(span.type, types, "type of span", f"{field}.type")
        if span.rating is not None:
            _check_step(span.rating, form.span_rating, f"{field}.rating")
        _check_text(span.note, _MAX_NOTE, f"{field}.note")
    _check_distinct((span.id for span in layer.spans), "id", "spans")
    _check_distinct(((span.start, span.end, span.type) for span in layer.spans), "place and type", "spans")


def _check_units(layer: Layer, form: Form, sample: Sample, borders: CharBoundaries) -> None:
    require(form.unit is not None or not layer.units, "no units are labelled in this project", "units")
    _check_count(layer.units, "units")
    labels = _names(form.unit_labels)
    passages: dict[str, CharBoundaries] = {}
    for number, unit in enumerate(layer.units):
        field = f"units[{number}]"
        borders.refuse(unit.start, unit.end, field)
        if unit.label is not None:
            _check_word(unit.label, labels, "label of a unit", f"{field}.label")
        for label, count in unit.counts.items():
            _check_word(label, labels, "label of a unit", f"{field}.counts")
            require(0 <= count <= MAX_MARKS, f"{count} is no count", f"{field}.counts.{label}")
        _check_flags(unit.flags, form.unit_flags, "flag of a unit", f"{field}.flags")
        _check_evidence(unit, sample, passages, f"{field}.evidence")
    _check_distinct(((unit.start, unit.end) for unit in layer.units), "place", "units")


def _check_evidence(unit: LayerUnit, sample: Sample, passages: dict[str, CharBoundaries], field: str) -> None:
    _check_count(unit.evidence, field)
    for number, pointer in enumerate(unit.evidence):
        if pointer.id not in passages:
            text = next((passage.text for passage in sample.evidence if passage.id == pointer.id), None)
            if text is None:
                raise InputError(f"the item has no passage {pointer.id!r}", field=f"{field}[{number}].id")
            passages[pointer.id] = CharBoundaries.of(text)
        passages[pointer.id].refuse(pointer.start, pointer.end, f"{field}[{number}]")


def _check_item(layer: Layer, form: Form) -> None:
    if layer.label is not None:
        _check_word(layer.label, _names(form.labels), "label", "label")
    ratings = {rating.name: rating for rating in form.item_ratings}
    for name, step in layer.ratings.items():
        _check_word(name, ratings, "rating", "ratings")
        _check_step(step, ratings[name], f"ratings.{name}")
    _check_flags(layer.flags, form.flags, "flag", "flags")
    _check_flags(layer.source_flags, form.source_flags, "flag", "source_flags")
    if layer.skip is not None:
        _check_word(layer.skip, form.skip_reasons, "reason to skip", "skip")
    _check_text(layer.comment, _MAX_COMMENT, "comment")
    _check_count(layer.rejected, "rejected")
    for number, id_ in enumerate(layer.rejected):
        _check_text(id_, MAX_ID, f"rejected[{number}]")
    _check_distinct(layer.rejected, "id", "rejected")


def _check_complete(layer: Layer, form: Form, sample: Sample) -> None:
    is_labelled = not form.labels or layer.label is not None
    require(is_labelled, "the item has no label yet", "label", "Choose a label, or skip the item.")
    answered = {(unit.start, unit.end) for unit in layer.units if unit.label is not None or unit.counts}
    missing = [unit for unit in form.units_of(sample) if unit not in answered]
    if missing:
        start, end = missing[0]
        message = f"{len(missing)} {form.unit}s have no label yet, the first at [{start}, {end})"
        raise InputError(message, "Label each, or skip the item.", field="units")
    for rating in form.item_ratings:
        is_answered = not rating.required or rating.name in layer.ratings
        require(is_answered, "this is not answered yet", f"ratings.{rating.name}")
    if form.span_rating is not None and form.span_rating.required:
        for number, span in enumerate(layer.spans):
            require(span.rating is not None, "this is not answered yet", f"spans[{number}].rating")


def _check_step(step: int, rating: RatingEntry | None, field: str) -> None:
    if rating is None:
        raise InputError("there is nothing to rate in this project", field=field)
    require(1 <= step <= rating.steps, f"a step lies between 1 and {rating.steps}, but this is {step}", field)


def _names(choices: Sequence[Choice]) -> list[str]:
    return [choice.name for choice in choices]


def _check_text(text: str, most: int, field: str) -> None:
    require(len(text) <= most, f"this has {len(text)} characters, and {most} are the most", field)
    whole = not any("\ud800" <= char <= "\udfff" for char in text)
    require(whole, "this holds half of a character (a lone surrogate)", field)


def _check_word(word: str, known: Collection[str], what: str, field: str) -> None:
    require(word in known, f"{word!r} is no {what} of this project ({', '.join(known) or 'none'})", field)


def _check_flags(flags: tuple[str, ...], known: Collection[str], what: str, field: str) -> None:
    for flag in flags:
        _check_word(flag, known, what, field)
    _check_distinct(flags, "flag", field)


def _check_count(marks: Sequence[object], field: str) -> None:
    require(len(marks) <= MAX_MARKS, f"there are {len(marks)} of them, and {MAX_MARKS} are the most", field)


def _check_distinct(values: Iterable[object], what: str, field: str) -> None:
    twice = [value for value, count in Counter(values).items() if count > 1]
    require(not twice, f"two share the {what} {next(iter(twice), None)!r}", field)


# Layers to and from the annotations of samples in files.
#
# An annotation has less than a layer: notes and comments stay in the layer, which exports store too. Answers per span
# and per unit have the range in their names: `fools_reader[3:9]`.


def _label_of(unit: LayerUnit, form: Form) -> str | None:
    """The label of a unit; if only its facts were counted, the taxonomy's first label with a count, supported last.

    As in Kang et al. (section 5.1), a unit is factual only if all its facts are.
    """
    if unit.label is not None:
        return unit.label
    clean = taxonomy(form.taxonomy).clean
    counted = [choice.name for choice in form.unit_labels if unit.counts.get(choice.name)]
    return next((name for name in counted if name not in clean), next(iter(counted), None))


def _layer_units(units: Iterable[Unit], types: dict[str, str], borders: CharBoundaries) -> Iterator[LayerUnit]:
    """The units of an annotation, each range once, with labels of the form's taxonomy."""
    result: dict[tuple[int, int, str], LayerUnit] = {}
    for unit in units:
        label, bounds = types.get(unit.label), borders.widened(unit.start, unit.end)
        if label is not None:
            counts = {types[name]: count for name, count in unit.counts.items() if name in types}
            result.setdefault((*bounds, label), LayerUnit(*bounds, label, unit.evidence, counts=counts))
    yield from result.values()


def _annotation_units(layer: Layer, form: Form, text: str) -> tuple[Unit, ...] | None:
    if form.unit is not None:
        units = ((unit, _label_of(unit, form)) for unit in sorted(layer.units, key=lambda unit: (unit.start, unit.end)))
        return tuple(
            Unit(unit.start, unit.end, label, evidence=unit.evidence, counts=unit.counts)
            for unit, label in units
            if label is not None
        )
    if not form.labels:
        return None
    if layer.label in {None, NO_HALLUCINATION} or not text:
        return ()
    return (Unit(0, len(text), str(layer.label)),)


def _spans(
    annotation: Annotation, form: Form, types: dict[str, str], borders: CharBoundaries
) -> Iterator[tuple[int, int, str]]:
    known = {choice.name for choice in form.types}
    only = next(iter(known)) if len(known) == 1 else None
    for span in annotation.spans or ():
        type_ = types.get(span.type) if span.type is not None else only
        if type_ in known and type_ is not None:
            yield (*borders.widened(span.start, span.end), type_)


def _label(annotation: Annotation, types: dict[str, str]) -> str:
    """The label of a pair: that of the unit over the whole text; without a unit, no hallucination."""
    if annotation.units is None:
        raise InputError(f"the layer of {annotation.annotator!r} labels no pair", field="annotations")
    labels = {types.get(unit.label) for unit in annotation.units} - {None}
    if len(labels) > 1:
        raise InputError(f"the layer of {annotation.annotator!r} has several labels", field="annotations")
    return next((label for label in labels if label is not None), NO_HALLUCINATION)
