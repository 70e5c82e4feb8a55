"""`veriglot build halluverse`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from veriglot.cli.build_options import DryRun, Json, Quiet, Restart, Retry  # noqa: TC001  # typer reads them
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
from veriglot.cli.source_options import Contact, Rate  # noqa: TC001
from veriglot.errors import UsageError

__all__ = ["halluverse"]


def halluverse(
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="OUT", show_default=False, help="Where the pairs go: JSON lines."),
    ],
    pages: Annotated[
        Optional[list[str]],  # noqa: UP045  # typer reads it
        typer.Argument(
            metavar="PAGES...",
            show_default=False,
            help="Pages about people as JSON lines, such as `veriglot build articles --people` writes. Default: they"
            " are fetched, with the people, in the languages of --languages.",
        ),
    ] = None,
    people: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="FILE",
            help="The people of the pages, such as `veriglot build people` writes; pages about others are left out."
            " Default: nobody is known, and every page is used.",
        ),
    ] = None,
    languages: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--languages",
            "-l",
            metavar="TAGS",
            show_default=False,
            help="Of the pages to fetch, parted by commas. Default: those of HalluVerse25, en,ar,tr.",
        ),
    ] = None,
    count: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--count", "-n", metavar="N", min=1, show_default=False, help="People to fetch. Default: 500."),
    ] = None,
    model: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--model", "-m", metavar="MODEL", help="The model that chooses facts and puts errors in."),
    ] = None,
    rules: Annotated[
        bool, typer.Option("--rules", help="Ask no model: choose facts and make errors by rule. Default: off.")
    ] = False,
    facts: Annotated[
        int, typer.Option(metavar="N", min=1, max=50, show_default=False, help="Facts a page. Default: 5.")
    ] = 5,
    least: Annotated[
        int,
        typer.Option(metavar="N", min=1, show_default=False, help="Sentences that a page has to have. Default: 20."),
    ] = 20,
    any_subject: Annotated[
        bool,
        typer.Option(
            "--any-subject", help="Take sentences too that do not name whom the page is about. Default: do not."
        ),
    ] = False,
    types: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="LIST", show_default=False, help="Types of errors. Default: all, entity,relation,sentence."
        ),
    ] = None,
    attempts: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=9,
            show_default=False,
            help="How often a model is asked about a page, until there are facts enough, and for an error, until one"
            " passes. Default: 2.",
        ),
    ] = 2,
    support: Annotated[
        Literal["none", "detector", "model"],
        typer.Option(
            show_default=False,
            help="How it is checked that the page supports the sentence and not the error, beyond its words. Default:"
            " none, and each row says so.",
        ),
    ] = "none",
    detector: Annotated[
        str,
        typer.Option(
            metavar="NAME", show_default=False, help="The detector of --support detector. Default: grounding."
        ),
    ] = "grounding",
    support_model: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--support-model", metavar="MODEL", help="The model of --support model. Default: the one that edits."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, show_default=False, help="Seed of draws and calls. Default: 1.")
    ] = 1,
    price_in: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option("--price-in", metavar="X", min=0.0, help="What a million tokens of prompts cost."),
    ] = None,
    price_out: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option("--price-out", metavar="X", min=0.0, help="What a million tokens of replies cost."),
    ] = None,
    contact: Contact = None,
    wikidata_server: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="URL", help="Another SPARQL server. Default: Wikidata's."),
    ] = None,
    wiki_server: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="TAG=URL", help="Another server of a Wikipedia; repeat it. Default: Wikimedia's."),
    ] = None,
    rate: Rate = None,
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
    """Make a set as HalluVerse25 is: factual sentences about people, each with one error of a type, in any language.

    A model chooses five sentences a page and edits each; what it chose is looked up on the page, what it edited is
    checked as by `veriglot build silver`. Types are drawn so that what passes is even. Beside OUT stand the facts, the
    rejections, the pairs as HalluVerse CSV, and a page with yields and the diversity of the people.

    \b
    From files: veriglot build halluverse en.jsonl tr.jsonl --people people.jsonl -m gpt --base-url URL -o set.jsonl
    All of it:  veriglot build halluverse -l en,ar,tr --contact me@example.org -m gpt --base-url URL -o set.jsonl
    No model:   veriglot build halluverse en.jsonl tr.jsonl --people people.jsonl --rules -o set.jsonl
    """
    from veriglot.build.halluverse import FactSettings
    from veriglot.cli.halluverse_pages import Fetching, given_pages
    from veriglot.cli.halluversing import Making, make_set, plan_set
    from veriglot.cli.silvering import prices_of, support_of, types_of

    if rules and (model is not None or dry_run or support != "none"):
        raise UsageError("Rules ask no model.", remedy="Leave out --model, --support and --dry-run, or --rules.")
    if not rules and model is None:
        raise UsageError("Nobody is named who makes the set.", remedy="Name a model with --model, or give --rules.")
    fetching = Fetching(languages, count, contact, rate, wikidata_server, tuple(wiki_server or ()))
    found = given_pages(Path(output), pages or [], people, fetching, seed=seed, restart=restart, quiet=quiet)
    making = Making(
        Path(output),
        found,
        FactSettings(facts, least, known=found.people is not None, named=not any_subject),
        types_of(types)[0],
        seed,
        restart=restart,
        retry=retry_failed,
        json=json,
        quiet=quiet,
        prices=prices_of(price_in, price_out),
    )
    if dry_run:
        plan_set(making, model or "", settings_of(preset, set_ or ()), checked=support == "model")
        return
    connection = None
    if model is not None:
        connection = Connection(
            client, base_url, key, script, client_option or (), cache, max_calls, max_tokens_spent, jobs
        )
    code = make_set(
        making,
        connection,
        model=model or "",
        settings=settings_of(preset, set_ or ()),
        attempts=attempts,
        support=support_of(support, detector, support_model or model or "", seed),
        also=support_model if support == "model" else None,
    )
    if code:
        raise typer.Exit(code)
