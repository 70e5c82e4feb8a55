"""Cosine similarity of the embeddings of source and response: LaBSE, and any other encoder of Veriglot's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.encoders.base import load_encoder
from veriglot.hub.checkpoints import check_licence
from veriglot.judging.base import NotScored
from veriglot.records import Status
from veriglot.scorers.base import Pair, PairScorer, RawScore
from veriglot.signatures import signature

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = []

_AT_ONCE = 256  # pairs per call of the encoder


class Cosine(PairScorer):
    """Cosine of the embeddings of source and response, each as one text; between -1 and 1, higher is better.

    A text longer than the encoder's maximum is split into windows, whose embeddings are averaged (docs/encoders.md).

    Args:
        encoder: a name of `veriglot.encoders.ENCODERS`.
        model: its checkpoint, if it needs one.
        accept_licence: whether to accept the checkpoint's licence, if it is not a permissive one.
        options: of the encoder.

    Raises:
        UnknownNameError, MissingExtraError, WeightsError, UsageError: as `veriglot.encoders.load_encoder`.
        WeightsError: the checkpoint's licence must be accepted first.
    """

    name = "cosine@1"

    def __init__(
        self,
        encoder: str = "use-multilingual",
        *,
        model: str | None = None,
        accept_licence: bool = False,
        **options: Any,
    ) -> None:
        if model is not None:
            check_licence(model, accepted=accept_licence)
            options["model"] = model
        self._encoder = load_encoder(encoder, **options)
        self.signature = signature(scorer=self.name) + "|" + self._encoder.signature

    def measure(self, pairs: Sequence[Pair]) -> list[RawScore | NotScored]:
        """See `PairScorer`."""
        results: list[RawScore | NotScored] = []
        for start in range(0, len(pairs), _AT_ONCE):
            some = pairs[start : start + _AT_ONCE]
            source, response = (
                np.asarray(self._encoder.sentences(texts), np.float64)
                for texts in ([pair.source for pair in some], [pair.response for pair in some])
            )
            for left, right in zip(source, response, strict=True):
                length = float(np.linalg.norm(left) * np.linalg.norm(right))
                if length:
                    results.append(RawScore(float(np.clip(left @ right / length, -1.0, 1.0)), {}))
                else:
                    results.append(NotScored(Status.NOTHING_TO_COMPARE, "a text without any token has no vector"))
        return results


class Labse(Cosine):
    """LaBSE (Feng et al. 2022), or any other checkpoint of sentence-transformers; see `Cosine`.

    Args:
        model: a folder, or a name on the hub (`sentence-transformers/LaBSE`).
        accept_licence: whether to accept its licence, if it is not a permissive one.
        options: of the encoder `sentence-transformers`.
    """

    name = "labse@1"

    def __init__(self, model: str, *, accept_licence: bool = False, **options: Any) -> None:
        super().__init__("sentence-transformers", model=model, accept_licence=accept_licence, **options)
