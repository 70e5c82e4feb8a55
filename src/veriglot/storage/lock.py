"""One process at a time, by a lock that the operating system frees when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

__all__ = ["Lock", "is_locked"]

_PAUSE = 0.2  # seconds between attempts


class Lock:
    """Holds an output for this process, by a file `<output>.lock`, until it is released or the process ends.

    Args:
        output: what is held; a file, a folder, or only a name.
        waiting: called once where another process holds it, which is then waited for; the file stays after the release.
            None refuses instead, and the file goes with the release.

    Raises:
        UsageError: another process holds the output, and it is not to be waited for.
    """

    def __init__(self, output: Path, *, waiting: Callable[[], None] | None = None) -> None:
        from filelock import FileLock, Timeout

        self._path = _lock_path(output)
        self._removed = waiting is None
        self._lock = FileLock(self._path, thread_local=False)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            if waiting is None:
                raise UsageError(
                    f"Another process is writing {output}.", remedy="Wait for it, or name another output."
                ) from None
            waiting()
            self._lock.acquire(poll_interval=_PAUSE)

    def release(self) -> None:
        """Let go; calling it again does nothing."""
        if not self._lock.is_locked:
            return
        # Removed while it is held, so that nobody holds a file that is gone; Windows removes no open file.
        if self._removed and sys.platform != "win32":
            self._path.unlink(missing_ok=True)
        self._lock.release()
        if self._removed and sys.platform == "win32":
            with contextlib.suppress(OSError):  # another process holds it by now
                self._path.unlink(missing_ok=True)

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def is_locked(output: Path) -> bool:
    """Whether a process holds the `Lock` of an output."""
    from filelock import lock_descriptor

    try:
        with _lock_path(output).open("rb") as file:
            return not lock_descriptor(file.fileno(), blocking=False)  # closing the file frees it
    except FileNotFoundError:
        return False


def _lock_path(output: Path) -> Path:
    return output.with_name(output.name + ".lock")
