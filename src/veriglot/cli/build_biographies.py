"""`veriglot build biographies`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veriglot.cli.build_options import (  # noqa: TC001  # typer reads them at run time
    DryRun,
    Json,
    Out,
    PartOption,
    Quiet,
    Restart,
    Retry,
    Revision,
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

    from veriglot.build import Part, Reference
    from veriglot.records import Sample
    from veriglot.run import FailedRow

__all__ = ["biographies"]


def biographies(
    people: Annotated[
        list[str],
        typer.Argument(
            metavar="PEOPLE...",
            show_default=False,
            help="People as JSON lines, such as `veriglot build people` writes: id, and names by language.",
        ),
    ],
    output: Out,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="The model as its server names it, or NAME=MODEL; repeat it for several. None with --prompts-only.",
        ),
    ] = None,
    languages: Annotated[
        str | None,
        typer.Option(metavar="TAGS", help="Languages, parted by commas. Default: the 19 of kang."),
    ] = None,
    articles: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Articles about these people as JSON lines, with `item` and `language`, to hold the biographies"
            " against; repeat it for several. Default: no evidence.",
        ),
    ] = None,
    part: PartOption = "text",
    seeds: Annotated[
        str,
        typer.Option(
            metavar="LIST", show_default=False, help="One response a prompt and seed. Default: 1-5, five as in kang."
        ),
    ] = "1-5",
    prompts_only: Annotated[
        bool, typer.Option("--prompts-only", help="Write the prompts as queries into OUT, and ask no model.")
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
    restart: Restart = False,
    retry_failed: Retry = False,
    dry_run: DryRun = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask models for biographies of the same people in every language, five samples a prompt.

    The prompts themselves are written beside the responses, as OUT.prompts.jsonl.

    \b
    For example: veriglot build biographies people.jsonl -m bloomz --base-url http://127.0.0.1:8000/v1 -o bios.jsonl
    """
    from veriglot.build import Respondent
    from veriglot.cli.build_responses import named_model, show
    from veriglot.cli.building import Queries, ask, plan_in_words, print_json, seeds_of, tell

    path = Path(output)
    prompts = path if prompts_only else path.with_name(path.name + ".prompts.jsonl")
    tags, asked = _tags(languages), seeds_of(seeds)
    settings = settings_of(preset, set_ or ())
    respondents = [Respondent(*named_model(one), revision, "closed", settings) for one in model or ()]
    if not respondents and not prompts_only:
        raise UsageError("Which model is to be asked?", remedy="Add --model MODEL, or --prompts-only.")

    def rows() -> Iterator[Sample | FailedRow]:
        return _prompts(people, tags, articles or [], part)

    if dry_run:
        print_json(plan_in_words(rows, respondents, design="runs", seeds=asked))
        return
    options = {"languages": languages or "kang", "part": part}
    code = _write_prompts(prompts, rows(), [*people, *(articles or [])], options, restart=restart)
    if not prompts_only:
        source = Queries([str(prompts)], format_name="jsonl")
        connection = Connection(
            client, base_url, key, script, client_option or (), cache, max_calls, max_tokens_spent, jobs
        )
        tallies = ask(
            source, respondents, connection, path, design="runs", seeds=asked,
            restart=restart, retry=retry_failed, quiet=quiet,
        )  # fmt: skip
        code = max(code, *(tell(file, tally) for file, tally in tallies.items()))
        if not quiet:
            show(list(map(str, tallies)), json=json)
    if code:
        raise typer.Exit(code)


def _write_prompts(
    output: Path, rows: Iterator[Sample | FailedRow], inputs: list[str], options: dict[str, str], *, restart: bool
) -> int:
    """Write the prompts as queries; returns the exit code."""
    from veriglot.build import prompt_version
    from veriglot.cli.building import tell
    from veriglot.run import Stage

    stage: Stage[Sample] = Stage(
        output,
        signature=prompt_version("biography"),
        inputs=inputs,
        options={**options},
        restart=restart,
        maker="prompt",
    )
    return tell(output, stage.run(rows, lambda asked: asked), what="prompts")


def _prompts(
    people: list[str], tags: list[str] | None, articles: list[str], part: Part
) -> Iterator[Sample | FailedRow]:
    from veriglot.build import biographies as prompts
    from veriglot.build import named_from
    from veriglot.cli.building import records_of

    return prompts(records_of(people, named_from), tags, references=_references(articles, part))


def _references(articles: list[str], part: Part) -> dict[tuple[str, str], Reference]:
    """The articles by person and language; how many could not be used is said."""
    from veriglot.build import Reference
    from veriglot.cli.build_queries import references
    from veriglot.cli.building import say

    found: dict[tuple[str, str], Reference] = {}
    unusable = 0
    for row in references(articles, part):
        if isinstance(row, Reference) and "item" in row.meta:
            found[row.meta["item"], row.language] = row
        else:
            unusable += 1
    if unusable:
        say(
            f"{unusable:,} articles cannot be used as evidence: they do not say which `item` they are about, or in what"
            " language, or have no text."
        )
    return found


def _tags(languages: str | None) -> list[str] | None:
    from veriglot.cli.inputs import known_tag

    if languages is None:
        return None
    return [tag for name in languages.split(",") if (tag := known_tag(name.strip())) is not None]
