"""`veriglot models`: weights by name."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from veriglot.cli.command import command, new_app
from veriglot.cli.console import print_json
from veriglot.hub import cache, registry
from veriglot.report.tables import Table
from veriglot.report.text_layout import shortened

if TYPE_CHECKING:
    from rich.progress import Progress


app = new_app()


@app.callback()
def _models() -> None:
    """Get and keep model files by name: verified, shared by processes, and then used offline.

    They are in the folder VERIGLOT_WEIGHTS, or in this user's cache folder. VERIGLOT_MODELS names registries of your
    own models, and VERIGLOT_OFFLINE=1 turns the network off.
    """


@app.command("list")
@command
def list_models(json: bool = False) -> None:
    """Show the models that Veriglot can get by name.

    Each has a size, a licence, languages and a status.

    here: verified. unverified: its files are here; the next use verifies them. missing: get it first.
    """
    models = registry.listing()
    if json:
        print_json(models)
        return

    rows = [
        (
            model.name,
            model.state,
            f"{model.bytes / 1e6:,.1f}",
            model.licence,
            f"third party: {model.origin}" if model.third_party else model.origin,
            f"{model.title}. Languages: {shortened(model.languages, 20, ' ') or 'not named.'}",
        )
        for model in models
    ]
    Table("", ("model", "state", "MB", "licence", "registry", "what it is"), rows).print()
    print(f"The folder of models is {registry.folder()}.")


@app.command("get")
@command
def get(names: list[str], source: str | None = None, accept: bool = False, quiet: bool = False) -> None:
    """Fetch models, verify them, and print their paths.

    The size and SHA-256 of each file are verified. Files that are here are not fetched again, and an interrupted
    download resumes if the server allows it. No incomplete file is ever left under a model's name.
    """
    for name in names:
        registry.model(name)  # an unknown name at the end must fail before the first download
    for name in names:
        with _transfer_bar(quiet=quiet) as bar:
            path = cache.get(
                name,
                source=source,
                accept=lambda model: accept or _asked(model, bar),
                say=lambda line: None if quiet else print(line, file=sys.stderr, flush=True),
                progress=lambda done, total: bar.update(bar.task_ids[0], completed=done, total=total, visible=True),
            )
        print(path, flush=True)


@app.command("remove")
@command
def remove(name: str) -> None:
    """Delete a model's files from the folder of models. Files that a registry uses in place are not deleted."""
    freed = cache.remove(name)
    outcome = f"{freed / 1e6:,.1f} MB freed." if freed else f"Nothing of it was in {registry.folder()}."
    print(f"{name}: {outcome}", file=sys.stderr)


@app.command("path")
@command
def path(name: str) -> None:
    """Print the path of a model.

    A model of several files has the path of their folder. Fails if the model is missing or damaged.
    """
    print(registry.find(name))


def _asked(model: registry.Model, bar: Progress) -> bool:
    """Ask the user at the terminal; without a terminal the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    bar.stop()
    print(f"Do you accept the licence of {model.name} ({model.licence})? [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip().lower()
    bar.start()
    return answer in {"y", "yes"}


def _transfer_bar(*, quiet: bool) -> Progress:
    """A progress bar of bytes on standard error, shown from the first transfer on, only in a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True, quiet=quiet or not sys.stderr.isatty())
    bar = Progress(
        BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(), console=console, transient=True
    )
    bar.add_task("bytes", total=None, visible=False)
    return bar
