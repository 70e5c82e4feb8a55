"""What `veriglot build articles` does: fetch or read pages, filter them, draw a sample, and account for all of it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from veriglot.cli.sourcing import Servers
    from veriglot.http import Session
    from veriglot.sources import Absent, Article, Filter, FilterReport, Kept, Sieve, Statistics, Wikipedia

__all__ = ["ArticleOrder", "fetch_articles", "report_lines"]


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
        InputError, HttpError, SourceError: a dump or a server that does not give what it should.
    """
    from veriglot.sources import Kept, Sieve

    with ExitStack() as stack:
        source = _Source(order, servers, stack, lambda: stack.enter_context(Kept(servers.cache)))
        filters, warnings = _filters(order, source)
        sieve = Sieve(filters, strict=order.strict)
        articles = _drawn(order, sieve, seen) if order.dump and order.count else None
        if articles is None:
            articles = _taken(order, source.rows(), sieve, seen, warnings)
        sieve.report.written = len(articles)
        if source.wiki is not None:
            warnings += [
                f"the server warned, {times} times: {text}" for text, times in source.wiki.api.warnings.items()
            ]
        return articles, sieve.report, warnings


class _Source:
    """The pages of an order, and the wikis behind them, opened when they are first asked."""

    def __init__(self, order: ArticleOrder, servers: Servers, stack: ExitStack, kept: Callable[[], Kept]) -> None:
        self._order = order
        self._servers = servers
        self._stack = stack
        self._open_kept = kept
        self._kept: Kept | None = None
        self.wiki = None if order.dump else self.open(order.language, servers.wiki)

    def open(self, language: str, server: str | None) -> Wikipedia:
        """A Wikipedia, whose connections end with the stack."""
        from veriglot.sources import Wikipedia, wikipedia_session

        self._kept = self._kept or self._open_kept()
        session: Session = wikipedia_session(
            language, contact=self._servers.contact, server=server, rate=self._servers.pace(5.0)
        )
        return Wikipedia(language, self._stack.enter_context(session), kept=self._kept)

    def rows(self) -> Iterator[Article | Absent]:
        """The pages, in order."""
        from veriglot.sources import read_dump

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
    from veriglot.sources import Depth, Edits, Length, Maintenance, Unmarked, learned

    filters: list[Filter] = []
    warnings: list[str] = []
    if order.min_depth > 0:
        statistics = _statistics(order, source)
        shallow = Depth(order.min_depth, statistics)
        if shallow.depth is not None and shallow.depth < order.min_depth:
            raise UsageError(
                f"The Wikipedia of this language has depth {shallow.depth:.3g}, below {order.min_depth:g}:"
                " none of its articles passes.",
                remedy="Add --min-depth 0 to take them all the same, and say so where you report on them.",
            )
        if statistics is None:
            warnings.append("the depth of the edition is not checked: a dump does not tell it; see --statistics.")
        filters.append(shallow)
    if order.min_characters > 0:
        filters.append(Length(order.min_characters))
    if order.kinds:
        more: dict[str, list[str]] = {}
        if source.wiki is not None and order.learn:
            english = source.wiki
            if source.wiki.edition != "en":
                english = source.open("en", source._servers.english)
            more = learned(english, source.wiki, order.kinds)
        maintenance = Maintenance(order.language, order.kinds, more)
        if maintenance.without_own:
            warnings.append(
                f"no maintenance template of this language is known for {', '.join(maintenance.without_own)};"
                " the English names alone are looked for."
            )
        filters.append(Unmarked(maintenance))
    if order.min_edits > 0:
        filters.append(Edits(order.min_edits, source.wiki.with_edits if source.wiki is not None else None))
    return filters, warnings


def _statistics(order: ArticleOrder, source: _Source) -> Statistics | None:
    from veriglot.sources import Statistics

    if order.statistics is not None:
        pages, articles, edits = order.statistics
        return Statistics(pages=pages, articles=articles, edits=edits)
    return source.wiki.statistics() if source.wiki is not None else None


def _drawn(order: ArticleOrder, sieve: Sieve, seen: Callable[[], None]) -> list[Article]:
    from veriglot.sources import draw_articles, open_dump

    assert order.dump is not None
    assert order.count is not None
    articles = draw_articles(open_dump(order.dump, language=order.language), sieve, order.count, seed=order.seed)
    for _ in articles:
        seen()
    return articles


def _taken(
    order: ArticleOrder,
    rows: Iterator[Article | Absent],
    sieve: Sieve,
    seen: Callable[[], None],
    warnings: list[str],
) -> list[Article]:
    """The first articles that pass, as many as are wanted."""
    articles: list[Article] = []
    for row in rows:
        article = sieve.judge(row)
        if article is not None:
            articles.append(article)
            seen()
        if order.count is not None and len(articles) >= order.count:
            break
        if order.most_pages is not None and sieve.report.met >= order.most_pages:
            warnings.append(f"stopped after {order.most_pages:,} pages; see --most-pages.")
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
    for one in report.filters:
        yield f"  {one.dropped:>9,}  of {one.judged:,} dropped by {one.name}: {one.rule}"
        for reason, count in sorted(one.reasons.items(), key=lambda item: -item[1]):
            yield f"             {count:,} {reason}"
        if one.unchecked:
            yield f"  {one.unchecked:>9,}  of {one.judged:,} NOT CHECKED by {one.name}"
