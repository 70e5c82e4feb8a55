"""Training examples of the reader: cloze questions from parallel paragraphs, as sequences with token labels.

People's questions are dear: a parallel set has a few to a paragraph, and a reader soon knows them by heart. What stands
at a gap can be asked of every name, number and phrase, and to find it in the paragraph's other languages takes reading
too. The words left out are chosen in one language and laid onto the others by alignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.datasets.translation.alignment import side_of
from veriglot.datasets.translation.projection import project
from veriglot.detectors.semantic.features import Close, pieces
from veriglot.detectors.semantic.reader import shown
from veriglot.text.segmentation import sentences, space_of, words
from veriglot.training.grounding.examples import Answer, Example
from veriglot.training.semantic.examples import Paragraph, answers_across, evidence_language, sentences_across

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
    from random import Random

    from numpy.typing import NDArray

    from veriglot.datasets.translation.alignment import Aligner, Side
    from veriglot.encoders.base import Encoder
    from veriglot.encoders.e5 import Pair, Tokeniser
    from veriglot.training.grounding.synthetic_data import Commonness

__all__ = ["Row", "Rows", "clozes", "drawn", "gaps"]


_SPANS = 10  # of a paragraph
_RARE = 9.0  # below 12 by how common a word is
_LONGEST = 4  # such words in a row; where another follows one word later, up to there
_SURE = 0.6  # quality of a projection that is taken
_TAKEN = 0.5  # share of gaps that are asked for at a time
_KEPT = (5, 14)  # words of the sentence that a question keeps, at least and at most
_DROPPED = 0.15  # share of these that are left out too
_FRONTED = 0.4  # share of questions with the gap at the front
_GAPS = ("…", "___", "?", "")
_ENDS = ("?", "?", "")


@dataclass(frozen=True)
class Gaps:
    """What can be left out of a paragraph.

    Attributes:
        paragraph: the paragraph.
        places: language to number of the gap to half-open code points of the passage.
    """

    paragraph: Paragraph
    places: Mapping[str, Mapping[int, tuple[int, int]]]


def gaps(paragraphs: Sequence[Paragraph], aligner: Aligner, commonness: Commonness, rng: Random) -> Iterator[Gaps]:
    """What can be left out of each paragraph, in English or its first language, and where that stands in the others.

    Words that stand in a passage twice, or whose place in a translation is not sure, are not taken there.
    """
    for paragraph in paragraphs:
        pivot = "en" if "en" in paragraph.versions else min(paragraph.versions)
        sides = {tag: side_of(paragraph.passage(tag), tag) for tag in paragraph.versions}
        spans = dict(enumerate(_spans(sides[pivot], commonness, rng)))
        places = {pivot: spans}
        for tag, side in sides.items():
            if tag != pivot:
                places[tag] = _laid(sides[pivot], side, spans, aligner)
        yield Gaps(paragraph, {tag: there for tag, there in places.items() if there})


def _spans(side: Side, commonness: Commonness, rng: Random) -> list[tuple[int, int]]:
    """Numbers, names and rare words, or a few words between two of them, that do not overlap: half-open."""
    bounds = list(side.words)
    telling = _telling(side, commonness)
    starts = [nth for nth, tells in enumerate(telling) if tells]
    rng.shuffle(starts)
    taken: set[int] = set()
    spans = []
    for first in starts:
        last = first
        while last + 1 < len(bounds) and telling[last + 1] and _beside(side, last) and last + 1 - first < _LONGEST:
            last += 1
        further = last + rng.choice((0, 0, 0, 2))
        if further < len(bounds) and telling[further] and all(_beside(side, nth) for nth in range(last, further)):
            last = further
        start, end = bounds[first][0], bounds[last][1]
        if taken.isdisjoint(range(first - 1, last + 2)) and side.text.count(side.text[start:end]) == 1:
            taken.update(range(first, last + 1))
            spans.append((start, end))
        if len(spans) == _SPANS:
            break
    return sorted(spans)


def _telling(side: Side, commonness: Commonness) -> list[bool]:
    """Whether each word is a number, a name as its capital says, or rare."""
    bounds = list(side.words)
    begins = {start for start, _ in sentences(side.text, side.tag)}
    return [
        tells > _RARE
        or any(c.isdigit() for c in side.text[start:end])
        or (side.text[start].isupper() and start not in begins)
        for tells, (start, end) in zip(12.0 - commonness.of(side.text, bounds), bounds, strict=True)
    ]


def _beside(side: Side, nth: int) -> bool:
    """Whether nothing but a space, a hyphen or an apostrophe, if that, stands between a word and the next."""
    return side.text[side.words[nth][1] : side.words[nth + 1][0]] in {"", " ", "-", "'", "’"}


def _laid(
    source: Side, target: Side, spans: Mapping[int, tuple[int, int]], aligner: Aligner
) -> dict[int, tuple[int, int]]:
    """Where each span stands in a translation, of those whose place is sure and whose words stand there once."""
    aligned = aligner.align(source, target)
    result = {}
    for number, span in spans.items():
        there = project(*aligned, span)
        if there is not None and len(there.parts) == 1 and there.quality >= _SURE:
            start, end = there.parts[0]
            if target.text.count(target.text[start:end]) == 1:
                result[number] = start, end
    return result


def clozes(all_gaps: Sequence[Gaps], rng: Random) -> list[Paragraph]:
    """The paragraphs with a question about some of their gaps, in every language; each call draws and words anew."""
    made = []
    for gap in all_gaps:
        taken = {number for number in range(_SPANS) if rng.random() < _TAKEN}
        versions = {tag: answers for tag in gap.places if (answers := list(_asked(gap, tag, taken, rng)))}
        if len(versions) > 1:
            made.append(Paragraph(gap.paragraph.group, versions))
    return made


def _asked(gap: Gaps, tag: str, taken: Set[int], rng: Random) -> Iterator[Answer]:
    """The questions about a paragraph in one language; those about a gap have the same id in all of them."""
    passage, like = gap.paragraph.passage(tag), gap.paragraph.versions[tag][0]
    first = gap.paragraph.passage(min(gap.paragraph.versions))
    bounds = sentences(passage, tag)
    for number in sorted(taken & gap.places[tag].keys()):
        start, end = gap.places[tag][number]
        low, high = next(((low, high) for low, high in bounds if low <= start < high), (0, len(passage)))
        question = _with_gap(passage[low:start], passage[end : max(high, end)], tag, rng)
        yield Answer(like.group, tag, passage, question, passage[start:end], f"gap {number} {first}", like.title)


def _with_gap(before: str, after: str, tag: str, rng: Random) -> str:
    """Some of the words around a gap, in their order."""
    size = rng.randint(*_KEPT)
    ours, after_words = ([text[start:end] for start, end in words(text, tag)] for text in (before, after))
    first = min(len(ours), max(rng.randint(0, size), size - len(after_words)))
    nearest = ours[len(ours) - first :], after_words[: size - first]
    ours, after_words = ([word for word in part if rng.random() >= _DROPPED] for part in nearest)
    gap = rng.choice(_GAPS)
    parts = [gap, *ours, *after_words] if rng.random() < _FRONTED else [*ours, gap, *after_words]
    return space_of(tag).join(part for part in parts if part) + rng.choice(_ENDS)


@dataclass(frozen=True)
class Row:
    """One sequence to learn from.

    Attributes:
        pair: its tokens.
        target: 1 for unsupported tokens of the response, shape (t,), which may be none.
        answer: which tokens of the evidence are the right answer to the question, shape (e,), or None where there is no
            question or its answer is not among them.
    """

    pair: Pair
    target: NDArray[np.float32]
    answer: NDArray[np.bool_] | None


def drawn(paragraphs: Sequence[Paragraph], commonness: Commonness, rng: Random) -> Iterator[Example]:
    """Responses across languages, right and wrong, and every question once without any response."""
    yield from answers_across(paragraphs, rng)
    yield from sentences_across(paragraphs, commonness, rng)
    for paragraph in paragraphs:
        for language, answers in paragraph.versions.items():
            for answer in answers:
                other_language = evidence_language(paragraph, language, rng)
                yield Example(
                    "asked", "parallel answers", paragraph.group, language, "", (paragraph.passage(other_language),),
                    answer.question, evidence_language=other_language if other_language != language else None,
                )  # fmt: skip


class Rows:
    """Makes rows of examples, and keeps what it finds out of their texts.

    Args:
        encoder: of the sentences that are chosen by.
        tokeniser: the reader's.
    """

    def __init__(self, encoder: Encoder, tokeniser: Tokeniser) -> None:
        self._encoder, self._tokeniser = encoder, tokeniser
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._pieces: dict[tuple[str, str | None], NDArray[np.int64]] = {}
        self._asked: dict[tuple[str, str], str] = {}
        self._answers: dict[tuple[str, str], str] = {}

    def knows(self, paragraphs: Iterable[Paragraph]) -> None:
        """Take the paragraphs that examples are of: they say where the right answers stand."""
        for paragraph in paragraphs:
            for language, answers in paragraph.versions.items():
                for answer in answers:
                    key = answer.question_id or ""
                    self._asked[f"{language} {answer.question}", paragraph.group] = key
                    self._answers.setdefault((paragraph.passage(language), key), answer.text)

    def of(self, examples: Iterable[Example]) -> list[Row]:
        """The rows, in the order of the examples; a response that is longer than a sequence has several."""
        return [row for example in examples for row in self._of(example)]

    def _of(self, example: Example) -> Iterator[Row]:
        passage, tag = example.passages[0], example.evidence_language or example.language
        bounds = self._pieces_of(passage, tag)
        texts = [passage[low:high] for low, high in bounds.tolist()]
        response = (
            self._pieces_of(example.response, example.language) if example.response else np.zeros((0, 2), np.int64)
        )
        answer_tokens = self._answer_of(example)
        for pair in shown(
            self._tokeniser, example.response, response, example.question, texts, self._close(example, response, texts)
        ):
            target = np.zeros(len(pair.bounds), np.float32)
            for mark in example.marks:
                target[(pair.bounds[:, 0] < mark.end) & (pair.bounds[:, 1] > mark.start)] = 1
            answer = None
            if answer_tokens is not None:
                stands = bounds[pair.evidence[:, 0], 0][:, None] + pair.evidence[:, 1:]
                answer = (stands[:, 0] < answer_tokens[1]) & (stands[:, 1] > answer_tokens[0])
            yield Row(pair.pair, target, answer if answer is not None and answer.any() else None)

    def _answer_of(self, example: Example) -> tuple[int, int] | None:
        key = self._asked.get((f"{example.language} {example.question}", example.group))
        text = self._answers.get((example.passages[0], key)) if key is not None else None
        start = example.passages[0].find(text) if text else -1
        return (start, start + len(text)) if text and start >= 0 else None

    def _close(self, example: Example, bounds: NDArray[np.int64], texts: Sequence[str]) -> Close:
        pieces = self._of_texts(texts)
        question = pieces @ self._of_texts([example.question])[0] if example.question else None
        response = np.zeros((1, len(texts)), np.float32)
        if len(bounds):
            response = self._of_texts([example.response[low:high] for low, high in bounds.tolist()]) @ pieces.T
        return Close(response, question, np.zeros(len(texts), np.float32))

    def _of_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._encoder.sentences(new), strict=True))
        return np.stack([self._vectors[text] for text in texts])

    def _pieces_of(self, text: str, tag: str | None) -> NDArray[np.int64]:
        if (text, tag) not in self._pieces:
            self._pieces[text, tag] = pieces(text, tag)
        return self._pieces[text, tag]
