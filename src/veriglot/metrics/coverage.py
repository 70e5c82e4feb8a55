"""How much of the data was measured: labelled or not, scored or why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Coverage"]


class Coverage(msgspec.Struct, frozen=True):
    """What became of the samples of one language, or of all.

    Attributes:
        samples: how many there were.
        labelled: those that the chosen annotator labelled; the others are in no figure.
        scored: labelled ones that the detector scored; figures stand on these alone.
        unscored: status to how many labelled ones ended with it; `missing` where there was no prediction.
    """

    samples: int = 0
    labelled: int = 0
    scored: int = 0
    unscored: dict[str, int] = {}

    @property
    def share(self) -> float | None:
        """scored / labelled; None where nothing is labelled."""
        return self.scored / self.labelled if self.labelled else None

    def with_sample(self, *, labelled: bool, status: str) -> Coverage:
        """One sample more; `status` is `scored`, another status of a prediction, or `missing`."""
        if not labelled:
            return Coverage(self.samples + 1, self.labelled, self.scored, self.unscored)
        if status == "scored":
            return Coverage(self.samples + 1, self.labelled + 1, self.scored + 1, self.unscored)
        unscored = {**self.unscored, status: self.unscored.get(status, 0) + 1}
        return Coverage(self.samples + 1, self.labelled + 1, self.scored, unscored)

    @classmethod
    def total(cls, parts: Iterable[Coverage]) -> Coverage:
        """The sum of several."""
        samples = labelled = scored = 0
        unscored: dict[str, int] = {}
        for part in parts:
            samples, labelled, scored = samples + part.samples, labelled + part.labelled, scored + part.scored
            for status, count in part.unscored.items():
                unscored[status] = unscored.get(status, 0) + count
        return cls(samples, labelled, scored, unscored)
