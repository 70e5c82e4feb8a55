"""Which articles are good enough to serve as evidence: mFAVA's filters (section 4, A.5), each with its account.

A filter keeps an article, drops it for a reason, or cannot judge it. What cannot be judged is kept and says so
(`Article.unchecked`), or dropped where the caller is strict; it is never counted as having passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from veriglot.sources.article import Absent, Article
from veriglot.sources.depth import Statistics, depth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from veriglot.sources.maintenance import Maintenance

__all__ = ["Depth", "Edits", "Filter", "FilterCount", "FilterReport", "Judged", "Length", "Sieve", "Unmarked"]


class Judged(NamedTuple):
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

    def judge(self, article: Article) -> Judged:
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

    def judge(self, article: Article) -> Judged:
        """Count the characters of the text."""
        passes = len(article.text) >= self._minimum
        return Judged(article, passes, "" if passes else "too short")


class Unmarked:
    """No maintenance template of the given kinds.

    Args:
        maintenance: recognises them.
    """

    name = "maintenance"

    def __init__(self, maintenance: Maintenance) -> None:
        self._maintenance = maintenance
        self.rule = f"no template of {', '.join(maintenance.kinds)} ({maintenance.known:,} names)"

    def judge(self, article: Article) -> Judged:
        """Look through the article's templates; one that several kinds mark is counted with the first."""
        found = self._maintenance.found(article.templates)
        return Judged(article, not found, next((kind for kind in self._maintenance.kinds if kind in found), ""))


class Depth:
    """The article's Wikipedia has at least this depth; see `sources.depth`.

    Args:
        minimum: mFAVA asks for 5.
        statistics: of the edition; None where nobody knows.
    """

    name = "depth"

    def __init__(self, minimum: float = 5.0, statistics: Statistics | None = None) -> None:
        self.depth = depth(statistics) if statistics is not None else None
        self._minimum = minimum
        told = "unknown" if self.depth is None else f"{self.depth:.4g}"
        self.rule = f"a Wikipedia of depth at least {minimum:g}; this one's is {told}"

    def judge(self, article: Article) -> Judged:
        """The same for every article of the edition."""
        if self.depth is None:
            return Judged(article, None, "no statistics of the edition")
        passes = self.depth >= self._minimum
        return Judged(article, passes, "" if passes else "shallow edition")


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

    def judge(self, article: Article) -> Judged:
        """Count, after looking up."""
        if article.edits is None and self._look_up is not None:
            article = self._look_up(article)
        if article.edits is None:
            return Judged(article, None, "number of edits unknown")
        passes = article.edits - (article.bot_edits or 0) >= self._minimum
        return Judged(article, passes, "" if passes else "too few edits")


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


class Sieve:
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
        self.report = FilterReport(filters=[FilterCount(one.name, one.rule, reasons={}) for one in filters], absent={})

    def judge(self, row: Article | Absent) -> Article | None:
        """The article, with what was looked up and what could not be checked; None where it is dropped or absent."""
        self.report.met += 1
        if isinstance(row, Absent):
            self.report.absent[row.reason] = self.report.absent.get(row.reason, 0) + 1
            return None
        unchecked = []
        for one, count in zip(self._filters, self.report.filters, strict=True):
            row, passes, reason = one.judge(row)
            count.judged += 1
            if passes is not True:
                count.reasons[reason] = count.reasons.get(reason, 0) + 1
            if passes is None:
                count.unchecked += 1
                unchecked.append(one.name)
            elif passes:
                count.kept += 1
            else:
                count.dropped += 1
            if passes is False or (passes is None and self._strict):
                return None
        self.report.passed += 1
        return msgspec.structs.replace(row, unchecked=tuple(unchecked)) if unchecked else row

    def sift(self, rows: Iterable[Article | Absent]) -> Iterator[Article]:
        """Those that pass, in order."""
        for row in rows:
            found = self.judge(row)
            if found is not None:
                yield found
