"""How far work of several steps is, on standard error: what `run.watch.Watch` asks for."""

from __future__ import annotations

import sys

from veriglot.cli.progress import Bar

__all__ = ["Steps"]


class Steps:
    """Shows a bar for each step, and says what a person should know; see `run.watch.Watch`.

    Args:
        shown: whether to show anything.
    """

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._bar: Bar | None = None

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def begin(self, step: str, total: int | None) -> None:
        """A step begins."""
        self._close()
        if self._shown and sys.stderr.isatty():
            print(f"veriglot: {step}", file=sys.stderr)
        self._bar = Bar(shown=self._shown, total=lambda: total).__enter__()

    def advance(self) -> None:
        """One more row is done."""
        if self._bar is not None:
            self._bar.advance()

    def say(self, text: str) -> None:
        """One sentence for a person."""
        if self._shown:
            print(f"veriglot: {text}", file=sys.stderr)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None
