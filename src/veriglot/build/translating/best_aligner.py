"""The best aligner that can be had on this machine as it is; nothing is fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.build.translating.lexical import LexicalAligner
from veriglot.errors import MissingExtraError
from veriglot.weights import MissingWeightsError

if TYPE_CHECKING:
    from veriglot.build.translating.alignment import Aligner

__all__ = ["best_aligner"]


def best_aligner(encoder: str = "use-multilingual") -> Aligner:
    """Vectors of an encoder that is here, else forms alone; the signature of what is returned says which.

    On human translations vectors found more than forms did in each of eleven languages, those that the encoder is weak
    in included (docs/translate.md).

    Args:
        encoder: a name of `ENCODERS`.

    Raises:
        WeightsError: its weights are here and damaged.
    """
    try:
        from veriglot.build.translating.vectors import vector_aligner

        return vector_aligner(encoder)
    except (MissingExtraError, MissingWeightsError):
        return LexicalAligner()
