"""What `veriglot bench` does once its words are understood."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from veriglot.cli.steps import Steps
from veriglot.errors import EXIT_ROWS_FAILED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from veriglot.bench.folder import Folder
    from veriglot.bench.results import BenchResults
    from veriglot.bench.statistics import DataStatistics
    from veriglot.records import Sample

__all__ = ["Request", "carry_out", "render", "show_results", "show_statistics"]


@dataclass(frozen=True)
class Request:
    """The options of `veriglot bench run`."""

    bench: Path
    output: Path | None
    data_root: Path | None
    markdown: Path | None
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
    from veriglot.bench.config import load
    from veriglot.bench.folder import Folder
    from veriglot.bench.run import Options, run
    from veriglot.cli.recipe import load as load_detector

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
    if request.markdown is not None:
        _write(results, "markdown", None, str(request.markdown))
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
    found = [
        f"{cell.system} on {cell.data}"
        for cell in results.cells
        if (cell.status == "failed" and not cell.statuses) or any(one.get("failed") for one in cell.statuses.values())
    ]
    return list(dict.fromkeys(found))


def render(results: BenchResults, folder: Folder) -> None:
    """Write every view into the folder of a run."""
    from veriglot.report.bench import write_bench, write_bench_tables

    ranked, bare = (folder.page, folder.markdown, folder.latex), folder.unranked
    page, markdown = ranked[:2] if _ranks(results) else bare
    for stale in bare if _ranks(results) else ranked:  # of a time when the data had labels, or had none
        stale.unlink(missing_ok=True)
    write_bench(results, page)
    _write(results, "markdown", None, str(markdown))
    if _ranks(results):
        _write(results, "latex", None, str(folder.latex))
    write_bench_tables(results, folder.tables)


def _ranks(results: BenchResults) -> bool:
    return any(one.labelled for one in results.data)


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
        raise UsageError(f"--table goes with --format csv, not with {kind}.")
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
    from veriglot.report.assembly import opened
    from veriglot.report.bench import bench_document

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

    from veriglot.bench.statistics import statistics_by_language

    found = statistics_by_language(_samples(data, format_name, language), unit=unit, annotator=annotator)
    if json:
        rows = {tag: one.row() for tag, one in found.items()}
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(rows), indent=2) + b"\n")
        sys.stdout.buffer.flush()
    else:
        _print_statistics(found)


def _samples(data: Sequence[str], format_name: str | None, language: str | None) -> Iterator[Sample]:
    from veriglot.formats import BadRow, SeenIds, read_rows

    seen, bad = SeenIds(), 0
    for path in data:
        for row in read_rows(path, format=format_name, language=language, seen=seen):
            if isinstance(row, BadRow):
                bad += 1
            else:
                yield row
    if bad:
        print(f"veriglot: {bad} rows could not be read and are in no figure", file=sys.stderr)


def _print_statistics(found: dict[str, DataStatistics]) -> None:
    """One row a statistic, one column a language: there are more statistics than fit beside each other."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 24 + 12 * len(found))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("")
    for tag in found:
        table.add_column(tag, justify="right")
    rows = [one.row() for one in found.values()]
    for name in rows[0] if rows else ():
        table.add_row(name, *(_shown(row[name]) for row in rows))
    console.print(table)


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
