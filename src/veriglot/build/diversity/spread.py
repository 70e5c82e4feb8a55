"""How evenly people are spread over categories of which one person may have several."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import exp, log
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Category", "Spread", "effective_number", "evenness", "shannon", "spread_of"]


class Category(msgspec.Struct, frozen=True):
    """One category.

    Attributes:
        item: its item, such as `Q36180`.
        label: its name; the item where it has none.
        people: who have it, among others perhaps.
        weight: the same, with a person of several categories counted in equal parts; the weights of all categories sum
            to the people of whom any is known.
    """

    item: str
    label: str
    people: int
    weight: float


class Spread(msgspec.Struct, frozen=True):
    """People over categories.

    Attributes:
        people: all of them.
        known: those of whom any category is known.
        categories: those that anybody has, the heaviest first.
        entropy: Shannon's, in nats, of the weights; 0 where nothing is known.
        evenness: Pielou's, 0 to 1: the entropy over that of as many equal categories; None for fewer than two.
        effective: the number of equal categories of the same entropy (Hill's number of order 1); 0 for none.
        largest: the share of the weights, 0 to 1, that the heaviest category has (Berger and Parker); None for none.
    """

    people: int
    known: int
    categories: tuple[Category, ...]
    entropy: float
    evenness: float | None
    effective: float
    largest: float | None

    @property
    def coverage(self) -> float | None:
        """The share of the people of whom any category is known; None for nobody."""
        return self.known / self.people if self.people else None


def spread_of(people: Iterable[Sequence[str]], labels: Mapping[str, str]) -> Spread:
    """How people are spread.

    Args:
        people: the items of each; empty where none is known.
        labels: item -> name.
    """
    counts: Counter[str] = Counter()
    weights: dict[str, float] = defaultdict(float)
    total = known = 0
    for items in people:
        total += 1
        own = dict.fromkeys(items)
        known += bool(own)
        for item in own:
            counts[item] += 1
            weights[item] += 1 / len(own)
    found = [Category(item, labels.get(item) or item, counts[item], weights[item]) for item in counts]
    found.sort(key=lambda one: (-one.weight, -one.people, one.label, one.item))
    values = [one.weight for one in found]
    return Spread(
        total,
        known,
        tuple(found),
        shannon(values),
        evenness(values),
        effective_number(values),
        max(values) / sum(values) if values else None,
    )


def shannon(weights: Iterable[float]) -> float:
    """Shannon's entropy of weights that need not sum to 1, in nats; those that are 0 add nothing."""
    found = [weight for weight in weights if weight > 0]
    total = sum(found)
    return max(0.0, -sum(weight / total * log(weight / total) for weight in found)) if found else 0.0


def evenness(weights: Sequence[float]) -> float | None:
    """Pielou's evenness, 0 to 1: the entropy over that of as many equal weights; None for fewer than two weights."""
    return min(1.0, shannon(weights) / log(len(weights))) if len(weights) > 1 else None


def effective_number(weights: Sequence[float]) -> float:
    """How many equal weights have the same entropy (Hill's number of order 1); 0 for none."""
    return exp(shannon(weights)) if any(weight > 0 for weight in weights) else 0.0
