"""The best aligner that can be had on this machine as it is; nothing is fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.build.translating.lexical import LexicalAligner
from veriglot.errors import MissingExtraError
from veriglot.weights import MissingWeightsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.build.translating.alignment import Aligner

__all__ = ["ENCODERS", "best_aligner"]

ENCODERS = ("e5-multilingual", "use-multilingual")  # best first, by docs/translate.md


def best_aligner(encoders: Sequence[str] = ENCODERS, *, begun: str | None = None) -> Aligner:
    """Vectors of the first encoder that is here, else forms alone; the signature of what is returned says which.

    On human translations vectors found more than forms did in each of eleven languages, those that an encoder is weak
    in included (docs/translate.md).

    Args:
        encoders: names of `ENCODERS` of `veriglot.encoders`, best first.
        begun: signature of the aligner that an output was begun with, which is taken again if it is one of these: an
            encoder that arrives between two calls must not cost what was translated before.

    Raises:
        WeightsError: the weights of one are here and damaged.
    """
    best: Aligner | None = None
    for aligner in _here(encoders):
        best = best or aligner
        if begun in (None, aligner.signature):
            return aligner
    assert best is not None
    return best


def _here(encoders: Sequence[str]) -> Iterator[Aligner]:
    for encoder in encoders:
        try:
            from veriglot.build.translating.vectors import vector_aligner

            yield vector_aligner(encoder)
        except (MissingExtraError, MissingWeightsError):
            continue
    yield LexicalAligner()
