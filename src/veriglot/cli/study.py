"""`veriglot study`: how much models hallucinate in each language, from one file to the report; its state and plan."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriglot.cli.command import command, new_app
from veriglot.cli.console import print_json, say, write_example
from veriglot.cli.detectors import detector_recipe
from veriglot.errors import EXIT_ROWS_FAILED, UsageError
from veriglot.formats.reader import read
from veriglot.pipeline.progress import ProgressReporter
from veriglot.records.languages import UNDETERMINED
from veriglot.report.tables import Table, open_console
from veriglot.report.text_layout import count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from veriglot.records import ErrorProfile
    from veriglot.study.config import Folder
    from veriglot.study.responses import StudyCost
    from veriglot.study.results import StudyResults
    from veriglot.study.run import Status


app = new_app()


@app.callback()
def _study() -> None:
    """Measure how much models hallucinate in each language: responses, detection, rates, report."""


@app.command("init")
@command
def init(file: Path) -> None:
    """Write a study file with comments, for you to edit and run."""
    write_example(file, "veriglot.study", "study.toml", then="veriglot study run --dry-run")


@app.command("run")
@command
def run(
    study: str,
    *,
    output: str | None = None,
    processes: int = 0,
    batch_size: int = 32,
    overwrite: bool = False,
    dry_run: bool = False,
    json: bool = False,
    quiet: bool = False,
) -> int:
    """Run a study: ask the models or read responses, judge every response, estimate the rates, write a report.

    Rerun the command to resume an interrupted run: it repeats no finished call, loses no row, and gives the same
    results. It retries failed calls. The folder of a finished run holds responses, predictions, rates.json,
    results.json, tables as CSV, and report.html.

    Exits with 3 if rows failed.
    """
    from veriglot.metrics.reference import reference
    from veriglot.report.study import render_study
    from veriglot.study.config import Folder, load
    from veriglot.study.responses import study_cost
    from veriglot.study.run import Tools
    from veriglot.study.run import run as run_study

    config = load(Path(study))
    for entry in config.detectors:
        if entry.labelled is not None and not any(map(reference, read(config.resolve(entry.labelled)))):
            raise UsageError(
                f"{entry.labelled} marks no spans, and an error profile counts marked words.",
                'Mark them, or leave `labelled` out and write estimator = "raw" and estimators = [] under [study].',
            )
    folder = Folder(Path(output) if output is not None else Path(study).with_suffix(""))
    if dry_run:
        cost = study_cost(config, folder)
        if json:
            print_json(cost)
        else:
            _print_cost(cost)
        return 0
    with ProgressReporter(shown=not quiet, resumes=True) as progress:
        outcome = run_study(
            config,
            folder,
            Tools(detector_recipe, measure, render),
            jobs=processes,
            batch_size=batch_size,
            restart=overwrite,
            progress=progress,
        )
    if json:
        print_json(outcome.results)
    else:
        render_study(outcome.results, open_console())
    if not quiet:
        say(f"the report is {folder.report}")
        if outcome.failed:
            say(
                f"{count(outcome.failed, 'row')} failed: see *.failed.jsonl in {folder.path / 'responses'},"
                " and predictions with the status failed. Rerun the command to try again."
            )
    return EXIT_ROWS_FAILED if outcome.failed else 0


@app.command("status")
@command
def status(folder: str, json: bool = False) -> None:
    """Show the progress of a run: responses and predictions done, failed and planned, by model and detector.

    It only reads the folder, so you can use it during a run.
    """
    import msgspec

    from veriglot.study.config import Folder
    from veriglot.study.run import status

    progress = status(Folder(Path(folder)))
    if json:
        print_json({**msgspec.to_builtins(progress), "finished": progress.finished})
    else:
        _print_status(progress)


def _print_status(status: Status) -> None:
    """One line per output of a run, then what is still missing."""
    rows = [
        (
            step.what,
            step.model if step.detector is None else f"{step.model}, by {step.detector}",
            f"{step.done:,}",
            "?" if step.planned is None else f"{step.planned:,}",
            f"{step.failed:,}" if step.failed else "",
            "finished" if step.finished else "not begun" if not step.done else "under way",
        )
        for step in status.steps
    ]
    for name, there in (("rates", status.rates), ("results", status.results), ("report", status.report)):
        rows.append((name, "", "", "", "", "finished" if there else "not made yet"))
    Table(status.title, ("", "of", "done", "planned", "failed", ""), rows).print()
    if status.running:
        print("A process is working in the folder.")
    elif not status.finished:
        print("No process is working: `veriglot study run` with the same study file and folder resumes the run.")


def _print_cost(cost: StudyCost) -> None:
    """Estimated usage of each model, and the total."""
    rows = [
        (
            model.model,
            f"{sum(model.languages.values()):,}",
            f"{max(0, model.calls - model.done):,}",
            f"about {model.tokens_in:,}" if model.calls else "",
            ("no bound" if model.tokens_out is None else f"{model.tokens_out:,}") if model.calls else "",
            "" if model.cost is None else f"{model.cost:,.2f}",
        )
        for model in cost.models
    ]
    heads = ("model", "responses", "calls to make", "prompt tokens", "reply tokens at most", "cost at most")
    Table(cost.title, heads, rows).print()
    tags = sorted({tag for model in cost.models for tag in model.languages} - {UNDETERMINED})
    stated = f", {count(len(tags), 'language')}: {', '.join(tags)}" if tags else ""
    print(
        f"{count(cost.calls, 'call')} to make, {count(cost.judgements, 'judgement')}{stated}."
        " Prompt tokens are estimated from the length of the texts."
    )
    unstated = sum(model.languages.get(UNDETERMINED, 0) for model in cost.models)
    if unstated:
        print(f"Without a stated language, so identified from the text: {count(unstated, 'response')}.")
    impossible = sum(model.impossible for model in cost.models)
    if impossible:
        print(f"Cannot be asked, as the run says: {count(impossible, 'planned query', 'planned queries')}.")
    if cost.unreadable:
        print(f"Cannot be read: {count(cost.unreadable, 'row')}.")
    if cost.enough is False:
        print("The limits of the study file stop it before it is finished.")
    elif cost.enough is None:
        print("Whether the token limit is enough is not known: set max_tokens in the settings of every model.")


def render(results: StudyResults, folder: Folder) -> None:
    """Write tables and report into the folder of a run, so that a kill leaves the old ones or the new ones."""
    from veriglot.report.study import write_tables
    from veriglot.report.study_page import write_study

    partial = folder.path / "partial"
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed during this
    partial.mkdir()
    write_tables(results, partial / "tables")
    write_study(results, partial / "report.html")
    shutil.rmtree(folder.tables, ignore_errors=True)
    (partial / "tables").replace(folder.tables)
    (partial / "report.html").replace(folder.report)
    partial.rmdir()


def measure(paths: Sequence[Path], recipe: Callable[[], Any], *, unit: str) -> ErrorProfile:
    """The error profile of a detector on labelled samples.

    Raises:
        InputError: a file cannot be read.
        UsageError: no response with labelled spans was scored.
    """
    from veriglot.bench.evaluation import evaluate

    samples = (sample for path in paths for sample in read(path))
    return evaluate(samples, recipe(), unit=unit, resamples=0).profile()
