"""Clients by name, with a cache that avoids paying twice and spending limits.

Other packages add clients with the entry point group `veriglot.llm`.
"""

from __future__ import annotations

import threading
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from veriglot.errors import UsageError, VeriglotError
from veriglot.llm.client import Client, ModelError, Reply, Request
from veriglot.plugins import Entry, Registry, read_package_data
from veriglot.storage.cache import Cache
from veriglot.storage.checkpoint import Usage
from veriglot.storage.files import Lock

__all__ = ["CLIENTS", "Limits", "connect", "spent_in"]

CLIENTS = Registry("client", "veriglot.llm", read_package_data(__package__, "clients.toml", dict[str, Entry]))


def connect(name: str, *, cache: str | Path | None = None, limits: Limits | None = None, **options: Any) -> Client:
    """A client by name.

    Args:
        name: a name of `CLIENTS`.
        cache: a folder for finished calls, so that none is paid for twice; None for no cache.
        limits: spending limits; cached calls cost nothing.
        options: of the client; see its class.

    Raises:
        UnknownNameError: no such client or option; the error suggests the most similar ones.
        MissingExtraError: its packages are not installed.
        UsageError: an invalid or missing option.
    """
    client = CLIENTS.make(name, **options)
    if limits is not None:
        client = Limited(client, limits)
    return client if cache is None else Cached(client, cache)


# Spending limits: calls and tokens, over all threads; they stop before the call that would exceed them.


_RAISE = "What is finished is kept: raise the limit and start again to go on."


class Limits:
    """Spending limits; share one object between clients with a common budget.

    A call first reserves what it may cost (the estimated prompt and `max_tokens`), waits while calls in progress
    reserve what it needs, and is refused if it still does not fit when they have ended. After the first refusal, all
    calls are refused. Without `max_tokens` only the prompt can be reserved, and replies to calls in progress can exceed
    the limit.

    Args:
        calls: maximum calls; None for no limit.
        tokens: maximum tokens of prompts and replies together; None for no limit.
        spent: usage before, such as `spent_in` of a resumed run's folder.

    Attributes:
        spent: usage so far, without calls in progress.

    Raises:
        UsageError: a negative limit.
    """

    def __init__(self, calls: int | None = None, tokens: int | None = None, *, spent: Usage | None = None) -> None:
        if (calls is not None and calls < 0) or (tokens is not None and tokens < 0):
            raise UsageError("A spending limit is at least 0.", "Leave it out for no limit.")
        self.calls, self.tokens, self.spent = calls, tokens, spent or Usage()
        self._reserved: dict[int, int] = {}
        self._refused = ""
        self._changed = threading.Condition()

    def ask(self, client: Client, request: Request) -> Reply:
        """Send a request, if it fits into the limits.

        Raises:
            ModelError: it does not fit (fatal; finished calls are kept), or an error of the client, which costs
                nothing.
        """
        ticket = self._hold(request.tokens + (request.settings.max_tokens or 0))
        try:
            reply = client.ask(request)
            with self._changed:
                self.spent += reply.usage(request)
            return reply
        finally:
            with self._changed:
                del self._reserved[ticket]
                self._changed.notify_all()

    def _hold(self, cost: int) -> int:
        with self._changed:
            while True:
                if self._refused:
                    raise ModelError(self._refused, _RAISE, retryable=True, fatal=True)
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
        """Why a call of this cost cannot start now; empty if it can."""
        if self.calls is not None and self.spent.calls + len(self._reserved) >= self.calls:
            return f"The limit of {self.calls:,} calls is reached ({self.spent.calls:,} made)"
        after = self.spent.tokens + sum(self._reserved.values()) + cost
        if self.tokens is not None and after > self.tokens:
            return (
                f"The limit of {self.tokens:,} tokens is reached "
                f"({self.spent.tokens:,} spent, and the next call may take {cost:,})"
            )
        return ""


class _ClientWrapper(Client):
    """Base class of a client that wraps another one."""

    def __init__(self, client: Client) -> None:
        self.name, self.signature, self._client = client.name, client.signature, client

    def close(self) -> None:
        """Close the client."""
        self._client.close()


class Limited(_ClientWrapper):
    """A client with spending limits.

    Wrap it in `Cached`, not the other way round, because cached calls cost nothing.
    """

    def __init__(self, client: Client, limits: Limits) -> None:
        super().__init__(client)
        self.limits = limits

    def ask(self, request: Request) -> Reply:
        """As the client, and an error if the limit is reached."""
        return self.limits.ask(self._client, request)


# Cache of finished calls in one SQLite file, for several threads and processes.


_SUMS = "SELECT count(*), coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0) FROM replies"
_DECODER = msgspec.json.Decoder(Reply)
_CLAIM = 3  # hexadecimal digits of a key in its lock's name: a call also waits for one in 4,096 of the others

_TABLE = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    reply BLOB NOT NULL
) WITHOUT ROWID
"""


# A client that never sends the same call twice: finished calls are cached, calls in progress are shared.


class Cached(_ClientWrapper):
    """Answers from a folder of cached calls, and sends only calls that are not in it.

    A call is identified by the client's signature and the whole request (`Request.key`), so that another model,
    setting, seed or server is another call. The reply is in the folder before `ask` returns: a killed process never
    pays again for a reply that it had received. Several threads, clients and processes may use one folder; if one of
    them has a call in progress, the others wait for it. Failures are not cached.

    Args:
        client: the client.
        folder: the cache; created if it does not exist. It should be on a local disk.

    Raises:
        VeriglotError: the folder cannot be used.
    """

    def __init__(self, client: Client, folder: str | Path) -> None:
        super().__init__(client)
        self._folder = Path(folder)
        self._calls = _open_calls(self._folder)

    def ask(self, request: Request) -> Reply:
        """The cached reply, or the client's, which is then cached.

        Raises:
            ModelError: as the client.
            VeriglotError: the folder cannot be read or written.
        """
        key = request.key(self.signature)
        reply = self._read(key)
        if reply is None:
            with self._calls.guarded():  # one thread or process per key; keys with the same beginning share a lock
                claim = Lock(self._folder / "claims" / key[:_CLAIM], waiting=lambda: None)
            with claim:
                reply = self._read(key)  # another thread may have stored it while we waited
                if reply is None:
                    reply = self._client.ask(request)
                    cost, blob = reply.usage(request), zlib.compress(msgspec.json.encode(reply), 6)
                    row = (key, request.model, cost.tokens_in, cost.tokens_out, blob)
                    self._calls.write("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?)", [row])
        return reply

    def close(self) -> None:
        """Close the client; the folder stays."""
        super().close()
        self._calls.close()

    def _read(self, key: str) -> Reply | None:
        rows = self._calls.read("SELECT reply FROM replies WHERE key = ?", (key,))
        try:
            return _DECODER.decode(zlib.decompress(rows[0][0])) if rows else None
        except (zlib.error, msgspec.MsgspecError) as error:
            raise _unusable(self._folder, f"a reply in it cannot be read ({error})") from error


def spent_in(folder: Path) -> Usage:
    """Usage of all calls in a cache folder.

    Raises:
        VeriglotError: the folder cannot be used.
    """
    calls = _open_calls(folder)
    try:
        return Usage(*calls.read(_SUMS)[0])
    finally:
        calls.close()


def _open_calls(folder: Path) -> Cache:
    """The table of replies by key."""
    try:
        with Lock(folder / "calls", waiting=lambda: None):  # changing the journal mode needs exclusive access
            # Durable, because a reply costs more than waiting for the disk.
            return Cache(folder / "calls.sqlite", _TABLE, error=partial(_unusable, folder), durable=True)
    except OSError as error:
        raise _unusable(folder, str(error)) from error


def _unusable(folder: Path, what: str) -> VeriglotError:
    return VeriglotError(
        f"The folder of finished calls {folder} cannot be used: {what}",
        "Free the disk, or name another folder; the calls in a new folder are paid for again.",
    )
