"""Articles of one Wikipedia through its API: at random, of a category, by title."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from veriglot.errors import UsageError
from veriglot.records.languages import language as known_language
from veriglot.sources.answers import Answers
from veriglot.sources.article import Absent, Article, split_sections
from veriglot.sources.depth import Statistics
from veriglot.sources.editions import edition_of, wiki_url
from veriglot.sources.mediawiki import MediaWiki

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.http import Session
    from veriglot.sources.kept import Kept

__all__ = ["Wikipedia"]

_BATCH = 20  # pages in one request; each page's whole text takes a request of its own anyway (TextExtracts)
_LISTED = 50  # titles in one request for names only, the most that is allowed without an account
_CONTENT = {
    "prop": "extracts|categories|templates|info|revisions|pageprops",
    "explaintext": "1",
    "exsectionformat": "wiki",  # headings keep their marks, which shows where the lead ends
    "exlimit": "1",  # all that TextExtracts gives at once of whole texts
    "cllimit": "max",
    "clprop": "hidden",
    "tllimit": "max",
    "tlnamespace": "10",
    "inprop": "url",
    "rvprop": "ids|timestamp|size",
    "ppprop": "disambiguation|wikibase_item",
}


class Wikipedia:
    """The Wikipedia of one language.

    Args:
        language: any tag or name that `records.language` takes.
        session: its server, such as `Session("https://de.wikipedia.org", user_agent=...)`; see `sources.polite`.
        kept: where answers are kept, so that the same work asks nothing twice; None keeps none.
        maxlag: see `MediaWiki`.
        retries, wait: see `Answers`.

    Raises:
        UnknownNameError: no such language.
        UsageError: there is no Wikipedia in it.
    """

    def __init__(
        self,
        language: str,
        session: Session,
        *,
        kept: Kept | None = None,
        maxlag: int | None = 5,
        retries: int = 8,
        wait: float = 5.0,
    ) -> None:
        self.language = known_language(language).tag
        self.edition = edition_of(language)
        self._answers = Answers(session, kept, retries=retries, wait=wait)
        self.api = MediaWiki(self._answers, maxlag=maxlag)

    def random(self, *, seed: int = 0) -> Iterator[Article | Absent]:
        """Pages of the article namespace at random, redirects excepted, without end as long as the server has more.

        The server draws. One starting point is drawn and followed in the server's random order of pages.

        Args:
            seed: a name for the draw. With kept answers the same seed gives the same pages again; without, it does
                nothing.
        """
        params = {"generator": "random", "grnnamespace": "0", "grnfilterredir": "nonredirects", "grnlimit": str(_BATCH)}
        seen: set[int] = set()
        for batch in self.api.query({**_CONTENT, **params}, label=f"draw {seed}"):
            pages = list(batch.get("pages", {}).values())
            fresh = [page for page in pages if page.get("pageid") not in seen]
            if pages and not fresh:
                return  # the whole order was gone through
            seen.update(page["pageid"] for page in fresh)
            yield from map(self._article, fresh)

    def category(self, name: str, *, depth: int = 0) -> Iterator[Article | Absent]:
        """Pages of a category, and of its subcategories down to a depth; each page once.

        Args:
            name: with or without the namespace.
            depth: 0 for the category alone.
        """
        seen: set[int] = set()
        for one in self._subcategories(name, depth):
            params = {"generator": "categorymembers", "gcmtitle": one, "gcmtype": "page", "gcmnamespace": "0"}
            for batch in self.api.query({**_CONTENT, **params, "gcmlimit": str(_BATCH)}):
                for page in batch.get("pages", {}).values():
                    if page.get("pageid") not in seen:
                        seen.add(page.get("pageid"))
                        yield self._article(page)

    def titles(self, titles: Iterable[str]) -> Iterator[Article | Absent]:
        """The pages of these titles; redirects are followed. One result for each different page, in order."""
        wanted = list(dict.fromkeys(title.strip() for title in titles if title.strip()))
        for title in wanted:
            if "|" in title or "\n" in title:
                raise UsageError(f"{title!r} cannot be the title of a page.")
        for start in range(0, len(wanted), _BATCH):
            asked = wanted[start : start + _BATCH]
            for batch in self.api.query({**_CONTENT, "titles": "|".join(asked), "redirects": "1"}):
                yield from map(self._article, _in_order(asked, batch))

    def statistics(self) -> Statistics:
        """The numbers of the edition's Special:Statistics, now.

        Raises:
            SourceError: the server does not tell.
        """
        (answer,) = self.api.query({"meta": "siteinfo", "siprop": "statistics"})
        told = answer["statistics"]
        return Statistics(pages=told["pages"], articles=told["articles"], edits=told["edits"])

    def with_edits(self, article: Article) -> Article:
        """The article with its numbers of edits, of those by bots, and of editors (three requests).

        MediaWiki stops counting at 30,000 edits and 25,000 editors; such numbers are lower bounds. An article that is
        gone by now keeps None.
        """
        counts = {
            name: self._count(article.title, kind)
            for name, kind in (("edits", "edits"), ("bot_edits", "bot"), ("editors", "editors"))
        }
        return msgspec.structs.replace(article, **counts)

    def template_names(self, names: Iterable[str]) -> dict[str, set[str]]:
        """How templates of this edition are called in other editions, by the links between them.

        Args:
            names: names of templates here, without namespace.

        Returns:
            edition -> names there, without namespace; this edition holds the names themselves and their redirects.
        """
        found: dict[str, set[str]] = {}
        titles = [f"Template:{name}" for name in names]
        for start in range(0, len(titles), _LISTED):
            params = {
                "titles": "|".join(titles[start : start + _LISTED]),
                "redirects": "1",
                "prop": "langlinks|redirects",
                "lllimit": "max",
                "rdlimit": "max",
                "rdnamespace": "10",
            }
            for batch in self.api.query(params):
                for page in batch.get("pages", {}).values():
                    if page.get("missing") or page.get("invalid"):
                        continue
                    own = {page["title"], *(one["title"] for one in page.get("redirects", ()))}
                    found.setdefault(self.edition, set()).update(map(_bare, own))
                    for link in page.get("langlinks", ()):
                        found.setdefault(link["lang"], set()).add(_bare(link["title"]))
        return found

    def _count(self, title: str, kind: str) -> int | None:
        name = quote(title.replace(" ", "_"), safe="")
        answer = self._answers.get(f"w/rest.php/v1/page/{name}/history/counts/{kind}", {}, none_if_missing=True)
        return int(answer["count"]) if answer is not None else None

    def _subcategories(self, name: str, depth: int) -> Iterator[str]:
        """The category's full title, and those below it, the nearest first, each once."""
        bare = name.partition(":")[2] or name
        level, seen = [f"Category:{bare}"], {bare}
        for remaining in range(depth, -1, -1):
            yield from level
            if not remaining:
                return
            below = []
            for one in level:
                params = {"list": "categorymembers", "cmtitle": one, "cmtype": "subcat", "cmlimit": "max"}
                for batch in self.api.query(params):
                    below += [member["title"] for member in batch.get("categorymembers", ())]
            level = []
            for title in below:
                if _bare(title) not in seen:
                    seen.add(_bare(title))
                    level.append(title)

    def _article(self, page: dict[str, Any]) -> Article | Absent:
        title = page.get("title", "")
        properties = page.get("pageprops", {})
        reason = _why_absent(page, properties)
        text, lead = split_sections(page.get("extract") or "")
        if reason or not text:
            return Absent(title, reason or "no text")
        (revision, *_) = page.get("revisions") or [{}]
        categories = page.get("categories", ())
        return Article(
            id=f"{self.language}-{page['pageid']}",
            language=self.language,
            title=title,
            page_id=page["pageid"],
            url=page.get("canonicalurl") or f"{wiki_url(self.edition)}wiki/{quote(title.replace(' ', '_'))}",
            text=text,
            lead=lead,
            revision=revision.get("revid") or page.get("lastrevid"),
            categories=tuple(_bare(one["title"]) for one in categories),
            hidden_categories=tuple(_bare(one["title"]) for one in categories if one.get("hidden")),
            templates=tuple(_bare(one["title"]) for one in page.get("templates", ())),
            timestamp=revision.get("timestamp"),
            size=revision.get("size") or page.get("length"),
            item=properties.get("wikibase_item"),
        )


def _why_absent(page: dict[str, Any], properties: dict[str, Any]) -> str:
    if page.get("invalid"):
        return "invalid title"
    if page.get("missing"):
        return "missing"
    if page.get("redirect"):
        return "redirect"
    if page.get("ns", 0) != 0:
        return "not an article"
    return "disambiguation" if "disambiguation" in properties else ""


def _in_order(asked: list[str], batch: dict[str, Any]) -> list[dict[str, Any]]:
    """The pages of a batch in the order of the titles that were asked for; the server sorts by page number."""
    renamed = {
        one["from"]: one["to"] for name in ("normalized", "redirects") for one in batch.get(name, ()) if "to" in one
    }
    place: dict[str, int] = {}
    for index, title in enumerate(asked):
        now = title
        for _ in range(5):  # normalised, then redirected, at most a few times
            now = renamed.get(now, now)
        place.setdefault(now, index)
    pages = list(batch.get("pages", {}).values())
    return sorted(pages, key=lambda page: place.get(page.get("title", ""), len(asked)))


def _bare(title: str) -> str:
    """A title without its namespace, whose name hangs on the language."""
    return title.partition(":")[2] or title
