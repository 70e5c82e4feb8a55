"""`veriglot study`: how much models hallucinate in each language, from one file to the report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON. Default: a table.")]


@app.callback()
def _study() -> None:
    """Measure how much models hallucinate in each language: responses, detection, rates, report."""


@app.command("run")
def run(
    study: Annotated[str, typer.Argument(metavar="STUDY", show_default=False, help="The study file, as TOML.")],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            show_default=False,
            help="Folder of the run; one that was begun goes on. Default: beside the study file, named after it.",
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=0,
            show_default=False,
            help="Processes that judge responses; 0 is one for each core. The results do not depend on it. Calls to"
            " models at the same time are set in the study file (limits.jobs). Default: 0.",
        ),
    ] = 0,
    batch_size: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            show_default=False,
            help="Most responses judged at once. The results do not depend on it. Default: 32 responses.",
        ),
    ] = 32,
    restart: Annotated[
        bool,
        typer.Option("--restart", help="Make everything anew, but repeat no finished call. Default: go on."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Ask nothing and write nothing: check the study file, and say how many calls, tokens and judgements it"
            " takes.",
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the results, or the plan of --dry-run, as JSON. Default: a table.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress and no account on standard error. Default: off.")
    ] = False,
) -> None:
    """Make a study: ask the models (or take given responses), judge every response, estimate the rates, write a report.

    A run that stops, however it stops, goes on when the same command is given again: no finished call is repeated, no
    row is lost, and the results are the same. Calls that gave nothing are tried again. The folder then holds responses,
    predictions, rates.json, results.json, tables as CSV, and report.html.

    Leaves with 3 where rows came to nothing.
    """
    from veriglot.cli.studying import Request, carry_out

    request = Request(
        study=Path(study),
        output=None if output is None else Path(output),
        jobs=jobs,
        batch_size=batch_size,
        restart=restart,
        dry_run=dry_run,
        json=json,
        quiet=quiet,
    )
    raise typer.Exit(carry_out(request))


@app.command("status")
def status(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", show_default=False, help="The folder of the run.")],
    json: Json = False,
) -> None:
    """Say how far a run is: responses and predictions that are done, failed and planned, by model and detector.

    Reads the folder only, so it may be asked while the run is at work.
    """
    from veriglot.cli.studying import show_status

    show_status(Path(folder), json=json)
