"""What commands read: a pair of texts, files in any readable format, folders, standard input."""

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
_SMALL = 1 << 20  # bytes of input; less is done before worker processes would be ready


@dataclass(frozen=True)
class Input:
    """One file to read.

    Attributes:
        path: where it is; `-` is standard input.
        relative_path: its path inside the folder that was named, or its name; outputs in a folder are called after it.
    """

    path: str
    relative_path: PurePath


_ROWS = {".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".xlsx"}  # files of rows: none goes unchecked in silence


def find_inputs(
    names: Sequence[str], *, skipped: Callable[[str], None], format_name: str | None = None, columns: Sequence[str] = ()
) -> list[Input]:
    """The files that `names` stand for, in order; folders give their files, sorted by path.

    What an earlier run made of the files of a folder, or left beside its output, is not taken for input. Samples that
    were made of other files are: the responses of a study, or of `veriglot dataset`.

    Args:
        names: files, folders, or `-` for standard input.
        format_name: the format of every file; None takes from folders the files whose format is recognised.
        skipped: told of every file of a folder that is left aside, and why.
        columns: which column holds which part of a sample, as --map has it; any file of rows is taken then.

    Raises:
        InputError: a file does not exist, or a folder holds none.
        UsageError: standard input is named twice, or `columns` cannot be understood.
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
    """What the suffix of an output says, by a table of suffixes.

    Raises:
        UnknownNameError: it is not in the table.
    """
    suffix = Path(output).suffix.lower()
    if suffix not in kinds:
        raise UnknownNameError("kind of output", suffix or str(output), kinds)
    return kinds[suffix]


def require_files(paths: Iterable[str]) -> None:
    """Refuse a path where there is no file.

    Raises:
        InputError: there is none at one of them.
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
            skipped(f"{path} is left aside: an earlier run made it of files of this folder")
    for name, why in unread.items():
        is_companion = any(load_format(owner).reads_beside(Path(name)) for owner in FORMATS.names())
        if Path(name).suffix.lower() in _ROWS and not is_companion:  # refused when it is read, as if it had been named
            inputs.append(Input(name, Path(name).relative_to(folder)))
        else:
            skipped(f"{name} is left aside: {why}")
    if not inputs:
        raise InputError("this folder holds no file that can be read", "Check the path.", path=str(folder))
    return inputs


def _made_of(output: Path) -> list[str]:
    """The names of the files that a run made it of; none where what lies beside it is not from a run."""
    try:
        manifest = Manifest.load(output)
    except UsageError:
        return []
    return [] if manifest is None else [Path(file.path).name for file in manifest.inputs]


def known_tag(language: str | None) -> str | None:
    """The BCP 47 tag of a language given by tag, code or name; None where none is given.

    Raises:
        UnknownNameError: no such language; the error suggests the nearest.
    """
    return None if language is None else get_language(language).tag


def parts(text: str) -> list[str]:
    """The parts of a list that is written with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def language_tags(text: str) -> tuple[str, ...]:
    """The BCP 47 tags of languages that are written with commas, each once.

    Raises:
        UnknownNameError: no such language.
        UsageError: there is none.
    """
    tags = tuple(dict.fromkeys(get_language(part).tag for part in parts(text)))
    if not tags:
        raise UsageError(f"{text!r} names no language.")
    return tags


def jobs_for(inputs: Sequence[Input], asked: int | None) -> int:
    """How many processes to start: as many as asked for, or else 0 (one for each core), and 1 for little input."""
    if asked is not None:
        return asked
    size = sum(Path(file.path).stat().st_size for file in inputs if file.path != STDIN)
    return 0 if size > _SMALL else 1


def count_rows(inputs: Sequence[Input]) -> int | None:
    """How many rows there are, where that is quick to know: JSON lines and Parquet. None otherwise."""
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
    """The rows of some files, in order; those that cannot be read come as `FailedRow`.

    Args:
        inputs: the files.
        format_name: their format; None guesses it from the content.
        language: BCP 47 tag for samples that state none.
        report: where repairs are counted.
        seen: ids that may not occur again, where several files make one output or are joined by id.
        alone: whether there is no other input. A file that cannot be read at all then ends the run; among others it
            is one failed row.
        columns: which column holds which part of a sample, as --map has it.
        labelled: refuse labels that cannot be understood.
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
    """The rows that could be read; how many could not is said in the end, with `outcome` after the number, and why."""
    count, first = 0, None
    for row in rows:
        if isinstance(row, FailedRow):
            count, first = count + 1, first or row.as_error()
        else:
            yield row
    if first:
        say(f"{count:,} {outcome.replace('rows', 'row') if count == 1 else outcome}; the first: {first}")


def read_text(path: str) -> str:
    """A text file, or standard input, exactly as it stands; only a byte order mark is taken off.

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
