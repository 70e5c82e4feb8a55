"""What `veriglot study` does once its words are understood."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from veriglot.cli.steps import Steps
from veriglot.errors import EXIT_ROWS_FAILED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from veriglot.records import ErrorProfile
    from veriglot.run import Recipe
    from veriglot.study.config import Config
    from veriglot.study.folder import Folder
    from veriglot.study.results import StudyResults

__all__ = ["Request", "carry_out", "show_status"]


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
    from veriglot.study.config import load
    from veriglot.study.folder import Folder

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

    from veriglot.study.folder import Folder
    from veriglot.study.status import status

    found = status(Folder(path))
    if json:
        _print_json({**msgspec.to_builtins(found), "finished": found.finished})
        return
    from veriglot.cli.study_tables import print_status

    print_status(found)


def _run(request: Request, config: Config, folder: Folder) -> int:
    import msgspec

    from veriglot.cli.recipe import detector_recipe
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

    from veriglot.study.rehearsal import rehearse

    found = rehearse(config, folder)
    if json:
        _print_json(msgspec.to_builtins(found))
    else:
        from veriglot.cli.study_tables import print_rehearsal

        print_rehearsal(found)
    return 0


def _show(results: StudyResults) -> None:
    from rich.console import Console

    from veriglot.report import render_study

    render_study(results, Console())


def render(results: StudyResults, folder: Folder) -> None:
    """Write tables and report into the folder of a run, so that a kill leaves the old ones or the new ones."""
    import shutil

    from veriglot.report import write_study, write_tables

    partial = folder.path / "partial"
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed here
    partial.mkdir()
    write_tables(results, partial / "tables")
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
    from veriglot.bench import evaluate
    from veriglot.errors import InputError
    from veriglot.formats import read

    samples = (sample for path in paths for sample in read(path))
    found = evaluate(samples, recipe.make(), unit=unit, resamples=0).profile()
    if not found.languages:
        raise InputError("it holds no labelled samples that the detector could judge", path=str(paths[0]))
    return found


def _print_json(data: object) -> None:
    import msgspec

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n")
    sys.stdout.buffer.flush()
