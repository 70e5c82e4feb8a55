"""Confusion matrices over several classes: what was said of items of each true class (HalluVerse25, Figure 4)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = [
    "ConfusionMatrix",
    "accuracy",
    "confusion_matrix",
    "f1",
    "f1_of",
    "fpr",
    "mcc",
    "precision",
    "prevalence",
    "ratio",
    "recall",
]


NO_ANSWER = "no answer"


@dataclass(frozen=True)
class ConfusionMatrix:
    """How often items of a class were taken for which.

    Attributes:
        classes: the true classes, in order: the rows.
        answers: what may be said of an item, the classes first: the columns. Answers that are no class (`NO_ANSWER`,
            or a word that was not asked for) come after; they are wrong, and never left out.
        counts: shape `(len(classes), len(answers))`.
    """

    classes: tuple[str, ...]
    answers: tuple[str, ...]
    counts: NDArray[np.int64]

    def __add__(self, other: ConfusionMatrix) -> ConfusionMatrix:
        """The counts of both, over the answers of both.

        Raises:
            ValueError: they are of other classes.
        """
        if self.classes != other.classes:
            raise ValueError(f"matrices of {self.classes} and {other.classes} cannot be added")
        answers = (*self.answers, *(answer for answer in other.answers if answer not in self.answers))
        counts = np.zeros((len(self.classes), len(answers)), dtype=np.int64)
        for part in (self, other):
            counts[:, [answers.index(answer) for answer in part.answers]] += part.counts
        return ConfusionMatrix(self.classes, answers, counts)

    @property
    def sizes(self) -> dict[str, int]:
        """Class to how many items it has."""
        return dict(zip(self.classes, map(int, self.counts.sum(axis=1)), strict=True))

    @property
    def right(self) -> dict[str, int]:
        """Class to how many of its items were taken for it."""
        return dict(zip(self.classes, map(int, np.diag(self.counts)), strict=True))

    @property
    def failed(self) -> dict[str, int]:
        """Class to how many of its items were taken for something else, or for nothing (HalluVerse25, Table 4)."""
        return {name: self.sizes[name] - right for name, right in self.right.items()}

    def accuracy(self, name: str | None = None) -> float | None:
        """Share of a class's items that were taken for it, or of all items (HalluVerse25, Table 3: `Overall`).

        None where there are no such items. Over one class this is its recall.
        """
        right, size = (self.right, self.sizes) if name is None else ({name: self.right[name]}, {name: self.sizes[name]})
        total = sum(size.values())
        return sum(right.values()) / total if total else None

    def precision(self, name: str) -> float | None:
        """Share of the items taken for a class that belong to it; None where none were."""
        taken = int(self.counts[:, self.classes.index(name)].sum())
        return self.right[name] / taken if taken else None

    def f1(self, name: str) -> float | None:
        """2 right / (taken + size) of a class; None where there is neither."""
        whole = int(self.counts[:, self.classes.index(name)].sum()) + self.sizes[name]
        return 2 * self.right[name] / whole if whole else None

    def macro_f1(self) -> float | None:
        """The mean of `f1` over the classes that have items; None where none has."""
        values = [self.f1(name) for name, size in self.sizes.items() if size]
        return sum(value for value in values if value is not None) / len(values) if values else None

    def shares(self) -> NDArray[np.float64]:
        """Each row over its sum, as confusion matrices are drawn; NaN in the row of a class without items."""
        sums = self.counts.sum(axis=1, keepdims=True).astype(np.float64)
        out = np.full(self.counts.shape, np.nan)
        divided: NDArray[np.float64] = np.divide(self.counts, sums, out=out, where=sums > 0)
        return divided


def confusion_matrix(pairs: Iterable[tuple[str, str | None]], classes: Sequence[str]) -> ConfusionMatrix:
    """Count pairs of what an item is and what was said of it.

    Args:
        pairs: the true class, and the answer; None where there was none.
        classes: in the order of the rows.

    Raises:
        UsageError: an item is of none of the classes.
    """
    counted = Counter((gold, NO_ANSWER if answer is None else answer) for gold, answer in pairs)
    strange = sorted({gold for gold, _ in counted} - set(classes))
    if strange:
        raise UsageError(
            f"Items are of classes that the matrix does not have: {', '.join(strange)}.",
            remedy=f"Its classes are {', '.join(classes)}.",
        )
    extra = sorted({answer for _, answer in counted} - set(classes), key=lambda name: (name == NO_ANSWER, name))
    answers = (*classes, *extra)
    counts = np.zeros((len(classes), len(answers)), dtype=np.int64)
    for (gold, answer), number in counted.items():
        counts[classes.index(gold), answers.index(answer)] = number
    return ConfusionMatrix(tuple(classes), answers, counts)


# Scores from counts of true and false positives and negatives, over arrays of any shape.
#
# Every function takes counts whose last axis is `(tp, fp, fn, tn)` and gives one value per leading index. Where a
# denominator is zero the value is NaN: it was not measured. Figures turn NaN into None with the reason.


if TYPE_CHECKING:
    Array = NDArray[np.float64]


def ratio(part: Array, whole: Array) -> Array:
    """`part / whole`, NaN where `whole` is 0."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    out = np.full(np.broadcast_shapes(part.shape, whole.shape), np.nan)
    divided: Array = np.divide(part, whole, out=out, where=whole != 0)
    return divided


def precision(counts: Array) -> Array:
    """tp / (tp + fp): the share of marked units that are unsupported."""
    return ratio(counts[..., 0], counts[..., 0] + counts[..., 1])


def recall(counts: Array) -> Array:
    """tp / (tp + fn): the share of unsupported units that are marked; also called TPR."""
    return ratio(counts[..., 0], counts[..., 0] + counts[..., 2])


def fpr(counts: Array) -> Array:
    """fp / (fp + tn): the share of supported units that are marked."""
    return ratio(counts[..., 1], counts[..., 1] + counts[..., 3])


def f1(counts: Array) -> Array:
    """2 tp / (2 tp + fp + fn); NaN only where nothing is unsupported and nothing marked."""
    return ratio(2.0 * counts[..., 0], 2.0 * counts[..., 0] + counts[..., 1] + counts[..., 2])


def accuracy(counts: Array) -> Array:
    """(tp + tn) / all."""
    return ratio(counts[..., 0] + counts[..., 3], counts.sum(axis=-1))


def prevalence(counts: Array) -> Array:
    """(tp + fn) / all: the share of units that are unsupported."""
    return ratio(counts[..., 0] + counts[..., 2], counts.sum(axis=-1))


def mcc(counts: Array) -> Array:
    """Matthews correlation coefficient, in [-1, 1]; NaN where a row or column of the table is empty."""
    tp, fp, fn, tn = (counts[..., index].astype(np.float64) for index in range(4))
    root = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
    return ratio(tp * tn - fp * fn, root)


def f1_of(matched: Array, predicted: Array, gold: Array) -> Array:
    """2 matched / (predicted + gold), for things that are matched one to one."""
    return ratio(2.0 * matched, predicted + gold)
