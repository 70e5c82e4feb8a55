"""The native format (DESIGN, section 6): one JSON object a line, or the same columns in Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff
from veriglot.records import Sample, decode_json, sample_from

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from veriglot.formats.containers import Head

__all__ = ["sample_columns", "schema_of", "without_null"]


# Records as columns of Parquet: the native keys, with open-ended objects (`meta`, `settings`, `ratings`) as JSON text.
#
# An absent list and an empty one stay apart: Parquet knows null and `[]`.


def _json(value: Any) -> str | None:
    return msgspec.json.encode(value).decode("utf-8") if value else None


def sample_columns(sample: Sample) -> dict[str, Any]:
    """A sample as one row."""
    row: dict[str, Any] = msgspec.to_builtins(sample)
    row["meta"] = _json(row.get("meta"))
    generator = row.get("generator")
    if generator is not None:
        generator["settings"] = _json(generator.get("settings"))
    for annotation in row.get("annotations", ()):
        annotation["ratings"] = _json(annotation.get("ratings"))
    return row


def sample_from_columns(row: Mapping[str, Any]) -> Sample:
    """A sample from one row.

    Raises:
        InputError: a column is missing or of the wrong type.
    """
    data = without_null(dict(row))
    for key in ("meta",):
        _parse(data, key)
    if isinstance(data.get("generator"), dict):
        _parse(data["generator"], "settings")
    for annotation in _list(data.get("annotations")):
        if isinstance(annotation, dict):
            _parse(annotation, "ratings")
    return sample_from(data)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _parse(data: dict[str, Any], key: str) -> None:
    value = data.get(key)
    if isinstance(value, str):
        try:
            data[key] = decode_json(value)
        except InputError as error:
            raise error.at(field=key) from error


def without_null(value: Any) -> Any:
    """The same data without null members: Parquet has a value for every member of a struct."""
    if isinstance(value, dict):
        return {key: without_null(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_null(each) for each in value]
    return value


def schema_of(kind: str) -> Any:
    """The Arrow schema of `samples` or `predictions`. Needs pyarrow."""
    import pyarrow as pa

    text, number, integer = pa.string(), pa.float64(), pa.int64()
    pointer = pa.struct([("id", text), ("start", integer), ("end", integer)])
    span = pa.struct([
        ("start", integer), ("end", integer), ("type", text), ("confidence", number), ("text", text),
        ("evidence", pa.list_(pointer)),
    ])  # fmt: skip
    if kind == "predictions":
        word = pa.struct([
            ("start", integer), ("end", integer), ("confidence", number), ("evidence", pa.list_(pointer))
        ])  # fmt: skip
        judged = pa.struct([
            ("start", integer), ("end", integer), ("kind", text), ("score", number),
            ("parts", pa.list_(pa.list_(integer))),
        ])  # fmt: skip
        return pa.schema([
            ("id", text), ("status", text), ("detector", text), ("score", number), ("spans", pa.list_(span)),
            ("words", pa.list_(word)), ("units", pa.list_(judged)), ("language", text), ("notes", pa.list_(text)),
            ("reason", text), ("signature", text),
        ])  # fmt: skip
    unit = pa.struct([("start", integer), ("end", integer), ("label", text), ("probability", number)])
    evidence = pa.struct([("text", text), ("id", text), ("title", text), ("language", text), ("url", text)])
    generator = pa.struct([("name", text), ("revision", text), ("seed", integer), ("settings", text)])
    annotation = pa.struct([
        ("annotator", text), ("kind", text), ("taxonomy", text), ("spans", pa.list_(span)), ("units", pa.list_(unit)),
        ("ratings", text), ("flags", pa.list_(text)),
    ])  # fmt: skip
    return pa.schema([
        ("id", text), ("response", text), ("task", text), ("language", text), ("question", text),
        ("evidence", pa.list_(evidence)), ("generator", generator), ("annotations", pa.list_(annotation)),
        ("meta", text),
    ])  # fmt: skip


def _sniff(head: Head) -> Sniff | None:
    if head.has("id", "status", "detector"):
        return None
    if head.has("id", "response"):
        # Others may use the same two keys among their own; what is ours alone makes it sure.
        sure = head.has_any("evidence", "annotations", "generator", "meta") or len(head.keys) <= 4
        return Sniff(0.9 if sure else 0.6, "the keys `id` and `response`")
    return None


def _with_language(sample: Sample, reading: Reading) -> Sample:
    if sample.language is None and reading.language is not None:
        return msgspec.structs.replace(sample, language=reading.language)
    return sample


class NativeLines(Format):
    """Native JSON lines: holds everything."""

    name = "jsonl"
    summary = "the native format, one JSON object a line"
    containers = ("jsonl", "json")

    def sniff(self, head: Head) -> Sniff | None:
        """By the keys `id` and `response`."""
        return _sniff(head)

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:  # noqa: ARG002
        """One sample a record; unknown keys go to its `meta`."""
        if not isinstance(data, dict):
            raise InputError("a sample is a JSON object", remedy="Is the file in another format? Name it.")
        yield _with_language(sample_from(data), reading)

    def record(self, sample: Sample) -> Sample:
        """The sample itself."""
        return sample


class NativeParquet(Format):
    """Native Parquet: holds everything; `meta`, `settings` and `ratings` are columns of JSON text."""

    name = "parquet"
    summary = "the native format in Parquet"
    containers = ("parquet",)

    def sniff(self, head: Head) -> Sniff | None:
        """By the columns `id` and `response`."""
        return _sniff(head)

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:  # noqa: ARG002
        """One sample a row; unknown columns go to its `meta`."""
        if not isinstance(data, dict):
            raise InputError("a sample is a row of named columns")
        yield _with_language(sample_from_columns(data), reading)

    def record(self, sample: Sample) -> dict[str, Any]:
        """The sample as columns."""
        return sample_columns(sample)
