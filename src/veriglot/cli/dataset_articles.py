"""`veriglot dataset articles` and `people`: the texts and the people for a study."""

from __future__ import annotations

import re
from contextlib import ExitStack, suppress
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.cli.command import Options, command
from veriglot.cli.console import ProgressBar, print_json, say
from veriglot.cli.inputs import language_tags, parts, read_text, require_files
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.http.session import checked_address
from veriglot.records.languages import get_language
from veriglot.records.settings import Record
from veriglot.storage.files import beside, open_whole, write_json
from veriglot.wikipedia.api import (
    AnswerCache,
    JsonClient,
    Wikipedia,
    page_views,
    page_views_session,
    wikidata_session,
    wikipedia_session,
)
from veriglot.wikipedia.articles import (
    KINDS,
    MFAVA_KINDS,
    Absent,
    Article,
    Depth,
    Edits,
    Filter,
    FilterChain,
    FilterReport,
    Length,
    Maintenance,
    Statistics,
    draw_diverse,
    edition_of,
)
from veriglot.wikipedia.dump import draw_articles, open_dump
from veriglot.wikipedia.wikidata import Person
from veriglot.wikipedia.wikidata import Wikidata as Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    _Written = tuple[Iterable[msgspec.Struct], dict[str, Any]]

__all__ = [
    "ArticleRequest",
    "PeopleRequest",
    "Popularity",
    "Wikidata",
    "articles_about",
    "find_articles",
    "find_people",
    "read_people",
    "written_once",
]


class Wikimedia(Options):
    """Which Wikipedias to call, and how fast."""

    contact: str | None = None
    rate: float | None = None
    wiki_servers: tuple[str, ...] = ()
    fetched: str | None = None

    def answers(self, folder: Path) -> AnswerCache:
        """Cached answers, in `folder` unless another is given."""
        return AnswerCache(Path(self.fetched) if self.fetched else folder)

    def pace(self, usual: float) -> float:
        """The given rate, or the default."""
        return self.rate if self.rate is not None else usual

    def server(self, tag: str) -> str | None:
        """The address of a Wikipedia; None for Wikimedia's own.

        Raises:
            UsageError: an address is not of a Wikipedia, or has a password.
        """
        by_tag, pattern = self._addresses
        return by_tag.get(tag) or (pattern.replace("{edition}", edition_of(tag)) if pattern is not None else None)

    @cached_property
    def _addresses(self) -> tuple[dict[str, str], str | None]:
        """Addresses by tag, and the pattern for all others, if there is one."""
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
                    f"wiki_servers: {server!r} does not name its Wikipedia.",
                    "Write de=URL, or one URL with {edition} in it for all others.",
                )
        return by_tag, pattern

    def wikipedia(self, tag: str, stack: ExitStack, cache: AnswerCache) -> Wikipedia:
        """The Wikipedia of a language; its connections are closed with the stack."""
        session = wikipedia_session(tag, contact=self.contact, server=self.server(tag), rate=self.pace(5.0))
        return Wikipedia(tag, stack.enter_context(session), cache=cache)


class Wikidata(Wikimedia):
    """Servers for people, besides Wikipedias."""

    wikidata_server: str | None = None
    views_server: str | None = None


class Popularity(Options):
    """How people are selected in Wikidata and sampled by page views."""

    at_least: int | None = None
    candidates: int | None = None
    groups: int = 10
    views_in: str | None = None
    views_from: date = date(2022, 1, 1)
    views_to: date = date(2023, 1, 1)

    def counted_in(self, languages: tuple[str, ...], usual: tuple[str, ...]) -> tuple[str, ...]:
        """The languages of `languages` whose page views count; `usual` ones by default."""
        if self.views_in is None:
            return usual
        tags = () if self.views_in == "none" else language_tags(self.views_in)
        if not set(tags) <= set(languages):
            raise UsageError("`views_in` names a language that is not among --languages.")
        return tags


@command
def articles(
    *,
    edition: str,
    output: str,
    count: int | None = None,
    dump: str | None = None,
    category: str | None = None,
    subcategories: int = 0,
    titles: str | None = None,
    people: list[str] | None = None,
    min_characters: int = 2000,
    min_depth: float = 5.0,
    min_edits: int = 5,
    without: str | None = None,
    no_filters: bool = False,
    learn: bool = True,
    strict_filters: bool = False,
    statistics: tuple[int, int, int] | None = None,
    seed: int = 0,
    most_pages: int | None = None,
    wikimedia: Wikimedia,
    overwrite: bool = False,
    json: bool = False,
    quiet: bool = False,
) -> None:
    """Fetch articles of one Wikipedia and keep those that pass mFAVA's filters.

    The command prints what each filter did, and writes it to OUTPUT.report.json. Rerun the command to resume; it
    repeats no request.

    \b
    At random:   veriglot dataset articles -e de -n 1000 --contact me@example.org -o de.jsonl
    From a dump: veriglot dataset articles -e de -n 1000 --dump dewiki-latest-pages-articles.xml.bz2 -o de.jsonl
    """
    tag = get_language(edition).tag
    path = Path(output)
    if _one_of(dump=dump, category=category, titles=titles, people=people) is None:
        count = count or 1000
        most_pages = most_pages or 100 * count
    request = ArticleRequest(
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
        statistics=statistics,
        servers=(wikimedia.server(tag), wikimedia.server("en")),
    )
    make = partial(find_articles, request, wikimedia, beside(path, ".fetched"), quiet=quiet)
    account, is_new = written_once(path, request, make, restart=overwrite)
    for warning in account["warnings"] if is_new else [f"{path} is finished."]:
        say(warning)
    if is_new and not quiet and not json:
        print("\n".join(_report_lines(account["report"])))
    if json:
        print_json(account)


def _one_of(**given: str | list[str] | None) -> str | None:
    named = [name for name, value in given.items() if value]
    if len(named) > 1:
        raise UsageError(f"--{named[0]} and --{named[1]} exclude each other.", "Leave one out.")
    return named[0] if named else None


def _kinds(without: str | None) -> tuple[str, ...]:
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
    require_files(people or ())
    if people:
        return articles_about(people, tag, warn=True)
    return tuple(line.strip() for line in read_text(titles).splitlines() if line.strip()) if titles else None


_KANG = "en,es,ru,id,vi,fa,uk,sv,th,ja,de,ro,hu,bg,fr,fi,ko,it,zh"


@command
def people(
    *,
    output: str,
    languages: str = _KANG,
    count: int = 500,
    popularity: Popularity,
    seed: int = 0,
    wikidata: Wikidata,
    overwrite: bool = False,
    json: bool = False,
    quiet: bool = False,
) -> None:
    """Find people with an article in all these Wikipedias, and draw some, often read and rarely read ones.

    Each row has names and titles by language, year of birth, occupations, citizenships and page views. Rerun the
    command to resume; it repeats no request.

    \b
    As Kang et al.:  veriglot dataset people --contact me@example.org -o people.jsonl
    As HalluVerse25: veriglot dataset people -l en,ar,tr --contact me@example.org -o people.jsonl
    """
    tags = language_tags(languages)
    request = PeopleRequest(
        languages=tags,
        at_least=popularity.at_least,
        count=count,
        candidates=max(popularity.candidates or 10 * count, count),
        groups=popularity.groups,
        seed=seed,
        views_in=popularity.counted_in(tags, usual=tags[:1]),
        views_from=popularity.views_from,
        views_to=popularity.views_to,
        servers=(wikidata.wikidata_server, wikidata.views_server),
    )
    path = Path(output)
    make = partial(find_people, request, wikidata, beside(path, ".fetched"), quiet=quiet)
    account, is_new = written_once(path, request, make, restart=overwrite)
    if not is_new:
        say(f"{path} is finished.")
    elif not quiet and not json:
        print(
            f"{account['found']:,} people found, {account['described']:,} described"
            f" ({account['without_views']:,} without a count of views), {account['written']:,} written"
        )
    if account["written"] < count:
        say(f"{account['written']:,} of the {count:,} requested people.")
    if json:
        print_json(account)


def read_people(path: Path) -> Iterator[Person]:
    """The people in a file of `veriglot dataset people`.

    Raises:
        InputError: the file does not have people.
    """
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            yield msgspec.json.decode(line, type=Person)
        except msgspec.MsgspecError as error:
            raise InputError(
                f"this is not a person ({error})",
                "Give rows of `veriglot dataset people`, with `id` and `sitelinks`.",
                path=str(path),
                line=number,
            ) from error


def articles_about(people: Sequence[str], language: str, *, warn: bool = False) -> tuple[str, ...]:
    """The titles of articles about the people of files; `warn` reports how many have none in this language."""
    titles: list[str] = []
    for path in people:
        persons = list(read_people(Path(path)))
        about = [person.titles[language] for person in persons if language in person.titles]
        titles += about
        if warn and len(about) < len(persons):
            say(f"{len(persons) - len(about):,} of the people in {path} have no article in {language}.")
    return tuple(titles)


class ArticleRequest(Record):
    """Specification of articles; every field changes the output."""

    language: str
    seed: int
    servers: tuple[str | None, ...]
    count: int | None = None
    most_pages: int | None = None
    min_characters: int = 0
    min_depth: float = 0
    min_edits: int = 0
    kinds: tuple[str, ...] = ()
    learn: bool = False
    strict: bool = False
    dump: str | None = None
    titles: tuple[str, ...] | None = None
    category: str | None = None
    subcategories: int = 0
    statistics: tuple[int, int, int] | None = None


def find_articles(request: ArticleRequest, wikimedia: Wikimedia, fetched: Path, *, quiet: bool) -> _Written:
    """The articles of a specification, with the filters' statistics as `report`, and `warnings` in words.

    Args:
        request: what to find.
        wikimedia: the Wikipedias.
        fetched: folder of cached answers, unless `wikimedia` has another.
        quiet: show no progress.

    Raises:
        UsageError: the whole edition fails a filter, or no contact is given.
        InputError, HttpError: an invalid dump, or an error of a server.
    """
    with ExitStack() as stack:
        wikis: dict[str, Wikipedia] = {}
        if request.dump is None:
            cache = stack.enter_context(wikimedia.answers(fetched))
            tags = {request.language, *(["en"] if request.kinds and request.learn else [])}
            wikis = {tag: wikimedia.wikipedia(tag, stack, cache) for tag in tags}
        wiki = wikis.get(request.language)
        filters, warnings = _filters(request, wiki, wikis.get("en"))
        chain = FilterChain(filters, strict=request.strict)
        if request.dump and request.count:
            pages = open_dump(request.dump, language=request.language)
            articles = draw_articles(pages, chain, request.count, seed=request.seed)
        else:
            bar = stack.enter_context(ProgressBar(shown=not quiet, total=lambda: request.count))
            articles = _taken(request, _pages(request, wiki), chain, bar.advance, warnings)
        chain.report.written = len(articles)
        if wiki is not None:
            warnings += [f"the server warned, {times} times: {text}" for text, times in wiki.warnings.items()]
    return articles, {"report": chain.report, "warnings": warnings}


def _pages(request: ArticleRequest, wiki: Wikipedia | None) -> Iterator[Article | Absent]:
    """The pages of a request, in order."""
    if wiki is None:
        return (page.article() for page in open_dump(request.dump or "", language=request.language))
    if request.titles is not None:
        return wiki.titles(request.titles)
    if request.category is not None:
        return wiki.category(request.category, depth=request.subcategories)
    return wiki.random(seed=request.seed)


def _filters(
    request: ArticleRequest, wiki: Wikipedia | None, english: Wikipedia | None
) -> tuple[list[Filter], list[str]]:
    """The filters of a specification, the cheap ones first, and warnings about them."""
    filters: list[Filter] = []
    warnings: list[str] = []
    if request.min_depth > 0:
        statistics = wiki.statistics() if wiki is not None and request.statistics is None else None
        if request.statistics is not None:
            statistics = Statistics(*request.statistics)
        shallow = Depth(request.min_depth, statistics)
        if shallow.depth is not None and shallow.depth < request.min_depth:
            raise UsageError(
                f"The Wikipedia of this language has depth {shallow.depth:.3g}, below {request.min_depth:g}:"
                " none of its articles passes.",
                "Set min_depth = 0 to keep them, and say so in your report.",
            )
        if statistics is None:
            warnings.append("the depth of the edition is not checked: a dump does not state it; set `statistics`.")
        filters.append(shallow)
    if request.min_characters > 0:
        filters.append(Length(request.min_characters))
    if request.kinds:
        learned = wiki.linked_template_names(english, request.kinds) if request.learn and english and wiki else {}
        maintenance = Maintenance(request.language, request.kinds, learned)
        if maintenance.without_own:
            warnings.append(
                f"no maintenance template of this language is known for {', '.join(maintenance.without_own)};"
                " only the English names are searched for."
            )
        filters.append(maintenance)
    if request.min_edits > 0:
        filters.append(Edits(request.min_edits, wiki.with_edits if wiki is not None else None))
    return filters, warnings


def _taken(
    request: ArticleRequest,
    rows: Iterator[Article | Absent],
    chain: FilterChain,
    seen: Callable[[], None],
    warnings: list[str],
) -> list[Article]:
    """The first articles that pass, up to the wanted number."""
    articles: list[Article] = []
    for row in rows:
        article = chain.judge(row)
        if article is not None:
            articles.append(article)
            seen()
        if request.count is not None and len(articles) >= request.count:
            break
        if request.most_pages is not None and chain.report.met >= request.most_pages:
            warnings.append(f"stopped after {request.most_pages:,} pages; see `most_pages`.")
            break
    if request.count is not None and len(articles) < request.count:
        warnings.append(f"{len(articles):,} of the {request.count:,} articles that were asked for.")
    return articles


def _report_lines(report: FilterReport) -> Iterator[str]:
    """The statistics of the filters, for a terminal."""
    yield f"{report.met:,} pages met, {report.passed:,} articles passed, {report.written:,} written"
    for reason, count in sorted(report.absent.items()):
        yield f"  {count:>9,}  no article: {reason}"
    if report.not_drawn:
        yield f"  {report.not_drawn:>9,}  not drawn"
    for filter_ in report.filters:
        yield f"  {filter_.dropped:>9,}  of {filter_.judged:,} dropped by {filter_.name}: {filter_.rule}"
        for reason, count in filter_.reasons.most_common():
            yield f"             {count:,} {reason}"
        if filter_.unchecked:
            yield f"  {filter_.unchecked:>9,}  of {filter_.judged:,} NOT CHECKED by {filter_.name}"


class PeopleRequest(Record):
    """Specification of people; every field changes the output."""

    languages: tuple[str, ...]
    count: int
    candidates: int
    seed: int
    servers: tuple[str | None, ...]
    at_least: int | None = None
    groups: int = 1
    views_in: tuple[str, ...] = ()
    views_from: date = Popularity.views_from
    views_to: date = Popularity.views_to


def find_people(request: PeopleRequest, options: Wikidata, fetched: Path, *, quiet: bool) -> _Written:
    """The people of a specification, most read first.

    Args:
        request: what to find.
        options: the servers.
        fetched: folder of cached answers, unless `options` has another.
        quiet: show no progress.

    Returns:
        The people, and how many exist (`found`), were `described`, have no page views (`without_views`) and are
        `written`.

    Raises:
        UsageError: invalid languages, numbers or dates, or no contact.
        HttpError: an error of a server.
    """
    draw = partial(draw_diverse, name=lambda person: person.id)
    with ExitStack() as stack:
        bar = stack.enter_context(ProgressBar(shown=not quiet, total=lambda: None))
        cache = stack.enter_context(options.answers(fetched))
        session = wikidata_session(contact=options.contact, server=options.wikidata_server, rate=options.pace(1.0))
        wikidata = Source(stack.enter_context(session), cache=cache)
        candidates = list(wikidata.people(request.languages, at_least=request.at_least))
        drawn = draw(candidates, request.candidates, size=lambda _: 0, groups=1, seed=request.seed)
        people = list(wikidata.describe(drawn, request.languages))
        if request.views_in:
            counting = page_views_session(contact=options.contact, server=options.views_server, rate=options.pace(10.0))
            answers = JsonClient(stack.enter_context(counting), cache)
            for index, person in enumerate(people):
                tags = [tag for tag in request.views_in if tag in person.titles]
                counts = {
                    tag: page_views(answers, tag, person.titles[tag], request.views_from, request.views_to)
                    for tag in tags
                }
                people[index] = msgspec.structs.replace(person, views=counts)
                bar.advance()
            chosen = draw(
                people, request.count, size=lambda person: person.all_views, groups=request.groups, seed=request.seed
            )
        else:
            chosen = draw(people, request.count, size=lambda _: 0, groups=1)
    unknown = sum(all(count is None for count in person.views.values()) for person in people) if request.views_in else 0
    account = {"found": len(candidates), "described": len(people), "without_views": unknown, "written": len(chosen)}
    return chosen, account


def written_once(
    path: Path, request: msgspec.Struct, make: Callable[[], _Written], *, restart: bool
) -> tuple[dict[str, Any], bool]:
    """The report of a file of JSON lines that is written as a whole, and whether it was written now.

    Beside the file, `<name>.report.json` has the report and the specification.

    Args:
        path: the file.
        request: what to find.
        make: returns the rows, and the report, which is complete after the last row.
        restart: replace an existing file.

    Raises:
        UsageError: the file exists and has another specification.
    """
    report, made_by = beside(path, ".report.json"), msgspec.json.decode(msgspec.json.encode(request))
    if path.exists() and not restart:
        with suppress(OSError, msgspec.DecodeError):
            account = msgspec.json.decode(report.read_bytes(), type=dict[str, Any])
            if account.get("made_by") == made_by:
                return account, False
        raise UsageError(
            f"{path} already exists, and was not made by this command with these options.",
            "Name another file, or add --overwrite to replace it.",
        )
    rows, account = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_whole(path) as file:
        file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)
        path.unlink(missing_ok=True)  # first: a new report must never be beside an older output
        write_json(report, {"made_by": made_by, **account}, indent=2)
    return {"made_by": made_by, **account}, True
