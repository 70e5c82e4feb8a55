"""What the floors above ask of each other: the protocols that plug-ins and neighbours implement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records.prediction import Prediction
    from veriglot.records.sample import Sample
    from veriglot.records.score import Direction, Score

__all__ = ["Detector", "Scorer"]


@runtime_checkable
class Detector(Protocol):
    """Samples in, predictions out: batch first, no state between calls.

    `predict` gives one prediction per sample, in order. It never raises because of a sample: what it cannot
    judge comes back with a status other than `scored` and a reason. The result for a sample does not depend
    on the rest of its batch.

    A detector that hands samples on to others names those in its predictions, and itself in their signature, as
    `chooser:name`; `Prediction.asked` finds it there.
    """

    @property
    def name(self) -> str:
        """Name and revision, such as `grounding@1.0`."""

    @property
    def taxonomy(self) -> str:
        """Name of the taxonomy that its span types belong to."""

    @property
    def threshold(self) -> float:
        """Confidence from which a word counts as marked."""

    @property
    def signature(self) -> str:
        """One line that says how its predictions are made."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch."""


@runtime_checkable
class Scorer(Protocol):
    """Samples in, numbers out: like a detector, but with one number a sample, no spans, and no calibration.

    `score` gives one score per sample, in order. It never raises because of a sample: what it cannot score comes back
    with a status other than `scored` and a reason. The score of a sample does not depend on the rest of its batch.
    """

    @property
    def name(self) -> str:
        """Name and revision, such as `top-ngram@1`."""

    @property
    def direction(self) -> Direction:
        """Whether a higher number speaks against a response or for it."""

    @property
    def signature(self) -> str:
        """One line that says how its scores are made."""

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Score a batch."""
