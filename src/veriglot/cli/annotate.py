"""`veriglot annotate`: projects of annotation, from the file to the people and back to files."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  typer reads it
from typing import Annotated, Literal, Optional

import typer

from veriglot.cli.annotate_agreement import agreement
from veriglot.cli.annotate_export import export, settle
from veriglot.cli.annotate_options import Database, Json, ProjectFile  # noqa: TC001  typer reads them
from veriglot.cli.annotate_serve import serve

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def _annotate() -> None:
    """Annotate hallucinations in a team: projects, people, the studio, agreement, exports."""


@app.command("init")
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", show_default=False, help="Where project.toml is written.")
    ],
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="What to begin with: mfava, hat, kang or halluverse. Default: mfava.")
    ] = "mfava",
    data: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="PATH",
            show_default=False,
            help="What is annotated; may be given several times. Default: data.jsonl in FOLDER.",
        ),
    ] = None,
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="NAME", show_default=False, help="Name of the project. Default: that of the folder."),
    ] = None,
    language: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="TAG", show_default=False, help="Language of responses; may be given several times. Default: all."
        ),
    ] = None,
) -> None:
    """Write a project file to begin with, after one of the papers."""
    from veriglot.cli.annotating import write_project

    write_project(folder, preset, data or [], name, language or [])


@app.command("import")
def import_(
    project: ProjectFile,
    database: Database = None,
    json: Json = False,
) -> None:
    """Import the data that the project file names; what was imported before stays as it is.

    Rows that cannot become an item are told of, with their place, and the rest goes on; then it leaves with 3.
    """
    from veriglot.cli.annotating import import_data

    raise typer.Exit(import_data(project, database, json=json))


@app.command("invite")
def invite(
    project: ProjectFile,
    role: Annotated[
        Literal["annotator", "reviewer", "lead"],
        typer.Option(metavar="ROLE", help="annotator, reviewer or lead. Default: annotator."),
    ] = "annotator",
    count: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many links. Default: 1.")] = 1,
    language: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="TAG", show_default=False, help="Language of their items; may be given several times. Default: all."
        ),
    ] = None,
    note: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="TEXT", show_default=False, help="For the lead's eyes, such as who is meant."),
    ] = None,
    url: Annotated[
        str, typer.Option(metavar="URL", help="Where the studio will be reached. Default: http://127.0.0.1:8321.")
    ] = "http://127.0.0.1:8321",
    database: Database = None,
    json: Json = False,
) -> None:
    """Make links that people join by, one each. A link is shown once; only a hash of its key is kept."""
    from veriglot.cli.annotating import make_invitations

    make_invitations(project, database, role, count, languages=language or [], note=note, url=url, json=json)


@app.command("status")
def status(project: ProjectFile, database: Database = None, json: Json = False) -> None:
    """Show how far the work is: items, people, assignments."""
    from veriglot.cli.annotating import show_status

    show_status(project, database, json=json)


@app.command("backup")
def backup(
    project: ProjectFile,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", show_default=False, help="What to write: *.sqlite (a copy), or *.jsonl.gz (portable)."
        ),
    ],
    database: Database = None,
    json: Json = False,
) -> None:
    """Write everything into one file, while people work; it is read again to be sure."""
    from veriglot.cli.annotating import make_backup

    make_backup(project, database, file, json=json)


@app.command("restore")
def restore(
    project: ProjectFile,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="A file of `veriglot annotate backup`.")
    ],
    database: Database = None,
    json: Json = False,
) -> None:
    """Bring a backup into a new database, of either kind. A database that holds anything is refused."""
    from veriglot.cli.annotating import restore_backup

    restore_backup(project, database, file, json=json)


app.command("agreement")(agreement)
app.command("export")(export)
app.command("settle")(settle)
app.command("serve")(serve)
