"""The work of `veriglot dataset articles` and `people`: fetch or read, filter, draw a sample, and account for it."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import date

    from veriglot.cli.options import Wikimedia
    from veriglot.http.session import Session
    from veriglot.wikipedia.api import AnswerCache, PageViews, Wikipedia
    from veriglot.wikipedia.articles import Absent, Article, Filter, FilterChain, FilterReport, Statistics
    from veriglot.wikipedia.wikidata import Person

__all__ = [
    "ArticleOrder",
    "Output",
    "PeopleOrder",
    "Servers",
    "WikiServers",
    "fetch_articles",
    "fetch_people",
    "report_lines",
    "say",
    "titles_of",
]


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


def fetch_articles(
    order: ArticleOrder, servers: Servers, seen: Callable[[], None]
) -> tuple[list[Article], FilterReport, list[str]]:
    """The articles of an order.

    Args:
        order: what is wanted.
        servers: whom to ask.
        seen: called for every article that passes.

    Returns:
        The articles, the account of the filters, and warnings in words.

    Raises:
        UsageError: the edition as a whole does not pass, or no contact is given.
        InputError, HttpError: a dump or a server that does not give what it should.
    """
    from veriglot.wikipedia.api import AnswerCache
    from veriglot.wikipedia.articles import FilterChain

    with ExitStack() as stack:
        source = _Source(order, servers, stack, lambda: stack.enter_context(AnswerCache(servers.cache)))
        filters, warnings = _filters(order, source)
        chain = FilterChain(filters, strict=order.strict)
        articles = _drawn(order, chain, seen) if order.dump and order.count else None
        if articles is None:
            articles = _taken(order, source.rows(), chain, seen, warnings)
        chain.report.written = len(articles)
        if source.wiki is not None:
            warnings += [f"the server warned, {times} times: {text}" for text, times in source.wiki.warnings.items()]
        return articles, chain.report, warnings


class _Source:
    """The pages of an order, and the wikis behind them, opened when they are first asked."""

    def __init__(
        self, order: ArticleOrder, servers: Servers, stack: ExitStack, open_cache: Callable[[], AnswerCache]
    ) -> None:
        self._order = order
        self._servers = servers
        self._stack = stack
        self._open_cache = open_cache
        self._kept: AnswerCache | None = None
        self.wiki = None if order.dump else self.open(order.language, servers.wiki)

    def open(self, language: str, server: str | None) -> Wikipedia:
        """A Wikipedia, whose connections end with the stack."""
        from veriglot.wikipedia.api import Wikipedia, wikipedia_session

        self._kept = self._kept or self._open_cache()
        session: Session = wikipedia_session(
            language, contact=self._servers.contact, server=server, rate=self._servers.pace(5.0)
        )
        return Wikipedia(language, self._stack.enter_context(session), cache=self._kept)

    def rows(self) -> Iterator[Article | Absent]:
        """The pages, in order."""
        from veriglot.wikipedia.dump import read_dump

        order = self._order
        if order.dump is not None:
            return read_dump(order.dump, language=order.language)
        assert self.wiki is not None
        if order.titles is not None:
            return self.wiki.titles(order.titles)
        if order.category is not None:
            return self.wiki.category(order.category, depth=order.subcategories)
        return self.wiki.random(seed=order.seed)


def _filters(order: ArticleOrder, source: _Source) -> tuple[list[Filter], list[str]]:
    """The filters of an order, the cheap ones first, and what is to be said of them."""
    from veriglot.wikipedia.articles import (
        Depth,
        Edits,
        Length,
        Maintenance,
    )

    filters: list[Filter] = []
    warnings: list[str] = []
    if order.min_depth > 0:
        statistics = _statistics(order, source)
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
        more: dict[str, list[str]] = {}
        if source.wiki is not None and order.learn:
            english = source.wiki
            if source.wiki.edition != "en":
                english = source.open("en", source._servers.english)
            from veriglot.wikipedia.api import linked_template_names

            more = linked_template_names(english, source.wiki, order.kinds)
        maintenance = Maintenance(order.language, order.kinds, more)
        if maintenance.without_own:
            warnings.append(
                f"no maintenance template of this language is known for {', '.join(maintenance.without_own)};"
                " the English names alone are looked for."
            )
        filters.append(maintenance)
    if order.min_edits > 0:
        filters.append(Edits(order.min_edits, source.wiki.with_edits if source.wiki is not None else None))
    return filters, warnings


def _statistics(order: ArticleOrder, source: _Source) -> Statistics | None:
    from veriglot.wikipedia.articles import Statistics

    if order.statistics is not None:
        pages, articles, edits = order.statistics
        return Statistics(pages=pages, articles=articles, edits=edits)
    return source.wiki.statistics() if source.wiki is not None else None


def _drawn(order: ArticleOrder, chain: FilterChain, seen: Callable[[], None]) -> list[Article]:
    from veriglot.wikipedia.dump import draw_articles, open_dump

    assert order.dump is not None
    assert order.count is not None
    articles = draw_articles(open_dump(order.dump, language=order.language), chain, order.count, seed=order.seed)
    for _ in articles:
        seen()
    return articles


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


def report_lines(report: FilterReport) -> Iterator[str]:
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


def fetch_people(order: PeopleOrder, servers: Servers, seen: Callable[[], None]) -> tuple[list[Person], dict[str, Any]]:
    """The people of an order.

    Returns:
        The people, those most read first, and the account: how many there are, were described, counted and written.

    Raises:
        UsageError: wrong languages, numbers or dates, or no contact.
        HttpError: a server that does not give what it should.
    """
    from datetime import date

    from veriglot.wikipedia.api import AnswerCache, PageViews, page_views_session, wikidata_session
    from veriglot.wikipedia.articles import draw_diverse
    from veriglot.wikipedia.wikidata import Wikidata

    start, end = date.fromisoformat(order.views_from), date.fromisoformat(order.views_to)
    with ExitStack() as stack:
        cache = stack.enter_context(AnswerCache(servers.cache))
        session = wikidata_session(contact=servers.contact, server=servers.wikidata, rate=servers.pace(1.0))
        wikidata = Wikidata(stack.enter_context(session), cache=cache)
        candidates = list(wikidata.people(order.languages, at_least=order.at_least))
        drawn = draw_diverse(
            candidates, order.candidates, size=lambda _: 0, name=lambda person: person.id, groups=1, seed=order.seed
        )
        people = list(wikidata.describe(drawn, order.languages))
        if order.views_in:
            pace = servers.pace(10.0)
            counting = page_views_session(contact=servers.contact, server=servers.views, rate=pace)
            views = PageViews(stack.enter_context(counting), cache=cache)
            people = [_counted(person, views, order.views_in, start, end, seen) for person in people]
            chosen = draw_diverse(
                people,
                order.count,
                size=lambda person: person.all_views,
                name=lambda person: person.id,
                groups=order.groups,
                seed=order.seed,
            )
        else:
            chosen = draw_diverse(people, order.count, size=lambda _: 0, name=lambda person: person.id, groups=1)
    unknown = sum(all(count is None for count in person.views.values()) for person in people) if order.views_in else 0
    account = {"found": len(candidates), "described": len(people), "without_views": unknown, "written": len(chosen)}
    return chosen, account


def _counted(
    person: Person, views: PageViews, languages: Iterable[str], start: date, end: date, seen: Callable[[], None]
) -> Person:
    counts = {tag: views.of(tag, person.titles[tag], start, end) for tag in languages if tag in person.titles}
    seen()
    return msgspec.structs.replace(person, views=counts)


def titles_of(people: Path, language: str) -> tuple[tuple[str, ...], int]:
    """The titles of articles about the people of a file that `veriglot dataset people` wrote.

    Returns:
        The titles, and of how many people the file names none in this language.

    Raises:
        InputError: the file is not one of people.
    """
    from veriglot.wikipedia.wikidata import Person

    titles: list[str] = []
    without = 0
    for number, line in enumerate(people.read_bytes().splitlines(), 1):
        try:
            person = msgspec.json.decode(line, type=Person)
        except msgspec.MsgspecError as error:
            raise InputError(f"this is no person ({error})", path=str(people), line=number) from error
        if language in person.titles:
            titles.append(person.titles[language])
        else:
            without += 1
    return tuple(titles), without


@dataclass(frozen=True)
class Servers:
    """Where to ask, and how.

    Attributes:
        contact: an e-mail or web address that Wikimedia is told.
        rate: requests a second; None for what each service takes well.
        cache: the folder of fetched answers.
        wiki, english, wikidata, views: other addresses than Wikimedia's own.
    """

    contact: str | None
    rate: float | None
    cache: Path
    wiki: str | None = None
    english: str | None = None
    wikidata: str | None = None
    views: str | None = None

    @classmethod
    def of(cls, options: Wikimedia, folder: Path, language: str | None = None) -> Servers:
        """As the options say: for the Wikipedia of a language, with answers in `folder` unless they name another."""
        wikis = WikiServers(options.wiki_servers or ())
        return cls(
            options.contact,
            options.rate,
            Path(options.fetched) if options.fetched else folder,
            wiki=None if language is None else wikis.of(language),
            english=wikis.of("en"),
            wikidata=getattr(options, "wikidata_server", None),
            views=getattr(options, "views_server", None),
        )

    def pace(self, usual: float) -> float:
        """The rate that was asked for, or the usual one."""
        return self.rate if self.rate is not None else usual


class WikiServers:
    """Which server has the Wikipedia of a language.

    Args:
        given: `TAG=URL` for one language, or a URL for all others, in which `{edition}` stands for the edition.

    Raises:
        UsageError: something else, or an address that holds a password.
    """

    def __init__(self, given: Sequence[str]) -> None:
        from veriglot.http.session import checked_address
        from veriglot.records.languages import get_language as known

        self._by_tag: dict[str, str] = {}
        self._pattern: str | None = None
        for server in given:
            match = re.fullmatch(r"([A-Za-z-]+)=(https?://.+)", server)
            checked_address((match[2] if match is not None else server).replace("{edition}", "edition"))
            if match is not None:
                self._by_tag[known(match[1]).tag] = match[2]
            elif re.match(r"https?://", server) and "{edition}" in server and self._pattern is None:
                self._pattern = server
            else:
                raise UsageError(
                    f"wiki_servers: {server!r} says not which Wikipedia it is.",
                    remedy="Write it as de=URL, or once, for all others, as a URL with {edition} in it.",
                )

    def of(self, tag: str) -> str | None:
        """The address of a Wikipedia; None for Wikimedia's own."""
        from veriglot.wikipedia.articles import edition_of

        if tag in self._by_tag:
            return self._by_tag[tag]
        return self._pattern.replace("{edition}", edition_of(tag)) if self._pattern is not None else None


class Output:
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
            told = msgspec.json.decode(self.report_path.read_bytes())
        except (OSError, msgspec.DecodeError):
            return None
        same = isinstance(told, dict) and told.get("made_by") == msgspec.json.decode(msgspec.json.encode(self._order))
        return told if same else None


def say(text: str) -> None:
    """A line on standard error."""
    print(f"veriglot: {text}", file=sys.stderr)
