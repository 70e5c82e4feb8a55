"""Records to and from JSON and TOML: fast, checked, with the field named where something is wrong.

Readers ignore keys they do not know and keep them in `meta`; writers leave out what is null (DESIGN, section 6).
"""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

import msgspec

from veriglot.errors import InputError, UnknownNameError
from veriglot.records.prediction import Prediction
from veriglot.records.sample import Annotation, Evidence, Generator, Sample, Span, Unit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from veriglot.errors import UsageError

__all__ = ["decode_json", "encode", "from_mapping", "prediction_from", "read_toml_records", "sample_from"]


T = TypeVar("T")

_SAMPLE_KEYS = frozenset(Sample.__struct_fields__)
_EVIDENCE_KEYS, _GENERATOR_KEYS = frozenset(Evidence.__struct_fields__), frozenset(Generator.__struct_fields__)
_ANNOTATION_KEYS = frozenset(Annotation.__struct_fields__)
_SPAN_KEYS, _UNIT_KEYS = frozenset(Span.__struct_fields__), frozenset(Unit.__struct_fields__)
_PATH_IN_MESSAGE = re.compile(r" - at `\$\.?([^`]*)`$")
_MISSING = re.compile(r"missing required field `([^`]*)`")
_NAMED_PLACE = re.compile(r" at `([^`]*)`")
_WRONG_KIND = re.compile(r"^Expected `([^`]*)`, got `([^`]*)`$")
_KINDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "null",
    "object": "an object",
    "str": "a string",
}
_REMEDIES = {
    "evidence": 'Write evidence as a list of objects: [{"text": "..."}].',
    "id": "Every row needs an id of its own, a string.",
}
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def decode_json(line: bytes | str) -> Any:
    """Parse one JSON text.

    Raises:
        InputError: it is not valid JSON, or not valid UTF-8; the message says where it broke off.
    """
    try:
        return _decoder.decode(line)
    except UnicodeDecodeError as error:
        raise InputError(
            f"this is not valid UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}",
            remedy="Convert the file to UTF-8 first.",
        ) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"this is not valid JSON: {error}", remedy="Was the line cut off?") from error


def from_mapping(data: Any, type_: type[T]) -> T:
    """Check plain Python data against a record type.

    Raises:
        InputError: it does not fit; `field` names the place.
    """
    try:
        return msgspec.convert(data, type_)
    except msgspec.ValidationError as error:
        message = str(error)
        match = _PATH_IN_MESSAGE.search(message)
        field = match.group(1) if match else ""
        detail = message[: match.start()] if match else message
        named = _NAMED_PLACE.search(detail)
        missing = _MISSING.search(detail)
        if missing:
            field = f"{field}.{missing.group(1)}" if field else missing.group(1)
            detail = "it is missing"
        if named:  # a check that spans several fields names its own place
            field, detail = named.group(1), detail.replace(named.group(0), "")
        raise InputError(_plain(detail), field=field or None, remedy=_remedy(field)) from error


def _plain(detail: str) -> str:
    """What msgspec says of a wrong kind, in the words of JSON; `str | null` names more than one."""
    match = _WRONG_KIND.match(detail)
    if not match:
        return detail
    wanted, got = (" or ".join(_KINDS.get(kind, kind) for kind in text.split(" | ")) for text in match.groups())
    return f"{wanted} is expected, and this is {got}"


def _remedy(field: str) -> str:
    return _REMEDIES.get(re.sub(r"\[\d+\]$", "", field), "")


def sample_from(data: Any) -> Sample:
    """A sample from a decoded JSON object; unknown keys go to `meta`.

    Those inside an object of the sample go there under their path, such as `evidence[0].score`.

    Raises:
        InputError: a field is missing, of the wrong type, or out of range.
    """
    if isinstance(data, dict):
        unknown = {key: value for key, value in data.items() if key not in _SAMPLE_KEYS}
        unknown.update(_unknown_inside(data))
        if unknown:
            known = {key: value for key, value in data.items() if key in _SAMPLE_KEYS}
            meta = known.get("meta")
            known["meta"] = {**unknown, **meta} if isinstance(meta, dict) else unknown
            data = known
        data = {key: value for key, value in data.items() if value is not None}
    return from_mapping(data, Sample)


def _unknown_inside(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The unknown keys of the sample's own objects, by path."""
    yield from _unknown_in([data.get("generator")], "generator", _GENERATOR_KEYS, numbered=False)
    yield from _unknown_in(data.get("evidence"), "evidence", _EVIDENCE_KEYS)
    annotations = data.get("annotations")
    yield from _unknown_in(annotations, "annotations", _ANNOTATION_KEYS)
    for index, annotation in enumerate(annotations if isinstance(annotations, list) else ()):
        if isinstance(annotation, dict):
            yield from _unknown_in(annotation.get("spans"), f"annotations[{index}].spans", _SPAN_KEYS)
            yield from _unknown_in(annotation.get("units"), f"annotations[{index}].units", _UNIT_KEYS)


def _unknown_in(items: Any, path: str, known: frozenset[str], *, numbered: bool = True) -> Iterator[tuple[str, Any]]:
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict) and not item.keys() <= known:
            prefix = f"{path}[{index}]" if numbered else path
            yield from ((f"{prefix}.{key}", value) for key, value in item.items() if key not in known)


def prediction_from(data: Any) -> Prediction:
    """A prediction from a decoded JSON object.

    Raises:
        InputError: a field is missing, of the wrong type, or out of range.
    """
    return from_mapping(data, Prediction)


def encode(record: msgspec.Struct) -> bytes:
    """One record as one line of JSON, without the line break; null fields are left out."""
    return _encoder.encode(record)


# A TOML file that people write, as records: every word of it is known, or it is refused with the nearest that is.


StructT = TypeVar("StructT", bound=msgspec.Struct)


def read_toml_records(path: Path, kind: type[StructT], what: str) -> StructT:
    """Read a file of settings.

    Args:
        path: the file.
        kind: the record of the whole file, its tables as fields.
        what: what the file is, in a word for messages ("study").

    Raises:
        InputError: it is no TOML, or a key or word is unknown (with the nearest that are known), missing or of a wrong
            kind. Of records, it does not name the file; use `InputError.at`.
    """
    data = _toml(path, what)
    _known(data, kind, "", what)
    return from_mapping(data, kind)


def _toml(path: Path, what: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError("there is no such file", path=str(path), remedy="Check the path.") from None
    except IsADirectoryError:
        raise InputError(f"this is a folder; a {what} is a TOML file", path=str(path)) from None
    except UnicodeDecodeError as error:
        raise InputError(f"this is not valid UTF-8: {error.reason}", path=str(path)) from None
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise InputError(
            f"this is not valid TOML: {error}", path=str(path), line=int(line[1]) if line else None
        ) from None


def _known(data: Any, kind: Any, path: str, what: str) -> None:
    """Refuse a key or a word that the records do not know, with the nearest that they do; kinds are left to them."""
    if isinstance(data, list):
        for row in data:
            _known(row, kind, path, what)
        return
    if not isinstance(data, dict):
        return
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in data.items():
        inside = f"{path}.{key}" if path else key
        if key not in fields:
            name = f"key of [{path}]" if path else f"table of a {what} file"
            raise _placed(UnknownNameError(name, key, fields), inside)
        for word in value if isinstance(value, list) else [value]:
            choice = _choice_in(fields[key])
            if choice and isinstance(word, str) and word not in choice:
                raise _placed(UnknownNameError(key.removesuffix("s"), word, choice), inside)
        record = _record_in(fields[key])
        if record is not None:
            _known(value, record, inside, what)


def _record_in(annotation: Any) -> Any:
    """The record type inside `X`, `X | None` or `tuple[X, ...]`; None where there is none."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    records = (_record_in(part) for part in get_args(annotation))
    return next((kind for kind in records if kind is not None), None)


def _choice_in(annotation: Any) -> tuple[str, ...]:
    """The words of a `Literal` or an enumeration, or of a tuple of them; empty for anything else."""
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return tuple(annotation)
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if get_origin(annotation) is tuple:
        return _choice_in(get_args(annotation)[0])
    return ()


def _placed(error: UsageError, field: str) -> InputError:
    return InputError(error.message, remedy=error.remedy, field=field)
