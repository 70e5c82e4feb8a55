"""`veriglot build responses` and `veriglot build quality`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veriglot.cli.build_options import (
    MFAVA_SEEDS,
    Design,
    DryRun,
    FormatName,
    Json,
    LanguageTag,
    Model,
    Out,
    Quiet,
    Restart,
    Retry,
    Revision,
    Seeds,
)
from veriglot.cli.model_options import (
    BaseUrl,
    Cache,
    ClientName,
    ClientOption,
    Connection,
    Jobs,
    Key,
    MaxCalls,
    MaxTokensSpent,
    Preset,
    Script,
    Setting,
    settings_of,
)
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.records import Sample

__all__ = ["named_model", "quality", "responses", "show"]


def responses(
    queries: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERIES...", show_default=False, help="Queries in any readable format; files or folders."
        ),
    ],
    model: Model,
    output: Out,
    design: Design = "subsets",
    seeds: Seeds = MFAVA_SEEDS,
    prompt: Annotated[
        Literal["closed", "instructed", "open"],
        typer.Option(
            show_default=False,
            help="closed: the question alone. instructed: with the wish to be answered in its language. open: with the"
            " evidence, and the wish to use nothing else. Default: closed.",
        ),
    ] = "closed",
    completion: Annotated[
        bool, typer.Option("--completion", help="The model goes on from a text instead of chatting. Default: off.")
    ] = False,
    revision: Revision = None,
    client: ClientName = "openai",
    base_url: BaseUrl = None,
    key: Key = None,
    script: Script = None,
    client_option: ClientOption = None,
    preset: Preset = None,
    set_: Setting = None,
    cache: Cache = None,
    max_calls: MaxCalls = None,
    max_tokens_spent: MaxTokensSpent = None,
    jobs: Jobs = 8,
    format_name: FormatName = None,
    language: LanguageTag = None,
    restart: Restart = False,
    retry_failed: Retry = False,
    dry_run: DryRun = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask models every query of a design, and say what their responses are like.

    A run that stops, however it stops, goes on when the same command is given again; no finished call is repeated.
    Calls that gave nothing stand in OUT.failed.jsonl, and the command then leaves with 3.

    \b
    One model:  veriglot build responses queries.jsonl -m qwen --base-url http://127.0.0.1:8000/v1 -o qwen.jsonl
    Several:    veriglot build responses queries.jsonl -m qwen -m gemma --base-url http://127.0.0.1:8000/v1 -o out/
    """
    from veriglot.build import Respondent
    from veriglot.cli.building import Queries, ask, plan_in_words, print_json, seeds_of, tell

    settings = settings_of(preset, set_ or ())
    respondents = [Respondent(*named_model(one), revision, prompt, settings, completion) for one in model]
    source = Queries(queries, format_name=format_name, language=language)
    asked = seeds_of(seeds)
    if dry_run:
        print_json(plan_in_words(source.rows, respondents, design=design, seeds=asked))
        return
    connection = Connection(
        client, base_url, key, script, client_option or (), cache, max_calls, max_tokens_spent, jobs
    )
    tallies = ask(
        source,
        respondents,
        connection,
        Path(output),
        design=design,
        seeds=asked,
        restart=restart,
        retry=retry_failed,
        quiet=quiet,
    )
    code = max(tell(path, tally) for path, tally in tallies.items())
    if not quiet:
        show(list(map(str, tallies)), json=json)
    if code:
        raise typer.Exit(code)


def quality(
    responses: Annotated[
        list[str],
        typer.Argument(metavar="RESPONSES...", show_default=False, help="Responses in any readable format."),
    ],
    format_name: FormatName = None,
    language: LanguageTag = None,
    json: Json = False,
) -> None:
    """Account for the quality of responses by model and language, as kang's Table 1 does, and more.

    Mean words and sentences; the share whose language can be told, the language that most of them are in, the share in
    the right one; the shares that decline to answer, repeat themselves, were cut at the token limit, or are empty.
    """
    show(responses, format_name=format_name, language=language, json=json)


def show(paths: list[str], *, json: bool, format_name: str | None = None, language: str | None = None) -> None:
    """Print the quality of the responses of some files; rows that cannot be read are counted on standard error."""
    from veriglot.build import quality as measured
    from veriglot.cli.building import Queries, say, show_quality
    from veriglot.run import FailedRow

    unreadable = 0

    def samples() -> Iterator[Sample]:
        nonlocal unreadable
        for row in Queries(paths, format_name=format_name, language=language).rows():
            if isinstance(row, FailedRow):
                unreadable += 1
            else:
                yield row

    found = measured(samples())
    show_quality(found, json=json)
    if unreadable:
        say(f"{unreadable:,} rows could not be read and are not in this account.")


def named_model(word: str) -> tuple[str, str]:
    """Name and model of `NAME=MODEL` or `MODEL`.

    Raises:
        UsageError: one of them is empty.
    """
    name, equals, model = word.partition("=")
    if not name or (equals and not model):
        raise UsageError(f"--model {word!r} names no model.")
    return (name, model) if equals else (word, word)
