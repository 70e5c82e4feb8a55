"""What the encoder says of a text, word by word and sentence by sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from veriglot.encoders import word_vectors
from veriglot.text import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.encoders import Encoder

__all__ = ["EncoderVectors", "TextVectors", "Vectors", "pieces"]

LONGEST = 600  # code points of a sentence that gets one vector; a longer one is cut


class Vectors(Protocol):
    """Where vectors come from: an encoder, or what was stored of it before."""

    def sentences(self, text: str, tag: str | None) -> TextVectors:
        """The pieces of a text, with their vectors."""

    def words(
        self, text: str, tag: str | None, bounds: NDArray[np.int64], chosen: Sequence[int] | None = None
    ) -> NDArray[np.float32]:
        """A vector for each word, shape (n, d); zeros for words outside the pieces `chosen`."""

    def whole(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector per text, shape (n, d), of its first `LONGEST` code points."""


@dataclass(frozen=True)
class TextVectors:
    """The pieces of a text: its sentences, long ones cut. There is always one at least.

    Attributes:
        bounds: half-open code point ranges, shape (s, 2).
        vectors: shape (s, d), unit length, or zero for a piece without tokens.
    """

    bounds: NDArray[np.int64]
    vectors: NDArray[np.float32]

    def piece_of(self, words: NDArray[np.int64]) -> NDArray[np.int64]:
        """The piece that each word begins in, shape (n,)."""
        found: NDArray[np.int64] = np.maximum(np.searchsorted(self.bounds[:, 0], words[:, 0], side="right") - 1, 0)
        return found


def pieces(text: str, tag: str | None) -> NDArray[np.int64]:
    """The sentences of a text as half-open code point ranges, long ones cut; one at least; shape (s, 2)."""
    found = [
        (low, min(end, low + LONGEST)) for start, end in sentences(text, tag) for low in range(start, end, LONGEST)
    ]
    return np.array(found or [(0, len(text))], np.int64)


class EncoderVectors:
    """Vectors that an encoder makes now."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def sentences(self, text: str, tag: str | None) -> TextVectors:
        """See `Vectors`."""
        bounds = pieces(text, tag)
        return TextVectors(bounds, self._encoder.sentences([text[low:high] for low, high in bounds.tolist()]))

    def words(
        self, text: str, tag: str | None, bounds: NDArray[np.int64], chosen: Sequence[int] | None = None
    ) -> NDArray[np.float32]:
        """See `Vectors`."""
        parts = pieces(text, tag)
        return word_vectors(self._encoder.encoded(text, parts if chosen is None else parts[list(chosen)]), bounds)

    def whole(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Vectors`."""
        return self._encoder.sentences([text[:LONGEST] for text in texts])
