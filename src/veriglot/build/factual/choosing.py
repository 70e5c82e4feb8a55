"""Who comes into the set: those with a usable article in every language, looked up until enough are found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from veriglot.build.factual.candidates import Candidate  # msgspec reads it at run time
from veriglot.build.references import Reference
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from veriglot.build.factual.articles import ArticleSource

__all__ = ["Choice", "Choosing", "SetAside", "choose"]

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


class SetAside(msgspec.Struct, frozen=True, omit_defaults=True):
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
class Choosing:
    """The account of a choice, filled while it goes on.

    Attributes:
        looked_up: people who were looked up.
        chosen: of them, who were taken.
        set_aside: who were not, and articles that people of the set lack.
        lacking: language -> reason -> how many of those looked up lack an article.
    """

    looked_up: int = 0
    chosen: int = 0
    set_aside: list[SetAside] = field(default_factory=list)
    lacking: dict[str, Counter[str]] = field(default_factory=dict)


def choose(
    candidates: Sequence[Candidate],
    source: ArticleSource,
    languages: Sequence[str],
    count: int,
    account: Choosing,
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
        at_least: in how many of the languages there has to be an article; None for all (kang, section 3).
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
    place = 0
    while account.chosen < count and place < len(candidates):
        batch = candidates[place : place + min(_BATCH, count - account.chosen)]
        place += len(batch)
        found = {tag: source.of(batch, tag) for tag in dict.fromkeys((*languages, *also))}
        for person in batch:
            choice = _choice(person, found, languages, min_characters)
            account.looked_up += 1
            for tag, reason in choice.lacking.items():
                account.lacking.setdefault(tag, Counter())[reason] += 1
            if len(languages) - len(choice.lacking) < needed:
                account.set_aside.append(SetAside(person.id, "articles", choice.lacking))
                continue
            account.set_aside += [SetAside(person.id, reason, {}, tag) for tag, reason in choice.lacking.items()]
            account.chosen += 1
            seen()
            yield choice


def _choice(
    person: Candidate, found: dict[str, dict[str, Reference | str]], languages: Sequence[str], min_characters: int
) -> Choice:
    articles: dict[str, Reference] = {}
    lacking: dict[str, str] = {}
    for tag, by_person in found.items():
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
