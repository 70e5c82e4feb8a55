"""From what was read to all that is learned from: frequencies, examples made by rule, and vectors."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import TYPE_CHECKING

from veriglot.build.perturbation.quoting import quotable
from veriglot.train.grounding.answers import answer_example
from veriglot.train.grounding.commonness import Commonness
from veriglot.train.grounding.perturbation import Pool, article_example

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.train.grounding.example import Example
    from veriglot.train.grounding.reading import Answer, Article, Labelled

__all__ = ["clean_texts", "count_words", "made_by_rule"]

_MOST_ARTICLES = 700  # of a language: more teach little more
_POOLED = 500  # articles that give words to exchange


def clean_texts(labelled: Labelled) -> Iterator[tuple[str, str]]:
    """Language and text of every passage, each once."""
    seen: set[str] = set()
    for example in labelled.examples:
        yield from _unseen(example.language, example.passages, seen)
    for article in labelled.articles:
        yield from _unseen(article.language, article.passages, seen)
    for answer in labelled.answers:
        yield from _unseen(answer.language, (answer.passage,), seen)


def _unseen(language: str | None, texts: tuple[str, ...], seen: set[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        if language is not None and text not in seen:
            seen.add(text)
            yield language, text


def count_words(labelled: Labelled) -> Commonness:
    """How common each word is in each language's passages."""
    commonness = Commonness()
    for language, text in clean_texts(labelled):
        commonness.count([text], language)
    return commonness


def made_by_rule(labelled: Labelled, commonness: Commonness, seed: int) -> list[Example]:
    """Quotations and answers, right and wrong, in every language that has plain articles or answered questions."""
    articles: dict[str, list[Article]] = defaultdict(list)
    for article in labelled.articles:
        articles[article.language].append(article)
    made = [e for language, some in articles.items() for e in _quotations(language, some, commonness, seed)]
    answers: dict[str, list[Answer]] = defaultdict(list)
    for answer in labelled.answers:
        answers[answer.language].append(answer)
    for language, given in answers.items():
        rng = Random(f"answers {language} {seed}")  # noqa: S311  a seeded draw, not a secret
        drawn = (answer_example(answer, given, rng) for answer in given)
        made += [example for example in drawn if example is not None]
    return made


def _quotations(language: str, articles: list[Article], commonness: Commonness, seed: int) -> Iterator[Example]:
    rng = Random(f"articles {language} {seed}")  # noqa: S311  a seeded draw, not a secret
    rng.shuffle(articles)
    pool = Pool()
    for article in articles[:_POOLED]:
        sentences = quotable(rng.choice(article.passages), language)
        if sentences:
            pool.add(rng.choice(sentences), language, commonness)
    for article in articles[:_MOST_ARTICLES]:
        example = article_example(article, pool, commonness, rng)
        if example is not None:
            yield example
