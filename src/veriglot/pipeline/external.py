"""Packages that conflict with ours: each runs in a Python environment of its own, connected by a pipe.

`external_engines.py` runs on the other side and imports nothing of Veriglot. The protocol, version 1, is one JSON
object per line in UTF-8, over standard input and output; a package's own output goes to standard error:

    engine    {"type": "hello", "protocol": 1, "packages": {name: version}}
    Veriglot  {"type": "open", "options": {...}}
    engine    {"type": "ready", "about": {...}} or {"type": "refused", "message", "remedy"}, and it exits
    Veriglot  {"type": "batch", "id", "rows": [{...}]}, any number of times
    engine    {"type": "results", "id", "rows": [{"value", "parts", "details"} or {"error", "status"}]}, in order

The engine exits when its input ends. After an exception, a batch is retried row by row. If the process dies or times
out, a new one is started and the batch is halved until the failing row is alone: this row is `failed`.
"""

from __future__ import annotations

import math
import os
import queue
import shutil
import subprocess
import sys
import threading
import weakref
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from veriglot.errors import UsageError, VeriglotError, WeightsError
from veriglot.plugins import read_package_data
from veriglot.records import Status
from veriglot.records.settings import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Answer", "ExternalEngine", "python_of"]

PROTOCOL = 1
_ENGINES = Path(__file__).with_name("external_engines.py")
_ERROR_LINES = 20  # last lines of standard error, for the message
_LONGEST_LINE = 400  # maximum code points of each
_PATIENCE = 5.0  # seconds until a process that should exit is killed
_ROWS = 64  # maximum rows of a batch, which a time-out or a crash costs


class _GoneError(Exception):
    """The process ended, or was abandoned, before it answered."""


class _Environment(Record):
    """An environment of `environments.json`: arguments of each pip call, Python version, and the reason for it."""

    steps: tuple[tuple[str, ...], ...]
    python: str
    why: str


def environments() -> dict[str, _Environment]:
    """The environments of our engines, by name."""
    return read_package_data("veriglot.pipeline", "environments.json", dict[str, _Environment])


def python_of(name: str, python: str | Path | None = None) -> Path:
    """The interpreter of an environment.

    Args:
        name: `comet`, `laser` or `sonar`.
        python: an interpreter, or the folder of an environment; takes precedence over the setting
            `VERIGLOT_ENV_<NAME>`, and this over the folder in the user's cache.

    Raises:
        UsageError: none of them exists; the remedy has the commands.
    """
    from platformdirs import user_cache_path

    standard = user_cache_path("veriglot", appauthor=False) / "environments" / name
    asked = python or os.environ.get(_variable(name))
    folder = Path(asked).expanduser() if asked else standard
    for path in (folder, folder / "bin" / "python", folder / "Scripts" / "python.exe"):
        if path.is_file():
            return path.absolute()  # not resolved: the link into the environment selects the environment
    if on_path := shutil.which(str(asked)) if asked else None:
        return Path(on_path)
    raise UsageError(f"There is no Python environment {name!r} at {folder}.", instructions(name, standard))


def instructions(name: str, folder: Path) -> str:
    """The commands that create an environment, and the setting for one in another folder."""
    known = environments()[name]
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    calls = [f"python3 -m venv '{folder}'"]
    calls += [" ".join([f"'{python}' -m pip install", *(f"'{package}'" for package in step)]) for step in known.steps]
    return (
        f"Type: {' && '.join(calls)}   (Python {known.python}; "
        f"{known.why}). One that lies elsewhere: {_variable(name)}=PYTHON, or the option python."
    )


def _variable(name: str) -> str:
    return f"VERIGLOT_ENV_{name.upper()}"


class Answer(Record):
    """The result of one row: a number, or an error.

    Attributes:
        value: a finite number; None after an error.
        parts: further numbers, by name.
        details: other results of the engine, such as error spans.
        error: why there is no value.
        status: status of a row with an error: `failed`, `too_long` or `unsupported_language`.
    """

    value: float | None = None
    parts: dict[str, float] = {}
    details: dict[str, Any] = {}
    error: str | None = None
    status: str = Status.FAILED


class _Tagged(Record, tag_field="type", tag=lambda name: name.strip("_").lower()):
    """A message of an engine; its type is the name of the record."""


class _Hello(_Tagged):
    protocol: int
    packages: dict[str, str] = {}


class _Ready(_Tagged):
    about: dict[str, Any] = {}


class _Refused(_Tagged):
    message: str
    remedy: str = ""


class _Results(_Tagged):
    id: int
    rows: list[Answer]


_Message = _Hello | _Ready | _Refused | _Results


class ExternalEngine:
    """An engine in its own Python environment: started immediately, and restarted if it dies.

    It processes one batch at a time: threads that share it wait for each other.

    Args:
        python: the interpreter.
        engine: the engine's file, or the name of one of ours (`comet`).
        options: arguments of the engine's constructor, as JSON values.
        start_timeout: seconds for starting and for loading the model.
        timeout: seconds for a batch of 64 rows.

    Attributes:
        packages: versions of the engine's packages, by name.
        about: the engine's description of its model.

    Raises:
        VeriglotError: the process does not start, or not in time, or has another protocol version.
        WeightsError: the engine cannot load the model; the message is the engine's.
    """

    def __init__(
        self,
        python: str | Path,
        engine: str | Path,
        options: dict[str, Any],
        *,
        start_timeout: float = 600.0,
        timeout: float = 600.0,
    ) -> None:
        named = str(Path(engine).absolute()) if Path(engine).suffix else str(engine)
        self._command = [str(python), "-u", str(_ENGINES), named]
        self._options, self._start_timeout, self._timeout = options, start_timeout, timeout
        self._number = 0
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._start()

    def ask(self, rows: Sequence[dict[str, Any]]) -> list[Answer]:
        """One answer per row, in order; equal rows are processed once.

        A row that kills the process twice is `failed`, with the reason.
        """
        keys = [msgspec.json.encode(row, order="sorted") for row in rows]
        distinct = dict(zip(keys, rows, strict=True))
        due = list(distinct.values())
        with self._lock:
            answers = [
                answer for start in range(0, len(due), _ROWS) for answer in self._ask(due[start : start + _ROWS])
            ]
        by_key = dict(zip(distinct, answers, strict=True))
        return [by_key[key] for key in keys]

    def close(self) -> None:
        """Stop the process; the next batch starts a new one."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def _start(self) -> _Process:
        name = f"The engine {Path(self._command[-1]).stem} of {self._command[0]}"
        process = _Process(self._command)
        try:
            hello = process.answer(self._start_timeout)
            if not isinstance(hello, _Hello) or hello.protocol != PROTOCOL:
                protocol = hello.protocol if isinstance(hello, _Hello) else "none"
                raise VeriglotError(
                    f"{name} speaks protocol {protocol}, and this version of Veriglot {PROTOCOL}.",
                    "Use the engine of this version.",
                )
            process.send({"type": "open", "options": self._options})
            ready = process.answer(self._start_timeout)
            if isinstance(ready, _Refused):
                raise WeightsError(f"{name} cannot load its model: {ready.message}", ready.remedy)
            if not isinstance(ready, _Ready):
                raise VeriglotError(f"{name} did not report that it is ready.")
        except _GoneError as gone:
            raise VeriglotError(
                f"{name} does not start: {gone}.{process.last_words()}",
                "Read its output, and check the memory and its packages.",
            ) from gone
        except VeriglotError:
            process.close()
            raise
        self.packages, self.about = hello.packages, ready.about
        self._process = process
        return process

    def _ask(self, rows: Sequence[dict[str, Any]], deaths: int = 0) -> list[Answer]:
        try:
            process = self._process or self._start()
            self._number += 1
            process.send({"type": "batch", "id": self._number, "rows": rows})
            results = process.answer(self._timeout)
            if not isinstance(results, _Results) or results.id != self._number or len(results.rows) != len(rows):
                process.close()
                raise _GoneError("its answer does not match the request")
            return [_checked(row) for row in results.rows]
        except VeriglotError as error:  # it started before, and does not now
            return [Answer(error=error.message) for _ in rows]
        except _GoneError as gone:
            self._process = None
            if len(rows) > 1:  # halve until the failing row is alone
                middle = len(rows) // 2
                return [*self._ask(rows[:middle]), *self._ask(rows[middle:])]
            if deaths:
                return [Answer(error=f"its process died twice over this row: {gone}")]
            return self._ask(rows, deaths + 1)


def _checked(row: Answer) -> Answer:
    if row.error is not None or row.value is None:
        known = row.status in set(Status) - {Status.SCORED}
        reason = row.error or "the engine gave neither a number nor a reason"
        return Answer(error=reason, status=row.status if known else Status.FAILED)
    return row if math.isfinite(row.value) else Answer(error=f"the engine gave {row.value}")


class _Process:
    """The other end of the pipe. If it ends or breaks the protocol, methods close it and raise `_GoneError`."""

    def __init__(self, command: list[str]) -> None:
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._errors = deque[bytes](maxlen=_ERROR_LINES)
        # Our own path is not set there: the packages beside us must not be importable.
        variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        try:
            self._process = subprocess.Popen(  # noqa: S603  # the interpreter and the engine are the user's own choice
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**variables, "PYTHONIOENCODING": "utf-8"},
                start_new_session=True,  # Ctrl-C is handled by us
            )
        except OSError as error:
            raise VeriglotError(
                f"{command[0]} cannot be run: {error.strerror}.", "Give the Python of the environment."
            ) from error
        self.close = weakref.finalize(self, _leave, self._process)
        # Standard error must be read, or the process blocks when its pipe is full.
        pipes = (self._process.stdout, self._lines.put), (self._process.stderr, self._errors.append)
        for pipe in pipes:
            threading.Thread(target=_read, args=pipe, daemon=True).start()

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(message) + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise self._gone(self._ending()) from error

    def answer(self, timeout: float) -> _Message:
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise self._gone(f"it took longer than {timeout:g} s") from None
        if not line:
            raise self._gone(self._ending())
        try:
            message: _Message = msgspec.json.decode(line, type=_Message)
        except msgspec.MsgspecError as error:
            raise self._gone(f"it sent an invalid message ({error})") from error
        return message

    def last_words(self) -> str:
        lines = [line.decode("utf-8", "replace").rstrip() for line in self._errors if line.strip()]
        return f" Its last line: {lines[-1][:_LONGEST_LINE]}" if lines else ""

    def _gone(self, reason: str) -> _GoneError:
        self.close()
        return _GoneError(reason)

    def _ending(self) -> str:
        """How the process ended; waits a moment for it."""
        try:
            code = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return "it closed the pipe"
        return f"it ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"


def _read(pipe: IO[bytes], keep: Callable[[bytes], object]) -> None:
    """Collect the lines of a pipe, and an empty one at its end."""
    with pipe as lines:
        for line in lines:
            keep(line)
    keep(b"")


def _leave(process: subprocess.Popen[bytes]) -> None:
    """Close its input; kill it if it does not exit."""
    if process.stdin is not None and not process.stdin.closed:
        with suppress(OSError):  # nobody reads unsent data
            process.stdin.close()
    try:
        process.wait(0.2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_PATIENCE)
