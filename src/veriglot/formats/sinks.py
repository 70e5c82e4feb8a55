"""Where records go: one class a container, each a context manager that takes records one at a time.

JSON lines can be continued; whatever a crash left of a last line is taken off first. Parquet cannot be continued in
place: its finished rows are copied into a new file, which replaces the old one when it is closed whole.
"""

from __future__ import annotations

import csv
import io
import os
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from veriglot.errors import InputError, UsageError
from veriglot.formats.containers import parquet_module
from veriglot.records import decode_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["CsvSink", "JsonSink", "LinesSink", "ParquetSink", "Sink"]

_ROW_GROUP = 1024
_BLOCK = 1 << 16


class Sink(ABC):
    """Takes records and puts them into a file."""

    @abstractmethod
    def write(self, record: Any) -> None:
        """Add one record."""

    def flush(self) -> None:  # noqa: B027  most containers cannot be read half done
        """Hand what was written to the operating system, where the container can be read half done."""

    @abstractmethod
    def close(self) -> None:
        """Finish the file."""

    def abandon(self) -> None:
        """Close without finishing what would otherwise pass for whole."""
        self.close()


def _open(path: Path | None, mode: str) -> BinaryIO:
    if path is None:
        return sys.stdout.buffer
    try:
        stream = path.open(mode)
    except OSError as error:
        raise InputError(f"it cannot be written: {error.strerror}", path=str(path)) from error
    assert isinstance(stream, io.BufferedIOBase)
    return stream  # type: ignore[return-value]


def _close(path: Path | None, stream: BinaryIO) -> None:
    stream.flush()
    if path is not None:
        stream.close()


class LinesSink(Sink):
    """JSON lines, to a file or (None) to standard output.

    Attributes:
        torn: bytes of an unfinished last line that were taken off before continuing.
    """

    def __init__(self, path: Path | None, *, append: bool = False) -> None:
        self._path = path
        self.torn = _mend(path) if append and path is not None and path.exists() else b""
        self._stream = _open(path, "ab" if append else "wb")
        self._encode = msgspec.json.Encoder().encode

    def write(self, record: Any) -> None:
        """Add one line."""
        self._stream.write(self._encode(record) + b"\n")

    def flush(self) -> None:
        """Hand the lines to the operating system."""
        self._stream.flush()

    def close(self) -> None:
        """Close the file; standard output stays open."""
        _close(self._path, self._stream)


def _mend(path: Path) -> bytes:
    """End the last line of a file that is to be continued; take it off where it was cut. Returns what was taken."""
    with path.open("r+b") as stream:
        end = stream.seek(0, os.SEEK_END)
        tail = b""
        place = end
        while place > 0 and b"\n" not in tail:
            place = max(0, place - _BLOCK)
            stream.seek(place)
            tail = stream.read(end - place)
        last = tail[tail.rfind(b"\n") + 1 :]
        if not last:
            return b""
        try:
            decode_json(last)
        except InputError:
            stream.truncate(end - len(last))
            return last
        stream.seek(end)
        stream.write(b"\n")
        return b""


class JsonSink(Sink):
    """One JSON array, a record a line."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._stream = _open(path, "wb")
        self._stream.write(b"[")
        self._first = True

    def write(self, record: Any) -> None:
        """Add one element."""
        self._stream.write((b"\n" if self._first else b",\n") + msgspec.json.encode(record))
        self._first = False

    def close(self) -> None:
        """Close the array and the file."""
        self._stream.write(b"\n]\n")
        _close(self._path, self._stream)


class CsvSink(Sink):
    """CSV or TSV with a header; values are quoted where they have to be."""

    def __init__(self, path: Path | None, columns: Sequence[str], delimiter: str) -> None:
        self._path = path
        self._stream = _open(path, "wb")
        self._text = io.TextIOWrapper(self._stream, "utf-8", newline="", write_through=True)
        self._rows = csv.DictWriter(self._text, columns, delimiter=delimiter)
        self._rows.writeheader()

    def write(self, record: Any) -> None:
        """Add one row."""
        self._rows.writerow(record)

    def close(self) -> None:
        """Close the file."""
        self._text.flush()
        self._text.detach()
        _close(self._path, self._stream)


class ParquetSink(Sink):
    """Parquet in row groups of 1,024, through a file beside the target that takes its place when it is closed whole.

    Args:
        path: the target.
        schema: Arrow schema of the records.
        append: keep the rows of a target that exists.
        group: rows of a row group.
    """

    def __init__(self, path: Path | None, schema: Any, *, append: bool = False, group: int = _ROW_GROUP) -> None:
        if path is None:
            raise UsageError("Parquet cannot be written to standard output.", remedy="Name a file with -o.")
        parquet = parquet_module()
        self._path = path
        self._partial = path.with_name(path.name + ".partial")
        self._schema = schema
        self._group = group
        self._rows: list[Any] = []
        try:
            self._writer = parquet.ParquetWriter(self._partial, schema, compression="zstd")
        except OSError as error:
            raise InputError(f"it cannot be written: {error.strerror or error}", path=str(path)) from error
        if append and path.exists():
            self._copy(parquet)

    def _copy(self, parquet: Any) -> None:
        try:
            with self._path.open("rb") as stream:
                old = parquet.ParquetFile(stream)
                if not old.schema_arrow.equals(self._schema):
                    raise UsageError(f"{self._path} holds other columns, so it cannot be continued.")
                for batch in old.iter_batches(batch_size=self._group):
                    self._writer.write_batch(batch)
        except BaseException as error:
            self.abandon()
            if isinstance(error, OSError | ValueError):
                raise InputError(
                    "it cannot be continued: it is not readable as Parquet", path=str(self._path)
                ) from error
            raise

    def write(self, record: Any) -> None:
        """Add one row."""
        self._rows.append(record)
        if len(self._rows) >= self._group:
            self._write_rows()

    def _write_rows(self) -> None:
        import pyarrow as pa

        if not self._rows:
            return
        try:
            self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
            self._rows = []
            raise InputError(f"Parquet cannot hold a value: {error}", path=str(self._path)) from error
        self._rows = []

    def close(self) -> None:
        """Write what is left and put the file in its place."""
        try:
            self._write_rows()
        except InputError:
            self.abandon()
            raise
        self._writer.close()
        self._partial.replace(self._path)

    def abandon(self) -> None:
        """Leave the target as it was."""
        self._rows = []
        self._writer.close()
        self._partial.unlink(missing_ok=True)
