"""A client that never asks the same twice: finished calls are kept, calls under way are shared."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from veriglot.llm.client import Closing, request_key
from veriglot.llm.store import Store

if TYPE_CHECKING:
    from veriglot.llm.client import Client
    from veriglot.llm.limits import Spent
    from veriglot.llm.records import Reply, Request

__all__ = ["Cached"]


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

    def spent(self) -> Spent:
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
