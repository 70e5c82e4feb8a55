"""Rows by key in one SQLite file, for several threads and processes; a kill never leaves half a row."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from pathlib import Path

    from veriglot.errors import VeriglotError

__all__ = ["Cache", "LRUCache"]

_BUSY = 60.0  # maximum seconds to wait for another process that writes
_VERSION = 1


T = TypeVar("T")


class LRUCache(Generic[T]):
    """An in-memory LRU cache. Threads may share it.

    Args:
        room: maximum total size of all values.
        size: size of a value; None counts each as 1. Values larger than the room are not stored.
    """

    def __init__(self, room: int, size: Callable[[T], int] | None = None) -> None:
        self.room, self.filled = room, 0
        self._size = size or (lambda _: 1)
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> T | None:
        """The value of a key, or None if there is none."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: T) -> None:
        """Store a value."""
        with self._lock:
            if key in self._values:
                self.filled -= self._size(self._values.pop(key))
            if self._size(value) <= self.room:
                self._values[key] = value
                self.filled += self._size(value)
            while self.filled > self.room:
                self.filled -= self._size(self._values.popitem(last=False)[1])


class Cache:
    """One table in one SQLite file.

    SQLite's write-ahead log lets others read while one writes.

    Args:
        path: of the file; its folder is created.
        table: the statement that creates the table, if it does not exist.
        error: creates the error to raise from a message.
        durable: whether a row is on disk, safe from a power failure, when `write` returns.

    Raises:
        VeriglotError: from `error`, here and in every method: the file cannot be created, opened, read or written, or
            has another version.
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
        """The rows of a query."""
        with self.guarded(), self._lock:
            return self._database.execute(query, values).fetchall()

    def write(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each row, in one transaction."""
        with self.guarded(), self._lock, self._database:  # the last commits, or rolls back
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany(statement, rows)

    def close(self) -> None:
        """Close the file; calling it again does nothing."""
        with self._lock:
            self._database.close()

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Convert errors of SQLite and of the file system to this cache's error."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._error(str(error)) from error
