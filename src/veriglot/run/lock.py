"""One writer per output: a lock that the operating system lets go of when its holder dies, however it dies."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Lock"]


class Lock:
    """Holds an output for this process, by a file `<output>.lock` that is there as long as the lock is.

    On Windows, which has no advisory locks of this kind, nothing is held.

    Raises:
        UsageError: another process holds the output.
    """

    def __init__(self, output: Path) -> None:
        self._path = output.with_name(output.name + ".lock")
        self._handle: int | None = None
        if sys.platform != "win32":
            self._take(output)

    def release(self) -> None:
        """Let go; calling it again does nothing."""
        if self._handle is not None:
            self._path.unlink(missing_ok=True)  # while it is held, so that nobody waits for a file that is gone
            os.close(self._handle)
            self._handle = None

    def _take(self, output: Path) -> None:
        import fcntl

        while self._handle is None:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                raise UsageError(
                    f"Another process is writing {output}.", remedy="Wait for it, or name another output."
                ) from None
            if self._is_there(handle):
                self._handle = handle
            else:  # its last holder removed it between our opening and our locking
                os.close(handle)

    def _is_there(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), self._path.stat())
        except FileNotFoundError:
            return False
