"""Alignment by what words mean: the token vectors of an encoder, with what can be told from their forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.build.translating.alignment import Alignment, links_of
from veriglot.build.translating.lexical import lexical_similarity
from veriglot.encoders import load_encoder, word_vectors
from veriglot.provenance import signature
from veriglot.text import sentences

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.build.translating.alignment import Side
    from veriglot.encoders import Encoder

__all__ = ["VectorAligner", "vector_aligner"]

_LEAST = 0.3
_NONE, _ALL = 0.2, 0.7  # cosines that mean nothing, and everything: 0 and 1 on the scale of a link's weight


class VectorAligner:
    """Links words whose vectors lie close (SimAlign; Jalili Sabet et al. 2020), or that can be told by form.

    Args:
        encoder: gives the vectors, each in its context.
        least: cosine that a pair has to have.
        forms: whether equal words, numbers and names count too.
    """

    def __init__(self, encoder: Encoder, *, least: float = _LEAST, forms: bool = True) -> None:
        self._encoder = encoder
        self._least = least
        self._forms = forms
        self.signature = signature(aligner="vectors", least=least, forms=forms, encoder=encoder.signature)

    def align(self, source: Side, target: Side) -> Alignment:
        """As `Aligner`."""
        if not source.words or not target.words:
            return Alignment(source, target, [])
        ours, theirs = self._vectors(source), self._vectors(target)
        cosine = ours @ theirs.T
        scaled = np.clip((cosine - _NONE) / (_ALL - _NONE), 0.0, 1.0) * (cosine >= self._least)
        if self._forms:
            scaled = np.maximum(scaled, lexical_similarity(source, target))
        return Alignment(source, target, links_of(scaled.astype(np.float32), least=1e-6))

    def _vectors(self, side: Side) -> NDArray[np.float32]:
        encoded = self._encoder.encoded(side.text, sentences(side.text, side.tag))
        vectors = word_vectors(encoded, np.array(side.words, np.int64))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: NDArray[np.float32] = vectors / np.maximum(lengths, 1e-9)
        return unit


def vector_aligner(encoder: str = "use-multilingual", **options: Any) -> VectorAligner:
    """The aligner over an encoder by name.

    Args:
        encoder: a name of `ENCODERS`.
        options: of the encoder.
    """
    return VectorAligner(load_encoder(encoder, **options))
