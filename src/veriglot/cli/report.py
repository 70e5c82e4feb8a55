"""`veriglot report`: the results of a study as a page, as tables, on the terminal; of many runs as a site."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Literal, TypeVar

from veriglot.bench.results import read_results
from veriglot.cli.command import command
from veriglot.cli.inputs import kind_of
from veriglot.errors import InputError, UsageError, VeriglotError
from veriglot.formats.containers import Source
from veriglot.records import decode_json
from veriglot.records.settings import read_json_record
from veriglot.report.tables import open_console

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from veriglot.study.results import StudyResults


R = TypeVar("R")
_REMEDY = "Name the folder of a study (veriglot study status). Of predictions: veriglot detect ROWS -o page.html"
_SUFFIXES = {".html": "html", ".htm": "html", ".csv": "csv", ".json": "json", ".md": "markdown", ".tex": "latex"}


@command
def report(
    runs: list[Path],
    *,
    to: Literal["html", "csv", "json", "markdown", "latex", "terminal"] | None = None,
    output: str | None = None,
    table: str | None = None,
    site: Path | None = None,
) -> None:
    """Show the results of a study or a bench: a page, tables for papers and programs, or the terminal.

    The page:        veriglot report runs/small

    For a paper:     veriglot report runs/small --to latex -o rates.tex

    For a program:   veriglot report runs/small --to csv --table comparisons

    All as CSV:      veriglot report runs/small --table all -o tables/

    Of a bench:      veriglot report runs/bench --to latex -o leaderboard.tex

    A public board:  veriglot report runs/small runs/large runs/bench --site public

    Every output marks a rate that the data do not support as unreliable, and leaves it out of means.
    """
    paths = [run / "results.json" if run.is_dir() else run for run in runs]
    if site is not None:
        from veriglot.report.site import write_site

        if to or output or table:
            raise UsageError(
                "--site writes pages, tables and results into its folder.", "Leave out --to, --output, --table."
            )
        print(write_site([read_results(path) if _is_bench(path) else _study(path) for path in paths], site)[0])
        return
    if len(paths) > 1:
        raise UsageError("Several runs make a site.", "Add --site DIR, or name one run.")
    (path,) = paths
    if _is_bench(path):
        from veriglot.report.bench import bench_document, render_bench, write_bench

        kind = to or _kind(output, "csv" if table else "terminal")
        if table and kind != "csv":
            raise UsageError(f"--table goes with --to csv, not with {kind}.")
        _show(read_results(path), kind, output or "-", table, write_bench, render_bench, bench_document)
        return
    from veriglot.report.study import render_study, study_table, write_tables
    from veriglot.report.study_page import write_study

    results = _study(path)
    if table == "all":
        if to not in {None, "csv"} or output in {None, "-"}:
            raise UsageError(
                "`--table all` writes every table as CSV into a folder.", "Type: --table all --output FOLDER"
            )
        print("\n".join(map(str, write_tables(results, output or ""))))
        return
    kind = to or _kind(output, "csv" if table else "html")
    if table and kind in {"html", "terminal"}:
        raise UsageError(f"--table goes with csv, json, markdown and latex, not with {kind}.")
    usual = str(path.parent / "report.html") if kind == "html" else "-"
    _show(results, kind, output or usual, table, write_study, render_study, study_table)


def _study(path: Path) -> StudyResults:
    """The results of a study; of predictions, which are none, the error names the commands that take them."""
    from veriglot.study.results import StudyResults

    if path.is_file() and Source(path).look().keys >= {"id", "status", "detector"}:
        name = quote(str(path))
        remedy = (
            f"Rates: veriglot estimate {name} --samples ROWS. Against labels: veriglot evaluate ROWS --predictions"
            f" {name}. A page: veriglot detect ROWS -o page.html"
        )
        raise InputError("this holds predictions, not the results of a study", remedy, path=str(path))
    return read_json_record(path, StudyResults, _REMEDY)


def _is_bench(path: Path) -> bool:
    """Whether these are results of a bench, which have a leaderboard."""
    try:
        results = decode_json(path.read_bytes())
    except (OSError, ValueError, VeriglotError):
        return False  # reading the study reports it
    return isinstance(results, dict) and "rank_by" in results


def _kind(output: str | None, default: str) -> str:
    return default if output is None or output == "-" else kind_of(output, _SUFFIXES)


def _show(
    results: R,
    kind: str,
    output: str,
    table: str | None,
    write_page: Callable[[R, str], None],
    render: Callable[[R, Console], None],
    document: Callable[..., str],
) -> None:
    from veriglot.report.pages import open_page

    if kind == "html":
        write_page(results, output)
        if output != "-":
            print(output)
    elif kind == "terminal" and output == "-":
        render(results, open_console())
    else:
        with open_page(output) as file:
            if kind == "terminal":
                render(results, open_console(file))
            else:
                file.write(document(results, kind, table=table))
