"""Companion processes: their environments, the messages over a pipe, timeouts, and one that lives while needed."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import threading
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import UsageError, VeriglotError, WeightsError
from veriglot.records import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "ENVIRONMENTS",
    "Companion",
    "CompanionError",
    "Keeper",
    "MissingEnvironmentError",
    "Refused",
    "Result",
    "ask",
    "python_of",
]


class Environment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An environment that one of our engines needs.

    Attributes:
        engine: file in `engines/`, without its suffix.
        steps: what pip is to install there, one call after the other.
        python: versions of Python that these packages run on, in words.
        licence: of the packages' code.
        why: why they are not installed beside ours.
    """

    engine: str
    steps: tuple[tuple[str, ...], ...]
    python: str
    licence: str
    why: str


class MissingEnvironmentError(UsageError):
    """A Python environment that is not here; the remedy is the commands that make it."""


@cache
def _environments() -> dict[str, Environment]:
    data = files(__package__).joinpath("environments.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, Environment])


ENVIRONMENTS = ("comet", "laser", "sonar")
"""The environments that have a name."""


def environment(name: str) -> Environment:
    """What is known of an environment of `ENVIRONMENTS`."""
    return _environments()[name]


def setting(name: str) -> str:
    """The environment variable that names the Python of an environment."""
    return f"VERIGLOT_ENV_{name.upper()}"


def folder(name: str) -> Path:
    """Where an environment is looked for without option or setting: `environments/<name>` in this user's cache."""
    from platformdirs import user_cache_path

    return user_cache_path("veriglot", appauthor=False) / "environments" / name


def python_of(name: str, python: str | Path | None = None) -> Path:
    """The interpreter of an environment.

    Args:
        name: of `ENVIRONMENTS`.
        python: an interpreter, or the folder of an environment; goes before the setting `VERIGLOT_ENV_<NAME>`, which
            goes before the folder in this user's cache.

    Raises:
        MissingEnvironmentError: none of them is there; the remedy gives the commands.
    """
    asked = python or os.environ.get(setting(name))
    environment = Path(asked).expanduser() if asked else folder(name)
    interpreter = _interpreter(environment)
    if interpreter is None and asked:
        on_path = shutil.which(str(asked))
        interpreter = Path(on_path) if on_path else None
    if interpreter is None:
        raise MissingEnvironmentError(
            f"There is no Python environment {name!r} at {environment}.", remedy=instructions(name, folder(name))
        )
    return interpreter


def instructions(name: str, folder: Path) -> str:
    """The commands that make an environment, and how to name it where it lies elsewhere."""
    known = environment(name)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    make = f"python3 -m venv '{folder}'"
    calls = [" ".join([f"'{python}' -m pip install", *(f"'{name}'" for name in step)]) for step in known.steps]
    return (
        f"Type: {' && '.join([make, *calls])}   (Python {known.python}; "
        f"{known.why}). One that lies elsewhere: {setting(name)}=PYTHON, or the option python."
    )


def _interpreter(environment: Path) -> Path | None:
    """The interpreter at a place; not resolved: a link into an environment is what makes it that environment."""
    if environment.is_file():
        return environment.absolute()
    inside = (environment / "bin" / "python", environment / "Scripts" / "python.exe")
    return next((path.absolute() for path in inside if path.is_file()), None)


# What goes over the pipe: one JSON object a line, in UTF-8.
#
# The other side says `hello` as soon as it runs, and `ready` or `refused` once it was told to `open` a model. Then
# every `batch` is answered by `results` of the same number, one row a row and in order. It leaves when its input ends.


PROTOCOL = 1


class Hello(msgspec.Struct, frozen=True, tag_field="type", tag="hello"):
    """The other side runs.

    Attributes:
        protocol: the version that it speaks.
        engine: its name.
        python: version of the interpreter.
        packages: versions of what the engine stands on, by name.
    """

    protocol: int
    engine: str
    python: str
    packages: dict[str, str] = {}


class Open(msgspec.Struct, frozen=True, tag_field="type", tag="open"):
    """Load the model; `options` are the engine's own."""

    options: dict[str, Any]


class Ready(msgspec.Struct, frozen=True, tag_field="type", tag="ready"):
    """The model is loaded; `about` is what the engine says of it."""

    about: dict[str, Any] = {}


class Refusal(msgspec.Struct, frozen=True, tag_field="type", tag="refused"):
    """The model cannot be loaded: what happened, and what to do."""

    message: str
    remedy: str = ""


class Batch(msgspec.Struct, frozen=True, tag_field="type", tag="batch"):
    """Rows to work on."""

    id: int
    rows: list[dict[str, Any]]


class Row(msgspec.Struct, frozen=True):
    """What came of one row: a value, or an error.

    Attributes:
        value: a finite number; None with an error.
        parts: further numbers, by name.
        details: what else the engine gives, such as error spans.
        error: why there is no value.
        status: with an error, the status that the row ends in: `failed`, `too_long` or `unsupported_language`.
    """

    value: float | None = None
    parts: dict[str, float] = {}
    details: dict[str, Any] = {}
    error: str | None = None
    status: str = "failed"


class Results(msgspec.Struct, frozen=True, tag_field="type", tag="results"):
    """The answer to the batch of the same number."""

    id: int
    rows: list[Row]


Message = Hello | Ready | Refusal | Results


_SERVE = Path(__file__).with_name("serve.py")
_ENGINES = Path(__file__).with_name("engines")
_KEPT_LINES = 20  # of standard error, for the message
_LONGEST_LINE = 400  # code points of them
_PATIENCE = 5.0  # seconds until a process that was asked to leave is killed


class CompanionError(VeriglotError):
    """The other side does not start, speaks another protocol, or cannot load the model."""


class GoneError(Exception):
    """The process ended, or was given up on, before it answered."""


class Companion:
    """An engine in a Python environment of its own.

    Args:
        python: the interpreter.
        engine: the engine's file, or the name of one of ours (`comet_engine`).
        options: what the engine's constructor is given; values that JSON can hold.
        start_timeout: seconds for starting and for loading the model.
        timeout: seconds for a batch.

    Raises:
        CompanionError: the process does not start, or not in time, or speaks another protocol.
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
        ours = _ENGINES / f"{engine}.py"
        self.command = [str(python), "-u", str(_SERVE), str(ours if ours.is_file() else Path(engine).absolute())]
        self.timeout = timeout
        self._number = 0
        self._said: deque[str] = deque(maxlen=_KEPT_LINES)
        self._heard: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._process = self._start()
        self._finalizer = weakref.finalize(self, _leave, self._process)
        try:
            self.hello = self._greeting(start_timeout)
            self._send(Open(options))
            self.about = self._opened(start_timeout)
        except GoneError as gone:
            raise CompanionError(
                f"{self._named()} does not start: {gone}.{self._last_words()}",
                remedy="Look at what it said; is there enough memory, and are its packages installed?",
            ) from gone
        except VeriglotError:
            self.close()
            raise

    def run(self, rows: Sequence[dict[str, Any]]) -> list[Row]:
        """What comes of each row, in order.

        Raises:
            GoneError: the process ended, or took longer than `timeout`, or answered something else; it is closed.
        """
        self._number += 1
        self._send(Batch(self._number, list(rows)))
        answer = self._listen(self.timeout)
        if not isinstance(answer, Results) or answer.id != self._number or len(answer.rows) != len(rows):
            self.close()
            raise GoneError("it answered something else than was asked")
        return answer.rows

    def close(self) -> None:
        """Have it leave. Closing twice does nothing."""
        self._finalizer()

    def _named(self) -> str:
        return f"The engine {Path(self.command[-1]).stem} of {self.command[0]}"

    def _start(self) -> subprocess.Popen[bytes]:
        # Our own path is not theirs: what is installed beside us must not be found there.
        variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        try:
            process = subprocess.Popen(  # noqa: S603  # the interpreter and the engine are the user's own choice
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**variables, "PYTHONIOENCODING": "utf-8"},
                start_new_session=True,  # Ctrl-C is for us to decide about
            )
        except OSError as error:
            raise CompanionError(
                f"{self.command[0]} cannot be run: {error.strerror}.", remedy="Give the Python of the environment."
            ) from error
        threading.Thread(target=_hear, args=(process, self._heard), daemon=True).start()
        threading.Thread(target=_overhear, args=(process, self._said), daemon=True).start()
        return process

    def _greeting(self, timeout: float) -> Hello:
        answer = self._listen(timeout)
        if not isinstance(answer, Hello) or answer.protocol != PROTOCOL:
            spoken = answer.protocol if isinstance(answer, Hello) else "none"
            raise CompanionError(
                f"{self._named()} speaks protocol {spoken}, and this version of Veriglot {PROTOCOL}.",
                remedy="Take the engine of this version.",
            )
        return answer

    def _opened(self, timeout: float) -> dict[str, Any]:
        answer = self._listen(timeout)
        if isinstance(answer, Refusal):
            raise WeightsError(f"{self._named()} cannot load its model: {answer.message}", remedy=answer.remedy)
        if not isinstance(answer, Ready):
            raise CompanionError(f"{self._named()} said something else than that it is ready.")
        return answer.about

    def _send(self, message: Open | Batch) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(message) + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, OSError, ValueError) as error:
            reason = self._ending()
            self.close()
            raise GoneError(reason) from error

    def _listen(self, timeout: float) -> Message:
        try:
            line = self._heard.get(timeout=timeout)
        except queue.Empty:
            self.close()
            raise GoneError(f"it took longer than {timeout:g} s") from None
        if line is None:
            reason = self._ending()
            self.close()
            raise GoneError(reason)
        try:
            message: Message = msgspec.json.decode(line, type=Message)
        except msgspec.MsgspecError as error:
            self.close()
            raise GoneError(f"it said what is no message ({error})") from error
        return message

    def _ending(self) -> str:
        """How the process ended; it is given a moment to do so."""
        try:
            code = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return "it closed the pipe"
        return f"it ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"

    def _last_words(self) -> str:
        lines = [line for line in self._said if line.strip()]
        return f" Its last line: {lines[-1][:_LONGEST_LINE]}" if lines else ""


def _hear(process: subprocess.Popen[bytes], heard: queue.SimpleQueue[bytes | None]) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            heard.put(line)
    heard.put(None)


def _overhear(process: subprocess.Popen[bytes], last_lines: deque[str]) -> None:
    """Standard error has to be read, or the process would stop when its pipe is full."""
    assert process.stderr is not None
    with process.stderr as lines:
        for line in lines:
            last_lines.append(line.decode("utf-8", "replace").rstrip())


def _leave(process: subprocess.Popen[bytes]) -> None:
    """End of its input; a kill where that is not understood, or where it is busy."""
    if process.stdin is not None and not process.stdin.closed:
        with suppress(OSError):  # what was still to be sent has no reader
            process.stdin.close()
    try:
        process.wait(0.2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_PATIENCE)


# Batches through a companion that may die over one of their rows: the others get their answers all the same.


_ROWS = 64  # of a batch: what a time-out or a crash may cost


@dataclass(frozen=True)
class Result:
    """What an engine made of a row: its number, and what else it gave."""

    value: float
    parts: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Refused:
    """Why a row has no number."""

    status: Status
    reason: str


class Keeper:
    """Keeps a companion running: starts it on first use, and another one where it died.

    One batch at a time: threads that share it wait for each other.

    Args:
        make: starts a companion.

    Raises:
        VeriglotError: what `make` raises. It is called at once, so that a model that cannot be loaded is known early.
    """

    def __init__(self, make: Callable[[], Companion]) -> None:
        self._make = make
        self._companion: Companion | None = make()
        self.hello, self.about = self._companion.hello, self._companion.about
        self._lock = threading.Lock()

    def ask(self, rows: Sequence[dict[str, Any]]) -> list[Result | Refused]:
        """One result a row, in order; a row over which the process dies twice is `failed`, and says how."""
        with self._lock:
            return [result for start in range(0, len(rows), _ROWS) for result in self._ask(rows[start : start + _ROWS])]

    def close(self) -> None:
        """Have the companion leave; the next batch starts another."""
        if self._companion is not None:
            self._companion.close()
            self._companion = None

    def _ask(self, rows: Sequence[dict[str, Any]], deaths: int = 0) -> list[Result | Refused]:
        try:
            if self._companion is None:
                self._companion = self._make()
            return [_read(row) for row in self._companion.run(rows)]
        except VeriglotError as error:  # it started before, and now it does not
            return [Refused(Status.FAILED, error.message) for _ in rows]
        except GoneError as gone:
            self._companion = None
            if len(rows) > 1:  # halve until the row stands alone that kills it
                middle = len(rows) // 2
                return [*self._ask(rows[:middle]), *self._ask(rows[middle:])]
            if deaths:
                return [Refused(Status.FAILED, f"its process died twice over this row: {gone}")]
            return self._ask(rows, deaths + 1)


def ask(keeper: Keeper, rows: Sequence[dict[str, Any]]) -> list[Result | Refused]:
    """As `Keeper.ask`, every distinct row asked once."""
    import msgspec

    keys = [msgspec.json.encode(row, order="sorted") for row in rows]
    distinct = dict(zip(keys, rows, strict=True))
    results = dict(zip(distinct, keeper.ask(list(distinct.values())), strict=True))
    return [results[key] for key in keys]


def _read(row: Row) -> Result | Refused:
    if row.error is not None or row.value is None:
        status = Status(row.status) if row.status in set(Status) - {Status.SCORED} else Status.FAILED
        return Refused(status, row.error or "the engine gave neither a number nor a reason")
    if not abs(row.value) < float("inf"):
        return Refused(Status.FAILED, f"the engine gave {row.value}")
    return Result(row.value, row.parts, row.details)
