"""A small MediaWiki on loopback: the action API (format version 2) and the counts of its REST API.

Its answers have the shape that Wikipedia's servers give: pages that are completed over several answers, `continue`
with the parameter of each module that has more, `batchcomplete`, `maxlag` with status 200 and `Retry-After`, lists
that are cut at a limit, one whole extract an answer, titles that are normalised and redirected.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from misbehaving import Arrival, Faults, FaultyServer

if TYPE_CHECKING:
    from misbehaving import _Handler


@dataclass
class WikiPage:
    """A page of the wiki; its extract is what TextExtracts makes of it with `exsectionformat=wiki`."""

    title: str
    extract: str = ""
    categories: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    ns: int = 0
    redirect: str = ""
    disambiguation: bool = False
    item: str = ""
    edits: int = 12
    bots: int = 2
    editors: int = 7
    langlinks: tuple[tuple[str, str], ...] = ()
    pageid: int = field(default=0)


class WikiServer(FaultyServer):
    """One wiki.

    Args:
        pages: numbered from 1 on, in this order.
        faults: see `FaultyServer`.
        lagged: how often each request is refused with `maxlag` before it is answered.
        listed: how many categories or templates one answer holds over all pages.
        statistics: of Special:Statistics.
        seed: of the random order of pages.
    """

    def __init__(
        self,
        pages: list[WikiPage],
        faults: Faults | None = None,
        *,
        lagged: int = 0,
        listed: int = 500,
        statistics: dict[str, int] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(faults)
        self.pages = pages
        for number, page in enumerate(pages, 1):
            page.pageid = number
        self.by_title = {page.title: page for page in pages}
        self.lagged = lagged
        self.lags = 0
        self.listed = listed
        self.statistics = statistics or {"pages": 9000, "articles": 1000, "edits": 50000}
        self.draws = 0
        self._seed = seed

    def _serve(self, arrival: Arrival, nth: int, connection: _Handler) -> None:
        if "maxlag" in arrival.query and nth < self.lagged:
            self.lags += 1
            info = "Waiting for 10.64.16.12: 7.2 seconds lagged."
            error = {"code": "maxlag", "info": info, "host": "10.64.16.12", "lag": 7.2, "type": "db"}
            answer = {"error": error, "servedby": "mw1"}
            connection.answer(200, answer, {"Retry-After": "0.02", "X-Database-Lag": "7"})
            return
        super()._serve(arrival, nth, connection)

    def handle(self, arrival: Arrival) -> tuple[int, Any]:
        if arrival.path.startswith("/w/rest.php/v1/page/"):
            return self._history(arrival.path.removeprefix("/w/rest.php/v1/page/"))
        query = arrival.query
        if arrival.path != "/w/api.php" or query.get("action") != "query":
            return 404, b"<html>Not found</html>"
        if query.get("formatversion") != "2" or query.get("format") != "json":
            return 200, {"error": {"code": "badvalue", "info": "Only JSON of version 2 is served."}}
        if query.get("meta") == "siteinfo":
            return 200, {"batchcomplete": True, "query": {"statistics": {**self.statistics, "images": 3, "users": 9}}}
        if query.get("list") == "categorymembers":
            return 200, self._subcategories(query)
        return 200, self._properties(query)

    def _history(self, path: str) -> tuple[int, Any]:
        name, _, kind = path.partition("/history/counts/")
        page = self.by_title.get(unquote(name).replace("_", " "))
        if page is None:
            text = {"en": "The specified title does not exist"}
            return 404, {"messageTranslations": text, "httpCode": 404, "httpReason": "Not Found"}
        count = {"edits": page.edits, "bot": page.bots, "editors": page.editors}[kind]
        return 200, {"count": count, "limit": False}

    def _subcategories(self, query: dict[str, str]) -> dict[str, Any]:
        name = query["cmtitle"].partition(":")[2]
        members = [page.title for page in self.pages if page.ns == 14 and name in page.categories]
        start = int(query.get("cmcontinue", "0").rpartition("|")[2])
        shown = members[start : start + 2]
        answer: dict[str, Any] = {"batchcomplete": True, "query": {"categorymembers": []}}
        answer["query"]["categorymembers"] = [{"pageid": 1, "ns": 14, "title": title} for title in shown]
        if start + 2 < len(members):
            answer["continue"] = {"cmcontinue": f"subcat|{start + 2}", "continue": "-||"}
        return answer

    def _properties(self, query: dict[str, str]) -> dict[str, Any]:
        answer: dict[str, Any] = {"query": {}}
        chosen, here, onward = self._chosen(query, answer["query"])
        unfinished: dict[str, Any] = {}
        shown = [self._basic(page) for page in chosen if isinstance(page, WikiPage)]
        shown += [page for page in chosen if isinstance(page, dict)]
        real = [page for page in chosen if isinstance(page, WikiPage)]
        for name in query.get("prop", "").split("|"):
            if name in ("categories", "templates"):
                self._lists(name, query, real, shown, unfinished)
            elif name == "extracts":
                self._extract(query, real, shown, unfinished)
            else:
                for page, entry in zip(real, shown, strict=False):
                    self._whole(name, page, entry)
        if shown:
            answer["query"]["pages"] = shown
        if unfinished:
            rest = "|".join(name for name in ("info", "revisions", "pageprops") if name in query.get("prop", ""))
            answer["continue"] = {**here, **unfinished, "continue": f"||{rest}"}
        else:
            answer["batchcomplete"] = True
            if onward:
                answer["continue"] = {**onward, "continue": f"{next(iter(onward))}||"}
        if not answer["query"]:
            del answer["query"]
        return answer

    def _whole(self, name: str, page: WikiPage, entry: dict[str, Any]) -> None:
        """Properties that one answer always holds whole."""
        if name == "revisions":
            moment = "2024-05-01T00:00:00Z"
            entry["revisions"] = [{"revid": page.pageid * 10, "parentid": 0, "timestamp": moment, "size": 99}]
        elif name == "langlinks":
            entry["langlinks"] = [{"lang": lang, "title": title} for lang, title in page.langlinks]
        elif name == "redirects":
            there = [one for one in self.pages if one.redirect == page.title]
            entry["redirects"] = [{"pageid": one.pageid, "ns": one.ns, "title": one.title} for one in there]

    def _chosen(self, query: dict[str, str], told: dict[str, Any]) -> tuple[list[Any], dict[str, str], dict[str, str]]:
        """The pages of a batch, the parameters that lead to it again, and those that lead to the next."""
        if query.get("generator") == "random":
            articles = [page for page in self.pages if page.ns == 0 and not page.redirect]
            given = query.get("grncontinue")
            if given is None:
                self.draws += 1
                given = f"{random.Random(f'{self._seed}/{self.draws}').randrange(len(articles))}|0|0|0"
            order = list(articles)
            random.Random(self._seed).shuffle(order)
            start, done = (int(part) for part in given.split("|")[:2])
            limit = min(int(query["grnlimit"]), len(order) - done)
            chosen = [order[(start + done + step) % len(order)] for step in range(limit)]
            onward = {"grncontinue": f"{start}|{done + limit}|0|0"} if done + limit < len(order) else {}
            return chosen, {"grncontinue": given}, onward
        if query.get("generator") == "categorymembers":
            name = query["gcmtitle"].partition(":")[2]
            members = [page for page in self.pages if page.ns == 0 and name in page.categories]
            start, limit = int(query.get("gcmcontinue", "page|0").rpartition("|")[2]), min(3, int(query["gcmlimit"]))
            onward = {"gcmcontinue": f"page|{start + limit}"} if start + limit < len(members) else {}
            here = {"gcmcontinue": query["gcmcontinue"]} if "gcmcontinue" in query else {}
            return members[start : start + limit], here, onward
        return self._titled(query, told), {}, {}

    def _titled(self, query: dict[str, str], told: dict[str, Any]) -> list[Any]:
        chosen: list[Any] = []
        for asked in query["titles"].split("|"):
            title = asked.replace("_", " ")
            title = title[:1].upper() + title[1:]
            if title != asked:
                told.setdefault("normalized", []).append({"fromencoded": False, "from": asked, "to": title})
            if any(sign in title for sign in "<>[]{}"):
                reason = 'The requested page title contains invalid characters: "<".'
                chosen.append({"title": asked, "invalid": True, "invalidreason": reason})
                continue
            page = self.by_title.get(title)
            if page is not None and page.redirect and query.get("redirects"):
                told.setdefault("redirects", []).append({"from": page.title, "to": page.redirect})
                title, page = page.redirect, self.by_title.get(page.redirect)
            if page is None:
                chosen.append({"ns": 0, "title": title, "missing": True})
            elif page not in chosen:
                chosen.append(page)
        known = sorted((one for one in chosen if isinstance(one, WikiPage)), key=lambda page: page.pageid)
        return [*known, *(one for one in chosen if isinstance(one, dict))]

    def _basic(self, page: WikiPage) -> dict[str, Any]:
        properties: dict[str, str] = {"wikibase_item": page.item} if page.item else {}
        if page.disambiguation:
            properties["disambiguation"] = ""
        address = f"https://xx.wikipedia.org/wiki/{page.title.replace(' ', '_')}"
        entry = {
            "pageid": page.pageid, "ns": page.ns, "title": page.title, "contentmodel": "wikitext",
            "pagelanguage": "de", "pagelanguagehtmlcode": "de", "pagelanguagedir": "ltr",
            "touched": "2024-05-02T00:00:00Z", "lastrevid": page.pageid * 10, "length": 99,
            "fullurl": address, "editurl": f"{address}?action=edit", "canonicalurl": address,
        }  # fmt: skip
        return {**entry, "pageprops": properties} if properties else entry

    def _lists(
        self, name: str, query: dict[str, str], real: list[WikiPage], shown: list[Any], unfinished: dict[str, Any]
    ) -> None:
        """Categories or templates, as many as one answer holds; the rest from where `clcontinue` says."""
        parameter = "clcontinue" if name == "categories" else "tlcontinue"
        entries = []
        for page, entry in zip(real, shown, strict=False):
            if name == "categories":
                for one in (*page.categories, *page.hidden):
                    value: dict[str, Any] = {"ns": 14, "title": f"Kategorie:{one}", "hidden": one in page.hidden}
                    entries.append((f"{page.pageid}|{one}", entry, value))
            else:
                entries += [
                    (f"{page.pageid}|10|{one}", entry, {"ns": 10, "title": f"Vorlage:{one}"}) for one in page.templates
                ]
        if any(other in query for other in ("excontinue", "clcontinue", "tlcontinue")) and parameter not in query:
            return  # this module was finished before
        start = next((place for place, one in enumerate(entries) if one[0] == query.get(parameter)), 0)
        for _, entry, value in entries[start : start + self.listed]:
            entry.setdefault(name, []).append(value)
        if start + self.listed < len(entries):
            unfinished[parameter] = entries[start + self.listed][0]

    def _extract(
        self, query: dict[str, str], real: list[WikiPage], shown: list[Any], unfinished: dict[str, Any]
    ) -> None:
        if any(other in query for other in ("clcontinue", "tlcontinue")) and "excontinue" not in query:
            return
        start = int(query.get("excontinue", "0"))
        if start < len(real):
            shown[start]["extract"] = real[start].extract
        if start + 1 < len(real):
            unfinished["excontinue"] = start + 1


class PageViewServer(FaultyServer):
    """Page views by month as the REST API gives them.

    Args:
        views: (project, article with underscores) -> views in each month.
        faults: see `FaultyServer`.
    """

    def __init__(self, views: dict[tuple[str, str], list[int]], faults: Faults | None = None) -> None:
        super().__init__(faults)
        self.views = views

    @property
    def base_url(self) -> str:
        return f"{super().base_url}/api/rest_v1"

    def handle(self, arrival: Arrival) -> tuple[int, Any]:
        prefix = "/api/rest_v1/metrics/pageviews/per-article/"
        if not arrival.path.startswith(prefix):
            return 404, b"<html>Not found</html>"
        project, access, agent, article, granularity, start, end = arrival.path.removeprefix(prefix).split("/")
        assert (access, agent, granularity) == ("all-access", "user", "monthly")
        months = self.views.get((project, unquote(article)))
        if months is None:
            detail = "The date(s) you used are valid, but we either do not have data for those date(s)"
            return 404, {"type": "about:blank", "title": "Not found", "method": "get", "detail": detail}
        items = []
        for number, count in enumerate(months):
            stamp = f"{2022 + number // 12}{number % 12 + 1:02}0100"
            if start <= stamp <= end:
                items.append(
                    {
                        "project": project, "article": unquote(article), "granularity": "monthly",
                        "timestamp": stamp, "access": "all-access", "agent": "user", "views": count,
                    }
                )  # fmt: skip
        return 200, {"items": items}
