"""Lines of source and target from Parquet, JSON lines, CSV, TSV, text and samples, and their store on disk."""

from __future__ import annotations

import math
import os
import weakref
from pathlib import Path
from struct import pack
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from veriglot.datasets.near_duplicates import hash64
from veriglot.errors import InputError, UsageError
from veriglot.formats.containers import Source, read_container
from veriglot.records.settings import Record
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.arrays import Float64s, UInt64s

    Hashes = UInt64s
    Lines = Iterator["tuple[Line, tuple[float, ...]] | FailedRow"]  # with their scores

__all__ = ["Columns", "Line", "LineStore"]


_CONTAINERS = {
    ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv",
    ".txt": "text",
}  # fmt: skip
_BLOCK = 1 << 20  # bytes read at once


class Line(Record, array_like=True, gc=False):
    """One source, with its translation if there is one.

    Attributes:
        source: the source text.
        target: its translation.
        id: from the data; None if there is none.
        file: index of the input, from 0.
        number: its line or row there, from 1.
    """

    source: str
    target: str | None
    id: str | None
    file: int
    number: int


class Columns(Record):
    """Names of the columns of the data.

    Attributes:
        source: the column of sources.
        target: the column of translations, which may be absent.
        id: the column of ids, which may be absent.
        given: columns of scores that are used.
        targets: plain text files with the translations, line by line, one for each input of plain text.
    """

    source: str = "source"
    target: str = "target"
    id: str = "id"
    given: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


def lines_of(paths: Sequence[str], columns: Columns) -> Lines:
    """Every line of the inputs with its scores, in order; a row that cannot be read is a `FailedRow`.

    Scores are those of `Columns.given`, NaN if a line has none.

    The suffix of an input decides: Parquet, JSON lines, CSV or TSV with a header, or plain text (`.txt`) with one
    source a line. Records without a column of sources that are samples in our own format are read as translations: the
    evidence is the source, the response its translation.

    Raises:
        InputError: a file does not exist, or two parallel files of plain text have different lengths.
        UsageError: an input has another suffix, or there is not one file of translations for each.
    """
    if columns.given and any(_kind(path) == "text" for path in paths):
        raise UsageError("Plain text has no columns of scores.", "Use Parquet or JSON lines.")
    if columns.targets and (len(columns.targets) != len(paths) or any(_kind(path) != "text" for path in paths)):
        raise UsageError(
            "Files of translations belong to as many inputs of plain text, in the same order.",
            "Name one .txt of sources for each, or use a column of translations.",
        )
    for file, path in enumerate(paths):
        if _kind(path) == "text":
            yield from _text_lines(file, path, columns.targets[file] if columns.targets else None)
        else:
            yield from _records(file, path, columns)


def _kind(path: str) -> str:
    kind = _CONTAINERS.get(Path(path).suffix.lower())
    if kind is None:
        raise UsageError(
            f"{path} is none of {', '.join(_CONTAINERS)}.",
            "Give the file the ending of its format; compressed files are read too.",
        )
    return kind


def _records(file: int, path: str, columns: Columns) -> Lines:
    for record in read_container(_kind(path), Source(path)):
        if isinstance(record, FailedRow):
            yield record
            continue
        try:
            line = _line(record.data, file, record.line, columns)
            yield line, tuple(_number(record.data, name) for name in columns.given)
        except InputError as error:
            raw = (record.raw or b"").decode("utf-8", "replace")
            yield FailedRow.of(error.at(path=path, line=record.line), raw)


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
    if not isinstance(passages, list) or not all(isinstance(passage, dict) for passage in passages):
        raise InputError("the evidence is no list of passages", field="evidence")
    return "\n".join(_text(passage, "text") or "" for passage in passages), _text(data, "response")


def _text(data: dict[str, Any], name: str, *, needed: bool = True) -> str | None:
    if needed and name not in data:
        raise InputError(
            "there is no such column", "In the file of --config, name the column (source_column).", field=name
        )
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(f"this is no text but {type(value).__name__}", field=name)
    return value


def _number(data: dict[str, Any], name: str) -> float:
    """A score; NaN if the line has none, or one that is not finite."""
    if name not in data:
        raise InputError("there is no such column", "Name the column of scores as the data do.", field=name)
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


def _text_lines(file: int, path: str, target_path: str | None) -> Lines:
    if target_path is not None:
        counts = _line_count(path), _line_count(target_path)
        if counts[0] != counts[1]:
            raise InputError(
                f"{path} and {target_path} differ in their number of lines: {counts[0]:,} and {counts[1]:,}",
                path=path,
            )
    targets = read_container("text", Source(target_path)) if target_path is not None else iter(())
    waiting = next(targets, None)
    for record in read_container("text", Source(path)):
        while waiting is not None and (waiting.line or 0) < (record.line or 0):  # the reader skips lines without text
            waiting = next(targets, None)
        beside = waiting if waiting is not None and waiting.line == record.line else None
        if isinstance(record, FailedRow):
            yield record
        elif isinstance(beside, FailedRow):
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


# Lines on disk, by number: written once, then read in ranges or one by one, by any process.


_FILES = ("lines.bin", "places.bin", "keys.bin", "given.bin")
_GAPS = 3  # unneeded lines for each needed one, up to which a range is read instead of single lines


def key_of(*texts: str) -> int:
    """A 64-bit hash of texts, independent of white space."""
    return hash64(*(" ".join(text.split()) for text in texts))


class LineWriter:
    """Writes a store: `lines.bin` (the lines), `places.bin` (their offsets), `keys.bin` (their keys), `given.bin`
    (their scores, one for each column of scores)."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._files = [(folder / name).open("wb") for name in _FILES]
        self._encode = msgspec.msgpack.Encoder().encode
        self._place = 0
        self._files[1].write(pack("Q", 0))
        self.count = 0

    def add(self, line: Line, key: int, given: tuple[float, ...]) -> None:
        """Add the next line, its key, and its scores from the data."""
        data = self._encode(line)
        self._place += len(data)
        parts = (data, pack("Q", self._place), pack("Q", key), pack(f"{len(given)}d", *given))
        for file, part in zip(self._files, parts, strict=True):
            file.write(part)
        self.count += 1

    def __enter__(self) -> LineWriter:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()


class LineStore:
    """Reads a store.

    Args:
        folder: of the `LineWriter`.

    Attributes:
        count: number of lines.
        columns: number of scores of each line.
    """

    def __init__(self, folder: Path) -> None:
        files = [os.open(folder / name, os.O_RDONLY) for name in _FILES]
        self._data, self._index, self._keys, self._given = files
        self._closing = weakref.finalize(self, _close, files)
        self.count = os.fstat(self._keys).st_size // 8
        self.columns = os.fstat(self._given).st_size // 8 // self.count if self.count else 0
        self._decode = msgspec.msgpack.Decoder(Line).decode

    def lines(self, start: int, stop: int) -> list[Line]:
        """The lines `[start, stop)`, in one read."""
        places = self._numbers(self._index, start, stop + 1)
        data = memoryview(os.pread(self._data, int(places[-1] - places[0]), int(places[0])))
        bounds = (places - places[0]).tolist()
        return [self._decode(data[bounds[i] : bounds[i + 1]]) for i in range(stop - start)]

    def pick(self, numbers: NDArray[np.integer]) -> list[Line]:
        """Single lines, in ascending order of their numbers."""
        if numbers.size and int(numbers[-1]) - int(numbers[0]) < _GAPS * numbers.size:
            first = int(numbers[0])
            between = self.lines(first, int(numbers[-1]) + 1)
            return [between[number - first] for number in numbers.tolist()]
        return [self.lines(number, number + 1)[0] for number in numbers.tolist()]

    def given(self, numbers: NDArray[np.integer]) -> Float64s:
        """The scores of single lines from the data, shape (numbers, columns); NaN if there is none."""
        if not numbers.size:
            return np.zeros((0, self.columns))
        first, last, width = int(numbers[0]), int(numbers[-1]) + 1, 8 * self.columns
        between = np.frombuffer(os.pread(self._given, (last - first) * width, first * width), np.float64)
        scores: Float64s = between.reshape(last - first, self.columns)[numbers - first]
        return scores

    def keys(self, start: int, stop: int) -> Hashes:
        """The keys of the lines `[start, stop)`."""
        return self._numbers(self._keys, start, stop)

    @staticmethod
    def _numbers(file: int, start: int, stop: int) -> Hashes:
        return np.frombuffer(os.pread(file, 8 * (stop - start), 8 * start), np.uint64)

    def __enter__(self) -> LineStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing()


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)
