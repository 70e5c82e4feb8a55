"""Thresholds: where a score becomes a verdict. Tuned on a development split, per system and measure, never on test.

As hat does (section 4.2): scores become labels at the threshold that is best on the development set for each pair of
system and measure; precision and recall take that of F1, for each alone would be best by marking next to nothing, or
everything. Detectors that give verdicts have a threshold of their own (`fixed`), as do kang's scores (section 5.1: 0.5
for entailment and contradiction, 0 for their difference).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from veriglot.errors import UnknownNameError
from veriglot.metrics import scores
from veriglot.metrics.item_measures import AT_THRESHOLD
from veriglot.metrics.items import badness_of
from veriglot.metrics.ranked import Ranked
from veriglot.records import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["TUNED", "Threshold", "fixed", "tune", "tune_all"]

_SCORES: dict[str, Callable[[Array], Array]] = {"f1": scores.f1, "mcc": scores.mcc, "accuracy": scores.accuracy}
TUNED = tuple(_SCORES)
_LIKE_F1 = "f1"
_DIGITS = 12  # in which figures of different thresholds have to differ


@dataclass(frozen=True)
class Threshold:
    """A threshold, in the system's own numbers.

    Attributes:
        value: items that reach it, in the direction of worse, are marked; None where none could be tuned.
        direction: of the system's numbers.
        tuned_for: the measure that it was tuned for; `fixed` where it was given.
        reached: the measure's value on the development split; None where it was given, or none could be tuned.
        items: scored items of the development split.
        positives: how many of them are non-factual.
        reason: why there is none.
    """

    value: float | None
    direction: Direction
    tuned_for: str
    reached: float | None = None
    items: int = 0
    positives: int = 0
    reason: str | None = None

    @property
    def cut(self) -> float | None:
        """The badness (greater is worse) from which items are marked, as `metrics.item_measures` takes it."""
        if self.value is None:
            return None
        return self.value if self.direction is Direction.HIGHER_IS_WORSE else -self.value

    def marks(self, values: Sequence[float | None] | Array) -> Mask:
        """Which items are marked, shape `(n,)`; those without a score are not.

        Raises:
            ValueError: there is no threshold.
        """
        if self.cut is None:
            raise ValueError(f"there is no threshold: {self.reason}")
        found: Mask = badness_of(values, self.direction) >= self.cut
        return found


def fixed(value: float, direction: Direction | str) -> Threshold:
    """A threshold that was given, not tuned."""
    return Threshold(float(value), Direction(direction), "fixed")


def tune(
    values: Sequence[float | None] | Array,
    nonfactual: Sequence[bool] | Mask,
    measure: str = "f1",
    direction: Direction | str = Direction.HIGHER_IS_WORSE,
) -> Threshold:
    """The threshold that is best on a development split.

    It lies halfway between two scores that occur, so that it means the same to a score that lies a little off. Of
    several that are equally good, the one that marks the fewest items is taken.

    Args:
        values: the system's numbers on the development split, shape `(n,)`; None or NaN where it gave none.
        nonfactual: the labels, shape `(n,)`.
        measure: one of `TUNED`, or another of `AT_THRESHOLD`, which takes the threshold of F1 as hat does.
        direction: of the numbers.

    Raises:
        UnknownNameError: the measure takes no threshold.
    """
    if measure not in AT_THRESHOLD:
        raise UnknownNameError("measure that takes a threshold", measure, AT_THRESHOLD)
    aim = measure if measure in TUNED else _LIKE_F1
    way = Direction(direction)
    badness, labels = badness_of(values, way), np.asarray(nonfactual, dtype=bool)
    known = ~np.isnan(badness)
    badness, labels = badness[known], labels[known]
    nowhere = Threshold(None, way, aim, None, len(labels), int(np.count_nonzero(labels)))
    missing = _untunable(badness, labels)
    if missing:
        return replace(nowhere, reason=missing)
    cuts, reached = _candidates(badness, labels, aim)
    if np.isnan(reached).all():
        return replace(nowhere, reason=f"{aim} is undefined at every threshold")
    best = int(np.nanargmax(reached.round(_DIGITS)))  # of equal figures the first, whatever their last digits
    value = float(cuts[best])
    own = value if way is Direction.HIGHER_IS_WORSE else -value
    return replace(nowhere, value=own, reached=float(reached[best]))


def tune_all(
    values: Sequence[float | None] | Array,
    nonfactual: Sequence[bool] | Mask,
    direction: Direction | str = Direction.HIGHER_IS_WORSE,
) -> dict[str, Threshold]:
    """The threshold of every measure of `AT_THRESHOLD`, those that are tuned apart and those that go with F1."""
    tuned = {name: tune(values, nonfactual, name, direction) for name in TUNED}
    return {name: tuned.get(name, tuned[_LIKE_F1]) for name in AT_THRESHOLD}


def _untunable(badness: Array, labels: Mask) -> str | None:
    if not len(badness):
        return "the development split has no scored and labelled items"
    if not labels.any():
        return "the development split has no non-factual items"
    if labels.all():
        return "the development split has no factual items"
    return None


def _candidates(badness: Array, labels: Mask, aim: str) -> tuple[Array, Array]:
    """Cuts from the one that marks nothing to the one that marks everything, and the measure at each."""
    ranked = Ranked.of(badness, labels)
    positives, negatives = (
        np.concatenate([[0.0], np.cumsum(part[0])]) for part in ranked.steps(np.ones((1, len(labels))))
    )
    counts = np.stack([positives, negatives, positives[-1] - positives, negatives[-1] - negatives], axis=1)
    upper, lower = ranked.cuts[:-1], ranked.cuts[1:]
    middle = lower + (upper - lower) / 2.0
    middle = np.where(middle > lower, middle, upper)  # neighbours among floating-point numbers have no middle
    nothing = np.nextafter(ranked.cuts[0], np.inf)
    return np.concatenate([[nothing], middle, [ranked.cuts[-1]]]), _SCORES[aim](counts)
