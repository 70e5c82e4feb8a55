"""From a sample to numbers: one row of features per word of the response, and what spans need to point at evidence.

The names and their order are part of the weights: a change here needs new weights, and raises `FEATURES_VERSION`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.document import MEANING, Document, Lexicon, mixed, slots
from veriglot.judging.phrases import words_within
from veriglot.text.segmentation import sentences
from veriglot.text.unicode import Kind, alphabet_table, code_points, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.arrays import Bools, Float32s, Float64s, Int64s, UInt8s, UInt32s, UInt64s

__all__ = ["FEATURES_VERSION", "SampleFeatures", "extract_features"]


# Features of a word by itself: what of it, of its parts and of its immediate neighbours stands in the evidence.


_ODD = np.uint64(31)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_SPARE_BITS = 5  # a bitmap at most 1/32 full: chance hits stay rare


def contains(table: UInt64s, asked: UInt64s) -> Bools:
    """Whether each asked hash is in `table`, through a bitmap: linear time, and a chance hit in 32 at most.

    For features that average over many stretches, where a rare chance hit is harmless; `slots` is exact.
    """
    if not len(table):
        return np.zeros(len(asked), bool)
    bits = max(14, len(table).bit_length() + _SPARE_BITS)
    shift = np.uint64(64 - bits)
    bitmap = np.zeros(1 << bits, bool)
    bitmap[(table * _MIX) >> shift] = True
    present: Bools = bitmap[(asked * _MIX) >> shift]
    return present


def covered(response: Document, other: Document, size: int) -> Bools:
    """Which places of the response's stream lie in a stretch of `size` that the other text holds too."""
    if not len(other):
        return np.zeros(len(response.stream), bool)
    asked = response.hashes.grams(size)
    edges = np.zeros(len(response.stream) + 1, np.int32)
    if len(asked):
        shared = contains(other.hashes.grams(size), asked)
        edges[: len(shared)] += shared
        edges[size : size + len(shared)] -= shared
    flags: Bools = np.cumsum(edges[:-1]) > 0
    return flags


def shared_edge(response: Document, other: Document, sizes: tuple[int, ...], *, front: bool) -> Float64s:
    """How many code points at its beginning or end, 0 or one of `sizes`, a word shares with one of the other text."""
    ours, other_words = response.distinct.first, other.distinct.first
    longest = np.zeros(len(ours))
    places = np.arange(len(ours))
    for size in sizes:
        long = response.lengths[ours[places]] >= size
        places = places[long]
        other_words = other_words[other.lengths[other_words] >= size]
        if not len(places) or not len(other_words):
            break
        asked = _edge(response, ours[places], size, front=front)
        known = np.sort(_edge(other, other_words, size, front=front))
        longest[places[slots(known, asked) >= 0]] = size
    return longest[response.distinct.inverse]


def _edge(document: Document, words: Int64s, size: int, *, front: bool) -> UInt64s:
    if front:
        return document.hashes.of(document.starts[words], document.starts[words] + size)
    return document.hashes.of(document.ends[words] - size, document.ends[words])


def pairs(document: Document, gap: int) -> UInt64s:
    """A hash of each pair of stems `gap` words apart in one passage, in order; n - gap of them in a single passage."""
    count = max(0, len(document) - gap)
    hashes = mixed(document.stem[:count] * _ODD + document.stem[gap:])
    inside = document.passage[:count] == document.passage[gap:]
    return hashes if inside.all() else hashes[inside]


def has_pair(response: Document, known: UInt64s, gap: int) -> tuple[Float32s, Float32s]:
    """Whether each word stands in the evidence's pairs with the word `gap` before it, and with the one after it."""
    before = np.zeros(len(response), np.float32)
    after = np.zeros(len(response), np.float32)
    if len(response) > gap:
        known_pairs = contains(known, pairs(response, gap))
        before[gap:] = known_pairs
        after[:-gap] = known_pairs
    return before, after


def has_swapped_pair(response: Document, known: UInt64s) -> Float32s:
    """Whether each word and a neighbour stand in the evidence in the other order, as after a swap of arguments."""
    swapped = np.zeros(len(response), np.float32)
    if len(response) > 1:
        turned = mixed(response.stem[1:] * _ODD + response.stem[:-1])
        known_pairs = contains(known, turned).astype(np.float32)
        swapped[1:] += known_pairs
        swapped[:-1] += known_pairs
    return swapped


def number_values(document: Document) -> tuple[Int64s, list[str]]:
    """Words with digits, and the digits of each without thousands marks and the like."""
    words = np.flatnonzero(document.counts_in_words(document.of_kind(Kind.DIGIT)) > 0)
    text = text_of(document.folded)
    digits = (re.sub("[^0-9]", "", text[start:end]) for start, end in document.bounds[words].tolist())
    return words, [value.lstrip("0") or "0" for value in digits]


def numbers_shared(response: Document, *others: Document) -> list[Float32s]:
    """For each other text, whether each number of the response stands in it by value; 0 for words that are none."""
    words, values = number_values(response)
    shared = []
    for other in others:
        flags = np.zeros(len(response), np.float32)
        if len(words):
            known = set(number_values(other)[1])
            flags[words] = [value in known for value in values]
        shared.append(flags)
    return shared


def occurrences(response: Document, other: Document) -> tuple[Int64s, Int64s]:
    """How often each word of the response, and each stem, occurs in the other text."""
    return (
        counts_of(other.distinct.hashes, other.distinct.counts, response.word),
        counts_of(*np.unique(other.stem, return_counts=True), response.stem),
    )


def counts_of(known: UInt64s, counts: Int64s, asked: UInt64s) -> Int64s:
    """The count of each asked hash, 0 if it is not known; `known` is sorted."""
    places = slots(known, asked)
    return np.where(places >= 0, np.append(counts, 0)[places], 0)


# Features of a word in its surroundings: does one place in the evidence hold the word *and* what stands around it?
#
# The evidence is cut into overlapping windows of 24 words, never across passages. A word that stands in the evidence,
# but far from everything that its sentence speaks of, is poorly supported; a word that is absent from a window which
# holds all the rest of its sentence was probably exchanged.


STRIDE = 12  # words; a window is two strides long


class Windows:
    """Which stems stand in which window of the evidence."""

    def __init__(self, evidence: Document) -> None:
        passages = len(evidence.offsets) - 1
        sizes = np.bincount(evidence.passage, minlength=passages)
        counts = np.maximum(1, -(-sizes // STRIDE))
        bases = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        inside = np.arange(len(evidence)) - begins[evidence.passage]
        self._window = bases[evidence.passage] + inside // STRIDE
        self._opens = inside < STRIDE  # the first stride of a passage lies in one window only
        self._evidence = evidence
        owner = np.repeat(np.arange(passages), counts)
        order = np.arange(int(counts.sum())) - bases[owner]
        self.first = begins[owner] + order * STRIDE
        self.last = np.minimum(self.first + 2 * STRIDE, begins[owner + 1])

    def __len__(self) -> int:
        return len(self.first)

    def words(self, window: int) -> tuple[int, int]:
        """The words of the evidence in a window, half-open; none where its passage has none."""
        return int(self.first[window]), int(self.last[window])

    def means(self, vectors: Float32s, weights: Float32s) -> Float32s:
        """The weighted sum of the evidence words' vectors in each window, scaled to length 1; shape (w, d)."""
        sums = np.zeros((len(vectors) + 1, vectors.shape[1]), np.float32)
        np.cumsum(vectors * weights[:, None], axis=0, out=sums[1:])
        return unit_length(sums[self.last] - sums[self.first])

    def holding(self, *asked: UInt64s) -> list[Float32s]:
        """For each array of stems, which of them stand in which window: 0 or 1, shape (n, w)."""
        stems, rows = np.unique(np.concatenate(asked), return_inverse=True)
        present = np.zeros((len(stems), len(self)), np.float32)
        places = slots(stems, self._evidence.stem)
        words = np.flatnonzero(places >= 0)
        present[places[words], self._window[words]] = 1
        inner = words[~self._opens[words]]
        present[places[inner], self._window[inner] - 1] = 1
        splits = np.cumsum([len(part) for part in asked])[:-1]
        return [present[part] for part in np.split(rows, splits)]


def unit_length(vectors: Float32s) -> Float32s:
    """Each row scaled to length 1; rows of zeros stay so."""
    norms = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    scaled: Float32s = vectors / np.maximum(norms, 1e-6)
    return scaled


def around(present: Float32s, rarity: Float32s, reach: int) -> Float32s:
    """The share of the words up to `reach` away from each word that each window holds, by rarity."""
    words = len(rarity)
    weighted = present * rarity[:, None]
    sums = np.zeros((words + 1, present.shape[1]), np.float32)
    np.cumsum(weighted, axis=0, out=sums[1:])
    totals = np.concatenate([np.zeros(1, np.float32), np.cumsum(rarity, dtype=np.float32)])
    low = np.maximum(np.arange(words) - reach, 0)
    high = np.minimum(np.arange(words) + reach + 1, words)
    share = sums[high]
    share -= sums[low]
    share -= weighted
    share /= np.maximum(totals[high] - totals[low] - rarity, 1e-6)[:, None]
    return share


_STOP, _OPENING, _CLOSING = 1, 2, 4
_MARKED = np.zeros(0x10000, np.uint8)  # every one of them lies in the first plane
for _bit, _marks in (
    (_STOP, ".,;:!?。，、；：！？،؛؟।۔"),
    (_OPENING, "\"'«“„「『(（《【"),
    (_CLOSING, "\"'»”“」』)）》】"),
):
    _MARKED[code_points(_marks)] |= _bit


def _kinds(codes: UInt32s) -> UInt8s:
    """Which of the marks above each code point is, as bits."""
    return _MARKED[np.where(codes < len(_MARKED), codes, 0)]


def shape_features(answer: Document, sentence: Int64s, evidence_words: int) -> dict[str, NDArray[np.floating] | Bools]:
    """How each word is written and where it stands; every value has shape (n,) and lies near 0 to 1."""
    words = len(answer)
    order = np.arange(words)
    digits = answer.counts_in_words(answer.of_kind(Kind.DIGIT))
    uppers = answer.of_kind(Kind.UPPER)
    capitals = answer.counts_in_words(uppers)
    in_sentence = np.bincount(sentence)
    begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(in_sentence)])
    folded = np.concatenate([answer.folded, [0]])
    before = _kinds(folded[answer.bounds[:, 0] - 1])  # index -1 is the 0 at the end
    after = _kinds(folded[answer.bounds[:, 1]])
    return {
        "is_number": digits > 0,
        "digits": np.minimum(digits, 6) / 6.0,
        "is_year": (digits == 4) & (answer.lengths == 4),
        "capital": uppers[answer.bounds[:, 0]],
        "all_capitals": (capitals == answer.lengths) & (answer.lengths > 1),
        "length": np.minimum(answer.lengths, 15) / 15.0,
        "first": np.diff(sentence, prepend=-1) > 0,
        "place_in_sentence": (order - begins[sentence]) / in_sentence[sentence],
        "sentence_length": np.log1p(in_sentence[sentence]) / 4.0,
        "place": order / words,
        "response_length": np.full(words, np.log1p(words) / 6.0),
        "sentences": np.full(words, np.log1p(len(in_sentence)) / 4.0),
        "evidence_length": np.full(words, np.log1p(evidence_words) / 8.0),
        "before_stop": (after & _STOP) != 0,
        "after_opening": (before & _OPENING) != 0,
        "before_closing": (after & _CLOSING) != 0,
        "ideographic": answer.ideographic,
        "has_case": np.full(words, bool(uppers.any())),
    }


FEATURES_VERSION = 1

STRETCHES = (3, 4, 5, 6, 8, 11, 16, 24, 40)
QUESTION_STRETCHES = (4, 6, 10)
BEGINNINGS, ENDINGS = (2, 3, 4, 6, 8, 10), (3, 4, 6)
NEAR, FAR = 4, 10  # words on either side that make up a word's surroundings
BLOCK = 400  # words of the response that are held against the windows at a time: bounds the memory

_CONTROL_TOKEN = re.compile(r"<\|[^<>|\s]{1,40}\|>")

Features = dict[str, "NDArray[np.floating] | Bools"]


@dataclass
class SampleFeatures:
    """The features of one sample, and the words and windows that they come from.

    Attributes:
        names: the features, in the order of the columns; the word vector follows them.
        values: one row per word, float32, shape (n, f).
        response, evidence: the texts as words with hashes.
        windows: the windows of the evidence.
        sentence: the sentence of each word, shape (n,).
        vector_place: the row of the lexicon's vectors that each word has, or -1, shape (n,).
        markup: words that are not part of the text, such as `im_end` in `<|im_end|>`, shape (n,).
        word_window: the window that best supports each word, -1 where none holds it, shape (n,).
        sentence_window: the window that holds most of each sentence, shape (s,).
    """

    names: tuple[str, ...]
    values: Float32s
    response: Document
    evidence: Document
    windows: Windows
    sentence: Int64s
    vector_place: Int64s
    markup: Bools
    word_window: Int64s
    sentence_window: Int64s


def extract_features(
    response: str,
    passages: Sequence[str],
    question: str | None,
    language: str | None,
    lexicon: Lexicon,
    *,
    evidence_language: str | None = None,
) -> SampleFeatures | None:
    """The features of every word of a response; None where the response or the evidence holds no word.

    Args:
        response: the text to judge.
        passages: the evidence.
        question: the question, or None.
        language: BCP 47 tag of the response.
        lexicon: word frequencies and vectors.
        evidence_language: BCP 47 tag of the evidence, by which it is cut into words; None where it is the response's.
    """
    table = alphabet_table(response, passages)
    answer = Document([response], language, table)
    evidence = Document(passages, evidence_language or language, table)
    if not len(answer) or not len(evidence):
        return None
    asked = Document([question or ""], language, table)
    rarity = lexicon.rarity(answer)
    bounds = np.array(sentences(response, language), np.int64).reshape(-1, 2)
    sentence = np.searchsorted(bounds[:, 0], answer.bounds[:, 0], side="right") - 1
    sentence = _counted(sentence)

    features = _by_word(answer, evidence, asked, lexicon)
    features["rarity"] = rarity
    features.update(shape_features(answer, sentence, len(evidence)))
    places = lexicon.places_of(answer)
    vectors = lexicon.vectors_at(places)
    windows = Windows(evidence)
    surroundings = _Surroundings(answer, evidence, asked, lexicon, windows, rarity, sentence, vectors[:, :MEANING])
    features.update(surroundings.features)
    features["has_vector"] = places >= 0
    features.update(_by_sentence(features, rarity, sentence))
    names = tuple(features)
    columns = [np.asarray(column, np.float32) for column in features.values()]
    values = np.concatenate([np.stack(columns, axis=1), vectors], axis=1)
    return SampleFeatures(
        names=names,
        values=values,
        response=answer,
        evidence=evidence,
        windows=windows,
        sentence=sentence,
        vector_place=places,
        markup=words_within(answer.bounds, map(re.Match.span, _CONTROL_TOKEN.finditer(response))),
        word_window=surroundings.word_window,
        sentence_window=surroundings.sentence_window,
    )


def _counted(sentence: Int64s) -> Int64s:
    """Sentences counted without gaps (some hold no word), and very long ones in parts, so that memory stays bounded."""
    starts = _starts(sentence)
    order = np.arange(len(sentence)) - np.repeat(starts, np.diff(starts, append=len(sentence)))
    opens = (np.diff(sentence, prepend=-1) != 0) | (order % BLOCK == 0)
    counted: Int64s = np.cumsum(opens) - 1
    return counted


def _starts(sentence: Int64s) -> Int64s:
    """The first word of each sentence."""
    return np.flatnonzero(np.diff(sentence, prepend=-1))


def _by_word(answer: Document, evidence: Document, asked: Document, lexicon: Lexicon) -> Features:
    features: Features = {}
    for name, other, sizes in (("stretch", evidence, STRETCHES), ("question_stretch", asked, QUESTION_STRETCHES)):
        for size in sizes:  # the share of each word that lies in a shared stretch of that many code points
            features[f"{name}_{size}"] = answer.mean_in_words(covered(answer, other, size))
    words, stems = occurrences(answer, evidence)
    here = answer.distinct.counts[answer.distinct.inverse]
    question_words, question_stems = occurrences(answer, asked)
    exact = words > 0
    features |= {
        "in_evidence": exact,
        "log_count": np.log1p(words),
        "stem_in_evidence": stems > 0,
        "log_stem_count": np.log1p(stems),
        "log_count_here": np.log1p(here),
        "in_question": question_words > 0,
        "stem_in_question": question_stems > 0,
    }
    beginning = shared_edge(answer, evidence, BEGINNINGS, front=True)
    features["beginning"] = np.where(exact, 1.0, beginning / answer.lengths)
    features["ending"] = np.where(exact, 1.0, shared_edge(answer, evidence, ENDINGS, front=False) / answer.lengths)
    features["beginning_length"] = np.where(exact, answer.lengths, beginning) / 10.0
    features["stem_frequency"] = lexicon.stem_frequency(answer.stem) / 12.0
    features["word_frequency"] = lexicon.word_frequency(answer.word) / 12.0
    features["number_in_evidence"], features["number_in_question"] = numbers_shared(answer, evidence, asked)
    next_to = pairs(evidence, 1)
    near = np.concatenate([next_to, pairs(evidence, 2), pairs(evidence, 3)])
    for name, known, gap in (("pair", next_to, 1), ("near_pair", near, 1), ("skip_pair", near, 2)):
        features[f"{name}_before"], features[f"{name}_after"] = has_pair(answer, known, gap)
    features["swapped"] = has_swapped_pair(answer, near)
    return features


class _Surroundings:
    """Features that hold a word and its surroundings against the windows of the evidence, block by block."""

    def __init__(
        self,
        answer: Document,
        evidence: Document,
        asked: Document,
        lexicon: Lexicon,
        windows: Windows,
        rarity: Float32s,
        sentence: Int64s,
        vectors: Float32s,
    ) -> None:
        self._rarity, self._sentence, self._vectors = rarity, sentence, vectors
        self._answer, self._asked, self._windows = answer, asked, windows
        self._question_rarity = lexicon.rarity(asked)
        known = lexicon.meanings_of(evidence)
        self._evidence_vectors = known[evidence.distinct.first]
        self._window_vectors = windows.means(known, lexicon.rarity(evidence))
        self._question_vectors = lexicon.meanings_of(asked)
        blocks = [self._block(low, high) for low, high in _blocks(sentence)]
        self.features: Features = {
            name: np.concatenate([block[name] for block, _, _ in blocks]) for name in blocks[0][0]
        }
        self.features["best_for_question"] = np.full(len(answer), self._question_best, np.float32)
        self.features["has_question"] = np.full(len(answer), float(len(asked) > 0), np.float32)
        self.word_window = np.concatenate([part for _, part, _ in blocks])
        self.sentence_window = np.concatenate([part for _, _, part in blocks])

    def _block(self, low: int, high: int) -> tuple[Features, Int64s, Int64s]:
        in_windows, question_windows = self._windows.holding(self._answer.stem[low:high], self._asked.stem)
        rarity = self._rarity[low:high]
        weights = self._question_rarity
        question = (question_windows * weights[:, None]).sum(axis=0) / max(float(weights.sum()), 1e-6)
        self._question_best = float(question.max())
        features: Features = {"question_with": (in_windows * question).max(axis=1)}
        for name, reach in (("near", NEAR), ("far", FAR)):
            share = around(in_windows, rarity, reach)
            features[f"{name}_best"] = share.max(axis=1)
            features[f"{name}_question_best"] = (share + question).max(axis=1)
            features[f"{name}_question_with"] = ((share + question) * in_windows).max(axis=1)
            share *= in_windows
            features[f"{name}_with"] = share.max(axis=1)
        word_window = np.where(in_windows.any(axis=1), (share + 1e-3 * in_windows).argmax(axis=1), -1)
        sentence_window = self._whole_sentences(features, in_windows, question, low, high)
        self._meaning(features, low, high)
        return features, word_window, sentence_window

    def _whole_sentences(
        self, features: Features, present: Float32s, question: Float32s, low: int, high: int
    ) -> Int64s:
        sentence = self._sentence[low:high] - self._sentence[low]
        rarity = self._rarity[low:high]
        first = _starts(sentence)
        share = np.add.reduceat(present * rarity[:, None], first, axis=0)
        share /= np.maximum(np.add.reduceat(rarity, first), 1e-6)[:, None]
        best: Int64s = share.argmax(axis=1)
        words = np.arange(high - low)
        features["sentence_best"] = share.max(axis=1)[sentence]
        features["in_best"] = present[words, best[sentence]]
        features["sentence_with"] = (share[sentence] * present).max(axis=1)
        features["in_best_for_question"] = present[words, (share + question).argmax(axis=1)[sentence]]
        return best

    def _meaning(self, features: Features, low: int, high: int) -> None:
        vectors = self._vectors[low:high]
        features["like_evidence"] = _highest(vectors, self._evidence_vectors)
        features["like_question"] = _highest(vectors, self._question_vectors)
        sentence = self._sentence[low:high] - self._sentence[low]
        first = _starts(sentence)
        means = unit_length(np.add.reduceat(vectors * self._rarity[low:high, None], first, axis=0))
        features["sentence_like_window"] = _highest(means, self._window_vectors)[sentence]


def _highest(vectors: Float32s, others: Float32s) -> Float32s:
    """The highest dot product of each vector with any of the others; 0 where there are none."""
    if not len(others):
        return np.zeros(len(vectors), np.float32)
    highest: Float32s = (vectors @ others.T).max(axis=1)
    return highest


def _blocks(sentence: Int64s) -> list[tuple[int, int]]:
    """Word ranges of at most `BLOCK` words that end where a sentence ends."""
    ends = np.append(np.flatnonzero(np.diff(sentence)) + 1, len(sentence)).tolist()
    blocks, low, high = [], 0, 0
    for end in ends:
        if end - low > BLOCK and high > low:
            blocks.append((low, high))
            low = high
        high = end
    blocks.append((low, high))
    return blocks


def _by_sentence(features: Features, rarity: Float32s, sentence: Int64s) -> Features:
    """Means over the word's sentence, the sentences beside it, and the response."""
    unit_weights = np.ones(len(rarity), np.float32)
    count = int(sentence[-1]) + 1
    added: Features = {}
    for name, weights in (
        ("in_evidence", rarity),
        ("stem_in_evidence", rarity),
        ("stretch_8", unit_weights),
        ("stretch_16", unit_weights),
        ("far_with", unit_weights),
        ("pair_before", unit_weights),
    ):
        values = np.asarray(features[name], np.float32)
        total = np.bincount(sentence, weights, minlength=count)
        mean = np.bincount(sentence, values * weights, minlength=count) / np.maximum(total, 1e-6)
        added[f"sentence_{name}"] = mean[sentence]
        if name in {"in_evidence", "stretch_8", "pair_before"}:
            padded = np.concatenate([[0.5], mean, [0.5]])
            added[f"sentence_before_{name}"] = padded[sentence]
            added[f"sentence_after_{name}"] = padded[sentence + 2]
    for name in ("stem_in_evidence", "stretch_8", "stretch_16"):
        mean_here = float((features[name] * rarity).sum() / max(float(rarity.sum()), 1e-6))
        added[f"response_{name}"] = np.full(len(rarity), mean_here, np.float32)
    return added
