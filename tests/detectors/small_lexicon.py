"""A lexicon of a few words, made as training makes one: frequencies by share, vectors by word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.document import Document, Lexicon

if TYPE_CHECKING:
    from collections.abc import Sequence

SHARES = {"the": 0.06, "a": 0.03, "of": 0.03, "in": 0.02, "der": 0.03, "и": 0.03, "的": 0.04, "river": 0.0004}
VECTORS = {
    "river": (1, 0),
    "fluss": (0.96, 0.28),
    "stone": (0, 1),
    "كتاب": (0.6, 0.8),
    "haus": (0.8, 0.6),
    "河": (1, 0),
}
DIMENSIONS = 40


def hashes_of(words: Sequence[str]) -> Document:
    document = Document(list(words), None)
    assert len(document) == len(words)
    return document


def small_lexicon() -> Lexicon:
    frequencies = Lexicon.no_frequencies()
    common = hashes_of(list(SHARES))
    stored = Lexicon.stored_frequency(np.array(list(SHARES.values())))
    for row, hashes in enumerate((common.stem, common.word)):
        frequencies[row, Lexicon.frequency_slots(hashes)] = stored
    keys = Lexicon.keys_of(hashes_of(list(VECTORS)).word)
    vectors = np.zeros((len(VECTORS), DIMENSIONS), np.int8)
    vectors[:, :2] = np.round(np.array(list(VECTORS.values())) * 127)
    order = np.argsort(keys)
    return Lexicon(frequencies, keys[order], vectors[order])
