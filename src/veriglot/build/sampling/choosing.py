"""Which lines are looked at by people: each scorer's worst, more from its worst percentile, and no more than a bound.

Hat, section 2.2. What it leaves open is decided so: step 1 is done for every scorer before step 2, and what is chosen
is not drawn again by whichever scorer. A percentile is a number of lines, 1 in 100 of those scored. Ties, and all
draws, are decided by a hash of the line's text and the seed, so neither the order of the data nor the machine matters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
import numpy as np

from veriglot.build.sampling.shingles import mixed
from veriglot.build.sampling.store import key_of
from veriglot.records import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from veriglot.build.sampling.settings import Sampling

__all__ = ["Choice", "Scored", "ScorerAccount", "Step", "choose", "salted"]

Step: TypeAlias = Literal["worst", "drawn"]


@dataclass(frozen=True)
class Scored:
    """What one scorer said of all lines.

    Attributes:
        label: the scorer's.
        direction: of its numbers.
        values: gives, each time it is called, the place of the first line and the numbers of the lines from there on,
            block by block in ascending order; not a number where a line was not scored.
        reasons: why lines were not scored, with counts.
    """

    label: str
    direction: Direction
    values: Callable[[], Iterable[tuple[int, NDArray[np.float64]]]]
    reasons: dict[str, int] = field(default_factory=dict)


class ScorerAccount(msgspec.Struct, frozen=True):
    """What one scorer gave to the sample.

    Attributes:
        scorer: its label.
        direction: of its numbers.
        scored: lines that it scored.
        unscored: lines that it did not.
        reasons: why it did not, with counts.
        worst: lines that were chosen for being its worst.
        worst_border: the best number among these; None where there is none.
        worst_tied: scored lines with just that number; where they are more than fit in, the hash decided.
        percentile: lines of its worst percentile.
        percentile_border: the best number among these.
        percentile_tied: scored lines with just that number.
        drawn: lines that were drawn from the percentile.
        missing: lines that could not be drawn, because the percentile holds no more.
        in_sample: lines of the final sample that this scorer chose or drew.
    """

    scorer: str
    direction: Direction
    scored: int
    unscored: int
    reasons: dict[str, int]
    worst: int
    worst_border: float | None
    worst_tied: int
    percentile: int
    percentile_border: float | None
    percentile_tied: int
    drawn: int
    missing: int
    in_sample: int


@dataclass(frozen=True)
class Choice:
    """The lines that were chosen.

    Attributes:
        places: of the lines, ascending.
        chosen_by: for each of them, label of every scorer that chose it to the step in which it did.
        scorers: an account for each scorer.
        worst: lines that the first step gave, each counted once.
        drawn: lines that the second step added.
    """

    places: NDArray[np.int64]
    chosen_by: list[dict[str, Step]]
    scorers: list[ScorerAccount]
    worst: int
    drawn: int


@dataclass(frozen=True)
class _Worst:
    """The worst lines of a scorer, the worst first, with their badness: the higher, the worse."""

    places: NDArray[np.int64]
    badness: NDArray[np.float64]
    scored: int
    unscored: int


def choose(scored: Sequence[Scored], keys: NDArray[np.uint64], sampling: Sampling) -> Choice:
    """Choose lines.

    Args:
        scored: the numbers of each scorer, for the same lines; the order of the scorers counts in the second step.
        keys: of the lines, which decide ties and draws.
        sampling: how many.
    """
    ranked = [_worst_of(one, keys, sampling) for one in scored]
    chosen: dict[int, dict[str, Step]] = {}
    for one, worst in zip(scored, ranked, strict=True):
        for place in worst.places[: sampling.worst].tolist():
            chosen.setdefault(place, {})[one.label] = "worst"
    first = len(chosen)
    drawn = []
    for one, worst in zip(scored, ranked, strict=True):
        pool = worst.places[: _percentile(worst.scored, sampling)]
        free = np.array([place for place in pool.tolist() if place not in chosen], np.int64)
        places = _drawn(free, keys, sampling.drawn, salted(sampling.seed, "drawn", one.label))
        chosen.update({place: {one.label: "drawn"} for place in places.tolist()})
        drawn.append(len(places))
    places = np.array(sorted(chosen), np.int64)
    places = np.sort(_drawn(places, keys, sampling.most, salted(sampling.seed, "most")))
    chosen_by = [chosen[place] for place in places.tolist()]
    accounts = [
        _account(one, worst, sampling, count, sum(one.label in by for by in chosen_by))
        for one, worst, count in zip(scored, ranked, drawn, strict=True)
    ]
    return Choice(places, chosen_by, accounts, first, sum(drawn))


def salted(seed: int, *words: str) -> np.uint64:
    """What sets the hashes of one draw apart from those of another."""
    return np.uint64(key_of(str(seed), *words))


def _percentile(scored: int, sampling: Sampling) -> int:
    return math.ceil(scored * sampling.percentile / 100)


def _drawn(places: NDArray[np.int64], keys: NDArray[np.uint64], count: int, salt: np.uint64) -> NDArray[np.int64]:
    """So many of the places at random, by the hash of their keys."""
    return places[np.argsort(mixed(keys[places] ^ salt), kind="stable")[:count]]


def _worst_of(scored: Scored, keys: NDArray[np.uint64], sampling: Sampling) -> _Worst:
    """The worst lines, as many as either step may take; only these are in memory."""
    scored_lines = sum(int(np.isfinite(values).sum()) for _, values in scored.values())
    count = max(sampling.worst, _percentile(scored_lines, sampling))
    salt, total = salted(sampling.seed, "ties", scored.label), 0
    places, badness, ties = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.uint64)
    for start, values in scored.values():
        total += len(values)
        usable = np.flatnonzero(np.isfinite(values))
        own = np.array(values[usable])
        places = np.concatenate([places, usable + start])
        badness = np.concatenate([badness, own if scored.direction is Direction.HIGHER_IS_WORSE else -own])
        ties = np.concatenate([ties, mixed(np.array(keys[start : start + len(values)])[usable] ^ salt)])
        if len(places) > 2 * count:
            places, badness, ties = _first(places, badness, ties, count)
    places, badness, ties = _first(places, badness, ties, count)
    return _Worst(places, badness, scored_lines, total - scored_lines)


def _first(
    places: NDArray[np.int64], badness: NDArray[np.float64], ties: NDArray[np.uint64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.uint64]]:
    order = np.lexsort((ties, -badness))[:count]
    return places[order], badness[order], ties[order]


def _account(scored: Scored, worst: _Worst, sampling: Sampling, drawn: int, in_sample: int) -> ScorerAccount:
    taken, pool = len(worst.places[: sampling.worst]), _percentile(worst.scored, sampling)
    sign = 1.0 if scored.direction is Direction.HIGHER_IS_WORSE else -1.0
    borders = [sign * float(worst.badness[count - 1]) if count else None for count in (taken, pool)]
    tied = [0, 0]
    for _, values in scored.values():
        for number, border in enumerate(borders):
            tied[number] += 0 if border is None else int((values == border).sum())
    return ScorerAccount(
        scorer=scored.label,
        direction=scored.direction,
        scored=worst.scored,
        unscored=worst.unscored,
        reasons=scored.reasons,
        worst=taken,
        worst_border=borders[0],
        worst_tied=tied[0],
        percentile=pool,
        percentile_border=borders[1],
        percentile_tied=tied[1],
        drawn=drawn,
        missing=sampling.drawn - drawn,
        in_sample=in_sample,
    )
