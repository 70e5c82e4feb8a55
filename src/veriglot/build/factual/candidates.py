"""People who may come into the set, and the order in which they are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from veriglot.build.biographies import Named, named_from
from veriglot.errors import UsageError
from veriglot.provenance import digest
from veriglot.sources import draw_diverse

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SPREADS", "Candidate", "Spread", "candidate_from", "in_order"]

Spread = Literal["diverse", "top", "given"]
SPREADS: tuple[Spread, ...] = ("diverse", "top", "given")


class Candidate(msgspec.Struct, frozen=True):
    """A person who may come into the set.

    Attributes:
        named: the person, with names by language and what else is known.
        titles: language tag -> title of the article.
    """

    named: Named
    titles: dict[str, str] = {}

    @property
    def id(self) -> str:
        """Of the person, such as the Wikidata item `Q42`."""
        return self.named.id

    @property
    def views(self) -> int:
        """The sum of the page views that are known."""
        found = self.named.meta.get("views")
        if isinstance(found, dict):
            return sum(views for views in found.values() if isinstance(views, int))
        return found if isinstance(found, int) else 0

    def name_in(self, tag: str) -> str | None:
        """The name in a language: under its tag, or under the code without the script."""
        return self.named.names.get(tag) or self.named.names.get(tag.partition("-")[0])

    def title_in(self, tag: str) -> str | None:
        """The title of the article in a language, likewise."""
        return self.titles.get(tag) or self.titles.get(tag.partition("-")[0])


def candidate_from(data: Any) -> Candidate:
    """A person from a decoded JSON object, such as a row of `veriglot build people`; see `named_from`.

    Raises:
        InputError: it is no object, or has no id or no name.
    """
    named = named_from(data)
    titles = data.get("titles")
    kept = {tag: title for tag, title in titles.items() if isinstance(title, str)} if isinstance(titles, dict) else {}
    return Candidate(named, kept)


def in_order(
    candidates: Sequence[Candidate], count: int, *, spread: Spread = "diverse", groups: int = 10, seed: int = 0
) -> list[Candidate]:
    """All candidates in the order in which they are tried until `count` of them have what it takes.

    Args:
        candidates: in the order of their file.
        count: how many are wanted.
        spread: `diverse` takes as many from each of `groups` groups of equal size by page views (kang, section 3:
            "based on diverse page view counts"), and keeps the others in reserve, in an order drawn by a hash; `top`
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
        return sorted(candidates, key=lambda one: (-one.views, one.id))
    first = draw_diverse(
        candidates, count, size=lambda one: one.views, name=lambda one: one.id, groups=groups, seed=seed
    )
    taken = {one.id for one in first}
    reserve = [one for one in candidates if one.id not in taken]
    return first + sorted(reserve, key=lambda one: digest([str(seed), one.id]))
