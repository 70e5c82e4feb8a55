"""`veriglot bench`: detectors and scorers against labelled data, its statistics, and figures recorded for `auto`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veriglot.cli.command import Help, command
from veriglot.cli.options import (
    Annotator,
    BatchSize,
    InputFormat,
    Json,
    Language,
    OptionalOutput,
    Output,
    Overwrite,
    Processes,
    Quiet,
    Retry,
    Unit,
)
from veriglot.cli.progress import Steps
from veriglot.errors import EXIT_ROWS_FAILED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.bench.config import Folder
    from veriglot.bench.data import DataStatistics
    from veriglot.bench.results import BenchResults
    from veriglot.records import Sample

__all__ = ["app", "show_results"]


@dataclass(frozen=True)
class Request:
    """The options of `veriglot bench run`."""

    bench: Path
    output: Path | None
    data_root: Path | None
    limit: int | None
    jobs: int
    batch_size: int
    retry: bool
    restart: bool
    json: bool
    quiet: bool


def carry_out(request: Request) -> int:
    """Run the bench and write its views.

    Returns:
        The exit code: 0, or 3 where a system broke off or samples failed.

    Raises:
        VeriglotError: anything that ends the run.
    """
    from veriglot.bench.config import Folder, load
    from veriglot.bench.run import Options, run
    from veriglot.cli.detectors import load as load_detector

    config = load(request.bench, data_root=request.data_root, limit=request.limit)
    folder = Folder(request.output or request.bench.with_suffix(""))
    options = Options(request.jobs, request.batch_size, request.restart, request.retry)
    with Steps(shown=not request.quiet) as steps:
        try:
            results = run(config, folder, options=options, load=load_detector, watch=steps)
        except KeyboardInterrupt:
            steps.say("Interrupted. What is done is kept: the same command goes on from there.")
            raise
    render(results, folder)
    if request.json:
        _write(results, "json", None, "-")
    else:
        _terminal(results)
    failed = _failed(results)
    if not request.quiet:
        what = (
            f"leaderboard is {folder.page}" if _ranks(results) else f"page, which ranks nobody, is {folder.unranked[0]}"
        )
        print(f"veriglot: the {what}", file=sys.stderr)
        if failed:
            print(f"veriglot: failures in {', '.join(failed)}. The option --retry tries again.", file=sys.stderr)
    return EXIT_ROWS_FAILED if failed else 0


def _failed(results: BenchResults) -> list[str]:
    """Cells that broke off or hold samples that failed; what is unavailable or unsupported is no failure."""
    cells = [
        f"{cell.system} on {cell.data}"
        for cell in results.cells
        if (cell.status == "failed" and not cell.statuses)
        or any(counts.get("failed") for counts in cell.statuses.values())
    ]
    return list(dict.fromkeys(cells))


def render(results: BenchResults, folder: Folder) -> None:
    """Write every view into the folder of a run."""
    from veriglot.report.bench import bench_tables, write_bench
    from veriglot.report.tables import write_csv

    ranked, bare = (folder.page, folder.markdown, folder.latex), folder.unranked
    page, markdown = ranked[:2] if _ranks(results) else bare
    for stale in bare if _ranks(results) else ranked:  # of a time when the data had labels, or had none
        stale.unlink(missing_ok=True)
    write_bench(results, page)
    _write(results, "markdown", None, str(markdown))
    if _ranks(results):
        _write(results, "latex", None, str(folder.latex))
    write_csv(bench_tables(results), folder.tables)


def _ranks(results: BenchResults) -> bool:
    return any(summary.labelled for summary in results.data)


def show_results(run: Path, kind: str, table: str | None, output: str) -> None:
    """Print or write the results of a run.

    Raises:
        InputError: there are none.
        UsageError: a table with a format that has none.
    """
    from veriglot.bench.results import read_results
    from veriglot.errors import UsageError
    from veriglot.report.bench import write_bench

    if table is not None and kind != "csv":
        raise UsageError(f"--table goes with --to csv, not with {kind}.")
    results = read_results(run / "results.json" if run.is_dir() else run)
    if kind == "html":
        write_bench(results, output)
    elif kind == "terminal":
        if output != "-":
            raise UsageError("--output goes with the other formats, not with terminal.")
        _terminal(results)
    else:
        _write(results, kind, table, output)


def _write(results: BenchResults, kind: str, table: str | None, output: str) -> None:
    from veriglot.report.bench import bench_document
    from veriglot.report.html import opened

    text = bench_document(results, kind, table=table)
    with opened(output) as file:
        file.write(text)


def _terminal(results: BenchResults) -> None:
    from rich.console import Console

    from veriglot.report.bench import render_bench

    render_bench(results, Console())


def show_statistics(
    data: Sequence[str],
    *,
    annotator: str | None,
    unit: str,
    format_name: str | None,
    language: str | None,
    json: bool,
) -> None:
    """Print the statistics of labelled data, by language.

    Raises:
        InputError: a file cannot be read.
    """
    import msgspec

    from veriglot.bench.data import statistics_by_language

    by_language = statistics_by_language(_samples(data, format_name, language), unit=unit, annotator=annotator)
    if json:
        rows = {tag: statistics.row() for tag, statistics in by_language.items()}
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(rows), indent=2) + b"\n")
        sys.stdout.buffer.flush()
    else:
        _print_statistics(by_language)


def _samples(data: Sequence[str], format_name: str | None, language: str | None) -> Iterator[Sample]:
    from veriglot.formats.containers import BadRow
    from veriglot.formats.reader import SeenIds, read_rows

    seen, bad = SeenIds(), 0
    for path in data:
        for row in read_rows(path, format=format_name, language=language, seen=seen):
            if isinstance(row, BadRow):
                bad += 1
            else:
                yield row
    if bad:
        print(f"veriglot: {bad} rows could not be read and are in no figure", file=sys.stderr)


def _print_statistics(by_language: dict[str, DataStatistics]) -> None:
    """One row a statistic, one column a language: there are more statistics than fit beside each other."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 24 + 12 * len(by_language))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("")
    for tag in by_language:
        table.add_column(tag, justify="right")
    rows = [statistics.row() for statistics in by_language.values()]
    for name in rows[0] if rows else ():
        table.add_row(name, *(_shown(row[name]) for row in rows))
    console.print(table)


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


@command
def record(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", show_default=False, help="Folder of `veriglot bench run`, or results.json.")
    ],
    *,
    output: Annotated[Output, Help("The figures, as JSON.")],
    figure_level: Annotated[
        Literal["word", "sentence", "response"],
        typer.Option("--figure-level", help="Level of the figures: word, sentence or response. Default: word."),
    ] = "word",
    measure: Annotated[
        str,
        typer.Option(
            "--measure",
            metavar="NAME",
            help="Measure to choose by, of which more is better. Default: auc_pr_nonfactual.",
        ),
    ] = "auc_pr_nonfactual",
) -> None:
    """Keep the figures of detectors by language, for the detector auto to choose by.

    For example: veriglot bench record runs/mine -o figures.json

    Then: veriglot detect answers.jsonl --detector auto --set figures=figures.json
    """

    from veriglot.bench.leaderboard import recorded
    from veriglot.bench.results import read_results
    from veriglot.storage.files import write_json

    path = run / "results.json" if run.is_dir() else run
    figures = recorded(read_results(path), level=figure_level, measure=measure)
    write_json(Path(output), figures, indent=2)
    detectors = ", ".join(known.name for known in figures.detectors())
    languages = {language for language, _ in figures.places()}
    typer.echo(f"{len(figures.figures)} figures of {detectors}, in {len(languages)} languages: {output}", err=True)


app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

Run = Annotated[
    Path, typer.Argument(metavar="RUN", show_default=False, help="Folder of `veriglot bench run`, or its results.json.")
]


@app.callback()
def _bench() -> None:
    """Compare detectors and scorers on labelled data: thresholds, figures with intervals, win rates, cost."""


@app.command("run")
@command
def run(
    bench: Annotated[Path, typer.Argument(metavar="BENCH", show_default=False, help="The bench file, as TOML.")],
    *,
    output: Annotated[
        OptionalOutput,
        Help("Folder of the run; one that was begun goes on. Default: beside the bench file, named after it."),
    ] = None,
    data_root: Annotated[
        Path | None,
        typer.Option(
            "--data-root",
            metavar="DIR",
            help="Folder that paths of data are relative to. Default: the folder of the bench file.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=1,
            help="Most test and dev samples of each language of a data set, for a trial. Default: as the file says.",
        ),
    ] = None,
    processes: Annotated[Processes, Help("Of each system. Figures do not depend on it, times do. Default: 1.")] = 1,
    batch_size: BatchSize = 32,
    retry: Retry = False,
    overwrite: Overwrite = False,
    json: Annotated[Json, Help("The results. Default: the leaderboards.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run a bench: have every system judge every data set, measure, compare, and write the leaderboard.

    A run that stops, however it stops, goes on when the same command is given again: what was judged is kept, and other
    measures or another seed judge nothing anew. A system that cannot be made here (a model or packages are missing) is
    shown as unavailable, with what to do, and the rest goes on. The folder then holds results.json, leaderboard.html,
    leaderboard.md, leaderboard.tex and tables as CSV.

    Leaves with 3 where a system broke off or samples failed.
    """

    folder = None if output is None else Path(output)
    request = Request(bench, folder, data_root, limit, processes, batch_size, retry, overwrite, json, quiet)
    raise typer.Exit(carry_out(request))


@app.command("statistics")
@command
def statistics(
    data: Annotated[
        list[str], typer.Argument(metavar="DATA...", show_default=False, help="Labelled samples: files or folders.")
    ],
    *,
    annotator: Annotated[Annotator, Help("Default: as for `veriglot evaluate`.")] = None,
    unit: Annotated[Unit, Help("Default: word.")] = "word",
    format_: InputFormat = None,
    language: Annotated[Language, Help("Default: unknown.")] = None,
    json: Annotated[Json, Help("Default: a table.")] = False,
) -> None:
    """Describe labelled data by language: sizes, length ratios, character and sentence hallucination rates, severity.

    The columns are those of HAT's Tables 1 and 2, HalluVerse25's Table 2 and Kang et al.'s Table 9.
    """

    show_statistics(data, annotator=annotator, unit=unit, format_name=format_, language=language, json=json)


app.command("record")(record)
