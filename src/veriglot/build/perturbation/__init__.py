"""Silver data without a model: typed errors put into quoted passages by rule, in every language."""

from veriglot.build.perturbation.articles import Article, Articles
from veriglot.build.perturbation.making import RULES_VERSION, make_row
from veriglot.build.perturbation.material import Material
from veriglot.build.perturbation.phrases import Phrases, phrase_languages, phrases_of
from veriglot.build.perturbation.planning import (
    RULE_TAXONOMIES,
    Planned,
    RuleSettings,
    planned_rows,
    supported_types,
)
from veriglot.build.perturbation.silver import quotable_languages, rule_silver

__all__ = [
    "RULES_VERSION",
    "RULE_TAXONOMIES",
    "Article",
    "Articles",
    "Material",
    "Phrases",
    "Planned",
    "RuleSettings",
    "make_row",
    "phrase_languages",
    "phrases_of",
    "planned_rows",
    "quotable_languages",
    "rule_silver",
    "supported_types",
]
