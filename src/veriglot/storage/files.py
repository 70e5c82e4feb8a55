"""Atomic writes of files and folders, through `NAME.partial`; and locks that end with the process."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["Lock", "final_path", "open_whole", "partial_path", "whole_folder", "write_json", "write_whole"]

_PARTIAL = ".partial"
_PAUSE = 0.2  # seconds between attempts to lock


def beside(path: Path, suffix: str) -> Path:
    """The path with a further suffix."""
    return path.with_name(path.name + suffix)


def partial_path(path: Path) -> Path:
    """Where the content of `path` is written until it is complete."""
    return beside(path, _PARTIAL)


def final_path(partial: Path) -> Path:
    """The inverse of `partial_path`; other paths are unchanged."""
    return partial.with_name(partial.name.removesuffix(_PARTIAL))


@contextmanager
def open_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which replaces `path` when the context ends, and is flushed to disk.

    Nobody can read half of it, not even after a kill. After an exception `path` is unchanged. Its permissions always
    stay.
    """
    partial = partial_path(path)
    try:
        with partial.open("wb") as file:
            if path.exists():
                partial.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_IWUSR)  # leftovers of a kill stay writable
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    partial.replace(path)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file atomically (`open_whole`)."""
    with open_whole(path) as file:
        file.write(data)


def write_json(path: Path, value: Any, *, indent: int = 1) -> None:
    """Replace a file by a value as indented JSON, atomically (`open_whole`).

    Args:
        path: the file.
        value: anything that msgspec can encode.
        indent: spaces per level; 0 for one line.
    """
    data = msgspec.json.encode(value)
    write_whole(path, (msgspec.json.format(data, indent=indent) if indent else data) + b"\n")


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path`; its files are moved into `path` when the context ends.

    A new folder appears in one step. After an exception `path` is unchanged.
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


class Lock:
    """Locks an output for this process, with a file `<output>.lock`, until `release` or the end of the process.

    The operating system frees it when the process dies, for any reason.

    Args:
        output: what to lock; a file, a folder, or just a name.
        waiting: called once if another process has the lock, which is then waited for; the lock file stays afterwards.
            None raises an error instead of waiting, and the lock file is removed at the end.

    Raises:
        UsageError: another process has the lock, and `waiting` is None.
    """

    def __init__(self, output: Path, *, waiting: Callable[[], None] | None = None) -> None:
        from filelock import FileLock, Timeout

        self._path = beside(output, ".lock")
        self._removed = waiting is None
        self._lock = FileLock(self._path, thread_local=False)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            if not self._path.exists():
                raise UsageError(f"{output} cannot be written there.", "Name another output.") from None
            if waiting is None:
                raise UsageError(
                    f"Another process is writing {output}.", "Wait for it, or name another output."
                ) from None
            waiting()
            self._lock.acquire(poll_interval=_PAUSE)

    @staticmethod
    def is_taken(output: Path) -> bool:
        """Whether a process has locked an output."""
        from filelock import lock_descriptor

        try:
            with beside(output, ".lock").open("rb") as file:
                return not lock_descriptor(file.fileno(), blocking=False)  # closing the file unlocks it
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Unlock; calling it again does nothing."""
        if not self._lock.is_locked:
            return
        if self._removed:  # while locked, so that nobody locks a removed file
            with suppress(PermissionError):  # Windows cannot remove open files; it is removed on release
                self._path.unlink(missing_ok=True)
        self._lock.release()

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
