"""Where texts come from: Wikipedia through its API and its dumps, Wikidata, page views."""

from veriglot.sources.answers import Answers
from veriglot.sources.article import Absent, Article, split_sections
from veriglot.sources.depth import Statistics, depth
from veriglot.sources.drawing import draw_articles, draw_diverse
from veriglot.sources.dump import Page, open_dump, read_dump
from veriglot.sources.editions import edition_of, language_of, wiki_url
from veriglot.sources.errors import SourceError
from veriglot.sources.filters import Depth, Edits, Filter, FilterCount, FilterReport, Judged, Length, Sieve, Unmarked
from veriglot.sources.kept import Kept
from veriglot.sources.maintenance import KINDS, MFAVA_KINDS, Maintenance, learned
from veriglot.sources.mediawiki import MediaWiki
from veriglot.sources.page_views import PageViews
from veriglot.sources.person import Person, Thing
from veriglot.sources.polite import page_views_session, user_agent, wikidata_session, wikipedia_session
from veriglot.sources.sparql import Sparql, TooMuchError
from veriglot.sources.wikidata import Wikidata
from veriglot.sources.wikipedia import Wikipedia

__all__ = [
    "KINDS",
    "MFAVA_KINDS",
    "Absent",
    "Answers",
    "Article",
    "Depth",
    "Edits",
    "Filter",
    "FilterCount",
    "FilterReport",
    "Judged",
    "Kept",
    "Length",
    "Maintenance",
    "MediaWiki",
    "Page",
    "PageViews",
    "Person",
    "Sieve",
    "SourceError",
    "Sparql",
    "Statistics",
    "Thing",
    "TooMuchError",
    "Unmarked",
    "Wikidata",
    "Wikipedia",
    "depth",
    "draw_articles",
    "draw_diverse",
    "edition_of",
    "language_of",
    "learned",
    "open_dump",
    "page_views_session",
    "read_dump",
    "split_sections",
    "user_agent",
    "wiki_url",
    "wikidata_session",
    "wikipedia_session",
]
