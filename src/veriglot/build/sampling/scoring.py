"""A number for every clean line, from a scorer or from a column of the data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.build.sampling.shards import Found
from veriglot.build.sampling.store import LineStore
from veriglot.errors import VeriglotError
from veriglot.records import Direction, Evidence, Sample, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from veriglot.build.sampling.lines import Line
    from veriglot.records import Score, Scorer

__all__ = ["GivenScores", "KnownScorer", "ScorerSource", "ScorerWorker", "known", "translation"]

_BATCH = 256
_REASONS = 20  # different reasons that a range of lines is counted by; beyond, they are counted together


@dataclass(frozen=True)
class ScorerSource:
    """A scorer, and how another process makes one like it.

    Attributes:
        label: what it is called in accounts.
        make: makes it; picklable where several processes score.
    """

    label: str
    make: Callable[[], Scorer]


@dataclass(frozen=True)
class KnownScorer:
    """A scorer that could be made once.

    Attributes:
        source: the scorer.
        direction: of its numbers.
        signature: what its numbers depend on.
    """

    source: ScorerSource
    direction: Direction
    signature: str


def known(source: ScorerSource) -> KnownScorer:
    """Make the scorer, and let it go: one that cannot be made says so at once, and no two are in memory.

    Raises:
        VeriglotError: whatever keeps the scorer from being made.
    """
    scorer = source.make()
    return KnownScorer(source, scorer.direction, scorer.signature)


@dataclass(frozen=True)
class GivenScores:
    """A column of the data that holds scores.

    Attributes:
        label: the column's name.
        direction: whether a higher number speaks against a translation or for it.
    """

    label: str
    direction: Direction


def translation(line: Line, id_: str, source: str, target: str) -> Sample:
    """A line as a sample, without annotations: the source as evidence, its translation as the response."""
    return Sample(
        id=id_,
        response=line.target or "",
        task=Task.TRANSLATION,
        language=target,
        evidence=(Evidence(line.source, language=source),),
    )


class ScorerWorker:
    """Scores clean lines.

    Args:
        store: folder of the lines.
        kept: file of the numbers of the clean ones.
        scorer: what scores them.
        languages: tags of sources and of targets.
    """

    def __init__(self, store: Path, kept: Path, scorer: Scorer, languages: tuple[str, str]) -> None:
        self._store, self._kept = LineStore(store), kept
        self._scorer, self._languages = scorer, languages

    def __call__(self, start: int, stop: int) -> Found:
        """Array `values`, not a number where a line was not scored; notes count why it was not."""
        values = np.full(stop - start, np.nan)
        notes: Counter[str] = Counter()
        for first in range(start, stop, _BATCH):
            rows = np.array(np.load(self._kept, mmap_mode="r")[first : min(first + _BATCH, stop)])
            lines = zip(self._store.pick(rows), rows.tolist(), strict=True)
            samples = [translation(line, str(row), *self._languages) for line, row in lines]
            for place, score in enumerate(self._scores(samples), start=first - start):
                if score.value is not None:
                    values[place] = score.value
                else:
                    reason = f"{score.status}: {score.reason}"
                    notes[reason if reason in notes or len(notes) < _REASONS else f"{score.status}: other reasons"] += 1
        return Found({"values": values}, dict(notes))

    def _scores(self, samples: Sequence[Sample]) -> list[Score]:
        scores = self._scorer.score(samples)
        if [score.id for score in scores] != [sample.id for sample in samples]:
            raise VeriglotError(f"The scorer {self._scorer.name} did not give one score for each line, in order.")
        return scores
