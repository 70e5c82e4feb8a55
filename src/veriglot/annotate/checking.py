"""Whether a layer fits its item and its form: spans inside the text and on whole characters, words that the form
has."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from veriglot.annotate.layers import MAX_COMMENT, MAX_ID, MAX_MARKS, MAX_NOTE, refuse_unknown, refuse_unsound_text
from veriglot.errors import InputError
from veriglot.text.graphemes import clusters

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.annotate.entries import RatingEntry
    from veriglot.annotate.forms import Choice, Form
    from veriglot.annotate.layers import Layer, LayerUnit
    from veriglot.records import Sample

__all__ = ["Borders", "check", "units_of"]

Range = tuple[int, int]


class Borders(NamedTuple):
    """Where marks may begin and end in a text.

    Attributes:
        length: of the text, in code points.
        inside: the places inside characters of several code points.
    """

    length: int
    inside: frozenset[int]

    @classmethod
    def of(cls, text: str) -> Borders:
        """Those of a text."""
        return cls(len(text), frozenset(place for start, end in clusters(text) for place in range(start + 1, end)))

    def refuse(self, start: int, end: int, field: str) -> None:
        """Refuse a range that is empty, ends outside the text, or cuts a character.

        Raises:
            InputError: it does.
        """
        if not 0 <= start < end <= self.length:
            raise InputError(
                f"[{start}, {end}) is empty or lies outside the text of {self.length} code points", field=field
            )
        for place in (start, end):
            if place in self.inside:
                raise InputError(f"[{start}, {end}) cuts a character in two at {place}", field=field)

    def widened(self, start: int, end: int) -> Range:
        """The smallest range of whole characters around one that lies in the text."""
        while start in self.inside:
            start -= 1
        while end in self.inside:
            end += 1
        return start, end


def units_of(form: Form, sample: Sample) -> list[Range]:
    """The units of a response that are labelled one by one, in order; none where the form has no units."""
    from veriglot.text import facts, sentences

    if form.unit is None:
        return []
    if form.unit == "sentence":
        return sentences(sample.response, sample.language)
    return list(dict.fromkeys((fact.start, fact.end) for fact in facts(sample.response, sample.language)))


def check(layer: Layer, form: Form, sample: Sample, *, complete: bool = False) -> None:
    """Refuse a layer that does not fit.

    Args:
        layer: what was said.
        form: what there was to say.
        sample: the item.
        complete: whether it is handed in: then every unit, label and required rating has an answer, or the item is
            skipped.

    Raises:
        InputError: it does not fit; `field` names the place, such as `spans[2].end`.
    """
    borders = Borders.of(sample.response)
    _check_spans(layer, form, borders)
    _check_units(layer, form, sample, borders)
    _check_item(layer, form)
    if complete and layer.skip is None:
        _check_complete(layer, form, sample)


def _check_spans(layer: Layer, form: Form, borders: Borders) -> None:
    if layer.spans and not form.has_spans:
        raise InputError("no spans are marked in this project", field="spans")
    _few(layer.spans, "spans")
    types = _names(form.types)
    for number, span in enumerate(layer.spans):
        field = f"spans[{number}]"
        if not span.id or len(span.id) > MAX_ID:
            raise InputError(f"an id has 1 to {MAX_ID} characters", field=f"{field}.id")
        refuse_unsound_text(span.id, MAX_ID, f"{field}.id")
        borders.refuse(span.start, span.end, field)
        refuse_unknown(span.type, types, "type of span", f"{field}.type")
        if span.rating is not None:
            _check_step(span.rating, form.span_rating, f"{field}.rating")
        refuse_unsound_text(span.note, MAX_NOTE, f"{field}.note")
    _once((span.id for span in layer.spans), "id", "spans")
    _once(((span.start, span.end, span.type) for span in layer.spans), "place and type", "spans")


def _check_units(layer: Layer, form: Form, sample: Sample, borders: Borders) -> None:
    if layer.units and form.unit is None:
        raise InputError("no units are labelled in this project", field="units")
    _few(layer.units, "units")
    labels = _names(form.unit_labels)
    passages: dict[str, Borders] = {}
    for number, unit in enumerate(layer.units):
        field = f"units[{number}]"
        borders.refuse(unit.start, unit.end, field)
        if unit.label is not None:
            refuse_unknown(unit.label, labels, "label of a unit", f"{field}.label")
        for label, count in unit.counts.items():
            refuse_unknown(label, labels, "label of a unit", f"{field}.counts")
            if not 0 <= count <= MAX_MARKS:
                raise InputError(f"{count} is no count", field=f"{field}.counts.{label}")
        for flag in unit.flags:
            refuse_unknown(flag, form.unit_flags, "flag of a unit", f"{field}.flags")
        _once(unit.flags, "flag", f"{field}.flags")
        _check_evidence(unit, sample, passages, f"{field}.evidence")
    _once(((unit.start, unit.end) for unit in layer.units), "place", "units")


def _check_evidence(unit: LayerUnit, sample: Sample, passages: dict[str, Borders], field: str) -> None:
    _few(unit.evidence, field)
    for number, pointer in enumerate(unit.evidence):
        if pointer.id not in passages:
            text = next((passage.text for passage in sample.evidence if passage.id == pointer.id), None)
            if text is None:
                raise InputError(f"the item has no passage {pointer.id!r}", field=f"{field}[{number}].id")
            passages[pointer.id] = Borders.of(text)
        passages[pointer.id].refuse(pointer.start, pointer.end, f"{field}[{number}]")


def _check_item(layer: Layer, form: Form) -> None:
    if layer.label is not None:
        refuse_unknown(layer.label, _names(form.labels), "label", "label")
    ratings = {rating.name: rating for rating in form.item_ratings}
    for name, step in layer.ratings.items():
        refuse_unknown(name, ratings, "rating", "ratings")
        _check_step(step, ratings[name], f"ratings.{name}")
    for field, known in (("flags", form.flags), ("source_flags", form.source_flags)):
        said: tuple[str, ...] = getattr(layer, field)
        for flag in said:
            refuse_unknown(flag, known, "flag", field)
        _once(said, "flag", field)
    if layer.skip is not None:
        refuse_unknown(layer.skip, form.skip_reasons, "reason to skip", "skip")
    refuse_unsound_text(layer.comment, MAX_COMMENT, "comment")
    _few(layer.rejected, "rejected")
    for number, id_ in enumerate(layer.rejected):
        refuse_unsound_text(id_, MAX_ID, f"rejected[{number}]")
    _once(layer.rejected, "id", "rejected")


def _check_complete(layer: Layer, form: Form, sample: Sample) -> None:
    if form.labels and layer.label is None:
        raise InputError("the item has no label yet", field="label", remedy="Choose a label, or skip the item.")
    answered = {(unit.start, unit.end) for unit in layer.units if unit.label is not None or unit.counts}
    missing = [unit for unit in units_of(form, sample) if unit not in answered]
    if missing:
        start, end = missing[0]
        raise InputError(
            f"{len(missing)} {form.unit}s have no label yet, the first at [{start}, {end})",
            field="units",
            remedy="Label each, or skip the item.",
        )
    for rating in form.item_ratings:
        if rating.required and rating.name not in layer.ratings:
            raise InputError("this is not answered yet", field=f"ratings.{rating.name}")
    if form.span_rating is not None and form.span_rating.required:
        for number, span in enumerate(layer.spans):
            if span.rating is None:
                raise InputError("this is not answered yet", field=f"spans[{number}].rating")


def _check_step(step: int, rating: RatingEntry | None, field: str) -> None:
    if rating is None:
        raise InputError("there is nothing to rate in this project", field=field)
    if not 1 <= step <= rating.steps:
        raise InputError(f"a step lies between 1 and {rating.steps}, but this is {step}", field=field)


def _names(choices: Sequence[Choice]) -> list[str]:
    return [choice.name for choice in choices]


def _few(marks: Sequence[object], field: str) -> None:
    if len(marks) > MAX_MARKS:
        raise InputError(f"there are {len(marks)} of them, and {MAX_MARKS} are the most", field=field)


def _once(values: Iterable[object], what: str, field: str) -> None:
    twice = next((value for value, count in Counter(values).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"two share the {what} {twice!r}", field=field)
