"""`veriglot study`: how much models hallucinate in each language, from one file to the report; its state and plan."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veriglot.cli.command import Help, command
from veriglot.cli.options import BatchSize, DryRun, Json, OptionalOutput, Overwrite, Processes, Quiet
from veriglot.cli.progress import Steps
from veriglot.errors import EXIT_ROWS_FAILED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.pipeline.engine import Recipe
    from veriglot.records import ErrorProfile
    from veriglot.study.config import Config, Folder
    from veriglot.study.results import StudyResults

__all__ = ["app"]


app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def _study() -> None:
    """Measure how much models hallucinate in each language: responses, detection, rates, report."""


@app.command("run")
@command
def run(
    study: Annotated[str, typer.Argument(metavar="STUDY", show_default=False, help="The study file, as TOML.")],
    *,
    output: Annotated[
        OptionalOutput,
        Help("Folder of the run; one that was begun goes on. Default: beside the study file, named after it."),
    ] = None,
    processes: Annotated[
        Processes,
        Help("They judge responses; calls at the same time are set in the study file (limits.jobs). Default: 0."),
    ] = 0,
    batch_size: BatchSize = 32,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    json: Annotated[Json, Help("The results, or the plan of --dry-run. Default: a table.")] = False,
    quiet: Quiet = False,
) -> None:
    """Make a study: ask the models (or take given responses), judge every response, estimate the rates, write a report.

    A run that stops, however it stops, goes on when the same command is given again: no finished call is repeated, no
    row is lost, and the results are the same. Calls that gave nothing are tried again. The folder then holds responses,
    predictions, rates.json, results.json, tables as CSV, and report.html.

    Leaves with 3 where rows came to nothing.
    """

    request = Request(
        study=Path(study),
        output=None if output is None else Path(output),
        jobs=processes,
        batch_size=batch_size,
        restart=overwrite,
        dry_run=dry_run,
        json=json,
        quiet=quiet,
    )
    raise typer.Exit(carry_out(request))


@app.command("status")
@command
def status(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", show_default=False, help="The folder of the run.")],
    json: Annotated[Json, Help("Default: a table.")] = False,
) -> None:
    """Say how far a run is: responses and predictions that are done, failed and planned, by model and detector.

    Reads the folder only, so it may be asked while the run is at work.
    """

    show_status(Path(folder), json=json)


@dataclass(frozen=True)
class Request:
    """The options of `veriglot study run`."""

    study: Path
    output: Path | None
    jobs: int
    batch_size: int
    restart: bool
    dry_run: bool
    json: bool
    quiet: bool


def carry_out(request: Request) -> int:
    """Run the study, or say what it would take.

    Returns:
        The exit code: 0, or 3 where rows came to nothing.

    Raises:
        VeriglotError: anything that ends the run.
    """
    from veriglot.study.config import Folder, load

    config = load(request.study)
    folder = Folder(request.output or request.study.with_suffix(""))
    if request.dry_run:
        return _rehearse(config, folder, json=request.json)
    return _run(request, config, folder)


def show_status(path: Path, *, json: bool) -> None:
    """Print how far a run is.

    Raises:
        InputError: the folder is not that of a run.
    """
    import msgspec

    from veriglot.study.config import Folder
    from veriglot.study.run import status

    progress = status(Folder(path))
    if json:
        _print_json({**msgspec.to_builtins(progress), "finished": progress.finished})
        return
    from veriglot.cli.tables import print_status

    print_status(progress)


def _run(request: Request, config: Config, folder: Folder) -> int:
    import msgspec

    from veriglot.cli.detectors import detector_recipe
    from veriglot.study.run import Tools, run

    with Steps(shown=not request.quiet) as watch:
        try:
            outcome = run(
                config,
                folder,
                Tools(detector_recipe, measure, render),
                jobs=request.jobs,
                batch_size=request.batch_size,
                restart=request.restart,
                watch=watch,
            )
        except KeyboardInterrupt:
            watch.say("Interrupted. What is done is kept: the same command goes on from there.")
            raise
    if request.json:
        _print_json(msgspec.to_builtins(outcome.results))
    else:
        _show(outcome.results)
    if not request.quiet:
        print(f"veriglot: the report is {folder.report}", file=sys.stderr)
        if outcome.failed:
            rows = "1 row" if outcome.failed == 1 else f"{outcome.failed:,} rows"
            print(
                f"veriglot: {rows} came to nothing: see *.failed.jsonl in {folder.path / 'responses'}, and predictions"
                " with the status failed. The same command tries again.",
                file=sys.stderr,
            )
    return EXIT_ROWS_FAILED if outcome.failed else 0


def _rehearse(config: Config, folder: Folder, *, json: bool) -> int:
    import msgspec

    from veriglot.study.run import rehearse

    rehearsal = rehearse(config, folder)
    if json:
        _print_json(msgspec.to_builtins(rehearsal))
    else:
        from veriglot.cli.tables import print_rehearsal

        print_rehearsal(rehearsal)
    return 0


def _show(results: StudyResults) -> None:
    from rich.console import Console

    from veriglot.report.study import render_study

    render_study(results, Console())


def render(results: StudyResults, folder: Folder) -> None:
    """Write tables and report into the folder of a run, so that a kill leaves the old ones or the new ones."""
    import shutil

    from veriglot.report.study import study_tables
    from veriglot.report.study_page import write_study
    from veriglot.report.tables import write_csv

    partial = folder.path / "partial"
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed here
    partial.mkdir()
    write_csv(study_tables(results), partial / "tables")
    write_study(results, partial / "report.html")
    shutil.rmtree(folder.tables, ignore_errors=True)
    (partial / "tables").replace(folder.tables)
    (partial / "report.html").replace(folder.report)
    partial.rmdir()


def measure(paths: Sequence[Path], recipe: Recipe, *, unit: str) -> ErrorProfile:
    """The error profile of a detector on labelled samples.

    Raises:
        InputError: a file cannot be read, or holds no labels.
    """
    from veriglot.bench.evaluation import evaluate
    from veriglot.errors import InputError
    from veriglot.formats.reader import read

    samples = (sample for path in paths for sample in read(path))
    profile = evaluate(samples, recipe.make(), unit=unit, resamples=0).profile()
    if not profile.languages:
        raise InputError("it holds no labelled samples that the detector could judge", path=str(paths[0]))
    return profile


def _print_json(data: object) -> None:
    import msgspec

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n")
    sys.stdout.buffer.flush()
