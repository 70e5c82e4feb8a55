"""A person of Wikidata, with their articles and how often these are read."""

from __future__ import annotations

import msgspec

__all__ = ["Person", "Thing"]


class Thing(msgspec.Struct, frozen=True, omit_defaults=True):
    """An item that a property points to.

    Attributes:
        item: its number, such as `Q36180`.
        label: its English name; empty where it has none.
    """

    item: str
    label: str = ""


class Person(msgspec.Struct, frozen=True, omit_defaults=True):
    """One person.

    Attributes:
        id: the Wikidata item, such as `Q42`.
        sitelinks: in how many wikis, of all projects, there is a page on them.
        names: language tag -> what Wikidata calls them; where it has no name in a language, the title of the article
            without what stands in parentheses.
        titles: language tag -> title of the article.
        born: year of birth (proleptic, negative before Christ: -43 is 44 BC), or None where unknown. HalluVerse25.
        occupations: P106. HalluVerse25.
        citizenships: P27. HalluVerse25.
        views: language tag -> views of the article in the period that was asked for, or None where there is no count.
            kang.
    """

    id: str
    sitelinks: int
    names: dict[str, str] = {}
    titles: dict[str, str] = {}
    born: int | None = None
    occupations: tuple[Thing, ...] = ()
    citizenships: tuple[Thing, ...] = ()
    views: dict[str, int | None] = {}

    @property
    def all_views(self) -> int:
        """The sum of the views that are known."""
        return sum(views or 0 for views in self.views.values())
