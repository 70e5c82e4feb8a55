"""The native format (DESIGN, section 6): one JSON object per line, or the same columns in Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff
from veriglot.formats.columns import has_labels, sample_of
from veriglot.records import Sample, decode_json, sample_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.containers import Head

__all__ = ["without_null"]


class NativeLines(Format):
    """Native JSON lines: lossless."""

    summary = "the native format, one JSON object a line"
    containers: ClassVar[tuple[str, ...]] = ("jsonl", "json")

    def sniff(self, head: Head) -> Sniff | None:
        """By the keys `id` and `response`."""
        if head.keys >= {"id", "status", "detector"} or not head.keys >= {"id", "response"}:
            return None
            # Other data may use the same two keys; a key that only we have makes it sure.
        sure = head.keys & {"evidence", "annotations", "generator", "meta"} or len(head.keys) <= 4
        return Sniff(0.9 if sure else 0.6, "the keys `id` and `response`")

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample]:
        """One sample per record; unknown keys go to its `meta`."""
        if not isinstance(data, dict):
            raise InputError("a sample is a JSON object", "If the file is in another format, name it.")
        try:
            labels_beside, reading.shared = not reading.named and has_labels(data), False
            sample = sample_of(data, reading) if labels_beside else sample_from(data)
        except InputError as error:
            if reading.named or labels_beside:
                raise
            try:
                sample = sample_of(data, reading)  # evidence as text, a number as id
            except InputError as other:
                raise (error if isinstance(data.get("response", ""), str) else other) from None
        if sample.language is None and reading.language is not None:
            sample = msgspec.structs.replace(sample, language=reading.language)
        yield sample

    def record(self, sample: Sample) -> Any:
        """The sample itself."""
        return sample


class NativeParquet(NativeLines):
    """Native Parquet: lossless; `meta`, `settings` and `ratings` are columns of JSON text.

    A missing list and an empty one stay distinct: Parquet has null and `[]`.
    """

    summary = "the native format in Parquet"
    containers = ("parquet",)

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample]:
        """One sample per row; unknown columns go to its `meta`."""
        data = without_null(data)
        for holder, key in _open_objects(data):
            if isinstance(holder.get(key), str):
                try:
                    holder[key] = decode_json(holder[key])
                except InputError as error:
                    raise error.at(field=key) from error
        return super().samples(data, reading)

    def record(self, sample: Sample) -> Any:
        """The sample as columns."""
        row = msgspec.to_builtins(sample)
        for holder, key in _open_objects(row):
            holder[key] = msgspec.json.encode(holder[key]).decode("utf-8") if holder.get(key) else None
        return row


def _open_objects(row: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects of a row with a column of JSON text, each with its key."""
    if isinstance(row, dict):
        annotations = row.get("annotations")
        holders = [(row, "meta"), (row.get("generator"), "settings")]
        holders += [(each, "ratings") for each in (annotations if isinstance(annotations, list | tuple) else ())]
        yield from ((holder, key) for holder, key in holders if isinstance(holder, dict))


def without_null(value: Any) -> Any:
    """The same data without null members, because Parquet structs have a value for every member."""
    if isinstance(value, dict):
        return {key: without_null(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_null(each) for each in value]
    return value
