"""What a model of natural language inference is here: its protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Entailment"]


class Entailment(Protocol):
    """Judges pairs: does the premise say what the hypothesis says, or otherwise, or neither?

    What a pair gets hangs on its two texts alone, never on what else is asked with it or was asked before, up to the
    last digits of the arithmetic (1e-5). Nothing is cut: texts longer than the model takes are judged in stretches.
    """

    @property
    def signature(self) -> str:
        """One line `key:value|key:value` that tells apart any two models whose judgements differ."""
        ...

    @property
    def revision(self) -> str:
        """Which model it is, whatever machine it runs on: a commit, or a hash of its files."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """What it tells apart: `entailment`, `neutral`, `contradiction`; or `entailment`, `not_entailment`.

        The order is its own. One of the second kind says nothing of contradiction: its third column is 0.
        """
        ...

    @property
    def languages(self) -> frozenset[str]:
        """Base tags of the languages that it is declared to be for; empty where nobody has said."""
        ...

    def judge(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Probabilities of entailment, neutral and contradiction, shape (n, 3), for pairs of premise and hypothesis.

        A pair that fits gets the model's own three, which sum to 1. Of a premise in several windows the entailment is
        the greatest, and so is the contradiction: support by any window is support (SummaC's max). Of a hypothesis in
        several pieces the entailment is the least, since every piece has to be supported, and the contradiction the
        greatest. Neutral is then `1 - max(entailment, contradiction)`, as kang's UNV.
        """
        ...

    def pieces(self, hypothesis: str) -> list[tuple[int, int]]:
        """The stretches in which a hypothesis is judged, half-open code point ranges: one, unless it is very long."""
        ...
