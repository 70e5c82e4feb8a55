"""A mark laid onto a translation through the links of its words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.build.translating.alignment import Link, Side

__all__ = ["Projected", "project", "with_edges", "words_inside"]

_AGAINST = 0.5  # what a link to a word outside counts
_EMPTY = 0.02  # what a word of the target costs in any case
_OTHER = 0.5  # share of the first part's gain that a further one has to have


class Projected(NamedTuple):
    """Where a mark went.

    Attributes:
        parts: half-open code point ranges of the translation, in order; several where the words went apart.
        quality: 0 to 1: how much of the mark's words arrived in the parts, by the weight of their links, times the
            share of the parts' links, by weight, that come from the mark.
    """

    parts: tuple[tuple[int, int], ...]
    quality: float


def words_inside(side: Side, mark: tuple[int, int]) -> list[int]:
    """The numbers of the words that a range touches."""
    return [number for number, (start, end) in enumerate(side.words) if start < mark[1] and mark[0] < end]


def project(source: Side, target: Side, links: Sequence[Link], mark: tuple[int, int]) -> Projected | None:
    """Lay a mark of the source onto the target; None where none of its words has a link.

    Each word of the target speaks for the mark with the weight of its links to words inside, and against it with half
    of that to words outside. The part is the stretch that gains most; a further one is taken where it gains half as
    much or more. Words without a link cost next to nothing between two that belong to the mark, and are left out at
    the edges.

    Args:
        source, target: the text and its translation.
        links: between their words.
        mark: half-open code point range of the source.
    """
    inside = frozenset(words_inside(source, mark))
    within, outside = [0.0] * len(target.words), [0.0] * len(target.words)
    for link in links:
        weights = within if link.source in inside else outside
        weights[link.target] += link.weight
    runs = _runs([own - _AGAINST * other - _EMPTY for own, other in zip(within, outside, strict=True)])
    if not runs:
        return None
    places = {j for first, last in runs for j in range(first, last + 1)}
    own, other = sum(within[j] for j in places), sum(outside[j] for j in places)
    arrived: dict[int, float] = {}
    for link in links:
        if link.source in inside and link.target in places:
            arrived[link.source] = min(1.0, arrived.get(link.source, 0.0) + link.weight)
    parts = tuple(
        with_edges(source, target, mark, (target.words[first][0], target.words[last][1])) for first, last in runs
    )
    return Projected(parts, sum(arrived.values()) / len(inside) * own / (own + other))


def _runs(gains: Sequence[float]) -> list[tuple[int, int]]:
    """The stretch of words with the largest sum, and others that come near it; first and last word inclusive."""
    found: list[tuple[int, int]] = []
    left = list(gains)
    least = 0.0
    while True:
        gain, first, last = _largest(left)
        if gain <= least:
            return sorted(found)
        least = least or _OTHER * gain
        found.append((first, last))
        left[first : last + 1] = [-math.inf] * (last + 1 - first)


def _largest(gains: Sequence[float]) -> tuple[float, int, int]:
    """The largest sum of neighbours, with the first and the last of them; of equal ones the first, and the shortest."""
    best, run, begun = (0.0, 0, -1), 0.0, 0
    for place, gain in enumerate(gains):
        if run <= 0:
            run, begun = 0.0, place
        run += gain
        if run > best[0]:
            best = (run, begun, place)
    return best


def with_edges(source: Side, target: Side, mark: tuple[int, int], part: tuple[int, int]) -> tuple[int, int]:
    """A part with as much of the signs around it as the mark has around its words: brackets, quotes, full stops."""
    touched = words_inside(source, mark)
    if not touched:
        return part
    before = source.text[mark[0] : max(mark[0], source.words[touched[0]][0])]
    after = source.text[min(mark[1], source.words[touched[-1]][1]) : mark[1]]
    start, end = part
    for _ in before.strip():
        if start > 0 and _is_sign(target.text[start - 1]):
            start -= 1
    for _ in after.strip():
        if end < len(target.text) and _is_sign(target.text[end]):
            end += 1
    return start, end


def _is_sign(char: str) -> bool:
    return not char.isspace() and not char.isalnum()
