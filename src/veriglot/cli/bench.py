"""`veriglot bench`: detectors and scorers against labelled data, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from veriglot.cli.recording import record

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

Run = Annotated[
    Path, typer.Argument(metavar="RUN", show_default=False, help="Folder of `veriglot bench run`, or its results.json.")
]


@app.callback()
def _bench() -> None:
    """Compare detectors and scorers on labelled data: thresholds, figures with intervals, win rates, cost."""


@app.command("run")
def run(
    bench: Annotated[Path, typer.Argument(metavar="BENCH", show_default=False, help="The bench file, as TOML.")],
    out: Annotated[
        Optional[Path],  # noqa: UP045  # typer reads it
        typer.Option(
            "--output",
            "--out",
            "-o",
            metavar="DIR",
            show_default=False,
            help="Folder of the run; one that was begun goes on. Default: beside the bench file, named after it.",
        ),
    ] = None,
    data_root: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            metavar="DIR",
            show_default=False,
            help="Folder that paths of data are relative to. Default: the folder of the bench file.",
        ),
    ] = None,
    markdown: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", show_default=False, help="Write the Markdown page here too. Default: no."),
    ] = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            metavar="N",
            min=1,
            show_default=False,
            help="Most test and dev samples of each language of a data set, for a trial. Default: as the file says.",
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
            help="Processes of each system; 0 is one for each core. Figures do not depend on it, times do. Default: 1.",
        ),
    ] = 1,
    batch_size: Annotated[
        int,
        typer.Option(metavar="N", min=1, show_default=False, help="Most samples judged at once. Default: 32 samples."),
    ] = 32,
    retry: Annotated[
        bool, typer.Option("--retry", help="Judge anew where samples failed in an earlier run. Default: off.")
    ] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Judge everything anew. Default: go on.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON. Default: the leaderboards.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress and no account on standard error. Default: off.")
    ] = False,
) -> None:
    """Run a bench: have every system judge every data set, measure, compare, and write the leaderboard.

    A run that stops, however it stops, goes on when the same command is given again: what was judged is kept, and other
    measures or another seed judge nothing anew. A system that cannot be made here (a model or packages are missing) is
    shown as unavailable, with what to do, and the rest goes on. The folder then holds results.json, leaderboard.html,
    leaderboard.md, leaderboard.tex and tables as CSV.

    Leaves with 3 where a system broke off or samples failed.
    """
    from veriglot.cli.benching import Request, carry_out

    request = Request(bench, out, data_root, markdown, limit, jobs, batch_size, retry, restart, json, quiet)
    raise typer.Exit(carry_out(request))


@app.command("show")
def show(
    run: Run,
    format_: Annotated[
        Literal["terminal", "html", "markdown", "latex", "csv", "json"],
        typer.Option(
            "--format", metavar="NAME", help="terminal, html, markdown, latex, csv or json. Default: terminal."
        ),
    ] = "terminal",
    table: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Which table, for csv: leaderboard_LEVEL, languages, wins, comparisons, answers, correlations,"
            " type_confusions, cells, coverage, thresholds, data, systems or figures. Default: figures.",
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", show_default=False, help="Where to write. Default: standard output."
        ),
    ] = "-",
) -> None:
    """Show the results of a bench again, in another format; nothing is judged."""
    from veriglot.cli.benching import show_results

    show_results(run, format_, table, output)


@app.command("statistics")
def statistics(
    data: Annotated[
        list[str], typer.Argument(metavar="DATA...", show_default=False, help="Labelled samples: files or folders.")
    ],
    annotator: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="NAME", show_default=False, help="Whose labels count. Default: as for `veriglot evaluate`."
        ),
    ] = None,
    unit: Annotated[
        str, typer.Option(metavar="UNIT", help="What tokens are: word, char or hf:TOKENIZER. Default: word.")
    ] = "word",
    format_: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--format",
            metavar="NAME",
            show_default=False,
            help="Format of the data. Default: recognised from its content.",
        ),
    ] = None,
    language: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="TAG", show_default=False, help="Language of responses that state none. Default: unknown."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON. Default: a table.")] = False,
) -> None:
    """Describe labelled data by language: sizes, length ratios, character and sentence hallucination rates, severity.

    The columns are those of hat's Tables 1 and 2, halluverse's Table 2 and kang's Table 9.
    """
    from veriglot.cli.benching import show_statistics

    show_statistics(data, annotator=annotator, unit=unit, format_name=format_, language=language, json=json)


app.command("record")(record)
