"""A file of whole lines that only grows: the rows that are done, one a line, safe against a kill at any moment.

Every line goes to the operating system in one append as soon as it is known. A process that is killed leaves at most
one line without its line break, which is cut off on opening.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from veriglot.records import decode_json, prediction_from

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from veriglot.records import Prediction

__all__ = ["Journal", "predictions_in"]

_BLOCK = 1 << 20


class Journal:
    """Append-only lines in one file.

    Args:
        path: the file; made on the first line if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._unsynced = False

    def repair(self) -> int:
        """Cut off a last line that was not finished.

        Returns:
            The number of bytes cut off; 0 where the last line was whole or there is no file.
        """
        if not self.path.exists():
            return 0
        size = self.path.stat().st_size
        whole = _end_of_last_line(self.path, size)
        if whole < size:
            os.truncate(self.path, whole)
        return size - whole

    def lines(self) -> Iterator[bytes]:
        """The whole lines, without their line breaks; none where there is no file."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line[:-1]

    def keep(self, lines: int) -> None:
        """Cut the file after its first `lines` lines."""
        size = 0
        with self.path.open("rb") as file:
            for _ in range(lines):
                size += len(file.readline())
        os.truncate(self.path, size)

    def append(self, line: bytes) -> None:
        """Write one line and its line break, in one call."""
        if self._file is None:
            self._file = self.path.open("ab", buffering=0)
        data = line + b"\n"
        written = self._file.write(data)
        while written is not None and written < len(data):  # a nearly full disk, or more than 2 GB
            data = data[written:]
            written = self._file.write(data)
        self._unsynced = True

    def sync(self) -> None:
        """Have the disk itself hold what was written, so that it outlives a power failure."""
        if self._file is not None and self._unsynced:
            os.fsync(self._file.fileno())
            self._unsynced = False

    def touch(self) -> None:
        """Make the file, so that a run without rows has an output too."""
        self.path.touch()

    def close(self) -> None:
        """Sync and close; appending opens it again."""
        if self._file is not None:
            self.sync()
            self._file.close()
            self._file = None


def predictions_in(path: Path) -> Iterator[Prediction]:
    """The predictions of a file of finished rows, in order."""
    for line in Journal(path).lines():
        yield prediction_from(decode_json(line))


def _end_of_last_line(path: Path, size: int) -> int:
    with path.open("rb") as file:
        end = size
        while end > 0:
            start = max(0, end - _BLOCK)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0
