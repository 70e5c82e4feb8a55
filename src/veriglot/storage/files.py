"""Files and folders that appear whole or not at all, written aside as `NAME.partial`; and locks that die with us."""

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
_PAUSE = 0.2  # seconds between attempts to take a lock


def beside(path: Path, suffix: str) -> Path:
    """The file beside another that is called like it, with a further suffix."""
    return path.with_name(path.name + suffix)


def partial_path(path: Path) -> Path:
    """Where the content of `path` is written until it is whole."""
    return beside(path, _PARTIAL)


def final_path(partial: Path) -> Path:
    """The path that a `partial_path` was made from; any other path as it is."""
    return partial.with_name(partial.name.removesuffix(_PARTIAL))


@contextmanager
def open_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which replaces `path` when the context ends, and is on the disk then.

    Nobody, not even after a kill, reads half of it. Where the context raises, `path` stays as it was. Its permissions
    stay in any case.
    """
    partial = partial_path(path)
    try:
        with partial.open("wb") as file:
            if path.exists():
                partial.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_IWUSR)  # what a kill leaves can be written
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


class Lock:
    """Holds an output for this process, by a file `<output>.lock`, until it is released or the process ends.

    The operating system frees it when the process dies, however it dies.

    Args:
        output: what is held; a file, a folder, or only a name.
        waiting: called once where another process holds it, which is then waited for; the file stays after the release.
            None refuses instead, and the file goes with the release.

    Raises:
        UsageError: another process holds the output, and it is not to be waited for.
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
        """Whether a process has the lock of an output."""
        from filelock import lock_descriptor

        try:
            with beside(output, ".lock").open("rb") as file:
                return not lock_descriptor(file.fileno(), blocking=False)  # closing the file frees it
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let go; calling it again does nothing."""
        if not self._lock.is_locked:
            return
        if self._removed:  # while it is held, so that nobody holds a file that is gone
            with suppress(PermissionError):  # Windows removes no open file, but when it is released
                self._path.unlink(missing_ok=True)
        self._lock.release()

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
