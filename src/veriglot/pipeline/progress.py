"""Progress of long work: messages and a bar of rows, on standard error."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress, TaskID

__all__ = ["ProgressBar", "ProgressReporter", "say"]


def say(text: str) -> None:
    """One line on standard error."""
    print(f"veriglot: {text}", file=sys.stderr)


_EVERY = 30.0  # seconds between lines if there is no bar
_PATIENCE = 1.0  # seconds; shorter work shows no bar, and does not import rich


class ProgressBar:
    """A progress bar that appears only for long work; a line every 30 s if standard error is not a terminal.

    Args:
        shown: whether to show it at all.
        total: counts the rows, or returns None if unknown; called only before the bar is shown.
        resumes: whether an interrupted run continues when it is started again, which is then printed.
        step: a short description of the work.
        lines: whether to print lines without a terminal.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        *,
        shown: bool,
        total: Callable[[], int | None],
        resumes: bool = False,
        step: str = "",
        lines: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hint = shown and resumes
        self._shown = shown and sys.stderr.isatty()
        self._lines = shown and lines and not self._shown
        self._step = step
        self._ended = Event()
        self._total = total
        self._clock = clock
        self._began = clock()
        self._rows = 0
        self._skipped = 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBar:
        if self._lines:
            Thread(target=self._tell, daemon=True).start()  # a single row may take minutes
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        self._ended.set()
        if self._bar is not None:
            self._bar.stop()
        if kind is KeyboardInterrupt and self._hint:
            say("Interrupted. Rerun the command to resume.")

    def advance(self, rows: int = 1) -> None:
        """Count finished rows."""
        self._rows += rows
        if self._bar is not None:
            assert self._task is not None
            self._bar.update(self._task, completed=self._rows)
        elif self._shown and self._clock() - self._began > _PATIENCE:
            self._appear()

    def _tell(self) -> None:
        if self._ended.wait(_EVERY):
            return
        total = None
        with suppress(Exception):  # uncountable input causes an error in the work itself
            total = self._total()
        of = "" if total is None else f" of {total:,}"
        step = self._step and f"{self._step}: "
        while not self._ended.is_set():
            state = f"{self._rows:,}{of} done" if of or self._rows else "still at work"
            say(f"{step}{state} after {self._clock() - self._began:,.0f} s")
            self._ended.wait(_EVERY)

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text

        class Rate(ProgressColumn):
            """Rows per second."""

            def render(self, task: object) -> Text:
                speed = getattr(task, "speed", None)
                return Text("" if speed is None else f"{speed:,.1f} rows/s")

        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn(),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task("rows", total=self._total(), completed=self._rows)
        self._bar.start()


class ProgressReporter:
    """Shows the progress of long work: a bar for each step, and messages.

    Args:
        shown: whether to show anything.
        resumes: whether an interrupted run continues when it is started again.
    """

    def __init__(self, *, shown: bool = False, resumes: bool = False) -> None:
        self._shown = shown
        self._resumes = resumes
        self._bar = ProgressBar(shown=shown, total=lambda: None, resumes=resumes)

    def __enter__(self) -> ProgressReporter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._bar.__exit__(kind)

    def begin(self, step: str, total: int | None) -> None:
        """Start a step: its short description, and its number of rows, if known."""
        self._bar.__exit__()
        if self._shown and sys.stderr.isatty():
            say(step)
        self._bar = ProgressBar(shown=self._shown, total=lambda: total, resumes=self._resumes, step=step).__enter__()

    def advance(self) -> None:
        """Count one finished row of the step."""
        self._bar.advance()

    def say(self, text: str) -> None:
        """Print a message for the user, in one sentence."""
        if self._shown:
            say(text)
