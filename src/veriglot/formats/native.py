"""The native format (DESIGN, section 6): one JSON object a line, or the same columns in Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import InputError
from veriglot.formats.columns import sample_columns, sample_from_columns
from veriglot.formats.format import Format, Reading, Sniff
from veriglot.records import Sample, sample_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.head import Head

__all__ = ["NativeLines", "NativeParquet"]


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
