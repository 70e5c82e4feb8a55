"""`veriglot dataset queries`: questions for models, on references or for biographies, and prompts to read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

import msgspec

from veriglot.cli.command import command
from veriglot.cli.console import say
from veriglot.cli.generation import Connection, Run, print_plan, records_of, references, tell
from veriglot.cli.inputs import language_tags
from veriglot.datasets.generation import rejected_path
from veriglot.datasets.prompts import prompt_version, use_prompts
from veriglot.datasets.queries import AnswerabilityCheck, Author, Part, Reference, biographies, person_from
from veriglot.datasets.queries import queries as write_queries
from veriglot.detectors.registry import load_detector
from veriglot.errors import UsageError
from veriglot.llm.client import estimate_tokens
from veriglot.storage.checkpoint import Checkpoint

_MOST = 9
Checking = Literal["model", "detector", "none"]


@command
def queries(
    articles: list[str] | None = None,
    *,
    output: str,
    model: str | None = None,
    people: list[str] | None = None,
    languages: str | None = None,
    count: int = 2,
    prompt: str | None = None,
    part: Part | None = None,
    check: Checking = "model",
    check_model: str | None = None,
    seed: int = 0,
    connection: Connection,
    run: Run,
    dry_run: bool = False,
) -> int:
    """Have a model write knowledge-intensive queries on articles, each in its article's language, and check them.

    The command checks number, form and language, and whether the reference answers the query. OUTPUT.rejected.jsonl
    holds what does not pass, with reasons. With --people, it writes a query for each person's biography in every
    language, as Kang et al. do.

    \b
    Articles:    veriglot dataset queries articles.jsonl -m gpt --base-url https://host/v1 -o queries.jsonl
    Biographies: veriglot dataset queries --people people.jsonl -l en,de -o queries.jsonl
    """
    path = Path(output)
    if prompt is not None:
        use_prompts(prompt, "biography" if people else "queries")
    if people:
        if model is not None or dry_run:
            raise UsageError("Queries for biographies use no model.", "Leave out --model and --dry-run.")
        return _write_prompts(path, people, languages, articles or [], part or "text", overwrite=run.overwrite)
    if not articles or model is None:
        raise UsageError("Queries need articles and a model.", "Name files and --model, or --people.")
    if count > _MOST:
        raise UsageError(f"{count} queries of an article are too many.", f"Ask for {_MOST} at most.")
    author = Author(model, connection.settings, seed, count)
    part = part or "lead"
    if dry_run:
        _plan(articles, author, part, checked=check != "none")
        return 0
    checker = model if check_model is None else check_model
    with connection.open(path, [model, checker]) as client, run.progress() as progress:
        tally = write_queries(
            path,
            references(articles, part),
            author,
            client,
            check=_check(check, checker, seed),
            inputs=articles,
            options={"part": part},
            jobs=connection.concurrency,
            **progress,
        )
    if not run.quiet:
        with path.open("rb") as file:
            written = sum(1 for _ in file)
        with rejected_path(path).open("rb") as file:
            reasons = Counter(msgspec.json.decode(line)["reason"] for line in file)
        say(f"{path}: {written:,} queries. Rejected: {reasons.total():,}, listed in {rejected_path(path)}.")
        for reason, number in reasons.most_common():
            say(f"  {reason}: {number:,}")
    return tell(path, tally, what="articles")


def _check(kind: Checking, model: str, seed: int) -> AnswerabilityCheck | None:
    if kind == "none":
        return None
    if kind == "model":
        return AnswerabilityCheck(model, seed=seed)
    return AnswerabilityCheck(model, load_detector("grounding"), seed=seed)


def _plan(articles: list[str], author: Author, part: Part, *, checked: bool) -> None:
    """Estimated calls and tokens; a check makes one more call for each query that passes the earlier checks."""
    calls = unusable = tokens = 0
    for row in references(articles, part):
        if not isinstance(row, Reference):
            unusable += 1
            continue
        calls += 1 + (author.count if checked else 0)
        tokens += author.request(row).tokens
        tokens += author.count * estimate_tokens(row.text) if checked else 0
    print_plan(calls_at_most=calls, articles_that_cannot_be_used=unusable, tokens_in=tokens)


def _write_prompts(
    output: Path, people: list[str], languages: str | None, articles: list[str], part: Part, *, overwrite: bool
) -> int:
    """Write the queries for biographies; returns the exit code."""
    checkpoint = Checkpoint(
        output,
        signature=prompt_version("biography"),
        inputs=[*people, *articles],
        options={"languages": languages or "kang", "part": part},
        restart=overwrite,
        maker="prompt",
    )
    tags = None if languages is None else list(language_tags(languages))
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
    rows = biographies(records_of(people, person_from), tags, references=by_item)
    return tell(output, checkpoint.run(rows, lambda query: query), what="prompts")
