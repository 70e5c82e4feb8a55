"""`veriglot dataset articles` and `people`: the texts and the people that a study begins with."""

from __future__ import annotations

import re
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from veriglot.cli.command import Help, Option, Options, Setting, command
from veriglot.cli.console import Bar, print_json, say
from veriglot.cli.inputs import language_tags, parts
from veriglot.errors import InputError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from veriglot.wikipedia.api import AnswerCache, Wikipedia
    from veriglot.wikipedia.articles import Absent, Article, Filter, FilterChain, FilterReport
    from veriglot.wikipedia.wikidata import Person

__all__ = [
    "ArticleOrder",
    "PeopleOrder",
    "Popularity",
    "Wikidata",
    "WrittenOnce",
    "articles_about",
    "find_articles",
    "find_people",
    "read_people",
]


class Wikimedia(Options):
    """Which Wikipedias to ask, and how fast."""

    contact: Annotated[
        str | None,
        Option(
            "An e-mail or web address of yours, which Wikimedia asks for and which is sent to it.",
            "ADDRESS",
            envvar="VERIGLOT_CONTACT",
        ),
    ] = None
    rate: Annotated[
        float | None,
        Setting("Requests a second, at most. Default: 5 (Wikipedia), 1 (Wikidata), 10 (page views)."),
    ] = None
    wiki_servers: Annotated[
        tuple[str, ...],
        Setting("Other Wikipedias: TAG=URL, or a URL with {edition} in it. Default: Wikimedia's."),
    ] = ()
    fetched: Annotated[str | None, Setting("Folder where fetched answers are kept. Default: beside the output.")] = None

    def answers(self, folder: Path) -> AnswerCache:
        """What was fetched, in `folder` unless another is named."""
        from veriglot.wikipedia.api import AnswerCache

        return AnswerCache(Path(self.fetched) if self.fetched else folder)

    def pace(self, usual: float) -> float:
        """The rate that was asked for, or the usual one."""
        return self.rate if self.rate is not None else usual

    def server(self, tag: str) -> str | None:
        """The address of a Wikipedia; None for Wikimedia's own.

        Raises:
            UsageError: an address is for no Wikipedia, or holds a password.
        """
        from veriglot.wikipedia.articles import edition_of

        by_tag, pattern = self._addresses
        return by_tag.get(tag) or (pattern.replace("{edition}", edition_of(tag)) if pattern is not None else None)

    @cached_property
    def _addresses(self) -> tuple[dict[str, str], str | None]:
        """Addresses by tag, and the pattern of all others, where there is one."""
        from veriglot.http.session import checked_address
        from veriglot.records.languages import get_language

        by_tag: dict[str, str] = {}
        pattern: str | None = None
        for server in self.wiki_servers:
            match = re.fullmatch(r"([A-Za-z-]+)=(https?://.+)", server)
            checked_address((match[2] if match is not None else server).replace("{edition}", "edition"))
            if match is not None:
                by_tag[get_language(match[1]).tag] = match[2]
            elif re.match(r"https?://", server) and "{edition}" in server and pattern is None:
                pattern = server
            else:
                raise UsageError(
                    f"wiki_servers: {server!r} says not which Wikipedia it is.",
                    remedy="Write it as de=URL, or once, for all others, as a URL with {edition} in it.",
                )
        return by_tag, pattern

    def wikipedia(self, tag: str, stack: ExitStack, cache: AnswerCache) -> Wikipedia:
        """The Wikipedia of a language, whose connections end with the stack."""
        from veriglot.wikipedia.api import Wikipedia, wikipedia_session

        session = wikipedia_session(tag, contact=self.contact, server=self.server(tag), rate=self.pace(5.0))
        return Wikipedia(tag, stack.enter_context(session), cache=cache)


class Wikidata(Wikimedia):
    """Whom to ask for people, beside Wikipedias."""

    wikidata_server: Annotated[str | None, Setting("Another SPARQL server. Default: Wikidata's.")] = None
    views_server: Annotated[str | None, Setting("Another server of page views. Default: Wikimedia's.")] = None


class Popularity(Options):
    """How people are found in Wikidata and drawn by how often they are read."""

    at_least: Annotated[int | None, Setting("Articles in so many of the languages are enough. Default: in all.", 1)] = (
        None
    )
    candidates: Annotated[
        int | None, Setting("How many people, drawn at random, are described and counted. Default: 10 times count.", 1)
    ] = None
    groups: Annotated[
        int, Setting("As many people are taken from each of so many groups of equal size by page views.", 1)
    ] = 10
    views_in: Annotated[
        str | None, Setting("Wikipedias whose page views count, separated by commas; or none. Default: one, en first.")
    ] = None
    views_from: Annotated[str, Setting("Page views from this first of a month.")] = "2022-01-01"
    views_to: Annotated[str, Setting("Page views up to the day before, as Kang et al.")] = "2023-01-01"

    def counted_in(self, languages: tuple[str, ...], usual: tuple[str, ...]) -> tuple[str, ...]:
        """The languages of `languages` whose page views count, `usual` ones where none is named."""
        if self.views_in is None:
            return usual
        tags = () if self.views_in == "none" else language_tags(self.views_in)
        if not set(tags) <= set(languages):
            raise UsageError("`views_in` names a language that is not among --languages.")
        return tags

    @property
    def period(self) -> tuple[str, str]:
        """The days from and up to which page views count."""
        return _iso_date(self.views_from), _iso_date(self.views_to)


def _iso_date(text: str) -> str:
    from datetime import date

    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(f"{text!r} is no date.", remedy="Write it as 2022-01-01.") from None


@command
def articles(
    *,
    edition: Annotated[str, Option("Wikipedia edition to read, by its language.", "TAG", short="-e")],
    output: Annotated[str, Help("JSON lines.")],
    count: Annotated[int | None, Help("Articles. Default: 1000 at random through the API; otherwise all.")] = None,
    dump: Annotated[
        str | None,
        Option(
            "A dump to read instead of asking the API: ...-pages-articles.xml.bz2, or a history with every edit."
            " With --count, a random sample of it.",
            "FILE",
        ),
    ] = None,
    category: Annotated[str | None, Setting("Articles of a category, not random ones. Default: none.")] = None,
    subcategories: Annotated[int, Setting("How many levels below the category to go.", 0)] = 0,
    titles: Annotated[str | None, Option("Articles of these titles, one a line; - is standard input.", "FILE")] = None,
    people: Annotated[list[str] | None, Help("Articles about them, not random ones.")] = None,
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
    no_filters: Annotated[bool, Option("Keep every article. Default: only those that pass the filters.")] = False,
    learn: Annotated[
        bool, Setting("Ask the wikis what their maintenance templates are called, besides the table.")
    ] = True,
    strict_filters: Annotated[
        bool, Setting("Drop what a filter cannot check; otherwise it is kept, and said.")
    ] = False,
    statistics: Annotated[
        str | None,
        Setting(
            'PAGES,ARTICLES,EDITS of Special:Statistics, for a dump, such as "8000000,2900000,250000000".'
            " Default: asked of the API."
        ),
    ] = None,
    seed: int = 0,
    most_pages: Annotated[
        int | None, Setting("Stop after looking at so many pages. Default: 100 times count.", 1)
    ] = None,
    wikimedia: Wikimedia,
    overwrite: bool = False,
    json: Annotated[bool, Help("The account. Default: a table.")] = False,
    quiet: bool = False,
) -> None:
    """Fetch articles of one Wikipedia and keep those that mFAVA's filters let through.

    What each filter did is printed, and stands in OUTPUT.report.json. Interrupted, the same command goes on without
    asking anything twice.

    \b
    At random:   veriglot dataset articles -e de -n 1000 --contact me@example.org -o de.jsonl
    From a dump: veriglot dataset articles -e de -n 1000 --dump dewiki-latest-pages-articles.xml.bz2 -o de.jsonl
    """
    from veriglot.records.languages import get_language

    tag = get_language(edition).tag
    path = Path(output)
    wanted = _one_of(dump=dump, category=category, titles=titles, people=people)
    if wanted is None:
        count = count or 1000
        most_pages = most_pages or 100 * count
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
        servers=(wikimedia.server(tag), wikimedia.server("en")),
    )
    out = WrittenOnce(path, order, restart=overwrite)
    if out.finished is not None:
        say(f"{path} is finished.")
        account = out.finished
    else:
        account = find_articles(out, order, wikimedia, Path(f"{output}.fetched"), quiet=quiet)
        for warning in account["warnings"]:
            say(warning)
        if not quiet and not json:
            print("\n".join(_report_lines(account["report"])))
    if json:
        print_json(account)


def _one_of(**given: str | list[str] | None) -> str | None:
    named = [name for name, value in given.items() if value]
    if len(named) > 1:
        raise UsageError(f"--{named[0]} and --{named[1]} exclude each other.", remedy="Leave one out.")
    return named[0] if named else None


def _kinds(without: str | None) -> tuple[str, ...]:
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

    for path in people or ():
        if not Path(path).is_file():
            raise InputError("there is no such file", path=path, remedy="Check the path.")
    if people:
        return articles_about(people, tag, warn=True)
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
    output: Annotated[str, Help("JSON lines.")],
    languages: Annotated[str, Help("Wikipedias that have an article on each. Default: the 19 of Kang et al.")] = _KANG,
    count: Annotated[int, Help("People.")] = 500,
    popularity: Popularity,
    seed: int = 0,
    wikidata: Wikidata,
    overwrite: bool = False,
    json: Annotated[bool, Help("The account. Default: a table.")] = False,
    quiet: bool = False,
) -> None:
    """Find people whom all these Wikipedias have an article on, and draw some, read often and seldom.

    Each comes with names and titles by language, year of birth, occupations, citizenships and page views. Interrupted,
    the same command goes on without asking anything twice.

    \b
    As kang:         veriglot dataset people --contact me@example.org -o people.jsonl
    As HalluVerse25: veriglot dataset people -l en,ar,tr --contact me@example.org -o people.jsonl
    """
    tags = language_tags(languages)
    order = PeopleOrder(
        languages=tags,
        at_least=popularity.at_least,
        count=count,
        candidates=max(popularity.candidates or 10 * count, count),
        groups=popularity.groups,
        seed=seed,
        views_in=popularity.counted_in(tags, usual=tags[:1]),
        views_from=popularity.period[0],
        views_to=popularity.period[1],
        servers=(wikidata.wikidata_server, wikidata.views_server),
    )
    path = Path(output)
    out = WrittenOnce(path, order, restart=overwrite)
    if out.finished is not None:
        say(f"{path} is finished.")
        account = out.finished
    else:
        account = find_people(out, order, wikidata, Path(f"{output}.fetched"), quiet=quiet)
        if not quiet and not json:
            print(
                f"{account['found']:,} people found, {account['described']:,} described"
                f" ({account['without_views']:,} without a count of views), {account['written']:,} written"
            )
    if account["written"] < count:
        say(f"{account['written']:,} of the {count:,} people that were asked for.")
    if json:
        print_json(account)


def read_people(path: Path) -> Iterator[Person]:
    """The people of a file that `veriglot dataset people` wrote.

    Raises:
        InputError: the file is not one of people.
    """
    from veriglot.wikipedia.wikidata import Person

    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            yield msgspec.json.decode(line, type=Person)
        except msgspec.MsgspecError as error:
            raise InputError(
                f"this is no person ({error})",
                path=str(path),
                line=number,
                remedy="Rows are those of `veriglot dataset people`; `id` and `sitelinks` are needed.",
            ) from error


def articles_about(people: Sequence[str], language: str, *, warn: bool = False) -> tuple[str, ...]:
    """The titles of articles about the people of files; `told` says how many have none in this language."""
    titles: list[str] = []
    for path in people:
        persons = list(read_people(Path(path)))
        about = [person.titles[language] for person in persons if language in person.titles]
        titles += about
        if warn and len(about) < len(persons):
            say(f"{len(persons) - len(about):,} of the people in {path} have no article in {language}.")
    return tuple(titles)


class ArticleOrder(msgspec.Struct, frozen=True):
    """Which articles are wanted; everything in it changes the output."""

    language: str
    count: int | None
    most_pages: int | None
    seed: int
    min_characters: int
    min_depth: float
    min_edits: int
    kinds: tuple[str, ...]
    learn: bool
    strict: bool
    dump: str | None = None
    titles: tuple[str, ...] | None = None
    category: str | None = None
    subcategories: int = 0
    statistics: tuple[int, int, int] | None = None
    servers: tuple[str | None, ...] = ()


def find_articles(
    out: WrittenOnce, order: ArticleOrder, wikimedia: Wikimedia, fetched: Path, *, quiet: bool
) -> dict[str, Any]:
    """Write the articles of an order; returns the account of the filters as `report`, and `warnings` in words.

    Args:
        out: where to.
        order: which articles.
        wikimedia: which Wikipedias are asked.
        fetched: the folder of their answers, unless it names another.
        quiet: show no progress.

    Raises:
        UsageError: the edition as a whole does not pass, or no contact is given.
        InputError, HttpError: a dump or a server that does not give what it should.
    """
    from veriglot.wikipedia.articles import FilterChain
    from veriglot.wikipedia.dump import draw_articles, open_dump

    with ExitStack() as stack:
        wikis: dict[str, Wikipedia] = {}
        if order.dump is None:
            cache = stack.enter_context(wikimedia.answers(fetched))
            tags = {order.language, *(["en"] if order.kinds and order.learn else [])}
            wikis = {tag: wikimedia.wikipedia(tag, stack, cache) for tag in tags}
        wiki = wikis.get(order.language)
        filters, warnings = _filters(order, wiki, wikis.get("en"))
        chain = FilterChain(filters, strict=order.strict)
        if order.dump and order.count:
            pages = open_dump(order.dump, language=order.language)
            articles = draw_articles(pages, chain, order.count, seed=order.seed)
        else:
            bar = stack.enter_context(Bar(shown=not quiet, total=lambda: order.count))
            articles = _taken(order, _pages(order, wiki), chain, bar.advance, warnings)
        chain.report.written = len(articles)
        if wiki is not None:
            warnings += [f"the server warned, {times} times: {text}" for text, times in wiki.warnings.items()]
    account = {"report": chain.report, "warnings": warnings}
    out.write(articles, account)
    return account


def _pages(order: ArticleOrder, wiki: Wikipedia | None) -> Iterator[Article | Absent]:
    """The pages of an order, in order."""
    from veriglot.wikipedia.dump import open_dump

    if wiki is None:
        return (page.article() for page in open_dump(order.dump or "", language=order.language))
    if order.titles is not None:
        return wiki.titles(order.titles)
    if order.category is not None:
        return wiki.category(order.category, depth=order.subcategories)
    return wiki.random(seed=order.seed)


def _filters(order: ArticleOrder, wiki: Wikipedia | None, english: Wikipedia | None) -> tuple[list[Filter], list[str]]:
    """The filters of an order, the cheap ones first, and what is to be said of them."""
    from veriglot.wikipedia.articles import Depth, Edits, Length, Maintenance, Statistics

    filters: list[Filter] = []
    warnings: list[str] = []
    if order.min_depth > 0:
        statistics = wiki.statistics() if wiki is not None and order.statistics is None else None
        if order.statistics is not None:
            statistics = Statistics(*order.statistics)
        shallow = Depth(order.min_depth, statistics)
        if shallow.depth is not None and shallow.depth < order.min_depth:
            raise UsageError(
                f"The Wikipedia of this language has depth {shallow.depth:.3g}, below {order.min_depth:g}:"
                " none of its articles passes.",
                remedy="Set min_depth = 0 to take them all the same, and say so where you report on them.",
            )
        if statistics is None:
            warnings.append("the depth of the edition is not checked: a dump does not tell it; see `statistics`.")
        filters.append(shallow)
    if order.min_characters > 0:
        filters.append(Length(order.min_characters))
    if order.kinds:
        learned = wiki.linked_template_names(english, order.kinds) if order.learn and english and wiki else {}
        maintenance = Maintenance(order.language, order.kinds, learned)
        if maintenance.without_own:
            warnings.append(
                f"no maintenance template of this language is known for {', '.join(maintenance.without_own)};"
                " the English names alone are looked for."
            )
        filters.append(maintenance)
    if order.min_edits > 0:
        filters.append(Edits(order.min_edits, wiki.with_edits if wiki is not None else None))
    return filters, warnings


def _taken(
    order: ArticleOrder,
    rows: Iterator[Article | Absent],
    chain: FilterChain,
    seen: Callable[[], None],
    warnings: list[str],
) -> list[Article]:
    """The first articles that pass, as many as are wanted."""
    articles: list[Article] = []
    for row in rows:
        article = chain.judge(row)
        if article is not None:
            articles.append(article)
            seen()
        if order.count is not None and len(articles) >= order.count:
            break
        if order.most_pages is not None and chain.report.met >= order.most_pages:
            warnings.append(f"stopped after {order.most_pages:,} pages; see `most_pages`.")
            break
    if order.count is not None and len(articles) < order.count:
        warnings.append(f"{len(articles):,} of the {order.count:,} articles that were asked for.")
    return articles


def _report_lines(report: FilterReport) -> Iterator[str]:
    """The account of the filters, for a terminal."""
    yield f"{report.met:,} pages met, {report.passed:,} articles passed, {report.written:,} written"
    for reason, count in sorted(report.absent.items()):
        yield f"  {count:>9,}  no article: {reason}"
    if report.not_drawn:
        yield f"  {report.not_drawn:>9,}  not drawn"
    for filter_ in report.filters:
        yield f"  {filter_.dropped:>9,}  of {filter_.judged:,} dropped by {filter_.name}: {filter_.rule}"
        for reason, count in sorted(filter_.reasons.items(), key=lambda item: -item[1]):
            yield f"             {count:,} {reason}"
        if filter_.unchecked:
            yield f"  {filter_.unchecked:>9,}  of {filter_.judged:,} NOT CHECKED by {filter_.name}"


class PeopleOrder(msgspec.Struct, frozen=True):
    """Which people are wanted; everything in it changes the output."""

    languages: tuple[str, ...]
    at_least: int | None
    count: int
    candidates: int
    groups: int
    seed: int
    views_in: tuple[str, ...]
    views_from: str
    views_to: str
    servers: tuple[str | None, ...] = ()


def find_people(
    out: WrittenOnce, order: PeopleOrder, options: Wikidata, fetched: Path, *, quiet: bool
) -> dict[str, Any]:
    """Write the people of an order, those most read first.

    Args:
        out: where to.
        order: which people.
        options: whom to ask.
        fetched: the folder of answers, unless `options` name another.
        quiet: show no progress.

    Returns:
        How many there are (`found`), were `described`, have no count of views (`without_views`) and were `written`.

    Raises:
        UsageError: wrong languages, numbers or dates, or no contact.
        HttpError: a server that does not give what it should.
    """
    from datetime import date

    from veriglot.wikipedia.api import PageViews, page_views_session, wikidata_session
    from veriglot.wikipedia.articles import draw_diverse
    from veriglot.wikipedia.wikidata import Wikidata as Source

    days = date.fromisoformat(order.views_from), date.fromisoformat(order.views_to)
    draw = partial(draw_diverse, name=lambda person: person.id)
    with ExitStack() as stack:
        bar = stack.enter_context(Bar(shown=not quiet, total=lambda: None))
        cache = stack.enter_context(options.answers(fetched))
        session = wikidata_session(contact=options.contact, server=options.wikidata_server, rate=options.pace(1.0))
        wikidata = Source(stack.enter_context(session), cache=cache)
        candidates = list(wikidata.people(order.languages, at_least=order.at_least))
        drawn = draw(candidates, order.candidates, size=lambda _: 0, groups=1, seed=order.seed)
        people = list(wikidata.describe(drawn, order.languages))
        if order.views_in:
            counting = page_views_session(contact=options.contact, server=options.views_server, rate=options.pace(10.0))
            views = PageViews(stack.enter_context(counting), cache=cache)
            for index, person in enumerate(people):
                tags = [tag for tag in order.views_in if tag in person.titles]
                counts = {tag: views.of(tag, person.titles[tag], *days) for tag in tags}
                people[index] = msgspec.structs.replace(person, views=counts)
                bar.advance()
            chosen = draw(
                people, order.count, size=lambda person: person.all_views, groups=order.groups, seed=order.seed
            )
        else:
            chosen = draw(people, order.count, size=lambda _: 0, groups=1)
    unknown = sum(all(count is None for count in person.views.values()) for person in people) if order.views_in else 0
    account = {"found": len(candidates), "described": len(people), "without_views": unknown, "written": len(chosen)}
    out.write(chosen, account)
    return account


class WrittenOnce:
    """A file of JSON lines that is written as a whole, beside it `<name>.report.json` with what it was made by.

    Args:
        path: the file.
        order: what makes it.
        restart: write it anew, whatever is there.

    Raises:
        UsageError: something else is there.
    """

    def __init__(self, path: Path, order: msgspec.Struct, *, restart: bool) -> None:
        self.path = path
        self.report_path = path.with_name(f"{path.name}.report.json")
        self._order = msgspec.to_builtins(order)
        self.finished: dict[str, Any] | None = None
        if path.exists() and not restart:
            self.finished = self._earlier()
            if self.finished is None:
                raise UsageError(
                    f"{path} is there already, and was not made by this command with these options.",
                    remedy="Name another file, or add --overwrite to make it anew.",
                )

    def write(self, rows: Iterable[msgspec.Struct], account: dict[str, Any]) -> None:
        """Write the rows and the account; the file appears when it is whole."""
        from veriglot.storage.files import open_whole, write_json

        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open_whole(self.path) as file:
            for row in rows:
                file.write(msgspec.json.encode(row) + b"\n")
            self.path.unlink(missing_ok=True)  # first: the new account must at no moment stand beside an older output
            write_json(self.report_path, {"made_by": self._order, **account}, indent=2)

    def _earlier(self) -> dict[str, Any] | None:
        """The account of a finished output, if this order made it."""
        try:
            report = msgspec.json.decode(self.report_path.read_bytes())
        except (OSError, msgspec.DecodeError):
            return None
        same = isinstance(report, dict) and report.get("made_by") == msgspec.json.decode(
            msgspec.json.encode(self._order)
        )
        return report if same else None
