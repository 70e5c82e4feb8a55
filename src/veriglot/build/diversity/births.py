"""Years of birth, as a histogram of equal spans."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import msgspec

from veriglot.build.diversity.spread import evenness

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Births", "Years", "births_of"]

_WIDTHS = (10, 20, 25, 50, 100, 200, 500, 1000)
_MOST_SPANS = 24


class Years(msgspec.Struct, frozen=True):
    """A span of years with those born in it.

    Attributes:
        start: its first year; negative before Christ, where -43 is 44 BC.
        years: how many it has.
        people: born in it.
    """

    start: int
    years: int
    people: int


class Births(msgspec.Struct, frozen=True):
    """The years of birth of people.

    Attributes:
        people: all of them.
        known: those whose year is known.
        earliest, latest, median: of the years; None where none is known.
        spans: of equal width, from the earliest to the latest, those without anybody included.
        evenness: Pielou's, over these spans; None for fewer than two.
    """

    people: int
    known: int
    earliest: int | None
    latest: int | None
    median: float | None
    spans: tuple[Years, ...]
    evenness: float | None

    @property
    def coverage(self) -> float | None:
        """The share of the people whose year is known; None for nobody."""
        return self.known / self.people if self.people else None


def births_of(years: Iterable[int | None], *, within: tuple[int, int] | None = None) -> Births:
    """The years of birth of people.

    Args:
        years: of each; None where it is not known.
        within: the earliest and latest year of the histogram, so that several have the same spans.
    """
    given = list(years)
    found = sorted(year for year in given if year is not None)
    if not found:
        return Births(len(given), 0, None, None, None, (), None)
    low, high = within or (found[0], found[-1])
    low, high = min(low, found[0]), max(high, found[-1])
    width = next((w for w in _WIDTHS if high // w - low // w < _MOST_SPANS), _WIDTHS[-1])
    spans = tuple(
        Years(place * width, width, sum(year // width == place for year in found))
        for place in range(low // width, high // width + 1)
    )
    return Births(
        len(given), len(found), found[0], found[-1], median(found), spans, evenness([one.people for one in spans])
    )
