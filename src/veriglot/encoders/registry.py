"""The encoders by name; third parties join by the entry point group `veriglot.encoders`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.plugins import Entry, Table

if TYPE_CHECKING:
    from veriglot.encoders.base import Encoder

__all__ = ["ENCODERS", "load_encoder"]

ENCODERS = Table(
    "encoder",
    "veriglot.encoders",
    {
        "use-multilingual": Entry(
            "veriglot.encoders.universal:UniversalSentenceEncoder",
            extra="semantic",
            summary="Universal Sentence Encoder, multilingual 3, int8: 20 languages well, on the CPU; the default",
        ),
        "e5-multilingual": Entry(
            "veriglot.encoders.e5:E5",
            extra="semantic",
            summary="multilingual-e5-small in 4-bit numbers: far more languages well, on the CPU, and slower",
        ),
        "sentence-transformers": Entry(
            "veriglot.encoders.sentence_transformer:SentenceTransformer",
            extra="encoders",
            summary="any checkpoint of the sentence-transformers library",
        ),
        "transformers": Entry(
            "veriglot.encoders.transformer:Transformer",
            extra="local",
            summary="any encoder of the transformers library, pooled as its configuration says",
        ),
    },
)


def load_encoder(name: str = "use-multilingual", **options: Any) -> Encoder:
    """An encoder by name.

    Args:
        name: a name of `ENCODERS`.
        options: of the encoder; see its class.

    Raises:
        UnknownNameError: no such encoder, or no such option; the error suggests the nearest.
        MissingExtraError: its packages are not installed.
        WeightsError: its weights are missing or damaged; the remedy says what to type.
        UsageError: an option that makes no sense, or one that is missing.
    """
    encoder: Encoder = ENCODERS.make(name, **options)
    return encoder
