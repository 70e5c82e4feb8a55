"""How far premises support claims: the zero-shot method of SummaC, and the four metrics that kang makes of it.

For a claim `i` and premises `m`, with the model's probabilities of entailment `e` and contradiction `c`
(Kang, Blevins, Zettlemoyer 2024, section 2.2; Laban et al. 2022, SummaC-ZS with max):

    ENT_i  = max_m e(m, i)
    CON_i  = max_m c(m, i)
    DIFF_i = ENT_i - CON_i
    UNV_i  = 1 - max(ENT_i, CON_i)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.entailment.entailment import Entailment

__all__ = ["Support", "hold", "support_of"]

_DIGITS = 6  # beyond them the arithmetic of a batch shows
_PAIRS = 65536  # judged in one call


@dataclass(frozen=True)
class Support:
    """What n claims got from the premises that they were held against.

    Attributes:
        entailment: ENT, 0 to 1, shape (n,).
        contradiction: CON, 0 to 1, shape (n,).
        nearest: place of the premise with the greatest entailment, the first of several, shape (n,).
        opposed: place of the premise with the greatest contradiction, likewise.
    """

    entailment: NDArray[np.float64]
    contradiction: NDArray[np.float64]
    nearest: NDArray[np.int64]
    opposed: NDArray[np.int64]

    @property
    def difference(self) -> NDArray[np.float64]:
        """DIFF, -1 to 1, shape (n,)."""
        return self.entailment - self.contradiction

    @property
    def unverified(self) -> NDArray[np.float64]:
        """UNV, 0 to 1, shape (n,)."""
        return 1.0 - np.maximum(self.entailment, self.contradiction)


def support_of(rows: NDArray[np.float64]) -> Support:
    """Support from the probabilities of every claim with every premise.

    Args:
        rows: entailment, neutral and contradiction, shape (n, m, 3), with at least one premise.
    """
    entailment, contradiction = rows[:, :, 0].round(_DIGITS), rows[:, :, 2].round(_DIGITS)
    return Support(
        entailment.max(1),
        contradiction.max(1),
        entailment.argmax(1).astype(np.int64),
        contradiction.argmax(1).astype(np.int64),
    )


def hold(entailment: Entailment, tasks: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[Support]:
    """Hold claims against premises, every claim of a task against every premise of it.

    Args:
        entailment: the model; it is asked for many pairs at a time, over the borders of tasks.
        tasks: claims and premises, neither of them empty.

    Returns:
        One `Support` per task, in order.
    """
    found: list[Support] = []
    for group in _groups(tasks):
        rows = entailment.judge(
            [(premise, claim) for claims, premises in group for claim in claims for premise in premises]
        )
        start = 0
        for claims, premises in group:
            end = start + len(claims) * len(premises)
            found.append(support_of(rows[start:end].reshape(len(claims), len(premises), 3)))
            start = end
    return found


def _groups(
    tasks: Sequence[tuple[Sequence[str], Sequence[str]]],
) -> Iterator[list[tuple[Sequence[str], Sequence[str]]]]:
    """Neighbouring tasks of some `_PAIRS` pairs together; one that has more stands by itself."""
    group: list[tuple[Sequence[str], Sequence[str]]] = []
    pairs = 0
    for claims, premises in tasks:
        size = len(claims) * len(premises)
        if group and pairs + size > _PAIRS:
            yield group
            group, pairs = [], 0
        group.append((claims, premises))
        pairs += size
    if group:
        yield group
