"""Pairs as the network sees them: in windows and pieces, and put together again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Job", "joined"]


@dataclass(frozen=True)
class Job:
    """One input of the network.

    Attributes:
        row: the pair that it belongs to.
        piece: which piece of that pair's hypothesis.
        premise: a window of the premise.
        hypothesis: the piece.
        tokens: of both, special tokens included.
    """

    row: int
    piece: int
    premise: str
    hypothesis: str
    tokens: int


def joined(jobs: Sequence[Job], rows: NDArray[np.float32], pairs: int) -> NDArray[np.float32]:
    """One row per pair, from one per job; see `Entailment.judge` for the rule.

    Args:
        jobs: in order of their pairs.
        rows: entailment, neutral and contradiction, shape (len(jobs), 3).
        pairs: how many there are; each has a job.
    """
    owners = np.array([job.row for job in jobs], np.int64)
    counts = np.bincount(owners, minlength=pairs)
    found = np.zeros((pairs, 3), np.float32)
    single = counts[owners] == 1
    found[owners[single]] = rows[single]
    ends = np.cumsum(counts)
    for row in np.flatnonzero(counts > 1).tolist():
        found[row] = _of_several(jobs[ends[row] - counts[row] : ends[row]], rows[ends[row] - counts[row] : ends[row]])
    return found


def _of_several(jobs: Sequence[Job], rows: NDArray[np.float32]) -> NDArray[np.float32]:
    pieces = np.array([job.piece for job in jobs])
    entailed = min(float(rows[pieces == piece, 0].max()) for piece in np.unique(pieces))
    contradicted = float(rows[:, 2].max())
    return np.array([entailed, 1.0 - max(entailed, contradicted), contradicted], np.float32)
