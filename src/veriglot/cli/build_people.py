"""`veriglot build people`: the names that a study of biographies begins with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veriglot.cli.build_options import Json, Quiet, Restart  # noqa: TC001  # typer reads them at run time
from veriglot.cli.source_options import CacheFolder, Contact, Rate, Seed, parts, print_account
from veriglot.errors import UsageError

__all__ = ["people"]

_KANG = "en,es,ru,id,vi,fa,uk,sv,th,ja,de,ro,hu,bg,fr,fi,ko,it,zh"


def people(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="OUT", show_default=False, help="Where the people go: JSON lines.")
    ],
    languages: Annotated[
        str,
        typer.Option(
            "--languages",
            "-l",
            metavar="TAGS",
            show_default=False,
            help="Wikipedias that have an article on each, parted by commas. Default: the 19 of kang.",
        ),
    ] = _KANG,
    at_least: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Articles in so many of them are enough. Default: in all.")
    ] = None,
    count: Annotated[
        int,
        typer.Option("--count", "-n", metavar="N", min=1, show_default=False, help="How many people. Default: 500."),
    ] = 500,
    candidates: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="How many, drawn at random, are described and counted. Default: 10 times --count."
        ),
    ] = None,
    groups: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            show_default=False,
            help="As many people are taken from each of N groups of equal size by page views. Default: 10.",
        ),
    ] = 10,
    views_in: Annotated[
        str | None,
        typer.Option(
            metavar="TAGS", help="Wikipedias whose views count, parted by commas; or none. Default: the first of all."
        ),
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
    rate: Rate = None,
    cache: CacheFolder = None,
    restart: Restart = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find people whom all these Wikipedias have an article on, and draw some, read often and seldom.

    Each comes with names and titles by language, year of birth, occupations, citizenships and page views. Interrupted,
    the same command goes on without asking anything twice.

    \b
    As kang:         veriglot build people --contact me@example.org -o people.jsonl
    As HalluVerse25: veriglot build people -l en,ar,tr --contact me@example.org -o people.jsonl
    """
    from veriglot.cli.people_fetching import PeopleOrder, fetch_people
    from veriglot.cli.progress import Bar
    from veriglot.cli.sourcing import Output, Servers, say

    tags = _tags(languages)
    counted = tags[:1] if views_in is None else () if views_in == "none" else _tags(views_in)
    if not set(counted) <= set(tags):
        raise UsageError("--views-in names a language that is not among --languages.")
    order = PeopleOrder(
        languages=tags,
        at_least=at_least,
        count=count,
        candidates=max(candidates or 10 * count, count),
        groups=groups,
        seed=seed,
        views_in=counted,
        views_from=_date(views_from),
        views_to=_date(views_to),
        servers=(wikidata_server, views_server),
    )
    path = Path(output)
    out = Output(path, order, restart=restart)
    if out.finished is not None:
        say(f"{path} is finished.")
        account = out.finished
    else:
        folder = Path(cache) if cache else path.with_name(f"{path.name}.fetched")
        servers = Servers(contact, rate, folder, wikidata=wikidata_server, views=views_server)
        with Bar(shown=not quiet, total=lambda: None) as bar:
            found, account = fetch_people(order, servers, bar.advance)
        out.write(found, account)
        if not quiet and not json:
            print(
                f"{account['found']:,} people found, {account['described']:,} described"
                f" ({account['without_views']:,} without a count of views), {account['written']:,} written"
            )
    if account["written"] < count:
        say(f"{account['written']:,} of the {count:,} people that were asked for.")
    if json:
        print_account(account)


def _tags(text: str) -> tuple[str, ...]:
    from veriglot.records.languages import language as known

    return tuple(dict.fromkeys(known(part).tag for part in parts(text)))


def _date(text: str) -> str:
    from datetime import date

    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(f"{text!r} is no date.", remedy="Write it as 2022-01-01.") from None
