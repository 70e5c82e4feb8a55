"""Silver data without a model: typed errors put into quoted passages by rule, in every language."""

from veriglot.datasets.rules.material import Articles, Material
from veriglot.datasets.rules.phrases import phrase_languages, phrases_of
from veriglot.datasets.rules.silver import (
    RULE_TAXONOMIES,
    RuleSettings,
    make_row,
    planned_rows,
    quotable_languages,
    rule_silver,
    supported_types,
)

__all__ = [
    "RULE_TAXONOMIES",
    "Articles",
    "Material",
    "RuleSettings",
    "make_row",
    "phrase_languages",
    "phrases_of",
    "planned_rows",
    "quotable_languages",
    "rule_silver",
    "supported_types",
]
