"""What an encoder is: its protocol, and the arrays that it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Encoded", "Encoder", "Strength", "Tokens"]

Strength = Literal["measured", "weak"]


@dataclass(frozen=True)
class Tokens:
    """The tokens of a text, in order. White space before a token is no part of it.

    Attributes:
        bounds: half-open code point ranges in the text, shape (t, 2), neither column ever falling. A range may be
            empty, and two tokens may share one where normalisation makes several letters of one (`½` is `1⁄2`).
        vectors: one vector in context per token, shape (t, token_dimension), float32.
    """

    bounds: NDArray[np.int64]
    vectors: NDArray[np.float32]


@dataclass(frozen=True)
class Encoded:
    """A text as an encoder sees it.

    Attributes:
        sentence_bounds: the stretches that got a vector each, half-open code point ranges, shape (s, 2). These are the
            sentences that were asked for, except that one longer than the encoder takes is there in several
            pieces, and one without any token (of zero-width characters, say) is not there.
        sentence_vectors: shape (s, dimension), float32, unit length.
        token_bounds: as `Tokens.bounds`, in the whole text, shape (t, 2).
        token_vectors: shape (t, token_dimension), float32.
    """

    sentence_bounds: NDArray[np.int64]
    sentence_vectors: NDArray[np.float32]
    token_bounds: NDArray[np.int64]
    token_vectors: NDArray[np.float32]


class Encoder(Protocol):
    """Turns texts into vectors. Safe to share between threads; pickles as its name and options.

    What a text gets hangs on that text alone, never on what else is in the batch or was asked before.
    """

    @property
    def name(self) -> str:
        """Its name in `ENCODERS`."""
        ...

    @property
    def signature(self) -> str:
        """One line `key:value|key:value` that tells apart any two encoders whose vectors differ."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a sentence vector."""
        ...

    @property
    def token_dimension(self) -> int:
        """Length of a token vector."""
        ...

    @property
    def languages(self) -> frozenset[str]:
        """Base tags of the languages in which its quality was measured, and good; possibly none."""
        ...

    def strength(self, tag: str | None) -> Strength:
        """`measured` where its quality was measured in the language as it is written, and good; otherwise `weak`.

        Args:
            tag: a BCP 47 tag; None, or a language that Veriglot does not know, is `weak`.
        """
        ...

    def sentences(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector per text, shape (n, dimension), unit length; zero for a text without any token."""
        ...

    def tokens(self, text: str) -> Tokens:
        """The tokens of one sentence. For a text of several, `encoded` gives each its own context."""
        ...

    def encoded(self, text: str, bounds: Sequence[tuple[int, int]] | NDArray[np.int64]) -> Encoded:
        """Sentence and token vectors of a text whose sentences are known.

        Args:
            text: any text, of any length.
            bounds: its sentences as half-open code point ranges in order, such as `veriglot.text.sentences` gives.
                What lies in no sentence gets no token.

        Raises:
            UsageError: a range that does not lie in the text.
        """
        ...
