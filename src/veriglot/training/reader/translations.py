"""Training data from translations: made by rule from parallel texts, and labelled ones of real systems."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from veriglot.records import Annotation, Kind, Record, Sample
from veriglot.text.normalization import fold
from veriglot.text.segmentation import sentences, space_of, words
from veriglot.training.grounding.examples import Example, Mark, majority

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence
    from random import Random

    from veriglot.training.grounding.synthetic_data import Paragraph

__all__ = ["aligned", "labelled_translations", "translations_of"]


class Parallel(Record):
    """One short text in two or more languages: translations of each other."""

    group: str
    versions: dict[str, str]


def aligned(paragraphs: Sequence[Paragraph]) -> list[Parallel]:
    """Questions, and sentences of paragraphs, in those languages with as many sentences as the English version.

    Without an English version, the first language by tag takes its place.
    """
    texts = []
    for paragraph in paragraphs:
        questions = defaultdict[str, dict[str, str]](dict)
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


# From parallel texts: right translations, and the kinds of wrong ones that translation systems make.
#
# A hallucination repeats a phrase (`repeated`), is another text (`detached`), or has additions that are not in the
# source (`inserted`). Raunak et al. (NAACL 2021) and Guerreiro et al. (EACL 2023) describe these kinds; HAT's
# guidelines count all of them as hallucination.


_RIGHT, _REPEATED, _DETACHED = 0.4, 0.55, 0.7  # cumulative shares of the kinds; the rest is `inserted`
_TRIES_TO_DRAW = 20
_REPEATED_WORDS = (1, 2, 3, 4, 5)
_TIMES = (1, 2, 2, 3, 5, 8)
_INSERTED_WORDS = (1, 2, 3, 4, 6, 9, 14)
_AMONG, _BEHIND = 0.35, 0.65  # cumulative shares of positions: inside, at the end; the rest replaces the end
_PREFIX_DIVISOR = 3  # the replaced end begins after the first third of the words

_Others = dict[str, list[tuple[str, str]]]  # group and text by language
_Translated = tuple[str, list[Mark], str]  # text, marks, kind


def translations_of(texts: Sequence[Parallel], count: int, rng: Random) -> Iterator[Example]:
    """Up to `count` translations between two random languages of random texts; none if there are no texts."""
    others: _Others = defaultdict(list)
    for text in texts:
        for language, version in text.versions.items():
            others[language].append((text.group, version))
    for _ in range(count if texts else 0):
        text = rng.choice(texts)
        language, source = rng.sample(sorted(text.versions), 2)
        if not text.versions[language].strip() or not text.versions[source].strip():
            continue
        response, marks, kind = _translated(text, language, others, rng)
        yield Example(
            kind, "parallel translations", text.group, language, response, (text.versions[source],), None, tuple(marks),
            evidence_language=source, translation=True,
        )  # fmt: skip


def _translated(text: Parallel, language: str, others: _Others, rng: Random) -> _Translated:
    version = text.versions[language]
    right: _Translated = (version, [], "clean")
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
    """A text of another group; if the draws fail, any text."""
    for _ in range(_TRIES_TO_DRAW):
        tag, text = rng.choice(others)
        if tag != group and text != version:
            break
    return text


def _phrase(text: str, lengths: tuple[int, ...], language: str, rng: Random) -> tuple[int, int]:
    """Some consecutive words of a text, half-open in code points; the text has at least one word."""
    bounds = words(text, language)
    count = min(len(bounds), rng.choice(lengths))
    first = rng.randrange(len(bounds) - count + 1)
    return bounds[first][0], bounds[first + count - 1][1]


def _repeated(text: str, language: str, rng: Random) -> _Translated | None:
    """A text with a repeated phrase, with or without the rest after it; None for two words or fewer."""
    if len(words(text, language)) < 3:
        return None
    start, end = _phrase(text, _REPEATED_WORDS, language, rng)
    repetition = (space_of(language) + text[start:end]) * rng.choice(_TIMES)
    rest = text[end:] if rng.random() < 0.5 else ""
    return text[:end] + repetition + rest, [Mark(end, end + len(repetition), "invented")], "repeated"


def _inserted(text: str, other: str, language: str, rng: Random) -> _Translated | None:
    """A text with words of another text inside, at its end, or in place of its end."""
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
        position, space, rest = rng.choice(bounds[len(bounds) // _PREFIX_DIVISOR :])[0], "", ""
    start = position + len(space)
    marks = [Mark(start, start + len(phrase), "invented")]
    return text[:position] + space + phrase + rest, marks, "inserted"


# From translations labelled by people to training examples, and to parallel texts if they are right.


TOKENS = "translation tokens"  # every word has a label: the most informative source
_ERRORS, _PATHOLOGIES, _CRITICAL = "translation errors", "translation pathologies", "translation critical"
_MOST_WITHOUT = 1500  # translations without an addition from sets with error spans: additions are rare
_MOST_RIGHT = 4000  # right translations from sets with critical errors
_MOST_PARALLEL = 2500  # right translations as a base for synthetic ones, in a language
_MOST_MADE = 1800  # synthetic ones made from these, in a language
_EXAMPLES_OF_A_TEXT = 6  # maximum mean number of examples made from one text
_DIVIDED = 0.6  # target of words in a strongly detached translation: it is unknown which of them are unsupported


def labelled_translations(samples: Sequence[Sample], left_out: Counter[str], rng: Random) -> Iterator[Example]:
    """Labelled translations with informative labels, and synthetic ones made from the right ones.

    The form of a label decides its use. Spans that annotators agreed on (`gold`) label every word. Spans of single
    raters are only the additions of an error typology, which are rare, so translations without additions are sampled.
    Flags name a pathology of the whole translation. A binary judgement says that a translation is right, or that
    something somewhere is wrong, and the latter is not used.
    """
    sources = defaultdict[str, list[Sample]](list)
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
    length, flags = len(sample.response), _gold(sample).flags
    whole = (Mark(0, length, "invented"),)
    if "full_detachment" in flags:
        return _example(sample, _PATHOLOGIES, whole)
    if "strong_detachment" in flags:
        return _example(sample, _PATHOLOGIES, whole, shares=((0, length, _DIVIDED),))
    return _example(sample, _PATHOLOGIES, tuple(_repeats(sample)) if "oscillation" in flags else ())


def _repeats(sample: Sample) -> Iterator[Mark]:
    """The words of every pair of neighbours that occurred before in the text."""
    bounds = words(sample.response, sample.language)
    forms = [fold(sample.response[start:end]) for start, end in bounds]
    seen = set[tuple[str, str]]()
    marked = set[int]()
    for nth, pair in enumerate(pairwise(forms)):
        if pair in seen:
            marked |= {nth, nth + 1}
        seen.add(pair)
    for nth in sorted(marked):
        yield Mark(*bounds[nth], "invented")


def _of_right_ones(right: list[Sample], rng: Random) -> Iterator[Example]:
    for sample in rng.sample(right, min(len(right), _MOST_RIGHT)):
        yield _example(sample, _CRITICAL, (), kind="clean")
    by_pair = defaultdict[tuple[str | None, str | None], list[Sample]](list)
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
