"""Training examples of the grounding detector from labelled files in any readable format; glued spans are repaired.

The labels of a sample decide how it is used, not its file:

- spans by a model, with FAVA types: silver, after repair of glued spans;
- spans by people: natural; of several annotators without a `gold` layer, the majority of those who marked spans;
- a response without spans by people: clean; if it answers a question, wrong answers are made from it too;
- evidence without a response: clean text to quote and to corrupt;
- a translation: kept unchanged, for detectors that learn from translations.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.formats.reader import read
from veriglot.judging.base import runs
from veriglot.records import Annotation, Kind, Sample, Span, Task
from veriglot.records.languages import find_language
from veriglot.records.taxonomy import taxonomy
from veriglot.text.normalization import fold
from veriglot.text.segmentation import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.arrays import Bools, Float32s, Int64s

__all__ = [
    "HELD_OUT", "TYPES", "Answer", "Article", "Example", "Labelled", "Labels", "Mark", "labels_of",
    "majority", "read_labelled", "script_of_tag", "share_of",
]  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """An unsupported part of a response, half-open in code points, with its FAVA type if known."""

    start: int
    end: int
    type: str | None = None


@dataclass(frozen=True)
class Example:
    """One training response.

    Attributes:
        kind: origin: `silver`, `natural`, or the rule that made it (`clean`, `removed`, `changed`, `wrong`).
        source: name of the data set.
        group: examples of one group (same text, same reference) are never split between training and held-out data.
        language: BCP 47 tag.
        response: the text.
        passages: the evidence.
        question: the question, or None.
        marks: unsupported parts.
        ignored: ranges without weight in training, because label or text is damaged.
        shares: half-open ranges with the share of annotators who marked them, if known.
        evidence_language: BCP 47 tag of the evidence if it differs from the response's, else None.
        translation: whether the response translates the evidence.
        answer: half-open range of the right answer to the question in the first passage, if it occurs there once.
    """

    kind: str
    source: str
    group: str
    language: str | None
    response: str
    passages: tuple[str, ...]
    question: str | None = None
    marks: tuple[Mark, ...] = ()
    ignored: tuple[tuple[int, int], ...] = ()
    shares: tuple[tuple[int, int, float], ...] | None = None
    evidence_language: str | None = None
    translation: bool = False
    answer: tuple[int, int] | None = None


HELD_OUT = 0.1
"""The share of texts that trains nothing."""


def share_of(text: str) -> float:
    """A number between 0 and 1 from a hash of the text, uniformly distributed: for splits that never change."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") / 2.0**64


def script_of_tag(tag: str | None) -> str | None:
    """The script of a language; None if the language table does not have the language."""
    known = find_language(tag or "")
    return known.script if known is not None else None


# Repair of glued spans: when the generator replaced a word, the published text joins the old and the new word.
#
# In most silver files an entity or relation span reads `HellasRoma`: the deleted word and the inserted one, without a
# space. A detector would learn to recognise the join. `unglue` finds the join with the words of the language's
# references and clean text, and removes the old word. If it finds none, and a word of the span occurs nowhere else, the
# span is ignored in training.


_REPLACING = frozenset({"entity", "relation"})
_MIN_PART = 2  # code points, of both words
_TRUSTED = 1.0
_SEEN_WHOLE = 2  # a word with so many other occurrences is not glued


def vocabulary_of(example: Example) -> list[str]:
    """The case-folded words of an example's references, and of its response outside replaced spans."""
    folded = [fold(p[s:e]) for p in example.passages for s, e in words(p, example.language)]
    replaced = [m for m in example.marks if m.type in _REPLACING]
    for start, end in words(example.response, example.language):
        if not any(m.start < end and start < m.end for m in replaced):
            folded.append(fold(example.response[start:end]))
    return folded


def unglue(example: Example, vocabulary: Counter[str]) -> Example | None:
    """The example with glued spans repaired or ignored; None if spans overlap, which allows no safe repair."""
    parts = []
    marks = []
    ignored = []
    read = written = 0
    reference = "\n".join(example.passages)
    for mark in sorted(example.marks, key=lambda m: (m.start, m.end)):
        if mark.start < read:
            return None
        before = example.response[read : mark.start]
        inside = example.response[mark.start : mark.end]
        start = written + len(before)
        sound = True
        if mark.type in _REPLACING:
            inside, sound = _without_old(inside, vocabulary, reference)
        parts += [before, inside]
        read, written = mark.end, start + len(inside)
        marks.append(Mark(start, written, mark.type))
        if not sound:
            ignored.append((start, written))
    parts.append(example.response[read:])
    return replace(example, response="".join(parts), marks=tuple(marks), ignored=tuple(ignored))


def _without_old(span: str, vocabulary: Counter[str], reference: str) -> tuple[str, bool]:
    """The span without the deleted words, and whether the result is reliable."""
    best, seam = 0.0, 0
    for split in range(_MIN_PART, len(span) - _MIN_PART + 1):
        if span[split - 1].isalnum() and span[split].isalnum():
            trust = _trust(span, split, vocabulary, reference)
            if trust > best:
                best, seam = trust, split
    if best > _TRUSTED:
        return span[seam:], True
    return span, all(vocabulary[fold(span[s:e])] >= _SEEN_WHOLE for s, e in words(span))


def _trust(span: str, split: int, vocabulary: Counter[str], reference: str) -> float:
    """Evidence of a join at `split`: both words known, joined unknown, the first part in the reference."""
    old, new = span[:split], span[split:]
    last = old[words(old)[-1][0] :]
    first = new[slice(*words(new)[0])]
    known = min(vocabulary[fold(last)], vocabulary[fold(first)])
    whole = vocabulary[fold(last + first)]
    if not known or whole >= _SEEN_WHOLE or min(len(last), len(first)) < _MIN_PART:
        return 0.0
    trust = known / (1 + 3 * whole) * (len(last) + len(first))
    if old in reference:
        trust *= 10
    if last[-1].islower() and first[0].isupper():
        trust *= 10
    return trust


TYPES = tuple(taxonomy("fava").types)
"""The span types that are learned, in the order of the network's outputs."""

_MAX_PASSAGE = 3000  # code points of a passage of clean text, because articles can be books


@dataclass(frozen=True)
class Article:
    """Clean passages of one article, with questions about it."""

    group: str
    language: str
    passages: tuple[str, ...]
    questions: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """A right answer of a published data set, with its passage.

    Attributes:
        language: BCP 47 tag of answer and passage.
        passage: the text with the answer.
        question: the question.
        text: the answer.
        question_id: the same in every language of the question, or None.
        title: of the passage's article, or None.
    """

    language: str
    passage: str
    question: str
    text: str
    question_id: str | None = None
    title: str | None = None


class Labelled(msgspec.Struct):
    """All training data as read."""

    examples: list[Example] = []
    articles: list[Article] = []
    answers: list[Answer] = []
    translations: list[Sample] = []
    left_out: Counter[str] = msgspec.field(default_factory=Counter)


def read_labelled(paths: Iterable[str]) -> Labelled:
    """Read training data; samples that cannot be used are counted in `left_out`, by reason.

    Raises:
        InputError: a file cannot be read.
    """
    labelled = Labelled()
    silver = defaultdict[str, list[Example]](list)
    articles = defaultdict[tuple[str, tuple[str, ...]], list[Sample]](list)
    for path in paths:
        for sample in read(path):
            _sort(sample, labelled, silver, articles)
    for examples in silver.values():
        vocabulary = Counter(word for example in examples for word in vocabulary_of(example))
        for repaired in (unglue(example, vocabulary) for example in examples):
            if repaired is None:
                labelled.left_out["crossing spans"] += 1
            else:
                labelled.examples.append(repaired)
    for (language, passages), samples in articles.items():
        questions = tuple(s.question for s in samples if s.question)
        labelled.articles.append(Article(samples[0].id, language, passages, questions))
    return labelled


def _sort(
    sample: Sample,
    labelled: Labelled,
    silver: dict[str, list[Example]],
    articles: dict[tuple[str, tuple[str, ...]], list[Sample]],
) -> None:
    passages = tuple(filter(str.strip, sample.passages))
    if not passages:
        labelled.left_out["no evidence"] += 1
    elif "reference_garbled" in sample.meta:
        labelled.left_out["garbled evidence"] += 1
    elif sample.language is None:
        labelled.left_out["no language"] += 1
    elif not sample.response.strip():
        articles[sample.language, tuple(p[:_MAX_PASSAGE] for p in passages)].append(sample)
    elif not sample.annotations:
        labelled.left_out["no label"] += 1
    elif sample.task is Task.TRANSLATION:
        labelled.translations.append(sample)
    elif any(a.kind is Kind.HUMAN for a in sample.annotations):
        _natural(sample, labelled)
    else:
        silver[sample.language].append(_example(sample, "silver", "silver", sample.annotations[0].spans or ()))


def _example(
    sample: Sample,
    kind: str,
    source: str,
    marks: Iterable[Mark | Span],
    shares: tuple[tuple[int, int, float], ...] = (),
) -> Example:
    languages = {passage.language for passage in sample.evidence if passage.language is not None}
    across = len(languages) == 1 and sample.language not in languages  # from the languages of the passages
    return Example(
        kind,
        source,
        _group(sample),
        sample.language,
        sample.response,
        tuple(filter(str.strip, sample.passages)),
        sample.question,
        tuple(Mark(mark.start, mark.end, mark.type if mark.type in TYPES else None) for mark in marks),
        shares=shares or None,
        evidence_language=languages.pop() if across else None,
    )


def _group(sample: Sample) -> str:
    return str(sample.meta.get("bbcid") or sample.meta.get("group") or sample.id)


def _natural(sample: Sample, labelled: Labelled) -> None:
    """Add a sample with labels by people."""
    layers = [a for a in sample.annotations if a.kind is Kind.HUMAN and a.spans is not None]
    gold = next((a for a in layers if a.annotator == "gold"), None)
    if gold is not None and gold.spans == () and sample.question and sample.meta.get("answer_in_evidence"):
        passage = next(filter(str.strip, sample.passages))
        labelled.answers.append(
            Answer(
                sample.language or "", passage, sample.question, sample.response, sample.meta.get("question_id"),
                sample.evidence[0].title,
            )
        )  # fmt: skip
    elif gold is not None:
        shares = tuple((u.start, u.end, u.probability) for u in gold.units or () if u.probability is not None)
        labelled.examples.append(_example(sample, "natural", str(sample.task), gold.spans or (), shares))
    elif layers:
        labelled.examples.append(_example(sample, "natural", str(sample.task), majority(sample, layers)))
    else:
        labelled.left_out["no spans"] += 1


def majority(sample: Sample, layers: Sequence[Annotation]) -> tuple[Mark, ...]:
    """The words that more than half of the annotators marked, as contiguous spans."""
    votes = np.zeros(len(sample.response), np.int64)
    for layer in layers:
        marked = np.zeros(len(votes), bool)
        for span in layer.spans or ():
            marked[span.start : span.end] = True
        votes += marked
    return tuple(Mark(*run) for run in runs(2 * votes > len(layers), np.zeros(len(votes), np.int64)))


# Examples as arrays: features, labels and weights of every word.


# About one of ten words in a sentence is replaced, and most spans have clean borders only after repair. Without extra
# weight for them the network learns to mark only whole sentences.
_REPLACED_WEIGHT = 2.0


@dataclass(frozen=True)
class Labels:
    """An example with the labels of its words.

    Attributes:
        example: the example.
        target: 1 for unsupported words, 0 for supported ones, between if annotators disagree, shape (n,).
        weight: weight of each word in training, 0 to ignore it, shape (n,).
        types: of FAVA, shape (n, 6).
    """

    example: Example
    target: Float32s
    weight: Float32s
    types: Float32s

    def __len__(self) -> int:
        return len(self.target)

    @property
    def is_answer(self) -> bool:
        """Whether it is a natural answer to a question; the first stage of the training does not use these."""
        return self.example.source == "qa"


def labels_of(example: Example, bounds: Int64s, markup: Bools) -> Labels:
    """The labels of words.

    Args:
        example: the response with its marks.
        bounds: its words, half-open in code points, shape (n, 2).
        markup: words that are markup, not content, shape (n,).
    """
    target = np.zeros(len(bounds), np.float32)
    types = np.zeros((len(bounds), len(TYPES)), np.float32)
    weight = np.ones(len(bounds), np.float32)
    for mark in example.marks:
        inside = (bounds[:, 0] < mark.end) & (bounds[:, 1] > mark.start)
        target[inside] = 1
        if mark.type is not None:
            types[inside, TYPES.index(mark.type)] = 1
        if mark.type in _REPLACING and example.kind == "silver":
            weight[inside] = _REPLACED_WEIGHT
    if example.shares is not None:
        by_place = np.zeros(len(example.response), np.float64)
        for start, end, share in example.shares:
            by_place[start:end] = share
        sums = np.concatenate([[0.0], np.cumsum(by_place)])
        lengths = np.maximum(bounds[:, 1] - bounds[:, 0], 1)  # a token of spaces alone has length 0
        target = np.asarray((sums[bounds[:, 1]] - sums[bounds[:, 0]]) / lengths, np.float32)
    weight[markup] = 0
    for start, end in example.ignored:
        weight[(bounds[:, 0] < end) & (bounds[:, 1] > start)] = 0
    return Labels(example, target, weight, types)
