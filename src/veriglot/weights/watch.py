"""Watching a folder grow, to tell how far somebody else's download is."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

__all__ = ["Watch"]

_PAUSE = 0.25  # seconds between looks


class Watch:
    """While it is entered, tells again and again how many bytes the files below a folder have.

    Args:
        folder: which; it need not be there.
        tell: called with bytes, from a thread of its own.
    """

    def __init__(self, folder: Path, tell: Callable[[int], None]) -> None:
        self._folder, self._tell = folder, tell
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_PAUSE):
            self._tell(_bytes_below(self._folder))


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # gone, or renamed, since it was listed
            continue
    return total
