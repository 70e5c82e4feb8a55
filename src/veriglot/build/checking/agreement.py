"""How far several annotations of one text agree: sums over texts first, figures after."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from veriglot.build.checking.findings import Agreement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.records import Annotation

__all__ = ["AgreementSums"]


@dataclass
class AgreementSums:
    """Sums over the texts of one language and kind of annotator.

    Attributes:
        texts, annotations, pairs, same: as in `Agreement`.
        overlaps: Dice coefficients summed, over `overlapping` pairs.
        both: code points that both of a pair marked; `typed` of them with a type in common.
        coincidences: pairs of values inside code points, each weighted 1 / (annotators - 1): shape (2, 2), unmarked
            first (Krippendorff 2004, section 11.3).
    """

    texts: int = 0
    annotations: int = 0
    pairs: int = 0
    same: int = 0
    overlaps: float = 0.0
    overlapping: int = 0
    both: int = 0
    typed: int = 0
    coincidences: NDArray[np.float64] | None = None

    def add(self, response: str, annotations: Sequence[Annotation]) -> bool:
        """Take in several annotations of one text; whether all marked the same places."""
        solid = np.array([not char.isspace() for char in response])
        marks = [_marked(one, len(response))[solid] for one in annotations]
        types = [_types(one, len(response))[:, solid] for one in self._in_one_order(annotations)]
        self.texts += 1
        self.annotations += len(annotations)
        agreed = True
        for first, second in combinations(range(len(annotations)), 2):
            agreed &= self._pair(marks[first], marks[second], types[first], types[second])
        counts = np.stack(marks).sum(axis=0, dtype=np.int64)
        self._coincide(counts, len(annotations))
        return agreed

    def _in_one_order(self, annotations: Sequence[Annotation]) -> list[_Typed]:
        names = sorted({span.type or "" for one in annotations for span in one.spans or ()})
        return [_Typed(one, names) for one in annotations]

    def _pair(
        self,
        first: NDArray[np.bool_],
        second: NDArray[np.bool_],
        types: NDArray[np.bool_],
        others: NDArray[np.bool_],
    ) -> bool:
        self.pairs += 1
        shared = int((first & second).sum())
        marked = int(first.sum() + second.sum())
        if marked:
            self.overlaps += 2 * shared / marked
            self.overlapping += 1
        self.both += shared
        self.typed += int((types & others).any(axis=0).sum())
        same = 2 * shared == marked
        self.same += same
        return same

    def _coincide(self, marked: NDArray[np.int64], annotators: int) -> None:
        if self.coincidences is None:
            self.coincidences = np.zeros((2, 2))
        unmarked = annotators - marked
        share = 1 / (annotators - 1)
        self.coincidences[0, 0] += share * float((unmarked * (unmarked - 1)).sum())
        self.coincidences[1, 1] += share * float((marked * (marked - 1)).sum())
        mixed = share * float((marked * unmarked).sum())
        self.coincidences[0, 1] += mixed
        self.coincidences[1, 0] += mixed

    def agreement(self, language: str, kind: str) -> Agreement:
        """The figures."""
        return Agreement(
            language, kind, self.texts, self.annotations, self.pairs, self.same,
            self.overlaps / self.overlapping if self.overlapping else None,
            self._alpha(),
            self.typed / self.both if self.both else None,
        )  # fmt: skip

    def _alpha(self) -> float | None:
        """1 - observed / expected disagreement, nominal."""
        table = self.coincidences
        if table is None:
            return None
        values = table.sum(axis=1)
        total = float(values.sum())
        expected = float(values[0] * values[1]) / (total - 1) if total > 1 else 0.0
        return 1 - float(table[0, 1]) / expected if expected > 0 else None


@dataclass(frozen=True)
class _Typed:
    annotation: Annotation
    names: list[str]


def _marked(annotation: Annotation, length: int) -> NDArray[np.bool_]:
    inside = np.zeros(length, np.bool_)
    for span in annotation.spans or ():
        inside[span.start : span.end] = True
    return inside


def _types(typed: _Typed, length: int) -> NDArray[np.bool_]:
    """Which types each code point has, shape (types, length)."""
    inside = np.zeros((max(1, len(typed.names)), length), np.bool_)
    for span in typed.annotation.spans or ():
        inside[typed.names.index(span.type or ""), span.start : span.end] = True
    return inside
