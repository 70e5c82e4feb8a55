"""People of Wikidata that several Wikipedias have an article on, by SPARQL that any server of its RDF understands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from veriglot.errors import UsageError
from veriglot.records.languages import language as known_language
from veriglot.sources.answers import Answers
from veriglot.sources.editions import edition_of, wiki_url
from veriglot.sources.person import Person, Thing
from veriglot.sources.sparql import Sparql, TooMuchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.http import Session
    from veriglot.sources.kept import Kept

__all__ = ["Wikidata"]

_MOST_SITELINKS = 600  # more than any person has; the most linked have about 400
_MANY_SITELINKS = 150  # few people have more, so that their slices may be wide
_LONGEST_ENDING = 3  # digits; a thousandth of a slice that still takes too long is other trouble
_BATCH = 40  # people described by one query, so that its address stays below 8 kB
_YEAR = re.compile(r"^([+-]?\d{1,6})-\d\d-\d\d")
_WIKIDATA_CODES = {"zh-Hans": ("zh-hans", "zh-cn", "zh"), "zh-Hant": ("zh-hant", "zh-tw", "zh"), "no": ("nb", "no")}
_OCCUPATION, _CITIZENSHIP, _BIRTH = (f"http://www.wikidata.org/prop/direct/P{number}" for number in (106, 27, 569))


class Wikidata:
    """Wikidata's SPARQL server.

    Args:
        session: the server, such as `Session("https://query.wikidata.org", retries=0, ...)`; see `sources.polite`.
        kept: where answers are kept, so that the same work asks nothing twice.
        retries, wait: see `Sparql`.
    """

    def __init__(self, session: Session, *, kept: Kept | None = None, retries: int = 6, wait: float = 1.0) -> None:
        self._sparql = Sparql(Answers(session, kept), retries=retries, wait=wait)

    def people(
        self, languages: Sequence[str], *, at_least: int | None = None, most_sitelinks: int = _MOST_SITELINKS
    ) -> Iterator[Person]:
        """Everybody with an article in the Wikipedias of these languages, those with most sitelinks first.

        A query for all people at once takes the server longer than it allows. So people are asked for slice by slice
        of their number of sitelinks; a slice that still takes too long is halved, and in the end parted by the last
        digits of the items' numbers.

        Args:
            languages: tags or names.
            at_least: in how many of them there has to be an article; None for all.
            most_sitelinks: where to begin.

        Yields:
            People with id and number of sitelinks only; `describe` adds the rest.

        Raises:
            UsageError: no language, or two of one Wikipedia; or a number that is not from 1 to theirs.
            TooMuchError: the server cannot answer for a single slice, however thin.
            HttpError, SourceError: no usable answer.
        """
        editions = _editions(languages)
        needed = len(editions) if at_least is None else at_least
        if not 1 <= needed <= len(editions):
            raise UsageError(f"Articles in {needed} of {len(editions)} languages cannot be asked for.")
        wikis = " ".join(f"<{wiki_url(edition)}>" for edition in editions.values())
        seen: set[str] = set()  # somebody may get a sitelink more while we ask
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
            languages: which names and titles.

        Raises:
            UsageError, HttpError, SourceError: as for `people`.
        """
        editions = _editions(languages)
        for start in range(0, len(people), _BATCH):
            yield from self._describe(people[start : start + _BATCH], editions)

    def _slice(self, low: int, high: int, ending: str, wikis: str, needed: int) -> Iterator[Person]:
        """The people of a slice, thinner slices where the server is overtaxed; by sitelinks, then number."""
        pattern = f'FILTER(STRENDS(STR(?item), "{ending}"))' if ending else ""
        counts = " ".join(map(str, range(low, high + 1)))
        try:
            rows = self._sparql.ask("people", sitelinks=counts, ending=pattern, wikis=wikis, at_least=str(needed))
        except TooMuchError:
            if low < high:
                middle = (low + high + 1) // 2
                yield from self._slice(middle, high, ending, wikis, needed)
                yield from self._slice(low, middle - 1, ending, wikis, needed)
                return
            if ending.startswith("/") or len(ending) >= _LONGEST_ENDING:
                raise
            parts: list[Person] = []
            for finer in _finer(ending):
                parts += self._slice(low, high, finer, wikis, needed)
            yield from sorted(parts, key=lambda person: int(person.id[1:]))
            return
        found = [Person(id=_number(row["item"]), sitelinks=int(row["sitelinks"])) for row in rows]
        yield from sorted(found, key=lambda person: (-person.sitelinks, int(person.id[1:])))

    def _describe(self, people: Sequence[Person], editions: dict[str, str]) -> Iterator[Person]:
        items = " ".join(f"wd:{person.id}" for person in people)
        wikis = " ".join(f"<{wiki_url(edition)}>" for edition in editions.values())
        tags = {wiki_url(edition): tag for tag, edition in editions.items()}
        titles: dict[str, dict[str, str]] = {person.id: {} for person in people}
        for row in self._sparql.ask("articles", items=items, wikis=wikis):
            titles[_number(row["item"])][tags[row["wiki"]]] = row["title"]
        names = self._names(items, editions)
        facts = self._facts(items)
        for person in people:
            own = titles[person.id]
            called = names.get(person.id, {})
            born, occupations, citizenships = facts.get(person.id, (None, (), ()))
            yield Person(
                id=person.id,
                sitelinks=person.sitelinks,
                names={tag: called.get(tag) or _without_parentheses(own[tag]) for tag in editions if tag in own},
                titles={tag: own[tag] for tag in editions if tag in own},
                born=born,
                occupations=occupations,
                citizenships=citizenships,
            )

    def _names(self, items: str, editions: dict[str, str]) -> dict[str, dict[str, str]]:
        codes = {tag: _WIKIDATA_CODES.get(tag, (known_language(tag).base,)) for tag in editions}
        wanted = ", ".join(f'"{code}"' for code in dict.fromkeys(code for each in codes.values() for code in each))
        found: dict[str, dict[str, str]] = {}
        for row in self._sparql.ask("labels", items=items, languages=wanted):
            found.setdefault(_number(row["item"]), {})[row.get("label@", "")] = row["label"]
        return {
            item: {
                tag: next(by_code[code] for code in each if code in by_code)
                for tag, each in codes.items()
                if any(code in by_code for code in each)
            }
            for item, by_code in found.items()
        }

    def _facts(self, items: str) -> dict[str, tuple[int | None, tuple[Thing, ...], tuple[Thing, ...]]]:
        years: dict[str, list[int]] = {}
        things: dict[tuple[str, str], dict[str, Thing]] = {}
        for row in self._sparql.ask("properties", items=items):
            item, value = _number(row["item"]), row.get("value")
            if value is None:
                continue  # Wikidata knows that there is a value, and not which
            if row["property"] == _BIRTH:
                found = _YEAR.match(value)
                if found:
                    years.setdefault(item, []).append(int(found[1]))
            else:
                thing = Thing(_number(value), row.get("label", ""))
                things.setdefault((item, row["property"]), {})[thing.item] = thing
        return {
            item: (
                min(years[item]) if item in years else None,  # several dates of birth: the earliest
                _sorted(things.get((item, _OCCUPATION), {})),
                _sorted(things.get((item, _CITIZENSHIP), {})),
            )
            for item in {*years, *(item for item, _ in things)}
        }


def _editions(languages: Sequence[str]) -> dict[str, str]:
    """Language tag -> edition, in order."""
    editions = {known_language(name).tag: edition_of(name) for name in languages}
    if not editions:
        raise UsageError("No language is named.")
    if len(set(editions.values())) < len(editions):
        raise UsageError("Two of the languages share one Wikipedia.", remedy="Name one of them, such as zh.")
    return editions


def _finer(ending: str) -> list[str]:
    """The endings that together are as wide as one: a digit more, or the whole number."""
    whole = [f"/Q{ending}"] if ending else []
    return [*whole, *(f"{digit}{ending}" for digit in range(10))]


def _number(uri: str) -> str:
    return uri.rpartition("/")[2]


def _sorted(things: dict[str, Thing]) -> tuple[Thing, ...]:
    return tuple(things[name] for name in sorted(things, key=lambda item: (len(item), item)))


def _without_parentheses(title: str) -> str:
    return re.sub(r"\s*[(（][^()（）]*[)）]\s*$", "", title) or title
