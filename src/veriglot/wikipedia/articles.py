"""Articles of Wikipedias: the record, the editions, and filters of articles (mFAVA, section 4, A.5) with their report.

A filter passes an article, drops it for a reason, or cannot check it. An unchecked article stays and is marked
(`Article.unchecked`), or is dropped in strict mode; it never counts as passed.
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
from veriglot.plugins import read_package_data
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
"""Kinds of maintenance templates: no source at all; too few; a source without the fact; unfinished; disputed; not an
article."""

MFAVA_KINDS = ("unreferenced", "failed-verification", "under-construction", "disputed", "disambiguation")
"""The kinds that mFAVA leaves out (A.5): unfinished or not verified; and pages that are not articles."""

_HEADING = re.compile(r"^(={1,6})[ \t]*(.*?)[ \t]*\1[ \t]*$")


@cache
def table(name: str) -> dict[str, Any]:
    """A data table of this package, such as `editions`."""
    return read_package_data(__package__, f"{name}.json", dict[str, Any])


class Article(Record, omit_defaults=True):
    """One article of one Wikipedia, at one revision.

    Attributes:
        id: `<language>-<page id>`, unique in a file.
        language: BCP 47 tag requested; an edition in several scripts (zh, sr) keeps its text as written.
        title: the page's title, with spaces.
        page_id: the page's number in its Wikipedia.
        revision: the number of the text's revision; None if the source does not state it.
        url: the address of the page.
        text: plain text, paragraphs and headings on lines of their own; without tables, references and output of
            templates (from a dump), or as given by TextExtracts (from the API).
        lead: the text before the first heading, the reference of the mFAVA study (section A.5).
        categories: names without their namespace, including maintenance categories.
        templates: names without their namespace of the templates that the page uses; from the API also nested
            ones.
        timestamp: time of the revision, ISO 8601.
        size: bytes of wikitext, or None.
        edits: number of edits of the page, or None if not counted.
        bot_edits: those of `edits` by accounts marked as bots, or None.
        editors: number of accounts and addresses that edited it, or None.
        item: the Wikidata item, such as `Q42`, or None.
        unchecked: the filters that could not check the article, since data is missing.
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
    """A page that gives no article.

    Attributes:
        title: the title, as requested or found.
        reason: `missing`, `invalid title`, `redirect`, `disambiguation`, `not an article` or `no text`.
    """

    title: str
    reason: str


def split_sections(marked: str) -> tuple[str, str]:
    """Text and lead of a text with headings as `== Heading ==`.

    Headings lose their marks; those without text below them are removed, several empty lines become one.

    Returns:
        The whole text, and the part of it before the first heading.
    """
    lines: list[str] = []
    lead: str | None = None
    pending: list[tuple[int, str]] = []  # headings without text so far: depth, words
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
    """The address of an edition, with the final slash that Wikidata uses, or of a page of it."""
    return f"https://{edition}.wikipedia.org/" + (f"wiki/{quote(title.replace(' ', '_'))}" if title else "")


class Statistics(Record):
    """Numbers of an edition, from its Special:Statistics.

    Attributes:
        pages: all pages, including discussions, users, files and redirects.
        articles: content pages.
        edits: all edits since the wiki was set up.
    """

    pages: int
    articles: int
    edits: int

    @property
    def depth(self) -> float:
        """How collaboratively the edition is edited, at least 0: English about 1,000, editions filled by bots near 0.

        `depth = edits / articles * non_articles / articles * (1 - articles / pages)`, with `non_articles = pages -
        articles`: Meta-Wiki's "Wikipedia article depth", used by Alshahrani et al. (2023), "DEPTH+: An Enhanced Depth
        Metric for Wikipedia Corpora Quality" (TrustNLP), which mFAVA (section 4) cites.

        Raises:
            UsageError: impossible numbers: below 0, no article, or more articles than pages.
        """
        if self.articles <= 0 or self.edits < 0 or self.pages < self.articles:
            raise UsageError(
                f"{self.pages} pages, {self.articles} articles and {self.edits} edits are no statistics of a wiki."
            )
        others = self.pages - self.articles
        return self.edits / self.articles * (others / self.articles) * (1 - self.articles / self.pages)


# Filters.


class FilterDecision(NamedTuple):
    """A filter's decision on an article.

    Attributes:
        article: the article, with data that the filter looked up.
        passes: True, False, or None if it cannot be checked.
        reason: why it does not pass, in a few words that many articles share; empty if it passes.
    """

    article: Article
    passes: bool | None
    reason: str = ""


class Filter(Protocol):
    """Interface of filters; checks articles one by one.

    Attributes:
        name: one word.
        rule: the requirement, in words, with the numbers.
    """

    name: str
    rule: str

    def judge(self, article: Article) -> FilterDecision:
        """Check one article."""


class Length:
    """A minimum number of characters (code points) of text.

    Args:
        minimum: 2,000 in mFAVA.
    """

    name = "length"

    def __init__(self, minimum: int = 2000) -> None:
        self._minimum = minimum
        self.rule = f"at least {minimum:,} characters"

    def judge(self, article: Article) -> FilterDecision:
        """Count the characters of the text."""
        return FilterDecision(article, len(article.text) >= self._minimum, "too short")


class Maintenance:
    """No maintenance template of the given kinds, with which editors of a Wikipedia mark faults of an article.

    `maintenance_templates.json` has names by edition and kind. The English names count in every edition, since most
    have them as redirects. The table was written without access to the wikis; their own interlanguage links of
    templates are better if available.

    Args:
        language: of the Wikipedia.
        kinds: those of `KINDS` that count.
        more: kind -> further names, for example from `Wikipedia.linked_template_names`.

    Attributes:

        without_own: the kinds without a known name in this edition, in order; only their English names are
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
        """Check the article's templates; one of several kinds counts for the first."""
        marks = self.marks(article.templates)
        return FilterDecision(article, not marks, next((kind for kind in self.kinds if kind in marks), ""))

    def marks(self, templates: Iterable[str]) -> dict[str, str]:
        """Kind -> the first of the templates with this kind.

        Args:
            templates: names without their namespace.
        """
        named = [(self._kind_of.get(_key(name)), name) for name in templates]
        return {kind: name for kind, name in reversed(named) if kind is not None}


def _key(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()


class Depth:
    """A minimum depth of the article's Wikipedia.

    Args:
        minimum: 5 in mFAVA.
        statistics: of the edition; None if not known.
    """

    name = "depth"

    def __init__(self, minimum: float = 5.0, statistics: Statistics | None = None) -> None:
        self.depth = statistics.depth if statistics is not None else None
        self._minimum = minimum
        shown = "unknown" if self.depth is None else f"{self.depth:.4g}"
        self.rule = f"a Wikipedia of depth at least {minimum:g}; this one's is {shown}"

    def judge(self, article: Article) -> FilterDecision:
        """The same decision for every article of the edition."""
        if self.depth is None:
            return FilterDecision(article, None, "no statistics of the edition")
        return FilterDecision(article, self.depth >= self._minimum, "shallow edition")


class Edits:
    """A minimum number of edits by people: mFAVA's footnote 4 reads depth as "the number of collaborative edits".

    Edits by bots are subtracted if their number is known.

    Args:
        minimum: 5 in mFAVA.
        look_up: adds missing numbers of an article, for example `Wikipedia.with_edits`.
    """

    name = "edits"

    def __init__(self, minimum: int = 5, look_up: Callable[[Article], Article] | None = None) -> None:
        self._minimum = minimum
        self._look_up = look_up
        self.rule = f"at least {minimum:,} edits by people"

    def judge(self, article: Article) -> FilterDecision:
        """Check the number of edits, looking it up if missing."""
        if article.edits is None and self._look_up is not None:
            article = self._look_up(article)
        if article.edits is None:
            return FilterDecision(article, None, "number of edits unknown")
        return FilterDecision(article, article.edits - (article.bot_edits or 0) >= self._minimum, "too few edits")


class FilterCount(msgspec.Struct):
    """Results of one filter; `judged = passed + dropped + unchecked`.

    Attributes:
        name: the filter's.
        rule: its requirement.
        judged: number of articles that reached it.
        passed: articles that pass; `kept` in files.
        dropped: articles that do not.
        unchecked: articles that it could not check.
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
    """Outcome of every page read; `met = passed + sum of absent, not drawn and dropped`.

    Attributes:
        met: number of pages.
        absent: reason -> number of pages without an article.
        not_drawn: pages of a dump outside the sample, not filtered.
        filters: in their order; a dropped article reaches no further filter.
        passed: articles that passed all of them, including those that some filter could not check.
        written: those of `passed` that were requested.
    """

    met: int = 0
    absent: Counter[str] = msgspec.field(default_factory=Counter)
    not_drawn: int = 0
    filters: list[FilterCount] = []
    passed: int = 0
    written: int = 0


class FilterChain:
    """Filters in order, and their report.

    Args:
        filters: the cheap ones first; an article goes from one to the next until it is dropped.
        strict: drop articles that a filter cannot check.

    Attributes:
        report: always up to date.
    """

    def __init__(self, filters: Sequence[Filter], *, strict: bool = False) -> None:
        self._filters = tuple(filters)
        self._strict = strict
        self.report = FilterReport(filters=[FilterCount(filter_.name, filter_.rule) for filter_ in filters])

    def judge(self, row: Article | Absent) -> Article | None:
        """The article, with looked-up data and names of filters that could not check it; None if dropped or absent."""
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
        """The articles that pass, in order."""
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
    """A random sample stratified by size: equally many from each group, with groups of equal length by size.

    Kang et al. take 500 people "based on diverse page view counts" without more detail; this is one interpretation.

    Args:
        items: the population.
        count: sample size.
        size: of an item, for the groups.
        name: unique name of an item; determines ranks and ties.
        groups: number of groups of the items sorted by size.
        seed: of the draw.

    Returns:
        The sample by descending size; all items if there are no more than `count`.

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
    """Sort key of a draw; the lowest are drawn."""
    return int(digest([str(seed), name])[:16], 16)
