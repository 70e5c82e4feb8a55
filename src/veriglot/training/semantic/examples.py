"""Training examples of the semantic detector: answers, sentences and translations, right and wrong."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

from veriglot.datasets.rules.material import quotable
from veriglot.records import Kind
from veriglot.text.normalization import fold
from veriglot.text.segmentation import sentences, space_of, words
from veriglot.training.grounding.examples import Example, Mark, majority, share_of
from veriglot.training.grounding.pipeline import HELD_OUT
from veriglot.training.grounding.synthetic_data import (
    LONGEST,
    RIGHT,
    Draft,
    Pool,
    around,
    changed,
    count_words,
    made_by_rule,
    reworded,
)

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Sequence

    from veriglot.records import Annotation, Sample
    from veriglot.training.grounding.examples import Answer, Labelled, WordLabels
    from veriglot.training.grounding.synthetic_data import Commonness

__all__ = [
    "TOKENS",
    "Paragraph",
    "answers_across",
    "evidence_language",
    "examples_of",
    "is_held_out",
    "is_held_out_group",
    "paragraphs",
    "relation_of",
    "sentences_across",
    "without_tests",
]


_SAME = 0.1  # share with the evidence in the response's own language
_NEAR = 0.5  # share of wrong answers that the same paragraph gives
_TRIES = 80
_PER_PARAGRAPH = 3  # responses of sentences, in each language
_LENGTHS = (1, 1, 2, 3, 4)  # sentences in a response
_CLEAN, _REMOVED = 0.4, 0.6  # cumulative shares of the kinds; the rest is changed
_POOLED = 400  # sentences of a language that give words to exchange
_ASKED = 0.3  # share of sentences that come with a question


def answers_across(paragraphs: Sequence[Paragraph], rng: Random) -> Iterator[Example]:
    """For each answer, right or wrong, one response as `around` says it."""
    other_answers: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for index, paragraph in enumerate(paragraphs):
        for language, answers in paragraph.versions.items():
            other_answers[language] += [(index, answer.text) for answer in answers]
    for index, paragraph in enumerate(paragraphs):
        for language, answers in paragraph.versions.items():
            for answer in answers:
                evidence = evidence_language(paragraph, language, rng)
                right = rng.random() < RIGHT
                text = answer.text if right else _wrong(answer, answers, other_answers[language], index, rng)
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
    answer: Answer, here: Sequence[Answer], elsewhere: list[tuple[int, str]], index: int, rng: Random
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
        if other != index and alike and _differ(fold(text), right):
            return text
    return None


def _differ(left: str, other: str) -> bool:
    return left not in other and other not in left


def _has_digit(text: str) -> bool:
    return any(c.isdigit() for c in text)


class _Quotations:
    """The sentences of one language, and words of them to exchange."""

    def __init__(self, paragraphs: Sequence[Paragraph], language: str, commonness: Commonness, rng: Random) -> None:
        self.language = language
        self.of_paragraph = [
            quotable(p.passage(language), language) if language in p.versions else [] for p in paragraphs
        ]
        self.all = [(index, text) for index, listed in enumerate(self.of_paragraph) for text in listed]
        self.pool = Pool()
        for _, text in rng.sample(self.all, min(_POOLED, len(self.all))):
            self.pool.add(text, language, commonness)

    def elsewhere(self, index: int, rng: Random) -> str:
        """A sentence of another paragraph, as a rule."""
        for _ in range(_TRIES):
            other, text = rng.choice(self.all)
            if other != index and text not in self.of_paragraph[index]:
                break
        return text


def sentences_across(paragraphs: Sequence[Paragraph], commonness: Commonness, rng: Random) -> Iterator[Example]:
    """For each paragraph and language a few responses of one to four of its sentences.

    They are quoted or reworded (`clean`), or some are sentences of another paragraph (`removed`), or words in them are
    exchanged (`changed`).
    """
    languages = dict.fromkeys(language for paragraph in paragraphs for language in paragraph.versions)
    quotations = {language: _Quotations(paragraphs, language, commonness, rng) for language in languages}
    for index, paragraph in enumerate(paragraphs):
        for language in paragraph.versions:
            if quotations[language].of_paragraph[index]:
                for _ in range(_PER_PARAGRAPH):
                    yield _of_sentences(paragraph, index, quotations[language], commonness, rng)


def _of_sentences(
    paragraph: Paragraph, index: int, quotations: _Quotations, commonness: Commonness, rng: Random
) -> Example:
    language, listed = quotations.language, quotations.of_paragraph[index]
    evidence = evidence_language(paragraph, language, rng)
    count = min(len(listed), rng.choice(_LENGTHS))
    first = rng.randrange(len(listed) - count + 1)
    way = rng.random()
    kind = "clean" if way < _CLEAN else "removed" if way < _REMOVED else "changed"
    draft = Draft(space_of(language))
    must = rng.randrange(count)
    for nth, sentence in enumerate(listed[first : first + count]):
        if kind == "removed" and (nth == must or rng.random() < 0.3):
            other = quotations.elsewhere(index, rng)
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


# Which examples train nothing: those that calibrate, and, where that is asked for, those that benchmarks test on.
#
# Articles of a parallel set stand in many languages, so they are told apart by title, in all languages alike; the rule
# is that of `benchmarks/cross_lingual.py`. Translations are told apart by source text, as in
# `benchmarks/translation.py`.


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
    ours, evidence_tag = ((tag or "").split("-")[0] for tag in (example.language, example.evidence_language))
    return "across" if evidence_tag and ours != evidence_tag else "same"


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
    """One short text in two languages or more: translations of each other."""

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
    by_key: dict[tuple[str | None, str], Paragraph] = {}
    for versions in by_question.values():
        if len(versions) < 2:
            continue
        first = versions[min(versions)]
        key = (first.title, first.passage)
        paragraph = by_key.setdefault(key, Paragraph(article_group(first.title or ""), {}))
        for language, answer in versions.items():
            paragraph.versions.setdefault(language, []).append(answer)
    return list(by_key.values())


def aligned(paragraphs: Sequence[Paragraph]) -> list[Parallel]:
    """Questions, and sentences of paragraphs, in those languages that cut a paragraph into as many as English does.

    Where English is not there, the language whose tag comes first takes its place.
    """
    texts = []
    for paragraph in paragraphs:
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


# From parallel texts: right translations, and wrong ones of the kinds that translation systems make.
#
# A system that hallucinates runs in circles (`repeated`), says something else altogether (`detached`), or says what the
# source does not beside what it does (`inserted`). Raunak et al. (NAACL 2021) and Guerreiro et al. (EACL 2023) describe
# these kinds; HAT's guidelines count all of them as hallucination.


_RIGHT, _REPEATED, _DETACHED = 0.4, 0.55, 0.7  # cumulative shares of the kinds; the rest is inserted
_TRIES_TO_DRAW = 20
_REPEATED_WORDS = (1, 2, 3, 4, 5)
_TIMES = (1, 2, 2, 3, 5, 8)
_INSERTED_WORDS = (1, 2, 3, 4, 6, 9, 14)
_AMONG, _BEHIND = 0.35, 0.65  # cumulative shares of the places of what is inserted; the rest replaces the end
_LEAST_KEPT = 3  # the end that is replaced begins after a third of the words

_Others = dict[str, list[tuple[str, str]]]  # language to group and text
_Said = tuple[str, list[Mark], str]  # text, marks, kind


def translations_of(texts: Sequence[Parallel], count: int, rng: Random) -> Iterator[Example]:
    """Up to `count` translations between two drawn languages of a drawn text; none where there are no texts."""
    others: _Others = defaultdict(list)
    for text in texts:
        for language, version in text.versions.items():
            others[language].append((text.group, version))
    for _ in range(count if texts else 0):
        text = rng.choice(texts)
        language, source = rng.sample(sorted(text.versions), 2)
        if not text.versions[language].strip() or not text.versions[source].strip():
            continue
        response, marks, kind = _said(text, language, others, rng)
        yield Example(
            kind, "parallel translations", text.group, language, response, (text.versions[source],), None, tuple(marks),
            evidence_language=source, translation=True,
        )  # fmt: skip


def _said(text: Parallel, language: str, others: _Others, rng: Random) -> _Said:
    version = text.versions[language]
    right: _Said = (version, [], "clean")
    way = rng.random()
    if way < _RIGHT:
        return right
    if way < _REPEATED:
        return _repeated(version, language, rng) or right
    other = _other(text.group, version, others[language], rng)
    if way < _DETACHED:
        return other, [Mark(0, len(other), "invented")], "detached"
    return _inserted(version, other, language, rng) or right


def _other(group: str, version: str, others: list[tuple[str, str]], rng: Random) -> str:
    """A text of another group, and another text, as a rule."""
    for _ in range(_TRIES_TO_DRAW):
        tag, text = rng.choice(others)
        if tag != group and text != version:
            break
    return text


def _phrase(text: str, lengths: tuple[int, ...], language: str, rng: Random) -> tuple[int, int]:
    """Some words of a text in a row, as half-open code points; the text has one at least."""
    bounds = words(text, language)
    count = min(len(bounds), rng.choice(lengths))
    first = rng.randrange(len(bounds) - count + 1)
    return bounds[first][0], bounds[first + count - 1][1]


def _repeated(text: str, language: str, rng: Random) -> _Said | None:
    """A phrase said again and again, the rest of the sentence behind it or not; None for two words or fewer."""
    if len(words(text, language)) < 3:
        return None
    start, end = _phrase(text, _REPEATED_WORDS, language, rng)
    repetition = (space_of(language) + text[start:end]) * rng.choice(_TIMES)
    rest = text[end:] if rng.random() < 0.5 else ""
    return text[:end] + repetition + rest, [Mark(end, end + len(repetition), "invented")], "repeated"


def _inserted(text: str, other: str, language: str, rng: Random) -> _Said | None:
    """Words of another text among those of this one, behind them, or in place of their end."""
    bounds = words(text, language)
    if len(words(other, language)) < 2 or not bounds:
        return None
    phrase = other[slice(*_phrase(other, _INSERTED_WORDS, language, rng))]
    space = space_of(language)
    way = rng.random()
    if way < _BEHIND:
        position = rng.choice(bounds)[1] if way < _AMONG else bounds[-1][1]
        rest = text[position:]
    else:
        position, space, rest = rng.choice(bounds[len(bounds) // _LEAST_KEPT :])[0], "", ""
    start = position + len(space)
    marks = [Mark(start, start + len(phrase), "invented")]
    return text[:position] + space + phrase + rest, marks, "inserted"


# From translations labelled by people to training examples, and to parallel texts where they are right.


TOKENS = "translation tokens"  # every word was looked at: nothing teaches more
_ERRORS, _PATHOLOGIES, _CRITICAL = "translation errors", "translation pathologies", "translation critical"
_MOST_WITHOUT = 1500  # translations without an addition, among those of error spans: additions are rare
_MOST_RIGHT = 4000  # right translations of those with critical errors
_MOST_PARALLEL = 2500  # of these that others are made from, in a language
_MOST_MADE = 1800  # made from these, in a language
_EXAMPLES_OF_A_TEXT = 6  # examples made of one text at most, on average
_DIVIDED = 0.6  # how unsupported a word of a strongly detached translation is: a part is, and nobody said which


def labelled_translations(samples: Sequence[Sample], left_out: Counter[str], rng: Random) -> Iterator[Example]:
    """Every labelled translation that teaches something, and some made by rule from those that are right.

    What a label teaches hangs on its form. Spans that are agreed on (`gold`) say of every word whether the source has
    it. Spans of single raters are one category of an error typology, additions, and rare: translations without any
    are sampled. Flags name a pathology of the whole. A binary judgement says that a translation is right, or that
    something somewhere is wrong, which teaches nothing.
    """
    sources: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.evidence[0].language is None or len(sample.evidence) != 1:
            left_out["translation without a language or with several sources"] += 1
            continue
        sources[_source(sample)].append(sample)
    for sample in sources[TOKENS]:
        yield _example(sample, TOKENS, _marked(sample))
    yield from _with_errors(sources[_ERRORS], left_out, rng)
    for sample in sources[_PATHOLOGIES]:
        yield _with_pathology(sample)
    right = [sample for sample in sources[_CRITICAL] if not _gold(sample).units]
    left_out["translation with a critical error somewhere"] += len(sources[_CRITICAL]) - len(right)
    yield from _of_right_ones(right, rng)


def _gold(sample: Sample) -> Annotation:
    return next((layer for layer in sample.annotations if layer.annotator == "gold"), sample.annotations[0])


def _source(sample: Sample) -> str:
    layer = _gold(sample)
    if layer.taxonomy == "critical":
        return _CRITICAL
    if layer.spans is None:
        return _PATHOLOGIES
    return TOKENS if layer.annotator == "gold" else _ERRORS


def _marked(sample: Sample) -> tuple[Mark, ...]:
    layer = _gold(sample)
    if layer.annotator == "gold":
        return tuple(Mark(span.start, span.end, "invented") for span in layer.spans or ())
    people = [a for a in sample.annotations if a.kind is Kind.HUMAN and a.spans is not None]
    return tuple(Mark(mark.start, mark.end, "invented") for mark in majority(sample, people))


def _example(
    sample: Sample,
    source: str,
    marks: tuple[Mark, ...],
    *,
    kind: str = "natural",
    shares: tuple[tuple[int, int, float], ...] | None = None,
) -> Example:
    text = sample.evidence[0].text
    return Example(
        kind, source, f"translation:{text}", sample.language, sample.response, (text,), None, marks, (), shares,
        evidence_language=sample.evidence[0].language, translation=True,
    )  # fmt: skip


def _with_errors(samples: list[Sample], left_out: Counter[str], rng: Random) -> Iterator[Example]:
    marks = [_marked(sample) for sample in samples]
    without = [nth for nth, spans in enumerate(marks) if not spans]
    chosen = set(rng.sample(without, min(len(without), _MOST_WITHOUT)))
    left_out["translation without an addition, beyond the sample"] += len(without) - len(chosen)
    for nth, sample in enumerate(samples):
        if marks[nth] or nth in chosen:
            yield _example(sample, _ERRORS, marks[nth])


def _with_pathology(sample: Sample) -> Example:
    whole, flags = len(sample.response), _gold(sample).flags
    if "full_detachment" in flags:
        return _example(sample, _PATHOLOGIES, (Mark(0, whole, "invented"),))
    if "strong_detachment" in flags:
        return _example(sample, _PATHOLOGIES, (Mark(0, whole, "invented"),), shares=((0, whole, _DIVIDED),))
    return _example(sample, _PATHOLOGIES, tuple(_repeats(sample)) if "oscillation" in flags else ())


def _repeats(sample: Sample) -> Iterator[Mark]:
    """The words of every pair of neighbours that stood further left already."""
    bounds = words(sample.response, sample.language)
    forms = [fold(sample.response[start:end]) for start, end in bounds]
    seen: set[tuple[str, str]] = set()
    marked: set[int] = set()
    for nth, pair in enumerate(pairwise(forms)):
        if pair in seen:
            marked |= {nth, nth + 1}
        seen.add(pair)
    for nth in sorted(marked):
        yield Mark(*bounds[nth], "invented")


def _of_right_ones(right: list[Sample], rng: Random) -> Iterator[Example]:
    for sample in rng.sample(right, min(len(right), _MOST_RIGHT)):
        yield _example(sample, _CRITICAL, (), kind="clean")
    by_pair: dict[tuple[str | None, str | None], list[Sample]] = defaultdict(list)
    for sample in right:
        by_pair[sample.language, sample.evidence[0].language].append(sample)
    for (ours, target), samples in by_pair.items():
        if ours == target:
            continue
        texts = [
            Parallel(
                f"translation:{sample.evidence[0].text}",
                {ours or "": sample.response, target or "": sample.evidence[0].text},
            )
            for sample in rng.sample(samples, min(len(samples), _MOST_PARALLEL))
        ]
        yield from translations_of(texts, min(_MOST_MADE, _EXAMPLES_OF_A_TEXT * len(texts)), rng)


# From what was read to all examples that the semantic detector learns from.


_MOST_TRANSLATIONS = 9000  # made from parallel sets
_TRANSLATIONS_OF_A_TEXT = 6  # of each of their texts at most, on average


def without_tests(labelled: Labelled) -> None:
    """Take out what the project's benchmarks test on: articles of parallel sets, and sources of translations."""
    tests = [answer for answer in labelled.answers if answer.title is not None and is_test_article(answer.title)]
    if tests:
        answers = [answer for answer in labelled.answers if answer.title is None or not is_test_article(answer.title)]
        labelled.left_out["answer of a test article"] += len(tests)
        labelled.answers[:] = answers
    translations = [sample for sample in labelled.translations if not is_test_source(sample.evidence[0].text)]
    if len(translations) < len(labelled.translations):
        labelled.left_out["translation of a test source"] += len(labelled.translations) - len(translations)
        labelled.translations[:] = translations


def examples_of(labelled: Labelled, seed: int) -> list[Example]:
    """Labelled examples, those made as for the grounding detector, and those across languages and of translation.

    Args:
        labelled: what was read; what is not used is counted in `left_out`.
        seed: of everything that is drawn.
    """
    rng = Random(f"across {seed}")  # noqa: S311  a seeded draw, not a secret
    commonness = count_words(labelled)
    parallel = paragraphs(labelled.answers)
    made = list(_regrouped(made_by_rule(labelled, commonness, seed), parallel))
    texts = aligned(parallel)
    return [
        *labelled.examples,
        *made,
        *answers_across(parallel, rng),
        *sentences_across(parallel, commonness, rng),
        *translations_of(texts, min(_MOST_TRANSLATIONS, _TRANSLATIONS_OF_A_TEXT * len(texts)), rng),
        *labelled_translations(labelled.translations, labelled.left_out, rng),
    ]


def _regrouped(examples: Iterable[Example], paragraphs: list[Paragraph]) -> Iterable[Example]:
    """The examples, those about a parallel paragraph in the group of its article, which holds in every language."""
    groups = {
        (language, paragraph.passage(language)): paragraph.group
        for paragraph in paragraphs
        for language in paragraph.versions
    }
    for example in examples:
        group = groups.get((example.language or "", example.passages[0]))
        yield example if group is None else replace(example, group=group)
