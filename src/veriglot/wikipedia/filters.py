"""Filters of articles (mFAVA, section 4, A.5) with their account; draws of articles and people; templates.

A filter keeps an article, drops it for a reason, or cannot judge it. What cannot be judged is kept and says so
(`Article.unchecked`), or dropped where the caller is strict; it is never counted as having passed.
"""

from __future__ import annotations

import heapq
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import msgspec

from veriglot.errors import UnknownNameError, UsageError
from veriglot.signatures import digest
from veriglot.wikipedia.article import Absent, Article
from veriglot.wikipedia.editions import Statistics, depth, edition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from veriglot.wikipedia.api import Wikipedia
    from veriglot.wikipedia.dump import Page

__all__ = [
    "KINDS",
    "MFAVA_KINDS",
    "Depth",
    "Edits",
    "Filter",
    "FilterChain",
    "FilterCount",
    "FilterDecision",
    "FilterReport",
    "Length",
    "Maintenance",
    "Unmarked",
    "draw_articles",
    "draw_diverse",
    "linked_template_names",
]


class FilterDecision(NamedTuple):
    """What a filter says of an article.

    Attributes:
        article: the article, with what the filter had to look up.
        passes: True, False, or None where it cannot be judged.
        reason: why not, in a few words that many articles share; empty where it passes.
    """

    article: Article
    passes: bool | None
    reason: str = ""


class Filter(Protocol):
    """Judges articles one by one."""

    @property
    def name(self) -> str:
        """One word."""

    @property
    def rule(self) -> str:
        """What an article needs, in words, with the numbers."""

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
        passes = len(article.text) >= self._minimum
        return FilterDecision(article, passes, "" if passes else "too short")


class Unmarked:
    """No maintenance template of the given kinds.

    Args:
        maintenance: recognises them.
    """

    name = "maintenance"

    def __init__(self, maintenance: Maintenance) -> None:
        self._maintenance = maintenance
        self.rule = f"no template of {', '.join(maintenance.kinds)} ({maintenance.known:,} names)"

    def judge(self, article: Article) -> FilterDecision:
        """Look through the article's templates; one that several kinds mark is counted with the first."""
        marks = self._maintenance.found(article.templates)
        return FilterDecision(article, not marks, next((kind for kind in self._maintenance.kinds if kind in marks), ""))


class Depth:
    """The article's Wikipedia has at least this depth; see `wikipedia.depth`.

    Args:
        minimum: mFAVA asks for 5.
        statistics: of the edition; None where nobody knows.
    """

    name = "depth"

    def __init__(self, minimum: float = 5.0, statistics: Statistics | None = None) -> None:
        self.depth = depth(statistics) if statistics is not None else None
        self._minimum = minimum
        shown = "unknown" if self.depth is None else f"{self.depth:.4g}"
        self.rule = f"a Wikipedia of depth at least {minimum:g}; this one's is {shown}"

    def judge(self, article: Article) -> FilterDecision:
        """The same for every article of the edition."""
        if self.depth is None:
            return FilterDecision(article, None, "no statistics of the edition")
        passes = self.depth >= self._minimum
        return FilterDecision(article, passes, "" if passes else "shallow edition")


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
        passes = article.edits - (article.bot_edits or 0) >= self._minimum
        return FilterDecision(article, passes, "" if passes else "too few edits")


class FilterCount(msgspec.Struct):
    """What one filter did; `judged = kept + dropped + unchecked`.

    Attributes:
        name: the filter's.
        rule: what it asks for.
        judged: articles that came to it.
        kept: those that pass.
        dropped: those that do not.
        unchecked: those it could not judge.
        reasons: reason -> how often, of `dropped` and `unchecked`.
    """

    name: str
    rule: str
    judged: int = 0
    kept: int = 0
    dropped: int = 0
    unchecked: int = 0
    reasons: dict[str, int] = {}


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
    absent: dict[str, int] = {}
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
        self.report = FilterReport(
            filters=[FilterCount(filter_.name, filter_.rule, reasons={}) for filter_ in filters], absent={}
        )

    def judge(self, row: Article | Absent) -> Article | None:
        """The article, with what was looked up and what could not be checked; None where it is dropped or absent."""
        self.report.met += 1
        if isinstance(row, Absent):
            self.report.absent[row.reason] = self.report.absent.get(row.reason, 0) + 1
            return None
        unchecked = []
        for filter_, count in zip(self._filters, self.report.filters, strict=True):
            row, passes, reason = filter_.judge(row)
            count.judged += 1
            if passes is not True:
                count.reasons[reason] = count.reasons.get(reason, 0) + 1
            if passes is None:
                count.unchecked += 1
                unchecked.append(filter_.name)
            elif passes:
                count.kept += 1
            else:
                count.dropped += 1
            if passes is False or (passes is None and self._strict):
                return None
        self.report.passed += 1
        return msgspec.structs.replace(row, unchecked=tuple(unchecked)) if unchecked else row

    def filter(self, rows: Iterable[Article | Absent]) -> Iterator[Article]:
        """Those that pass, in order."""
        for row in rows:
            article = self.judge(row)
            if article is not None:
                yield article


# Samples that are the same at every call: of the pages of a dump, of people by how often they are read.


T = TypeVar("T")


def draw_articles(pages: Iterable[Page], chain: FilterChain, count: int, *, seed: int = 0) -> list[Article]:
    """A random sample of the articles of a dump that pass the filters; memory holds `count` of them.

    Every page has a rank by the hash of seed and page number; the `count` lowest that pass are taken. A page whose
    rank is beyond all of `count` found already is not read (`FilterReport.not_drawn`).

    Returns:
        The articles in the dump's order; fewer than `count` where no more pass.
    """
    heap: list[tuple[int, int, Article]] = []  # the highest rank first
    for index, page in enumerate(pages):
        rank = _rank(seed, str(page.page_id))
        if len(heap) == count and page.namespace == 0 and not page.redirect and rank >= -heap[0][0]:
            chain.report.met += 1
            chain.report.not_drawn += 1
            continue
        article = chain.judge(page.article())
        if article is not None:
            if len(heap) < count:
                heapq.heappush(heap, (-rank, index, article))
            elif rank < -heap[0][0]:
                heapq.heapreplace(heap, (-rank, index, article))
    return [article for _, _, article in sorted(heap, key=lambda entry: entry[1])]


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
    waiting = [sorted(ordered[start:end], key=lambda item: _rank(seed, name(item))) for start, end in pairwise(bounds)]
    chosen: list[T] = []
    while len(chosen) < count:  # one of each group in turn; groups that run out are passed over
        for group in waiting:
            if group and len(chosen) < count:
                chosen.append(group.pop(0))
    return sorted(chosen, key=lambda item: (-size(item), name(item)))


def _rank(seed: int, name: str) -> int:
    return int(digest([str(seed), name])[:16], 16)


# Maintenance templates: what a Wikipedia's own editors say is wrong with an article, recognised per language.
#
# `maintenance_templates.json` holds names by edition and kind. The English names count in every edition, as most keep
# them as redirects. The table was written down without access to the wikis; `learned` adds what they say themselves:
# which template of an edition belongs to an English one. Where that can be asked, ask it.


KINDS = ("unreferenced", "more-references", "failed-verification", "under-construction", "disputed", "disambiguation")
"""What templates say: no source at all; too few; a source that does not say it; unfinished; doubted; no article."""

MFAVA_KINDS = ("unreferenced", "failed-verification", "under-construction", "disputed", "disambiguation")
"""Those that mFAVA leaves out (A.5): unfinished or not verified; and pages that are no articles."""

Names = dict[str, dict[str, list[str]]]


@cache
def _table() -> Names:
    data = files(__package__).joinpath("maintenance_templates.json").read_bytes()
    return msgspec.json.decode(data, type=Names)


class Maintenance:
    """Recognises the maintenance templates of one language.

    Args:
        language: whose Wikipedia.
        kinds: those of `KINDS` that count.
        more: kind -> further names, such as `learned` gives.

    Attributes:
        known: how many different names count, the English ones included.
        own: how many of them are the edition's own.
        without_own: the kinds of which no name of the edition's own is known, in order; only the English ones are
            recognised.

    Raises:
        UnknownNameError: no such language or kind.
    """

    def __init__(
        self, language: str, kinds: Iterable[str] = MFAVA_KINDS, more: Mapping[str, Iterable[str]] | None = None
    ) -> None:
        self.kinds = tuple(kinds)
        for kind in (*self.kinds, *(more or {})):
            if kind not in KINDS:
                raise UnknownNameError("kind of maintenance template", kind, KINDS)
        edition = edition_of(language)
        self._kind_of: dict[str, str] = {}
        without: list[str] = []
        for kind in self.kinds:
            own = [*_table().get(edition, {}).get(kind, ()), *(more or {}).get(kind, ())]
            if not own:
                without.append(kind)
            for name in (*own, *_table()["en"].get(kind, ())):
                self._kind_of.setdefault(_key(name), kind)
        self.without_own = tuple(without)
        english = {_key(name) for names in _table()["en"].values() for name in names}
        self.known = len(self._kind_of)
        self.own = self.known if edition == "en" else len(self._kind_of.keys() - english)

    def found(self, templates: Iterable[str]) -> dict[str, str]:
        """Kind -> the first of the templates that is of this kind.

        Args:
            templates: names without their namespace.
        """
        by_kind: dict[str, str] = {}
        for name in templates:
            kind = self._kind_of.get(_key(name))
            if kind is not None:
                by_kind.setdefault(kind, name)
        return by_kind


def linked_template_names(
    english: Wikipedia, local: Wikipedia, kinds: Iterable[str] = MFAVA_KINDS
) -> dict[str, list[str]]:
    """What the templates of an edition are called, as the wikis themselves link them.

    Args:
        english: the English Wikipedia, whose templates lead to the others.
        local: the edition that is asked about; the redirects to its templates are asked of it.

    Returns:
        Kind -> names in the edition, sorted.

    Raises:
        HttpError: no answer.
    """
    names: dict[str, list[str]] = {}
    for kind in kinds:
        linked = english.template_names(_table()["en"].get(kind, ()))
        there = linked.get(local.edition, set())
        if there and local.edition != english.edition:
            there = there | local.template_names(sorted(there)).get(local.edition, set())
        names[kind] = sorted(there)
    return names


def _key(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()
