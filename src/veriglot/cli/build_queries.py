"""`veriglot build queries`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from veriglot.cli.build_options import (  # noqa: TC001  # typer reads them at run time
    DryRun,
    PartOption,
    Quiet,
    Restart,
    Retry,
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.build import AnswerabilityCheck, Author, Part, Reference
    from veriglot.run import FailedRow

__all__ = ["queries", "references"]

Checking = Literal["model", "detector", "none"]


def queries(
    articles: Annotated[
        list[str],
        typer.Argument(
            metavar="ARTICLES...",
            show_default=False,
            help="Articles as JSON lines, such as `veriglot build articles` writes: language, title, and lead or text.",
        ),
    ],
    model: Annotated[
        str,
        typer.Option("--model", "-m", metavar="MODEL", show_default=False, help="The model that writes the queries."),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="OUT", show_default=False, help="Where the queries go: JSON lines.")
    ],
    count: Annotated[
        int, typer.Option(metavar="N", min=1, max=9, show_default=False, help="Queries an article. Default: 2.")
    ] = 2,
    part: PartOption = "lead",
    check: Annotated[
        Checking,
        typer.Option(
            show_default=False,
            help="How it is checked that the reference answers a query. model: a model says so and quotes the passage,"
            " which has to stand there. detector: a model answers from the reference, and the grounding detector looks"
            " whether it is supported. none: not at all. Default: model.",
        ),
    ] = "model",
    check_model: Annotated[
        str | None,
        typer.Option("--check-model", metavar="MODEL", help="The model of the check. Default: the one that writes."),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, show_default=False, help="Seed of the calls. Default: 1.")
    ] = 1,
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
    quiet: Quiet = False,
) -> None:
    """Have a model write knowledge-intensive queries on articles, each in its article's language, and check them.

    Checked are number, form, language, and whether the reference answers the query. What does not pass stands with its
    reason in OUT.rejected.jsonl.

    \b
    For example: veriglot build queries articles.jsonl -m gpt --base-url https://host/v1 --key API_KEY -o queries.jsonl
    """
    from veriglot.build import Author
    from veriglot.build import queries as write
    from veriglot.cli.building import tell
    from veriglot.cli.progress import Bar

    author = Author(model, settings_of(preset, set_ or ()), seed, count)
    if dry_run:
        _dry_run(articles, author, part, checked=check != "none")
        return
    connection = Connection(
        client, base_url, key, script, client_option or (), cache, max_calls, max_tokens_spent, jobs
    )
    path = Path(output)
    with connection.open(path, [model, check_model or model]) as asked, Bar(shown=not quiet, total=lambda: None) as bar:
        tally = write(
            path,
            references(articles, part),
            author,
            asked,
            check=_check(check, check_model or model, seed),
            inputs=articles,
            options={"part": part},
            jobs=jobs,
            restart=restart,
            retry=retry_failed,
            seen=lambda _: bar.advance(),
        )
    if not quiet:
        _account(path)
    code = tell(path, tally, what="articles")
    if code:
        raise typer.Exit(code)


def references(paths: list[str], part: Part) -> Iterator[Reference | FailedRow]:
    """The articles of JSON lines as references; those that cannot be used, and repeated ids, as failed rows."""
    from functools import partial

    from veriglot.build import reference_from
    from veriglot.cli.building import records_of

    return records_of(paths, partial(reference_from, part=part))


def _check(kind: Checking, model: str, seed: int) -> AnswerabilityCheck | None:
    from veriglot.build import DetectorCheck, ModelCheck

    if kind == "none":
        return None
    if kind == "model":
        return ModelCheck(model, seed=seed)
    from veriglot.detectors import load_detector

    return DetectorCheck(load_detector("grounding"), model, seed=seed)


def _dry_run(articles: list[str], author: Author, part: Part, *, checked: bool) -> None:
    """Calls and tokens, roughly; a check asks once more for each query that passes what is looked at before it."""
    from veriglot.build import Reference
    from veriglot.cli.building import print_json
    from veriglot.llm import estimate_request, estimate_tokens

    calls = unusable = tokens = 0
    for row in references(articles, part):
        if not isinstance(row, Reference):
            unusable += 1
            continue
        calls += 1 + (author.count if checked else 0)
        tokens += estimate_request(author.request(row))
        tokens += author.count * estimate_tokens(row.text) if checked else 0
    print_json({"calls_at_most": calls, "articles_that_cannot_be_used": unusable, "tokens_in": tokens})


def _account(output: Path) -> None:
    """Say how many queries passed, and why the others did not."""
    from collections import Counter

    from veriglot.build import Rejection, rejected_path
    from veriglot.cli.building import say

    with output.open("rb") as file:
        kept = sum(1 for _ in file)
    decoder = msgspec.json.Decoder(Rejection)
    with rejected_path(output).open("rb") as file:
        reasons = Counter(decoder.decode(line).reason for line in file)
    say(f"{output}: {kept:,} queries. {reasons.total():,} were rejected and stand in {rejected_path(output)}.")
    for reason, number in reasons.most_common():
        say(f"  {reason}: {number:,}")
