"""A mark laid onto a translation through the links of its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.build.translating.alignment import Link, Side

__all__ = ["Projected", "project", "with_edges", "words_inside"]

_OTHER = 0.2  # share of the weight that a further part has to have
_GAP = 1  # words of something else that a part may reach over


class Projected(NamedTuple):
    """Where a mark went.

    Attributes:
        parts: half-open code point ranges of the translation, in order; several where the words went apart.
        quality: 0 to 1: the share of the mark's words that arrived in the parts, times the share of the parts' words
            that come from the mark, times the mean weight of the links.
    """

    parts: tuple[tuple[int, int], ...]
    quality: float


def words_inside(side: Side, mark: tuple[int, int]) -> list[int]:
    """The numbers of the words that a range touches."""
    return [number for number, (start, end) in enumerate(side.words) if start < mark[1] and mark[0] < end]


def project(source: Side, target: Side, links: Sequence[Link], mark: tuple[int, int]) -> Projected | None:
    """Lay a mark of the source onto the target; None where none of its words has a link.

    A word of the target belongs to the mark if its links to words inside weigh more than those to words outside. Words
    without a link between two that belong to it belong to it too. A word of something else parts the mark, except a
    single one.

    Args:
        source, target: the text and its translation.
        links: between their words.
        mark: half-open code point range of the source.
    """
    inside = frozenset(words_inside(source, mark))
    within, outside = [0.0] * len(target.words), [0.0] * len(target.words)
    for link in links:
        weights = within if link.source in inside else outside
        weights[link.target] = max(weights[link.target], link.weight)
    runs = _runs(within, outside)
    if not runs:
        return None
    weight = [sum(within[first : last + 1]) for first, last in runs]
    total = sum(weight)
    kept = [run for run, w in zip(runs, weight, strict=True) if w >= _OTHER * total] or [
        runs[weight.index(max(weight))]
    ]
    places = {j for first, last in kept for j in range(first, last + 1)}
    arrived = {link.source: max(link.weight, 0.0) for link in sorted(links, key=lambda one: one.weight)
               if link.source in inside and link.target in places}  # fmt: skip
    foreign = sum(outside[j] > within[j] for j in places)
    coverage, purity = len(arrived) / len(inside), 1 - foreign / len(places)
    mean = sum(arrived.values()) / len(arrived) if arrived else 0.0
    parts = tuple(
        with_edges(source, target, mark, (target.words[first][0], target.words[last][1])) for first, last in kept
    )
    return Projected(parts, coverage * purity * mean)


def _runs(within: Sequence[float], outside: Sequence[float]) -> list[tuple[int, int]]:
    """Stretches of words that belong to the mark, first and last word inclusive."""
    runs: list[tuple[int, int]] = []
    for j, (own, other) in enumerate(zip(within, outside, strict=True)):
        if own <= 0 or own < other:
            continue
        if runs:
            last = runs[-1][1]
            between = range(last + 1, j)
            foreign = sum(outside[k] > 0 for k in between)
            if not foreign or (foreign <= _GAP and len(between) == foreign and _joins(runs[-1], j)):
                runs[-1] = (runs[-1][0], j)
                continue
        runs.append((j, j))
    return runs


def _joins(run: tuple[int, int], place: int) -> bool:
    """Whether a run is long enough to reach over a word of something else."""
    return run[1] - run[0] >= 1 and place - run[1] <= _GAP + 1


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
