"""Containers, independent of formats: detection and reading of JSON lines, JSON, CSV, Parquet and Arrow.

Each reader is a generator of `Record` and `FailedRow`: a bad record never ends the file. All are streamed, except a
JSON array or object, which must be parsed as a whole.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import select
import sys
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn, TypeAlias, cast

from veriglot.errors import InputError, requires_extra
from veriglot.records import decode_json, decode_text
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "Head",
    "Record",
    "Records",
    "Source",
    "parquet_module",
    "read_container",
    "standard_input_ready",
]


# Information from the beginning of a file: its container, its first record and that record's keys.


_KEY = re.compile(r'"([^"\\]{1,60})"\s*:')
_KEYS_SCANNED = 64 << 10
_TAG = re.compile(r"</?[A-Za-z][A-Za-z_-]*>")


@dataclass(frozen=True)
class Head:
    """The beginning of a file.

    Attributes:
        container: `jsonl`, `json`, `csv`, `tsv`, `parquet`, `arrow`, `text`, or `empty`.
        keys: keys of the first record (columns of a table). If the first record is longer than the beginning, all
            visible keys, also of nested objects.
        record: the first record, or None if it cannot be decoded from the beginning.
        text: the beginning as text.
        delimiter: separator of the cells of a table.
    """

    container: str
    keys: frozenset[str] = frozenset()
    record: dict[str, Any] | None = None
    text: str = ""
    delimiter: str = ","


def _binary_head(kind: str, source: Source) -> Head:
    record = next(read_container(kind, source), None)
    return _json_head(kind, record.data if isinstance(record, Record) else None, "")


def _first_object(text: str) -> dict[str, Any] | None:
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def failure_in(row: Any) -> str:
    """Why a request to a model failed, according to the row of its response; empty if it did not."""
    failed = False
    while isinstance(row, dict):
        why = ["message", "code", "blockReason"] * failed
        key = next(filter(row.get, ("error", "promptFeedback", *why, "response", "body", "result", "type")), "")
        failed, row = failed or key in {"error", "promptFeedback"}, row.get(key)
    return row if isinstance(row, str) and (failed or row in {"expired", "canceled"}) else ""


def _json_head(container: str, record: dict[str, Any] | None, text: str) -> Head:
    keys = _KEY.findall(text[:_KEYS_SCANNED]) if record is None else record
    return Head(container, frozenset(keys), record, text)


def _object_head(source: Source, text: str) -> Head:
    """An object at the beginning may be a line of JSON lines or a whole JSON file with several lines."""
    lines = text.splitlines()[:_LINES_SEEN]  # the first line may be invalid
    objects = [each for each in map(_first_object, [*lines, text]) if each is not None]
    record = next((each for each in objects if not failure_in(each)), next(iter(objects), None))
    # A truncated first line of JSON lines has more than a bracket.
    first = text.split("\n", 1)[0].strip()
    spread = first == "{" or (record is None and '"' not in first)
    single = len(source.head) < HEAD_BYTES and "\n" not in text.rstrip() and source.name.endswith(".json")
    if record is None and not spread and len(source.head) == HEAD_BYTES and source.file is not None:  # a long first row
        record = next((row.data for row in read_container("jsonl", source) if isinstance(row, Record)), None)
        record = record if isinstance(record, dict) else None
    return _json_head("json" if spread or single else "jsonl", record, text)


_EXCEL_DELIMITER = re.compile(r"sep=(.)\r?\n")  # an extra first line of Excel, which Excel hides


def _unique(header: list[str]) -> list[str]:
    """Unique column names; a repeated name gets a number, so that no cell replaces another."""
    names = []
    for name in header:
        numbered = (f"{name}_{number}" for number in count(2))
        names.append(next(each for each in chain([name], numbered) if not name or each not in names))
    return names


def _table_head(name: str, text: str) -> Head:
    stated = _EXCEL_DELIMITER.match(text)
    text = text[stated.end() if stated else 0 :].lstrip("\r\n")
    first = (text.splitlines() or [""])[0]
    delimiter = stated[1] if stated else "\t" if "\t" in first else max(",;|", key=first.count)
    try:
        rows = csv.reader(io.StringIO(text), delimiter=delimiter)
        header, first_row = _unique(next(rows)), next(rows, [])
    except (csv.Error, StopIteration):
        header, first_row = [], []
    named = name.endswith((".csv", ".tsv"))
    looks_like_header = len(header) > 1 and all(0 < len(cell) <= 60 for cell in header[1:]) and not _TAG.search(first)
    if named or looks_like_header:
        kind = "tsv" if delimiter == "\t" else "csv"
        record = dict(zip(header, first_row, strict=False))
        return Head(kind, frozenset(header), record if len(record) == len(header) else None, text, delimiter)
    return Head("text", text=text)


# Lines of a byte stream, one at a time and with a size limit: a huge line is skipped, not loaded.


MAX_LINE_BYTES = 32 << 20
"""A line longer than this many bytes is reported and skipped."""

csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))  # also for guesses at the first rows

_TOO_LONG = "If that is its right length, save the file as Parquet."
_SHOWN_OF_TOO_LONG = 4096
_SKIP_BLOCK = 1 << 20
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_ARROW_FILE, _ARROW_STREAM = b"ARROW1", b"\xff\xff\xff\xff"
_GZIP = b"\x1f\x8b"
_BINARY = (b"PAR1", _ARROW_FILE, _ARROW_STREAM, _GZIP)  # from standard input these are read into memory
_NO_TEXT = {
    b"PK\x03\x04": "an Excel workbook or a zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"BZh": "compressed (bzip2)",
    b"\x28\xb5\x2f\xfd": "compressed (zstd)",
    b"\xfd7zXZ": "compressed (xz)",
    b"FEA1": "Feather 1",
    b"<?xml": "XML, such as TMX or XLIFF",
}


class Record(NamedTuple):
    """One record of a container, before a format interprets it.

    Attributes:
        line: line or row, counted from 1.
        data: decoded JSON, or a dictionary of column to value.
        raw: the original row, if the container has text rows.
    """

    line: int
    data: Any
    raw: bytes | None = None


Records: TypeAlias = "Iterator[Record | FailedRow]"

_BATCH = 256


def _bad(source: Source, line: int, error: InputError, raw: bytes | str = "") -> FailedRow:
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    return FailedRow.of(error.at(path=source.path, line=line or None), text)


def _lines(source: Source) -> Iterator[tuple[int, bytes] | FailedRow]:
    """Line number (from 1) and content of each line, line break included, UTF-8 byte order mark removed."""
    number = 0
    with source.open() as stream:
        try:
            while chunk := stream.readline(MAX_LINE_BYTES + 2):
                number += 1
                if number == 1:
                    chunk = chunk.removeprefix(_UTF8_BOM)
                if len(chunk) <= MAX_LINE_BYTES or chunk.endswith(b"\n"):
                    yield number, chunk
                    continue
                while (block := stream.readline(_SKIP_BLOCK)) and not block.endswith(b"\n"):
                    pass
                error = InputError(f"the line is longer than {MAX_LINE_BYTES} bytes", _TOO_LONG)
                yield _bad(source, number, error, chunk[:_SHOWN_OF_TOO_LONG])
        except InputError as error:  # what is packed is damaged
            yield _bad(source, 0, error)


def _records(source: Source, decode: Callable[[bytes], Any]) -> Records:
    """A record for each nonempty line."""
    for item in _lines(source):
        if isinstance(item, FailedRow):
            yield item
        elif item[1].strip():
            number, line = item[0], item[1].rstrip(b"\r\n")
            try:
                yield Record(number, decode(line), line)
            except InputError as error:
                yield _bad(source, number, error, line)


def _json(source: Source) -> Records:
    with source.open() as stream:
        data = b"".join(iter(stream.readline, b"")).removeprefix(_UTF8_BOM)
    if not data.strip():
        return
    try:
        whole = decode_json(data)
    except InputError as error:
        yield _bad(source, 0, error, data[:_SHOWN_OF_TOO_LONG])
        return
    del data
    yield from (Record(index, item) for index, item in enumerate(whole if isinstance(whole, list) else [whole], 1))


def _decoded(source: Source, faults: list[FailedRow | InputError], lines: list[str]) -> Iterator[str]:
    """Lines as text for `csv`, which cannot pass on errors: `faults` has them until the row is returned."""
    for item in _lines(source):
        if isinstance(item, FailedRow):
            faults.append(item)
            yield "\n"
            continue
        try:
            lines.append(decode_text(item[1]))
            yield lines[-1]
        except InputError as error:
            faults.append(error)
            yield item[1].decode("utf-8", "replace")


def _is_left_open(lines: list[str], delimiter: str) -> bool:
    """Whether the lines of a row have a quote that is not closed, or only by a later row's."""
    try:
        list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error as error:
        return len(lines) > 1 or "end of data" in str(error)
    return False


def _delimited(source: Source) -> Records:
    delimiter = source.look().delimiter
    faults: list[FailedRow | InputError] = []
    lines: list[str] = []
    reader = csv.reader(_decoded(source, faults, lines), delimiter=delimiter)
    header: list[str] | None = None
    start = 1
    while True:
        faults.clear()
        lines.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            row = []
            faults.append(InputError(f"this is not a row of {delimiter!r}-separated values: {error}"))
        start, line = reader.line_num + 1, start
        if not faults and _is_left_open(lines, delimiter):
            detail = f"a quote is left open, so that the row goes on to line {start - 1}"
            faults.append(InputError(detail, "Close it; write a quote within a cell twice."))
        fault = faults[-1] if faults else None
        if isinstance(fault, FailedRow):
            yield fault
        elif fault is not None:
            yield _bad(source, line, fault, delimiter.join(row))
        elif not any(map(str.strip, row)):  # Excel writes rows with only delimiters
            continue
        elif header is None:
            header = None if row == ["sep=", ""] else _unique(row)
        elif len(row) != len(header):
            detail = f"the row and the header differ in columns, {len(row)} and {len(header)}"
            wrong = InputError(detail, "Check for a quote that is left open.")
            yield _bad(source, line, wrong, delimiter.join(row)[:_SHOWN_OF_TOO_LONG])
        else:
            yield Record(line, dict(zip(header, row, strict=True)))


def _parquet(source: Source) -> Records:
    parquet = parquet_module()

    def batches(stream: BinaryIO) -> Iterator[Any]:
        file = parquet.ParquetFile(stream)
        for group in range(file.num_row_groups):  # read together, all groups would stay in memory
            yield from file.iter_batches(batch_size=_BATCH, row_groups=[group])

    return _from_batches(source, "Parquet", batches)


def _arrow(source: Source) -> Records:
    parquet_module()
    import pyarrow.ipc as ipc

    def batches(stream: BinaryIO) -> Iterator[Any]:
        if source.head.startswith(_ARROW_FILE):
            file = ipc.open_file(stream)
            yield from (file.get_batch(index) for index in range(file.num_record_batches))
        else:
            yield from ipc.open_stream(stream)

    return _from_batches(source, "Arrow", batches)


def _from_batches(source: Source, what: str, batches: Callable[[BinaryIO], Iterator[Any]]) -> Records:
    with source.open_seekable() as stream:
        number = 0
        try:
            for batch in batches(stream):
                for start in range(0, batch.num_rows, _BATCH):
                    for data in batch.slice(start, _BATCH).to_pylist():
                        number += 1
                        yield Record(number, data)
        except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
            message = str(error).splitlines()[0]
            yield _bad(
                source, 0, InputError(f"this is not readable as {what}: {message}", "Check that the file is complete.")
            )


def parquet_module() -> Any:
    """`pyarrow.parquet`.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    with requires_extra("Parquet or Arrow", "parquet"):
        import pyarrow.parquet
    return pyarrow.parquet


def read_container(kind: str, source: Source) -> Records:
    """The records of a source, read as the container `kind`."""
    if kind in {"csv", "tsv"}:
        return _delimited(source)
    if kind in {"jsonl", "text"}:
        return _records(source, decode_json if kind == "jsonl" else decode_text)
    return {"json": _json, "parquet": _parquet, "arrow": _arrow}[kind](source)


# Sources of bytes: a file or standard input, with a look at the beginning that consumes nothing.

HEAD_BYTES = 1 << 20
_LINES_SEEN = 20  # lines of a beginning to look at, because the first may be invalid


class _Joined(io.RawIOBase):
    """A stream whose beginning was read already: this beginning, then the rest as it arrives."""

    def __init__(self, beginning: bytes, rest: io.BufferedReader) -> None:
        self._beginning = memoryview(beginning)
        self._rest = rest
        self._given = 0

    def tell(self) -> int:
        """Number of returned bytes."""
        return self._given

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        if self._beginning:
            count = min(len(buffer), len(self._beginning))
            buffer[:count] = self._beginning[:count]
            self._beginning = self._beginning[count:]
        else:
            block = self._rest.read1(len(buffer))
            count = len(block)
            buffer[:count] = block
        self._given += count
        return count

    def ready(self) -> bool:
        """Whether more data, or the end, is available without blocking."""
        if self._beginning:
            return True
        try:
            return bool(select.select([self._rest], [], [], 0)[0])
        except (OSError, ValueError):  # not a pipe, or Windows, which cannot tell
            return False


class _StandardInput(io.BufferedReader):
    """Standard input, opened; `current` is that of this process."""

    current: _StandardInput | None = None

    def __init__(self, raw: _Joined) -> None:
        super().__init__(raw)
        self._joined = raw
        _StandardInput.current = self

    def ready(self) -> bool:
        """Whether a line, or the end, is available without blocking."""
        if self.closed:
            return True
        buffered = self._joined.tell() - self.tell()  # peeking at an empty buffer would block
        return (buffered > 0 and b"\n" in self.peek()) or self._joined.ready()


def standard_input_ready() -> bool:
    """Whether the next line of standard input is available without blocking; true before it is opened."""
    return _StandardInput.current is None or _StandardInput.current.ready()


def _beginning(stream: io.BufferedReader) -> tuple[bytes, int]:
    """The first `HEAD_BYTES`, and how many of them are complete lines.

    For JSON lines only what arrived together with the first one, because the next may take long.
    """
    data = b""
    while len(data) < HEAD_BYTES and (block := stream.read1(HEAD_BYTES - len(data))):
        data += block
        lines = data.removeprefix(_UTF8_BOM).split(b"\n", _LINES_SEEN)[:-1]
        if any(line.lstrip()[:1] == b"{" and _first_object(line.decode("utf-8", "replace")) for line in lines):
            return data, data.rfind(b"\n") + 1  # the rest may end inside a character
    return data, len(data)


# Excel's encodings without Unicode: for Latin letters the languages in which they replace cp1252; for others the most
# frequent characters, with the inverse of a share that is usual for them.
_LATIN = dict.fromkeys(["pl", "cs", "sk", "hu", "sl", "hr", "bs", "ro", "sr-Latn"], "cp1250")
_LATIN |= {"tr": "cp1254", "lt": "cp1257", "lv": "cp1257"}
_FREQUENT = {
    "cp1251": (1, "оеаинтсрвлкмі"), "cp1253": (1, "αοιετσνηυρκάόίέή"), "cp1255": (1, "יוהלארתבמשנ"),
    "cp1256": (1, "االيمنتروبعهد"), "cp874": (1, "านรอกเงมยลวดทสตะ\u0e48\u0e49\u0e34\u0e31\u0e35"),
    "cp932": (8, "のにはをたとがでてるなしれい"), "cp949": (8, "이다는에의을가고하지은로한"),
    "gb18030": (8, "的一是不了在人有和这中大为上个国我以要他年于"),
    "cp950": (8, "的一是不了在人有和這中大為上個國我以要他年於"),
}  # fmt: skip


def _other_encoding(data: bytes) -> str:
    """The most probable encoding of bytes that are not UTF-8; empty if none is probable."""
    from veriglot.text.identification import identify

    data = b"".join(
        [line for line in data.splitlines(keepends=True) if "\ufffd" in line.decode("utf-8", "replace")][:200]
    )
    words = b"".join(word for word in re.findall(rb"[A-Za-z\x80-\xff]{2,}", data) if not word.isascii())
    if sum(byte > 127 for byte in words) <= len(words) * 2 / 3:  # Latin letters; of "été" two thirds
        fits = {"cp1252": 0.4}
        for name in dict.fromkeys(["cp1252", *_LATIN.values()]):
            language = identify(data.decode(name, "replace"))
            if language is not None and _LATIN.get(language.tag, "cp1252") == name:
                fits[name] = max(language.confidence, 0.4)
        name = max(fits, key=lambda name: fits[name])
        if name != "cp1252" or "\ufffd" not in data.decode(name, "replace"):
            return name
    shares = {"": 0.55}
    for name, (weight, frequent) in _FREQUENT.items():
        with suppress(UnicodeDecodeError):
            beyond = [char in frequent for char in data.decode(name) if char > "\x7f"]
            shares[name] = weight * sum(beyond) / len(beyond)
    return max(shares, key=lambda name: shares[name])


class _Recoded(io.TextIOWrapper):
    """A text stream in another encoding with lines as UTF-8; invalid bytes stay, so that their lines are refused.

    A line that is UTF-8 already stays as it is.
    """

    def readline(self, size: int = -1, /) -> bytes:  # type: ignore[override]
        try:
            text = super().readline(size)
            with suppress(UnicodeError):
                as_utf8 = text.encode(self.encoding, "surrogateescape").decode("utf-8")
                if max(as_utf8, default="") < "\u0800":  # this may be UTF-8 by chance, as the Polish "STÓŁ" is
                    as_utf8.encode(self.encoding if self.encoding.startswith("cp125") else "ascii")
                text = as_utf8
            return text.encode("utf-8", "surrogateescape")
        except UnicodeDecodeError as error:
            raise InputError(f"this is not valid UTF-16: {error.reason}", "Save it as UTF-8.") from error


class _Unpacked(gzip.GzipFile):
    """The content of a gzip file."""

    def read(self, size: int | None = -1) -> bytes:
        try:
            return super().read(size)
        except (EOFError, OSError, zlib.error) as error:
            raise InputError(
                f"this gzip file is damaged: {error}", "Check that the file is complete.", path=self.name
            ) from error


class Source:
    """One input.

    Args:
        path: a file, or "-" for standard input.

    Attributes:
        path: as shown in messages.
        file: the file, or None for standard input.
        recoded: whether a file that is not UTF-8 is read in its own `encoding` instead of being refused.
    """

    def __init__(self, path: str | Path) -> None:
        self.file = None if str(path) == "-" else Path(path)
        self.path = "standard input" if self.file is None else str(path)
        self.recoded = False
        self._consumed = False
        self._begun = b""  # the bytes read from standard input so far
        self._is_whole = False  # whether these are all, for binary content

    def recode(self) -> None:
        """Read it in its own encoding from now on.

        Raises:
            InputError: the encoding is not known.
        """
        self.recoded = True
        if not self.encoding:
            self.refuse_encoding()

    def refuse_encoding(self) -> NoReturn:
        """Raise the error for bytes in an unsupported encoding."""
        remedy = "Save it as UTF-8 (in Excel: CSV UTF-8)."
        raise InputError("this is not UTF-8, and in no other encoding that is recognised", remedy, path=self.path)

    @cached_property
    def head(self) -> bytes:
        """The first bytes, up to `HEAD_BYTES`."""
        if self.file is None:
            self._begun, whole = _beginning(cast("io.BufferedReader", sys.stdin.buffer))
            if not self._begun.startswith(_BINARY):
                return self._begun[:whole]
            self._begun += sys.stdin.buffer.read()
            self._is_whole = True
        with self.open_seekable() as stream:
            return stream.read(HEAD_BYTES)

    def look(self) -> Head:
        """Look at the beginning without consuming it.

        Raises:
            InputError: it does not exist, cannot be opened, or is no text.
        """
        data = self.head.removeprefix(_UTF8_BOM)
        if data.startswith(b"PAR1"):
            return _binary_head("parquet", self)
        if data.startswith((_ARROW_FILE, _ARROW_STREAM)):
            return _binary_head("arrow", self)
        for magic, what in _NO_TEXT.items():
            if data.startswith(magic):
                remedy = "Unpack it, or save it as CSV, JSON lines or Parquet."
                raise InputError(f"this is {what}", remedy, path=self.path)
        text = data.decode(self.encoding or "ascii", "replace").removeprefix("\ufeff")
        begun = text.lstrip()
        if not begun:
            return Head("empty")
        if begun[0] == "[":
            return _json_head("json", _first_object(begun[1:].lstrip()), begun)
        if begun[0] == "{":
            return _object_head(self, begun)
        return _table_head(self.name, text)

    @cached_property
    def encoding(self) -> str:
        """`utf-8`; `utf-16` by its byte order mark; else one of Excel's without Unicode, empty if it is not known."""
        data = self.head[: len(self.head) - 3 if len(self.head) == HEAD_BYTES else None]
        if data.startswith(_UTF16_BOMS):
            return "utf-16"
        text, ascii_ = (len(data.decode(encoding, "ignore")) for encoding in ("utf-8", "ascii"))
        invalid = len(data.decode("utf-8", "surrogateescape")) - text  # bytes
        if invalid and text - ascii_ <= 0.5 * invalid:  # otherwise it is UTF-8 with damaged lines
            return _other_encoding(data)
        return "utf-8"

    @property
    def name(self) -> str:
        """File name without folders and `.gz`; empty for standard input."""
        return self.file.name.removesuffix(".gz") if self.file else ""

    @property
    def stem(self) -> str:
        """File name without folders and suffix; `stdin` for standard input."""
        return Path(self.name).stem or "stdin"

    def open(self) -> BinaryIO:
        """The bytes from the beginning, as UTF-8 if it is `recoded`. Standard input can be opened once."""
        assert self.head is not None  # looking at standard input stores its beginning
        if self.file is not None or self._is_whole:
            stream = self.open_seekable()
        elif self._consumed:
            raise InputError("standard input was already read", path=self.path)
        else:
            self._consumed = True
            stream = _StandardInput(_Joined(self._begun, cast("io.BufferedReader", sys.stdin.buffer)))
        if self.encoding == "utf-16" or (self.recoded and self.encoding != "utf-8"):
            return cast("BinaryIO", _Recoded(stream, self.encoding, "surrogateescape", newline="\n"))
        return stream

    def open_seekable(self) -> BinaryIO:
        """The bytes as a seekable stream, decompressed; of standard input only if it is binary."""
        if self.file is None:
            whole = io.BytesIO(self._begun)
            return io.BufferedReader(_Unpacked(self.path, fileobj=whole)) if self._begun.startswith(_GZIP) else whole
        try:
            stream = self.file.open("rb")
        except OSError as error:
            raise InputError.of(error, self.path) from error
        if not stream.peek(2).startswith(_GZIP):
            return stream
        stream.close()
        return io.BufferedReader(_Unpacked(self.file))


def is_one_object(container: str, head: Head) -> bool:
    """Whether a file is one JSON object, which may contain rows; an array always has rows."""
    return container == "json" and not head.text.startswith("[")


def rows_of_object(records: Records) -> Iterator[Record | FailedRow]:
    """The rows in one JSON object: a list under a key, or one list or object per column."""
    for record in records:
        data: dict[str, Any] = record.data if isinstance(record, Record) and isinstance(record.data, dict) else {}
        while isinstance(inner := data.get("results"), dict):  # {"results": {"results": [...], "prompts": [...]}}
            data = inner
        values = list(data.values())
        lists = list(filter(_are_rows, values))
        rows: Any
        if _are_rows(inner):
            rows = inner
        elif len(lists) == 1 and not any(isinstance(each, str) for each in values):
            rows = lists[0]
        elif all(isinstance(each, list) for each in values) and len(set(map(len, values))) == 1:
            rows = (dict(zip(data, row, strict=True)) for row in zip(*values, strict=True))
        elif len(values) > 1 and all(isinstance(each, dict) and each.keys() == values[0].keys() for each in values):
            rows = ({column: each[key] for column, each in data.items()} for key in values[0])
        else:
            yield record
            continue
        yield from (Record(index, row) for index, row in enumerate(rows, start=1))


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)
