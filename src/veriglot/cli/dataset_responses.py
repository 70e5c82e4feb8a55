"""`veriglot dataset responses`, and the account of their quality."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veriglot.cli.command import Help, Setting, command
from veriglot.cli.options import (
    MFAVA_SEEDS,
    AccountJson,
    Connection,
    DryRun,
    Models,
    Output,
    Overwrite,
    Quiet,
    Reading,
    Retry,
    Revision,
)
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.datasets.responses import Respondent
    from veriglot.llm.client import Settings
    from veriglot.records import Sample

__all__ = ["named_models", "responses", "show"]


@command
def responses(
    queries: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERIES...", show_default=False, help="Queries in any readable format; files or folders."
        ),
    ],
    *,
    model: Annotated[Models, Help("NAME=MODEL gives it another name in tables and ids; may be repeated.")],
    output: Annotated[Output, Help("A file (*.jsonl), or a folder that gets one file a model.")],
    design: Annotated[
        Literal["subsets", "runs"],
        typer.Option(
            help="subsets: disjoint subsets of each language's queries, one a seed, every query asked once. runs: every"
            " query asked with every seed. Default: subsets.",
        ),
    ] = "subsets",
    seeds: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Seeds, as 1,2,3 or 1-5; none leaves them to the server. Default: those of mFAVA, 42,43,44,47,49.",
        ),
    ] = MFAVA_SEEDS,
    prompt: Annotated[
        Literal["closed", "instructed", "open"],
        typer.Option(
            help="closed: the question alone. instructed: with the wish to be answered in its language. open: with the"
            " evidence, and the wish to use nothing else. Default: closed.",
        ),
    ] = "closed",
    completion: Annotated[bool, Setting("The model goes on from a text instead of chatting.")] = False,
    revision: Revision = None,
    connection: Connection,
    reading: Reading,
    overwrite: Overwrite = False,
    retry: Retry = False,
    dry_run: DryRun = False,
    json: AccountJson = False,
    quiet: Quiet = False,
) -> None:
    """Ask models every query of a design, and say what their responses are like.

    A run that stops, however it stops, goes on when the same command is given again; no finished call is repeated.
    Calls that gave nothing stand in OUTPUT.failed.jsonl, and the command then leaves with 3.

    \b
    One model:  veriglot dataset responses queries.jsonl -m qwen --base-url http://127.0.0.1:8000/v1 -o qwen.jsonl
    Several:    veriglot dataset responses queries.jsonl -m qwen -m gemma --base-url http://127.0.0.1:8000/v1 -o out/
    """
    from veriglot.cli.generation import Queries, ask, plan_in_words, print_json, seeds_of, tell

    respondents = named_models(model, revision, connection.settings, prompt=prompt, completion=completion)
    source = Queries(queries, format_name=reading.format, language=reading.language)
    asked = seeds_of(seeds)
    if dry_run:
        print_json(plan_in_words(source.rows, respondents, design=design, seeds=asked))
        return
    tallies = ask(
        source,
        respondents,
        connection,
        Path(output),
        design=design,
        seeds=asked,
        restart=overwrite,
        retry=retry,
        quiet=quiet,
    )
    code = max(tell(path, tally) for path, tally in tallies.items())
    if not quiet:
        show(list(map(str, tallies)), json=json)
    if code:
        raise typer.Exit(code)


def show(paths: list[str], *, json: bool, format_name: str | None = None, language: str | None = None) -> None:
    """Print the quality of the responses of some files; rows that cannot be read are counted on standard error."""
    from veriglot.cli.generation import Queries, say, show_quality
    from veriglot.datasets.quality import quality as measured
    from veriglot.storage.checkpoint import FailedRow

    unreadable = 0

    def samples() -> Iterator[Sample]:
        nonlocal unreadable
        for row in Queries(paths, format_name=format_name, language=language).rows():
            if isinstance(row, FailedRow):
                unreadable += 1
            else:
                yield row

    qualities = measured(samples())
    show_quality(qualities, json=json)
    if unreadable:
        say(f"{unreadable:,} rows could not be read and are not in this account.")


def named_models(
    words: Sequence[str],
    revision: str | None,
    settings: Settings,
    *,
    prompt: Literal["closed", "instructed", "open"] = "closed",
    completion: bool = False,
) -> list[Respondent]:
    """The models of `NAME=MODEL` or `MODEL`, each to be asked in the same way.

    Raises:
        UsageError: a name or a model is empty, or two models have one name.
    """
    from veriglot.datasets.responses import Respondent

    respondents = []
    for word in words:
        name, equals, model = word.partition("=")
        if not name or (equals and not model):
            raise UsageError(f"--model {word!r} names no model.")
        respondents.append(Respondent(name, model if equals else word, revision, prompt, settings, completion))
    if len({respondent.name for respondent in respondents}) < len(respondents):
        raise UsageError("Two models have one name.", remedy="Name each model once.")
    return respondents
