"""Clients by name, with a cache that pays once and limits that stop cleanly.

Third parties join by the entry point group `veriglot.llm`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
import time
import zlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import UsageError, VeriglotError
from veriglot.llm.client import Client, ModelError, Reply, Request
from veriglot.plugins import Entry, Table
from veriglot.storage.cache import Cache
from veriglot.storage.checkpoint import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CLIENTS", "Limits", "connect", "spent_in"]

CLIENTS = Table(
    "client",
    "veriglot.llm",
    {
        "openai": Entry(
            "veriglot.llm.openai:OpenAI",
            extra="llm",
            summary="any server that speaks OpenAI's API: vLLM, llama.cpp, Ollama, hosted ones",
        ),
        "transformers": Entry(
            "veriglot.llm.transformers:Local",
            extra="local",
            summary="a model in this process, by the transformers library",
        ),
        "scripted": Entry(
            "veriglot.llm.scripted:Scripted",
            summary="replies by rules from a file, for tests and dry runs",
        ),
    },
)


def connect(name: str, *, cache: str | Path | None = None, limits: Limits | None = None, **options: Any) -> Client:
    """A client by name.

    Args:
        name: a name of `CLIENTS`.
        cache: a folder for finished calls, so that none is paid for twice; None for no cache.
        limits: what may be spent; calls that are in the cache cost nothing.
        options: of the client; see its class.

    Raises:
        UnknownNameError: no such client, or no such option; the error suggests the nearest.
        MissingExtraError: its packages are not installed.
        UsageError: an option that makes no sense, or one that is missing.
    """
    client: Client = CLIENTS.make(name, **options)
    if limits is not None:
        client = Limited(client, limits)
    return client if cache is None else Cached(client, cache)


# Spending limits: calls and tokens, over all threads, that stop before the call that would pass them.


_RAISE = "What is finished is kept: raise the limit and start again to go on."


class Limits:
    """What may be spent; share one object between clients that spend from the same purse.

    A call first sets aside what it may cost (the estimated prompt and `max_tokens`), waits while calls under way hold
    what it would need, and is refused when they have all ended and it still does not fit. From the first refusal on,
    all are refused. Without `max_tokens` only the prompt can be set aside, and calls under way can pass the limit by
    their replies.

    Args:
        calls: the most calls; None for no bound.
        tokens: the most tokens of prompts and replies together; None for no bound.
        spent: what was spent before, such as `spent_in` the folder of a run that goes on.

    Raises:
        UsageError: a limit below 0.
    """

    def __init__(self, calls: int | None = None, tokens: int | None = None, *, spent: Usage | None = None) -> None:
        if (calls is not None and calls < 0) or (tokens is not None and tokens < 0):
            raise UsageError("A spending limit below 0 cannot be kept.", remedy="Leave it out for no bound.")
        self.calls = calls
        self.tokens = tokens
        self._spent = spent or Usage()
        self._reserved: dict[int, int] = {}
        self._refused = ""
        self._changed = threading.Condition()

    @property
    def spent(self) -> Usage:
        """What was spent so far, calls under way not counted."""
        return self._spent

    def ask(self, client: Client, request: Request) -> Reply:
        """Ask, if it may be paid for.

        Raises:
            ModelError: it may not (fatal: what is finished is kept), or as the client raises, which costs nothing.
        """
        ticket = self._hold(request.tokens + (request.settings.max_tokens or 0))
        try:
            reply = client.ask(request)
            with self._changed:
                self._spent = self._spent + reply.usage(request)
            return reply
        finally:
            with self._changed:
                del self._reserved[ticket]
                self._changed.notify_all()

    def _hold(self, cost: int) -> int:
        with self._changed:
            while True:
                if self._refused:
                    raise ModelError(self._refused, remedy=_RAISE, retryable=True, fatal=True)
                lacking = self._lacking(cost)
                if not lacking:
                    ticket = max(self._reserved, default=0) + 1
                    self._reserved[ticket] = cost
                    return ticket
                if not self._reserved:
                    self._refused = lacking
                    self._changed.notify_all()
                else:
                    self._changed.wait()

    def _lacking(self, cost: int) -> str:
        """Why a call of this cost cannot start now; empty where it can."""
        if self.calls is not None and self._spent.calls + len(self._reserved) >= self.calls:
            return f"The limit of {self.calls:,} calls is reached ({self._spent.calls:,} made)"
        after = self._spent.tokens + sum(self._reserved.values()) + cost
        if self.tokens is not None and after > self.tokens:
            return (
                f"The limit of {self.tokens:,} tokens is reached "
                f"({self._spent.tokens:,} spent, and the next call may take {cost:,})"
            )
        return ""


class Limited(Client):
    """A client that spends within limits.

    Put it inside `Cached`, not around it: what is in the cache costs nothing.
    """

    def __init__(self, client: Client, limits: Limits) -> None:
        self.name = client.name
        self.signature = client.signature
        self.limits = limits
        self._client = client

    def ask(self, request: Request) -> Reply:
        """As the client, and an error where the limit is reached."""
        return self.limits.ask(self._client, request)

    def close(self) -> None:
        """Close the client."""
        self._client.close()


# Finished calls in one SQLite file, for several threads and processes at once.


_SUMS = "SELECT count(*), coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0) FROM replies"
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


class Cached(Client):
    """Answers from a folder of finished calls, and asks the client only what is not there.

    A call is known by the client's signature and the whole request (`Request.key`), so that another model, setting,
    seed or server is another call. The reply is in the folder before `ask` returns: a process that is killed at any
    moment pays again for nothing that it had received. Several threads, clients and processes may use one folder; a
    call that one of them has under way is waited for by the others. Failures are not kept.

    Args:
        client: who is asked.
        folder: where finished calls are kept; made if it is not there. It belongs on a local disk.

    Raises:
        VeriglotError: the folder cannot be used.
    """

    def __init__(self, client: Client, folder: str | Path) -> None:
        self.name = client.name
        self.signature = client.signature
        self._client = client
        self._folder = Path(folder)
        self._calls, self._claims = _open_calls(self._folder)

    def ask(self, request: Request) -> Reply:
        """The kept reply, or the client's, kept from now on.

        Raises:
            ModelError: as the client.
            VeriglotError: the folder cannot be read or written.
        """
        key = request.key(self.signature)
        reply = self._read(key)
        if reply is None:
            with self._claims.of(key):
                reply = self._read(key)  # another may have kept it while we waited for our turn
                if reply is None:
                    reply = self._client.ask(request)
                    cost, blob = reply.usage(request), zlib.compress(msgspec.json.encode(reply), 6)
                    row = (key, request.model, cost.tokens_in, cost.tokens_out, blob)
                    self._calls.write("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?)", [row])
        return reply

    def close(self) -> None:
        """Close the client; the folder stays."""
        self._client.close()
        self._calls.close()

    def _read(self, key: str) -> Reply | None:
        rows = self._calls.read("SELECT reply FROM replies WHERE key = ?", (key,))
        try:
            return _DECODER.decode(zlib.decompress(rows[0][0])) if rows else None
        except (zlib.error, msgspec.MsgspecError) as error:
            raise _unusable(self._folder, f"a reply in it cannot be read ({error})") from error


def spent_in(folder: Path) -> Usage:
    """What all calls that a folder of finished calls keeps cost.

    Raises:
        VeriglotError: the folder cannot be used.
    """
    calls, _ = _open_calls(folder)
    try:
        return Usage(*calls.read(_SUMS)[0])
    finally:
        calls.close()


def _open_calls(folder: Path) -> tuple[Cache, _Claims]:
    """Replies by key, and the right to ask for one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        claims = _claims_of(folder)
    except OSError as error:
        raise _unusable(folder, str(error)) from error
    with claims.of("open"):  # switching the journal's mode wants the file for itself
        # Durable, as a reply costs more than waiting for the disk.
        return Cache(folder / "calls.sqlite", _TABLE, error=partial(_unusable, folder), durable=True), claims


def _unusable(folder: Path, what: str) -> VeriglotError:
    return VeriglotError(
        f"The folder of finished calls {folder} cannot be used: {what}",
        remedy="Free the disk, or name another folder; the calls in a new folder are paid for again.",
    )
