"""The best aligner that can be had on this machine as it is; nothing is fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.build.translating.lexical import LexicalAligner
from veriglot.errors import MissingExtraError
from veriglot.weights import MissingWeightsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.build.translating.alignment import Aligner

__all__ = ["best_aligner"]

ENCODERS = ("e5-multilingual", "use-multilingual")  # best first, by docs/translate.md


def best_aligner(encoders: Sequence[str] = ENCODERS) -> Aligner:
    """Vectors of the first encoder that is here, else forms alone; the signature of what is returned says which.

    On human translations vectors found more than forms did in each of eleven languages, those that an encoder is weak
    in included (docs/translate.md).

    Args:
        encoders: names of `ENCODERS` of `veriglot.encoders`, best first.

    Raises:
        WeightsError: the weights of one are here and damaged.
    """
    for encoder in encoders:
        try:
            from veriglot.build.translating.vectors import vector_aligner

            return vector_aligner(encoder)
        except (MissingExtraError, MissingWeightsError):
            continue
    return LexicalAligner()
