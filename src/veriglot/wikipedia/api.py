"""Wikimedia's servers: sessions and cached answers, random articles, articles by category or title, and page views."""

from __future__ import annotations

import logging
import zlib
from collections import Counter, defaultdict
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlsplit

import msgspec

from veriglot.errors import UsageError, VeriglotError
from veriglot.http.session import HttpError, Response, Session
from veriglot.plugins import read_package_data
from veriglot.records.languages import get_language
from veriglot.signatures import __version__, digest
from veriglot.storage.cache import Cache
from veriglot.wikipedia.articles import Absent, Article, Statistics, edition_of, split_sections, table, wiki_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    Json = dict[str, Any]

__all__ = [
    "AnswerCache",
    "JsonClient",
    "Wikipedia",
    "page_views",
    "page_views_session",
    "wikidata_session",
    "wikipedia_session",
]


class JsonClient:
    """GET requests to one server, one after the other, as public services request.

    Args:
        session: the server, with its rate, time-out and retries.
        cache: of the answers; None for no cache.
    """

    def __init__(self, session: Session, cache: AnswerCache | None = None) -> None:
        self.session = session
        self._cache = cache

    def get(
        self,
        path: str,
        params: Mapping[str, str],
        review: Callable[[Response | HttpError], HttpError | None] | None = None,
        *,
        label: str = "",
        none_if_missing: bool = False,
    ) -> Any:
        """The JSON of an answer.

        Args:
            path: appended to the session's address.
            params: the query.
            review: see `Session.get`; only answers that it accepts are cached.
            none_if_missing: whether a 404 with JSON is the answer None, and cached; a 404 of a wrong address is an
                error.
            label: distinguishes requests that are equal but have different answers (random pages).

        Raises:
            HttpError: no usable answer after the session's attempts.
        """
        address = f"{self.session.base_url}/{path}"
        key = digest([address, label, *(part for pair in sorted(params.items()) for part in pair)])
        answer = self._cache.get(key) if self._cache is not None else None
        if answer is None:
            try:
                answer = self.session.get(path, params, review=review).data
            except HttpError as error:
                if not (none_if_missing and error.status == 404 and error.body.startswith("{")):
                    raise
                answer = b"null"
            if self._cache is not None:
                self._cache.put(key, answer)
        return msgspec.json.decode(answer)


# A cache of answers, in one SQLite file, so that interrupted work repeats no request.


_TABLE = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer BLOB NOT NULL)"


class AnswerCache(Cache):
    """Bytes by key, safe for several threads and processes; if one is killed, an answer is stored either whole or not.

    Args:
        folder: created if it does not exist; its file is `answers.sqlite`.

    Raises:
        VeriglotError: the cache cannot be created, opened or read, or has another version.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        super().__init__(folder / "answers.sqlite", _TABLE, error=self._unusable)

    def get(self, key: str) -> bytes | None:
        """The value of a key, or None."""
        rows = self.read("SELECT answer FROM answers WHERE key = ?", (key,))
        try:
            return zlib.decompress(rows[0][0]) if rows else None
        except zlib.error as error:
            raise self._unusable(str(error)) from error

    def put(self, key: str, answer: bytes) -> None:
        """Store an answer, unless the key has one."""
        self.write("INSERT OR IGNORE INTO answers VALUES (?, ?)", [(key, zlib.compress(answer))])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _unusable(self, what: str) -> VeriglotError:
        return VeriglotError(
            f"The folder of fetched answers {self._folder} cannot be used: {what}",
            "Free the disk, or name another folder; its answers are fetched again.",
        )


# Sessions for Wikimedia's servers by the rules of their operators: identification, one request at a time, limited rate.
#
# https://foundation.wikimedia.org/wiki/Policy:User-Agent_policy, https://www.mediawiki.org/wiki/API:Etiquette.


def user_agent(contact: str | None) -> str:
    """Veriglot's user agent.

    Args:
        contact: an e-mail address, or the address of a page, to reach its user. Sent to the server.

    Raises:
        UsageError: an invalid contact.
    """
    if contact is None:
        return f"veriglot/{__version__}"
    contact = contact.strip()
    if not (contact.isascii() and contact.isprintable() and ("@" in contact or contact.startswith("http"))):
        raise UsageError(f"{contact!r} is no contact address.", "Give an e-mail or web address.")
    return f"veriglot/{__version__} ({contact})"


def wikipedia_session(
    language: str, *, contact: str | None, server: str | None = None, rate: float | None = 5.0
) -> Session:
    """The server of a Wikipedia, with at most `rate` requests per second.

    Args:
        language: which Wikipedia.
        contact: see `user_agent`; required for Wikimedia's own servers.
        server: another address, such as that of a mirror.
        rate: None for no limit.

    Raises:
        UsageError: no contact, or no such Wikipedia.
    """
    return _session(server or wiki_url(edition_of(language)), contact, rate, retries=8, backoff=1.0)


def wikidata_session(*, contact: str | None, server: str | None, rate: float | None) -> Session:
    """Wikidata's query server; arguments and errors as for `wikipedia_session`."""
    return _session(server or "https://query.wikidata.org", contact, rate, retries=6, backoff=1.0, timeout=90.0)


def page_views_session(*, contact: str | None, server: str | None, rate: float | None) -> Session:
    """The server of page views; arguments and errors as for `wikipedia_session`."""
    return _session(server or "https://wikimedia.org/api/rest_v1", contact, rate, retries=6)


def _session(server: str, contact: str | None, rate: float | None, **options: Any) -> Session:
    host = urlsplit(server).hostname or ""
    if contact is None and host.endswith(("wikipedia.org", "wikimedia.org", "wikidata.org")):
        raise UsageError(
            "Wikimedia's servers refuse programs without a contact address.",
            "Add --contact with an e-mail or web address of yours; it is sent to them with each request.",
        )
    remedy = "Check your connection. Without one, give files: --help names --dump, --people or --articles."
    return Session(server, user_agent=user_agent(contact), rate=rate, remedy=remedy, **options)


# The action API of a MediaWiki server: queries with continuation, `maxlag`, and errors with status 200.
#
# https://www.mediawiki.org/wiki/API:Query, API:Continue, Manual:Maxlag parameter, API:Etiquette.


_LOG = logging.getLogger(__name__)
_COMMON_PARAMS = {
    "action": "query",
    "format": "json",
    "formatversion": "2",
    "maxlag": "5",  # refuse if database replicas lag more seconds, as operators request, so that readers do not wait
}
_RETRYABLE_ERRORS = {"maxlag", "ratelimited", "readonly", "timeouterror", "internal_api_error_DBQueryTimeoutError"}


def _add(known: Json, part: Mapping[str, Any]) -> None:
    """Merge a part of an answer into the batch, page by page; lists are joined without duplicates."""
    for name, value in part.items():
        if name == "pages":
            for page in value:
                _add(known["pages"].setdefault(page.get("pageid") or page.get("title"), {}), page)
        elif isinstance(value, list):
            items = known.setdefault(name, [])
            items += [item for item in value if item not in items]
        else:
            known[name] = known.get(name, {}) | value if isinstance(value, dict) else value


_BATCH = 20  # pages per request; the whole text of each page needs its own request anyway (TextExtracts)
_LISTED = 50  # titles per request for names only, the maximum without an account
_QUERIES = read_package_data(__package__, "queries.toml", dict[str, dict[str, str]])


class Wikipedia:
    """The Wikipedia of one language.

    Args:
        language: any tag or name that `records.language` takes.
        session: its server, for example from `wikipedia_session`.
        cache: of the answers, so that the same work repeats no request; None for no cache.

    Attributes:
        language: its tag.
        edition: the first part of its usual host.
        warnings: the server's warnings -> how often.

    Raises:
        UnknownNameError: no such language.
        UsageError: there is no Wikipedia in it.
    """

    def __init__(self, language: str, session: Session, *, cache: AnswerCache | None = None) -> None:
        self.language = get_language(language).tag
        self.edition = edition_of(language)
        self.warnings = Counter[str]()
        self._answers = JsonClient(session, cache)

    def random(self, *, seed: int = 0) -> Iterator[Article | Absent]:
        """Random pages of the article namespace without redirects, endless as long as the server has more.

        The server draws. One starting point is drawn, and pages follow in the server's random order.

        Args:
            seed: a name of the draw. With a cache the same seed gives the same pages; without, it has no effect.
        """
        params = {"generator": "random", "grnnamespace": "0", "grnfilterredir": "nonredirects", "grnlimit": str(_BATCH)}
        seen = set[int]()
        for batch in self._query(_QUERIES["content"] | params, label=f"draw {seed}"):
            if batch["pages"] and seen.issuperset(batch["pages"]):
                return  # the whole order was used
            yield from self._new_articles(batch, seen)

    def category(self, name: str, *, depth: int = 0) -> Iterator[Article | Absent]:
        """Pages of a category, and of its subcategories up to a depth; each page once.

        Args:
            name: with or without the namespace.
            depth: 0 for the category alone.
        """
        seen = set[int]()
        for title in self._subcategories(name, depth):
            params = {"generator": "categorymembers", "gcmtitle": title, "gcmtype": "page", "gcmnamespace": "0"}
            for batch in self._query({**_QUERIES["content"], **params, "gcmlimit": str(_BATCH)}):
                yield from self._new_articles(batch, seen)

    def titles(self, titles: Iterable[str]) -> Iterator[Article | Absent]:
        """The pages with these titles; redirects are followed. One result for each distinct page, in order."""
        wanted = list(dict.fromkeys(title.strip() for title in titles if title.strip()))
        for title in wanted:
            if "|" in title or "\n" in title:
                raise UsageError(f"{title!r} cannot be the title of a page.")
        for start in range(0, len(wanted), _BATCH):
            asked = wanted[start : start + _BATCH]
            for batch in self._query({**_QUERIES["content"], "titles": "|".join(asked), "redirects": "1"}):
                yield from map(self._article, _in_order(asked, batch))

    def statistics(self) -> Statistics:
        """The current numbers of the edition's Special:Statistics.

        Raises:
            HttpError: the server gives none.
        """
        (answer,) = self._query({"meta": "siteinfo", "siprop": "statistics"})
        return msgspec.convert(answer["statistics"], Statistics)

    def with_edits(self, article: Article) -> Article:
        """The article with its numbers of edits, of edits by bots, and of editors (three requests).

        MediaWiki stops counting at 30,000 edits and 25,000 editors; such numbers are lower bounds. For an article that
        was deleted they stay None.
        """
        path = f"w/rest.php/v1/page/{_quoted(article.title)}/history/counts"
        kinds = {"edits": "edits", "bot_edits": "bot", "editors": "editors"}
        answers = {name: self._answers.get(f"{path}/{kind}", {}, none_if_missing=True) for name, kind in kinds.items()}
        return msgspec.structs.replace(article, **{name: count and count["count"] for name, count in answers.items()})

    def linked_template_names(self, english: Wikipedia, kinds: Iterable[str]) -> dict[str, list[str]]:
        """Names of templates in this edition, by the interlanguage links of the wikis.

        Args:
            english: the English Wikipedia, whose templates link to the others.
            kinds: kinds of templates.

        Returns:
            Kind -> names in the edition, sorted, including redirects.

        Raises:
            HttpError: no answer.
        """
        names: dict[str, list[str]] = {}
        for kind in kinds:
            linked = english._template_names(table("maintenance_templates")["en"].get(kind, ()))  # same class
            here = linked.get(self.edition, set())
            if here and self.edition != english.edition:
                here = here | self._template_names(sorted(here)).get(self.edition, set())
            names[kind] = sorted(here)
        return names

    def _template_names(self, names: Iterable[str]) -> dict[str, set[str]]:
        """Names of templates in other editions, by interlanguage links; in this edition, with their redirects."""
        names_by_edition = defaultdict[str, set[str]](set)
        titles = [f"Template:{name}" for name in names]
        for start in range(0, len(titles), _LISTED):
            named = {"titles": "|".join(titles[start : start + _LISTED])}
            for batch in self._query(named | _QUERIES["template_names"]):
                for page in batch["pages"].values():
                    if page.get("missing") or page.get("invalid"):
                        continue
                    own = (page, *page.get("redirects", ()))
                    names_by_edition[self.edition].update(_without_namespace(each["title"]) for each in own)
                    for link in page.get("langlinks", ()):
                        names_by_edition[link["lang"]].add(_without_namespace(link["title"]))
        return names_by_edition

    def _query(self, params: Mapping[str, str], *, label: str = "") -> Iterator[Json]:
        """The parts of the answer to `action=query`, each complete, over as many requests as needed.

        If the properties of one batch of pages need several requests, they are merged before the batch is yielded: its
        `pages` are in the order in which the server first listed them.
        """
        batch: Json = {"pages": {}}
        onward: dict[str, str] = {}
        seen = set[tuple[tuple[str, str], ...]]()
        while True:
            answer = self._answers.get("w/api.php", {**_COMMON_PARAMS, **params, **onward}, self._review, label=label)
            for module, warning in answer.get("warnings", {}).items():
                text = f"{module}: {warning.get('warnings') or warning}"
                if not self.warnings[text]:
                    _LOG.warning("%s warns of %s", self._answers.session.base_url, text)
                self.warnings[text] += 1
            _add(batch, answer.get("query", {}))
            following = {name: str(value) for name, value in answer.get("continue", {}).items()}
            if answer.get("batchcomplete") or not following:
                yield batch
                batch = {"pages": {}}
            if not following:
                return
            state = tuple(sorted(following.items()))
            if state in seen:
                raise HttpError(
                    f"{self._answers.session.base_url} continues in a circle, at {following}",
                    "Check that the address is that of a MediaWiki server.",
                )
            seen.add(state)
            onward = following

    def _review(self, outcome: Response | HttpError) -> HttpError | None:
        if isinstance(outcome, HttpError):
            return None
        answer = outcome.json()
        if not isinstance(answer, dict):
            return HttpError(
                f"{self._answers.session.base_url}/w/api.php does not answer as MediaWiki does", "Check the address."
            )
        error = answer.get("error")
        if error is None:
            return None
        code, info = str(error.get("code", "")), str(error.get("info", ""))
        retryable = code in _RETRYABLE_ERRORS or code.startswith("internal_api_error")
        return HttpError(
            f"{self._answers.session.base_url} refuses: {info or code} ({code})",
            "Try again later; what is fetched is kept." if retryable else "",
            retryable=retryable,
            retry_after=outcome.retry_after if retryable else None,
        )

    def _subcategories(self, name: str, depth: int) -> Iterator[str]:
        """The category's full title, and its subcategories', breadth first, each once."""
        bare = name.partition(":")[2] or name
        level, seen = [f"Category:{bare}"], {bare}
        for remaining in range(depth, -1, -1):
            yield from level
            below = []
            for title in level if remaining else ():
                params = {"list": "categorymembers", "cmtitle": title, "cmtype": "subcat", "cmlimit": "max"}
                for batch in self._query(params):
                    for member in batch.get("categorymembers", ()):
                        if _without_namespace(member["title"]) not in seen:
                            seen.add(_without_namespace(member["title"]))
                            below.append(member["title"])
            level = below

    def _new_articles(self, batch: Json, seen: set[int]) -> Iterator[Article | Absent]:
        """The pages of a batch that are not in `seen`; adds them."""
        for number, page in batch["pages"].items():
            if number not in seen:
                seen.add(number)
                yield self._article(page)

    def _article(self, page: Json) -> Article | Absent:
        title = page.get("title", "")
        properties = page.get("pageprops", {})
        reasons = {
            "invalid title": page.get("invalid"),
            "missing": page.get("missing"),
            "redirect": page.get("redirect"),
            "not an article": page.get("ns", 0) != 0,
            "disambiguation": "disambiguation" in properties,
        }
        reason = next((reason for reason, applies in reasons.items() if applies), "")
        text, lead = split_sections(page.get("extract") or "")
        if reason or not text:
            return Absent(title, reason or "no text")
        (revision, *_) = page.get("revisions") or [{}]
        return Article(
            id=f"{self.language}-{page['pageid']}",
            language=self.language,
            title=title,
            page_id=page["pageid"],
            url=page.get("canonicalurl") or wiki_url(self.edition, title),
            text=text,
            lead=lead,
            revision=revision.get("revid") or page.get("lastrevid"),
            categories=tuple(_without_namespace(member["title"]) for member in page.get("categories", ())),
            templates=tuple(_without_namespace(member["title"]) for member in page.get("templates", ())),
            timestamp=revision.get("timestamp"),
            size=revision.get("size") or page.get("length"),
            item=properties.get("wikibase_item"),
        )


def _in_order(asked: list[str], batch: Json) -> list[Json]:
    """The pages of a batch in the order of the requested titles; the server sorts by page number."""
    renamed = {
        change["from"]: change["to"]
        for name in ("normalized", "redirects")
        for change in batch.get(name, ())
        if "to" in change
    }
    order: dict[str, int] = {}
    for index, title in enumerate(asked):
        for _ in range(5):  # normalised, then redirected, at most a few times
            title = renamed.get(title, title)
        order.setdefault(title, index)
    return sorted(batch["pages"].values(), key=lambda page: order.get(page.get("title", ""), len(asked)))


def _quoted(title: str) -> str:
    return quote(title.replace(" ", "_"), safe="")


def _without_namespace(title: str) -> str:
    """A title without its namespace, whose name depends on the language."""
    return title.partition(":")[2] or title


# Page views published by Wikimedia.
#
# https://doc.wikimedia.org/generated-data-platform/aqs/analytics-api/reference/page-views.html


_FIRST = (2015, 7)  # earlier months have no such counts


def page_views(answers: JsonClient, language: str, title: str, start: date, end: date) -> int | None:
    """The views of an article by people in a period, without bots and crawlers.

    Args:
        answers: client of the server, for example of `page_views_session`.
        language: of the Wikipedia.
        title: the article's.
        start: first day; must be the first of a month.
        end: the day after the last; the first of a month (Kang et al.: 2022-01-01 to 2023-01-01 is the year 2022).

    Returns:
        The number of views; None if the server has no count, for few views or a wrong title.

    Raises:
        UsageError: a period that is not whole months, is empty, or begins before July 2015.
        HttpError: no usable answer.
    """
    if start.day != 1 or end.day != 1 or start >= end:
        raise UsageError(
            f"Page views from {start} to {end} are not available: they are counted by month.",
            "Give the first days of two months, such as 2022-01-01 and 2023-01-01; the second is excluded.",
        )
    if (start.year, start.month) < _FIRST:
        raise UsageError("There are no counts of page views before July 2015.")
    page = f"{edition_of(language)}.wikipedia/all-access/user/{_quoted(title)}"
    period = f"{start:%Y%m%d}00/{end - timedelta(days=1):%Y%m%d}00"
    path = f"metrics/pageviews/per-article/{page}/monthly/{period}"
    answer = answers.get(path, {}, none_if_missing=True)
    return sum(int(month["views"]) for month in answer["items"]) if answer is not None else None
