"""Annotated samples in other languages, with their spans; and spans as labels of tokens."""

from veriglot.build.translating.account import (
    MarkAccount,
    TranslationAccount,
    TranslationLanguage,
    load_translation_account,
    translation_account_of,
    translation_account_path,
)
from veriglot.build.translating.alignment import Aligner, Alignment, Link, Side, links_of, side_of
from veriglot.build.translating.choosing import STRATEGIES, Placed, Strategy, Way, best_of
from veriglot.build.translating.labelling import (
    LabelAccount,
    LabelledRow,
    label_account_path,
    label_samples,
    load_label_account,
)
from veriglot.build.translating.labels import Scheme, TokenLabels, fast_tokenizer_of, spans_of_labels, token_labels
from veriglot.build.translating.lexical import LexicalAligner
from veriglot.build.translating.locating import Located, locate
from veriglot.build.translating.markers import MarkerFault, Unmarked, marked, unmarked
from veriglot.build.translating.model import ModelTranslator, translation_version
from veriglot.build.translating.posterior import Weighing, posterior, soft_links
from veriglot.build.translating.projection import Projected, project
from veriglot.build.translating.records import (
    MarkCount,
    TranslatedRow,
    TranslationRejection,
    TranslationSettings,
)
from veriglot.build.translating.sanity import Insane, insanity
from veriglot.build.translating.table import ALIGNERS, TRANSLATORS, load_aligner, load_translator
from veriglot.build.translating.translate import METHOD_VERSION, translate
from veriglot.build.translating.translator import FunctionTranslator, Translated, Translator, Unfit, Wanted
from veriglot.build.translating.vectors import VectorAligner
from veriglot.records.translation_codes import FAMILIES, Family, code_of, tags_of

__all__ = [
    "ALIGNERS",
    "FAMILIES",
    "METHOD_VERSION",
    "STRATEGIES",
    "TRANSLATORS",
    "Aligner",
    "Alignment",
    "Family",
    "FunctionTranslator",
    "Insane",
    "LabelAccount",
    "LabelledRow",
    "LexicalAligner",
    "Link",
    "Located",
    "MarkAccount",
    "MarkCount",
    "MarkerFault",
    "ModelTranslator",
    "Placed",
    "Projected",
    "Scheme",
    "Side",
    "Strategy",
    "TokenLabels",
    "Translated",
    "TranslatedRow",
    "TranslationAccount",
    "TranslationLanguage",
    "TranslationRejection",
    "TranslationSettings",
    "Translator",
    "Unfit",
    "Unmarked",
    "VectorAligner",
    "Wanted",
    "Way",
    "Weighing",
    "best_of",
    "code_of",
    "fast_tokenizer_of",
    "insanity",
    "label_account_path",
    "label_samples",
    "links_of",
    "load_aligner",
    "load_label_account",
    "load_translation_account",
    "load_translator",
    "locate",
    "marked",
    "posterior",
    "project",
    "side_of",
    "soft_links",
    "spans_of_labels",
    "tags_of",
    "token_labels",
    "translate",
    "translation_account_of",
    "translation_account_path",
    "translation_version",
    "unmarked",
]
