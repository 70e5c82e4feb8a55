"""Features of the semantic detector: words of response and evidence matched by form and by meaning, as arrays."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np
from anyascii import anyascii
from rapidfuzz import fuzz
from rapidfuzz.process import cdist

from veriglot.detectors.grounding.document import Document, mixed
from veriglot.detectors.grounding.features import Extract, extract, number_values
from veriglot.text.segmentation import sentences
from veriglot.text.unicode import main_script

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.grounding.document import Lexicon
    from veriglot.encoders.base import Encoder

    Float32s = NDArray[np.float32]
    Int64s = NDArray[np.int64]
    UInt64s = NDArray[np.uint64]

__all__ = [
    "ACROSS",
    "NAME",
    "OTHER_SCRIPT",
    "READING_VERSION",
    "STRIDE",
    "Case",
    "Close",
    "EncoderVectors",
    "Reading",
    "base_of",
    "pieces",
    "read_sample",
]


# Names across scripts: words written in Latin letters and reduced to their consonants, so that spellings meet.
#
# `Luther`, `Лютер`, `لوثر` and `लूथर` all become `ltl`. Vowels go because half of the world's scripts leave them out,
# and sounds that transliteration confuses are made one (`consonants.json`). So rough a form meets by chance where it is
# short; a match of short forms counts for less.


_NO_LETTER = re.compile("[^a-z]")
_INNER_VOWEL = re.compile("(?<=.)[aeiouy]")
_DOUBLED = re.compile(r"(.)\1+")
_VOWELS = frozenset("aeiouy")
_FULL = 4  # consonants from which on a match counts in full
_LEAST = 2  # consonants below which nothing is compared
_CUT = 60.0  # per cent of likeness below which two forms have nothing to do with each other


@cache
def _confused() -> list[tuple[str, str]]:
    """Letters and groups with the one that stands for them, in the order of replacement."""
    table = msgspec.json.decode(files(__package__).joinpath("consonants.json").read_bytes(), type=list[tuple[str, str]])
    return [(old, new) for old, new in table]


@lru_cache(maxsize=1 << 17)
def skeleton(word: str) -> str:
    """The consonants of a word of any script in Latin letters, and `a` for a vowel that it begins with."""
    letters = _NO_LETTER.sub("", anyascii(word).lower())
    for old, new in _confused():
        letters = letters.replace(old, new)
    letters = _INNER_VOWEL.sub("", letters)
    if letters and letters[0] in _VOWELS:
        letters = "a" + letters[1:]
    return _DOUBLED.sub(r"\1", letters)


def likeness(ours: Sequence[str], others: Sequence[str]) -> Float32s:
    """How alike the skeletons of words are, 0 to 1, shape (len(ours), len(others)); 0 for short or unlike ones."""
    similarity = np.zeros((len(ours), len(others)), np.float32)
    first, second = [skeleton(word) for word in ours], [skeleton(word) for word in others]
    rows = np.array([i for i, form in enumerate(first) if len(form) >= _LEAST], np.int64)
    columns = np.array([i for i, form in enumerate(second) if len(form) >= _LEAST], np.int64)
    if len(rows) and len(columns):
        alike = cdist(
            [first[i] for i in rows],
            [second[i] for i in columns],
            scorer=fuzz.ratio,
            score_cutoff=_CUT,
            dtype=np.float32,
            workers=1,
        )
        trusted = np.minimum(_trust(first, rows)[:, None], _trust(second, columns)[None])
        similarity[np.ix_(rows, columns)] = alike / 100 * trusted
    return similarity


def _trust(forms: Sequence[str], chosen: Int64s) -> Float32s:
    """What a match of each of the chosen forms counts for, by its length."""
    return np.array([min(1.0, len(forms[i]) / _FULL) for i in chosen.tolist()], np.float32)


# Which word of the evidence is, by its form, the same as a word of the response: stem, value of a number, or name.
#
# Texts that say one word over and over have as many matches as the product of their lengths. So what is kept is which
# forms match, and pairs of words are made where they are asked for, a bounded number at a time.


_NAME = 0.9  # a name that is spelt alike counts for a little less than the same word
_LEAST_ALIKE = 0.55
_FORMS = 512  # forms of the response that are compared with those of the evidence at a time
_PAIRS = 1 << 20  # pairs of words that are held at a time while sentences are counted


@dataclass(frozen=True)
class _Forms:
    """Words by the number of their form, -1 for none, and which forms match."""

    ours: Int64s  # form of each word of the response, shape (n,)
    others: Int64s  # form of each word of the evidence, shape (m,)
    left: Int64s  # forms that match and how well, in the order of `left`, shape (p,)
    right: Int64s  # forms that match and how well, in the order of `left`, shape (p,)
    value: Float32s  # forms that match and how well, in the order of `left`, shape (p,)

    def pairs(self, ours: Int64s, others: Int64s) -> tuple[Int64s, Int64s, Float32s]:
        """The matches among some words of either text."""
        nth, form = _joined(self.ours[ours], self.left)
        order = np.argsort(self.others[others], kind="stable")
        row, position = _joined(self.right[form], self.others[others][order])
        return ours[nth[row]], others[order[position]], self.value[form[row]]

    def counts(self) -> Int64s:
        """In how many matches each word of the response is, shape (n,)."""
        size = int(max(self.others.max(initial=-1), self.right.max(initial=-1))) + 1
        words = np.bincount(self.others[self.others >= 0], minlength=size)[self.right]
        total = np.concatenate([[0], np.cumsum(words)])
        low, high = (np.searchsorted(self.left, self.ours, side) for side in ("left", "right"))
        counts: Int64s = total[high] - total[low]
        return counts


@dataclass(frozen=True)
class Matches:
    """All matches of the words of two texts by form."""

    kinds: tuple[_Forms, ...]  # matches by stem, by number, and by name
    name: Float32s  # shape (n,)

    def with_words(self, others: Int64s) -> tuple[Int64s, Int64s, Float32s]:
        """The matches of some words of the evidence: word of the response, of the evidence, and how well, above 0 and
        up to 1; shape (k,).
        """
        ours = np.arange(len(self.name))
        pairs = [forms.pairs(ours, others) for forms in self.kinds]
        first, second, value = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        return first, second, value

    def shared(self, sentence: Int64s, count: int) -> Float32s:
        """The share of the response's words that each sentence of the evidence holds, shape (count,)."""
        alike = np.stack([forms.ours for forms in self.kinds], axis=1)
        _, first, times = np.unique(alike, axis=0, return_index=True, return_counts=True)
        evidence_words, shared_words = np.arange(len(sentence)), np.zeros(count)
        for part in self._parts(first):
            # Words of the response that match the same words are looked up once, and counted as many as they are.
            words, words_times = first[part], times[part]
            places = np.zeros(len(self.name), np.int64)
            places[words] = np.arange(len(words))
            met = [forms.pairs(words, evidence_words)[:2] for forms in self.kinds]
            keys = [sentence[there] * len(words) + places[ours] for ours, there in met]
            at, nth = np.divmod(np.unique(np.concatenate(keys)), len(words))
            shared_words += np.bincount(at, weights=words_times[nth], minlength=count)
        share: Float32s = (shared_words / len(self.name)).astype(np.float32)
        return share

    def _parts(self, words: Int64s) -> Iterator[slice]:
        """Words of the response in parts of about as many matches as are held at a time; one at least."""
        total = np.cumsum(np.sum([forms.counts() for forms in self.kinds], axis=0)[words])
        part = total // _PAIRS
        edges = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(words)]
        for low, high in pairwise(edges):
            yield slice(low, high)


def matches(response: Document, evidence: Document, *, across: bool) -> Matches:
    """All matches of words; names count by their sound where the texts are in different languages (`across`)."""
    kinds = [_same(response.stem, evidence.stem), _numbers(response, evidence)]
    name = np.zeros(len(response), np.float32)
    if across:
        forms, name = _names(response, evidence)
        kinds.append(forms)
    return Matches(tuple(kinds), name)


def _joined(wanted: Int64s, known: Int64s) -> tuple[Int64s, Int64s]:
    """All places in the sorted `known` of each value that is wanted: which of these it is, and the place."""
    low = np.searchsorted(known, wanted, "left")
    counts = np.searchsorted(known, wanted, "right") - low
    which = np.repeat(np.arange(len(wanted)), counts)
    nth = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    return which, low[which] + nth


def _same(ours: UInt64s, others: UInt64s) -> _Forms:
    """Forms that match where they are equal."""
    both, number = np.unique(np.concatenate([ours, others]), return_inverse=True)
    forms = np.arange(len(both))
    numbers = number.reshape(-1).astype(np.int64)
    return _Forms(numbers[: len(ours)], numbers[len(ours) :], forms, forms, np.ones(len(both), np.float32))


def _numbers(response: Document, evidence: Document) -> _Forms:
    known: dict[str, int] = {}
    parts = []
    for document in (response, evidence):
        words, values = number_values(document)
        form = np.full(len(document), -1, np.int64)
        form[words] = [known.setdefault(value, len(known)) for value in values]
        parts.append(form)
    forms = np.arange(len(known))
    return _Forms(parts[0], parts[1], forms, forms, np.ones(len(known), np.float32))


def _names(response: Document, evidence: Document) -> tuple[_Forms, Float32s]:
    our_texts, ours = _distinct(_texts(response))
    their_texts, their_index = _distinct(_texts(evidence))
    best = np.zeros(len(our_texts), np.float32)
    parts = []
    for low in range(0, len(our_texts), _FORMS):
        alike = likeness(our_texts[low : low + _FORMS], their_texts)
        best[low : low + _FORMS] = alike.max(axis=1, initial=0.0)
        left, right = np.nonzero(alike >= _LEAST_ALIKE)
        parts.append((left + low, right, np.float32(_NAME) * alike[left, right]))
    left, right, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Forms(ours, their_index, left, right, value), best[ours]


def _distinct(texts: Sequence[str]) -> tuple[list[str], Int64s]:
    """The different ones of some texts, sorted, and which of them each is."""
    different = sorted(set(texts))
    number = {text: index for index, text in enumerate(different)}
    return different, np.array([number[text] for text in texts], np.int64)


def _texts(document: Document) -> list[str]:
    """The words of a document as they are written."""
    text = document.codes.astype(np.uint32).tobytes().decode("utf-32-le", "replace")
    return [text[start:end] for start, end in document.bounds.tolist()]


# Which words of the evidence are compared by meaning, word with word: all of them where they are few.
#
# All evidence is read: every word of it by its form, and every sentence by its vector. Only the comparison of each word
# with each word is bounded, to the sentences that come closest to a sentence of the response or to the question.


MOST = 516  # evidence words
STRIDE = 12  # words; a window is two strides long, as in `grounding.context`
_QUESTION = 0.7  # what closeness to the question counts for beside closeness to the response
_FORM = 0.5  # what shared words count for beside closeness


@dataclass(frozen=True)
class Close:
    """How close the sentences of the evidence, s of them, are to the response and the question.

    Attributes:
        response: similarity to each sentence of the response, shape (r, s).
        question: similarity to the question, shape (s,), or None.
        shared: the share of the response's words that each sentence of the evidence holds by form, shape (s,).
    """

    response: Float32s
    question: Float32s | None
    shared: Float32s

    def to_all(self) -> Float32s:
        """How much each sentence of the evidence has to do with the response, shape (s,)."""
        return self.to(0, len(self.response))

    def to(self, low: int, high: int) -> Float32s:
        """The same for the sentences `low` to `high` of the response."""
        close = self.response[low:high].max(axis=0)
        if self.question is not None:
            close = np.maximum(close, _QUESTION * self.question)
        closeness: Float32s = close + np.float32(_FORM) * self.shared
        return closeness


def selected(close: Float32s, sentence: Int64s) -> Int64s:
    """The evidence words to compare, in order: all, or those of the closest sentences up to `MOST`."""
    if len(sentence) <= MOST:
        return np.arange(len(sentence))
    order = np.argsort(-close, kind="stable")
    reached = np.cumsum(np.bincount(sentence, minlength=len(close))[order])
    selection = np.zeros(len(close), bool)
    selection[order[: max(1, int((reached <= MOST).sum()))]] = True
    return np.flatnonzero(selection[sentence])[:MOST]


def laid_out(words: Int64s, passage: Int64s) -> Int64s:
    """The words in slots, -1 for empty ones, so that windows of two strides never cross a gap or a passage."""
    breaks = (np.diff(words) != 1) | (np.diff(passage[words]) != 0)
    runs = np.split(words, np.flatnonzero(breaks) + 1)
    parts = []
    for run in runs:
        empty = -len(run) % STRIDE + STRIDE
        parts += [run, np.full(empty, -1, np.int64)]
    return np.concatenate(parts)


# Features of words that come from whole sentences: how close the evidence comes to what the sentence says.
#
# And of the sample: languages, scripts, task; and repetition, the mark of a model that ran in circles (the pathology
# that HAT's guidelines count as hallucination in translations, section 2).


_BEYOND = 0.5  # the closeness that stands for the sentence before the first and after the last
_NEAREST = 3
_ODD = np.uint64(31)


def sentence_columns(
    ours: Float32s,
    evidence: Float32s,
    question: Float32s | None,
    asked: Float32s | None,
) -> Float32s:
    """Thirteen numbers for each sentence of the response, shape (s, 13); the last six are 0 without a question."""
    alike = ours @ evidence.T
    nearest = np.zeros((len(ours), _NEAREST), np.float32)
    highest = np.sort(alike, axis=1)[:, ::-1][:, :_NEAREST]
    nearest[:, : highest.shape[1]] = highest
    best = nearest[:, 0]
    beside = np.concatenate([[_BEYOND], best, [_BEYOND]])
    columns = [best, best - nearest[:, 1], nearest.mean(axis=1), beside[:-2], beside[2:]]
    columns += [np.full(len(ours), best.mean()), np.full(len(ours), best.min())]
    if question is None or asked is None:
        columns += [np.zeros(len(ours))] * 6
    else:
        to_question = evidence @ question
        together = (asked @ evidence.T).max(axis=1)
        columns += [
            np.full(len(ours), to_question.max()),
            together,
            together - to_question.max(),
            (alike + to_question).max(axis=1),
            ours @ question,
            to_question[alike.argmax(axis=1)],
        ]
    stacked: Float32s = np.stack(columns, axis=1).astype(np.float32)
    return stacked


def repetition(response: Document, evidence: Document) -> Float32s:
    """How the words before each word repeat, shape (n, 4).

    How often the word, the pair and the triple of stems that it ends were there before, each as 1 - 1 / (times + 1), of
    pairs and triples without as many times as the evidence repeats the one that it repeats most; and the share of the
    response's pairs that are repeats.
    """
    columns = []
    for size in (1, 2, 3):
        ours, evidence_grams = _grams(response, size), _grams(evidence, size)
        before = _times_before(ours)
        there = (
            np.bincount(np.searchsorted(np.unique(evidence_grams), evidence_grams)).max(initial=1)
            if len(evidence_grams)
            else 1
        )
        fresh = np.maximum(before - (there - 1), 0) if size > 1 else before
        column = np.zeros(len(response), np.float32)
        column[size - 1 :] = 1 - 1 / (fresh + 1)
        columns.append(column)
        if size == 2:
            share = float((fresh > 0).mean()) if len(fresh) else 0.0
    columns.append(np.full(len(response), share, np.float32))
    return np.stack(columns, axis=1)


def _grams(document: Document, size: int) -> UInt64s:
    count = max(0, len(document) - size + 1)
    grams = document.stem[:count].copy()
    for nth in range(1, size):
        grams = mixed(grams * _ODD + document.stem[nth : nth + count])
    return grams


def _times_before(values: UInt64s) -> Int64s:
    """How often each value stood further left."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(values) else np.zeros(0, int)
    sizes = np.diff(starts, append=len(values))
    times = np.zeros(len(values), np.int64)
    times[order] = np.arange(len(values)) - np.repeat(starts, sizes)
    return times


READING_VERSION = 1  # part of the weights: a change of what is read needs new ones
NAME, ACROSS, OTHER_SCRIPT = 13, 18, 19  # where some of the further columns stand, for training
_MOST_ASKED = 40  # sentences of a response that are encoded once more, behind the question; none of a longer one
_LONGEST_QUESTION = 1000  # words of it whose meaning is compared; by their forms all are
_LONGEST_RATIO = 3.0


@dataclass(frozen=True)
class Case:
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
        ours, others, value: matches by form: word, slot, how well; shape (k,).
        response_pieces: of the response, half-open in code points, shape (r, 2).
        pieces: of the evidence: passage, and half-open in its code points, shape (s, 3).
        close: how close these are to the response and the question.
    """

    extract: Extract
    columns: Float32s
    words: Float32s
    question: Float32s
    slots: Int64s
    evidence: Float32s
    ours: Int64s
    others: Int64s
    value: Float32s
    response_pieces: Int64s
    pieces: Int64s
    close: Close


def read_sample(case: Case, lexicon: Lexicon, vectors: Vectors) -> Reading | None:
    """Everything that the network is given of a sample; None where response or evidence hold no word."""
    extracted = extract(
        case.response, case.passages, case.question, case.language, lexicon, evidence_language=case.evidence_language
    )
    if extracted is None:
        return None
    whole = vectors.sentences(case.response, case.language)
    evidence = _Evidence(case, extracted.evidence, vectors)
    asked = vectors.whole([case.question])[0] if case.question else None
    pairs = matches(extracted.response, extracted.evidence, across=case.across)
    close = Close(
        whole.vectors @ evidence.vectors.T,
        None if asked is None else evidence.vectors @ asked,
        pairs.shared(evidence.piece, len(evidence.vectors)),
    )
    chosen = selected(close.to_all(), evidence.piece)
    slots = laid_out(chosen, extracted.evidence.passage)
    slot_of = np.full(len(extracted.evidence), -1, np.int64)
    slot_of[slots[slots >= 0]] = np.flatnonzero(slots >= 0)
    ours, evidence_index, value = pairs.with_words(chosen)
    by_sentence = sentence_columns(whole.vectors, evidence.vectors, asked, _together(case, whole, vectors))
    columns = [
        by_sentence[whole.piece_of(extracted.response.bounds)],
        pairs.name[:, None],
        repetition(extracted.response, extracted.evidence),
        np.repeat(_of_sample(case)[None], len(extracted.response), axis=0),
    ]
    return Reading(
        extract=extracted,
        columns=np.concatenate(columns, axis=1).astype(np.float32),
        words=vectors.words(case.response, case.language, extracted.response.bounds),
        question=_question_words(case, vectors),
        slots=slots,
        evidence=evidence.words(slots),
        ours=ours,
        others=slot_of[evidence_index],
        value=value,
        response_pieces=whole.bounds,
        pieces=evidence.bounds,
        close=close,
    )


class _Evidence:
    """The pieces of all passages as one list."""

    def __init__(self, case: Case, document: Document, vectors: Vectors) -> None:
        self._case, self._document, self._from = case, document, vectors
        self.piece = np.zeros(len(document), np.int64)
        parts: list[Float32s] = []
        bounds: list[Int64s] = []
        self._first: list[int] = []
        count = 0
        for passage, text in enumerate(case.passages):
            whole = vectors.sentences(text, case.evidence_language)
            words = np.flatnonzero(document.passage == passage)
            self.piece[words] = count + whole.piece_of(self._bounds(words, passage))
            self._first.append(count)
            count += len(whole.bounds)
            parts.append(whole.vectors)
            bounds.append(np.insert(whole.bounds, 0, passage, axis=1))
        self.vectors = np.concatenate(parts)
        self.bounds = np.concatenate(bounds)

    def _bounds(self, words: Int64s, passage: int) -> Int64s:
        bounds: Int64s = self._document.bounds[words] - self._document.offsets[passage]
        return bounds

    def words(self, slots: Int64s) -> Float32s:
        """The vector in each slot; zeros in empty ones."""
        chosen = slots[slots >= 0]
        passages = self._document.passage[chosen]
        rows = []
        for passage in np.unique(passages).tolist():
            words = chosen[passages == passage]
            first = self._first[passage]
            wanted = (np.unique(self.piece[words]) - first).tolist()
            text = self._case.passages[passage]
            bounds = self._bounds(words, passage)
            rows.append(self._from.words(text, self._case.evidence_language, bounds, wanted))
        word_vectors = np.concatenate(rows)
        laid = np.zeros((len(slots), word_vectors.shape[1]), word_vectors.dtype)
        laid[slots >= 0] = word_vectors
        return laid


def _together(case: Case, whole: TextVectors, vectors: Vectors) -> Float32s | None:
    """The vector of the question together with each sentence of the response; all zeros where these are over forty."""
    if not case.question:
        return None
    texts = [f"{case.question} {case.response[low:high].strip()}" for low, high in whole.bounds[:_MOST_ASKED].tolist()]
    weighted = np.zeros_like(whole.vectors)
    if len(whole.bounds) <= _MOST_ASKED:
        weighted[:] = vectors.whole(texts)
    return weighted


def _question_words(case: Case, vectors: Vectors) -> Float32s:
    question = case.question or " "
    bounds = Document([question], case.language).bounds[:_LONGEST_QUESTION]
    return vectors.words(question, case.language, bounds)


def _of_sample(case: Case) -> Float32s:
    """Languages, scripts, strength of the encoder, task, and by how much a translation is longer than its source."""
    ours, evidence_script = main_script(case.response), main_script(*case.passages)
    longer = len(case.response) / max(1, len(" ".join(case.passages)))
    ratio = min(_LONGEST_RATIO, longer) if case.translation else 0.0
    return np.array([case.across, ours != evidence_script, case.translation, *case.strong, ratio], np.float32)


def base_of(tag: str | None) -> str:
    """The language of a BCP 47 tag, without script and region."""
    return (tag or "").split("-")[0]


# What the encoder says of a text, word by word and sentence by sentence.


LONGEST = 600  # code points of a sentence that gets one vector; a longer one is cut


class Vectors(Protocol):
    """Where vectors come from: an encoder, or what was stored of it before."""

    def sentences(self, text: str, tag: str | None) -> TextVectors:
        """The pieces of a text, with their vectors."""

    def words(self, text: str, tag: str | None, bounds: Int64s, chosen: Sequence[int] | None = None) -> Float32s:
        """A vector for each word, shape (n, d); zeros for words outside the pieces `chosen`."""

    def whole(self, texts: Sequence[str]) -> Float32s:
        """One vector per text, shape (n, d), of its first `LONGEST` code points."""


@dataclass(frozen=True)
class TextVectors:
    """The pieces of a text: its sentences, long ones cut. There is always one at least."""

    bounds: Int64s  # half-open code point ranges, shape (s, 2)
    vectors: Float32s  # shape (s, d), unit length, or zero for a piece without tokens

    def piece_of(self, words: Int64s) -> Int64s:
        """The piece that each word begins in, shape (n,)."""
        piece_index: Int64s = np.maximum(np.searchsorted(self.bounds[:, 0], words[:, 0], side="right") - 1, 0)
        return piece_index


def pieces(text: str, tag: str | None) -> Int64s:
    """The sentences of a text as half-open code point ranges, long ones cut; one at least; shape (s, 2)."""
    parts = [
        (low, min(end, low + LONGEST)) for start, end in sentences(text, tag) for low in range(start, end, LONGEST)
    ]
    return np.array(parts or [(0, len(text))], np.int64)


class EncoderVectors:
    """Vectors that an encoder makes now."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def sentences(self, text: str, tag: str | None) -> TextVectors:
        """See `Vectors`."""
        bounds = pieces(text, tag)
        return TextVectors(bounds, self._encoder.sentences([text[low:high] for low, high in bounds.tolist()]))

    def words(self, text: str, tag: str | None, bounds: Int64s, chosen: Sequence[int] | None = None) -> Float32s:
        """See `Vectors`."""
        parts = pieces(text, tag)
        return self._encoder.tokens(text, parts if chosen is None else parts[list(chosen)]).of_words(bounds)

    def whole(self, texts: Sequence[str]) -> Float32s:
        """See `Vectors`."""
        return self._encoder.sentences([text[:LONGEST] for text in texts])
