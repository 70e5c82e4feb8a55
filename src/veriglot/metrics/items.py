"""Judged items: what one system said of responses or sentences, beside what the labels say of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.records import Direction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["Items", "badness_of"]


def badness_of(values: Sequence[float | None] | Array, direction: Direction | str) -> Array:
    """Scores turned so that greater is worse; NaN where there is none.

    Args:
        values: a system's own numbers, shape `(n,)`; None or NaN where it gave none.
        direction: which way they go.
    """
    numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return numbers if Direction(direction) is Direction.HIGHER_IS_WORSE else -numbers


@dataclass(frozen=True)
class Items:
    """The items of a data set, in an order that all systems share.

    Attributes:
        badness: the system's score, greater is worse, of any range; NaN where it gave none. Shape `(n,)`.
        nonfactual: whether the labels call anything in the item unsupported, shape `(n,)`.
        support: share of the item's facts that the evidence supports (kang's N_vs / N_t), NaN where it has no facts;
            None where it is not known.
        unverified: share that the evidence neither supports nor contradicts (kang's N_nv / N_t), NaN where it has no
            facts or the labels do not tell; None where it is not known.

    Raises:
        ValueError: arrays of different lengths.
    """

    badness: Array
    nonfactual: Mask
    support: Array | None = None
    unverified: Array | None = None

    def __post_init__(self) -> None:
        given = [self.badness, self.nonfactual, self.support, self.unverified]
        sizes = {len(part) for part in given if part is not None}
        if len(sizes) > 1:
            raise ValueError(f"items have as many scores as labels, not {sorted(sizes)}")

    def __len__(self) -> int:
        return len(self.badness)

    @property
    def scored(self) -> Mask:
        """Which items the system scored, shape `(n,)`; figures stand on these alone."""
        found: Mask = ~np.isnan(self.badness)
        return found

    def select(self, mask: Mask) -> Items:
        """Some of the items; `mask` has shape `(n,)`."""
        return Items(
            self.badness[mask],
            self.nonfactual[mask],
            None if self.support is None else self.support[mask],
            None if self.unverified is None else self.unverified[mask],
        )
