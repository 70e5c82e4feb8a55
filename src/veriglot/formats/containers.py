"""Containers: how records lie in a file (JSON lines, a JSON array, CSV, Parquet), apart from what they mean.

Each reader is a generator of `Record` and `BadRow`: one bad record never ends the file. JSON lines, CSV and Parquet
are streamed; a JSON array or object is read whole, as JSON asks for.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any, TypeAlias

from veriglot.errors import InputError, MissingExtraError
from veriglot.formats.lines import TooLongError, iter_lines
from veriglot.formats.rows import BadRow, Record
from veriglot.records import decode_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from veriglot.formats.source import Source

__all__ = ["CONTAINERS", "Records", "read_container"]

Records: TypeAlias = "Iterator[Record | BadRow]"

_BATCH = 256


def read_container(kind: str, source: Source, max_line_bytes: int) -> Records:
    """The records of a source, read as the container `kind`."""
    return CONTAINERS[kind](source, max_line_bytes)


def _bad(source: Source, line: int, error: InputError, raw: bytes | str = "") -> BadRow:
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    return BadRow(source.path, line, error.at(path=source.path, line=line or None), text)


def _lines(source: Source, max_line_bytes: int) -> Iterator[tuple[int, bytes] | BadRow]:
    with source.open() as stream:
        try:
            for number, line in iter_lines(stream, max_line_bytes):
                if isinstance(line, TooLongError):
                    yield _bad(source, number, line, line.beginning)
                else:
                    yield number, line
        except InputError as error:
            yield _bad(source, error.line or 0, error)


def _jsonl(source: Source, max_line_bytes: int) -> Records:
    for item in _lines(source, max_line_bytes):
        if isinstance(item, BadRow):
            yield item
            continue
        number, line = item
        line = line.strip()
        if not line:
            continue
        try:
            yield Record(number, decode_json(line), line)
        except InputError as error:
            yield _bad(source, number, _utf8_fault(line) or error, line)


def _utf8_fault(line: bytes) -> InputError | None:
    """The first byte of the line that is not UTF-8, counted from the line's beginning."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return _not_utf8(error.start, line[error.start])
    return None


def _text(source: Source, max_line_bytes: int) -> Records:
    for item in _lines(source, max_line_bytes):
        if isinstance(item, BadRow):
            yield item
            continue
        number, line = item
        line = line.rstrip(b"\r\n")
        if not line.strip():
            continue
        try:
            yield Record(number, line.decode("utf-8"), line)
        except UnicodeDecodeError as error:
            yield _bad(source, number, _not_utf8(error.start, line[error.start]), line)


def _not_utf8(position: int, byte: int) -> InputError:
    return InputError(
        f"this is not valid UTF-8: byte {position} is 0x{byte:02x}", remedy="Convert the file to UTF-8 first."
    )


def _json(source: Source, _max_line_bytes: int) -> Records:
    with source.open() as stream:
        data = stream.read().removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        return
    try:
        whole = decode_json(data)
    except InputError as error:
        yield _bad(source, 0, error, data[:4096])
        return
    del data
    if isinstance(whole, list):
        yield from (Record(index, item) for index, item in enumerate(whole, start=1))
    else:
        yield Record(1, whole)


class _DecodedLines:
    """Lines as text for `csv`, which cannot hand over an error: what goes wrong is kept until the row is out."""

    def __init__(self, source: Source, max_line_bytes: int) -> None:
        self._lines = _lines(source, max_line_bytes)
        self.fault: BadRow | InputError | None = None
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        for item in self._lines:
            if isinstance(item, BadRow):
                self.fault = item
                self.number = item.line
                yield "\n"
                continue
            self.number, line = item
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError as error:
                self.fault = _not_utf8(error.start, line[error.start])
                yield line.decode("utf-8", "replace")

    def take_fault(self) -> BadRow | InputError | None:
        fault, self.fault = self.fault, None
        return fault


def _delimited(delimiter: str) -> Callable[[Source, int], Records]:
    def read(source: Source, max_line_bytes: int) -> Records:
        csv.field_size_limit(max(csv.field_size_limit(), max_line_bytes))
        lines = _DecodedLines(source, max_line_bytes)
        reader = csv.reader(lines, delimiter=delimiter)
        header: list[str] | None = None
        start = 1
        while True:
            fault: BadRow | InputError | None
            try:
                row = next(reader)
                fault = lines.take_fault()
            except StopIteration:
                return
            except csv.Error as error:
                row, fault = [], InputError(f"this is not a row of {delimiter!r}-separated values: {error}")
            start, line = lines.number + 1, start
            if isinstance(fault, BadRow):
                yield fault
            elif fault is not None:
                yield _bad(source, line, fault, delimiter.join(row))
            elif not row or row == [""]:
                continue
            elif header is None:
                header = row
            elif len(row) != len(header):
                wrong = InputError(
                    f"the row has {len(row)} columns, but the header {len(header)}", remedy="Is a quote left open?"
                )
                yield _bad(source, line, wrong, delimiter.join(row)[:4096])
            else:
                yield Record(line, dict(zip(header, row, strict=True)))

    return read


def _parquet(source: Source, _max_line_bytes: int) -> Records:
    parquet = parquet_module()
    with source.open_seekable() as stream:
        try:
            file = parquet.ParquetFile(stream)
            number = 0
            for batch in file.iter_batches(batch_size=_BATCH):
                for data in batch.to_pylist():
                    number += 1
                    yield Record(number, data)
        except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
            message = str(error).splitlines()[0]
            yield _bad(source, 0, InputError(f"this is not readable as Parquet: {message}", remedy="Was it cut off?"))


def parquet_module() -> Any:
    """`pyarrow.parquet`.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    try:
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise MissingExtraError("Parquet", "parquet") from error
    return pyarrow.parquet


CONTAINERS: dict[str, Callable[[Source, int], Records]] = {
    "jsonl": _jsonl,
    "json": _json,
    "csv": _delimited(","),
    "tsv": _delimited("\t"),
    "parquet": _parquet,
    "text": _text,
}
"""Name of a container to its reader."""
