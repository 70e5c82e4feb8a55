"""Figures for leads (computed statistics): made in other processes, and cached until something changes.

Submissions never wait for a figure: it is computed in another process with low priority, which a lead can cancel and
which ends with the server. One process makes the figures of a project, and caches its rows and the results for each
item (`RowCache`); slow figures have a process of their own. A call waits a moment for a figure; then it gets the last
one, or the progress of the new one. Saves change only working times, so saves alone outdate a figure only after a
minute. The last figures are stored in a file beside the project file, so that pages show them right after a start.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import forkserver
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from fastapi import Response
from sqlalchemy import Connection as DatabaseConnection
from sqlalchemy import func, select

from veriglot.http.server import CallRefused, json_response
from veriglot.records.settings import Record
from veriglot.signatures import __version__
from veriglot.storage.files import partial_path
from veriglot.studio.store import ReadTransaction, Store, sha256
from veriglot.studio.tables import (
    AT_WORK,
    QUIET_EVENTS,
    Assignment,
    Item,
    NotFound,
    Step,
    assignments,
    events,
    items,
    now,
    steps_after,
    write_moment,
)
from veriglot.studio.web import Caller, LeadWriter, Number, Router, Studio, error_response

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from pathlib import Path


R = TypeVar("R", Item, Assignment)
T = TypeVar("T")

__all__ = ["FigureCache", "Pending", "Progress", "figure", "router"]

Progress = Callable[[float], None]
"""Receives the finished share of a figure, from 0 to 1."""
Function = Callable[..., Any]  # computes a figure from a studio, a ReadTransaction, a `Progress`, and arguments

_WAIT = 0.6  # seconds that a call waits for a new figure
_WAIT_BESIDE = 0.1  # if there is an old one
_LONGEST = 120.0  # maximum seconds that a call waits for its first figure
_AT_ONCE = 2  # slow figures at the same time
_REMEMBERED = 100  # cached figures
_AFTER_SAVES = 60.0  # seconds after which saves alone outdate a figure
_REST = 4.0  # pause before a figure is made again, as a multiple of its time
_LONGEST_REST = 30.0  # seconds
_OVERTAKEN = 2000  # newest events to count again: PostgreSQL may show an event before one with a lower number
_STORED = 10  # stored figures of a project
_STORE_AFTER = 5.0  # seconds
_CHUNK = 500  # ids in a statement
_LOW = 10  # priority of processes, as of `nice`

_has_forkserver = "forkserver" in multiprocessing.get_all_start_methods()
_context: Any = multiprocessing.get_context("forkserver" if _has_forkserver else "spawn")


class PendingFigure(Record):
    """A figure in progress: its `id`, seconds so far, and the finished share, if known."""

    id: int
    seconds: float
    done: float | None


class Pending(Record):
    """The answer if a figure does not exist yet: ask again."""

    pending: PendingFigure


class _Version(NamedTuple):
    """State of the project when a figure was made: number of events, and of events that are not saves."""

    any: int
    without_saves: int


_NOTHING = _Version(0, 0)
_Stored = tuple[bytes, _Version, str]  # body, version, and time
_File = tuple[str, dict[str, _Stored]]  # settings digest, and the figures by key


def _file_of(studio: Studio) -> Path:
    return studio.project.path.with_name(f"{studio.slug}.figures")


def _settings_of(studio: Studio) -> str:
    """Digest of the other inputs of figures: the project file, and Veriglot's version."""
    return sha256(f"{__version__} {studio.project.entries} {studio.project.form}")


@dataclass
class _Figure:
    id: int
    studio: Studio
    answer: tuple[int, bytes] | None = None  # status and body
    version: _Version = _NOTHING
    as_of: str = ""  # time of the request, ISO 8601 in UTC
    finished: float = 0.0
    took: float = 0.0
    began: float = 0.0  # 0 if it is not in progress or was cancelled
    done: float | None = None
    process: BaseProcess | None = None
    cancelled: bool = False

    @property
    def rest(self) -> float:
        """Seconds until it may be made again, so that time is left for saves and other figures."""
        return self.finished + min(_REST * self.took, _LONGEST_REST) - time.monotonic()

    def is_old(self, version: _Version) -> bool:
        """Whether something happened after it was made."""
        if self.answer is None or self.answer[0] >= 500 or self.version.without_saves < version.without_saves:
            return True
        return self.version < version and time.monotonic() - self.finished > _AFTER_SAVES


@dataclass
class FigureCache:
    """The figures of a server."""

    _changed: threading.Condition = field(default_factory=threading.Condition)
    _turns: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_AT_ONCE))
    _figures: OrderedDict[tuple[str, str], _Figure] = field(default_factory=OrderedDict)
    _workers: dict[Studio, _Worker] = field(default_factory=dict)
    _counted: dict[Studio, tuple[int, _Version]] = field(default_factory=dict)  # last event with a final count
    _stored: dict[Studio, float] = field(default_factory=dict)  # time
    _ids: Any = field(default_factory=lambda: itertools.count(1))
    _closed: bool = False

    def __post_init__(self) -> None:
        if _has_forkserver:  # it preloads the modules that figures need
            _context.set_forkserver_preload([f"veriglot.studio.{name}" for name in ("dashboard", "rates")])
            forkserver.ensure_running()

    def response(self, caller: Caller, function: Function, *, alone: bool = False, **arguments: Any) -> Response:
        """The answer to a call for a figure: 202 if there is none yet; header `X-Outdated` if it is an old one.

        `X-As-Of` has its time. Slow figures are made `alone`, in a process of their own.
        """
        made, version = self._made(caller, function, arguments, _wait_of(caller), alone)
        if made.answer is None:
            if not made.began:  # it was cancelled, or the server is stopping
                raise CallRefused(503, "cancelled", "This was cancelled.", "Ask for it again.")
            seconds = round(time.monotonic() - made.began, 1)
            return json_response(Pending(PendingFigure(made.id, seconds, made.done)), 202)
        headers = {"x-as-of": made.as_of} | (
            {"x-outdated": "1"} if made.version.without_saves < version.without_saves else {}
        )
        return Response(made.answer[1], made.answer[0], headers, media_type="application/json")

    def value(self, caller: Caller, function: Function, kind: Any, **arguments: Any) -> Any:
        """The value of a figure, maybe an old one; waits for the first."""
        made, _ = self._made(caller, function, arguments, _WAIT)
        if made.answer is None:
            made, _ = self._made(caller, function, arguments, _LONGEST)
        if made.answer is None or made.answer[0] != 200:
            raise CallRefused(503, "unavailable", "The figures that this needs cannot be made.", "Try again.")
        return msgspec.json.decode(made.answer[1], type=kind)

    def last(self, caller: Caller, function: Function, kind: Any) -> Any | None:
        """The last value of a figure, None before the first; starts an update without waiting for it."""
        answer = None
        with suppress(CallRefused):  # the rate limit of figures is reached
            answer = self._made(caller, function, {}, 0.0)[0].answer
        return msgspec.json.decode(answer[1], type=kind) if answer is not None and answer[0] == 200 else None

    def _made(
        self, caller: Caller, function: Function, arguments: dict[str, Any], wait: float, alone: bool = False
    ) -> tuple[_Figure, _Version]:
        key = caller.studio.slug, f"{function.__name__} {sorted(arguments.items())}"
        as_of, version, asked = write_moment(now()), self._version(caller.studio), time.monotonic()
        with self._changed:
            studio: Studio = caller.request.app.state.studios.by_slug[caller.studio.slug]  # with its newest settings
            if studio not in self._stored:
                self._load(studio, version)
            made = self._figures.setdefault(key, _Figure(next(self._ids), studio))
            self._figures.move_to_end(key)
            idle = [other for other, figure in self._figures.items() if not figure.began]
            for other in idle[: max(0, len(self._figures) - _REMEMBERED)]:
                del self._figures[other]
            wait = min(wait, _WAIT_BESIDE) if wait == _WAIT and made.answer is not None else wait
            while made.is_old(version) and not self._closed:
                rest, left = made.rest, asked + wait - time.monotonic()
                if not made.began and rest <= 0:
                    caller.count("heavy")
                    began = time.monotonic()
                    studio = made.studio  # its settings may have changed meanwhile
                    worker = _Worker(studio) if alone else self._workers.setdefault(studio, _Worker(studio))
                    call = (made, (function, arguments), version, as_of, worker, began)
                    threading.Thread(target=self._make, args=call, daemon=True).start()
                    made.began, made.done, made.cancelled = began, None, False
                if left <= 0:
                    break
                self._changed.wait(left if made.began else min(left, rest))
                failed = made.finished > asked and made.answer is not None and made.answer[0] >= 500
                if failed or made.cancelled:
                    break
        return made, version

    def _version(self, studio: Studio) -> _Version:
        """How many events there are; only the newest are counted again, because some may arrive late."""
        (before, seen), row = self._counted.get(studio, (0, _NOTHING)), events.c
        new = row.project_id == studio.id, row.id > before
        counts = select(func.count(), func.count().filter(row.kind.not_in(QUIET_EVENTS))).where(*new)
        with studio.store.reading() as tx:
            newest = tx.connection.execute(select(func.max(row.id)).where(*new)).scalar() or 0
            last = max(before, newest - _OVERTAKEN)
            settled, version = (
                _Version(*map(sum, zip(seen, tx.connection.execute(counts.where(row.id <= id_)).one(), strict=True)))
                for id_ in (last, newest)
            )
        self._counted[studio] = last, settled
        return version

    def _make(
        self,
        made: _Figure,
        call: tuple[Function, dict[str, Any]],
        version: _Version,
        as_of: str,
        worker: _Worker,
        began: float,
    ) -> None:
        """Compute a figure in another process, and wait for it."""
        alone = worker is not self._workers.get(made.studio)
        answer: tuple[int, bytes] | None = None
        with self._turns if alone else worker.turn:
            with self._changed:
                if self._closed or made.began != began:  # it was cancelled while it waited
                    return
            started = time.monotonic()
            try:
                if not self._has_begun(made, worker, worker.start(), began, alone=alone):
                    return
                with suppress(EOFError, OSError):  # a cancelled or killed process sends nothing
                    worker.connection.send(call)
                    while answer is None:
                        message = worker.connection.recv()
                        if isinstance(message, float):
                            made.done = message
                        else:
                            answer = message
            except Exception as error:  # such as too many open files
                answer = 500, bytes(error_response(error).body)
            if answer is None or alone:
                worker.stop()
        if answer is None and made.began == began and not self._closed:
            answer = 503, bytes(error_response(ChildProcessError(f"{call[0].__name__} ended early")).body)
        with self._changed:
            if made.began == began:
                made.began, made.process = 0.0, None
                if answer is not None:
                    made.answer, made.version, made.as_of = answer, version, as_of
                    made.finished = time.monotonic()
                    made.took = made.finished - started
            is_due = time.monotonic() - self._stored.get(made.studio, 0.0) > _STORE_AFTER
            if is_due:
                self._stored[made.studio] = time.monotonic()
            self._changed.notify_all()
        if is_due:
            self._store(made.studio)

    def _has_begun(self, made: _Figure, worker: _Worker, process: BaseProcess, began: float, *, alone: bool) -> bool:
        """Store the process of a figure; False if the figure was just cancelled and others need the process."""
        with self._changed:
            if not self._closed and made.began == began:
                made.process = process
            elif alone or self._closed or self._workers.get(worker.studio) is not worker:
                process.kill()
            else:
                return False
            return True

    def _load(self, studio: Studio, version: _Version) -> None:
        """Load the figures of the last run; those of a database with more events belong to another database.

        Those of other settings, or of another version of Veriglot, are ignored.
        """
        self._stored[studio] = 0.0
        with suppress(OSError, msgspec.MsgspecError):
            settings, content = msgspec.msgpack.decode(_file_of(studio).read_bytes(), type=_File)
            for key, (body, before, as_of) in content.items():
                if before <= version and settings == _settings_of(studio):
                    figure = _Figure(next(self._ids), studio, (200, body), before, as_of)
                    self._figures.setdefault((studio.slug, key), figure)

    def _store(self, studio: Studio) -> None:
        with self._changed:
            figures = [(key[1], made) for key, made in self._figures.items() if made.studio is studio]
        answers = [
            (key, made.answer[1], made.version, made.as_of)
            for key, made in figures
            if made.answer is not None and made.answer[0] == 200
        ]
        path = _file_of(studio)
        partial = partial_path(path)
        with suppress(OSError):  # the project's folder may be read-only
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                content = {key: more for key, *more in answers[-_STORED:]}
                file.write(msgspec.msgpack.encode((_settings_of(studio), content)))
            partial.replace(path)

    def cancel(self, studio: Studio, number: int) -> None:
        """Kill the process that makes a figure; a figure that waits for its turn has none yet.

        Raises:
            NotFound: no such figure is being made.
        """
        with self._changed:
            made = next((made for made in self._figures.values() if (made.id, made.studio) == (number, studio)), None)
            if made is None or not made.began:
                raise NotFound("figure")
            made.cancelled, made.began = True, 0.0
            if made.process is not None:
                made.process.kill()  # it only reads
                made.process = None
            self._changed.notify_all()

    def renew(self, before: Studio, after: Studio, *, drop: bool) -> None:
        """Remake the figures of a project after its settings changed; until then the old ones are shown, or none
        (`drop`).

        Calls that wait for a figure go on waiting.
        """
        with self._changed:
            for made in self._figures.values():
                if made.studio is before:
                    if made.process is not None:
                        made.process.kill()
                    made.studio, made.process, made.began = after, None, 0.0
                    made.version, made.finished, made.took = _NOTHING, 0.0, 0.0
                    made.answer = None if drop else made.answer
            self._counted.pop(before, None)
            if (stored := self._stored.pop(before, None)) is not None:
                self._stored[after] = stored
            worker = self._workers.pop(before, None)
            if worker is not None and worker.process is not None:
                worker.process.kill()
            self._changed.notify_all()

    def close(self) -> None:
        """End all processes."""
        with self._changed:
            self._closed = True
            of_figures = (made.process for made in self._figures.values())
            for process in (*of_figures, *(worker.process for worker in self._workers.values())):
                if process is not None:
                    process.kill()
            self._changed.notify_all()


def _wait_of(caller: Caller) -> float:
    """Seconds that a call waits, from `Prefer: wait=60` (RFC 7240); pages do not set it, and ask again."""
    wish = re.search(r"\bwait=(\d{1,4})\b", caller.request.headers.get("prefer", ""))
    return _WAIT if wish is None else min(_LONGEST, float(wish[1]))


@dataclass
class _Worker:
    """A process that makes figures of a studio, one after the other; started for the first figure."""

    studio: Studio
    turn: threading.Lock = field(default_factory=threading.Lock)
    process: BaseProcess | None = None
    connection: Connection = field(init=False)

    def start(self) -> BaseProcess:
        """The process; a new one if there is none, or if it was killed."""
        if self.process is None or not self.process.is_alive():
            connection, other_end = _context.Pipe()
            with other_end:
                process = _context.Process(target=_work, args=(other_end, self.studio), daemon=True)
                process.start()
            self.connection, self.process = connection, process
        return self.process

    def stop(self) -> None:
        """Release the process, which then ends."""
        if self.process is not None:
            self.connection.close()
            self.process.join()
        self.process = None


def _end_with_server() -> None:
    """End this process if the server was killed, even during a figure, to free its time."""
    server = multiprocessing.parent_process()
    assert server is not None
    server.join()
    os._exit(1)


def _work(connection: Connection, studio: Studio) -> None:
    """Make figures, in a separate process: send the progress of each, then status and body of the answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal: the server ends this process
    with suppress(OSError):
        os.nice(_LOW)
    threading.Thread(target=_end_with_server, daemon=True).start()
    memory, sent = RowCache(studio.store, studio.id), 0.0

    def progress(share: float) -> None:
        nonlocal sent
        if time.monotonic() - sent > 0.2:
            sent = time.monotonic()
            connection.send(share)

    with suppress(EOFError, ConnectionError):  # the server stopped or was killed
        while True:
            function, arguments = connection.recv()
            try:
                with memory.reading() as tx:
                    response = json_response(function(studio, tx, progress, **arguments))
            except ConnectionError:
                return
            except Exception as error:
                response = error_response(error)
            connection.send((response.status_code, bytes(response.body)))


class RowCache:
    """Cache of the rows of a project, and of values computed from them; both are refreshed after an event.

    So the cost of a figure depends on the changes since the last one, plus sums over cached values.
    """

    def __init__(self, store: Store, project_id: int) -> None:
        """Start empty."""
        self._store, self.project_id = store, project_id
        self.rows: dict[type[Any], dict[int, Any]] = {Item: {}, Assignment: {}}
        self.steps: dict[int, Step] = {}
        self.made: dict[int | str, dict[str, tuple[Any, Any]]] = {}  # owner and name to the stamp and the value
        self._newest = 0
        self._known: set[int] = set()  # ids of the newest events

    @contextmanager
    def reading(self) -> Iterator[ReadTransaction]:
        """A read transaction that uses this cache."""
        with self._store.reading() as tx:
            self._refresh(tx)
            yield _CachedTransaction(tx.connection, self)

    def _refresh(self, tx: ReadTransaction) -> None:
        """Read the rows that new events refer to."""
        row, ours = events.c, events.c.project_id == self.project_id
        newest = tx.connection.execute(select(func.max(row.id)).where(ours)).scalar() or 0
        last = max(0, (self._newest or newest) - _OVERTAKEN)
        happened = select(row.id, row.kind, row.item_id, row.assignment_id).where(ours, row.id > last)
        new = [event for event in tx.connection.execute(happened) if event.id not in self._known]
        moved = any(event.item_id is None and event.kind in {"batched", "ordered"} for event in new)
        self._read(tx, Item, {event.item_id for event in new if event.assignment_id is None}, whole=moved)
        self._read(tx, Assignment, {event.assignment_id for event in new})
        steps = tx.connection.execute(steps_after(self.project_id, last if self._newest else 0))
        self.steps.update((step.id, step) for step in map(Step._make, steps))
        self._known = {id_ for id_ in self._known if id_ > last} | {event.id for event in new}
        self._newest = newest

    def _read(
        self, tx: ReadTransaction, kind: type[Item | Assignment], ids: set[int | None], *, whole: bool = False
    ) -> None:
        """Read some rows, or all if more were added than the events show (some of a long transaction were missed)."""
        read, table = (tx.items, items) if kind is Item else (tx.assignments, assignments)
        known, named = self.rows[kind], sorted(id_ for id_ in ids if id_ is not None)
        there = tx.count(select(table.c.id).where(table.c.project_id == self.project_id))
        if whole or there != len(known.keys() | named):
            self._take(read(self.project_id))
        else:
            for start in range(0, len(named), _CHUNK):
                self._take(read(self.project_id, id=named[start : start + _CHUNK]))
        if kind is Item:
            for id_ in named:  # a gold layer is not part of a row
                self.made.pop(id_, None)

    def _take(self, rows: Iterable[Item | Assignment]) -> None:
        """Cache rows; values computed from an item are dropped after an event."""
        for row in rows:
            before, self.rows[type(row)][row.id] = self.rows[type(row)].get(row.id), row
            if isinstance(row, Item):
                if before != row:
                    self.made.pop(row.id, None)
            elif before != row and not (row.state in AT_WORK and before and before.state is row.state):
                self.made.pop(row.item_id, None)  # values depend only on submitted work

    def select(self, kind: type[R], order: str, columns: dict[str, Any]) -> list[R]:
        """Rows in order, filtered as in `ReadTransaction.assignments`."""
        rows: Iterable[R] = self.rows[kind].values()
        for name, value in columns.items():
            if value is not None:
                wanted = frozenset(value) if isinstance(value, list | tuple) else {value}
                rows = [row for row in rows if getattr(row, name) in wanted]
        return sorted(rows, key=attrgetter(order))


class _CachedTransaction(ReadTransaction):
    """A transaction with the rows of its project in a cache."""

    def __init__(self, connection: DatabaseConnection, memory: RowCache) -> None:
        super().__init__(connection)
        self._memory = memory

    def items(self, project_id: int, **columns: Any) -> list[Item]:  # noqa: ARG002  # the cached project
        return self._memory.select(Item, "position", columns)

    def assignments(self, project_id: int | None = None, **columns: Any) -> list[Assignment]:
        if project_id is None:  # of one item or person: the database has indices for these
            return super().assignments(**columns)
        return self._memory.select(Assignment, "id", columns)

    def steps(self, project_id: int) -> list[Step]:  # noqa: ARG002  # the cached project
        return sorted(self._memory.steps.values(), key=attrgetter("id"))

    def cached(self, owner: int | str, name: str, make: Callable[[], T], stamp: Any = None) -> T:
        made = self._memory.made.setdefault(owner, {})
        if name not in made or made[name][0] != stamp:
            made[name] = stamp, make()
        value: T = made[name][1]
        return value


def figure(caller: Caller, function: Function, *, alone: bool = False, **arguments: Any) -> Response:
    """Answer a call with a figure; `function` and the arguments are pickled. See `FigureCache.response`."""
    figures: FigureCache = caller.request.app.state.figures
    return figures.response(caller, function, alone=alone, **arguments)


router = Router()


@router.call("POST", "/api/lead/figures/{number}/cancel")
def cancel(caller: LeadWriter, number: Number) -> dict[str, bool]:
    """Cancel a figure in progress."""
    caller.request.app.state.figures.cancel(caller.studio, number)
    return {"cancelled": True}
