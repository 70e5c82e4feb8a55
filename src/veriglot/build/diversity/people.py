"""The diversity of people by what HalluVerse25 has of its own (4.1): occupation, citizenship, year of birth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from veriglot.build.diversity.births import Births, births_of  # msgspec reads it at run time
from veriglot.build.diversity.spread import Spread, spread_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.sources import Person, Thing

__all__ = ["Diversity", "diversity_of"]


class Diversity(msgspec.Struct, frozen=True):
    """How diverse some people are.

    Attributes:
        people: how many.
        professions: by P106.
        countries: by P27, those that are no more included.
        births: by P569.
    """

    people: int
    professions: Spread
    countries: Spread
    births: Births


def diversity_of(people: Iterable[Person], *, within: tuple[int, int] | None = None) -> Diversity:
    """How diverse people are; see `births_of` for `within`."""
    given = list(people)
    labels = {one.item: one.label for person in given for one in (*person.occupations, *person.citizenships)}
    return Diversity(
        len(given),
        spread_of((_items(person.occupations) for person in given), labels),
        spread_of((_items(person.citizenships) for person in given), labels),
        births_of((person.born for person in given), within=within),
    )


def _items(things: tuple[Thing, ...]) -> list[str]:
    return [one.item for one in things]
