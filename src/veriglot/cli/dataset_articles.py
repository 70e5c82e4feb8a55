"""`veriglot dataset articles` and `people`: the texts and the people that a study begins with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veriglot.cli.command import Help, Setting, command
from veriglot.cli.options import (
    AccountJson,
    Count,
    OptionalCount,
    Output,
    Overwrite,
    People,
    Popularity,
    Quiet,
    RequiredLanguages,
    Seed,
    Wikidata,
    Wikimedia,
    iso_date,
    language_tags,
    parts,
)
from veriglot.errors import InputError, UsageError

__all__ = ["articles", "people"]


@command
def articles(
    *,
    edition: Annotated[
        str, typer.Option("--edition", "-e", metavar="TAG", help="Wikipedia edition to read, by its language.")
    ],
    output: Annotated[Output, Help("JSON lines.")],
    count: Annotated[OptionalCount, Help("Articles. Default: 1000 at random through the API; otherwise all.")] = None,
    dump: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A dump to read instead of asking the API: ...-pages-articles.xml.bz2, or a history with every edit."
            " With --count, a random sample of it. Default: none.",
        ),
    ] = None,
    category: Annotated[str | None, Setting("Articles of a category, not random ones. Default: none.")] = None,
    subcategories: Annotated[int, Setting("How many levels below the category to go.", 0)] = 0,
    titles: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Articles of these titles, one a line; - is standard input. Default: none."),
    ] = None,
    people: Annotated[People, Help("Articles about them, not random ones. Default: none.")] = None,
    min_characters: Annotated[int, Setting("Shorter texts are dropped; characters.", 0)] = 2000,
    min_depth: Annotated[
        float,
        Setting("The least depth of the edition: edits/articles x non-articles/articles x (1 - articles/pages).", 0),
    ] = 5.0,
    min_edits: Annotated[int, Setting("The fewest edits of an article, those by bots off.", 0)] = 5,
    without: Annotated[
        str | None,
        Setting(
            "Articles with maintenance templates of these kinds are dropped: unreferenced, more-references,"
            " failed-verification, under-construction, disputed, disambiguation; or none. Default: all but"
            " more-references."
        ),
    ] = None,
    no_filters: Annotated[
        bool, typer.Option("--no-filters", help="Keep every article. Default: only those that pass the filters.")
    ] = False,
    learn: Annotated[
        bool, Setting("Ask the wikis what their maintenance templates are called, besides the table.")
    ] = True,
    strict_filters: Annotated[
        bool, Setting("Drop what a filter cannot check; otherwise it is kept, and said.")
    ] = False,
    statistics: Annotated[
        str | None,
        Setting(
            'PAGES,ARTICLES,EDITS of Special:Statistics, for a dump, such as "8000000,2900000,250000000". Default:'
            " asked of the API."
        ),
    ] = None,
    seed: Annotated[Seed, Help("Default: 0.")] = 0,
    most_pages: Annotated[
        int | None, Setting("Stop after looking at so many pages. Default: 100 times count.", 1)
    ] = None,
    wikimedia: Wikimedia,
    overwrite: Overwrite = False,
    json: AccountJson = False,
    quiet: Quiet = False,
) -> None:
    """Fetch articles of one Wikipedia and keep those that mFAVA's filters let through.

    What each filter did is printed, and stands in OUTPUT.report.json. Interrupted, the same command goes on without
    asking anything twice.

    \b
    At random:   veriglot dataset articles -e de -n 1000 --contact me@example.org -o de.jsonl
    From a dump: veriglot dataset articles -e de -n 1000 --dump dewiki-latest-pages-articles.xml.bz2 -o de.jsonl
    """
    from veriglot.cli.generation import print_json
    from veriglot.cli.progress import Bar
    from veriglot.cli.wikipedia import ArticleOrder, Output, Servers, fetch_articles, report_lines, say
    from veriglot.records.languages import get_language

    tag = get_language(edition).tag
    servers = Servers.of(wikimedia, Path(f"{output}.fetched"), tag)
    wanted = _one_of(dump=dump, category=category, titles=titles, people=people)
    if wanted is None:
        count = count or 1000
        most_pages = most_pages or 100 * count
    path = Path(output)
    order = ArticleOrder(
        language=tag,
        count=count,
        most_pages=most_pages,
        seed=seed,
        min_characters=min_characters if not no_filters else 0,
        min_depth=min_depth if not no_filters else 0,
        min_edits=min_edits if not no_filters else 0,
        kinds=_kinds(without) if not no_filters else (),
        learn=learn,
        strict=strict_filters,
        dump=dump,
        titles=_titles(titles, people, tag),
        category=category,
        subcategories=subcategories,
        statistics=_three(statistics),
        servers=(servers.wiki, servers.english),
    )
    out = Output(path, order, restart=overwrite)
    if out.finished is not None:
        say(f"{path} is finished.")
        account, warnings = out.finished, list[str]()
    else:
        with Bar(shown=not quiet, total=lambda: count) as bar:
            records, report, warnings = fetch_articles(order, servers, bar.advance)
        account = {"report": report, "warnings": warnings}
        out.write(records, account)
        if not quiet and not json:
            print("\n".join(report_lines(report)))
    for warning in warnings:
        say(warning)
    if json:
        print_json(account)


def _one_of(**given: str | list[str] | None) -> str | None:
    named = [name for name, value in given.items() if value]
    if len(named) > 1:
        raise UsageError(f"--{named[0]} and --{named[1]} exclude each other.", remedy="Leave one out.")
    return named[0] if named else None


def _kinds(without: str | None) -> tuple[str, ...]:
    from veriglot.errors import UnknownNameError
    from veriglot.wikipedia.articles import KINDS, MFAVA_KINDS

    if without is None:
        return MFAVA_KINDS
    kinds = tuple(dict.fromkeys(parts(without)))
    if kinds == ("none",):
        return ()
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownNameError("kind of maintenance template", kind, KINDS)
    return kinds


def _titles(titles: str | None, people: list[str] | None, tag: str) -> tuple[str, ...] | None:
    from veriglot.cli.inputs import read_text
    from veriglot.cli.wikipedia import say, titles_of

    names: list[str] = []
    for path in people or ():
        if not Path(path).is_file():
            raise InputError("there is no such file", path=path, remedy="Check the path.")
        about, without = titles_of(Path(path), tag)
        names += about
        if without:
            say(f"{without:,} of the people in {path} have no article in {tag}.")
    if people:
        return tuple(names)
    return tuple(line.strip() for line in read_text(titles).splitlines() if line.strip()) if titles else None


def _three(text: str | None) -> tuple[int, int, int] | None:
    if text is None:
        return None
    try:
        pages, made, edits = (int(part.replace("_", "")) for part in parts(text))
    except ValueError:
        raise UsageError(
            f"{text!r} is not three numbers.",
            remedy="Write pages, articles and edits, such as 8000000,2900000,250000000.",
        ) from None
    return pages, made, edits


_KANG = "en,es,ru,id,vi,fa,uk,sv,th,ja,de,ro,hu,bg,fr,fi,ko,it,zh"


@command
def people(
    *,
    output: Annotated[Output, Help("JSON lines.")],
    languages: Annotated[
        RequiredLanguages, Help("Wikipedias that have an article on each. Default: the 19 of Kang et al.")
    ] = _KANG,
    count: Annotated[Count, Help("People. Default: 500.")] = 500,
    popularity: Popularity,
    seed: Annotated[Seed, Help("Default: 0.")] = 0,
    wikidata: Wikidata,
    overwrite: Overwrite = False,
    json: AccountJson = False,
    quiet: Quiet = False,
) -> None:
    """Find people whom all these Wikipedias have an article on, and draw some, read often and seldom.

    Each comes with names and titles by language, year of birth, occupations, citizenships and page views. Interrupted,
    the same command goes on without asking anything twice.

    \b
    As kang:         veriglot dataset people --contact me@example.org -o people.jsonl
    As HalluVerse25: veriglot dataset people -l en,ar,tr --contact me@example.org -o people.jsonl
    """
    from veriglot.cli.generation import print_json
    from veriglot.cli.progress import Bar
    from veriglot.cli.wikipedia import Output, PeopleOrder, Servers, fetch_people, say

    tags, views_in = language_tags(languages), popularity.views_in
    counted = tags[:1] if views_in is None else () if views_in == "none" else language_tags(views_in)
    if not set(counted) <= set(tags):
        raise UsageError("`views_in` names a language that is not among --languages.")
    order = PeopleOrder(
        languages=tags,
        at_least=popularity.at_least,
        count=count,
        candidates=max(popularity.candidates or 10 * count, count),
        groups=popularity.groups,
        seed=seed,
        views_in=counted,
        views_from=iso_date(popularity.views_from),
        views_to=iso_date(popularity.views_to),
        servers=(wikidata.wikidata_server, wikidata.views_server),
    )
    path = Path(output)
    out = Output(path, order, restart=overwrite)
    if out.finished is not None:
        say(f"{path} is finished.")
        account = out.finished
    else:
        servers = Servers.of(wikidata, path.with_name(f"{path.name}.fetched"))
        with Bar(shown=not quiet, total=lambda: None) as bar:
            persons, account = fetch_people(order, servers, bar.advance)
        out.write(persons, account)
        if not quiet and not json:
            print(
                f"{account['found']:,} people found, {account['described']:,} described"
                f" ({account['without_views']:,} without a count of views), {account['written']:,} written"
            )
    if account["written"] < count:
        say(f"{account['written']:,} of the {count:,} people that were asked for.")
    if json:
        print_json(account)
