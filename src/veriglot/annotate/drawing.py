"""Chance that can be repeated: the same words give the same number, on any machine and in any version."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["checks_due", "draw", "uniform"]

T = TypeVar("T")


def uniform(*words: object) -> float:
    """A number from 0 to below 1 that these words stand for."""
    said = "\x1f".join(str(word) for word in words)
    return int.from_bytes(hashlib.sha256(said.encode("utf-8", "surrogatepass")).digest()[:7], "big") / 2**56


def draw(rows: Iterable[T], key: Callable[[T], str], *words: object) -> list[T]:
    """Rows in an order of chance; what is added later leaves the order of the others as it is."""
    return sorted(rows, key=lambda row: (uniform(*words, key(row)), key(row)))


def checks_due(given: int, share: float, *words: object) -> int:
    """How many of somebody's first `given + 1` items are hidden checks.

    One falls into each stretch of `1 / share` items, at a place of chance that stands fixed for these words, so that
    nobody can count them off.

    Args:
        given: items that they got so far, checks too.
        share: of checks, from 0 to 0.5.
        words: whom it is about.
    """
    if share <= 0:
        return 0
    stretches = math.floor((given + 1) * share) + 1
    return sum(math.floor((place + uniform(*words, place)) / share) <= given for place in range(stretches))
