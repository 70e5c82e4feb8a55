"""Stages of one job in a folder, which resume where settings are the same, and shards over several processes."""

from __future__ import annotations

import multiprocessing
import shutil
import signal
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import numpy as np

from veriglot.errors import UsageError, VeriglotError
from veriglot.signatures import digest
from veriglot.storage.files import whole_folder, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.pipeline.engine import Watch

__all__ = ["ShardResult", "Shards", "Stages", "Worker"]


T = TypeVar("T")


class _Marker(msgspec.Struct, frozen=True):
    """What a stage was begun with, and what came of it."""

    key: str
    settings: dict[str, Any]
    finished: bool = False
    result: msgspec.Raw = msgspec.Raw(b"null")


class Stages:
    """The stages in a folder.

    Args:
        folder: each stage has a folder of its own in it.
        restart: do again what was done in another way, instead of refusing.
    """

    def __init__(self, folder: Path, *, restart: bool) -> None:
        self._folder = folder
        self._restart = restart
        self._keys: dict[str, str] = {}

    def path(self, name: str) -> Path:
        """The folder of a stage."""
        return self._folder / name

    def key(self, name: str) -> str:
        """What a stage of this run, and all before it, were done with, as a hash."""
        return self._keys[name]

    def do(
        self,
        name: str,
        settings: dict[str, Any],
        work: Callable[[Path], T],
        type_: type[T],
        *,
        after: str | None = None,
    ) -> T:
        """What comes of a stage, from an earlier run where it was finished in the same way.

        Args:
            name: of the stage, and of its folder.
            settings: all that decides what comes of it, besides the stage before.
            work: does it, in the folder given; what it finds there of an earlier run was made in the same way.
            type_: of what comes of it, which JSON can hold.
            after: the stage that it builds on.

        Raises:
            UsageError: it was begun in another way, and `restart` is off.
        """
        self.check(name, settings, after=after)
        folder, key = self.path(name), self._keys[name]
        marker = self._marker(folder)
        if marker is not None and marker.key != key:
            shutil.rmtree(folder)
            marker = None
        if marker is not None and marker.finished:
            return msgspec.json.decode(marker.result, type=type_)
        folder.mkdir(parents=True, exist_ok=True)
        self._write(folder, _Marker(key, settings))
        result = work(folder)
        self._write(folder, _Marker(key, settings, finished=True, result=msgspec.Raw(msgspec.json.encode(result))))
        return result

    def check(self, name: str, settings: dict[str, Any], *, after: str | None = None) -> None:
        """Refuse what `do` would refuse, before anything is done.

        Raises:
            UsageError: the stage was begun in another way, and `restart` is off.
        """
        before = self._keys[after] if after is not None else ""
        key = digest([before, name, msgspec.json.encode(settings, order="deterministic")])
        self._keys[name] = key
        folder = self.path(name)
        marker = self._marker(folder)
        if marker is not None and marker.key != key and not self._restart:
            raise UsageError(
                f"{folder} was made in another way: {_difference(marker.settings, settings)}.",
                remedy="Rerun the command with --overwrite to redo this stage and those after it, or name another"
                " output.",
            )

    @staticmethod
    def _marker(folder: Path) -> _Marker | None:
        try:
            return msgspec.json.decode((folder / "stage.json").read_bytes(), type=_Marker)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError:
            raise UsageError(
                f"{folder / 'stage.json'} is damaged, or from another version.",
                remedy="Remove the folder, or name another output.",
            ) from None

    @staticmethod
    def _write(folder: Path, marker: _Marker) -> None:
        write_whole(folder / "stage.json", msgspec.json.encode(marker))


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    before, now = (_flat(msgspec.json.decode(msgspec.json.encode(settings))) for settings in (before, now))
    changed = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    if not changed:
        return "a stage before it was redone"
    return ", ".join(f"{name} was {_short(before.get(name))} and is now {_short(now.get(name))}" for name in changed)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings without those that are only there to hold others."""
    inner = [value for value in settings.values() if isinstance(value, dict)]
    own = {name: value for name, value in settings.items() if not isinstance(value, dict)}
    return {name: value for part in (own, *inner) for name, value in part.items()}


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 200 else text[:200] + "..."


@dataclass(frozen=True)
class ShardResult:
    """What came of a range of rows.

    Attributes:
        arrays: by name, kept as one file each.
        notes: what was counted, by name.
    """

    arrays: dict[str, NDArray[Any]]
    notes: dict[str, int] = field(default_factory=dict)


class Worker(Protocol):
    """Does the work on rows `[start, stop)`."""

    def __call__(self, start: int, stop: int) -> ShardResult:
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
                    remedy="Is there enough memory? Finished ranges are kept: rerun with fewer --processes.",
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
        parts = [np.array(array) for _, array in self.arrays(name)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def notes(self) -> dict[str, int]:
        """What was counted, added up, by name in alphabetical order."""
        total: dict[str, int] = {}
        for number in range(len(self)):
            notes = msgspec.json.decode((self._path(number) / "notes.json").read_bytes(), type=dict[str, int])
            for name, count in notes.items():
                total[name] = total.get(name, 0) + count
        return dict(sorted(total.items()))

    def keep(self, number: int, result: ShardResult) -> None:
        """Keep what came of range `number`, whole or not at all."""
        path = self._path(number)
        with whole_folder(path) as folder:
            for name, array in result.arrays.items():
                np.save(folder / f"{name}.npy", array)
            (folder / "notes.json").write_bytes(msgspec.json.encode(result.notes))

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
