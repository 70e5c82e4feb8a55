"""Rows as if their evidence were in another language: what stands in it as it is written is taken away.

Parallel data is scarce, a few hundred paragraphs, and a network learns them by heart. So half of the rows whose
evidence is in the response's own language are shown without their forms: meaning, numbers and most names are what is
left to go by, as across languages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.semantic.reading import ACROSS, NAME, OTHER_SCRIPT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.train.semantic.table import Arrays

__all__ = ["Blinder"]

_FAMILIES = (
    "stretch_", "in_evidence", "log_count", "stem_in_evidence", "log_stem_count", "beginning", "ending", "pair_",
    "near_", "skip_pair_", "swapped", "question_with", "far_", "sentence_best", "sentence_with", "in_best",
    "best_for_question", "sentence_in_", "sentence_before_", "sentence_after_", "sentence_stem", "sentence_stretch",
    "sentence_far", "sentence_pair", "response_stem", "response_stretch",
)  # fmt: skip
_HERE = "log_count_here"  # of the response alone
_NAMES_KEPT = 0.7
_SCRIPTS_DIFFER = 0.6
_SPELT_ALIKE = (0.54, 0.9)  # how well a name that is kept matches by sound


class Blinder:
    """Takes the forms away.

    Args:
        names: the grounding detector's features, in order; word vectors follow them.
        share: of the rows that are blinded.
        rng: draws which, and which names are kept.
    """

    def __init__(self, names: Sequence[str], share: float, rng: np.random.Generator) -> None:
        self._forms = [i for i, name in enumerate(names) if name.startswith(_FAMILIES) and name != _HERE]
        self._number, self._capital = names.index("is_number"), names.index("capital")
        self._share, self._rng = share, rng

    def __call__(self, arrays: Arrays) -> Arrays:
        """A row, blinded or as it was."""
        if self._rng.random() >= self._share:
            return arrays
        features, columns = arrays.features.copy(), arrays.columns.copy()
        number, capital = features[:, self._number] > 0, features[:, self._capital] > 0
        features[:, self._forms] = 0
        value = np.minimum(arrays.value, self._kept(number, capital)[arrays.ours])
        columns[:, NAME] = 0
        np.maximum.at(columns[:, NAME], arrays.ours, np.where(number[arrays.ours], 0, value).astype(np.float16))
        columns[:, ACROSS] = 1
        columns[:, OTHER_SCRIPT] = self._rng.random() < _SCRIPTS_DIFFER
        left = value > 0
        return replace(
            arrays,
            features=features,
            columns=columns,
            ours=arrays.ours[left],
            theirs=arrays.theirs[left],
            value=value[left].astype(np.float16),
        )

    def _kept(self, number: NDArray[np.bool_], capital: NDArray[np.bool_]) -> NDArray[np.float64]:
        """How well each word may still match: numbers in full, most words with a capital as names do."""
        names = capital & (self._rng.random(len(capital)) < _NAMES_KEPT)
        return np.where(number, 1.0, np.where(names, self._rng.uniform(*_SPELT_ALIKE, len(names)), 0.0))
