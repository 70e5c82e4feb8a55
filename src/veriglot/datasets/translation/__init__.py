"""Annotated samples in other languages, with their spans; and spans as labels of tokens."""

from veriglot.datasets.translation.alignment import LexicalAligner
from veriglot.datasets.translation.job import translate
from veriglot.datasets.translation.translators import FunctionTranslator

__all__ = ["FunctionTranslator", "LexicalAligner", "translate"]
