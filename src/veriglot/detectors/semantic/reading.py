"""From a sample to arrays: what the grounding detector sees of every word, and what its meaning adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.document import Document
from veriglot.detectors.grounding.features import Extract, extract
from veriglot.detectors.grounding.transliteration import SAMPLE, beginning_of, main_script
from veriglot.detectors.semantic.matches import matches
from veriglot.detectors.semantic.selection import Close, laid_out, selected
from veriglot.detectors.semantic.sentence_features import repetition, sentence_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.grounding.lexicon import Lexicon
    from veriglot.detectors.semantic.vectors import TextVectors, Vectors

__all__ = ["ACROSS", "NAME", "OTHER_SCRIPT", "READING_VERSION", "Held", "Reading", "base_of", "read_sample"]

READING_VERSION = 1  # part of the weights: a change of what is read needs new ones
NAME, ACROSS, OTHER_SCRIPT = 13, 18, 19  # where some of the further columns stand, for training
_MOST_ASKED = 40  # sentences of a response that are encoded once more, behind the question; none of a longer one
_LONGEST_QUESTION = 1000  # words of it whose meaning is compared; by their forms all are
_LONGEST_RATIO = 3.0


@dataclass(frozen=True)
class Held:
    """A response and what it is held against.

    Attributes:
        response, passages, question: the texts; the question may be None.
        language: BCP 47 tag of the response, and of the question.
        evidence_language: of the evidence.
        translation: whether the response translates the evidence.
        strong: whether the encoder is good in the language of the response, and of the evidence.
    """

    response: str
    passages: Sequence[str]
    question: str | None
    language: str | None
    evidence_language: str | None
    translation: bool = False
    strong: tuple[bool, bool] = (True, True)

    @property
    def across(self) -> bool:
        """Whether response and evidence are in different languages."""
        return base_of(self.language) != base_of(self.evidence_language)


@dataclass(frozen=True)
class Reading:
    """One sample as arrays; d numbers a word vector.

    Attributes:
        extract: what the grounding detector sees.
        columns: further features of every word, float32, shape (n, c).
        words: vectors of the response's words, shape (n, d).
        question: vectors of the question's words, shape (q, d).
        slots: the evidence word in each slot, or -1, shape (l,), a multiple of the stride.
        evidence: the vector in each slot, shape (l, d).
        ours, theirs, value: matches by form: word, slot, how well; shape (k,).
        said: the pieces of the response, half-open in code points, shape (r, 2).
        pieces: of the evidence: passage, and half-open in its code points, shape (s, 3).
        close: how close these are to the response and the question.
    """

    extract: Extract
    columns: NDArray[np.float32]
    words: NDArray[np.float32]
    question: NDArray[np.float32]
    slots: NDArray[np.int64]
    evidence: NDArray[np.float32]
    ours: NDArray[np.int64]
    theirs: NDArray[np.int64]
    value: NDArray[np.float32]
    said: NDArray[np.int64]
    pieces: NDArray[np.int64]
    close: Close


def read_sample(held: Held, lexicon: Lexicon, vectors: Vectors) -> Reading | None:
    """Everything that the network is given of a sample; None where response or evidence hold no word."""
    found = extract(
        held.response, held.passages, held.question, held.language, lexicon, evidence_language=held.evidence_language
    )
    if found is None:
        return None
    whole = vectors.sentences(held.response, held.language)
    evidence = _Evidence(held, found.evidence, vectors)
    asked = vectors.whole([held.question])[0] if held.question else None
    pairs = matches(found.response, found.evidence, across=held.across)
    close = Close(
        whole.vectors @ evidence.vectors.T,
        None if asked is None else evidence.vectors @ asked,
        pairs.shared(evidence.piece, len(evidence.vectors)),
    )
    chosen = selected(close.to_all(), evidence.piece)
    slots = laid_out(chosen, found.evidence.passage)
    slot_of = np.full(len(found.evidence), -1, np.int64)
    slot_of[slots[slots >= 0]] = np.flatnonzero(slots >= 0)
    ours, theirs, value = pairs.with_words(chosen)
    by_sentence = sentence_columns(whole.vectors, evidence.vectors, asked, _together(held, whole, vectors))
    columns = [
        by_sentence[whole.piece_of(found.response.bounds)],
        pairs.name[:, None],
        repetition(found.response, found.evidence),
        np.repeat(_of_sample(held)[None], len(found.response), axis=0),
    ]
    return Reading(
        extract=found,
        columns=np.concatenate(columns, axis=1).astype(np.float32),
        words=vectors.words(held.response, held.language, found.response.bounds),
        question=_question_words(held, vectors),
        slots=slots,
        evidence=evidence.words(slots),
        ours=ours,
        theirs=slot_of[theirs],
        value=value,
        said=whole.bounds,
        pieces=evidence.bounds,
        close=close,
    )


class _Evidence:
    """The pieces of all passages as one list."""

    def __init__(self, held: Held, document: Document, vectors: Vectors) -> None:
        self._held, self._document, self._from = held, document, vectors
        self.piece = np.zeros(len(document), np.int64)
        parts: list[NDArray[np.float32]] = []
        bounds: list[NDArray[np.int64]] = []
        self._first: list[int] = []
        count = 0
        for passage, text in enumerate(held.passages):
            whole = vectors.sentences(text, held.evidence_language)
            words = np.flatnonzero(document.passage == passage)
            self.piece[words] = count + whole.piece_of(self._bounds(words, passage))
            self._first.append(count)
            count += len(whole.bounds)
            parts.append(whole.vectors)
            bounds.append(np.insert(whole.bounds, 0, passage, axis=1))
        self.vectors = np.concatenate(parts)
        self.bounds = np.concatenate(bounds)

    def _bounds(self, words: NDArray[np.int64], passage: int) -> NDArray[np.int64]:
        bounds: NDArray[np.int64] = self._document.bounds[words] - self._document.offsets[passage]
        return bounds

    def words(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vector in each slot; zeros in empty ones."""
        chosen = slots[slots >= 0]
        passages = self._document.passage[chosen]
        rows = []
        for passage in np.unique(passages).tolist():
            words = chosen[passages == passage]
            first = self._first[passage]
            wanted = (np.unique(self.piece[words]) - first).tolist()
            text = self._held.passages[passage]
            bounds = self._bounds(words, passage)
            rows.append(self._from.words(text, self._held.evidence_language, bounds, wanted))
        found = np.concatenate(rows)
        laid = np.zeros((len(slots), found.shape[1]), found.dtype)
        laid[slots >= 0] = found
        return laid


def _together(held: Held, whole: TextVectors, vectors: Vectors) -> NDArray[np.float32] | None:
    """The vector of the question together with each sentence of the response; all zeros where these are over forty."""
    if not held.question:
        return None
    texts = [f"{held.question} {held.response[low:high].strip()}" for low, high in whole.bounds[:_MOST_ASKED].tolist()]
    found = np.zeros_like(whole.vectors)
    if len(whole.bounds) <= _MOST_ASKED:
        found[:] = vectors.whole(texts)
    return found


def _question_words(held: Held, vectors: Vectors) -> NDArray[np.float32]:
    question = held.question or " "
    bounds = Document([question], held.language).bounds[:_LONGEST_QUESTION]
    return vectors.words(question, held.language, bounds)


def _of_sample(held: Held) -> NDArray[np.float32]:
    """Languages, scripts, strength of the encoder, task, and by how much a translation is longer than its source."""
    ours, theirs = main_script(held.response[:SAMPLE]), main_script(beginning_of(held.passages))
    longer = len(held.response) / max(1, len(" ".join(held.passages)))
    ratio = min(_LONGEST_RATIO, longer) if held.translation else 0.0
    return np.array([held.across, ours != theirs, held.translation, *held.strong, ratio], np.float32)


def base_of(tag: str | None) -> str:
    """The language of a BCP 47 tag, without script and region."""
    return (tag or "").split("-")[0]
