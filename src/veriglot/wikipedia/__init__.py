"""Where texts come from: Wikipedia through its API and its dumps, Wikidata, page views."""

from veriglot.wikipedia.api import PageViews, Wikipedia
from veriglot.wikipedia.article import Absent, Article, split_sections
from veriglot.wikipedia.dump import open_dump, read_dump
from veriglot.wikipedia.editions import Statistics, depth, edition_of, language_of
from veriglot.wikipedia.filters import (
    KINDS,
    MFAVA_KINDS,
    Depth,
    Edits,
    Filter,
    FilterChain,
    FilterReport,
    Length,
    Maintenance,
    Unmarked,
    draw_articles,
    draw_diverse,
    linked_template_names,
)
from veriglot.wikipedia.session import (
    AnswerCache,
    SourceError,
    page_views_session,
    user_agent,
    wikidata_session,
    wikipedia_session,
)
from veriglot.wikipedia.wikidata import Item, Person, QueryTimeoutError, Wikidata

__all__ = [
    "KINDS",
    "MFAVA_KINDS",
    "Absent",
    "AnswerCache",
    "Article",
    "Depth",
    "Edits",
    "Filter",
    "FilterChain",
    "FilterReport",
    "Item",
    "Length",
    "Maintenance",
    "PageViews",
    "Person",
    "QueryTimeoutError",
    "SourceError",
    "Statistics",
    "Unmarked",
    "Wikidata",
    "Wikipedia",
    "depth",
    "draw_articles",
    "draw_diverse",
    "edition_of",
    "language_of",
    "linked_template_names",
    "open_dump",
    "page_views_session",
    "read_dump",
    "split_sections",
    "user_agent",
    "wikidata_session",
    "wikipedia_session",
]
