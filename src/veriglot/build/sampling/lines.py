"""The lines that a sample is made from, out of Parquet, JSON lines, CSV, TSV, plain text and samples of our own."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import InputError, UsageError
from veriglot.formats import MAX_LINE_BYTES, BadRow
from veriglot.formats.containers import read_container
from veriglot.formats.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Columns", "Line", "lines_of"]

_CONTAINERS = {
    ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv",
    ".txt": "text",
}  # fmt: skip
_BLOCK = 1 << 20


class Line(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One source, with its translation where there is one.

    Attributes:
        source: the text that was, or is to be, translated.
        target: its translation.
        id: as the data name it; None where they do not.
        file: which of the inputs it stands in, counted from 0.
        number: its line or row there, counted from 1.
    """

    source: str
    target: str | None
    id: str | None
    file: int
    number: int


class Columns(msgspec.Struct, frozen=True):
    """What the columns of the data are called.

    Attributes:
        source: the column of sources.
        target: the column of translations, which may be absent.
        id: the column of names, which may be absent.
        given: columns of scores that are taken over.
        targets: files of plain text with the translations, line by line, one for each input of plain text.
    """

    source: str = "source"
    target: str = "target"
    id: str = "id"
    given: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


def lines_of(paths: Sequence[str], columns: Columns) -> Iterator[tuple[Line, tuple[float, ...]] | BadRow]:
    """Every line of the inputs with its scores, in order; a row that cannot be read comes as what is wrong with it.

    Scores are those of `Columns.given`, not a number where a line has none.

    By its suffix an input is Parquet, JSON lines, CSV or TSV with a header, or plain text (`.txt`) with a source a
    line. Records that have no column of sources and are samples of our own are read as translations: the evidence is
    the source, the response its translation.

    Raises:
        InputError: a file does not exist, or two files of plain text that belong together have different lengths.
        UsageError: an input of another kind, or not one file of translations for each.
    """
    if columns.given and any(_kind(path) == "text" for path in paths):
        raise UsageError("Plain text has no columns of scores.", remedy="Use Parquet or JSON lines.")
    if columns.targets and (len(columns.targets) != len(paths) or any(_kind(path) != "text" for path in paths)):
        raise UsageError(
            "Files of translations belong to as many inputs of plain text, in the same order.",
            remedy="Name one .txt of sources for each, or use a column of translations.",
        )
    for file, path in enumerate(paths):
        if columns.targets:
            yield from _parallel(file, path, columns.targets[file])
        elif _kind(path) == "text":
            for record in read_container("text", Source(path), MAX_LINE_BYTES):
                yield record if isinstance(record, BadRow) else (Line(record.data, None, None, file, record.line), ())
        else:
            yield from _records(file, path, columns)


def _kind(path: str) -> str:
    kind = _CONTAINERS.get(Path(path).suffix.lower())
    if kind is None:
        raise UsageError(
            f"{path} is none of {', '.join(_CONTAINERS)}.", remedy="Name it by what it is; packed files are unpacked."
        )
    return kind


def _records(file: int, path: str, columns: Columns) -> Iterator[tuple[Line, tuple[float, ...]] | BadRow]:
    for record in read_container(_kind(path), Source(path), MAX_LINE_BYTES):
        if isinstance(record, BadRow):
            yield record
            continue
        try:
            line = _line(record.data, file, record.line, columns)
            yield line, tuple(_number(record.data, name) for name in columns.given)
        except InputError as error:
            raw = record.raw.decode("utf-8", "replace") if isinstance(record.raw, bytes) else ""
            yield BadRow(path, record.line, error.at(path=path, line=record.line), raw)


def _line(data: Any, file: int, number: int, columns: Columns) -> Line:
    if not isinstance(data, dict):
        raise InputError("the record is no object")
    if columns.source not in data and "evidence" in data and "response" in data:
        source, target = _of_sample(data)
    else:
        source, target = _text(data, columns.source) or "", _text(data, columns.target, needed=False)
    id_ = data.get(columns.id)
    return Line(source, target, None if id_ in (None, "") else str(id_), file, number)


def _of_sample(data: dict[str, Any]) -> tuple[str, str | None]:
    passages = data["evidence"]
    if not isinstance(passages, list) or not all(isinstance(one, dict) for one in passages):
        raise InputError("the evidence is no list of passages", field="evidence")
    return "\n".join(_text(one, "text") or "" for one in passages), _text(data, "response")


def _text(data: dict[str, Any], name: str, *, needed: bool = True) -> str | None:
    if needed and name not in data:
        raise InputError("there is no such column", field=name, remedy="Name the column (--source-column).")
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(f"this is no text but {type(value).__name__}", field=name)
    return value


def _number(data: dict[str, Any], name: str) -> float:
    """A score; not a number where the line has none, or one that is not finite."""
    if name not in data:
        raise InputError("there is no such column", field=name, remedy="Name the column of scores as the data do.")
    value = data[name]
    if value is None or value == "":
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(f"this is no number but {type(value).__name__}", field=name)
    try:
        number = float(value)
    except ValueError:
        raise InputError(f"{value!r} is no number", field=name) from None
    return number if math.isfinite(number) else math.nan


def _parallel(file: int, path: str, target_path: str) -> Iterator[tuple[Line, tuple[float, ...]] | BadRow]:
    counts = _line_count(path), _line_count(target_path)
    if counts[0] != counts[1]:
        raise InputError(
            f"{path} has {counts[0]:,} lines and {target_path} has {counts[1]:,}: they do not belong together",
            path=path,
        )
    targets = read_container("text", Source(target_path), MAX_LINE_BYTES)
    waiting = next(targets, None)
    for record in read_container("text", Source(path), MAX_LINE_BYTES):
        while waiting is not None and waiting.line < record.line:  # lines without text are passed over by the reader
            waiting = next(targets, None)
        beside = waiting if waiting is not None and waiting.line == record.line else None
        if isinstance(record, BadRow):
            yield record
        elif isinstance(beside, BadRow):
            yield beside
        else:
            yield Line(record.data, None if beside is None else beside.data, None, file, record.line), ()


def _line_count(path: str) -> int:
    count, last = 0, b"\n"
    with Source(path).open() as stream:
        while block := stream.read(_BLOCK):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")
