"""Which format a file or folder is in, from its content, and why."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from veriglot.errors import InputError
from veriglot.formats.head import Head, look_at
from veriglot.formats.source import Source
from veriglot.formats.table import FORMATS, load_format

__all__ = ["Guess", "companion_of", "files_in", "guess", "guess_source"]

_ENOUGH = 0.5


class Guess(NamedTuple):
    """The format of a file and what it was known from.

    Attributes:
        format: its name.
        why: what in the content says so, for a person to read.
        confidence: 0 to 1.
        container: how the records lie in the file.
    """

    format: str
    why: str
    confidence: float = 1.0
    container: str = "jsonl"


def guess(path: str | Path) -> Guess:
    """Guess the format of a file, of standard input ("-"), or of the files of a folder (the most frequent one).

    Raises:
        InputError: no format is recognised, or the file is empty or missing.
    """
    if str(path) != "-" and Path(path).is_dir():
        return _guess_folder(Path(path))
    return guess_source(Source(path))


def _guess_folder(folder: Path) -> Guess:
    found: Counter[str] = Counter()
    example: dict[str, tuple[Path, Guess]] = {}
    for file in files_in(folder):
        if companion_of(file):
            continue
        try:
            one = guess_source(Source(file))
        except InputError:
            continue
        found[one.format] += 1
        example.setdefault(one.format, (file, one))
    if not found:
        raise InputError("no file of this folder is in a known format", path=str(folder), remedy=_remedy())
    name, count = found.most_common(1)[0]
    file, one = example[name]
    return one._replace(why=f"{count} of the folder's files, such as {file.name}: {one.why}")


def guess_source(source: Source, head: Head | None = None) -> Guess:
    """Guess the format of one file.

    Raises:
        InputError: no format is recognised, or the file is empty.
    """
    head = head or look_at(source)
    if head.container == "empty":
        raise InputError("the file is empty", path=source.path, remedy="Is it the right file?")
    best: Guess | None = None
    for name in FORMATS.names():
        format_ = load_format(name)
        if head.container not in format_.containers:
            continue
        sniffed = format_.sniff(head)
        if sniffed is not None and sniffed.confidence >= _ENOUGH and (not best or sniffed.confidence > best.confidence):
            best = Guess(name, sniffed.why, sniffed.confidence, head.container)
    if best is None:
        if head.has("id", "status", "detector"):
            raise InputError(
                "this holds predictions, not samples",
                path=source.path,
                remedy="Name the samples that they were made of.",
            )
        seen = f"its keys are {', '.join(sorted(head.keys)[:12])}" if head.keys else f"it looks like {head.container}"
        raise InputError(f"no known format fits: {seen}", path=source.path, remedy=_remedy())
    return best


def files_in(folder: Path) -> list[Path]:
    """The files of a folder and the folders in it, sorted by path; hidden ones are left aside."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def companion_of(file: Path) -> str | None:
    """The format with whose files this one is read, without being of it itself; None for most files."""
    for name in FORMATS.names():
        if load_format(name).reads_beside(file):
            return name
    return None


def _remedy() -> str:
    return (
        "A sample has the keys id, response and evidence. For another format, name it (--format, --from of convert,"
        f" format= in Python): {', '.join(FORMATS.names())}."
    )
