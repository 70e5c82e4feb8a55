"""Rows by key in one SQLite file, for several threads and processes; whatever is killed when, a row is there or not."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from veriglot.errors import VeriglotError

__all__ = ["Cache"]

_BUSY = 60.0  # seconds that another process may write
_VERSION = 1


class Cache:
    """One table in one SQLite file.

    The write-ahead log of SQLite lets readers go on while one writes.

    Args:
        path: of the file; its folder is made.
        table: the statement that creates the table, if it does not exist.
        error: the error to raise, made from what went wrong.
        durable: a row is on the disk, and outlives a power failure, when `write` returns.

    Raises:
        VeriglotError: by `error`, here and in every method: the file cannot be made, opened, read or written, or is of
            another version.
    """

    def __init__(self, path: Path, table: str, *, error: Callable[[str], VeriglotError], durable: bool = False) -> None:
        self._error = error
        self._lock = threading.Lock()
        with self.guarded():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                self._database.close()
                raise error(f"it is of version {version}, and this Veriglot reads version {_VERSION}")
            if version == 0:
                self._database.execute(table)
                self._database.execute(f"PRAGMA user_version = {_VERSION}")

    def read(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that a query selects."""
        with self.guarded(), self._lock:
            return self._database.execute(query, values).fetchall()

    def write(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each row, in one transaction."""
        with self.guarded(), self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._database.executemany(statement, rows)
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    def close(self) -> None:
        """Close the file; calling it again does nothing."""
        with self._lock:
            self._database.close()

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Raise errors of SQLite and of the file system as this cache's error."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._error(str(error)) from error
