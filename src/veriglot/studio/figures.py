"""Figures of leads: made in processes of their own, and remembered until something happens.

Nothing that people hand in waits for a figure: it takes another process, of low priority, which a lead can cancel and
which ends with the server. A call waits a moment for it; then it is answered with the last figure, or with how far the
new one is. Saves change no figure but times of work, so that they alone make one old only after a minute.
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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import forkserver
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from fastapi import Response
from sqlalchemy import case, func, select

from veriglot.http.server import CallRefused, json_response
from veriglot.records.settings import Record
from veriglot.studio.tables import QUIET_EVENTS, NotFound, events
from veriglot.studio.web import Caller, LeadWriter, Number, Router, error_response

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from veriglot.studio.web import Studio

__all__ = ["Figures", "Pending", "Progress", "figure", "router"]

Progress = Callable[[float], None]
"""What is told how far a figure is, from 0 to 1."""
Function = Callable[..., Any]  # makes a figure: of a studio, a transaction that reads, a `Progress`, and arguments

_WAIT = 0.6  # seconds that a call waits for a new figure
_LONGEST = 120.0  # seconds that a call waits which needs one
_AT_ONCE = 2  # processes
_REMEMBERED = 100  # figures
_AFTER_SAVES = 60.0  # seconds after which saves alone make a figure old
_LONG = 3.0  # seconds that a figure takes, from which on it is not made again at once
_REST = 0.5  # of the time that it took, until it is
_LOW = 10  # priority of processes, as of `nice`

_has_forkserver = "forkserver" in multiprocessing.get_all_start_methods()
_context: Any = multiprocessing.get_context("forkserver" if _has_forkserver else "spawn")


class PendingFigure(Record):
    """A figure that is being made: its `id`, for how many seconds, and how far it is, where that can be told."""

    id: int
    seconds: float
    done: float | None


class Pending(Record):
    """The answer to a call for a figure that there is none of yet: ask again."""

    pending: PendingFigure


class _Version(NamedTuple):
    """What had happened when a figure was made: the last event, and the last that is no save."""

    any: int
    loud: int


_NOTHING = _Version(0, 0)


@dataclass
class _Figure:
    id: int
    studio: Studio
    answer: tuple[int, bytes] | None = None  # status and body
    version: _Version = _NOTHING
    finished: float = 0.0
    took: float = 0.0
    began: float = 0.0  # 0 while it is not being made
    done: float | None = None
    process: BaseProcess | None = None
    cancelled: bool = False

    @property
    def has_rested(self) -> bool:
        """Whether it may be made again: those that take long leave time to others."""
        return self.took < _LONG or time.monotonic() >= self.finished + _REST * self.took

    def is_old(self, version: _Version) -> bool:
        """Whether something happened that it does not know of."""
        if self.answer is None or self.answer[0] >= 500 or self.version.loud < version.loud:
            return True
        return self.version < version and time.monotonic() - self.finished > _AFTER_SAVES


@dataclass
class Figures:
    """The figures of a server."""

    _changed: threading.Condition = field(default_factory=threading.Condition)
    _turns: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_AT_ONCE))
    _figures: OrderedDict[tuple[Any, ...], _Figure] = field(default_factory=OrderedDict)
    _versions: dict[Studio, _Version] = field(default_factory=dict)
    _ids: Any = field(default_factory=lambda: itertools.count(1))
    _closed: bool = False

    def __post_init__(self) -> None:
        if _has_forkserver:  # it loads what figures need while nobody waits
            _context.set_forkserver_preload([f"veriglot.studio.{name}" for name in ("dashboard", "rates")])
            forkserver.ensure_running()

    def response(self, caller: Caller, function: Function, **arguments: Any) -> Response:
        """The answer to a call for a figure: 202 where there is none yet, and `X-Outdated` where it is an old one."""
        made, version = self._made(caller, function, arguments, _wait_of(caller))
        if made.answer is None:
            if not made.began:  # it was cancelled, or the server stops
                raise CallRefused(503, "cancelled", "This was cancelled.", "Ask for it again.")
            seconds = round(time.monotonic() - made.began, 1)
            return json_response(Pending(PendingFigure(made.id, seconds, made.done)), 202)
        headers = {"x-outdated": "1"} if made.version.loud < version.loud else None
        return Response(made.answer[1], made.answer[0], headers, media_type="application/json")

    def value(self, caller: Caller, function: Function, kind: Any, **arguments: Any) -> Any:
        """A figure itself, perhaps an old one; waits for the first."""
        made, _ = self._made(caller, function, arguments, _WAIT)
        if made.answer is None:
            made, _ = self._made(caller, function, arguments, _LONGEST)
        if made.answer is None or made.answer[0] != 200:
            raise CallRefused(503, "unavailable", "The figures that this needs cannot be made.", "Try again.")
        return msgspec.json.decode(made.answer[1], type=kind)

    def _made(
        self, caller: Caller, function: Function, arguments: dict[str, Any], wait: float
    ) -> tuple[_Figure, _Version]:
        studio, key = caller.studio, (caller.studio.slug, function.__name__, *sorted(arguments.items()))
        version, asked = self._version(studio), time.monotonic()
        with self._changed:
            made = self._figures.setdefault(key, _Figure(next(self._ids), studio))
            self._figures.move_to_end(key)
            self._forget()
            while made.is_old(version) and not self._closed:
                if not made.began and made.has_rested:
                    caller.count("heavy")
                    made.began, made.done, made.cancelled = time.monotonic(), None, False
                    threading.Thread(target=self._make, args=(made, function, arguments, version), daemon=True).start()
                in_time = made.began and self._changed.wait(asked + wait - time.monotonic())
                failed = made.finished > asked and made.answer is not None and made.answer[0] >= 500
                if not in_time or failed or made.cancelled:
                    break
        return made, version

    def _forget(self) -> None:
        idle = [key for key, made in self._figures.items() if not made.began]
        for key in idle[: max(0, len(self._figures) - _REMEMBERED)]:
            del self._figures[key]

    def _version(self, studio: Studio) -> _Version:
        """What happened so far; only events that are new since the last call are looked at."""
        seen, row = self._versions.get(studio, _NOTHING), events.c
        loud = func.max(case((row.kind.not_in(QUIET_EVENTS), row.id)))
        with studio.store.reading() as tx:
            statement = select(func.max(row.id), loud).where(row.project_id == studio.id, row.id > seen.any)
            newest, newest_loud = tx.connection.execute(statement).one()
        version = _Version(newest or seen.any, newest_loud or seen.loud)
        self._versions[studio] = max(version, self._versions.get(studio, version))
        return version

    def _make(self, made: _Figure, function: Function, arguments: dict[str, Any], version: _Version) -> None:
        """Make a figure in another process, and wait for it."""
        answer: tuple[int, bytes] | None = None
        with self._turns:
            started = time.monotonic()
            receiver, sender = _context.Pipe(duplex=False)
            given = (sender, made.studio, function, arguments)
            process: BaseProcess = _context.Process(target=_work, args=given, daemon=True)
            process.start()
            sender.close()
            with self._changed:
                made.process = process
                if self._closed or made.cancelled:
                    process.kill()
            with receiver, suppress(EOFError):  # whoever is cancelled or killed says nothing more
                while answer is None:
                    message = receiver.recv()
                    if isinstance(message, float):
                        made.done = message
                    else:
                        answer = message
            process.join()
        if answer is None and not (made.cancelled or self._closed):
            answer = 503, bytes(error_response(ChildProcessError(f"{function.__name__} ended early")).body)
        with self._changed:
            if answer is not None:
                made.answer, made.version, made.finished = answer, version, time.monotonic()
                made.took = made.finished - started
            made.began, made.process = 0.0, None
            self._changed.notify_all()

    def cancel(self, studio: Studio, number: int) -> None:
        """End the process that makes a figure.

        Raises:
            NotFound: no such figure is being made.
        """
        with self._changed:
            made = next((made for made in self._figures.values() if (made.id, made.studio) == (number, studio)), None)
            if made is None or not made.began:
                raise NotFound("figure")
            made.cancelled = True
            if made.process is not None:
                made.process.kill()  # it only reads

    def close(self) -> None:
        """End all processes."""
        with self._changed:
            self._closed = True
            for made in self._figures.values():
                if made.process is not None:
                    made.process.kill()
            self._changed.notify_all()


def _wait_of(caller: Caller) -> float:
    """Seconds that a call waits, as `Prefer: wait=60` asks (RFC 7240); a page asks for nothing, and asks again."""
    wish = re.search(r"\bwait=(\d{1,4})\b", caller.request.headers.get("prefer", ""))
    return _WAIT if wish is None else min(_LONGEST, float(wish[1]))


def _work(sender: Connection, studio: Studio, function: Function, arguments: dict[str, Any]) -> None:
    """Make a figure, in a process of its own: send how far it is, and then status and body of the answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the server ends this
    with suppress(OSError):
        os.nice(_LOW)
    sent = 0.0

    def progress(share: float) -> None:
        nonlocal sent
        if time.monotonic() - sent > 0.2:
            sent = time.monotonic()
            sender.send(share)

    try:
        with studio.store.reading() as tx:
            response = json_response(function(studio, tx, progress, **arguments))
    except BrokenPipeError:  # the server was killed
        return
    except Exception as error:
        response = error_response(error)
    with suppress(BrokenPipeError):
        sender.send((response.status_code, bytes(response.body)))


def figure(caller: Caller, function: Function, **arguments: Any) -> Response:
    """Answer a call with a figure; `function` and the arguments are pickled."""
    figures: Figures = caller.request.app.state.figures
    return figures.response(caller, function, **arguments)


router = Router()


@router.call("POST", "/api/lead/figures/{number}/cancel")
def cancel(caller: LeadWriter, number: Number) -> dict[str, bool]:
    """Cancel a figure that is being made."""
    caller.request.app.state.figures.cancel(caller.studio, number)
    return {"cancelled": True}
