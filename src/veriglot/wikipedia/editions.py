"""Editions of Wikipedia: their language tags, addresses and depth.

An edition is called by the first part of its host name. That is the language's code nearly everywhere; the exceptions
stand in `editions.json` (an empty name: there is no edition).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from veriglot.errors import UsageError
from veriglot.records.languages import get_language

__all__ = ["Statistics", "depth", "edition_of", "language_of", "wiki_url"]


@cache
def _exceptions() -> dict[str, str]:
    return msgspec.json.decode(files(__package__).joinpath("editions.json").read_bytes(), type=dict[str, str])


def edition_of(tag: str) -> str:
    """The edition of a language: `de`; `zh` for `zh-Hant`, `zh-yue` for Cantonese.

    Args:
        tag: anything that `records.language` takes.

    Raises:
        UnknownNameError: no such language.
        UsageError: there is no Wikipedia in it.
    """
    known = get_language(tag)
    for key in (known.tag, known.base):
        if key in _exceptions():
            name = _exceptions()[key]
            break
    else:
        name = known.base
    if not name:
        raise UsageError(f"There is no Wikipedia in {known.name}.")
    return name


def language_of(edition: str) -> str:
    """The language tag of an edition: the other way round.

    Raises:
        UnknownNameError: the language table does not hold the edition's language.
    """
    back = {name: tag for tag, name in _exceptions().items() if name}
    return get_language(back.get(edition, edition)).tag


def wiki_url(edition: str) -> str:
    """The address of an edition, with the slash at its end that Wikidata writes."""
    return f"https://{edition}.wikipedia.org/"


# The depth of a Wikipedia: how collaboratively it is edited.
#
# `depth = edits / articles * non_articles / articles * (1 - articles / pages)`, with `non_articles = pages - articles`:
# the definition of Meta-Wiki's "Wikipedia article depth", which Alshahrani et al. (2023), "DEPTH+: An Enhanced Depth
# Metric for Wikipedia Corpora Quality" (TrustNLP), take up and mFAVA (section 4) cites. It belongs to an edition, not
# to an article: English has about 1,000, and editions that bots filled are near 0.


class Statistics(msgspec.Struct, frozen=True):
    """Numbers of an edition, as on its Special:Statistics.

    Attributes:
        pages: all pages, those of discussions, users, files and redirects included.
        articles: content pages.
        edits: all edits since the wiki was set up.
    """

    pages: int
    articles: int
    edits: int


def depth(statistics: Statistics) -> float:
    """The depth of an edition, at least 0.

    Raises:
        UsageError: numbers that no wiki has: below 0, no article, or more articles than pages.
    """
    pages, articles, edits = statistics.pages, statistics.articles, statistics.edits
    if articles <= 0 or edits < 0 or pages < articles:
        raise UsageError(f"{pages} pages, {articles} articles and {edits} edits are no statistics of a wiki.")
    others = pages - articles
    return edits / articles * (others / articles) * (1 - articles / pages)
