"""What a detector marked, as numbers per response: all that estimates are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.records import CONFIDENCE_BINS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Counts = NDArray[np.int64]

__all__ = ["BINS", "Labels", "Tallies"]

BINS = CONFIDENCE_BINS
"""Bins of confidence, those of an error profile."""


@dataclass(frozen=True)
class Tallies:
    """Counts of the judged responses of one model in one language.

    Attributes:
        marked: units that the detector marked, shape `(n,)`.
        units: units, shape `(n,)`.
        cluster: what the response belongs to, shape `(n,)`: responses to one query share a number, because they do not
            vary independently. The numbers are the same for all models of a study, so that models can be paired.
        confidences: units by confidence, shape `(n, 20)`; None where the predictions have no words.
    """

    marked: Counts
    units: Counts
    cluster: Counts
    confidences: Counts | None = None

    def __post_init__(self) -> None:
        n = len(self.units)
        if self.marked.shape != (n,) or self.cluster.shape != (n,):
            raise ValueError(f"{n} counts of units, {self.marked.shape} of marked units, {self.cluster.shape} clusters")
        if self.confidences is not None and self.confidences.shape != (n, BINS):
            raise ValueError(f"confidences have the shape ({n}, {BINS}), not {self.confidences.shape}")
        if n and (self.marked < 0).any() | (self.marked > self.units).any():
            raise ValueError("a response has between 0 and all of its units marked")

    def __len__(self) -> int:
        return len(self.units)

    def select(self, kept: NDArray[np.bool_] | Counts) -> Tallies:
        """Those responses that a mask or a list of places names."""
        confidences = None if self.confidences is None else self.confidences[kept]
        return Tallies(self.marked[kept], self.units[kept], self.cluster[kept], confidences)

    @classmethod
    def join(cls, parts: Sequence[Tallies]) -> Tallies:
        """All responses of several; confidences only where all have them."""
        if not parts:
            nothing = np.zeros(0, dtype=np.int64)
            return cls(nothing, nothing, nothing)
        held = [part.confidences for part in parts]
        confidences = None if any(each is None for each in held) else np.concatenate([e for e in held if e is not None])
        return cls(
            np.concatenate([part.marked for part in parts]),
            np.concatenate([part.units for part in parts]),
            np.concatenate([part.cluster for part in parts]),
            confidences,
        )


@dataclass(frozen=True)
class Labels:
    """What people said of some of a study's responses, beside what the detector said of the same ones.

    Attributes:
        unsupported: units that people marked, shape `(m,)`.
        response: place of each labelled response in the study's `Tallies`, shape `(m,)`.
    """

    unsupported: Counts
    response: Counts
