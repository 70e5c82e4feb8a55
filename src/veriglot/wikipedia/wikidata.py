"""People of Wikidata with articles in several Wikipedias, by SPARQL."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import partial
from importlib.resources import files
from itertools import chain
from string import Template
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import UsageError
from veriglot.http.session import HttpError, Response, Session
from veriglot.records.languages import get_language
from veriglot.records.settings import Record
from veriglot.wikipedia.api import AnswerCache, JsonClient
from veriglot.wikipedia.articles import edition_of, table, wiki_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


__all__ = ["Person", "Wikidata", "without_parentheses"]


class Item(Record, omit_defaults=True):
    """An item that is the value of a property.

    Attributes:
        item: its number, such as `Q36180`.
        label: its English name; empty if it has none.
    """

    item: str
    label: str = ""


class Person(Record, omit_defaults=True):
    """One person.

    Attributes:
        id: the Wikidata item, such as `Q42`.
        sitelinks: number of wikis, of all projects, with a page on them.
        names: language tag -> Wikidata's label; if there is none in a language, the title of the article
            without its part in parentheses.
        titles: language tag -> title of the article.
        born: year of birth (proleptic, negative before Christ: -43 is 44 BC), or None if unknown. HalluVerse25.
        occupations: P106. HalluVerse25.
        citizenships: P27. HalluVerse25.
        views: language tag -> views of the article in the requested period, or None if there is no count.
            Kang et al.
    """

    id: str
    sitelinks: int
    names: dict[str, str] = {}
    titles: dict[str, str] = {}
    born: int | None = None
    occupations: tuple[Item, ...] = ()
    citizenships: tuple[Item, ...] = ()
    views: dict[str, int | None] = {}

    @property
    def all_views(self) -> int:
        """The sum of the known views."""
        return sum(views or 0 for views in self.views.values())


# A SPARQL client: queries in, rows out; distinguishes time-outs of queries from other errors.
#
# The answers are of the W3C's "SPARQL 1.1 Query Results JSON Format".


_SIGNS_OF_TIMEOUT = ("TimeoutException", "Query deadline is expired", "QueryTimeoutException", "timed out")


class QueryTimeoutError(HttpError):
    """The query takes longer than the server allows: request less at a time."""


def _row(binding: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    row: dict[str, str] = {}
    for name, value in binding.items():
        if value.get("type") != "bnode" and "/.well-known/genid/" not in value.get("value", ""):
            row |= {name: value["value"], f"{name}@": value.get("xml:lang", "")}
    return row


_MOST_SITELINKS = 600  # more than any person has; the maximum is about 400
_MANY_SITELINKS = 150  # few people have more, so their slices may be wide
_LONGEST_ENDING = 3  # digits; if a thousandth of a slice still times out, the cause is another
_BATCH = 40  # people per query, so that its address stays below 8 kB
_YEAR = re.compile(r"^([+-]?\d{1,6})-\d\d-\d\d")
_OCCUPATION, _CITIZENSHIP, _BIRTH = (f"http://www.wikidata.org/prop/direct/P{number}" for number in (106, 27, 569))


class Wikidata:
    """Wikidata's SPARQL server.

    Args:
        session: the server, for example from `wikidata_session`.
        cache: of the answers, so that the same work repeats no request.
    """

    def __init__(self, session: Session, *, cache: AnswerCache | None = None) -> None:
        self._answers = JsonClient(session, cache)

    def people(
        self, languages: Sequence[str], *, at_least: int | None = None, most_sitelinks: int = _MOST_SITELINKS
    ) -> Iterator[Person]:
        """Everybody with an article in the Wikipedias of these languages, those with most sitelinks first.

        One query for all people exceeds the server's time limit. So people are queried in slices by their number of
        sitelinks; a slice that still times out is halved, and finally split by the last digits of the items' numbers.

        Args:
            languages: tags or names.
            at_least: minimum number of them with an article; None for all.
            most_sitelinks: where to begin.

        Yields:
            People with id and number of sitelinks only; `describe` adds the rest.

        Raises:
            UsageError: no language, or two of one Wikipedia; or a number that is not from 1 to theirs.
            QueryTimeoutError: the server cannot answer even for the smallest slice.
            HttpError: no usable answer.
        """
        editions = _editions(languages)
        needed = len(editions) if at_least is None else at_least
        if not 1 <= needed <= len(editions):
            raise UsageError(f"Articles in {needed} of {len(editions)} languages cannot be asked for.")
        wikis = _addresses(editions)
        seen = set[str]()  # a person may gain a sitelink between queries
        high = most_sitelinks
        while high >= needed:
            width = high // 3 if high > _MANY_SITELINKS else max(1, high // 8)
            low = max(needed, high - width + 1)
            for person in self._slice(low, high, "", wikis, needed):
                if person.id not in seen:
                    seen.add(person.id)
                    yield person
            high = low - 1

    def describe(self, people: Sequence[Person], languages: Sequence[str]) -> Iterator[Person]:
        """The same people in order, with names, titles, year of birth, occupations and citizenships.

        Args:
            people: from `people`.
            languages: of the names and titles.

        Raises:
            UsageError, HttpError: as for `people`.
        """
        editions = _editions(languages)
        for start in range(0, len(people), _BATCH):
            yield from self._describe(people[start : start + _BATCH], editions)

    def _slice(self, low: int, high: int, ending: str, wikis: str, needed: int) -> Iterator[Person]:
        """The people of a slice, split further if the server times out; by sitelinks, then number."""
        pattern = f'FILTER(STRENDS(STR(?item), "{ending}"))' if ending else ""
        counts = " ".join(map(str, range(low, high + 1)))
        try:
            rows = self._ask("people", sitelinks=counts, ending=pattern, wikis=wikis, at_least=str(needed))
        except QueryTimeoutError:
            if low < high:
                middle = (low + high + 1) // 2
                yield from self._slice(middle, high, ending, wikis, needed)
                yield from self._slice(low, middle - 1, ending, wikis, needed)
                return
            if ending.startswith("/") or len(ending) >= _LONGEST_ENDING:
                raise
            finer = [f"/Q{ending}"] if ending else []  # a partition: the whole number, or one more digit
            finer += [f"{digit}{ending}" for digit in range(10)]
            parts = [person for each in finer for person in self._slice(low, high, each, wikis, needed)]
            yield from sorted(parts, key=lambda person: int(person.id[1:]))
            return
        people = [Person(id=_number(row["item"]), sitelinks=int(row["sitelinks"])) for row in rows]
        yield from sorted(people, key=lambda person: (-person.sitelinks, int(person.id[1:])))

    def _describe(self, people: Sequence[Person], editions: dict[str, str]) -> Iterator[Person]:
        items = " ".join(f"wd:{person.id}" for person in people)
        tags = {wiki_url(edition): tag for tag, edition in editions.items()}
        titles = defaultdict[str, dict[str, str]](dict)
        for row in self._ask("articles", items=items, wikis=_addresses(editions)):
            titles[_number(row["item"])][tags[row["wiki"]]] = row["title"]
        known = table("codes")["wikidata"]
        codes = {tag: known.get(tag, (get_language(tag).base,)) for tag in editions}
        wanted = ", ".join(f'"{code}"' for code in dict.fromkeys(chain.from_iterable(codes.values())))
        labels = defaultdict[str, dict[str, str]](dict)
        for row in self._ask("labels", items=items, languages=wanted):
            labels[_number(row["item"])][row.get("label@", "")] = row["label"]
        years = defaultdict[str, list[int]](list)
        entities = defaultdict[tuple[str, str], dict[str, Item]](dict)
        for row in self._ask("properties", items=items):
            item, value = _number(row["item"]), row.get("value", "")
            if row["property"] == _BIRTH:
                years[item] += [int(match[1]) for match in _YEAR.finditer(value)]
            elif value:  # empty if Wikidata has an unknown value
                entities[item, row["property"]][value] = Item(_number(value), row.get("label", ""))
        for person in people:
            id_ = person.id
            own = {tag: titles[id_][tag] for tag in editions if tag in titles[id_]}
            names = {tag: next(filter(None, map(labels[id_].get, codes[tag])), None) for tag in own}
            yield msgspec.structs.replace(
                person,
                names={tag: names[tag] or without_parentheses(title) for tag, title in own.items()},
                titles=own,
                born=min(years[id_], default=None),  # the earliest of several dates of birth
                occupations=_sorted(entities[id_, _OCCUPATION]),
                citizenships=_sorted(entities[id_, _CITIZENSHIP]),
            )

    def _ask(self, name: str, **values: str) -> list[dict[str, str]]:
        """The rows of a query of `queries/`, variable -> value, without unbound variables and blank nodes.

        A query that times out is not repeated, since it would time out again.
        """
        text = files(__package__).joinpath("queries", f"{name}.rq").read_text("utf-8")
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        query = Template("\n".join(lines)).substitute(values)
        answer = self._answers.get("sparql", {"query": query, "format": "json"}, partial(self._review, name))
        return [_row(binding) for binding in answer["results"]["bindings"]]

    def _review(self, name: str, outcome: Response | HttpError) -> HttpError | None:
        if isinstance(outcome, HttpError):
            slow = outcome.status == 504 or (outcome.status is None and outcome.trouble == "timeout")
            if outcome.trouble == "json" or outcome.status == 500:
                # Blazegraph sends 200 first and its exception later, in the middle of what should be JSON.
                slow |= any(sign in f"{outcome.body} {outcome.message}" for sign in _SIGNS_OF_TIMEOUT)
            return QueryTimeoutError(f"The query {name} takes the server too long.") if slow else None
        answer = outcome.json()
        results = answer.get("results") if isinstance(answer, dict) else None
        if isinstance(results, dict) and isinstance(results.get("bindings"), list):
            return None
        return HttpError(
            f"{self._answers.session.base_url}/sparql does not answer with SPARQL results", "Check the address."
        )


def _editions(languages: Sequence[str]) -> dict[str, str]:
    """Language tag -> edition, in order."""
    editions = {get_language(name).tag: edition_of(name) for name in languages}
    if not editions:
        raise UsageError("No language is named.")
    if len(set(editions.values())) < len(editions):
        raise UsageError("Two of the languages share one Wikipedia.", "Name one of them, such as zh.")
    return editions


def _addresses(editions: dict[str, str]) -> str:
    return " ".join(f"<{wiki_url(edition)}>" for edition in editions.values())


def _number(uri: str) -> str:
    return uri.rpartition("/")[2]


def _sorted(entities: dict[str, Item]) -> tuple[Item, ...]:
    return tuple(sorted(entities.values(), key=lambda entity: (len(entity.item), entity.item)))


def without_parentheses(title: str) -> str:
    """A title without its final part in parentheses, unless that is all of it."""
    return re.sub(r"\s*[(（][^()（）]*[)）]\s*$", "", title) or title
