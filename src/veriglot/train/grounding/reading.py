"""From labelled files in any readable format to training examples.

What a sample teaches follows from what its annotators said, not from the file it stood in:

- spans by a model, with FAVA types: silver, after repair of glued spans;
- spans by people: natural; several annotators without a `gold` layer count by majority of those who marked;
- a response that people found nothing in: clean, and where it answers a question, a source of wrong answers;
- evidence without a response: clean text to quote and to change;
- a translation: kept as it is, for what learns from translations.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from veriglot.formats import read
from veriglot.records import Kind, Task, taxonomy
from veriglot.train.grounding.example import Example, Mark
from veriglot.train.grounding.glue import unglue, vocabulary_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.records import Annotation, Sample

__all__ = ["Answer", "Article", "Labelled", "majority", "read_labelled"]

_MAX_PASSAGE = 3000  # code points of a passage of clean text: articles can be books
_FAVA = frozenset(taxonomy("fava").types)


@dataclass(frozen=True)
class Article:
    """Clean passages of one article, with questions about it."""

    group: str
    language: str
    passages: tuple[str, ...]
    questions: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """A right answer, by construction, with the passage that holds it.

    Attributes:
        group: examples of one group never part between training and held-out data.
        language: BCP 47 tag of answer and passage.
        passage: the text that holds the answer.
        question: what it answers.
        text: the answer.
        question_id: the same in every language that the question stands in, or None.
        title: of the article that the passage is of, or None.
    """

    group: str
    language: str
    passage: str
    question: str
    text: str
    question_id: str | None = None
    title: str | None = None


@dataclass
class Labelled:
    """All that was read."""

    examples: list[Example] = field(default_factory=list)
    articles: list[Article] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    translations: list[Sample] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def read_labelled(paths: Iterable[str]) -> Labelled:
    """Read training data; samples that cannot teach are counted in `left_out`, by reason.

    Raises:
        InputError: a file cannot be read.
    """
    found = Labelled()
    silver: dict[str, list[Example]] = defaultdict(list)
    articles: dict[tuple[str, tuple[str, ...]], list[Sample]] = defaultdict(list)
    for path in paths:
        for sample in read(path):
            _sort(sample, found, silver, articles)
    for examples in silver.values():
        _add_silver(examples, found)
    for (language, passages), samples in articles.items():
        questions = tuple(s.question for s in samples if s.question)
        found.articles.append(Article(samples[0].id, language, passages, questions))
    return found


def _sort(
    sample: Sample,
    found: Labelled,
    silver: dict[str, list[Example]],
    articles: dict[tuple[str, tuple[str, ...]], list[Sample]],
) -> None:
    passages = tuple(p.text for p in sample.evidence if p.text.strip())
    if not passages:
        found.left_out["no evidence"] += 1
    elif "reference_garbled" in sample.meta:
        found.left_out["garbled evidence"] += 1
    elif sample.language is None:
        found.left_out["no language"] += 1
    elif not sample.response.strip():
        articles[sample.language, tuple(p[:_MAX_PASSAGE] for p in passages)].append(sample)
    elif not sample.annotations:
        found.left_out["no label"] += 1
    elif sample.task is Task.TRANSLATION:
        found.translations.append(sample)
    elif any(a.kind is Kind.HUMAN for a in sample.annotations):
        _add_natural(sample, passages, found)
    else:
        silver[sample.language].append(_silver(sample, sample.annotations[0], passages))


def _silver(sample: Sample, layer: Annotation, passages: tuple[str, ...]) -> Example:
    marks = tuple(Mark(s.start, s.end, s.type if s.type in _FAVA else None) for s in layer.spans or ())
    group = _group(sample)
    return Example(
        "silver", "silver", group, sample.language, sample.response, passages, sample.question, marks,
        evidence_language=_evidence_language(sample),
    )  # fmt: skip


def _evidence_language(sample: Sample) -> str | None:
    """The language that the passages say they are in, where that is one, and not the response's."""
    said = {passage.language for passage in sample.evidence if passage.language is not None}
    return said.pop() if len(said) == 1 and sample.language not in said else None


def _group(sample: Sample) -> str:
    return str(sample.meta.get("bbcid") or sample.meta.get("group") or sample.id)


def _add_silver(examples: list[Example], found: Labelled) -> None:
    vocabulary: Counter[str] = Counter()
    for example in examples:
        vocabulary.update(vocabulary_of(example))
    for example in examples:
        repaired = unglue(example, vocabulary)
        if repaired is None:
            found.left_out["crossing spans"] += 1
        else:
            found.examples.append(repaired)


def _add_natural(sample: Sample, passages: tuple[str, ...], found: Labelled) -> None:
    layers = [a for a in sample.annotations if a.kind is Kind.HUMAN and a.spans is not None]
    gold = next((a for a in layers if a.annotator == "gold"), None)
    if gold is not None and gold.spans == () and sample.question and sample.meta.get("answer_in_evidence"):
        found.answers.append(
            Answer(
                _group(sample), sample.language or "", passages[0], sample.question, sample.response,
                sample.meta.get("question_id"), sample.evidence[0].title,
            )
        )  # fmt: skip
        return
    if gold is not None:
        marks = tuple(Mark(s.start, s.end, s.type if s.type in _FAVA else None) for s in gold.spans or ())
        shares = tuple((u.start, u.end, u.probability) for u in gold.units or () if u.probability is not None)
    elif layers:
        marks, shares = majority(sample, layers), ()
    else:
        found.left_out["no spans"] += 1
        return
    found.examples.append(
        Example(
            "natural",
            str(sample.task),
            _group(sample),
            sample.language,
            sample.response,
            passages,
            sample.question,
            marks,
            shares=shares or None,
            evidence_language=_evidence_language(sample),
        )
    )


def majority(sample: Sample, layers: Sequence[Annotation]) -> tuple[Mark, ...]:
    """What more than half of the annotators marked, as runs."""
    votes = [0] * (len(sample.response) + 1)
    for layer in layers:
        marked: set[int] = set()
        for span in layer.spans or ():
            marked.update(range(span.start, span.end))
        for place in marked:
            votes[place] += 1
    marks, start = [], None
    for place, count in enumerate(votes):
        if 2 * count > len(layers):
            start = place if start is None else start
        elif start is not None:
            marks.append(Mark(start, place))
            start = None
    return tuple(marks)
