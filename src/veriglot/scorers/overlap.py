"""Overlap of two lists of words: n-grams in common, the longest common subsequence, and P, R and F1 of both."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Overlap", "Value", "checked_value", "longest_common_subsequence", "n_gram_overlap"]

Value = Literal["precision", "recall", "f1"]


class Overlap(NamedTuple):
    """What a response and its evidence have in common, in counts.

    Attributes:
        matched: units that both hold.
        response: units of the response.
        evidence: units of the evidence.
    """

    matched: int
    response: int
    evidence: int

    @property
    def precision(self) -> float:
        """The share of the response's units that the evidence holds, 0 to 1; 0 where it has none."""
        return self.matched / self.response if self.response else 0.0

    @property
    def recall(self) -> float:
        """The share of the evidence's units that the response holds, 0 to 1; 0 where it has none."""
        return self.matched / self.evidence if self.evidence else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 where nothing is in common."""
        both = self.response + self.evidence
        return 2 * self.matched / both if both else 0.0

    def value(self, which: Value) -> float:
        """Precision, recall or F1."""
        found: float = getattr(self, which)
        return found

    def parts(self) -> dict[str, float]:
        """P, R and F1, and the counts that they are made of."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "matched": float(self.matched),
            "response": float(self.response),
            "evidence": float(self.evidence),
        }


def checked_value(which: Value) -> Value:
    """`which`, if it is one.

    Raises:
        UsageError: it is neither precision nor recall nor F1.
    """
    if which not in get_args(Value):
        raise UsageError(f"value is one of {', '.join(get_args(Value))}, not {which!r}.")
    return which


def n_gram_overlap(response: Sequence[str], evidence: Sequence[Sequence[str]], n: int) -> Overlap:
    """N-grams in common, each as often as both sides hold it (Lin 2004, section 2).

    Args:
        response: words.
        evidence: words of each passage; no n-gram crosses from one passage to the next.
        n: words of an n-gram, at least 1.
    """
    ours = Counter(_n_grams(response, n))
    theirs = Counter(gram for passage in evidence for gram in _n_grams(passage, n))
    matched = sum(min(count, theirs[gram]) for gram, count in ours.items())
    return Overlap(matched, ours.total(), theirs.total())


def _n_grams(words: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[i:] for i in range(n)), strict=False)


def longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence of words.

    A row of the table of dynamic programming is one integer with a bit a word of the shorter side (Hyyrö 2004), so
    that a step costs an addition: about a microsecond for a response of some hundred words.
    """
    shorter, longer = sorted((first, second), key=len)
    places: dict[str, int] = {}
    for index, word in enumerate(shorter):
        places[word] = places.get(word, 0) | 1 << index
    full = (1 << len(shorter)) - 1
    row = full  # a zero stands where the length grows
    for word in longer:
        met = places.get(word)
        if met is not None:
            met &= row
            row = ((row + met) | (row - met)) & full
    return len(shorter) - row.bit_count()
