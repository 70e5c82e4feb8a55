"""`veriglot report`: the results of a study as a page, as tables, on the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from veriglot.cli.command import Argument, Help, command
from veriglot.errors import InputError, UnknownNameError, UsageError, VeriglotError

if TYPE_CHECKING:
    from veriglot.study.results import StudyResults


_SUFFIXES = {".html": "html", ".htm": "html", ".csv": "csv", ".json": "json", ".md": "markdown", ".tex": "latex"}


@command
def report(
    run: Annotated[
        Path, Argument("RUN", "Folder of `veriglot study run` or `veriglot bench run`, or its results.json.")
    ],
    *,
    to: Annotated[
        Literal["html", "csv", "json", "markdown", "latex", "terminal"] | None,
        Help(
            "One self-contained page, tables, or a view for the terminal. Default: by the suffix of --output"
            " (.html, .csv, .json, .md, .tex), html without one; terminal for a bench."
        ),
    ] = None,
    output: Annotated[
        str | None,
        Help(
            "A file, or the folder for `--table all`. Default: report.html in RUN for html, standard output for"
            " the rest."
        ),
    ] = None,
    table: Annotated[
        str | None,
        Help(
            "Of a bench, for csv: leaderboard_LEVEL, languages, wins, comparisons, answers, correlations,"
            " type_confusions, cells, coverage, thresholds, data, systems or figures (the default). Of a study,"
            " for csv, json, markdown and latex: rates, models, languages, ranks, comparisons, correlations,"
            " types, coverage, quality, cells, replicates, settings, examples; `all` writes each as CSV into the"
            " folder --output. Default: rates for csv, every table for json, languages by models for markdown"
            " and latex."
        ),
    ] = None,
) -> None:
    """Show the results of a study or a bench: a page, tables for papers and programs, or the terminal.

    The page:        veriglot report runs/small

    For a paper:     veriglot report runs/small --to latex -o rates.tex

    For a program:   veriglot report runs/small --to csv --table comparisons

    All as CSV:      veriglot report runs/small --table all -o tables/

    Of a bench:      veriglot report runs/bench --to latex -o leaderboard.tex

    A rate that the data do not support is marked as unreliable in each of them, and is in no mean.
    """
    if _is_bench(run):
        from veriglot.cli.bench import show_results

        show_results(run, to or _kind(output, "csv" if table else "terminal"), table, output or "-")
        return
    results = _read_results(run)
    if table == "all":
        _write_all(results, to, output)
        return
    kind = to or _kind(output, "csv" if table else "html")
    if table and kind in {"html", "terminal"}:
        raise UsageError(f"--table goes with csv, json, markdown and latex, not with {kind}.")
    page = str((run if run.is_dir() else run.parent) / "report.html")
    _show(results, kind, output or (page if kind == "html" else "-"), table)


def _is_bench(run: Path) -> bool:
    """Whether these are the results of a bench, which have a leaderboard."""
    from veriglot.records import decode_json

    path = run / "results.json" if run.is_dir() else run
    try:
        results = decode_json(path.read_bytes())
    except (OSError, ValueError, VeriglotError):
        return False  # said where a study is looked for
    return isinstance(results, dict) and "rank_by" in results


def _read_results(run: Path) -> StudyResults:
    """The results of a study from the folder of its run, or from their file."""
    from veriglot.records import decode_json, from_mapping
    from veriglot.study.results import StudyResults

    path = run / "results.json" if run.is_dir() else run
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(
            "there are no results here",
            path=str(path),
            remedy="Name the folder that `veriglot study run` wrote; `veriglot study status` says how far it is.",
        ) from None
    try:
        return from_mapping(decode_json(data), StudyResults)
    except InputError as error:
        raise error.at(path=str(path)) from error


def _kind(output: str | None, default: str) -> str:
    if output is None or output == "-":
        return default
    suffix = Path(output).suffix.lower()
    if suffix not in _SUFFIXES:
        raise UnknownNameError("kind of output", suffix or output, _SUFFIXES)
    return _SUFFIXES[suffix]


def _write_all(results: StudyResults, format_: str | None, output: str | None) -> None:
    from veriglot.report.study import study_tables
    from veriglot.report.tables import write_csv

    if format_ not in {None, "csv"} or output in {None, "-"}:
        raise UsageError(
            "`--table all` writes every table as CSV into a folder.", remedy="Type: --table all --output FOLDER"
        )
    for path in write_csv(study_tables(results), output or ""):
        print(path)


def _show(results: StudyResults, kind: str, output: str, table: str | None) -> None:
    from veriglot.report.pages import opened
    from veriglot.report.study import render_study, study_table
    from veriglot.report.study_page import write_study

    if kind == "html":
        write_study(results, output)
        if output != "-":
            print(output)
    elif kind == "terminal":
        from veriglot.report.tables import open_console

        if output == "-":
            render_study(results, open_console())
        else:
            with opened(output) as file:
                render_study(results, open_console(file))
    else:
        with opened(output) as file:
            file.write(study_table(results, kind, table=table))
    sys.stdout.flush()
