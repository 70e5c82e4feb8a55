"""The work of `veriglot models`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from veriglot import weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.progress import Progress, TaskID

__all__ = ["get_models", "remove_model", "show_list"]

_PLAIN_WIDTH = 120  # columns where no terminal says how many there are
_MOST_TAGS = 20  # languages that a table names


def show_list(*, json: bool) -> None:
    """Print every model of the registries, as JSON or as a table."""
    found = weights.listing()
    if json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in ("model", "state", "MB", "licence", "registry", "what it is"):
        table.add_column(name, justify="right" if name == "MB" else "left", overflow="fold")
    for one in found:
        origin = f"third party: {one.origin}" if one.third_party else one.origin
        size = f"{one.bytes / 1e6:,.1f}"
        told = f"{one.title}. {_languages(one.languages)}"
        table.add_row(*(escape(text) for text in (one.name, one.state, size, one.licence, origin, told)))
    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    console.print(table)
    print(f"The folder of models is {weights.folder()}.")


def get_models(names: Sequence[str], *, source: str | None, accept: bool, quiet: bool) -> None:
    """Get each model and print its path.

    Raises:
        VeriglotError: as `weights.get`, at the first that fails; those before it are here.
    """
    for name in names:
        weights.model(name)  # a slip in the last name should not wait for the first download
    for name in names:
        with _Bar(shown=not quiet) as bar:
            path = weights.get(
                name,
                source=source,
                accept=lambda model: accept or _asked(model, bar),
                say=bar.say,
                progress=bar.progress,
            )
        print(path, flush=True)


def remove_model(name: str) -> None:
    """Delete a model, and say what that freed."""
    freed = weights.remove(name)
    told = f"{freed / 1e6:,.1f} MB freed." if freed else f"Nothing of it was in {weights.folder()}."
    print(f"{name}: {told}", file=sys.stderr)


def _languages(tags: Sequence[str]) -> str:
    if not tags:
        return "Languages: not named."
    more = f" and {len(tags) - _MOST_TAGS} more" if len(tags) > _MOST_TAGS else ""
    return f"Languages: {' '.join(tags[:_MOST_TAGS])}{more}"


def _asked(model: weights.Model, bar: _Bar) -> bool:
    """Ask the person at the terminal; where none is there, nobody has accepted anything."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    bar.hide()
    print(f"Do you accept the licence of {model.name} ({model.licence})? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


class _Bar:
    """Lines on standard error, and a bar of bytes below them where a person is there to see it."""

    def __init__(self, *, shown: bool) -> None:
        self._lines = shown
        self._drawn = shown and sys.stderr.isatty()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.hide()

    def say(self, line: str) -> None:
        """Print a line; a bar that is there begins anew with the next transfer."""
        self.hide()
        if self._lines:
            print(line, file=sys.stderr, flush=True)

    def progress(self, held: int, total: int) -> None:
        """Draw how far a transfer is."""
        if not self._drawn:
            return
        if self._bar is None:
            self._appear()
        assert self._bar is not None
        assert self._task is not None
        self._bar.update(self._task, completed=held, total=total)

    def hide(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

        self._bar = Progress(
            BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task("bytes", total=None)
        self._bar.start()
