"""How common words are, counted over the training texts."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.document import Document
from veriglot.detectors.grounding.lexicon import FREQUENCY_BITS, Lexicon
from veriglot.text import fold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["Commonness"]

_SLOTS = 1 << FREQUENCY_BITS
_MIN_COUNT = 2


class Commonness:
    """Counts of words and stems per language, in hashed slots."""

    def __init__(self) -> None:
        self._counts: dict[str, NDArray[np.int64]] = defaultdict(lambda: np.zeros((2, _SLOTS), np.int64))
        self._cache: dict[str, float] = {}
        self._table: NDArray[np.uint8] | None = None

    def count(self, texts: Iterable[str], language: str) -> None:
        """Add the words of texts in one language."""
        document = Document(list(texts), language)
        shift = np.uint64(64 - FREQUENCY_BITS)
        for row, hashes in enumerate((document.stem, document.word)):
            np.add.at(self._counts[language][row], (hashes >> shift).astype(np.int64), 1)
        self._table = None

    def table(self) -> NDArray[np.uint8]:
        """The highest frequency of each slot in any language, as the detector stores it; shape (2, 2^17)."""
        if self._table is None:
            table = np.zeros((2, _SLOTS), np.uint8)
            for counts in self._counts.values():
                shares = np.where(counts >= _MIN_COUNT, counts / max(int(counts[0].sum()), 1), 0.0)
                table = np.maximum(table, Lexicon.stored_frequency(shares))
            self._table = table
        return self._table

    def of(self, text: str, bounds: list[tuple[int, int]]) -> NDArray[np.float64]:
        """The stem frequency of each word, 0 to 12, shape (n,)."""
        lexicon = Lexicon(self.table(), np.zeros(0, np.uint64), np.zeros((0, 1), np.int8))
        folded = fold(text)
        asked = [folded[s:e] for s, e in bounds]
        for word in asked:
            if word not in self._cache:
                stems = Document([word], None).stem
                self._cache[word] = float(lexicon.stem_frequency(stems)[0]) if len(stems) else 0.0
        return np.array([self._cache[word] for word in asked])
