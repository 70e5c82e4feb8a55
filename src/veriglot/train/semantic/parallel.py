"""Paragraphs that stand in several languages, found among answered questions by the ids that these share."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from veriglot.text import sentences
from veriglot.train.semantic.splitting import article_group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.train.grounding.reading import Answer

__all__ = ["Paragraph", "Parallel", "aligned", "paragraphs"]


@dataclass(frozen=True)
class Paragraph:
    """One paragraph in several languages.

    Attributes:
        group: of the article that it is of.
        versions: language to the answers that stand in it, in the order in which they were read; none is empty.
    """

    group: str
    versions: dict[str, list[Answer]]

    def passage(self, language: str) -> str:
        """Its text in one of its languages."""
        return self.versions[language][0].passage


@dataclass(frozen=True)
class Parallel:
    """One short text in two languages or more: translations of each other.

    Attributes:
        group: of whatever it was taken from.
        versions: language to text.
    """

    group: str
    versions: dict[str, str]


def paragraphs(answers: Sequence[Answer]) -> list[Paragraph]:
    """The paragraphs of parallel sets, in the order in which they were read.

    A question whose id stands in two languages or more is of a parallel set; it says which passages are versions of
    one paragraph. Answers without an id or a title, or in one language only, are of no such set.
    """
    by_question: dict[str, dict[str, Answer]] = defaultdict(dict)
    for answer in answers:
        if answer.question_id is not None and answer.title is not None:
            by_question[answer.question_id].setdefault(answer.language, answer)
    found: dict[tuple[str | None, str], Paragraph] = {}
    for versions in by_question.values():
        if len(versions) < 2:
            continue
        first = versions[min(versions)]
        key = (first.title, first.passage)
        paragraph = found.setdefault(key, Paragraph(article_group(first.title or ""), {}))
        for language, answer in versions.items():
            paragraph.versions.setdefault(language, []).append(answer)
    return list(found.values())


def aligned(found: Sequence[Paragraph]) -> list[Parallel]:
    """Questions, and sentences of paragraphs, in those languages that cut a paragraph into as many as English does.

    Where English is not there, the language whose tag comes first takes its place.
    """
    texts = []
    for paragraph in found:
        questions: dict[str, dict[str, str]] = defaultdict(dict)
        for language, answers in paragraph.versions.items():
            for answer in answers:
                questions[answer.question_id or ""][language] = answer.question
        texts += [Parallel(paragraph.group, versions) for versions in questions.values() if len(versions) > 1]
        texts += _sentences(paragraph)
    return texts


def _sentences(paragraph: Paragraph) -> list[Parallel]:
    parts = {}
    for language in paragraph.versions:
        passage = paragraph.passage(language)
        parts[language] = [passage[start:end].strip() for start, end in sentences(passage, language)]
    pivot = "en" if "en" in parts else min(parts)
    alike = {language: texts for language, texts in parts.items() if len(texts) == len(parts[pivot])}
    if len(alike) < 2:
        return []
    return [
        Parallel(paragraph.group, {language: texts[nth] for language, texts in alike.items()})
        for nth in range(len(parts[pivot]))
    ]
