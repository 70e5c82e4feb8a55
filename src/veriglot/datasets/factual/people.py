"""People of a factual set: their articles, the order in which they are tried, and who has enough usable articles."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from veriglot.datasets.queries import NamedPerson, person_from
from veriglot.datasets.references import Reference, reference_from
from veriglot.errors import UsageError
from veriglot.signatures import digest
from veriglot.wikipedia.articles import Article, draw_diverse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from veriglot.datasets.references import Part
    from veriglot.storage.checkpoint import FailedRow
    from veriglot.wikipedia.api import AnswerCache
    from veriglot.wikipedia.articles import Absent

__all__ = [
    "ArticleSource",
    "Candidate",
    "Choice",
    "ChoiceAccount",
    "RejectedPerson",
    "Spread",
    "Titles",
    "WikiArticles",
    "candidate_from",
    "choose",
    "given_articles",
    "in_order",
]


# The articles about people: from Wikipedias, or from files. Who has none in a language is told with the reason.


_ITEM = re.compile(r"Q\d+")
_IMPOSSIBLE = frozenset("|\n")  # what a wiki cannot even be asked for


class Titles(Protocol):
    """What is asked of a Wikipedia; `sources.Wikipedia` has it."""

    def titles(self, titles: Iterable[str]) -> Iterator[Article | Absent]:
        """One result for each different page of these titles; redirects are followed."""


class ArticleSource(Protocol):
    """Where articles about people come from."""

    def of(self, people: Sequence[Candidate], tag: str) -> dict[str, Reference | str]:
        """By id of the person: the article in a language, or why there is none (such as `missing`)."""


class WikiArticles:
    """Articles as Wikipedias have them now.

    Args:
        wiki: the Wikipedia of a language tag; asked once for each.
        part: what of an article is the reference (Kang et al.: "the full-page content", section 3).
    """

    def __init__(self, wiki: Callable[[str], Titles], *, part: Part = "text") -> None:
        self._open = wiki
        self._part = part
        self._wikis: dict[str, Titles] = {}

    def of(self, people: Sequence[Candidate], tag: str) -> dict[str, Reference | str]:
        """See `ArticleSource`. A redirect to an article that Wikidata knows as another item's is no article on them.

        Raises:
            HttpError: no usable answer.
            UsageError: no such Wikipedia.
        """
        asked = {person_.id: title for person_ in people if (title := person_.title_in(tag))}
        if not asked:
            return dict.fromkeys((person_.id for person_ in people), "no title")
        wiki = self._wikis.get(tag) or self._wikis.setdefault(tag, self._open(tag))
        possible = [title for title in asked.values() if not _IMPOSSIBLE.intersection(title)]
        rows = list(wiki.titles(possible)) if possible else []
        by_item = {row.item: row for row in rows if isinstance(row, Article) and row.item is not None}
        by_title = {row.title: row for row in rows}
        articles: dict[str, Reference | str] = {}
        for person in people:
            if person.id not in asked:
                articles[person.id] = "no title"
                continue
            title = asked[person.id]
            if _IMPOSSIBLE.intersection(title):
                articles[person.id] = "invalid title"
                continue
            row = by_item.get(person.id) or by_title.get(title) or next(iter(wiki.titles([title])), None)
            articles[person.id] = self._reference(person.id, tag, row)
        return articles

    def _reference(self, person: str, tag: str, row: Article | Absent | None) -> Reference | str:
        if row is None:
            return "missing"
        if not isinstance(row, Article):
            return row.reason
        if row.item is not None and row.item != person and _ITEM.fullmatch(person):
            return "another item"
        return _named(reference_from(msgspec.to_builtins(row), part=self._part), person, tag)


def given_articles(
    rows: Iterable[Reference | FailedRow], shelf: AnswerCache, note: Callable[[FailedRow | Reference], None]
) -> GivenArticles:
    """Put articles of files on a shelf, by person and language; memory does not grow with them.

    Args:
        rows: references whose `meta` has the `item` that they are about.
        shelf: where they are put; a new one.
        note: told of each row that cannot be used: one that could not be read, that names no item, or a second about
            the same person in the same language.
    """
    for row in rows:
        item = row.meta.get("item") if isinstance(row, Reference) else None
        if not isinstance(row, Reference) or not isinstance(item, str):
            note(row)
            continue
        key = _key(item, row.language)
        if shelf.get(key) is not None:
            note(row)
            continue
        shelf.put(key, msgspec.json.encode(_named(row, item, row.language)))
    return GivenArticles(shelf)


class GivenArticles:
    """Articles that were read from files; see `given_articles`."""

    def __init__(self, shelf: AnswerCache) -> None:
        self._shelf = shelf

    def of(self, people: Sequence[Candidate], tag: str) -> dict[str, Reference | str]:
        """See `ArticleSource`."""
        articles: dict[str, Reference | str] = {}
        for person in people:
            encoded = self._shelf.get(_key(person.id, tag)) or self._shelf.get(_key(person.id, tag.partition("-")[0]))
            articles[person.id] = (
                "missing" if encoded is None else _in(msgspec.json.decode(encoded, type=Reference), tag)
            )
        return articles


def _in(reference: Reference, tag: str) -> Reference:
    """The reference under the tag that was asked for: a file may say `zh` where the set says `zh-Hans`."""
    return _named(reference, reference.meta["item"], tag)


def _named(reference: Reference, person: str, tag: str) -> Reference:
    """The reference under the id that the prompt has too."""
    meta = {**reference.meta, "item": person}
    return msgspec.structs.replace(reference, id=f"{person}-{tag}", language=tag, meta=meta)


def _key(person: str, tag: str) -> str:
    return f"{tag} {person}"


# People who may come into the set, and the order in which they are tried.


Spread = Literal["diverse", "top", "given"]
SPREADS: tuple[Spread, ...] = ("diverse", "top", "given")


class Candidate(msgspec.Struct, frozen=True):
    """A person who may come into the set.

    Attributes:
        named: the person, with names by language and what else is known.
        titles: language tag -> title of the article.
    """

    named: NamedPerson
    titles: dict[str, str] = {}

    @property
    def id(self) -> str:
        """Of the person, such as the Wikidata item `Q42`."""
        return self.named.id

    @property
    def views(self) -> int:
        """The sum of the page views that are known."""
        by_language = self.named.meta.get("views")
        if isinstance(by_language, dict):
            return sum(views for views in by_language.values() if isinstance(views, int))
        return by_language if isinstance(by_language, int) else 0

    def name_in(self, tag: str) -> str | None:
        """The name in a language: under its tag, or under the code without the script."""
        return self.named.names.get(tag) or self.named.names.get(tag.partition("-")[0])

    def title_in(self, tag: str) -> str | None:
        """The title of the article in a language, likewise."""
        return self.titles.get(tag) or self.titles.get(tag.partition("-")[0])


def candidate_from(data: Any) -> Candidate:
    """A person from a decoded JSON object, such as a row of `veriglot dataset people`; see `person_from`.

    Raises:
        InputError: it is no object, or has no id or no name.
    """
    named = person_from(data)
    titles = data.get("titles")
    by_tag = {tag: title for tag, title in titles.items() if isinstance(title, str)} if isinstance(titles, dict) else {}
    return Candidate(named, by_tag)


def in_order(
    candidates: Sequence[Candidate], count: int, *, spread: Spread = "diverse", groups: int = 10, seed: int = 0
) -> list[Candidate]:
    """All candidates in the order in which they are tried until `count` of them have what it takes.

    Args:
        candidates: in the order of their file.
        count: how many are wanted.
        spread: `diverse` takes as many from each of `groups` groups of equal size by page views (Kang et al., section
            3: "based on diverse page view counts"), and keeps the others in reserve, in an order drawn by a hash; `top`
            takes those that are read most; `given` keeps the order.
        groups, seed: of the draw.

    Raises:
        UsageError: no such way, or a count or number of groups below 1.
    """
    if spread not in SPREADS:
        raise UsageError(f"There is no way {spread!r} to choose people.", remedy=f"Known: {', '.join(SPREADS)}.")
    if count < 1:
        raise UsageError(f"{count} people cannot be chosen.")
    if spread == "given":
        return list(candidates)
    if spread == "top":
        return sorted(candidates, key=lambda person: (-person.views, person.id))
    first = draw_diverse(
        candidates, count, size=lambda person: person.views, name=lambda person: person.id, groups=groups, seed=seed
    )
    taken = {person.id for person in first}
    reserve = [person for person in candidates if person.id not in taken]
    return first + sorted(reserve, key=lambda person: digest([str(seed), person.id]))


_BATCH = 20  # people who are looked up together; a Wikipedia gives so many pages in one answer


class Choice(msgspec.Struct, frozen=True):
    """A person of the set.

    Attributes:
        person: who.
        articles: what responses are held against, by language.
        lacking: languages of the set without a usable article, with the reason.
    """

    person: Candidate
    articles: dict[str, Reference]
    lacking: dict[str, str]


class RejectedPerson(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person who was looked up and not taken, or an article that is not there or cannot be used.

    Attributes:
        id: of the person; empty where an article does not say.
        reason: `articles` (of a person: too few), else of an article: `missing`, `disambiguation`, `no text`,
            `invalid title`, `not an article`, `redirect`, `another item`, `no title`, `no name`, `too short`,
            `unusable`.
        languages: languages without an article, with the reason; of a person.
        language: of the article.
        detail: the same in words.
    """

    id: str
    reason: str
    languages: dict[str, str] = {}
    language: str = ""
    detail: str = ""


@dataclass
class ChoiceAccount:
    """The account of a choice, filled while it goes on.

    Attributes:
        looked_up: people who were looked up.
        chosen: of them, who were taken.
        set_aside: who were not, and articles that people of the set lack.
        lacking: language -> reason -> how many of those looked up lack an article.
    """

    looked_up: int = 0
    chosen: int = 0
    set_aside: list[RejectedPerson] = field(default_factory=list)
    lacking: dict[str, Counter[str]] = field(default_factory=dict)


def choose(
    candidates: Sequence[Candidate],
    source: ArticleSource,
    languages: Sequence[str],
    count: int,
    account: ChoiceAccount,
    *,
    at_least: int | None = None,
    also: Sequence[str] = (),
    min_characters: int = 0,
    seen: Callable[[], None] = lambda: None,
) -> Iterator[Choice]:
    """The first `count` people who have a usable article in enough of the languages.

    Args:
        candidates: in the order in which they are tried (`in_order`).
        source: where their articles come from.
        languages: of the set.
        count: how many people.
        account: is filled.
        at_least: in how many of the languages there has to be an article; None for all (Kang et al., section 3).
        also: further languages whose articles are taken along where they are, such as English.
        min_characters: shorter articles count as none; code points.
        seen: called for every person who is taken.

    Raises:
        UsageError: no language, one twice, or a number that is not from 1 to theirs.
        Whatever `source` raises.
    """
    needed = len(languages) if at_least is None else at_least
    if not languages or len(set(languages)) < len(languages):
        raise UsageError("The set needs at least one language, and each language once.")
    if not 1 <= needed <= len(languages):
        raise UsageError(f"Articles in {needed} of {len(languages)} languages cannot be asked for.")
    index = 0
    while account.chosen < count and index < len(candidates):
        batch = candidates[index : index + min(_BATCH, count - account.chosen)]
        index += len(batch)
        articles = {tag: source.of(batch, tag) for tag in dict.fromkeys((*languages, *also))}
        for person in batch:
            choice = _choice(person, articles, languages, min_characters)
            account.looked_up += 1
            for tag, reason in choice.lacking.items():
                account.lacking.setdefault(tag, Counter())[reason] += 1
            if len(languages) - len(choice.lacking) < needed:
                account.set_aside.append(RejectedPerson(person.id, "articles", choice.lacking))
                continue
            account.set_aside += [RejectedPerson(person.id, reason, {}, tag) for tag, reason in choice.lacking.items()]
            account.chosen += 1
            seen()
            yield choice


def _choice(
    person: Candidate, articles_of: dict[str, dict[str, Reference | str]], languages: Sequence[str], min_characters: int
) -> Choice:
    articles: dict[str, Reference] = {}
    lacking: dict[str, str] = {}
    for tag, by_person in articles_of.items():
        article = by_person[person.id]
        if isinstance(article, Reference) and len(article.text) < min_characters:
            article = "too short"
        if isinstance(article, Reference) and tag in languages and person.name_in(tag) is None:
            article = "no name"
        if isinstance(article, Reference):
            articles[tag] = article
        elif tag in languages:
            lacking[tag] = article
    return Choice(person, articles, lacking)
