"""Many requests at once, their answers in order, no more of either in memory than a bound."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import UsageError
from veriglot.llm.client import ModelError, Reply, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.llm.client import Client

__all__ = ["Answer", "ask_all"]


class _Workers:
    """A number of threads that ask one client.

    They are daemons, unlike those of `ThreadPoolExecutor`: a server that never answers would otherwise hold a program
    that was interrupted until every time-out and every retry has passed.
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


_AHEAD = 4
_GIVE_UP = 10
_LAST_CALLS = 5.0


class Answer(msgspec.Struct, frozen=True):
    """What became of a request: a reply, or the error why there is none.

    Attributes:
        request: as it was given.
        reply: what the model said, or None.
        error: why not, or None.
    """

    request: Request
    reply: Reply | None = None
    error: ModelError | None = None


def ask_all(
    client: Client, requests: Iterable[Request], *, jobs: int = 8, give_up: int | None = _GIVE_UP
) -> Iterator[Answer]:
    """Ask all, several at a time.

    Requests are taken as threads get free, at most `4 * jobs` ahead of the answer that is waited for, and so many
    answers are held at most. When the caller stops early, calls under way are waited for, so that a cache keeps what
    is paid; on Ctrl-C, for 5 seconds.

    Args:
        client: who is asked.
        requests: any number; read as they are needed.
        jobs: how many are asked at the same time, at least 1.
        give_up: raise instead of going on when so many requests in a row failed in a way that may pass (a server that
            is down fails them all); at least 1, or None for never.

    Returns:
        One answer per request, in order. A request that fails is an answer too. One that failed in a way that may pass
        is held back until a later request is answered otherwise, or there is none: when the server is down, none of
        them becomes an answer, and whoever starts again asks them all.

    Raises:
        ModelError: one that every further request would meet as well: a spending limit, a refused key, a server that is
            down. The answers before it were given out, but for those that were held back.
        UsageError: a number below 1.
    """
    if jobs < 1:
        raise UsageError(f"{jobs} jobs are fewer than 1.")
    if give_up is not None and give_up < 1:
        raise UsageError(f"Giving up after {give_up} failures is giving up before the first.")
    return _ask_all(client, requests, jobs, give_up)


def _ask_all(client: Client, requests: Iterable[Request], jobs: int, give_up: int | None) -> Iterator[Answer]:
    waiting: deque[tuple[Request, Future[Reply]]] = deque()
    workers = _Workers(client, jobs)
    patience: float | None = None
    outage = _Outage(give_up)
    try:
        for request in requests:
            waiting.append((request, workers.submit(request)))
            if len(waiting) >= _AHEAD * jobs:
                yield from outage.passed(_settled(*waiting.popleft()))
        while waiting:
            yield from outage.passed(_settled(*waiting.popleft()))
        yield from outage.pending
    except KeyboardInterrupt:
        patience = _LAST_CALLS
        raise
    finally:
        workers.stop(patience)


class _Outage:
    """Holds back failures that may pass, in order, until it is clear that not every request meets them."""

    def __init__(self, give_up: int | None) -> None:
        self.pending: list[Answer] = []
        self._give_up = give_up

    def passed(self, answer: Answer) -> list[Answer]:
        """What can be given out now that this answer is there."""
        error = answer.error
        if self._give_up is None:
            return [answer]
        if error is None or not error.retryable:
            ready, self.pending = [*self.pending, answer], []
            return ready
        self.pending.append(answer)
        if len(self.pending) >= self._give_up:
            raise ModelError(
                f"{len(self.pending)} requests in a row got no reply; the last: {error.message}",
                remedy=error.remedy or "See to the server, and start again: what is finished is kept.",
                retryable=True,
                fatal=True,
                status=error.status,
            ) from error
        return []


def _settled(request: Request, future: Future[Reply]) -> Answer:
    """The answer of one request; an error that every other request would meet as well is raised."""
    try:
        return Answer(request, reply=future.result())
    except ModelError as error:
        if error.fatal:
            raise
        return Answer(request, error=error)
