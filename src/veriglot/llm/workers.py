"""Threads that ask, and that do not keep a program alive which was told to stop."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veriglot.llm.client import Client
    from veriglot.llm.records import Reply, Request

__all__ = ["Workers"]


class Workers:
    """A number of threads that ask one client.

    They are daemons, unlike those of `ThreadPoolExecutor`: a server that never answers would otherwise hold a program
    that was interrupted until every time-out and every retry has passed.

    Args:
        client: who is asked.
        count: how many threads.
    """

    def __init__(self, client: Client, count: int) -> None:
        self._client = client
        self._queue: queue.SimpleQueue[tuple[Request, Future[Reply]] | None] = queue.SimpleQueue()
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._work, name=f"veriglot-ask-{n}", daemon=True) for n in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, request: Request) -> Future[Reply]:
        """Have a request asked when a thread is free."""
        future: Future[Reply] = Future()
        self._queue.put((request, future))
        return future

    def stop(self, timeout: float | None = None) -> None:
        """Ask nothing more, and wait for the calls under way: so many seconds, or as long as it takes (None)."""
        self._stopping = True
        for _ in self._threads:
            self._queue.put(None)
        deadline = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            request, future = job
            if self._stopping:
                future.cancel()
                continue
            try:
                future.set_result(self._client.ask(request))
            except BaseException as error:
                future.set_exception(error)
