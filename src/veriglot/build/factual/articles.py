"""The articles about people: from Wikipedias, or from files. Who has none in a language is told with the reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

import msgspec

from veriglot.build.references import Reference, reference_from
from veriglot.sources import Article

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from veriglot.build.factual.candidates import Candidate
    from veriglot.build.references import Part
    from veriglot.run import FailedRow
    from veriglot.sources import Absent, Kept

__all__ = ["ArticleSource", "Titles", "WikiArticles", "given_articles"]

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
        part: what of an article is the reference (kang: "the full-page content", section 3).
    """

    def __init__(self, wiki: Callable[[str], Titles], *, part: Part = "text") -> None:
        self._open = wiki
        self._part = part
        self._wikis: dict[str, Titles] = {}

    def of(self, people: Sequence[Candidate], tag: str) -> dict[str, Reference | str]:
        """See `ArticleSource`. A redirect to an article that Wikidata knows as another item's is no article on them.

        Raises:
            HttpError, SourceError: no usable answer.
            UsageError: no such Wikipedia.
        """
        asked = {one.id: title for one in people if (title := one.title_in(tag))}
        if not asked:
            return dict.fromkeys((one.id for one in people), "no title")
        wiki = self._wikis.get(tag) or self._wikis.setdefault(tag, self._open(tag))
        possible = [title for title in asked.values() if not _IMPOSSIBLE.intersection(title)]
        rows = list(wiki.titles(possible)) if possible else []
        by_item = {row.item: row for row in rows if isinstance(row, Article) and row.item is not None}
        by_title = {row.title: row for row in rows}
        found: dict[str, Reference | str] = {}
        for person in people:
            if person.id not in asked:
                found[person.id] = "no title"
                continue
            title = asked[person.id]
            if _IMPOSSIBLE.intersection(title):
                found[person.id] = "invalid title"
                continue
            row = by_item.get(person.id) or by_title.get(title) or next(iter(wiki.titles([title])), None)
            found[person.id] = self._reference(person.id, tag, row)
        return found

    def _reference(self, person: str, tag: str, row: Article | Absent | None) -> Reference | str:
        if row is None:
            return "missing"
        if not isinstance(row, Article):
            return row.reason
        if row.item is not None and row.item != person and _ITEM.fullmatch(person):
            return "another item"
        return _named(reference_from(msgspec.to_builtins(row), part=self._part), person, tag)


def given_articles(
    rows: Iterable[Reference | FailedRow], shelf: Kept, note: Callable[[FailedRow | Reference], None]
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

    def __init__(self, shelf: Kept) -> None:
        self._shelf = shelf

    def of(self, people: Sequence[Candidate], tag: str) -> dict[str, Reference | str]:
        """See `ArticleSource`."""
        found: dict[str, Reference | str] = {}
        for person in people:
            kept = self._shelf.get(_key(person.id, tag)) or self._shelf.get(_key(person.id, tag.partition("-")[0]))
            found[person.id] = "missing" if kept is None else _in(msgspec.json.decode(kept, type=Reference), tag)
        return found


def _in(reference: Reference, tag: str) -> Reference:
    """The reference under the tag that was asked for: a file may say `zh` where the set says `zh-Hans`."""
    return _named(reference, reference.meta["item"], tag)


def _named(reference: Reference, person: str, tag: str) -> Reference:
    """The reference under the id that the prompt has too."""
    meta = {**reference.meta, "item": person}
    return msgspec.structs.replace(reference, id=f"{person}-{tag}", language=tag, meta=meta)


def _key(person: str, tag: str) -> str:
    return f"{tag} {person}"
