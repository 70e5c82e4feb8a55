"""A layer: what one person says of one item, as the page sends it and the store keeps it; checked, to and from records.

Offsets are half-open and count code points of the item's response (of a passage, in pointers into the evidence).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import InputError
from veriglot.records import Pointer, from_mapping

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["EMPTY", "Layer", "LayerSpan", "LayerUnit", "decode", "encode", "from_data", "to_data"]

MAX_MARKS = 5000
"""Spans, and units, of one layer."""
MAX_NOTE = 2000
"""Code points of a note at a span."""
MAX_COMMENT = 10_000
"""Code points of a comment on the item."""
MAX_ID = 64


class LayerSpan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A marked span.

    Attributes:
        id: its name inside the layer, kept when the span is changed.
        start: first code point.
        end: one past the last one.
        type: of the form's types.
        rating: the step of the form's rating of spans, from 1; None where it was not answered.
        note: of the annotator's.
    """

    id: str
    start: int
    end: int
    type: str
    rating: int | None = None
    note: str = ""


class LayerUnit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A labelled sentence or fact.

    Attributes:
        start: first code point.
        end: one past the last one.
        label: of the form's labels of units; None where only facts were counted.
        evidence: the places in the evidence that the label rests on ("evidence copied", kang, Table 5).
        flags: of the form's flags of units, such as `context_conflict`.
        counts: how many facts of the unit have which label (kang, Table 5, steps 2 to 5); empty where nobody counted.
    """

    start: int
    end: int
    label: str | None = None
    evidence: tuple[Pointer, ...] = ()
    flags: tuple[str, ...] = ()
    counts: dict[str, int] = {}


class Layer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one person says of one item.

    Attributes:
        spans: in any order; they may nest and overlap.
        units: labelled sentences or facts.
        label: of the whole item.
        ratings: of the item, by name: the step, from 1.
        flags: of the item.
        source_flags: what is wrong with the source or the question.
        skip: why the item is left out, or None.
        comment: of the annotator's.
        rejected: ids of suggestions that the annotator rejected (`suggesting.suggested_id`).
    """

    spans: tuple[LayerSpan, ...] = ()
    units: tuple[LayerUnit, ...] = ()
    label: str | None = None
    ratings: dict[str, int] = {}
    flags: tuple[str, ...] = ()
    source_flags: tuple[str, ...] = ()
    skip: str | None = None
    comment: str = ""
    rejected: tuple[str, ...] = ()


EMPTY = Layer()


def from_data(data: Any) -> Layer:
    """A layer from decoded JSON; checked for its shape only, see `checking.check` for the rest.

    Raises:
        InputError: a field is unknown, missing or of a wrong kind; `field` names the place.
    """
    return from_mapping(data, Layer)


def to_data(layer: Layer) -> dict[str, Any]:
    """Plain data, with every field; `rejected` only where something was: layers of before are written as ever."""
    data: dict[str, Any] = msgspec.to_builtins(layer)
    if not layer.rejected:
        del data["rejected"]
    return data


def encode(layer: Layer) -> str:
    """JSON in ASCII, the same for equal layers; any database keeps it as it is."""
    return json.dumps(to_data(layer), ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def decode(text: str) -> Layer:
    """The layer that `encode` wrote.

    Raises:
        InputError: it is none.
    """
    return from_data(json.loads(text))


def refuse_unsound_text(text: str, most: int, field: str) -> None:
    """Refuse a text that is too long, or that cannot be written as UTF-8.

    Raises:
        InputError: it is so.
    """
    if len(text) > most:
        raise InputError(f"this has {len(text)} characters, and {most} are the most", field=field)
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise InputError("this holds half of a character (a lone surrogate)", field=field)


def refuse_unknown(value: str, known: Collection[str], what: str, field: str) -> None:
    """Refuse a word that the form does not have.

    Raises:
        InputError: it does not have it.
    """
    if value not in known:
        listed = ", ".join(known) or "none"
        raise InputError(f"{value!r} is no {what} of this project ({listed})", field=field)
