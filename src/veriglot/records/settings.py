"""Bases of records, and TOML settings files as records: unknown keys and values are errors, with similar ones."""

from __future__ import annotations

import re
import string
import tomllib
from collections import Counter
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

import msgspec

from veriglot.errors import InputError, UnknownNameError, UsageError, VeriglotError
from veriglot.records import Record, decode_json, from_mapping

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


__all__ = [
    "Record",
    "StrictRecord",
    "check_placeholders",
    "errors_of",
    "paths_in",
    "read_json_record",
    "read_toml",
    "read_toml_records",
    "require",
    "require_unique",
]

StructT = TypeVar("StructT", bound=msgspec.Struct)


class StrictRecord(Record, forbid_unknown_fields=True):
    """Base of records that people or programs write for us: an unknown field is an error."""


def read_toml_records(path: Path, kind: type[StructT], what: str) -> StructT:
    """Read a file of settings.

    Args:
        path: the file.
        kind: the record of the whole file, with its tables as fields.
        what: the file's purpose, in a word for messages ("study").

    Raises:
        InputError: it is not TOML; or a key or value is unknown (the message suggests similar ones), missing or of a
            wrong type. Errors in records do not name the file; use `InputError.at`.
    """
    data = read_toml(path, what)
    _known(data, kind, "", what)
    return from_mapping(data, kind)


def read_json_record(path: Path, kind: type[StructT], remedy: str) -> StructT:
    """Read a JSON file with one record.

    Raises:
        InputError: there is none, or it has other content: `remedy` describes the right one.
    """
    try:
        return from_mapping(decode_json(path.read_bytes()), kind)
    except InputError as error:
        raise InputError(error.detail, remedy, path=str(path), field=error.field) from None
    except OSError as error:
        raise InputError.of(error, path, remedy) from error


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Make every error of Veriglot an `InputError` that names the file at `path`."""
    try:
        yield
    except InputError as error:
        raise error.at(path=str(path)) from None
    except VeriglotError as error:
        raise InputError(error.message, error.remedy, path=str(path)) from error


def require(fits: object, message: str, field: str, remedy: str = "") -> None:
    """Raise an error unless `fits` is true.

    Raises:
        InputError: it is not; `field` is the path of the setting.
    """
    if not fits:
        raise InputError(message, remedy, field=field)


def check_ranges(settings: msgspec.Struct, **ranges: tuple[float, float]) -> None:
    """Raise an error if a number is out of its range (both ends included); None is allowed.

    Raises:
        UsageError: names the setting.
    """
    for name, (low, high) in ranges.items():
        value = getattr(settings, name)
        if value is not None and not low <= value <= high:
            raise UsageError(f"{name} is {value}; it lies from {low} to {high}.")


def check_placeholders(text: str, known: Iterable[str], needed: Iterable[str], *, field: str) -> None:
    """Raise an error if a prompt has the wrong placeholders.

    Args:
        text: with placeholders such as `{language}`; other braces are doubled.
        known: all placeholders that are filled in.
        needed: required ones.
        field: path of the prompt in its file.

    Raises:
        InputError: names every missing placeholder, and every unknown one.
    """
    known = set(known)
    remedy = f"It can hold {_braced(known)}. Write other braces twice: {{{{ and }}}}."
    try:
        names = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise InputError(f"a brace of the prompt stands alone: {error}", remedy, field=field) from None
    missing, unknown = set(needed) - names, names - known
    faults = [f"{_braced(missing)} missing"] if missing else []
    faults += [f"{_braced(unknown)} unknown"] if unknown else []
    require(not faults, f"placeholders of the prompt: {', '.join(faults)}", field, remedy)


def _braced(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names))


def require_unique(names: Iterable[str], field: str) -> None:
    """Raise an error if a name occurs twice."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    require(not twice, f"{next(iter(twice), None)!r} occurs twice", field, "Give each a name of its own.")


def paths_in(folder: Path, paths: str | Iterable[str]) -> list[Path]:
    """One path or several, relative to a folder."""
    return [folder / Path(path).expanduser() for path in ((paths,) if isinstance(paths, str) else paths)]


def require_files(folder: Path, paths: str | Iterable[str], field: str) -> None:
    """Raise an error if a path does not exist."""
    for path in paths_in(folder, paths):
        remedy = "Paths are relative to the folder of the file that names them."
        require(path.exists(), f"there is no file {path}", field, remedy)


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Read a TOML file as plain data; `what` is its purpose, for messages.

    Raises:
        InputError: there is none, or it is not TOML.
    """
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise InputError.of(error, path) from None
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
    """Raise an error for an unknown key or value, with similar ones; types are checked by the records."""
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
    """The record type inside `X`, `X | None` or `tuple[X, ...]`; None if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    records = (_record_in(part) for part in get_args(annotation))
    return next((kind for kind in records if kind is not None), None)


def _choice_in(annotation: Any) -> tuple[str, ...]:
    """The values of a `Literal` or an enumeration, or of a tuple of them; empty for other types."""
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return tuple(annotation)
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if get_origin(annotation) is tuple:
        return _choice_in(get_args(annotation)[0])
    return ()


def _placed(error: UsageError, field: str) -> InputError:
    return InputError(error.message, error.remedy, field=field)
