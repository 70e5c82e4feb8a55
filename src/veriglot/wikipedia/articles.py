"""Articles of Wikipedias: the record, the editions, and filters of articles (mFAVA, section 4, A.5) with their account.

A filter keeps an article, drops it for a reason, or cannot judge it. What cannot be judged is kept and says so
(`Article.unchecked`), or dropped where the caller is strict; it is never counted as having passed.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import islice, pairwise, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from veriglot.errors import UnknownNameError, UsageError
from veriglot.plugins import packaged
from veriglot.records.languages import get_language
from veriglot.records.settings import Record
from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = [
    "KINDS",
    "MFAVA_KINDS",
    "Absent",
    "Article",
    "Depth",
    "Edits",
    "Filter",
    "FilterChain",
    "FilterReport",
    "Length",
    "Maintenance",
    "Statistics",
    "draw_diverse",
    "draw_rank",
    "edition_of",
    "split_sections",
    "table",
    "wiki_url",
]

T = TypeVar("T")

KINDS = ("unreferenced", "more-references", "failed-verification", "under-construction", "disputed", "disambiguation")
"""What maintenance templates say: no source at all; too few; a source that does not say it; unfinished; doubted; no
article."""

MFAVA_KINDS = ("unreferenced", "failed-verification", "under-construction", "disputed", "disambiguation")
"""Those that mFAVA leaves out (A.5): unfinished or not verified; and pages that are no articles."""

_HEADING = re.compile(r"^(={1,6})[ \t]*(.*?)[ \t]*\1[ \t]*$")


@cache
def table(name: str) -> dict[str, Any]:
    """A table of this package's data, such as `editions`."""
    return packaged(__package__, f"{name}.json", dict[str, Any])


class Article(Record, omit_defaults=True):
    """One article of one Wikipedia, as it stood at one revision.

    Attributes:
        id: `<language>-<page id>`, unique in a file.
        language: BCP 47 tag that was asked for; an edition in several scripts (zh, sr) keeps its text as written.
        title: the page's title, with spaces.
        page_id: the page's number in its Wikipedia.
        revision: the number of the revision that the text is of; None where the source does not say.
        url: the address of the page.
        text: plain text, paragraphs and headings on lines of their own; without tables, references and what templates
            would show (from a dump), or as TextExtracts gives it (from the API).
        lead: the text before the first heading, which the mFAVA study uses as reference (section A.5).
        categories: names without their namespace, those meant for maintenance included.
        templates: names without their namespace of the templates that the page uses; from the API also those that
            templates use.
        timestamp: when the revision was made, ISO 8601.
        size: bytes of wikitext, or None.
        edits: how many edits the page has had, or None where nobody counted.
        bot_edits: those of `edits` by accounts marked as bots, or None.
        editors: how many accounts and addresses edited it, or None.
        item: the Wikidata item, such as `Q42`, or None.
        unchecked: the filters that could not judge the article, for want of data.
    """

    id: str
    language: str
    title: str
    page_id: int
    url: str
    text: str
    lead: str
    revision: int | None = None
    categories: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    timestamp: str | None = None
    size: int | None = None
    edits: int | None = None
    bot_edits: int | None = None
    editors: int | None = None
    item: str | None = None
    unchecked: tuple[str, ...] = ()


class Absent(Record):
    """A page that was met and gives no article.

    Attributes:
        title: the title, as it was asked for or met.
        reason: `missing`, `invalid title`, `redirect`, `disambiguation`, `not an article` or `no text`.
    """

    title: str
    reason: str


def split_sections(marked: str) -> tuple[str, str]:
    """Text and lead of a text whose headings are written `== Heading ==`.

    Headings lose their marks; those with no text of their own or below them are left out, runs of empty lines become
    one.

    Returns:
        The whole text, and the part of it before the first heading.
    """
    lines: list[str] = []
    lead: str | None = None
    pending: list[tuple[int, str]] = []  # headings that no text has followed yet: depth, words
    for line in marked.splitlines():
        match = _HEADING.match(line.strip())
        if match and match[2]:
            if lead is None:
                lead = "\n".join(lines)
            depth = len(match[1])
            pending = [*(heading for heading in pending if heading[0] < depth), (depth, match[2])]
            continue
        text = line.rstrip()
        if text:
            for _, words in pending:
                lines += ["", words] if lines and lines[-1] else [words]
            pending = []
        if text or (lines and lines[-1] and not pending):
            lines.append(text)
    whole = "\n".join(lines)
    return whole.strip(), (whole if lead is None else lead).strip()


def edition_of(tag: str) -> str:
    """The edition of a language, by the first part of its host: `de`; `zh` for `zh-Hant`, `zh-yue` for Cantonese.

    Args:
        tag: anything that `records.language` takes.

    Raises:
        UnknownNameError: no such language.
        UsageError: there is no Wikipedia in it.
    """
    known = get_language(tag)
    exceptions = table("editions")  # an empty name: there is no edition
    edition: str = exceptions.get(known.tag, exceptions.get(known.base, known.base))
    if not edition:
        raise UsageError(f"There is no Wikipedia in {known.name}.")
    return edition


def wiki_url(edition: str, title: str = "") -> str:
    """The address of an edition, with the slash at its end that Wikidata writes, or of a page of it."""
    return f"https://{edition}.wikipedia.org/" + (f"wiki/{quote(title.replace(' ', '_'))}" if title else "")


class Statistics(Record):
    """Numbers of an edition, as on its Special:Statistics.

    Attributes:
        pages: all pages, those of discussions, users, files and redirects included.
        articles: content pages.
        edits: all edits since the wiki was set up.
    """

    pages: int
    articles: int
    edits: int

    @property
    def depth(self) -> float:
        """How collaboratively the edition is edited, at least 0: English about 1,000, those that bots filled near 0.

        `depth = edits / articles * non_articles / articles * (1 - articles / pages)`, with `non_articles = pages -
        articles`: Meta-Wiki's "Wikipedia article depth", which Alshahrani et al. (2023), "DEPTH+: An Enhanced Depth
        Metric for Wikipedia Corpora Quality" (TrustNLP), take up and mFAVA (section 4) cites.

        Raises:
            UsageError: numbers that no wiki has: below 0, no article, or more articles than pages.
        """
        if self.articles <= 0 or self.edits < 0 or self.pages < self.articles:
            raise UsageError(
                f"{self.pages} pages, {self.articles} articles and {self.edits} edits are no statistics of a wiki."
            )
        others = self.pages - self.articles
        return self.edits / self.articles * (others / self.articles) * (1 - self.articles / self.pages)


# Filters.


class FilterDecision(NamedTuple):
    """What a filter says of an article.

    Attributes:
        article: the article, with what the filter had to look up.
        passes: True, False, or None where it cannot be judged.
        reason: why not, in a few words that many articles share; says nothing where it passes.
    """

    article: Article
    passes: bool | None
    reason: str = ""


class Filter(Protocol):
    """Judges articles one by one.

    Attributes:
        name: one word.
        rule: what an article needs, in words, with the numbers.
    """

    name: str
    rule: str

    def judge(self, article: Article) -> FilterDecision:
        """Look at one article."""


class Length:
    """At least so many characters (code points) of text.

    Args:
        minimum: mFAVA asks for 2,000.
    """

    name = "length"

    def __init__(self, minimum: int = 2000) -> None:
        self._minimum = minimum
        self.rule = f"at least {minimum:,} characters"

    def judge(self, article: Article) -> FilterDecision:
        """Count the characters of the text."""
        return FilterDecision(article, len(article.text) >= self._minimum, "too short")


class Maintenance:
    """No maintenance template of the given kinds: what editors of a Wikipedia say is wrong with an article.

    `maintenance_templates.json` holds names by edition and kind. The English names count in every edition, as most
    keep them as redirects. The table was written down without access to the wikis; what they say themselves, which
    template of an edition belongs to an English one, is better where it can be asked.

    Args:
        language: whose Wikipedia.
        kinds: those of `KINDS` that count.
        more: kind -> further names, such as `Wikipedia.linked_template_names` gives.

    Attributes:

        without_own: the kinds of which no name of the edition's own is known, in order; only the English ones are
            recognised.

    Raises:
        UnknownNameError: no such language or kind.
    """

    name = "maintenance"

    def __init__(
        self, language: str, kinds: Iterable[str] = MFAVA_KINDS, more: Mapping[str, Iterable[str]] | None = None
    ) -> None:
        self.kinds = tuple(kinds)
        for kind in (*self.kinds, *(more or {})):
            if kind not in KINDS:
                raise UnknownNameError("kind of maintenance template", kind, KINDS)
        edition, names = edition_of(language), table("maintenance_templates")
        own = {kind: [*names.get(edition, {}).get(kind, ()), *(more or {}).get(kind, ())] for kind in self.kinds}
        self.without_own = tuple(kind for kind in self.kinds if not own[kind])
        self._kind_of = {  # the first kind of a name counts
            _key(name): kind for kind in reversed(self.kinds) for name in (*own[kind], *names["en"].get(kind, ()))
        }
        self.rule = f"no template of {', '.join(self.kinds)} ({len(self._kind_of):,} names)"

    def judge(self, article: Article) -> FilterDecision:
        """Look through the article's templates; one that several kinds mark is counted with the first."""
        marks = self.marks(article.templates)
        return FilterDecision(article, not marks, next((kind for kind in self.kinds if kind in marks), ""))

    def marks(self, templates: Iterable[str]) -> dict[str, str]:
        """Kind -> the first of the templates that is of this kind.

        Args:
            templates: names without their namespace.
        """
        named = [(self._kind_of.get(_key(name)), name) for name in templates]
        return {kind: name for kind, name in reversed(named) if kind is not None}


def _key(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()


class Depth:
    """The article's Wikipedia has at least this depth.

    Args:
        minimum: mFAVA asks for 5.
        statistics: of the edition; None where nobody knows.
    """

    name = "depth"

    def __init__(self, minimum: float = 5.0, statistics: Statistics | None = None) -> None:
        self.depth = statistics.depth if statistics is not None else None
        self._minimum = minimum
        shown = "unknown" if self.depth is None else f"{self.depth:.4g}"
        self.rule = f"a Wikipedia of depth at least {minimum:g}; this one's is {shown}"

    def judge(self, article: Article) -> FilterDecision:
        """The same for every article of the edition."""
        if self.depth is None:
            return FilterDecision(article, None, "no statistics of the edition")
        return FilterDecision(article, self.depth >= self._minimum, "shallow edition")


class Edits:
    """At least so many edits by people: mFAVA's footnote 4 reads depth as "the number of collaborative edits".

    Edits by bots are taken off where they are known.

    Args:
        minimum: mFAVA's number is 5.
        look_up: fills in an article's numbers where they are missing, such as `Wikipedia.with_edits`.
    """

    name = "edits"

    def __init__(self, minimum: int = 5, look_up: Callable[[Article], Article] | None = None) -> None:
        self._minimum = minimum
        self._look_up = look_up
        self.rule = f"at least {minimum:,} edits by people"

    def judge(self, article: Article) -> FilterDecision:
        """Count, after looking up."""
        if article.edits is None and self._look_up is not None:
            article = self._look_up(article)
        if article.edits is None:
            return FilterDecision(article, None, "number of edits unknown")
        return FilterDecision(article, article.edits - (article.bot_edits or 0) >= self._minimum, "too few edits")


class FilterCount(msgspec.Struct):
    """What one filter did; `judged = passed + dropped + unchecked`.

    Attributes:
        name: the filter's.
        rule: what it asks for.
        judged: articles that came to it.
        passed: those that pass; `kept` in files.
        dropped: those that do not.
        unchecked: those it could not judge.
        reasons: reason -> how often, of `dropped` and `unchecked`.
    """

    name: str
    rule: str
    judged: int = 0
    passed: int = msgspec.field(default=0, name="kept")
    dropped: int = 0
    unchecked: int = 0
    reasons: Counter[str] = msgspec.field(default_factory=Counter)


class FilterReport(msgspec.Struct):
    """What became of every page that was met; `met = passed + sum of what was absent, not drawn or dropped`.

    Attributes:
        met: pages.
        absent: reason -> pages that give no article.
        not_drawn: pages of a dump that the draw passed over before any filter saw them.
        filters: in the order in which articles came to them; one that was dropped comes to no further filter.
        passed: articles that came through all of them, those included that some filter could not check.
        written: those of `passed` that were wanted.
    """

    met: int = 0
    absent: Counter[str] = msgspec.field(default_factory=Counter)
    not_drawn: int = 0
    filters: list[FilterCount] = []
    passed: int = 0
    written: int = 0


class FilterChain:
    """Filters in order, and the account of them.

    Args:
        filters: the cheap ones first; an article goes from one to the next as long as it is not dropped.
        strict: drop what a filter cannot judge.

    Attributes:
        report: the account, up to date at any time.
    """

    def __init__(self, filters: Sequence[Filter], *, strict: bool = False) -> None:
        self._filters = tuple(filters)
        self._strict = strict
        self.report = FilterReport(filters=[FilterCount(filter_.name, filter_.rule) for filter_ in filters])

    def judge(self, row: Article | Absent) -> Article | None:
        """The article, with what was looked up and what could not be checked; None where it is dropped or absent."""
        self.report.met += 1
        if isinstance(row, Absent):
            self.report.absent[row.reason] += 1
            return None
        unchecked = []
        for filter_, count in zip(self._filters, self.report.filters, strict=True):
            row, passes, reason = filter_.judge(row)
            count.judged += 1
            count.passed += passes is True
            count.dropped += passes is False
            count.unchecked += passes is None
            if not passes:
                count.reasons[reason] += 1
                if passes is False or self._strict:
                    return None
                unchecked.append(filter_.name)
        self.report.passed += 1
        return msgspec.structs.replace(row, unchecked=tuple(unchecked)) if unchecked else row

    def filter(self, rows: Iterable[Article | Absent]) -> Iterator[Article]:
        """Those that pass, in order."""
        return (article for row in rows if (article := self.judge(row)) is not None)


def draw_diverse(
    items: Iterable[T],
    count: int,
    *,
    size: Callable[[T], float],
    name: Callable[[T], str],
    groups: int = 10,
    seed: int = 0,
) -> list[T]:
    """A random sample spread over sizes: as many of each group of equal length by size.

    Kang et al. take 500 people "based on diverse page view counts" and says no more; this is one way to do it, stated.

    Args:
        items: what to draw from.
        count: how many.
        size: what to spread over.
        name: tells the items apart; ranks and ties hang on it.
        groups: into how many parts the items, sorted by size, are cut.
        seed: other seeds, other samples.

    Returns:
        The sample by falling size; all items where there are no more than `count`.

    Raises:
        UsageError: a count or number of groups below 1.
    """
    if count < 1 or groups < 1:
        raise UsageError(f"A sample of {count} in {groups} groups cannot be drawn.")
    ordered = sorted(items, key=lambda item: (-size(item), name(item)))
    if len(ordered) <= count:
        return ordered
    bounds = [len(ordered) * part // groups for part in range(groups + 1)]
    drawn = [
        sorted(ordered[start:end], key=lambda item: draw_rank(seed, name(item))) for start, end in pairwise(bounds)
    ]
    in_turn = (item for one_of_each in zip_longest(*drawn) for item in one_of_each if item is not None)
    return sorted(islice(in_turn, count), key=lambda item: (-size(item), name(item)))


def draw_rank(seed: int, name: str) -> int:
    """What orders a draw; the lowest are taken."""
    return int(digest([str(seed), name])[:16], 16)
