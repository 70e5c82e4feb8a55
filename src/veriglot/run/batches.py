"""Rows cut into batches. Samples go to the detector; what is not a sample passes through in its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from veriglot.records import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from veriglot.records import Prediction, Score

__all__ = ["Batch", "Share", "batches"]

P = TypeVar("P")

# A batch is closed early once its texts hold this many code points, so that long rows do not multiply in memory.
BATCH_CODE_POINTS = 2_000_000


@dataclass
class Batch(Generic[P]):
    """Consecutive rows, the samples among them, and the predictions (or scores) as they come in."""

    rows: list[Sample | P] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    predictions: list[Prediction | Score | None] = field(default_factory=list)
    code_points: int = 0

    def add(self, row: Sample | P) -> None:
        """Append one row."""
        self.rows.append(row)
        if isinstance(row, Sample):
            self.samples.append(row)
            self.predictions.append(None)
            self.code_points += len(row.response) + sum(len(passage.text) for passage in row.evidence)

    @property
    def done(self) -> bool:
        """Whether every sample has its prediction."""
        return None not in self.predictions

    def answered(self) -> Iterator[tuple[Sample | P, Any]]:
        """The rows in order; a row that passes through comes with None."""
        predictions = iter(self.predictions)
        for row in self.rows:
            yield row, next(predictions) if isinstance(row, Sample) else None


@dataclass(frozen=True)
class Share(Generic[P]):
    """A part of a batch, `[start, end)` of its samples, that one worker holds.

    Attributes:
        deaths: how many workers died while they held it.
    """

    batch: Batch[P]
    start: int
    end: int
    deaths: int = 0

    @property
    def samples(self) -> Sequence[Sample]:
        """The samples of the share."""
        return self.batch.samples[self.start : self.end]

    def fill(self, predictions: Sequence[Prediction | Score]) -> None:
        """Put the answers where they belong."""
        self.batch.predictions[self.start : self.end] = predictions

    def after_death(self) -> list[Share[P]]:
        """What to try next when a worker died over this share.

        Once again as it is, because the worker may have been killed from outside; after a second death sample by
        sample, so that only the sample that kills is lost.
        """
        deaths = self.deaths + 1
        if deaths < 2 or self.end - self.start == 1:
            return [Share(self.batch, self.start, self.end, deaths)]
        return [Share(self.batch, first, last) for first, last in pairwise(range(self.start, self.end + 1))]


def batches(rows: Iterable[Sample | P], size: int) -> Iterator[Batch[P]]:
    """Cut `rows` into batches of at most `size` rows and about `BATCH_CODE_POINTS` of text; nothing is read ahead."""
    batch: Batch[P] = Batch()
    for row in rows:
        batch.add(row)
        if len(batch.rows) >= size or batch.code_points >= BATCH_CODE_POINTS:
            yield batch
            batch = Batch()
    if batch.rows:
        yield batch
