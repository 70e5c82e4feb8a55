"""Entailment models whose judgements are known: a table, and one that finds words. They keep to the protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from veriglot.text.normalization import fold
from veriglot.text.segmentation import words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

THREE = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class Scripted:
    """Looks pairs up; one that is not in the table is an error, so no test passes by luck."""

    table: Mapping[tuple[str, str], tuple[float, float, float]]
    labels: tuple[str, ...] = THREE
    languages: frozenset[str] = frozenset()
    revision: str = "scripted0000"
    signature: str = "entailment:scripted"

    def judge(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        return np.array([self.table[pair] for pair in pairs], np.float64).reshape(-1, 3)

    def pieces(self, hypothesis: str) -> list[tuple[int, int]]:
        return [(0, len(hypothesis))]


@dataclass(frozen=True)
class FindsWords:
    """Entailment is the share of the hypothesis' words that the premise holds; `never` in it is a contradiction."""

    labels: tuple[str, ...] = THREE
    languages: frozenset[str] = frozenset()
    revision: str = "finds-words0"
    signature: str = "entailment:finds-words"
    asked: list[int] = field(default_factory=list, compare=False)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        self.asked.append(len(pairs))
        return np.array([self._row(*pair) for pair in pairs], np.float64).reshape(-1, 3)

    def pieces(self, hypothesis: str) -> list[tuple[int, int]]:
        return [(0, len(hypothesis))]

    def _row(self, premise: str, hypothesis: str) -> tuple[float, float, float]:
        if "boom" in hypothesis:
            raise RuntimeError("the network broke")
        ours, theirs = _words(hypothesis), _words(premise)
        share = len(ours & theirs) / len(ours)
        if "never" in ours:
            return (0.0, 1.0 - share, share)
        return (share, 1.0 - share, 0.0)


@cache
def _words(text: str) -> frozenset[str]:
    folded = fold(text)
    return frozenset(folded[start:end] for start, end in words(text))
