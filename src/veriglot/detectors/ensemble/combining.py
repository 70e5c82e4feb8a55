"""Two ways to make one confidence of several: the mean, and a learned stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from veriglot.detectors.confidences.calibration import settings_of
from veriglot.detectors.confidences.curves import DIGITS
from veriglot.detectors.ensemble.stacking import features
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.detectors.ensemble.stacking import Stacking
    from veriglot.records import Detector

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["Combination", "Mean", "Stack"]


class Combination(Protocol):
    """How confidences are put together. Arrays hold the members that are there; `there` says which, shape (m,)."""

    @property
    def threshold(self) -> float | None:
        """The confidence to mark from by default; None where none was learned."""

    @property
    def line(self) -> str:
        """What a signature says of it."""

    @property
    def revision(self) -> tuple[str, ...]:
        """What a name says of it; possibly nothing."""

    @property
    def learned(self) -> bool:
        """Whether it was fitted on labels: a member may then give spans alone, and its own calibration is void."""

    def covers(self, tag: str | None, script: str | None) -> bool:
        """Whether it was fitted on texts of a language, or was not fitted at all."""

    def threshold_within(self, place: int, threshold: float) -> float | None:
        """The threshold of a member at which its spans, with the others', cover all that the ensemble marks."""

    def check(self, place: int, detector: Detector) -> None:
        """Whether a member is what it was when weights were learned. Raises `UsageError` where it is not."""

    def words(self, given: Array, inside: Mask, there: Mask, tag: str | None, script: str | None) -> Array | None:
        """Combined confidences, shape (n,), of the members' of shape (n, k); None where nobody has a weight."""

    def score(self, given: Array, there: Mask, tag: str | None, script: str | None) -> float | None:
        """The combined score, of the members' of shape (1, k); None where nobody has a weight."""


class Mean:
    """The weighted mean of the members that are there: a word that it marks, at least one of them marks."""

    threshold = None
    line = "mean"
    revision: tuple[str, ...] = ()
    learned = False

    def __init__(self, weights: tuple[float, ...]) -> None:
        self._weights = np.array(weights)
        if len(set(weights)) > 1:
            self.line = "mean " + " ".join(repr(float(weight)) for weight in weights)

    def covers(self, tag: str | None, script: str | None) -> bool:  # noqa: ARG002  # nothing was fitted
        """Always: it says nothing that the members do not."""
        return True

    def threshold_within(self, place: int, threshold: float) -> float | None:  # noqa: ARG002
        """The same: a mean that reaches it has a part that does."""
        return threshold

    def check(self, place: int, detector: Detector) -> None:
        """Nothing was learned, so anything goes."""

    def words(self, given: Array, inside: Mask, there: Mask, tag: str | None, script: str | None) -> Array | None:  # noqa: ARG002
        """The mean over the members, rounded."""
        kept = self._weights[there]
        found: Array = np.round(given @ (kept / kept.sum()), DIGITS)
        return found

    def score(self, given: Array, there: Mask, tag: str | None, script: str | None) -> float | None:
        """The mean over the members, rounded."""
        found = self.words(given, np.ones_like(given, dtype=bool), there, tag, script)
        return None if found is None else float(found[0])


class Stack:
    """Learned weights, by script.

    Args:
        file: the weights.
        path: where they lie, for messages.
    """

    learned = True

    def __init__(self, file: Stacking, path: str) -> None:
        self.file = file
        self._path = path

    @property
    def threshold(self) -> float | None:
        """As learned."""
        return self.file.threshold

    @property
    def line(self) -> str:
        """The kind, and a hash of the weights."""
        return f"stacking {self.file.revision}"

    @property
    def revision(self) -> tuple[str, ...]:
        """A hash of the weights."""
        return (self.file.revision,)

    def covers(self, tag: str | None, script: str | None) -> bool:
        """Whether there are weights for the language's script that texts of the language were in."""
        return self.file.words.covers(tag, script)

    def threshold_within(self, place: int, threshold: float) -> float | None:
        """Low enough for all scripts; None, its own, for a member that gave spans alone when weights were learned."""
        if self.file.members[place].source == "spans":
            return None
        mixes = [self.file.words.default, *self.file.words.scripts.values()]
        return max(0.0, min(mix.least(threshold) for mix in mixes) - 10.0**-DIGITS)

    def check(self, place: int, detector: Detector) -> None:
        """Whether name and settings are those that the weights were learned with."""
        learned = self.file.members[place]
        own = settings_of(detector.signature) if learned.source == "words" else detector.signature
        if (detector.name, own) != (learned.name, learned.settings):
            raise UsageError(
                f"The weights of {self._path} were learned with {learned.name} ({learned.settings}), and here it is"
                f" {detector.name} ({own}).",
                remedy="Learn them anew with veriglot train stacking.",
            )

    def words(self, given: Array, inside: Mask, there: Mask, tag: str | None, script: str | None) -> Array | None:
        """By the weights of the script."""
        return self.file.words.of(tag, script).probabilities(features(given, inside), there)

    def score(self, given: Array, there: Mask, tag: str | None, script: str | None) -> float | None:
        """By the weights of the script, or the plain mean where none could be learned."""
        if self.file.responses is None:
            return round(float(given.mean()), DIGITS)
        mix = self.file.responses.of(tag, script)
        found = mix.probabilities(features(given, np.ones_like(given, dtype=bool)), there)
        return None if found is None else float(found[0])
