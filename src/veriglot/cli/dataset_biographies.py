"""`veriglot dataset biographies`: the set of Kang et al., biographies in many languages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from veriglot.cli.command import Help, Setting, command
from veriglot.cli.options import (
    AccountJson,
    Connection,
    Cost,
    Count,
    DryRun,
    Languages,
    OptionalModels,
    Output,
    Overwrite,
    Part,
    People,
    Popularity,
    Quiet,
    Retry,
    Revision,
    Seed,
    Wikidata,
    iso_date,
    language_tags,
)
from veriglot.errors import UsageError

__all__ = ["biographies"]


@command
def biographies(
    *,
    output: Annotated[Output, Help("The folder of the set.")],
    model: Annotated[
        OptionalModels,
        Help("NAME=MODEL gives it another name; may be repeated. Default: none, with prompts_only."),
    ] = None,
    languages: Annotated[Languages, Help("Default: the 19 of Kang et al.")] = None,
    count: Annotated[Count, Help("People. Default: 500.")] = 500,
    people: Annotated[People, Help("Default: they are found in Wikidata.")] = None,
    articles: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Articles as JSON lines with `item` and `language`, as `veriglot dataset articles` writes; may be"
            " repeated. Default: they are fetched from the Wikipedias.",
        ),
    ] = None,
    samples: Annotated[int, Setting("Responses a prompt and model; five as Kang et al.", 1)] = 5,
    temperature: Annotated[float | None, Setting("Of the responses. Default: that of `generation`, else 1.", 0)] = None,
    spread: Annotated[
        Literal["diverse", "top", "given"] | None,
        Setting(
            "diverse: as many people from each of the groups of equal size by page views, as Kang et al. top: those"
            " that are read most. given: in the order of people. Default: given with people, else diverse."
        ),
    ] = None,
    part: Part = "text",
    min_characters: Annotated[int, Setting("Shorter articles count as none; characters.", 0)] = 0,
    cross: Annotated[
        str,
        Setting("Responses are held against the article in this language too, in a file of their own; or none."),
    ] = "en",
    labels: Annotated[
        list[str] | None,
        Setting("Files of annotated rows of reference.jsonl, whose labels are put onto the rows. Default: none."),
    ] = None,
    prompts_only: Annotated[bool, Setting("Make people, articles and prompts, and ask no model.")] = False,
    popularity: Popularity,
    seed: Annotated[Seed, Help("Default: 0.")] = 0,
    wikidata: Wikidata,
    cost: Cost,
    revision: Revision = None,
    connection: Connection,
    overwrite: Overwrite = False,
    retry: Retry = False,
    dry_run: DryRun = False,
    json: AccountJson = False,
    quiet: Quiet = False,
) -> None:
    """Make the set of Kang et al.: people with an article in every language, biographies by models, and their sets.

    Each response in the right language is held against the article in its language (reference.jsonl), against the
    English one (en.jsonl), and against its sisters (pairs.jsonl, and inside reference.jsonl). Those in another language
    stand in rejected.jsonl. Interrupted, the same command goes on, and pays for nothing twice.

    \b
    All of it:  veriglot dataset biographies --contact me@example.org -m bloomz --base-url URL -o set
    From files: veriglot dataset biographies -l en,de --people p.jsonl --articles a.jsonl -m m --base-url URL -o set
    """
    from veriglot.cli import factual_set
    from veriglot.cli.dataset_responses import named_models
    from veriglot.cli.factual_set import order_of
    from veriglot.cli.wikipedia import Servers, WikiServers
    from veriglot.http.session import checked_address
    from veriglot.llm.client import Settings

    for address in filter(None, (connection.base_url, wikidata.wikidata_server, wikidata.views_server)):
        checked_address(address)  # before anything is planned or written down
    root = Path(output)
    usual = Settings(temperature=1.0, top_p=0.9, do_sample=True if connection.client == "transformers" else None)
    settings = Settings(temperature=temperature).over(connection.settings).over(usual)
    respondents = named_models(model or (), revision, settings)
    if not respondents and not prompts_only:
        raise UsageError("Which model is to be asked?", remedy="Add --model MODEL, or set prompts_only.")
    views_in, wikis = popularity.views_in, wikidata.wiki_servers or []
    order = order_of(
        language_tags(languages) if languages is not None else None,
        count,
        spread=spread,
        groups=popularity.groups,
        seed=seed,
        at_least=popularity.at_least,
        part=part,
        min_characters=min_characters,
        cross=None if cross == "none" else language_tags(cross)[0],
        people=people or [],
        articles=articles or [],
        candidates=popularity.candidates,
        views_in=language_tags(views_in) if views_in not in (None, "none") else () if views_in else None,
        period=(iso_date(popularity.views_from), iso_date(popularity.views_to)),
        servers=(wikidata.wikidata_server, wikidata.views_server),
        wikis=wikis,
    )
    job = factual_set.FactualJob(
        root=root,
        order=order,
        respondents=respondents,
        samples=samples,
        servers=Servers.of(wikidata, root / "fetched"),
        wikis=WikiServers(wikis),
        people=people or [],
        articles=articles or [],
        labels=labels or [],
        prices=cost.prices,
        restart=overwrite,
        retry=retry,
        quiet=quiet,
    )
    if dry_run:
        code = factual_set.dry_run(job)
    else:
        if not prompts_only:
            connection.options()  # what is missing is to be known before people are fetched
        manifest, code = factual_set.make(job, None if prompts_only else connection)
        if manifest is not None and not quiet:
            factual_set.show(manifest, root, json=json)
    if code:
        raise typer.Exit(code)
