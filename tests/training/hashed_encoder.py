"""A small real encoder: every word has a vector drawn from its folded form, in any language; nothing to download."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from veriglot.encoders.base import Encoder, Piece
from veriglot.text.normalization import fold
from veriglot.text.segmentation import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.encoders.base import Strength

WIDTH = 24


class HashedEncoder(Encoder):
    """Sentences are the mean of their words; the neighbours of a word add a little to it."""

    name = "hashed"
    signature = "encoder:hashed"
    dimension = token_dimension = WIDTH
    languages = frozenset({"en", "de"})

    def __init__(self) -> None:
        super().__init__(cache_mb=4)

    def __reduce__(self) -> tuple[type[HashedEncoder], tuple[()]]:
        return HashedEncoder, ()

    def strength(self, tag: str | None) -> Strength:
        return "measured" if (tag or "").split("-")[0] in self.languages else "weak"

    def _encode(self, texts: Sequence[str]) -> list[Piece]:
        return [self._piece(text) for text in texts]

    def _piece(self, text: str) -> Piece:
        bounds = np.array(words(text), np.int64).reshape(-1, 2)
        drawn = np.zeros((len(bounds), WIDTH), np.float32)
        for nth, (start, end) in enumerate(bounds.tolist()):
            rng = np.random.default_rng(zlib.crc32(fold(text[start:end]).encode()))
            drawn[nth] = rng.normal(size=WIDTH)
        vectors = drawn.copy()
        vectors[1:] += 0.1 * drawn[:-1]
        whole = drawn.sum(axis=0) / max(1e-9, float(np.linalg.norm(drawn.sum(axis=0)))) if len(bounds) else drawn.sum(0)
        return Piece(bounds, vectors, whole.astype(np.float32))
