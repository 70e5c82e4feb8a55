"""What scorers that hold a response against its evidence share: one score a sample, and why there is none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from veriglot.records import Direction, Score, Status
from veriglot.text import identify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Sample

__all__ = ["AgainstEvidence", "Measured", "Unmeasured", "language_of"]


class Measured(NamedTuple):
    """A number, the parts that it was made of, and the language it was made in (None where none was needed)."""

    value: float
    parts: dict[str, float]
    language: str | None = None


class Unmeasured(NamedTuple):
    """Why there is no number."""

    status: Status
    reason: str


class AgainstEvidence(ABC):
    """A scorer that measures each sample by itself, where there is evidence.

    Attributes:
        name: name and revision.
        direction: which way the numbers go; more agreement with the evidence is better, unless a class says otherwise.
    """

    name: str
    direction = Direction.HIGHER_IS_BETTER

    @property
    @abstractmethod
    def signature(self) -> str:
        """Name and settings."""

    @abstractmethod
    def measure(self, sample: Sample) -> Measured | Unmeasured:
        """The number of one sample, whose evidence is not blank."""

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        """One score a sample, in order; without evidence the status is `no_evidence`."""
        line = self.signature
        return [self._one(sample, line) for sample in samples]

    def _one(self, sample: Sample, line: str) -> Score:
        if any(passage.text.strip() for passage in sample.evidence):
            found = self.measure(sample)
        else:
            found = Unmeasured(Status.NO_EVIDENCE, "there is no evidence to hold the response against")
        if isinstance(found, Unmeasured):
            return Score(sample.id, found.status, self.name, reason=found.reason, signature=line)
        return Score(
            sample.id,
            Status.SCORED,
            self.name,
            value=found.value,
            parts=found.parts,
            language=found.language or sample.language,
            signature=line,
        )


def language_of(sample: Sample) -> str | None:
    """The language of the response, as it is given or else identified; None where it cannot be told."""
    if sample.language:
        return sample.language
    found = identify(sample.response)
    return found.tag if found else None
