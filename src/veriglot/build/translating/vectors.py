"""Alignment by what words mean: the token vectors of an encoder, with what can be told from their forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.build.translating.alignment import Alignment
from veriglot.build.translating.lexical import lexical_similarity
from veriglot.build.translating.posterior import Weighing, posterior, soft_links
from veriglot.encoders import load_encoder, word_vectors
from veriglot.provenance import signature
from veriglot.text import sentences

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.build.translating.alignment import Side
    from veriglot.encoders import Encoder

__all__ = ["VectorAligner", "vector_aligner"]


class VectorAligner:
    """Links words whose vectors lie close, that can be told by form, and that stand where they would.

    Args:
        encoder: gives the vectors, each in its context.
        forms: whether equal words, numbers and names count too.
        weighing: what counts how much.
    """

    def __init__(self, encoder: Encoder, *, forms: bool = True, weighing: Weighing | None = None) -> None:
        self._encoder = encoder
        self._forms = forms
        self._weighing = weighing or Weighing()
        given = {key: value for key, value in self._weighing._asdict().items() if forms or key != "form"}
        self.signature = signature(aligner="vectors", forms=forms, **given, encoder=encoder.signature)

    def align(self, source: Side, target: Side) -> Alignment:
        """As `Aligner`."""
        if not source.words or not target.words:
            return Alignment(source, target, [])
        cosine = self._vectors(source) @ self._vectors(target).T
        form = lexical_similarity(source, target) if self._forms else None
        return Alignment(source, target, soft_links(posterior(cosine, form, self._weighing)))

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
