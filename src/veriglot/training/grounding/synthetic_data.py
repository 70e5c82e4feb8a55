"""Synthetic training data in every language: clean texts and answers, quoted, reworded and corrupted by rule.

An article gives three kinds: sentences that its passages support (`clean`), sentences that were removed from the
passages (`removed`: on topic, and unsupported), and sentences with exchanged words (`changed`). All kinds alike are
reworded without change of meaning, so that rewording is no signal."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.datasets.rules.material import quotable, without_brackets
from veriglot.detectors.grounding.document import Document, Lexicon
from veriglot.text.normalization import fold
from veriglot.text.segmentation import sentences, space_of, words
from veriglot.training.grounding.examples import HELD_OUT, Answer, Article, Example, Labelled, Mark, share_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from veriglot.arrays import Float64s, Int64s, UInt8s

    Range = tuple[int, int]

__all__ = [
    "Paragraph",
    "WordFrequencies",
    "answers_across",
    "clean_texts",
    "count_words",
    "is_held_out_group",
    "paragraphs",
    "remove_test_data",
    "sentences_across",
    "synthetic_examples",
]


_LENGTHS = (1, 1, 2, 3, 4, 6, 9)  # sentences in a response
_CLEAN, _REMOVED = 0.42, 0.62  # cumulative shares of the kinds; the rest is `changed`
_RARE, _MIDDLE = 9.0, 5.0  # words of frequency below 12 - 9 are rare, up to 12 - 5 middle
_COMMAS = re.compile(r"(?<=[,،，、;])\s*")


class Pool(msgspec.Struct):
    """Words of other articles in one language, as replacements."""

    names: list[str] = []
    rare: list[str] = []
    middle: list[str] = []

    def add(self, sentence: str, language: str, frequencies: WordFrequencies) -> None:
        """Add the words of a sentence."""
        parts = _Parts(sentence, language, frequencies)
        self.names += [sentence[s:e] for s, e in parts.names]
        self.rare += [sentence[s:e] for s, e in parts.rare]
        self.middle += [sentence[s:e] for s, e in parts.middle]


class _Parts:
    """The words of a sentence by kind; words of one kind can replace each other."""

    def __init__(self, sentence: str, language: str, frequencies: WordFrequencies) -> None:
        bounds = words(sentence, language)
        tells = 12.0 - frequencies.of(sentence, bounds)
        self.all = bounds
        self.tells = tells
        self.numbers = [b for b in bounds if _has_digit(sentence[slice(*b)])]
        capitals = [i for i, (s, _) in enumerate(bounds) if i and sentence[s].isupper()]
        self.names = _runs(bounds, capitals)
        others = [
            i
            for i, (s, e) in enumerate(bounds)
            if (s, e) not in self.numbers and i not in capitals and e - s >= (1 if sentence[s] > "\u2e80" else 4)
        ]
        self.rare = [bounds[i] for i in others if tells[i] > _RARE]
        self.middle = [bounds[i] for i in others if _MIDDLE < tells[i] <= _RARE]


def _runs(bounds: list[Range], chosen: list[int]) -> list[Range]:
    """Contiguous ranges of up to three chosen words, with one character between them."""
    runs: list[Range] = []
    length = 0
    for i in chosen:
        start, end = bounds[i]
        if runs and start - runs[-1][1] == 1 and length < 3:
            runs[-1] = (runs[-1][0], end)
            length += 1
        else:
            runs.append((start, end))
            length = 1
    return runs


def reworded(sentence: str, language: str, frequencies: WordFrequencies, rng: Random) -> str:
    """The sentence with up to two small edits that keep its meaning: brackets, clauses, common words, endings."""
    original = sentence
    for _ in range(rng.choice((0, 1, 1, 2))):
        way = rng.random()
        if way < 0.3:
            sentence = without_brackets(sentence)
        elif way < 0.55:
            sentence = _clauses_moved(sentence, rng)
        elif way < 0.8:
            sentence = _common_word_dropped(sentence, language, frequencies, rng)
        else:
            sentence = _ending_changed(sentence, language, rng)
    return sentence.strip() or original


def _clauses_moved(sentence: str, rng: Random) -> str:
    clauses = _COMMAS.split(sentence)
    if len(clauses) < 2:
        return sentence
    if rng.random() < 0.5:
        clauses = clauses[1:] if rng.random() < 0.5 else clauses[:-1]
    else:
        i = rng.randrange(len(clauses) - 1)
        clauses[i], clauses[i + 1] = clauses[i + 1], clauses[i]
    return (" " if " " in sentence else "").join(clauses)


def _common_word_dropped(sentence: str, language: str, frequencies: WordFrequencies, rng: Random) -> str:
    bounds = words(sentence, language)
    common = [b for b, c in zip(bounds, frequencies.of(sentence, bounds), strict=True) if c > 6]
    if len(bounds) <= 6 or not common:
        return sentence
    start, end = rng.choice(common)
    return sentence[:start] + sentence[end:].lstrip()


def _ending_changed(sentence: str, language: str, rng: Random) -> str:
    long = [
        (s, e) for s, e in words(sentence, language) if e - s >= 6 and sentence[s:e].isalpha() and sentence[s].islower()
    ]
    if not long:
        return sentence
    start, end = rng.choice(long)
    endings = ("", "a", "e", "i", "en") if sentence[start] < "\u0250" else ("",)
    return sentence[: end - rng.choice((1, 2))] + rng.choice(endings) + sentence[end:]


def _changed_number(number: str, rng: Random) -> str:
    if number.isascii() and number.isdigit() and len(number) == 4 and rng.random() < 0.5:
        return str(int(number) + rng.choice((-1, 1)) * rng.randint(1, 120))
    return "".join(
        str(rng.randint(0, 9)) if c.isdigit() and (i > 0 or rng.random() < 0.5) else c for i, c in enumerate(number)
    )


def _changes(sentence: str, parts: _Parts, pool: Pool, rng: Random) -> dict[Range, tuple[str, str]]:
    """Ranges of the sentence, each with its replacement and the type of error that this makes."""
    edits: dict[Range, tuple[str, str]] = {}
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        way = rng.random()
        if way < 0.35 and parts.numbers:
            start, end = rng.choice(parts.numbers)
            edits[start, end] = (_changed_number(sentence[start:end], rng), "entity")
        elif way < 0.6 and parts.names and pool.names:
            edits[rng.choice(parts.names)] = (rng.choice(pool.names), "entity")
        elif way < 0.75 and parts.rare and pool.rare:
            edits[rng.choice(parts.rare)] = (rng.choice(pool.rare), "entity")
        elif way < 0.92 and parts.middle and pool.middle:
            edits[rng.choice(parts.middle)] = (rng.choice(pool.middle), "relation")
        else:
            pair = parts.names + parts.numbers if len(parts.names) + len(parts.numbers) > 1 else parts.rare
            if len(pair) > 1:
                first, other = rng.sample(pair, 2)
                edits[first] = (sentence[slice(*other)], "entity")
                edits[other] = (sentence[slice(*first)], "entity")
    return edits


def changed(
    sentence: str, language: str, pool: Pool, frequencies: WordFrequencies, rng: Random
) -> tuple[str, list[Mark]] | None:
    """The sentence with one to three words exchanged, and the spans of the new words; None if nothing can change."""
    parts = _Parts(sentence, language, frequencies)
    if len(parts.all) < 4:
        return None
    pieces = []
    marks = []
    read = written = 0
    for (start, end), (text, type_) in sorted(_changes(sentence, parts, pool, rng).items()):
        if start < read or fold(sentence[start:end]) == fold(text):
            continue
        pieces += [sentence[read:start], text]
        written += start - read
        marks.append(Mark(written, written + len(text), type_))
        written += len(text)
        read = end
    return ("".join([*pieces, sentence[read:]]), marks) if marks else None


def article_example(article: Article, pool: Pool, frequencies: WordFrequencies, rng: Random) -> Example | None:
    """One example from an article, of a random kind; None if the article is too short."""
    language = article.language
    listed = list(dict.fromkeys(s for passage in article.passages for s in quotable(passage, language)))
    if len(listed) < 4:
        return None
    count = min(len(listed) - 1, rng.choice(_LENGTHS))
    if rng.random() < 0.5:
        first = rng.randrange(len(listed) - count + 1)
        chosen = listed[first : first + count]
    else:
        chosen = [listed[i] for i in sorted(rng.sample(range(len(listed)), count))]
    passages = list(article.passages)

    def taken_out(sentence: str) -> str:
        passages[:] = [passage.replace(sentence, " ") for passage in passages]
        return sentence

    kind, draft = _drafted(chosen, language, pool, frequencies, rng, (_CLEAN, _REMOVED, 0.35), taken_out)
    question = rng.choice(article.questions) if article.questions and rng.random() < 0.5 else None
    if rng.random() < 0.3:
        passages = ["\n".join(passages)]
    group = f"article:{language}:{article.group}"
    return Example(kind, "articles", group, language, draft.text, tuple(passages), question, tuple(draft.marks))


def _drafted(
    chosen: Sequence[str],
    language: str,
    pool: Pool,
    frequencies: WordFrequencies,
    rng: Random,
    shares: tuple[float, float, float],
    unsupported: Callable[[str], str],
) -> tuple[str, _Draft]:
    """Kind and response; `shares` are cumulative for `clean` and `removed`, then that of further removed sentences."""
    clean, removed, further = shares
    way = rng.random()
    kind = "clean" if way < clean else "removed" if way < removed else "changed"
    draft = _Draft(space_of(language))
    must = rng.randrange(len(chosen))
    for i, sentence in enumerate(chosen):
        if kind == "removed" and (i == must or rng.random() < further):
            other = unsupported(sentence)
            draft.add(other, [Mark(0, len(other))])
            continue
        text, marks = sentence, list[Mark]()
        if rng.random() < 0.5:
            text = reworded(sentence, language, frequencies, rng)
        if kind == "changed" and (i == must or rng.random() < 0.5):
            text, marks = changed(text, language, pool, frequencies, rng) or (text, marks)
        draft.add(text, marks)
    return kind, draft


class _Draft:
    """A response that is built sentence by sentence, with its spans."""

    def __init__(self, space: str) -> None:
        self.text = ""
        self.marks: list[Mark] = []
        self._space = space

    def add(self, sentence: str, marks: list[Mark]) -> None:
        """Add a sentence with its spans."""
        if self.text:
            self.text += self._space
        self.marks += [Mark(m.start + len(self.text), m.end + len(self.text), m.type) for m in marks]
        self.text += sentence


# From right answers: wrong ones, and answers in the style of people and models, with words of the question.
#
# A model rarely gives the bare answer. It repeats words of the question around the answer, and in an error only the
# answer is wrong. No grammar is needed: question words in their order with the answer before, after or between them are
# enough to teach that words of the question need no support and the answer does.


_BARE, _QUOTED = 0.3, 0.55  # cumulative shares of the forms; the rest has words of the question
_RIGHT = 0.45  # share of right answers in every form
_LONGEST = 60  # maximum code points of a wrong answer
_MARKS = "?？؟;।"


def answer_example(answer: Answer, others: list[Answer], rng: Random) -> Example | None:
    """One example: right or wrong; bare, in its sentence, or with words of the question."""
    right = rng.random() < _RIGHT
    text = answer.text if right else _wrong(answer, others, rng)
    if text is None:
        return None
    group = f"passage:{answer.language}:{answer.passage[:200]}"
    return _answered(answer, text, answer, group, "answers", rng, right=right)


def _answered(
    answer: Answer, text: str, known: Answer, group: str, source: str, rng: Random, *, right: bool
) -> Example:
    """The example of an answer in its context, with a passage as evidence that holds the answer `known`."""
    before, after = _around(answer, rng)
    marks = () if right else (Mark(len(before), len(before) + len(text), "entity"),)
    kind, response = "clean" if right else "wrong", before + text + after
    start = known.passage.find(known.text) if known.passage.count(known.text) == 1 else -1
    located = (start, start + len(known.text)) if start >= 0 else None
    return Example(
        kind, source, group, answer.language, response, (known.passage,), answer.question, marks, answer=located
    )


def _around(answer: Answer, rng: Random) -> tuple[str, str]:
    """The text before and after an answer: nothing, its sentence in the passage, or words of the question."""
    form = rng.random()
    if form >= _QUOTED:
        return _question_around(answer, rng)
    return _sentence_around(answer) if form >= _BARE else ("", "")


def _wrong(answer: Answer, others: list[Answer], rng: Random) -> str | None:
    """Another answer of the same kind (with digits or without); for one half of them it is in the same passage."""
    right = fold(answer.text)
    passage = fold(answer.passage)
    near = rng.random() < 0.5
    for other in rng.sample(others, min(len(others), 80)):
        text = fold(other.text)
        alike = len(other.text) <= _LONGEST and _has_digit(text) == _has_digit(right)
        if alike and _differ(text, right) and (text in passage) == near:
            return other.text
    return None


def _sentence_around(answer: Answer) -> tuple[str, str]:
    answer_start = answer.passage.find(answer.text)
    for start, end in sentences(answer.passage, answer.language):
        if start <= answer_start < end:
            return answer.passage[start:answer_start], answer.passage[answer_start + len(answer.text) : end]
    return "", ""


def _question_around(answer: Answer, rng: Random) -> tuple[str, str]:
    question = answer.question.strip().rstrip(_MARKS).strip()
    bounds = words(question, answer.language)
    if len(bounds) < 3:
        return "", ""
    rest = question[bounds[rng.choice((0, 1, 1, 2))][0] :]
    space = space_of(answer.language)
    stop = rng.choice((".", "", "."))
    way = rng.random()
    if way < 0.4:
        return f"{rest}{rng.choice((space, ': ', ', ') if space else ('：', '，', ''))}", stop
    if way < 0.7:
        return "", f"{space}{rest}{stop}"
    inner = words(rest, answer.language)
    cut = inner[rng.randrange(len(inner))][0]
    return rest[:cut], f"{space}{rest[cut:]}{stop}"


# Word frequencies in the training texts.


_MIN_COUNT = 2


class WordFrequencies:
    """Counts of words and stems per language, in hash buckets."""

    def __init__(self) -> None:
        self._counts: dict[str, Int64s] = defaultdict(lambda: Lexicon.no_frequencies(np.int64))
        self._cache: dict[str, float] = {}
        self._table: UInt8s | None = None

    def count(self, texts: Iterable[str], language: str) -> None:
        """Add the words of texts in one language."""
        document = Document(list(texts), language)
        for row, hashes in enumerate((document.stem, document.word)):
            np.add.at(self._counts[language][row], Lexicon.frequency_slots(hashes), 1)
        self._table = None

    def table(self) -> UInt8s:
        """The highest frequency of each bucket in any language, as the detector stores it; shape (2, 2^17)."""
        if self._table is None:
            table = Lexicon.no_frequencies()
            for counts in self._counts.values():
                shares = np.where(counts >= _MIN_COUNT, counts / max(int(counts[0].sum()), 1), 0.0)
                table = np.maximum(table, Lexicon.stored_frequency(shares))
            self._table = table
        return self._table

    def of(self, text: str, bounds: list[Range]) -> Float64s:
        """The stem frequency of each word, 0 to 12, shape (n,)."""
        lexicon = Lexicon(self.table(), np.zeros(0, np.uint64), np.zeros((0, 1), np.int8))
        folded = fold(text)
        asked = [folded[s:e] for s, e in bounds]
        for word in asked:
            if word not in self._cache:
                stems = Document([word], None).stem
                self._cache[word] = float(lexicon.stem_frequency(stems)[0]) if len(stems) else 0.0
        return np.array([self._cache[word] for word in asked])


# From data as read to all training data: frequencies, synthetic examples, and vectors.


_MOST_ARTICLES = 700  # maximum in a language; more help little
_POOLED = 500  # articles that give replacement words


def clean_texts(labelled: Labelled) -> Iterator[tuple[str, str]]:
    """Language and text of every passage, each once."""
    seen = set[str]()
    passages = (
        *((example.language, text) for example in labelled.examples for text in example.passages),
        *((article.language, text) for article in labelled.articles for text in article.passages),
        *((answer.language, answer.passage) for answer in labelled.answers),
    )
    for language, text in passages:
        if language is not None and text not in seen:
            seen.add(text)
            yield language, text


def count_words(labelled: Labelled) -> WordFrequencies:
    """Word frequencies in the passages of each language."""
    frequencies = WordFrequencies()
    for language, text in clean_texts(labelled):
        frequencies.count([text], language)
    return frequencies


def synthetic_examples(labelled: Labelled, frequencies: WordFrequencies, seed: int) -> list[Example]:
    """Quotations and answers, right and wrong, in every language with plain articles or answered questions."""
    articles = defaultdict[str, list[Article]](list)
    for article in labelled.articles:
        articles[article.language].append(article)
    examples = [e for language, some in articles.items() for e in _quotations(language, some, frequencies, seed)]
    answers = defaultdict[str, list[Answer]](list)
    for answer in labelled.answers:
        answers[answer.language].append(answer)
    for language, given in answers.items():
        rng = Random(f"answers {language} {seed}")  # noqa: S311  a seeded draw, not a secret
        drawn = (answer_example(answer, given, rng) for answer in given)
        examples += [example for example in drawn if example is not None]
    return examples


def _quotations(language: str, articles: list[Article], frequencies: WordFrequencies, seed: int) -> Iterator[Example]:
    rng = Random(f"articles {language} {seed}")  # noqa: S311  a seeded draw, not a secret
    rng.shuffle(articles)
    pool = Pool()
    for article in articles[:_POOLED]:
        sentences = quotable(rng.choice(article.passages), language)
        if sentences:
            pool.add(rng.choice(sentences), language, frequencies)
    for article in articles[:_MOST_ARTICLES]:
        example = article_example(article, pool, frequencies, rng)
        if example is not None:
            yield example


# Parallel data sets: paragraphs in several languages, and which of them are held out.
#
# Articles of a parallel data set are split by title, so that all languages of one article are in the same part; the
# rule is that of `benchmarks/cross_lingual.py`. Translations are split by source text, as in
# `benchmarks/translation.py`.


_ARTICLE = "xquad:"  # the benchmark hashes titles with this prefix, in all data sets
_TEST_ARTICLES = 0.3
_TEST_SOURCES = 0.5  # from this share on


@dataclass(frozen=True)
class Paragraph:
    """One paragraph in several languages.

    Attributes:
        group: of its article.
        versions: answers in the paragraph for each language, in reading order; never empty.
    """

    group: str
    versions: dict[str, list[Answer]]

    def passage(self, language: str) -> str:
        """The text of the paragraph in one of its languages."""
        return self.versions[language][0].passage


def is_held_out_group(group: str) -> bool:
    """Whether examples of a group are held out."""
    first = _TEST_ARTICLES if group.startswith(_ARTICLE) else 0.0
    return first <= share_of(group) < first + HELD_OUT


def paragraphs(answers: Sequence[Answer]) -> list[Paragraph]:
    """The paragraphs of parallel data sets, in reading order.

    A question whose id occurs in two or more languages is parallel, and its passages are versions of one paragraph.
    Answers without an id or a title, or in only one language, are not parallel.
    """
    by_question = defaultdict[str, dict[str, Answer]](dict)
    for answer in answers:
        if answer.question_id is not None and answer.title is not None:
            by_question[answer.question_id].setdefault(answer.language, answer)
    by_key: dict[tuple[str | None, str], Paragraph] = {}
    for versions in by_question.values():
        if len(versions) < 2:
            continue
        first = versions[min(versions)]
        key = (first.title, first.passage)
        paragraph = by_key.setdefault(key, Paragraph(_ARTICLE + (first.title or ""), {}))
        for language, answer in versions.items():
            paragraph.versions.setdefault(language, []).append(answer)
    return list(by_key.values())


def remove_test_data(labelled: Labelled) -> None:
    """Remove test data of the project's benchmarks: articles of parallel data sets, and sources of translations."""
    answers = [
        answer
        for answer in labelled.answers
        if answer.title is None or share_of(_ARTICLE + answer.title) >= _TEST_ARTICLES
    ]
    translations = [sample for sample in labelled.translations if share_of(sample.evidence[0].text) < _TEST_SOURCES]
    labelled.left_out["answer of a test article"] += len(labelled.answers) - len(answers)
    labelled.left_out["translation of a test source"] += len(labelled.translations) - len(translations)
    labelled.answers[:], labelled.translations[:] = answers, translations


# Cross-lingual responses: answers and sentences of parallel paragraphs, right and wrong.


_SAME = 0.1  # share with the evidence in the response's own language
_NEAR = 0.5  # share of wrong answers from the same paragraph
_TRIES = 80
_PER_PARAGRAPH = 3  # responses made of sentences, in each language
_LENGTHS_ACROSS = (1, 1, 2, 3, 4)  # sentences in a response
_CLEAN_ACROSS, _REMOVED_ACROSS = 0.4, 0.6  # cumulative shares of the kinds; the rest is `changed`
_POOLED_ACROSS = 400  # sentences of a language that give replacement words
_ASKED = 0.3  # share of sentences with a question


def answers_across(paragraphs: Sequence[Paragraph], rng: Random) -> Iterator[Example]:
    """For each answer, right or wrong, one response in a form of `_around`."""
    other_answers = defaultdict[str, list[tuple[int, str]]](list)
    for index, paragraph in enumerate(paragraphs):
        for language, answers in paragraph.versions.items():
            other_answers[language] += [(index, answer.text) for answer in answers]
    for index, paragraph in enumerate(paragraphs):
        for language, answers in paragraph.versions.items():
            for answer in answers:
                evidence = evidence_language(paragraph, language, rng)
                right = rng.random() < _RIGHT
                text = answer.text if right else _wrong_across(answer, answers, other_answers[language], index, rng)
                if text is None:
                    continue
                there = paragraph.versions[evidence]
                known = next((other for other in there if other.question_id == answer.question_id), None)
                if known is None:
                    continue
                example = _answered(answer, text, known, paragraph.group, "parallel answers", rng, right=right)
                yield replace(example, evidence_language=evidence if evidence != language else None)


def evidence_language(paragraph: Paragraph, language: str, rng: Random) -> str:
    """The language of the evidence for a response in `language`: usually another one."""
    others = [tag for tag in paragraph.versions if tag != language]
    return language if rng.random() < _SAME else rng.choice(others)


def _wrong_across(
    answer: Answer, here: Sequence[Answer], others: list[tuple[int, str]], index: int, rng: Random
) -> str | None:
    """Another answer of this paragraph or of another one, of the same kind (with digits or without) if there is one."""
    right = fold(answer.text)
    if rng.random() < _NEAR:
        near = [other.text for other in here if _differ(fold(other.text), right)]
        rng.shuffle(near)
        near.sort(key=lambda text: _has_digit(text) != _has_digit(right))
        if near:
            return near[0]
    for _ in range(_TRIES):
        other, text = rng.choice(others)
        alike = len(text) <= _LONGEST and _has_digit(text) == _has_digit(right)
        if other != index and alike and _differ(fold(text), right):
            return text
    return None


def _differ(left: str, other: str) -> bool:
    return left not in other and other not in left


def _has_digit(text: str) -> bool:
    return any(c.isdigit() for c in text)


class _Quotations:
    """The sentences of one language, and replacement words from them."""

    def __init__(
        self, paragraphs: Sequence[Paragraph], language: str, frequencies: WordFrequencies, rng: Random
    ) -> None:
        self.language = language
        self.of_paragraph = [
            quotable(p.passage(language), language) if language in p.versions else [] for p in paragraphs
        ]
        self.all = [(index, text) for index, listed in enumerate(self.of_paragraph) for text in listed]
        self.pool = Pool()
        for _, text in rng.sample(self.all, min(_POOLED_ACROSS, len(self.all))):
            self.pool.add(text, language, frequencies)

    def of_another(self, index: int, rng: Random) -> str:
        """A sentence of another paragraph; if the draws fail, of any."""
        for _ in range(_TRIES):
            other, text = rng.choice(self.all)
            if other != index and text not in self.of_paragraph[index]:
                break
        return text


def sentences_across(paragraphs: Sequence[Paragraph], frequencies: WordFrequencies, rng: Random) -> Iterator[Example]:
    """For each paragraph and language a few responses of one to four of its sentences.

    The sentences are quoted or reworded (`clean`), or some come from another paragraph (`removed`), or have exchanged
    words (`changed`).
    """
    languages = dict.fromkeys(language for paragraph in paragraphs for language in paragraph.versions)
    quotations = {language: _Quotations(paragraphs, language, frequencies, rng) for language in languages}
    for index, paragraph in enumerate(paragraphs):
        for language in paragraph.versions:
            if quotations[language].of_paragraph[index]:
                for _ in range(_PER_PARAGRAPH):
                    yield _of_sentences(paragraph, index, quotations[language], frequencies, rng)


def _of_sentences(
    paragraph: Paragraph, index: int, quotations: _Quotations, frequencies: WordFrequencies, rng: Random
) -> Example:
    language, listed = quotations.language, quotations.of_paragraph[index]
    evidence = evidence_language(paragraph, language, rng)
    count = min(len(listed), rng.choice(_LENGTHS_ACROSS))
    first = rng.randrange(len(listed) - count + 1)
    chosen = listed[first : first + count]
    shares = _CLEAN_ACROSS, _REMOVED_ACROSS, 0.3
    kind, draft = _drafted(
        chosen, language, quotations.pool, frequencies, rng, shares, lambda _: quotations.of_another(index, rng)
    )
    question = rng.choice(paragraph.versions[language]).question if rng.random() < _ASKED else None
    return Example(
        kind if draft.marks else "clean", "parallel sentences", paragraph.group, language,
        draft.text, (paragraph.passage(evidence),), question, tuple(draft.marks),
        evidence_language=evidence if evidence != language else None,
    )  # fmt: skip
