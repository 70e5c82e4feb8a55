"""Translators and aligners by name; other packages join by the entry points `veriglot.translators` and `.aligners`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.lazy import Entry, Table

if TYPE_CHECKING:
    from veriglot.build.translating.alignment import Aligner
    from veriglot.build.translating.translator import Translator

__all__ = ["ALIGNERS", "TRANSLATORS", "load_aligner", "load_translator"]

TRANSLATORS = Table(
    "translator",
    "veriglot.translators",
    {
        "hf": Entry(
            "veriglot.build.translating.local:LocalTranslator",
            extra="local",
            summary="any sequence-to-sequence model of transformers: hf:FOLDER",
            argument="model",
        ),
        "ct2": Entry(
            "veriglot.build.translating.converted:ConvertedTranslator",
            extra="ct2",
            summary="a model that CTranslate2's converter wrote: ct2:FOLDER",
            argument="model",
        ),
    },
)

ALIGNERS = Table(
    "aligner",
    "veriglot.aligners",
    {
        "auto": Entry(
            "veriglot.build.translating.best_aligner:best_aligner",
            summary="vectors of the best encoder that is here, else lexical; signatures say which",
        ),
        "lexical": Entry(
            "veriglot.build.translating.lexical:LexicalAligner",
            summary="words that stay as they are, numbers, names by sound, places; no network",
        ),
        "vectors": Entry(
            "veriglot.build.translating.vectors:vector_aligner",
            extra="semantic",
            summary="token vectors of an encoder, use-multilingual where none is named: vectors:NAME",
            argument="encoder",
        ),
    },
)


def load_translator(name: str, **options: Any) -> Translator:
    """A translator by name, such as `hf:FOLDER`; a model that is asked over `llm` is a `ModelTranslator`.

    Raises:
        UnknownNameError: no such translator, or no such option.
        MissingExtraError: its packages are not installed.
        WeightsError: the model cannot be loaded.
        UsageError: an option that makes no sense, or one that is missing.
    """
    translator: Translator = TRANSLATORS.make(name, **options)
    return translator


def load_aligner(name: str, **options: Any) -> Aligner:
    """An aligner by name: `auto`, `lexical` or `vectors`.

    Raises:
        UnknownNameError: no such aligner, or no such option.
        MissingExtraError: its packages are not installed.
        WeightsError: the encoder's weights are not here.
    """
    aligner: Aligner = ALIGNERS.make(name, **options)
    return aligner
