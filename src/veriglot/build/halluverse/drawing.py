"""Which type of error a sentence gets: drawn at random, so that what is accepted comes out even.

HalluVerse25 drew each sentence's type by itself (3.2) and kept what annotators let pass, which left far fewer sentence
errors than entity errors. Here the types are drawn block by block: what passed so far, and how often each type passes,
decides how many of each are in a block; chance decides which sentence gets which.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

__all__ = ["BalancedDraw", "block_sizes", "dealt"]

_LARGEST = 24
_PART = 4  # of what is left: blocks shrink towards the end, so that the last sentences even out the rest
_MOST = 2 / 3  # of a block: what never passes must not take all of it


def block_sizes(total: int) -> Iterator[int]:
    """The sizes of the blocks that so many sentences are dealt out in; the last ones are single sentences."""
    while total > 0:
        size = min(_LARGEST, max(1, total // _PART))
        yield size
        total -= size


def dealt(deck: Sequence[str], able: Sequence[Collection[str]]) -> list[str]:
    """The types of a deck, in an order that gives as many sentences as it can a type that they can have an error of.

    Args:
        deck: the types.
        able: for each sentence, the types that it can have an error of.
    """
    found: dict[int, str] = {}
    rest: list[str] = []
    for type_ in sorted(deck, key=lambda one: sum(one in types for types in able)):  # the rarest gift first
        free = [place for place, types in enumerate(able) if place not in found and type_ in types]
        if free:
            found[min(free, key=lambda place: len(able[place]))] = type_
        else:
            rest.append(type_)
    return [found[place] if place in found else rest.pop() for place in range(len(deck))]


class BalancedDraw:
    """Draws the types of one language.

    Args:
        types: to draw from.
        key: of the chance: equal keys and equal outcomes draw equally.
    """

    def __init__(self, types: Sequence[str], key: str) -> None:
        self._types = tuple(types)
        self._key = key
        self._asked: Counter[str] = Counter()
        self._taken: Counter[str] = Counter()
        self._block = 0

    def block(self, size: int) -> list[str]:
        """The types of the next sentences."""
        rng = Random(f"{self._key} {self._block}")  # noqa: S311  a seeded draw, not a secret
        self._block += 1
        most = max(1, round(_MOST * size))
        expected = {one: float(self._taken[one]) for one in self._types}
        drawn: Counter[str] = Counter()
        for _ in range(size):
            free = [one for one in self._types if drawn[one] < most] or list(self._types)
            least = min(expected[one] for one in free)
            one = rng.choice([one for one in free if expected[one] == least])
            drawn[one] += 1
            expected[one] += self._share(one)
        deck = [one for one in self._types for _ in range(drawn[one])]
        rng.shuffle(deck)
        return deck

    def note(self, type_: str, *, taken: bool) -> None:
        """Note whether an error of a type passed."""
        self._asked[type_] += 1
        self._taken[type_] += taken

    def _share(self, type_: str) -> float:
        """How often a type passes; before much is known, nearly always."""
        return (self._taken[type_] + 3) / (self._asked[type_] + 3)
