"""Finished calls in one SQLite file, for several threads and processes at once."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from veriglot.llm.client import CacheError, Closing, Reply, Request, request_key
from veriglot.llm.limits import usage_of
from veriglot.storage.cache import Cache
from veriglot.storage.checkpoint import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.llm.client import Client

__all__ = ["Cached", "Store"]


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

    Who asks is settled by locks that the operating system drops with their holder: one byte of `calls.lock` per key
    between processes, one `threading.Lock` per key within this one.

    Args:
        folder: made if it is not there.

    Raises:
        CacheError: it cannot be made or opened, or is of another version.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._claims = _claims_of(folder)
        except OSError as error:
            raise self._error(str(error)) from error
        with self._claims.of("open"):  # switching the journal's mode wants the file for itself
            # Durable, as a reply costs more than waiting for the disk.
            self._cache = Cache(folder / "calls.sqlite", _TABLE, error=self._error, durable=True)

    def get(self, key: str) -> Reply | None:
        """The reply of a finished call, or None."""
        rows = self._cache.read("SELECT reply FROM replies WHERE key = ?", (key,))
        if not rows:
            return None
        try:
            return _DECODER.decode(zlib.decompress(rows[0][0]))
        except (zlib.error, msgspec.MsgspecError) as error:
            raise self._error(f"a reply in it cannot be read ({error})") from error

    def put(self, key: str, request: Request, reply: Reply) -> None:
        """Keep a reply; on the disk when this returns."""
        cost = usage_of(request, reply)
        blob = zlib.compress(msgspec.json.encode(reply), 6)
        row = (key, request.model, cost.tokens_in, cost.tokens_out, blob)
        self._cache.write("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?)", [row])

    def spent(self) -> Usage:
        """What all kept calls cost."""
        sums = "SELECT count(*), coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0) FROM replies"
        return Usage(*self._cache.read(sums)[0])

    def claim(self, key: str) -> contextlib.AbstractContextManager[None]:
        """The right to ask for a key, for the time of the context; waits while another holds it."""
        return self._claims.of(key)

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        self._cache.close()

    def _error(self, what: str) -> CacheError:
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

        offset = int.from_bytes(hashlib.sha256(key.encode()).digest()[:7], "big")
        wait = 0.002
        while True:
            try:
                # Never a lock that waits in the kernel: two processes whose threads wait for each other's keys look
                # like a deadlock to it, and are none.
                fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
                break
            except (BlockingIOError, PermissionError):
                time.sleep(wait)
                wait = min(2 * wait, 0.1)
        try:
            yield
        finally:
            fcntl.lockf(self._handle, fcntl.LOCK_UN, 1, offset)


_CLAIMS: dict[tuple[int, str], _Claims] = {}
_CLAIMS_LOCK = threading.Lock()


def _claims_of(folder: Path) -> _Claims:
    """The claims of a folder, the same object for all who use the folder in this process."""
    path = folder.resolve() / "calls.lock"
    with _CLAIMS_LOCK:
        name = (os.getpid(), str(path))  # a child of a fork holds none of its parent's locks
        if name not in _CLAIMS:
            _CLAIMS[name] = _Claims(path)
        return _CLAIMS[name]


# A client that never asks the same twice: finished calls are kept, calls under way are shared.


class Cached(Closing):
    """Answers from a folder of finished calls, and asks the client only what is not there.

    A call is known by the client's signature and the whole request (`request_key`), so that another model, setting,
    seed or server is another call. The reply is in the folder before `ask` returns: a process that is killed at any
    moment pays again for nothing that it had received. Several threads, clients and processes may use one folder; a
    call that one of them has under way is waited for by the others. Failures are not kept.

    Args:
        client: who is asked.
        folder: where finished calls are kept; made if it is not there. It belongs on a local disk.

    Raises:
        CacheError: the folder cannot be used.
    """

    def __init__(self, client: Client, folder: str | Path) -> None:
        self.name = client.name
        self.signature = client.signature
        self._client = client
        self._store = Store(Path(folder))
        self._hits = 0
        self._count = threading.Lock()

    @property
    def hits(self) -> int:
        """How many calls of this client were answered from the folder."""
        return self._hits

    def spent(self) -> Usage:
        """What all calls in the folder cost, of every client and run that used it."""
        return self._store.spent()

    def has(self, request: Request) -> bool:
        """Whether the reply is in the folder, so that asking costs nothing."""
        return self._store.get(request_key(self.signature, request)) is not None

    def ask(self, request: Request) -> Reply:
        """The kept reply, or the client's, kept from now on.

        Raises:
            ModelError: as the client.
            CacheError: the folder cannot be read or written.
        """
        key = request_key(self.signature, request)
        reply = self._store.get(key)
        if reply is None:
            with self._store.claim(key):
                reply = self._store.get(key)  # another may have kept it while we waited for our turn
                if reply is None:
                    reply = self._client.ask(request)
                    self._store.put(key, request, reply)
                    return reply
        with self._count:
            self._hits += 1
        return reply

    def close(self) -> None:
        """Close the client; the folder stays."""
        self._client.close()
        self._store.close()
