"""Where bytes come from: a file or standard input, with a look at its beginning that consumes nothing."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import BinaryIO

from veriglot.errors import InputError

__all__ = ["HEAD_BYTES", "Source"]

HEAD_BYTES = 1 << 20


class _Joined(io.RawIOBase):
    """A beginning that was read ahead, followed by the rest of the stream it was read from."""

    def __init__(self, beginning: bytes, rest: BinaryIO) -> None:
        self._beginning = memoryview(beginning)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        if self._beginning:
            count = min(len(buffer), len(self._beginning))
            buffer[:count] = self._beginning[:count]
            self._beginning = self._beginning[count:]
            return count
        block = self._rest.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)


class Source:
    """One input.

    Args:
        path: a file, or "-" for standard input.

    Attributes:
        path: as shown in messages.
        file: the file, or None for standard input.
        head: the first bytes (up to `HEAD_BYTES`).
        complete: whether `head` is all there is.

    Raises:
        InputError: the file does not exist or cannot be opened.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.file = None if self.path == "-" else Path(path)
        self._rest: BinaryIO | None = None
        if self.file is None:
            self._rest = sys.stdin.buffer
            self.head = self._rest.read(HEAD_BYTES)
        else:
            with self._open_file() as stream:
                self.head = stream.read(HEAD_BYTES)
        self.complete = len(self.head) < HEAD_BYTES

    @classmethod
    def unread(cls, path: str | Path) -> Source:
        """A place to read from later, which need not exist yet; it is not opened."""
        source = cls.__new__(cls)
        source.path = str(path)
        source.file = None if source.path == "-" else Path(path)
        source._rest, source.head, source.complete = None, b"", True
        return source

    @property
    def name(self) -> str:
        """File name without folders, empty for standard input."""
        return self.file.name if self.file else ""

    @property
    def stem(self) -> str:
        """File name without folders and last suffix; `stdin` for standard input."""
        return self.file.stem if self.file else "stdin"

    def open(self) -> BinaryIO:
        """The bytes from the beginning. Standard input can be opened once."""
        if self.file is not None:
            return self._open_file()
        if self._rest is None:
            raise InputError("standard input was already read", path=self.path)
        stream, self._rest = self._rest, None
        return io.BufferedReader(_Joined(self.head, stream))

    def open_seekable(self) -> BinaryIO:
        """The bytes as a stream that can jump; standard input is read into memory for that."""
        if self.file is not None:
            return self._open_file()
        with self.open() as stream:
            return io.BytesIO(stream.read())

    def _open_file(self) -> BinaryIO:
        assert self.file is not None
        try:
            return self.file.open("rb")
        except FileNotFoundError as error:
            raise InputError("there is no such file", path=self.path, remedy="Check the path.") from error
        except OSError as error:
            raise InputError(f"it cannot be opened: {error.strerror}", path=self.path) from error
