"""One process on the other side: started, spoken to in turns, given up on after a while, and never left behind."""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import weakref
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import VeriglotError, WeightsError
from veriglot.run.companion.messages import PROTOCOL, Batch, Hello, Message, Open, Ready, Refusal, Results, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Companion", "CompanionError", "GoneError"]

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
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        try:
            process = subprocess.Popen(  # noqa: S603  # the interpreter and the engine are the user's own choice
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**kept, "PYTHONIOENCODING": "utf-8"},
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
        said = [line for line in self._said if line.strip()]
        return f" Its last line: {said[-1][:_LONGEST_LINE]}" if said else ""


def _hear(process: subprocess.Popen[bytes], heard: queue.SimpleQueue[bytes | None]) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            heard.put(line)
    heard.put(None)


def _overhear(process: subprocess.Popen[bytes], said: deque[str]) -> None:
    """Standard error has to be read, or the process would stop when its pipe is full."""
    assert process.stderr is not None
    with process.stderr as lines:
        for line in lines:
            said.append(line.decode("utf-8", "replace").rstrip())


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
