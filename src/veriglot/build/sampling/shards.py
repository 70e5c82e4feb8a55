"""Work on a range of rows at a time, in this process or in several, each range kept whole on disk: a kill loses one."""

from __future__ import annotations

import multiprocessing
import shutil
import signal
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

from veriglot.errors import VeriglotError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.run.watch import Watch

__all__ = ["Found", "Shards", "Worker"]


@dataclass(frozen=True)
class Found:
    """What came of a range of rows.

    Attributes:
        arrays: by name, kept as one file each.
        notes: what was counted, by name.
    """

    arrays: dict[str, NDArray[Any]]
    notes: dict[str, int] = field(default_factory=dict)


class Worker(Protocol):
    """Does the work on rows `[start, stop)`."""

    def __call__(self, start: int, stop: int) -> Found:
        """What comes of them; the same in every process."""


@dataclass(frozen=True)
class Shards:
    """The ranges of a piece of work.

    Attributes:
        folder: where what came of them is kept.
        count: how many rows there are.
        size: rows of a range.
    """

    folder: Path
    count: int
    size: int

    def run(self, make: Callable[[], Worker], *, jobs: int, watch: Watch) -> None:
        """Do what is not done yet.

        Args:
            make: makes the worker; picklable where there are several processes.
            jobs: how many processes; 1 works in this one.
            watch: told of every range.

        Raises:
            VeriglotError: a process died. Whatever the worker raises. Ranges that are done are kept.
        """
        left = [number for number in range(len(self)) if not self._path(number).is_dir()]
        for _ in range(len(self) - len(left)):
            watch.advance()
        if jobs == 1 or len(left) < 2:
            worker = make() if left else None
            for number in left:
                assert worker is not None
                _work(worker, self, number)
                watch.advance()
        else:
            self._in_processes(make, left, min(jobs, len(left)), watch)

    def _in_processes(self, make: Callable[[], Worker], left: list[int], jobs: int, watch: Watch) -> None:
        context = multiprocessing.get_context("spawn")  # safe whatever threads the caller runs
        with ProcessPoolExecutor(jobs, context, _begin, (make, self)) as pool:
            waiting = {pool.submit(_do, number) for number in left}
            try:
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        future.result()
                        watch.advance()
            except BrokenProcessPool as error:
                raise VeriglotError(
                    "A worker process died.",
                    remedy="Is there enough memory? What is done is kept: type the command again, with fewer --jobs.",
                ) from error
            finally:
                pool.shutdown(cancel_futures=True)

    def __len__(self) -> int:
        return -(-self.count // self.size)

    def bounds(self, number: int) -> tuple[int, int]:
        """First row of range `number`, and one past its last."""
        return number * self.size, min((number + 1) * self.size, self.count)

    def arrays(self, name: str) -> Iterator[tuple[int, NDArray[Any]]]:
        """First row and array `name` of every range, mapped and not read."""
        for number in range(len(self)):
            yield number * self.size, np.load(self._path(number) / f"{name}.npy", mmap_mode="r")

    def joined(self, name: str) -> NDArray[Any]:
        """Array `name` of all ranges, one after another."""
        found = [np.array(array) for _, array in self.arrays(name)]
        return np.concatenate(found) if found else np.zeros(0)

    def notes(self) -> dict[str, int]:
        """What was counted, added up, by name in alphabetical order."""
        total: dict[str, int] = {}
        for number in range(len(self)):
            notes = msgspec.json.decode((self._path(number) / "notes.json").read_bytes(), type=dict[str, int])
            for name, count in notes.items():
                total[name] = total.get(name, 0) + count
        return dict(sorted(total.items()))

    def keep(self, number: int, found: Found) -> None:
        """Keep what came of range `number`, whole or not at all."""
        path = self._path(number)
        partial = path.with_name(path.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, array in found.arrays.items():
            np.save(partial / f"{name}.npy", array)
        (partial / "notes.json").write_bytes(msgspec.json.encode(found.notes))
        partial.rename(path)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}"


class _Here:
    """The worker of this process."""

    worker: Worker
    shards: Shards


def _begin(make: Callable[[], Worker], shards: Shards) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what it means
    _Here.worker, _Here.shards = make(), shards


def _do(number: int) -> None:
    _work(_Here.worker, _Here.shards, number)


def _work(worker: Worker, shards: Shards, number: int) -> None:
    shards.keep(number, worker(*shards.bounds(number)))
