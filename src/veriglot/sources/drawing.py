"""Samples that are the same at every call: of the pages of a dump, of people by how often they are read."""

from __future__ import annotations

import heapq
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from veriglot.errors import UsageError
from veriglot.provenance import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from veriglot.sources.article import Article
    from veriglot.sources.dump import Page
    from veriglot.sources.filters import Sieve

__all__ = ["draw_articles", "draw_diverse"]

T = TypeVar("T")


def draw_articles(pages: Iterable[Page], sieve: Sieve, count: int, *, seed: int = 0) -> list[Article]:
    """A random sample of the articles of a dump that pass the filters; memory holds `count` of them.

    Every page has a rank by the hash of seed and page number; the `count` lowest that pass are taken. A page whose
    rank is beyond all of `count` found already is not read (`FilterReport.not_drawn`).

    Returns:
        The articles in the dump's order; fewer than `count` where no more pass.
    """
    heap: list[tuple[int, int, Article]] = []  # the highest rank first
    for place, page in enumerate(pages):
        rank = _rank(seed, str(page.page_id))
        if len(heap) == count and page.namespace == 0 and not page.redirect and rank >= -heap[0][0]:
            sieve.report.met += 1
            sieve.report.not_drawn += 1
            continue
        article = sieve.judge(page.article())
        if article is not None:
            if len(heap) < count:
                heapq.heappush(heap, (-rank, place, article))
            elif rank < -heap[0][0]:
                heapq.heapreplace(heap, (-rank, place, article))
    return [article for _, _, article in sorted(heap, key=lambda one: one[1])]


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

    kang takes 500 people "based on diverse page view counts" and says no more; this is one way to do it, stated.

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
