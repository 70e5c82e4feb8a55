"""From what was read to all examples that the semantic detector learns from."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from veriglot.train.grounding.making import count_words, made_by_rule
from veriglot.train.semantic.crossing import answers_across, sentences_across
from veriglot.train.semantic.parallel import aligned, paragraphs
from veriglot.train.semantic.splitting import is_test_article, is_test_source
from veriglot.train.semantic.translating import translations_of
from veriglot.train.semantic.translations import labelled_translations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.train.grounding.example import Example
    from veriglot.train.grounding.reading import Labelled
    from veriglot.train.semantic.parallel import Paragraph

__all__ = ["examples_of", "without_tests"]

_MOST_TRANSLATIONS = 9000  # made from parallel sets
_TIMES = 6  # of each of their texts at most, on average


def without_tests(labelled: Labelled) -> None:
    """Take out what the project's benchmarks test on: articles of parallel sets, and sources of translations."""
    tests = [answer for answer in labelled.answers if answer.title is not None and is_test_article(answer.title)]
    if tests:
        kept = [answer for answer in labelled.answers if answer.title is None or not is_test_article(answer.title)]
        labelled.left_out["answer of a test article"] += len(tests)
        labelled.answers[:] = kept
    kept_translations = [sample for sample in labelled.translations if not is_test_source(sample.evidence[0].text)]
    if len(kept_translations) < len(labelled.translations):
        labelled.left_out["translation of a test source"] += len(labelled.translations) - len(kept_translations)
        labelled.translations[:] = kept_translations


def examples_of(labelled: Labelled, seed: int) -> list[Example]:
    """Labelled examples, those made as for the grounding detector, and those across languages and of translation.

    Args:
        labelled: what was read; what is not used is counted in `left_out`.
        seed: of everything that is drawn.
    """
    rng = Random(f"across {seed}")  # noqa: S311  a seeded draw, not a secret
    commonness = count_words(labelled)
    found = paragraphs(labelled.answers)
    made = list(_regrouped(made_by_rule(labelled, commonness, seed), found))
    texts = aligned(found)
    return [
        *labelled.examples,
        *made,
        *answers_across(found, rng),
        *sentences_across(found, commonness, rng),
        *translations_of(texts, min(_MOST_TRANSLATIONS, _TIMES * len(texts)), rng),
        *labelled_translations(labelled.translations, labelled.left_out, rng),
    ]


def _regrouped(examples: Iterable[Example], found: list[Paragraph]) -> Iterable[Example]:
    """The examples, those about a parallel paragraph in the group of its article, which holds in every language."""
    groups = {
        (language, paragraph.passage(language)): paragraph.group
        for paragraph in found
        for language in paragraph.versions
    }
    for example in examples:
        group = groups.get((example.language or "", example.passages[0]))
        yield example if group is None else replace(example, group=group)
