"""`veriglot build articles`: the texts that a study begins with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veriglot.cli.build_options import Json, Quiet, Restart  # noqa: TC001  # typer reads them at run time
from veriglot.cli.source_options import CacheFolder, Contact, Rate, Seed, parts, print_account
from veriglot.errors import InputError, UsageError

__all__ = ["articles"]


def articles(
    language: Annotated[
        str, typer.Option("--language", "-l", metavar="TAG", show_default=False, help="Whose Wikipedia.")
    ],
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="OUT", show_default=False, help="Where the articles go: JSON lines."),
    ],
    count: Annotated[
        int | None,
        typer.Option(
            "--count",
            "-n",
            metavar="N",
            min=1,
            help="How many articles. Default: 1000 at random through the API; otherwise all.",
        ),
    ] = None,
    dump: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A dump to read instead of asking the API: ...-pages-articles.xml.bz2, or a history with every edit."
            " With --count, a random sample of it.",
        ),
    ] = None,
    category: Annotated[
        str | None, typer.Option(metavar="NAME", help="Articles of a category, not random ones.")
    ] = None,
    subcategories: Annotated[
        int, typer.Option(metavar="N", min=0, show_default=False, help="How far below the category to go. Default: 0.")
    ] = 0,
    titles: Annotated[
        str | None, typer.Option(metavar="FILE", help="Articles of these titles, one a line; - is standard input.")
    ] = None,
    people: Annotated[
        str | None, typer.Option(metavar="FILE", help="Articles about the people of `veriglot build people`.")
    ] = None,
    min_characters: Annotated[
        int, typer.Option(metavar="N", min=0, show_default=False, help="Shorter texts are dropped. Default: 2000.")
    ] = 2000,
    min_depth: Annotated[
        float,
        typer.Option(
            metavar="N",
            min=0,
            show_default=False,
            help="The least depth of the edition: edits/articles x non-articles/articles x (1 - articles/pages)."
            " Default: 5.",
        ),
    ] = 5.0,
    min_edits: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            show_default=False,
            help="The fewest edits of an article, those by bots off. Default: 5.",
        ),
    ] = 5,
    without: Annotated[
        str | None,
        typer.Option(
            metavar="KINDS",
            show_default=False,
            help="Articles with maintenance templates of these kinds are dropped: unreferenced, more-references,"
            " failed-verification, under-construction, disputed, disambiguation; or none. Default: all but"
            " more-references.",
        ),
    ] = None,
    filters: Annotated[
        bool, typer.Option("--filters/--no-filters", show_default=False, help="Use the filters at all. Default: use.")
    ] = True,
    learn: Annotated[
        bool,
        typer.Option(
            "--learn/--no-learn",
            show_default=False,
            help="Ask the wikis what their maintenance templates are called, besides the table. Default: ask.",
        ),
    ] = True,
    strict: Annotated[
        bool, typer.Option("--strict", help="Drop what a filter cannot check. Default: keep it, and say so.")
    ] = False,
    statistics: Annotated[
        str | None,
        typer.Option(
            metavar="PAGES,ARTICLES,EDITS", help="Numbers of Special:Statistics, for a dump. Default: asked of the API."
        ),
    ] = None,
    seed: Seed = 0,
    most_pages: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Stop after looking at so many pages. Default: 100 times --count."),
    ] = None,
    contact: Contact = None,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="Another server of this Wikipedia. Default: Wikimedia's.")
    ] = None,
    english_server: Annotated[
        str | None, typer.Option(metavar="URL", help="Another server of the English one, for --learn.")
    ] = None,
    rate: Rate = None,
    cache: CacheFolder = None,
    restart: Restart = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fetch articles of one Wikipedia and keep those that mFAVA's filters let through.

    What each filter did is printed, and stands in OUT.report.json. Interrupted, the same command goes on without asking
    anything twice.

    \b
    At random:   veriglot build articles -l de -n 1000 --contact me@example.org -o de.jsonl
    From a dump: veriglot build articles -l de -n 1000 --dump dewiki-latest-pages-articles.xml.bz2 -o de.jsonl
    """
    from veriglot.cli.article_fetching import ArticleOrder, fetch_articles, report_lines
    from veriglot.cli.progress import Bar
    from veriglot.cli.sourcing import Output, Servers, say
    from veriglot.records.languages import language as known

    tag = known(language).tag
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
        min_characters=min_characters if filters else 0,
        min_depth=min_depth if filters else 0,
        min_edits=min_edits if filters else 0,
        kinds=_kinds(without) if filters else (),
        learn=learn,
        strict=strict,
        dump=dump,
        titles=_titles(titles, people, tag),
        category=category,
        subcategories=subcategories,
        statistics=_three(statistics),
        servers=(server, english_server),
    )
    out = Output(path, order, restart=restart)
    if out.finished is not None:
        say(f"{path} is finished.")
        account, warnings = out.finished, list[str]()
    else:
        folder = Path(cache) if cache else path.with_name(f"{path.name}.fetched")
        servers = Servers(contact, rate, folder, wiki=server, english=english_server)
        with Bar(shown=not quiet, total=lambda: count) as bar:
            found, report, warnings = fetch_articles(order, servers, bar.advance)
        account = {"report": report, "warnings": warnings}
        out.write(found, account)
        if not quiet and not json:
            print("\n".join(report_lines(report)))
    for warning in warnings:
        say(warning)
    if json:
        print_account(account)


def _one_of(**given: str | None) -> str | None:
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise UsageError(f"--{named[0]} and --{named[1]} exclude each other.", remedy="Leave one out.")
    return named[0] if named else None


def _kinds(without: str | None) -> tuple[str, ...]:
    from veriglot.errors import UnknownNameError
    from veriglot.sources import KINDS, MFAVA_KINDS

    if without is None:
        return MFAVA_KINDS
    kinds = tuple(dict.fromkeys(parts(without)))
    if kinds == ("none",):
        return ()
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownNameError("kind of maintenance template", kind, KINDS)
    return kinds


def _titles(titles: str | None, people: str | None, tag: str) -> tuple[str, ...] | None:
    from veriglot.cli.inputs import read_text
    from veriglot.cli.people_fetching import titles_of
    from veriglot.cli.sourcing import say

    if people is not None:
        if not Path(people).is_file():
            raise InputError("there is no such file", path=people, remedy="Check the path.")
        found, without = titles_of(Path(people), tag)
        if without:
            say(f"{without:,} of the people in {people} have no article in {tag}.")
        return found
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
