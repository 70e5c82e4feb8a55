"""Answers that were fetched once, in one SQLite file, so that work that was interrupted asks nothing twice."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import zlib
from typing import TYPE_CHECKING, Self

from veriglot.sources.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

__all__ = ["Kept"]

_VERSION = 1


class Kept:
    """Bytes by key, safe for several threads and processes; whatever is killed when, an answer is there or not.

    Args:
        folder: made if it is not there; the file in it is `answers.sqlite`.

    Raises:
        SourceError: it cannot be made, opened or read, or is of another version.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        with self._guarded():
            folder.mkdir(parents=True, exist_ok=True)
            self._database = self._open()

    def get(self, key: str) -> bytes | None:
        """What was put under the key, or None."""
        with self._guarded(), self._lock:
            row = self._database.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
            return zlib.decompress(row[0]) if row is not None else None

    def put(self, key: str, answer: bytes) -> None:
        """Keep an answer; the first one under a key stays."""
        with self._guarded(), self._lock:
            self._database.execute("INSERT OR IGNORE INTO answers VALUES (?, ?)", (key, zlib.compress(answer)))

    def __len__(self) -> int:
        with self._guarded(), self._lock:
            return int(self._database.execute("SELECT count(*) FROM answers").fetchone()[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(
            self._folder / "answers.sqlite", timeout=60.0, isolation_level=None, check_same_thread=False
        )
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")  # a lost answer is asked for again, at no cost but time
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            database.close()
            raise self._trouble(f"it is of version {version}, and this Veriglot reads version {_VERSION}")
        database.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer BLOB NOT NULL)")
        database.execute(f"PRAGMA user_version = {_VERSION}")
        return database

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, zlib.error) as error:
            raise self._trouble(str(error)) from error

    def _trouble(self, what: str) -> SourceError:
        return SourceError(
            f"The folder of fetched answers {self._folder} cannot be used: {what}",
            remedy="Free the disk, or name another folder; its answers are fetched again.",
        )
