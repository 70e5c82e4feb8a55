"""Which examples train nothing: those that calibrate, and, where that is asked for, those that benchmarks test on.

Articles of a parallel set stand in many languages, so they are told apart by title, in all languages alike; the rule
is that of `benchmarks/cross_lingual.py`. Translations are told apart by source text, as in `benchmarks/translation.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.train.grounding.example import share_of
from veriglot.train.grounding.pipeline import HELD_OUT

if TYPE_CHECKING:
    from veriglot.train.grounding.table import WordLabels

__all__ = ["article_group", "is_held_out", "is_held_out_group", "is_test_article", "is_test_source", "relation_of"]

_ARTICLE = "xquad:"  # the benchmark hashes titles behind this, whatever set they are of
_TEST_ARTICLES = 0.3
_TEST_SOURCES = 0.5  # and above


def article_group(title: str) -> str:
    """The group of everything that is made from an article of a parallel set."""
    return _ARTICLE + title


def is_test_article(title: str) -> bool:
    """Whether benchmarks test on an article of a parallel set."""
    return share_of(article_group(title)) < _TEST_ARTICLES


def is_test_source(text: str) -> bool:
    """Whether benchmarks test on translations of a text."""
    return share_of(text) >= _TEST_SOURCES


def is_held_out(row: WordLabels) -> bool:
    """Whether a row trains nothing and calibrates: a tenth, by group; of parallel articles that after the tests."""
    return is_held_out_group(row.example.group)


def is_held_out_group(group: str) -> bool:
    """The same for a group."""
    first = _TEST_ARTICLES if group.startswith(_ARTICLE) else 0.0
    return first <= share_of(group) < first + HELD_OUT


def relation_of(row: WordLabels) -> str:
    """How response and evidence are related: `same` (language), `across` (languages) or `translation`."""
    example = row.example
    if example.translation:
        return "translation"
    ours, theirs = ((tag or "").split("-")[0] for tag in (example.language, example.evidence_language))
    return "across" if theirs and ours != theirs else "same"
