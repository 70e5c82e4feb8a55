"""From parallel paragraphs: answers and sentences in one language, held against the paragraph in another."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from veriglot.build.perturbation.quoting import quotable
from veriglot.text import fold
from veriglot.text.spacing import space_of
from veriglot.train.grounding.answers import LONGEST, RIGHT, around
from veriglot.train.grounding.example import Example, Mark
from veriglot.train.grounding.perturbation import Draft, Pool, changed, reworded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from veriglot.train.grounding.commonness import Commonness
    from veriglot.train.grounding.reading import Answer
    from veriglot.train.semantic.parallel import Paragraph

__all__ = ["answers_across", "evidence_language", "sentences_across"]

_SAME = 0.1  # share with the evidence in the response's own language
_NEAR = 0.5  # share of wrong answers that the same paragraph gives
_TRIES = 80
_PER_PARAGRAPH = 3  # responses of sentences, in each language
_LENGTHS = (1, 1, 2, 3, 4)  # sentences in a response
_CLEAN, _REMOVED = 0.4, 0.6  # cumulative shares of the kinds; the rest is changed
_POOLED = 400  # sentences of a language that give words to exchange
_ASKED = 0.3  # share of sentences that come with a question


def answers_across(found: Sequence[Paragraph], rng: Random) -> Iterator[Example]:
    """For each answer, right or wrong, one response as `around` says it."""
    elsewhere: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for place, paragraph in enumerate(found):
        for language, answers in paragraph.versions.items():
            elsewhere[language] += [(place, answer.text) for answer in answers]
    for place, paragraph in enumerate(found):
        for language, answers in paragraph.versions.items():
            for answer in answers:
                evidence = evidence_language(paragraph, language, rng)
                right = rng.random() < RIGHT
                text = answer.text if right else _wrong(answer, answers, elsewhere[language], place, rng)
                if text is None:
                    continue
                before, after = around(answer, rng)
                marks = () if right else (Mark(len(before), len(before) + len(text), "entity"),)
                yield Example(
                    "clean" if right else "wrong", "parallel answers", paragraph.group, language,
                    before + text + after, (paragraph.passage(evidence),), answer.question, marks,
                    evidence_language=evidence if evidence != language else None,
                )  # fmt: skip


def evidence_language(paragraph: Paragraph, language: str, rng: Random) -> str:
    """The language of a paragraph's version to hold something in `language` against: another one, as a rule."""
    others = [tag for tag in paragraph.versions if tag != language]
    return language if rng.random() < _SAME else rng.choice(others)


def _wrong(
    answer: Answer, here: Sequence[Answer], elsewhere: list[tuple[int, str]], place: int, rng: Random
) -> str | None:
    """Another answer of the same kind (with digits or without, if there is one), of this paragraph or of another."""
    right = fold(answer.text)
    if rng.random() < _NEAR:
        near = [other.text for other in here if _differ(fold(other.text), right)]
        rng.shuffle(near)
        near.sort(key=lambda text: _has_digit(text) != _has_digit(right))
        if near:
            return near[0]
    for _ in range(_TRIES):
        other, text = rng.choice(elsewhere)
        alike = len(text) <= LONGEST and _has_digit(text) == _has_digit(right)
        if other != place and alike and _differ(fold(text), right):
            return text
    return None


def _differ(one: str, other: str) -> bool:
    return one not in other and other not in one


def _has_digit(text: str) -> bool:
    return any(c.isdigit() for c in text)


class _Quotations:
    """The sentences of one language, and words of them to exchange."""

    def __init__(self, found: Sequence[Paragraph], language: str, commonness: Commonness, rng: Random) -> None:
        self.language = language
        self.of_paragraph = [quotable(p.passage(language), language) if language in p.versions else [] for p in found]
        self.all = [(place, text) for place, listed in enumerate(self.of_paragraph) for text in listed]
        self.pool = Pool()
        for _, text in rng.sample(self.all, min(_POOLED, len(self.all))):
            self.pool.add(text, language, commonness)

    def elsewhere(self, place: int, rng: Random) -> str:
        """A sentence of another paragraph, as a rule."""
        for _ in range(_TRIES):
            other, text = rng.choice(self.all)
            if other != place and text not in self.of_paragraph[place]:
                break
        return text


def sentences_across(found: Sequence[Paragraph], commonness: Commonness, rng: Random) -> Iterator[Example]:
    """For each paragraph and language a few responses of one to four of its sentences.

    They are quoted or reworded (`clean`), or some are sentences of another paragraph (`removed`), or words in them are
    exchanged (`changed`).
    """
    languages = dict.fromkeys(language for paragraph in found for language in paragraph.versions)
    quotations = {language: _Quotations(found, language, commonness, rng) for language in languages}
    for place, paragraph in enumerate(found):
        for language in paragraph.versions:
            if quotations[language].of_paragraph[place]:
                for _ in range(_PER_PARAGRAPH):
                    yield _of_sentences(paragraph, place, quotations[language], commonness, rng)


def _of_sentences(
    paragraph: Paragraph, place: int, quotations: _Quotations, commonness: Commonness, rng: Random
) -> Example:
    language, listed = quotations.language, quotations.of_paragraph[place]
    evidence = evidence_language(paragraph, language, rng)
    count = min(len(listed), rng.choice(_LENGTHS))
    first = rng.randrange(len(listed) - count + 1)
    way = rng.random()
    kind = "clean" if way < _CLEAN else "removed" if way < _REMOVED else "changed"
    draft = Draft(space_of(language))
    must = rng.randrange(count)
    for nth, sentence in enumerate(listed[first : first + count]):
        if kind == "removed" and (nth == must or rng.random() < 0.3):
            other = quotations.elsewhere(place, rng)
            draft.add(other, [Mark(0, len(other))])
            continue
        text, marks = sentence, list[Mark]()
        if rng.random() < 0.5:
            text = reworded(sentence, language, commonness, rng)
        if kind == "changed" and (nth == must or rng.random() < 0.5):
            text, marks = changed(text, language, quotations.pool, commonness, rng) or (text, marks)
        draft.add(text, marks)
    question = rng.choice(paragraph.versions[language]).question if rng.random() < _ASKED else None
    return Example(
        kind if draft.marks else "clean", "parallel sentences", paragraph.group, language,
        draft.text, (paragraph.passage(evidence),), question, tuple(draft.marks),
        evidence_language=evidence if evidence != language else None,
    )  # fmt: skip
