"""Reading: from a path to samples, whatever the format, one bad row never ending the file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from veriglot.errors import InputError
from veriglot.formats.containers import read_container
from veriglot.formats.format import Format, Reading
from veriglot.formats.guessing import Guess, companion_of, files_in, guess_source
from veriglot.formats.head import look_at
from veriglot.formats.lines import MAX_LINE_BYTES
from veriglot.formats.report import Report
from veriglot.formats.rows import BadRow
from veriglot.formats.source import Source
from veriglot.formats.table import load_format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.records import Sample

__all__ = ["SeenIds", "read", "read_rows"]


class SeenIds:
    """Which ids were met, in 16 bytes and a set entry each, whatever their length."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def is_new(self, id_: str) -> bool:
        """Whether the id is met for the first time."""
        key = hashlib.blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key in self._seen:
            return False
        self._seen.add(key)
        return True


def read(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  the word that users type
    strict: bool = False,
    max_line_bytes: int = MAX_LINE_BYTES,
    report: Report | None = None,
    language: str | None = None,
) -> Iterator[Sample]:
    """Samples of a file, a folder, or standard input ("-"), streamed in order.

    Args:
        path: a file, a folder (all its files of the format are read, in order of their names), or "-".
        format: the format's name; guessed from the content where None.
        strict: refuse what would need a repair.
        max_line_bytes: a longer line is an error, without being held in memory.
        report: filled in with counts of repairs, file by file.
        language: BCP 47 tag for samples whose rows state no language; it wins over one in the file's name.
            Without either their language stays None; it is never assumed.

    Raises:
        InputError: the first row that cannot be read, with path, line and field. `read_rows` goes on instead.
        UnknownNameError: no such format.
    """
    rows = read_rows(
        path, format=format, strict=strict, max_line_bytes=max_line_bytes, report=report, language=language
    )
    for row in rows:
        if isinstance(row, BadRow):
            raise row.error
        yield row


def read_rows(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    strict: bool = False,
    max_line_bytes: int = MAX_LINE_BYTES,
    report: Report | None = None,
    language: str | None = None,
    seen: SeenIds | None = None,
) -> Iterator[Sample | BadRow]:
    """Like `read`, but a row that cannot be read is yielded as a `BadRow` and reading goes on.

    Args:
        path: as for `read`, like what follows.
        format: its format.
        strict: refuse repairs.
        max_line_bytes: the longest line.
        report: filled in.
        language: BCP 47 tag for samples that state none.
        seen: ids that may not occur again, for several inputs that make one output; ids of this path are added. Ids
            of one path never occur twice.

    Raises:
        InputError: the path does not exist, or no format is recognised.
        UnknownNameError: no such format.
    """
    report = report if report is not None else Report()
    seen = seen if seen is not None else SeenIds()
    for source, found in _sources(path, format, report):
        file_report = report.file(source.path, found.format, found.why)
        reading = Reading(source, file_report, strict=strict, language=language)
        format_ = load_format(found.format)
        records = read_container("text" if format_.takes_lines else found.container, source, max_line_bytes)
        for row in format_.rows(records, reading):
            checked = _checked(row, seen, reading)
            if isinstance(checked, BadRow):
                file_report.bad += 1
            else:
                file_report.samples += 1
            yield checked


def _checked(row: Sample | BadRow, seen: SeenIds, reading: Reading) -> Sample | BadRow:
    if isinstance(row, BadRow) or seen.is_new(row.id):
        return row
    error = InputError(
        f"the id {row.id!r} occurred before",
        path=reading.source.path,
        line=reading.line or None,
        field="id",
        remedy="Give every sample an id of its own.",
    )
    return BadRow(reading.source.path, reading.line, error)


def _sources(path: str | Path, name: str | None, report: Report) -> Iterator[tuple[Source, Guess]]:
    if str(path) != "-" and Path(path).is_dir():
        yield from _folder_sources(Path(path), name, report)
        return
    source = Source(path)
    yield source, _as_named(source, name) if name else guess_source(source)


def _folder_sources(folder: Path, name: str | None, report: Report) -> Iterator[tuple[Source, Guess]]:
    any_read = False
    for file in files_in(folder):
        source = Source(file)
        if owner := companion_of(file):
            report.unread[source.path] = f"it is read with the files of the format {owner}"
            continue
        try:
            found = guess_source(source)
        except InputError as error:
            report.unread[source.path] = error.detail
            continue
        if name and found.format != name:
            report.unread[source.path] = f"it is in the format {found.format}"
            continue
        any_read = True
        yield source, found
    if not any_read:
        wanted = f"in the format {name!r}" if name else "in a known format"
        raise InputError(f"no file of this folder is {wanted}", path=str(folder), remedy="Name a file, or --from.")


def _as_named(source: Source, name: str) -> Guess:
    format_ = load_format(name)
    container = look_at(source).container
    if container == "empty":
        raise InputError("the file is empty", path=source.path, remedy="Is it the right file?")
    return Guess(name, "named by the caller", 1.0, _container_for(format_, container, source))


def _container_for(format_: Format, container: str, source: Source) -> str:
    if container in format_.containers:
        return container
    if container == "text" and format_.containers[0] in {"jsonl", "csv", "tsv"}:
        return format_.containers[0]  # so damaged that it does not look like it; each line will say what is wrong
    raise InputError(
        f"the format {format_.name!r} lies in {' or '.join(format_.containers)}, but this looks like {container}",
        path=source.path,
        remedy="Is it another format?",
    )
