"""Finished calls in one SQLite file, for several threads and processes at once."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import sys
import threading
import time
import zlib
from typing import TYPE_CHECKING

import msgspec

from veriglot.llm.errors import CacheError
from veriglot.llm.limits import Spent
from veriglot.llm.records import Reply, Request

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Store"]

_VERSION = 1
_BUSY = 60.0
_DECODER = msgspec.json.Decoder(Reply)

_TABLE = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    reply BLOB NOT NULL
) WITHOUT ROWID
"""


class Store:
    """Replies by key, and the right to ask for one.

    SQLite's write-ahead log lets readers go on while one writes, and makes each reply all there or not at all, whatever
    is killed when. Who asks is settled by locks that the operating system drops with their holder: one byte of
    `calls.lock` per key between processes, one `threading.Lock` per key within this one.

    Args:
        folder: made if it is not there.

    Raises:
        CacheError: it cannot be made or opened, or is of another version.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        with self._guarded():
            folder.mkdir(parents=True, exist_ok=True)
            self._claims = _claims_of(folder)
            with self._claims.of("open"):  # switching the journal's mode wants the file for itself
                self._database = self._open()

    def get(self, key: str) -> Reply | None:
        """The reply of a finished call, or None."""
        with self._guarded(), self._lock:
            row = self._database.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            return _DECODER.decode(zlib.decompress(row[0]))
        except (zlib.error, msgspec.MsgspecError) as error:
            raise self._trouble(f"a reply in it cannot be read ({error})") from error

    def put(self, key: str, request: Request, reply: Reply) -> None:
        """Keep a reply; on the disk when this returns."""
        cost = Spent().plus(request, reply)
        blob = zlib.compress(msgspec.json.encode(reply), 6)
        row = (key, request.model, cost.tokens_in, cost.tokens_out, blob)
        with self._guarded(), self._lock:
            self._database.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?)", row)

    def spent(self) -> Spent:
        """What all kept calls cost."""
        wanted = "SELECT count(*), coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0) FROM replies"
        with self._guarded(), self._lock:
            return Spent(*self._database.execute(wanted).fetchone())

    def claim(self, key: str) -> contextlib.AbstractContextManager[None]:
        """The right to ask for a key, for the time of the context; waits while another holds it."""
        return self._claims.of(key)

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        with self._lock:
            self._database.close()

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(
            self._folder / "calls.sqlite", timeout=_BUSY, isolation_level=None, check_same_thread=False
        )
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")  # a reply costs more than waiting for the disk
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            database.close()
            raise self._trouble(f"it is of version {version}, and this Veriglot reads version {_VERSION}")
        if version == 0:
            database.execute(_TABLE)
            database.execute(f"PRAGMA user_version = {_VERSION}")
        return database

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._trouble(str(error)) from error

    def _trouble(self, what: str) -> CacheError:
        return CacheError(
            f"The folder of finished calls {self._folder} cannot be used: {what}",
            remedy="Free the disk, or name another folder; the calls in a new folder are paid for again.",
        )


class _Claims:
    """The right to ask, by key, over the threads of this process and over processes.

    Locks of the operating system belong to the process, and are all lost when any handle on their file is closed:
    there is one object of this class per file, for as long as the process lives.
    """

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._threads: dict[str, tuple[threading.Lock, list[int]]] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def of(self, key: str) -> Iterator[None]:
        with self._lock:
            turn, users = self._threads.setdefault(key, (threading.Lock(), [0]))
            users[0] += 1
        try:
            with turn, self._of_process(key):
                yield
        finally:
            with self._lock:
                users[0] -= 1
                if not users[0]:
                    del self._threads[key]

    @contextlib.contextmanager
    def _of_process(self, key: str) -> Iterator[None]:
        if sys.platform == "win32":  # no locks of this kind: two processes may ask the same, and one reply is kept
            yield
            return
        import fcntl

        place = int.from_bytes(hashlib.sha256(key.encode()).digest()[:7], "big")
        wait = 0.002
        while True:
            try:
                # Never a lock that waits in the kernel: two processes whose threads wait for each other's keys look
                # like a deadlock to it, and are none.
                fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                break
            except (BlockingIOError, PermissionError):
                time.sleep(wait)
                wait = min(2 * wait, 0.1)
        try:
            yield
        finally:
            fcntl.lockf(self._handle, fcntl.LOCK_UN, 1, place)


_ALL_CLAIMS: dict[tuple[int, str], _Claims] = {}
_ALL_LOCK = threading.Lock()


def _claims_of(folder: Path) -> _Claims:
    """The claims of a folder, the same object for all who use the folder in this process."""
    path = folder.resolve() / "calls.lock"
    with _ALL_LOCK:
        name = (os.getpid(), str(path))  # a child of a fork holds none of its parent's locks
        if name not in _ALL_CLAIMS:
            _ALL_CLAIMS[name] = _Claims(path)
        return _ALL_CLAIMS[name]
