"""Files and folders that appear whole or not at all: written aside, as `NAME.partial`, and then renamed."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

__all__ = ["final_path", "open_whole", "partial_path", "whole_folder", "write_json", "write_whole"]

_PARTIAL = ".partial"


def partial_path(path: Path) -> Path:
    """Where the content of `path` is written until it is whole."""
    return path.with_name(path.name + _PARTIAL)


def final_path(partial: Path) -> Path:
    """The path that a `partial_path` was made from; any other path as it is."""
    return partial.with_name(partial.name.removesuffix(_PARTIAL))


@contextmanager
def open_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which replaces `path` when the context ends, and is on the disk then.

    Nobody, not even after a kill, reads half of it. Where the context raises, `path` stays as it was.
    """
    partial = partial_path(path)
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    partial.replace(path)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file in one step (`open_whole`)."""
    with open_whole(path) as file:
        file.write(data)


def write_json(path: Path, value: Any, *, indent: int = 1) -> None:
    """Replace a file by a record as indented JSON, in one step (`open_whole`).

    Args:
        path: the file.
        value: whatever msgspec can encode.
        indent: spaces a level; 0 for one line.
    """
    data = msgspec.json.encode(value)
    write_whole(path, (msgspec.json.format(data, indent=indent) if indent else data) + b"\n")


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder beside `path` to write to; its files are moved into `path` when the context ends.

    A folder that is not there yet appears in one step. Where the context raises, `path` stays as it was.
    """
    partial = partial_path(path)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        if path.exists():
            for file in partial.iterdir():
                file.replace(path / file.name)
        else:
            partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
