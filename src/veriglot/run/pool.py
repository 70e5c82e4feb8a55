"""A pool of worker processes that notices when one dies.

The pool of the standard library breaks as a whole when a worker is killed, and cannot say which task killed it. Here
each worker has a pipe of its own and holds one share of a batch at a time, so what a dead worker held is known exactly.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from veriglot.errors import VeriglotError
from veriglot.run.batches import Share
from veriglot.run.judge import failed_answer
from veriglot.run.recipe import Description
from veriglot.run.worker import Refusal, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from veriglot.run.batches import Batch
    from veriglot.run.recipe import Recipe

__all__ = ["Pool"]

_DEATHS_AT_START = 3  # in a row, no worker becoming ready between them: the fault is not in the samples
_GONE = (EOFError, OSError)  # a pipe whose other end is gone, or broke off within a message


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    connection: Connection
    ready: bool = False
    share: Share[Any] | None = None


class Pool:
    """Worker processes with a detector or a scorer each.

    Args:
        recipe: how a worker makes its detector; has to be picklable.
        jobs: how many processes.

    Raises:
        VeriglotError: the detector cannot be made, or workers die before they are ready.
    """

    def __init__(self, recipe: Recipe, jobs: int) -> None:
        self._context = multiprocessing.get_context("spawn")  # safe whatever threads the caller runs
        self._recipe = pickle.dumps(recipe)
        self._deaths_at_start = 0
        self._waiting: deque[Share[Any]] = deque()
        self._workers: list[_Worker] = []
        self._description: Description | None = None
        try:
            for _ in range(jobs):
                self._workers.append(self._start())
            while self._description is None:
                self._listen()
        except BaseException:
            self.close()
            raise

    @property
    def description(self) -> Description:
        """What the detector says of itself."""
        assert self._description is not None
        return self._description

    @property
    def hungry(self) -> bool:
        """Whether a worker has nothing to do and nothing waits for it."""
        return not self._waiting and any(worker.ready and worker.share is None for worker in self._workers)

    def submit(self, batch: Batch[Any]) -> None:
        """Hand a batch to the pool; its predictions are filled in during `wait`."""
        if batch.samples:
            self._waiting.append(Share(batch, 0, len(batch.samples)))
            self._hand_out()

    def wait(self) -> None:
        """Block until at least one worker has something to say: ready, an answer, or its death."""
        self._listen()
        self._hand_out()

    def close(self) -> None:
        """Stop every worker at once; what they hold is not waited for."""
        for worker in self._workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join()
            worker.process.close()
        self._workers.clear()

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=serve, args=(theirs, self._recipe), daemon=True)
        with _ctrl_c_held_back():
            process.start()
        theirs.close()  # so that the pipe ends when the worker does
        return _Worker(process, ours)

    def _hand_out(self) -> None:
        for worker in list(self._workers):
            if not self._waiting:
                return
            if worker.ready and worker.share is None:
                worker.share = self._waiting.popleft()
                try:
                    worker.connection.send(worker.share.samples)
                except _GONE:
                    self._bury(worker)

    def _listen(self) -> None:
        voices = {worker.connection: worker for worker in self._workers}
        for connection in wait(list(voices)):
            worker = voices[connection]  # type: ignore[index]  # `wait` returns what it was given
            try:
                message = worker.connection.recv()
            except _GONE:
                self._bury(worker)
            else:
                self._take(worker, message)

    def _take(self, worker: _Worker, message: Any) -> None:
        if isinstance(message, Refusal):
            error = VeriglotError(message.message, remedy=message.remedy)
            error.exit_code = message.exit_code
            raise error
        if isinstance(message, Description):
            worker.ready = True
            self._description = self._description or message
            self._deaths_at_start = 0
            return
        assert worker.share is not None
        worker.share.fill(message)
        worker.share = None

    def _bury(self, worker: _Worker) -> None:
        """Put a new worker in the place of a dead one, and what it held back in the queue."""
        worker.connection.close()
        worker.process.join()
        code = worker.process.exitcode
        if not worker.ready:
            self._deaths_at_start += 1
            if self._deaths_at_start >= _DEATHS_AT_START:
                raise VeriglotError(
                    f"Worker processes die while they load the detector ({_how(code)}).",
                    remedy="Is there enough memory? Try --jobs 1.",
                )
        share, worker.share = worker.share, None
        worker.process.close()
        self._workers[self._workers.index(worker)] = self._start()
        if share is None:
            return
        if share.end - share.start == 1 and share.deaths >= 1:
            reason = f"the worker process died twice over this sample ({_how(code)})"
            share.fill([failed_answer(share.samples[0], self.description, reason)])
            return
        self._waiting.extendleft(reversed(share.after_death()))


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """Start processes to which Ctrl-C never gets, not even before they can refuse it; here it arrives afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it would be started with the first process, and let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _how(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
