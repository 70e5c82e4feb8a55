"""`veriglot dataset queries`: questions for models, on references or for biographies, and prompts to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from veriglot.cli.command import Help, Setting, command
from veriglot.cli.options import (
    Connection,
    Count,
    DryRun,
    Languages,
    OptionalModel,
    Output,
    Overwrite,
    People,
    Quiet,
    Retry,
    Seed,
    language_tags,
)
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.datasets.queries import AnswerabilityCheck, Author, Part, Reference
    from veriglot.records import Sample
    from veriglot.storage.checkpoint import FailedRow

__all__ = ["queries", "references"]

Checking = Literal["model", "detector", "none"]


@command
def queries(
    articles: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ARTICLES]...",
            show_default=False,
            help="Articles as JSON lines, as `veriglot dataset articles` writes: language, title, and lead or text."
            " With --people they are the evidence of biographies, found by `item` and `language`.",
        ),
    ] = None,
    *,
    output: Annotated[Output, Help("JSON lines.")],
    model: Annotated[OptionalModel, Help("It writes the queries. Default: none, with --people.")] = None,
    people: Annotated[
        People, Help("The queries then ask for their biographies, and no model writes them. Default: none.")
    ] = None,
    languages: Annotated[Languages, Help("Of the biographies. Default: the 19 of Kang et al.")] = None,
    count: Annotated[Count, Help("Of each article, 9 at most. Default: 2.")] = 2,
    part: Annotated[
        Literal["lead", "text"] | None,
        Setting(
            "What of an article is the reference: its lead section, or the whole text. Default: lead; text with people."
        ),
    ] = None,
    check: Annotated[
        Checking,
        Setting(
            "How it is checked that the reference answers a query. model: a model says so and quotes the passage,"
            " which has to stand there. detector: a model answers from the reference, and the grounding detector looks"
            " whether it is supported. none: not at all."
        ),
    ] = "model",
    check_model: Annotated[str | None, Setting("The model of `check`. Default: the one that writes.")] = None,
    seed: Annotated[Seed, Help("Default: 1.")] = 1,
    connection: Connection,
    overwrite: Overwrite = False,
    retry: Retry = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
) -> None:
    """Have a model write knowledge-intensive queries on articles, each in its article's language, and check them.

    Checked are number, form, language, and whether the reference answers the query. What does not pass stands with its
    reason in OUTPUT.rejected.jsonl. With --people: a query for a biography of each in every language, as Kang et al.

    \b
    Articles:    veriglot dataset queries articles.jsonl -m gpt --base-url https://host/v1 -o queries.jsonl
    Biographies: veriglot dataset queries --people people.jsonl -l en,de -o queries.jsonl
    """
    from veriglot.cli.generation import tell
    from veriglot.cli.progress import Bar
    from veriglot.datasets.queries import Author
    from veriglot.datasets.queries import queries as write_queries

    path = Path(output)
    if people:
        if model is not None or dry_run:
            raise UsageError("Queries for biographies ask no model.", remedy="Leave out --model and --dry-run.")
        code = _write_prompts(path, people, languages, articles or [], part or "text", overwrite=overwrite)
        if code:
            raise typer.Exit(code)
        return
    if not articles or model is None:
        raise UsageError("Queries need articles and a model.", remedy="Name files and --model, or --people.")
    if count > _MOST:
        raise UsageError(f"{count} queries of an article are too many.", remedy=f"Ask for {_MOST} at most.")
    author = Author(model, connection.settings, seed, count)
    part = part or "lead"
    if dry_run:
        _dry_run(articles, author, part, checked=check != "none")
        return
    checker = model if check_model is None else check_model
    with connection.open(path, [model, checker]) as client, Bar(shown=not quiet, total=lambda: None) as bar:
        tally = write_queries(
            path,
            references(articles, part),
            author,
            client,
            check=_check(check, checker, seed),
            inputs=articles,
            options={"part": part},
            jobs=connection.concurrency,
            restart=overwrite,
            retry=retry,
            seen=lambda _: bar.advance(),
        )
    if not quiet:
        _account(path)
    code = tell(path, tally, what="articles")
    if code:
        raise typer.Exit(code)


_MOST = 9


def references(paths: list[str], part: Part) -> Iterator[Reference | FailedRow]:
    """The articles of JSON lines as references; those that cannot be used, and repeated ids, as failed rows."""
    from functools import partial

    from veriglot.cli.generation import records_of
    from veriglot.datasets.queries import reference_from

    return records_of(paths, partial(reference_from, part=part))


def _check(kind: Checking, model: str, seed: int) -> AnswerabilityCheck | None:
    from veriglot.datasets.queries import DetectorCheck, ModelCheck

    if kind == "none":
        return None
    if kind == "model":
        return ModelCheck(model, seed=seed)
    from veriglot.detectors.registry import load_detector

    return DetectorCheck(load_detector("grounding"), model, seed=seed)


def _dry_run(articles: list[str], author: Author, part: Part, *, checked: bool) -> None:
    """Calls and tokens, roughly; a check asks once more for each query that passes what is looked at before it."""
    from veriglot.cli.generation import print_json
    from veriglot.datasets.queries import Reference
    from veriglot.llm.client import estimate_request, estimate_tokens

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

    from veriglot.cli.generation import say
    from veriglot.datasets.generation import rejected_path
    from veriglot.datasets.queries import Rejection

    with output.open("rb") as file:
        written = sum(1 for _ in file)
    decoder = msgspec.json.Decoder(Rejection)
    with rejected_path(output).open("rb") as file:
        reasons = Counter(decoder.decode(line).reason for line in file)
    say(f"{output}: {written:,} queries. {reasons.total():,} were rejected and stand in {rejected_path(output)}.")
    for reason, number in reasons.most_common():
        say(f"  {reason}: {number:,}")


def _write_prompts(
    output: Path, people: list[str], languages: str | None, articles: list[str], part: Part, *, overwrite: bool
) -> int:
    """Write the queries for biographies; returns the exit code."""
    from veriglot.cli.generation import tell
    from veriglot.datasets.prompts import prompt_version
    from veriglot.storage.checkpoint import Checkpoint

    checkpoint = Checkpoint(
        output,
        signature=prompt_version("biography"),
        inputs=[*people, *articles],
        options={"languages": languages or "kang", "part": part},
        restart=overwrite,
        maker="prompt",
    )
    rows = _prompts(people, None if languages is None else list(language_tags(languages)), articles, part)
    return tell(output, checkpoint.run(rows, lambda query: query), what="prompts")


def _prompts(
    people: list[str], tags: list[str] | None, articles: list[str], part: Part
) -> Iterator[Sample | FailedRow]:
    from veriglot.cli.generation import records_of
    from veriglot.datasets.queries import biographies as prompts
    from veriglot.datasets.queries import person_from

    return prompts(records_of(people, person_from), tags, references=_references(articles, part))


def _references(articles: list[str], part: Part) -> dict[tuple[str, str], Reference]:
    """The articles by person and language; how many could not be used is said."""
    from veriglot.cli.generation import say
    from veriglot.datasets.queries import Reference

    by_item: dict[tuple[str, str], Reference] = {}
    unusable = 0
    for row in references(articles, part):
        if isinstance(row, Reference) and "item" in row.meta:
            by_item[row.meta["item"], row.language] = row
        else:
            unusable += 1
    if unusable:
        say(
            f"{unusable:,} articles cannot be used as evidence: they do not say which `item` they are about, or in what"
            " language, or have no text."
        )
    return by_item
