"""The depth of a Wikipedia: how collaboratively it is edited.

`depth = edits / articles * non_articles / articles * (1 - articles / pages)`, with `non_articles = pages - articles`:
the definition of Meta-Wiki's "Wikipedia article depth", which Alshahrani et al. (2023), "DEPTH+: An Enhanced Depth
Metric for Wikipedia Corpora Quality" (TrustNLP), take up and mFAVA (section 4) cites. It belongs to an edition, not to
an article: English has about 1,000, and editions that bots filled are near 0.
"""

from __future__ import annotations

import msgspec

from veriglot.errors import UsageError

__all__ = ["Statistics", "depth"]


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
