"""`veriglot build factual`: kang's set of biographies in many languages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from veriglot.cli.build_options import (  # noqa: TC001  # typer reads them at run time
    DryRun,
    Json,
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
from veriglot.cli.source_options import Contact, Rate, Seed, parts
from veriglot.errors import UsageError

__all__ = ["factual"]


def factual(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", show_default=False, help="The folder of the set.")
    ],
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
        typer.Option("--languages", "-l", metavar="TAGS", help="Languages, parted by commas. Default: the 19 of kang."),
    ] = None,
    count: Annotated[
        int,
        typer.Option("--count", "-n", metavar="N", min=1, show_default=False, help="How many people. Default: 500."),
    ] = 500,
    samples: Annotated[
        int,
        typer.Option(metavar="K", min=1, show_default=False, help="Responses a prompt and model. Default: 5, as kang."),
    ] = 5,
    temperature: Annotated[
        float | None,
        typer.Option(metavar="X", min=0.0, help="Of the responses. Default: that of --preset or --set, else 1."),
    ] = None,
    at_least: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="A usable article in so many of the languages is enough. Default: all."),
    ] = None,
    spread: Annotated[
        Literal["diverse", "top", "given"] | None,
        typer.Option(
            help="diverse: as many people from each of --groups groups of equal size by page views, as kang. top:"
            " those that are read most. given: in the order of --people. Default: given with --people, else diverse."
        ),
    ] = None,
    groups: Annotated[
        int, typer.Option(metavar="N", min=1, show_default=False, help="Groups by page views. Default: 10.")
    ] = 10,
    people: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Candidates as JSON lines, such as `veriglot build people` writes; repeat it for several. Default:"
            " they are found in Wikidata.",
        ),
    ] = None,
    articles: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Articles as JSON lines with `item` and `language`, such as `veriglot build articles` writes; repeat"
            " it for several. Default: they are fetched from the Wikipedias.",
        ),
    ] = None,
    part: Annotated[
        Literal["lead", "text"],
        typer.Option(
            show_default=False, help="What of an article is the reference. Default: text, the whole page, as in kang."
        ),
    ] = "text",
    min_characters: Annotated[
        int, typer.Option(metavar="N", min=0, show_default=False, help="Shorter articles count as none. Default: 0.")
    ] = 0,
    cross: Annotated[
        str,
        typer.Option(
            metavar="TAG",
            show_default=False,
            help="Responses are held against the article in this language too, in a file of their own; or none."
            " Default: en.",
        ),
    ] = "en",
    labels: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Annotated rows of reference.jsonl, whose labels are put onto the rows."),
    ] = None,
    prompts_only: Annotated[
        bool, typer.Option("--prompts-only", help="Make people, articles and prompts, and ask no model.")
    ] = False,
    candidates: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="How many people, drawn at random, are described and counted. Default: 10 x count."
        ),
    ] = None,
    views_in: Annotated[
        str | None,
        typer.Option(metavar="TAGS", help="Wikipedias whose views count, or none. Default: en, else the first."),
    ] = None,
    views_from: Annotated[
        str,
        typer.Option(metavar="DATE", show_default=False, help="Views from this first of a month. Default: 2022-01-01."),
    ] = "2022-01-01",
    views_to: Annotated[
        str,
        typer.Option(metavar="DATE", show_default=False, help="Up to the day before. Default: 2023-01-01, as kang."),
    ] = "2023-01-01",
    seed: Seed = 0,
    contact: Contact = None,
    wikidata_server: Annotated[
        str | None, typer.Option(metavar="URL", help="Another SPARQL server. Default: Wikidata's.")
    ] = None,
    views_server: Annotated[
        str | None, typer.Option(metavar="URL", help="Another server of page views. Default: Wikimedia's.")
    ] = None,
    wiki_server: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Other Wikipedias: TAG=URL, or a URL with {edition} in it; repeat it for several."
            " Default: Wikimedia's.",
        ),
    ] = None,
    rate: Rate = None,
    price_in: Annotated[
        float | None,
        typer.Option(
            "--price-in", metavar="X", min=0.0, help="What a million tokens of prompts cost, in any currency."
        ),
    ] = None,
    price_out: Annotated[
        float | None,
        typer.Option("--price-out", metavar="X", min=0.0, help="What a million tokens of replies cost."),
    ] = None,
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
    """Make kang's set: people with an article in every language, biographies sampled from models, and their sets.

    Each response in the right language is held against the article in its language (reference.jsonl), against the
    English one (en.jsonl), and against its sisters (pairs.jsonl, and inside reference.jsonl). Those in another language
    stand in rejected.jsonl. Interrupted, the same command goes on, and pays for nothing twice.

    \b
    As kang: veriglot build factual --contact me@example.org -m bloomz --base-url http://127.0.0.1:8000/v1 -o set
    Offline: veriglot build factual -l en,de --people people.jsonl --articles articles.jsonl -m m --base-url ... -o set
    """
    from veriglot.build import Respondent
    from veriglot.cli import factual_set
    from veriglot.cli.build_responses import named_model
    from veriglot.cli.factual_people import WikiServers, iso_date, order_of
    from veriglot.cli.silvering import prices_of
    from veriglot.cli.sourcing import Servers
    from veriglot.http import checked_address
    from veriglot.llm import Settings

    for address in filter(None, (base_url, wikidata_server, views_server)):
        checked_address(address)  # before anything is planned or written down
    root = Path(output)
    usual = Settings(temperature=1.0, top_p=0.9, do_sample=True if client == "transformers" else None)
    settings = Settings(temperature=temperature).over(settings_of(preset, set_ or ())).over(usual)
    respondents = [Respondent(*named_model(one), revision, "closed", settings) for one in model or ()]
    if not respondents and not prompts_only:
        raise UsageError("Which model is to be asked?", remedy="Add --model MODEL, or --prompts-only.")
    if len({one.name for one in respondents}) < len(respondents):
        raise UsageError("Two models have one name.", remedy="Name each model once.")
    order = order_of(
        _tags(languages) if languages is not None else None,
        count,
        spread=spread,
        groups=groups,
        seed=seed,
        at_least=at_least,
        part=part,
        min_characters=min_characters,
        cross=None if cross == "none" else _tags(cross)[0],
        people=people or [],
        articles=articles or [],
        candidates=candidates,
        views_in=_tags(views_in) if views_in not in (None, "none") else () if views_in else None,
        period=(iso_date(views_from), iso_date(views_to)),
        servers=(wikidata_server, views_server),
        wikis=wiki_server or [],
    )
    job = factual_set.FactualJob(
        root=root,
        order=order,
        respondents=respondents,
        samples=samples,
        servers=Servers(contact, rate, root / "fetched", wikidata=wikidata_server, views=views_server),
        wikis=WikiServers(wiki_server or []),
        people=people or [],
        articles=articles or [],
        labels=labels or [],
        prices=prices_of(price_in, price_out),
        restart=restart,
        retry=retry_failed,
        quiet=quiet,
    )
    if dry_run:
        code = factual_set.dry_run(job)
    else:
        connection = None
        if not prompts_only:
            connection = Connection(
                client, base_url, key, script, client_option or (), cache, max_calls, max_tokens_spent, jobs
            )
        manifest, code = factual_set.make(job, connection)
        if manifest is not None and not quiet:
            factual_set.show(manifest, root, json=json)
    if code:
        raise typer.Exit(code)


def _tags(text: str) -> tuple[str, ...]:
    from veriglot.records.languages import language as known

    found = tuple(dict.fromkeys(known(part).tag for part in parts(text)))
    if not found:
        raise UsageError(f"{text!r} names no language.")
    return found
