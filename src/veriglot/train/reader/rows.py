"""From parallel paragraphs to sequences to read, with what is known of their tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.semantic.pairing import shown
from veriglot.detectors.semantic.selection import Close
from veriglot.detectors.semantic.vectors import pieces
from veriglot.train.grounding.example import Example
from veriglot.train.semantic.crossing import answers_across, evidence_language, sentences_across

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from random import Random

    from numpy.typing import NDArray

    from veriglot.encoders import Encoder
    from veriglot.encoders.e5_reader import Pair, Tokeniser
    from veriglot.train.grounding.commonness import Commonness
    from veriglot.train.semantic.parallel import Paragraph

__all__ = ["Row", "Rows", "drawn"]


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


def drawn(found: Sequence[Paragraph], commonness: Commonness, rng: Random) -> Iterator[Example]:
    """Responses across languages, right and wrong, and every question once without any response."""
    yield from answers_across(found, rng)
    yield from sentences_across(found, commonness, rng)
    for paragraph in found:
        for language, answers in paragraph.versions.items():
            for answer in answers:
                theirs = evidence_language(paragraph, language, rng)
                yield Example(
                    "asked", "parallel answers", paragraph.group, language, "", (paragraph.passage(theirs),),
                    answer.question, evidence_language=theirs if theirs != language else None,
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

    def knows(self, found: Iterable[Paragraph]) -> None:
        """Take the paragraphs that examples are of: they say where the right answers stand."""
        for paragraph in found:
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
        said = self._pieces_of(example.response, example.language) if example.response else np.zeros((0, 2), np.int64)
        place = self._answer_of(example)
        for one in shown(
            self._tokeniser, example.response, said, example.question, texts, self._close(example, said, texts)
        ):
            target = np.zeros(len(one.bounds), np.float32)
            for mark in example.marks:
                target[(one.bounds[:, 0] < mark.end) & (one.bounds[:, 1] > mark.start)] = 1
            answer = None
            if place is not None:
                stands = bounds[one.evidence[:, 0], 0][:, None] + one.evidence[:, 1:]
                answer = (stands[:, 0] < place[1]) & (stands[:, 1] > place[0])
            yield Row(one.pair, target, answer if answer is not None and answer.any() else None)

    def _answer_of(self, example: Example) -> tuple[int, int] | None:
        key = self._asked.get((f"{example.language} {example.question}", example.group))
        text = self._answers.get((example.passages[0], key)) if key is not None else None
        start = example.passages[0].find(text) if text else -1
        return (start, start + len(text)) if text and start >= 0 else None

    def _close(self, example: Example, said: NDArray[np.int64], texts: Sequence[str]) -> Close:
        theirs = self._of_texts(texts)
        question = theirs @ self._of_texts([example.question])[0] if example.question else None
        response = np.zeros((1, len(texts)), np.float32)
        if len(said):
            response = self._of_texts([example.response[low:high] for low, high in said.tolist()]) @ theirs.T
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
