"""The local engine: moves rows through a detector or a scorer, in this process or over all cores.

Order out is order in, and the predictions are the same, for any number of processes and any batch size. Memory is
bounded: rows are read only as fast as predictions are taken.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from veriglot.errors import UsageError
from veriglot.run.batches import batches
from veriglot.run.judge import judge
from veriglot.run.pool import Pool
from veriglot.run.recipe import Description

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from veriglot.records import Detector, Prediction, Sample, Score, Scorer
    from veriglot.run.batches import Batch
    from veriglot.run.recipe import Recipe

__all__ = ["Engine", "cores"]

P = TypeVar("P")

_BATCHES_AHEAD = 4  # per process: enough that one slow batch at the head does not stop the others


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Engine:
    """Moves rows through one detector, or one scorer. A context manager; leaving it stops the processes.

    Args:
        recipe: how to make it.
        jobs: number of processes; 1 stays in this one, 0 takes every core.
        batch_size: most rows in a batch, at least 1.

    Raises:
        UsageError: `jobs` or `batch_size` out of range.
        VeriglotError: the detector cannot be made.
    """

    def __init__(self, recipe: Recipe, *, jobs: int = 1, batch_size: int = 32) -> None:
        if jobs < 0:
            raise UsageError(f"The number of processes is 0 (one per core) or more, but {jobs} was asked for.")
        if batch_size < 1:
            raise UsageError(f"A batch holds at least 1 row, but {batch_size} was asked for.")
        self.jobs = jobs or cores()
        self.batch_size = batch_size
        self._detector: Detector | Scorer | None = None
        self._pool: Pool | None = None
        if self.jobs == 1:
            self._detector = recipe.make()
            self.description = Description.of(self._detector)
        else:
            self._pool = Pool(recipe, self.jobs)
            self.description = self._pool.description

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the processes, if there are any."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def run(self, rows: Iterable[Sample | P]) -> Iterator[tuple[Sample | P, Prediction | None]]:
        """The rows in order, each sample with its prediction.

        What is not a `Sample` passes through in its place, with None. A sample over which the detector raises, or over
        which its process dies twice, gets a prediction of status `failed`; no row is lost.
        """
        return self._answers(rows)

    def scores(self, samples: Iterable[Sample]) -> Iterator[Score]:
        """The same of a scorer: one score a sample, in order."""
        return (score for _, score in self._answers(samples))

    def _answers(self, rows: Iterable[Sample | P]) -> Iterator[tuple[Sample | P, Any]]:
        if self._detector is not None:
            return _alone(self._detector, batches(rows, self.batch_size))
        assert self._pool is not None, "the engine is closed"
        return _together(self._pool, batches(rows, self.batch_size), self.jobs * _BATCHES_AHEAD)


def _alone(detector: Detector | Scorer, queue: Iterator[Batch[P]]) -> Iterator[tuple[Sample | P, Any]]:
    for batch in queue:
        if batch.samples:
            batch.predictions[:] = judge(detector, batch.samples)
        yield from batch.answered()


def _together(pool: Pool, queue: Iterator[Batch[P]], most: int) -> Iterator[tuple[Sample | P, Any]]:
    """`most` bounds the batches that were read and not yet given out, those that wait for an earlier one included."""
    begun: deque[Batch[Any]] = deque()
    more = True
    while more or begun:
        while more and pool.hungry and len(begun) < most:
            batch = next(queue, None)
            if batch is None:
                more = False
                break
            begun.append(batch)
            pool.submit(batch)
        while begun and begun[0].done:
            yield from begun.popleft().answered()
        if begun or (more and not pool.hungry):
            pool.wait()
