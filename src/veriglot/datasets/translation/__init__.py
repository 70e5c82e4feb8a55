"""Annotated samples in other languages, with their spans; and spans as labels of tokens."""

from veriglot.datasets.token_labels import (
    LabelAccount,
    LabelledRow,
    fast_tokenizer_of,
    label_samples,
    load_label_account,
    spans_of_labels,
    token_labels,
)
from veriglot.datasets.translation.alignment import (
    Aligner,
    Alignment,
    AlignmentWeights,
    LexicalAligner,
    Side,
    VectorAligner,
    side_of,
)
from veriglot.datasets.translation.job import translate
from veriglot.datasets.translation.projection import STRATEGIES, Unmarked, best_of, marked, project, unmarked
from veriglot.datasets.translation.rows import (
    MarkAccount,
    TranslationAccount,
    TranslationSettings,
    load_translation_account,
)
from veriglot.datasets.translation.translators import (
    FunctionTranslator,
    ModelTranslator,
    Translation,
    TranslationRequest,
    Translator,
    load_aligner,
    load_translator,
)

__all__ = [
    "STRATEGIES",
    "Aligner",
    "Alignment",
    "AlignmentWeights",
    "FunctionTranslator",
    "LabelAccount",
    "LabelledRow",
    "LexicalAligner",
    "MarkAccount",
    "ModelTranslator",
    "Side",
    "Translation",
    "TranslationAccount",
    "TranslationRequest",
    "TranslationSettings",
    "Translator",
    "Unmarked",
    "VectorAligner",
    "best_of",
    "fast_tokenizer_of",
    "label_samples",
    "load_aligner",
    "load_label_account",
    "load_translation_account",
    "load_translator",
    "marked",
    "project",
    "side_of",
    "spans_of_labels",
    "token_labels",
    "translate",
    "unmarked",
]
