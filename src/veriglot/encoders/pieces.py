"""What encoders share: sentences cut into pieces, encoded once each, and put together again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.encoders.encoder import Encoded, Tokens
from veriglot.encoders.recent import Recent
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Piece", "PieceEncoder"]

_MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Piece:
    """A sentence, or a part of a long one, encoded by itself.

    Attributes:
        vector: of the whole, shape (dimension,), unit length; zero where there is no token.
        bounds: of the tokens, code points counted from the piece's beginning, shape (t, 2).
        vectors: of the tokens, shape (t, token_dimension).
    """

    vector: NDArray[np.float32]
    bounds: NDArray[np.int64]
    vectors: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.vector.nbytes + self.bounds.nbytes + self.vectors.nbytes


class PieceEncoder(ABC):
    """An encoder that encodes pieces, each by itself.

    Args:
        cache_mb: MiB of vectors to keep of the pieces that were encoded last; 0 keeps none.

    Raises:
        UsageError: `cache_mb` is negative.
    """

    longest: int | None = None  # code points of a piece; None where `_encode` takes any length

    def __init__(self, cache_mb: float) -> None:
        if not cache_mb >= 0:
            raise UsageError(f"The cache is to hold {cache_mb} MiB.", remedy="Give cache_mb 0 or more.")
        self._recent = Recent(int(cache_mb * _MEGABYTE))

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length of a sentence vector."""

    @property
    @abstractmethod
    def token_dimension(self) -> int:
        """Length of a token vector."""

    @abstractmethod
    def _encode(self, texts: Sequence[str]) -> list[Piece]:
        """One piece per text, whose content hangs on its text alone."""

    def sentences(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Encoder`. Of a text in several pieces, the mean by number of tokens, brought to unit length."""
        cuts = [self._cuts(0, len(text)) for text in texts]
        flat = [text[low:high] for text, cut in zip(texts, cuts, strict=True) for low, high in cut]
        pieces = iter(self._pieces(flat))
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, cut in enumerate(cuts):
            vectors[row] = _joined([next(pieces) for _ in cut]) if cut else 0
        return vectors

    def tokens(self, text: str) -> Tokens:
        """See `Encoder`."""
        encoded = self.encoded(text, [(0, len(text))])
        return Tokens(encoded.token_bounds, encoded.token_vectors)

    def encoded(self, text: str, bounds: Sequence[tuple[int, int]] | NDArray[np.int64]) -> Encoded:
        """See `Encoder`."""
        wanted = _checked(bounds, len(text))
        cuts = [cut for low, high in wanted.tolist() for cut in self._cuts(low, high)]
        pieces = self._pieces([text[low:high] for low, high in cuts])
        kept = [(cut, piece) for cut, piece in zip(cuts, pieces, strict=True) if len(piece.bounds)]
        if not kept:
            return Encoded(
                np.zeros((0, 2), np.int64),
                np.zeros((0, self.dimension), np.float32),
                np.zeros((0, 2), np.int64),
                np.zeros((0, self.token_dimension), np.float32),
            )
        return Encoded(
            np.array([cut for cut, _ in kept], np.int64),
            np.stack([piece.vector for _, piece in kept]),
            np.concatenate([piece.bounds + low for (low, _), piece in kept]),
            np.concatenate([piece.vectors for _, piece in kept]),
        )

    def _cuts(self, low: int, high: int) -> list[tuple[int, int]]:
        step = self.longest or max(high - low, 1)
        return [(start, min(high, start + step)) for start in range(low, high, step)]

    def _pieces(self, texts: Sequence[str]) -> list[Piece]:
        """The piece of every text: those that are kept, and the others encoded, each text once."""
        kept = {text: self._recent.get(text) for text in texts}
        known = {text: piece for text, piece in kept.items() if piece is not None}
        new = [text for text in kept if text not in known]
        for text, piece in zip(new, self._encode(new), strict=True):
            for array in (piece.vector, piece.bounds, piece.vectors):
                array.flags.writeable = False  # the memory hands out the same arrays again
            known[text] = piece
            self._recent.put(text, piece)
        return [known[text] for text in texts]


def _checked(bounds: Sequence[tuple[int, int]] | NDArray[np.int64], length: int) -> NDArray[np.int64]:
    wanted = np.asarray(bounds, np.int64).reshape(-1, 2)
    edges = wanted.ravel()
    if edges.size and (edges[0] < 0 or edges[-1] > length or (np.diff(edges) < 0).any()):
        raise UsageError(
            f"These sentences are not in order inside a text of {length:,} code points.",
            remedy="Give half-open ranges of code points that do not overlap, as veriglot.text.sentences does.",
        )
    return wanted


def _joined(pieces: list[Piece]) -> NDArray[np.float32]:
    if len(pieces) == 1:
        return pieces[0].vector
    weights = np.array([len(piece.bounds) for piece in pieces], np.float32)
    total: NDArray[np.float32] = weights @ np.stack([piece.vector for piece in pieces])
    norm = float(np.linalg.norm(total))
    return total / np.float32(norm) if norm else total
