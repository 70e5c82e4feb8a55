"""Inputs of commands: a pair of texts, files in any readable format, folders, standard input."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, TypeVar

from veriglot.cli.console import say
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.records.languages import get_language
from veriglot.storage.checkpoint import FailedRow, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from veriglot.formats.base import Report
    from veriglot.formats.reader import SeenIds
    from veriglot.records import Sample

__all__ = [
    "STDIN",
    "Input",
    "count_rows",
    "find_inputs",
    "jobs_for",
    "kind_of",
    "known_tag",
    "language_tags",
    "parts",
    "read_text",
    "readable",
    "require_files",
    "rows_of",
]

STDIN = "-"
T = TypeVar("T")
_SMALL = 1 << 20  # bytes of input; less is finished before worker processes would be ready


@dataclass(frozen=True)
class Input:
    """One file to read.

    Attributes:
        path: the file; `-` for standard input.
        relative_path: its path inside the given folder, or its name; outputs in a folder have the same.
    """

    path: str
    relative_path: PurePath


_ROWS = {".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".xlsx"}  # files of rows: none may be skipped silently


def find_inputs(
    names: Sequence[str], *, skipped: Callable[[str], None], format_name: str | None = None, columns: Sequence[str] = ()
) -> list[Input]:
    """The files of `names`, in order; folders are replaced by their files, sorted by path.

    Outputs that an earlier run made from the files of a folder, and files beside these outputs, are skipped. Samples
    that were made from other files are read: the responses of a study, or of `veriglot dataset`.

    Args:
        names: files, folders, or `-` for standard input.
        format_name: the format of every file; if None, files with an unknown format are skipped in folders.
        skipped: called with every skipped file of a folder, and the reason.
        columns: mapping from sample field to column, as for --map; then every file of rows is read.

    Raises:
        InputError: a file does not exist, or a folder has none.
        UsageError: standard input is given twice, or `columns` is invalid.
    """
    from veriglot.formats.reader import columns_from

    if columns_from(columns):
        format_name = format_name or "columns"
    inputs = []
    for name in names:
        path = Path(name)
        if name == STDIN:
            inputs.append(Input(STDIN, PurePath("stdin")))
        elif path.is_dir():
            inputs += _inside(path, format_name, skipped)
        elif path.exists():
            inputs.append(Input(name, PurePath(path.name)))
        else:
            raise InputError.of(FileNotFoundError(), name)
    if [file.path for file in inputs].count(STDIN) > 1:
        raise UsageError("Standard input can be read only once.")
    return inputs


def kind_of(output: str | Path, kinds: Mapping[str, str]) -> str:
    """The kind of an output by its suffix, from a mapping of suffixes to kinds.

    Raises:
        UnknownNameError: the suffix is not in the mapping.
    """
    suffix = Path(output).suffix.lower()
    if suffix not in kinds:
        raise UnknownNameError("kind of output", suffix or str(output), kinds)
    return kinds[suffix]


def require_files(paths: Iterable[str]) -> None:
    """Check that all paths are files.

    Raises:
        InputError: one is not.
    """
    for path in paths:
        if not Path(path).is_file():
            raise InputError.of(FileNotFoundError(), path)


def _inside(folder: Path, format_name: str | None, skipped: Callable[[str], None]) -> list[Input]:
    from veriglot.formats.base import FORMATS, load_format
    from veriglot.formats.reader import files_in, readable_files

    names = {path.name for path in files_in(folder)}
    unread: dict[str, str] = {}
    inputs = []
    for source, _ in readable_files(folder, unread, format_name):
        path = Path(source.path)
        if names.isdisjoint(_made_of(path)):
            inputs.append(Input(source.path, path.relative_to(folder)))
        else:
            skipped(f"{path} is skipped: an earlier run made it from files of this folder")
    for name, why in unread.items():
        is_companion = any(load_format(owner).reads_beside(Path(name)) for owner in FORMATS.names())
        if Path(name).suffix.lower() in _ROWS and not is_companion:  # reading will reject it, as a named file
            inputs.append(Input(name, Path(name).relative_to(folder)))
        else:
            skipped(f"{name} is skipped: {why}")
    if not inputs:
        raise InputError("this folder holds no file that can be read", "Check the path.", path=str(folder))
    return inputs


def _made_of(output: Path) -> list[str]:
    """The input files of a run's output; none if the files beside it are not from a run."""
    try:
        manifest = Manifest.load(output)
    except UsageError:
        return []
    return [] if manifest is None else [Path(file.path).name for file in manifest.inputs]


def known_tag(language: str | None) -> str | None:
    """The BCP 47 tag of a language given by tag, code or name; None stays None.

    Raises:
        UnknownNameError: no such language; the error suggests the most similar ones.
    """
    return None if language is None else get_language(language).tag


def parts(text: str) -> list[str]:
    """The parts of a comma-separated list."""
    return [part.strip() for part in text.split(",") if part.strip()]


def language_tags(text: str) -> tuple[str, ...]:
    """The BCP 47 tags in a comma-separated list of languages, without duplicates.

    Raises:
        UnknownNameError: no such language.
        UsageError: the list is empty.
    """
    tags = tuple(dict.fromkeys(get_language(part).tag for part in parts(text)))
    if not tags:
        raise UsageError(f"{text!r} names no language.")
    return tags


def jobs_for(inputs: Sequence[Input], asked: int | None) -> int:
    """Number of processes: as requested, or else 0 (one per core), and 1 for little input."""
    if asked is not None:
        return asked
    size = sum(Path(file.path).stat().st_size for file in inputs if file.path != STDIN)
    return 0 if size > _SMALL else 1


def count_rows(inputs: Sequence[Input]) -> int | None:
    """Number of rows, if it is quick to count: JSON lines and Parquet. None otherwise."""
    total = 0
    for source in inputs:
        suffix = source.relative_path.suffix.lower()
        if suffix == ".jsonl":
            with Path(source.path).open("rb") as file:
                total += sum(1 for line in file if not line.isspace())
        elif suffix == ".parquet":
            from veriglot.formats.containers import parquet_module

            total += parquet_module().ParquetFile(source.path).metadata.num_rows
        else:
            return None
    return total


def rows_of(
    inputs: Sequence[Input],
    *,
    format_name: str | None = None,
    language: str | None = None,
    report: Report | None = None,
    seen: SeenIds | None = None,
    alone: bool | None = None,
    columns: Sequence[str] = (),
    labelled: bool = False,
) -> Iterator[Sample | FailedRow]:
    """The rows of some files, in order; unreadable rows are a `FailedRow`.

    Args:
        inputs: the files.
        format_name: their format; None detects it.
        language: BCP 47 tag of samples that have none.
        report: gets counts of repairs.
        seen: ids that may not occur again, if several files make one output or are joined by id.
        alone: whether there is no other input. Then a completely unreadable file ends the run; otherwise it is one
            failed row.
        columns: mapping from sample field to column, as for --map.
        labelled: refuse labels with unknown meaning.
    """
    from veriglot.formats.reader import columns_from, read_rows

    alone = len(inputs) == 1 if alone is None else alone
    for source in inputs:
        try:
            yield from read_rows(
                source.path, format=format_name, language=language, report=report, seen=seen,
                columns=columns_from(columns), labelled=labelled,
            )  # fmt: skip
        except InputError as error:
            if alone:
                raise
            yield FailedRow.of(error.at(path=source.path), None)


def readable(rows: Iterable[T | FailedRow], outcome: str) -> Iterator[T]:
    """The readable rows; the number of others is reported at the end, with `outcome` after the number, and why."""
    count, first = 0, None
    for row in rows:
        if isinstance(row, FailedRow):
            count, first = count + 1, first or row.as_error()
        else:
            yield row
    if first:
        say(f"{count:,} {outcome.replace('rows', 'row') if count == 1 else outcome}; the first: {first}")


def read_text(path: str) -> str:
    """The content of a text file or of standard input, unchanged except for a byte order mark.

    Raises:
        InputError: there is no such file, or it is not UTF-8.
    """
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except OSError as error:
        raise InputError.of(error, path) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(
            f"this is not valid UTF-8: byte {error.start} is 0x{data[error.start]:02x}",
            "Convert the file to UTF-8 first.",
            path=path,
            line=line,
        ) from None
