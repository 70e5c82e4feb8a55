"""What the members of an ensemble say together of a marked stretch: its type by vote, and where it was held against."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.confidences.respanning import Meant, span_of_each

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.records import Pointer, Span, Word

__all__ = ["Vote", "Voter", "pointers_of"]


@dataclass(frozen=True)
class Voter:
    """One member's view of a response.

    Attributes:
        spans: its spans.
        words: its words, or None.
        confidences: of the common words, NaN where it gave none, shape (n,).
        weight: of its vote.
        types: its type to the ensemble's; those without a counterpart do not vote.
    """

    spans: Sequence[Span]
    words: Sequence[Word] | None
    confidences: NDArray[np.float64]
    weight: float
    types: Mapping[str, str]


class Vote:
    """Types and pointers of stretches of one response.

    Args:
        bounds: the common words, shape (n, 2).
        voters: the members that judged the response.
    """

    def __init__(self, bounds: NDArray[np.int32], voters: Sequence[Voter]) -> None:
        self._voters = voters
        self._spans = [span_of_each(bounds, voter.spans) for voter in voters]

    def __call__(self, low: int, high: int) -> Meant:
        """Of the words from `low` to `high`, half-open.

        Each member gives each word's type its weight times its confidence in the word; one without a confidence gives
        its weight. The type with most wins, and of several equal ones that which was met first.
        """
        votes: dict[str, float] = defaultdict(float)
        evidence: dict[Pointer, None] = {}
        for voter, of_word in zip(self._voters, self._spans, strict=True):
            for word in range(low, high):
                if of_word[word] < 0:
                    continue
                span = voter.spans[of_word[word]]
                evidence.update(dict.fromkeys(span.evidence))
                kind = voter.types.get(span.type or "")
                given = voter.confidences[word]
                if kind is not None:
                    votes[kind] += voter.weight * (1.0 if np.isnan(given) else float(given))
        best = max(votes, key=votes.__getitem__) if votes else None
        return Meant(best, tuple(evidence))


def pointers_of(voters: Sequence[Voter]) -> dict[tuple[int, int], tuple[Pointer, ...]]:
    """Where words are supported: by the first member that points anywhere."""
    found: dict[tuple[int, int], tuple[Pointer, ...]] = {}
    for voter in voters:
        for word in voter.words or ():
            if word.evidence:
                found.setdefault((word.start, word.end), word.evidence)
    return found
