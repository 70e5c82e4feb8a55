"""Where a mark went: what each strategy says, and which of them is believed.

The quality of a span, 0 to 1, says how far the evidence for its place goes. Its own part is 1 for markers that came
back and for whole sentences, `Located.likeness` for a part translated by itself, and `Projected.quality` for alignment.
Where other strategies have a candidate too, it is 0.6 of that and 0.4 of the share of code points (F1) that it has in
common with the best of them. Two checks lower it: a number of the mark that stands in the translation outside the span
(times 0.3), and a span whose share of the translation is more than four times, or less than a quarter of, the mark's
share of the text (times 0.5). Markers that neither check speaks against are believed; otherwise the best is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.build.translating.lexical import number_of
from veriglot.build.translating.locating import locate
from veriglot.build.translating.projection import project, with_edges, words_inside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from veriglot.build.translating.alignment import Aligner, Side

__all__ = ["STRATEGIES", "Placed", "Strategy", "Way", "best_of"]

Strategy = Literal["tags", "spans", "align"]
Way = Literal["tags", "sentence", "spans", "align"]
STRATEGIES: tuple[Strategy, ...] = ("tags", "spans", "align")

_OWN, _SHARED = 0.6, 0.4
_NUMBER_ELSEWHERE = 0.3
_ODD_LENGTH = 0.5
_TIMES = 4.0
_FEWEST_DIGITS = 2


class Placed(msgspec.Struct, frozen=True):
    """A mark in a translation.

    Attributes:
        parts: half-open code point ranges, in order.
        quality: 0 to 1, as above.
        way: which strategy placed it; `sentence` where the mark was all of a sentence.
    """

    parts: tuple[tuple[int, int], ...]
    quality: float
    way: Way


def best_of(
    source: Side,
    target: Side,
    marks: Sequence[tuple[int, int]],
    *,
    tagged: Sequence[tuple[int, int]] | None = None,
    apart: Mapping[tuple[int, int], str] | None = None,
    aligner: Aligner | None = None,
) -> list[Placed | None]:
    """Each mark's best place; None where no strategy finds one.

    Args:
        source, target: a text and its translation.
        marks: half-open code point ranges of the text.
        tagged: where markers came back, one range a mark; None where they did not, or were not asked for.
        apart: translations of marks by themselves.
        aligner: None for no alignment.
    """
    aligned = aligner.align(source, target) if aligner is not None and marks else None
    found = []
    for number, mark in enumerate(marks):
        candidates: list[tuple[Way, tuple[tuple[int, int], ...], float]] = []
        if tagged is not None:
            candidates.append(("tags", (tagged[number],), 1.0))
        whole = _sentence(source, target, mark)
        if whole is not None:
            candidates.append(("sentence", (whole,), 1.0))
        elif apart is not None and mark in apart:
            at = locate(target, apart[mark], mark[0] / max(1, len(source.text)))
            if at is not None:
                candidates.append(("spans", (with_edges(source, target, mark, at[:2]),), at.likeness))
        if aligned is not None and whole is None and words_inside(aligned.source, mark):
            projected = project(*aligned, mark)
            if projected is not None:
                candidates.append(("align", projected.parts, projected.quality))
        found.append(_best(source, target, mark, candidates))
    return found


def _sentence(source: Side, target: Side, mark: tuple[int, int]) -> tuple[int, int] | None:
    """All of the translation, where the mark holds every word of the text."""
    if not source.words or not target.words or len(words_inside(source, mark)) < len(source.words):
        return None
    return with_edges(source, target, mark, (target.words[0][0], target.words[-1][1]))


def _best(
    source: Side,
    target: Side,
    mark: tuple[int, int],
    candidates: Sequence[tuple[Way, tuple[tuple[int, int], ...], float]],
) -> Placed | None:
    best: Placed | None = None
    for way, parts, own in candidates:
        others = [_overlap(parts, theirs) for name, theirs, _ in candidates if name != way]
        quality = _OWN * own + _SHARED * max(others) if others else own
        sound = _plausible(source, target, mark, parts)
        quality *= sound
        if way == "tags" and sound == 1.0:  # the translator itself said so
            return Placed(parts, min(1.0, quality), way)
        if best is None or quality > best.quality + 1e-9:
            best = Placed(parts, max(0.0, min(1.0, quality)), way)
    return best


def _overlap(first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> float:
    """F1 of the code points of two sets of ranges."""
    ours, theirs = _points(first), _points(second)
    return 2 * len(ours & theirs) / max(1, len(ours) + len(theirs))


def _points(parts: Sequence[tuple[int, int]]) -> set[int]:
    return {place for start, end in parts for place in range(start, end)}


def _plausible(source: Side, target: Side, mark: tuple[int, int], parts: Sequence[tuple[int, int]]) -> float:
    factor = 1.0
    inside = _numbers(source, [mark])
    there = _numbers(target, parts)
    if any(number in _numbers(target, [(0, len(target.text))]) for number in inside - there):
        factor *= _NUMBER_ELSEWHERE
    share = (mark[1] - mark[0]) / max(1, len(source.text))
    now = sum(end - start for start, end in parts) / max(1, len(target.text))
    if now > _TIMES * share or share > _TIMES * now:
        factor *= _ODD_LENGTH
    return factor


def _numbers(side: Side, parts: Sequence[tuple[int, int]]) -> set[str]:
    found = set()
    for part in parts:
        for word in words_inside(side, part):
            number = number_of(side.text[slice(*side.words[word])])
            if number is not None and len(number) >= _FEWEST_DIGITS:
                found.add(number)
    return found
