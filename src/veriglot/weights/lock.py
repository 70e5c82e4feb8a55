"""One download of a model at a time: a lock between processes that the operating system frees when its holder dies."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

__all__ = ["Lock"]

_PAUSE = 0.2  # seconds between looks


class Lock:
    """Waits until no other process holds `path`, then holds it. The file itself stays: it is empty.

    Args:
        path: of the lock's file.
        waiting: called once, when somebody else holds it.
    """

    def __init__(self, path: Path, *, waiting: Callable[[], None]) -> None:
        self._path = path
        self._waiting = waiting
        self._handle = -1

    def __enter__(self) -> Lock:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            told = False
            while not _held(self._handle):
                if not told:
                    self._waiting()
                    told = True
                time.sleep(_PAUSE)
        except BaseException:
            os.close(self._handle)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _free(self._handle)
        os.close(self._handle)


if sys.platform == "win32":
    import msvcrt

    def _held(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _free(handle: int) -> None:
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _held(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _free(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)
