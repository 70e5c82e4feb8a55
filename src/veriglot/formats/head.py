"""What can be known of a file from its beginning: its container, its first record and that record's keys."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError

if TYPE_CHECKING:
    from veriglot.formats.source import Source

__all__ = ["Head", "look_at"]

_KEY = re.compile(r'"([^"\\]{1,60})"\s*:')
_KEYS_SCANNED = 64 << 10
_TAG = re.compile(r"</?[A-Za-z][A-Za-z_-]*>")


@dataclass(frozen=True)
class Head:
    """The beginning of a file.

    Attributes:
        name: file name, empty for standard input.
        container: `jsonl`, `json`, `csv`, `tsv`, `parquet`, `text`, or `empty`.
        keys: keys of the first record (columns of a table). Where the first record is longer than what was looked
            at, every key in sight, those of nested objects included.
        record: the first record, or None where it could not be decoded from the beginning alone.
        text: the beginning as text.
    """

    name: str
    container: str
    keys: frozenset[str] = frozenset()
    record: dict[str, Any] | None = None
    text: str = ""

    def has(self, *keys: str) -> bool:
        """Whether the first record has all of these keys."""
        return self.keys.issuperset(keys)

    def has_any(self, *keys: str) -> bool:
        """Whether the first record has one of these keys."""
        return not self.keys.isdisjoint(keys)


def look_at(source: Source) -> Head:
    """Look at the beginning of a source without consuming it.

    Raises:
        InputError: it is UTF-16.
    """
    data = source.head.removeprefix(b"\xef\xbb\xbf")
    if data.startswith(b"PAR1"):
        return _parquet_head(source)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("this is UTF-16, not UTF-8", path=source.path, remedy="Convert the file to UTF-8 first.")
    text = data.decode("utf-8", "replace")
    begun = text.lstrip()
    if not begun:
        return Head(source.name, "empty")
    if begun[0] == "[":
        return _json_head(source.name, begun, begun[1:].lstrip())
    if begun[0] == "{":
        return _object_head(source, begun)
    return _table_head(source.name, text)


def _parquet_head(source: Source) -> Head:
    from veriglot.formats.containers import parquet_module

    parquet = parquet_module()
    if source.file is None:  # standard input can be read once only: the columns stay unknown
        return Head(source.name, "parquet")
    try:
        names = parquet.read_schema(source.file).names
    except (OSError, ValueError):
        return Head(source.name, "parquet")
    return Head(source.name, "parquet", frozenset(names))


def _first_object(text: str) -> dict[str, Any] | None:
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _keys(record: dict[str, Any] | None, text: str) -> frozenset[str]:
    return frozenset(record) if record is not None else frozenset(_KEY.findall(text[:_KEYS_SCANNED]))


def _json_head(name: str, text: str, first: str) -> Head:
    record = _first_object(first)
    return Head(name, "json", _keys(record, text), record, text)


def _object_head(source: Source, text: str) -> Head:
    """One object may be a line of JSON lines or a whole JSON file spread over lines."""
    for line in text.splitlines()[:20]:  # the first line may be the broken one
        record = _first_object(line)
        if record is not None:
            break
    else:
        record = _first_object(text)
    # What begins like a line of JSON lines that was cut off has more than a bracket on its first line.
    first = text.split("\n", 1)[0].strip()
    spread = first == "{" or (record is None and '"' not in first)
    single = source.complete and "\n" not in text.rstrip() and source.name.endswith(".json")
    container = "json" if spread or single else "jsonl"
    return Head(source.name, container, _keys(record, text), record, text)


def _table_head(name: str, text: str) -> Head:
    first = text.splitlines()[0]
    delimiter = "\t" if "\t" in first else ","
    try:
        header = next(csv.reader(io.StringIO(text), delimiter=delimiter))
    except (csv.Error, StopIteration):
        header = []
    named = name.endswith((".csv", ".tsv"))
    looks_like_header = len(header) > 1 and all(0 < len(cell) <= 60 for cell in header[1:]) and not _TAG.search(first)
    if named or looks_like_header:
        kind = "tsv" if delimiter == "\t" else "csv"
        return Head(name, kind, frozenset(header), None, text)
    return Head(name, "text", frozenset(), None, text)
