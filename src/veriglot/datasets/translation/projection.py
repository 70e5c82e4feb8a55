"""Annotation projection: word alignment of a text and its translation, by form or vectors, and projection of spans."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from contextlib import suppress
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from veriglot.encoders.base import Encoder, load_encoder
from veriglot.errors import MissingExtraError
from veriglot.hub.registry import MissingWeightsError
from veriglot.records.settings import Record
from veriglot.signatures import signature
from veriglot.text.normalization import fold, normalise
from veriglot.text.segmentation import sentences, word_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from veriglot.arrays import Bools, Float32s, Float64s, Numbers

    Matrix = Float32s
    Array = Float64s

__all__ = [
    "STRATEGIES",
    "Aligner",
    "LexicalAligner",
    "PlacedMark",
    "Range",
    "Side",
    "Strategy",
    "best_of",
    "project",
    "side_of",
]


_ROUNDS = 2
_TIE = 0.97  # minimum share of its best similarity for a pair that counts as equally good
_SECOND = 0.9  # factor for the similarity of a word that has a link already
_CONTEXT = 0.25  # maximum gain from matching neighbours
_REACH = 6  # words on either side
_POSITION = 0.05  # maximum gain from equal relative positions


Range = tuple[int, int]
"""Half-open code points of a text."""


class Side(NamedTuple):
    """A text or its translation.

    Attributes:
        text: the text.
        tag: its BCP 47 tag.
        words: half-open code point ranges, in order.
    """

    text: str
    tag: str
    words: tuple[Range, ...]

    def forms(self) -> list[str]:
        """The words as in the text."""
        return [self.text[start:end] for start, end in self.words]

    def inside(self, mark: Range) -> list[int]:
        """The numbers of the words that overlap a range."""
        return [number for number, (start, end) in enumerate(self.words) if start < mark[1] and mark[0] < end]


class _Link(NamedTuple):
    """A source word, a target word (both by number, from 0), and the confidence of the link, above 0 to 1."""

    source: int
    target: int
    weight: float


class Alignment(NamedTuple):
    """A text and its translation, split into words by the aligner, and the links between these."""

    source: Side
    target: Side
    links: Sequence[_Link]


class Aligner(Protocol):
    """Aligns words. A user's class with these two members is an aligner too.

    Attributes:
        signature: one line that identifies the method.
    """

    signature: str

    def align(self, source: Side, target: Side) -> Alignment:
        """Align the words of a text and of its translation; a word may have no link, or several."""
        ...


def side_of(text: str, tag: str) -> Side:
    """A text with its words."""
    return Side(text, tag, tuple((start, end) for start, end in word_bounds(text, tag).tolist()))


def links_of(similarity: Matrix, *, threshold: float) -> list[_Link]:
    """Links from similarities, 0 to 1: pairs from `threshold` on that are each other's best, then again among the rest.

    At first each word gets at most one link, to its best or an equally good word: of several equal words the one whose
    neighbours are linked to each other. Then iterations as in SimAlign's *itermax* (Jalili Sabet et al. 2020, section
    3.1): words with a link may get another one, at a discount.
    """
    if not similarity.size:
        return []
    similarity = np.asarray(similarity, np.float32)
    allowed = similarity >= threshold
    near = allowed & (similarity >= _TIE * similarity.max(1, keepdims=True))
    near &= similarity >= _TIE * similarity.max(0, keepdims=True)
    taken = np.zeros(similarity.shape, bool)
    while True:  # each word once, to its best or equally good one; links decide between several
        free = near & ~np.any(taken, axis=1)[:, None] & ~np.any(taken, axis=0)[None]
        around = taken if taken.any() else similarity
        if not _taken_from(np.where(free, _in_context(similarity, around), 0.0), taken):
            break
    for _ in range(_ROUNDS):
        rows, columns = np.any(taken, axis=1)[:, None], np.any(taken, axis=0)[None]
        discount = np.where(rows ^ columns, _SECOND, np.where(rows & columns, 0.0, 1.0))
        if not _taken_from(np.where(allowed, _in_context(similarity, taken) * discount, 0.0), taken):
            break
    return [_Link(i, j, float(min(1.0, similarity[i, j]))) for i, j in np.argwhere(taken).tolist()]


def _taken_from(scored: Matrix, taken: Bools) -> bool:
    """Take the pairs that are each other's best; returns whether there was a new one."""
    across, down = scored.argmax(1), scored.argmax(0)
    new = [(i, int(j)) for i, j in enumerate(across) if down[j] == i and scored[i, j] > 0 and not taken[i, j]]
    for pair in new:
        taken[pair] = True
    return bool(new)


def _in_context(similarity: Matrix, beside: Numbers) -> Matrix:
    """Similarities with gains from positions and from the matching neighbours in `beside`; zeros are not changed."""
    n, m = similarity.shape
    beside = np.asarray(beside, np.float32)
    around = np.zeros_like(similarity)
    for step in range(1, min(_REACH, n - 1, m - 1) + 1):
        weight = 1.0 / step
        around[step:, step:] += weight * beside[:-step, :-step]
        around[:-step, :-step] += weight * beside[step:, step:]
    most = 2.0 * sum(1.0 / step for step in range(1, _REACH + 1))
    proximity = 1.0 - np.abs(np.arange(n)[:, None] / n - np.arange(m)[None] / m)
    gained = similarity + _CONTEXT * around / most + _POSITION * proximity
    return np.where(similarity > 0, gained, 0.0).astype(np.float32)


# Alignment without a network: unchanged words, numbers by value, names by sound, a dictionary, positions.


_NO_LETTER = re.compile("[^a-z]")
_INNER_VOWEL = re.compile("(?<=.)[aeiouyhw]")
_DOUBLED = re.compile(r"(.)\1+")
_SOUNDS = str.maketrans("ckqgjzxvbd", "kkkkyssfpt")  # spellings that differ between scripts and languages
_SHORTEST = 3  # sounds; shorter forms match by chance
_ALIKE = 0.75
_MIN_SIMILARITY = 0.5
_GUESSED = 0.25  # weight of a link from positions alone


class LexicalAligner:
    """Links words that can be recognised; words between two of these are linked by position, with a low weight.

    Names are compared by sound if the packages of the extra `reader` are installed (anyascii, rapidfuzz); the signature
    has this information.
    """

    def __init__(self) -> None:
        self.signature = signature(aligner="lexical", sounds=_sounds_available(), guess=True)

    def align(self, source: Side, target: Side) -> Alignment:
        """As `Aligner`."""
        links = links_of(_lexical_similarity(source, target), threshold=_MIN_SIMILARITY)
        return Alignment(source, target, sorted([*links, *_guessed(links, len(source.words), len(target.words))]))


def _lexical_similarity(source: Side, target: Side) -> Matrix:
    """Similarity of words by form, shape (source words, target words), 0 to 1; 0 if unknown."""
    source_words, target_words = source.forms(), target.forms()
    similarity = np.zeros((len(source_words), len(target_words)), np.float32)
    if not similarity.size:
        return similarity
    columns = defaultdict[str, list[int]](list)
    for j, form in enumerate(map(fold, target_words)):
        for key in {form, _number_of(form) or form}:
            columns[key].append(j)
    for i, form in enumerate(map(fold, source_words)):
        for key in {form, _number_of(form) or form}:
            similarity[i, columns.get(key, [])] = 1.0
    return np.maximum(similarity, _by_sound(source_words, target_words)) if _sounds_available() else similarity


@lru_cache(1 << 16)
def _number_of(word: str) -> str | None:
    """The digits of a number, in ASCII and without separators; None for other words."""
    plain = normalise(word).text
    if not any(char.isdecimal() for char in plain) or any(char.isalpha() for char in plain):
        return None
    return re.sub(r"\D", "", plain)


@lru_cache(1)
def _sounds_available() -> str | None:
    try:
        import anyascii  # noqa: F401
        import rapidfuzz
    except ImportError:
        return None
    return f"anyascii,rapidfuzz-{rapidfuzz.__version__}"


def _by_sound(source_words: list[str], target_words: list[str]) -> Matrix:
    """Similarity by sound of words that may be names: capitalised, or in a script without capitals."""
    from rapidfuzz import fuzz
    from rapidfuzz.process import cdist

    first, second = [_sounds(word) for word in source_words], [_sounds(word) for word in target_words]
    rows = [i for i, form in enumerate(first) if len(form) >= _SHORTEST]
    columns = [j for j, form in enumerate(second) if len(form) >= _SHORTEST]
    similarity = np.zeros((len(source_words), len(target_words)), np.float32)
    if rows and columns:
        alike = cdist(
            [first[i] for i in rows], [second[j] for j in columns],
            scorer=fuzz.ratio, score_cutoff=100 * _ALIKE, dtype=np.float32, workers=1,
        )  # fmt: skip
        similarity[np.ix_(rows, columns)] = alike / 100 * 0.95
    return similarity


@lru_cache(1 << 16)
def _sounds(word: str) -> str:
    """The consonants of a possible name, in Latin letters; empty for any other word."""
    if word[:1].islower():
        return ""
    from anyascii import anyascii

    letters = _NO_LETTER.sub("", anyascii(word).lower()).replace("ph", "f").translate(_SOUNDS)
    return _DOUBLED.sub(r"\1", _INNER_VOWEL.sub("", letters))


def _guessed(links: Sequence[_Link], n: int, m: int) -> list[_Link]:
    """Links for words without any, between those of their neighbours, or by the share of the text before them."""
    if not n or not m:
        return []
    linked: dict[int, float] = {}
    for link in links:
        linked.setdefault(link.source, link.target)
    anchors = [(-1.0, -1.0), *((float(i), float(j)) for i, j in sorted(linked.items())), (float(n), float(m))]
    taken = {link.target for link in links}
    xs, ys = [x for x, _ in anchors], [y for _, y in anchors]
    guesses = []
    for i in range(n):
        if i not in linked:
            j = round(float(np.interp(i, xs, ys)))
            if 0 <= j < m and j not in taken:
                guesses.append(_Link(i, j, _GUESSED))
    return guesses


# The best available aligner; nothing is downloaded.


ENCODERS = ("e5-multilingual", "use-multilingual")  # best first, by docs/translate.md


def best_aligner(*, begun: str | None = None) -> Aligner:
    """Vectors of the first available encoder, else forms alone; the signature of the result shows which.

    On human translations vectors found more than forms in each of eleven languages, including those in which an encoder
    is weak (docs/translate.md). For an existing output, `begun` is the signature of its aligner, which is used again:
    an encoder that was installed between two calls must not make finished translations invalid.
    """
    aligners: list[Aligner] = []
    for encoder in ENCODERS:
        with suppress(MissingExtraError, MissingWeightsError):
            aligners.append(vector_aligner(encoder))
            if begun in (None, aligners[-1].signature):
                return aligners[-1]
    aligners.append(LexicalAligner())
    return next((aligner for aligner in aligners if aligner.signature == begun), aligners[0])


# Probability that a source word and a target word are translations, from their similarity and positions.
#
# As in AWESOME-align (Dou and Neubig 2021, section 2.2), similarities become probabilities by a softmax in both
# directions; here their geometric mean is taken. Before that there are three changes, because sentence encoders give
# all words of a paragraph rather similar vectors: similarities are relative to those of a word's nearest neighbours
# (CSLS; Conneau et al. 2018, section 2.3), equal forms and names increase them, and words far from the position of
# their neighbours' translations get less.


_NEAREST = 5  # neighbours in CSLS
_FEWEST = 10.0  # words; in a short sentence order is no evidence
_SURROUNDINGS = 8  # words on either side that show where a part of the text went
_FADES = 4.0  # words after which a neighbour counts half
_MIN_POSTERIOR = 0.02  # probability of a link


class AlignmentWeights(NamedTuple):
    """Weights and parameters. The defaults were chosen by `benchmarks/projection.py` on half of its paragraphs.

    Attributes:
        temperature: of the softmax; a lower one gives more extreme probabilities.
        form: gain for equal forms, on the scale of two cosines.
        distance: penalty for a word far from its expected position.
        spread: distance that counts as far in the first round, as a share of the text.
        reach: distance that counts as far afterwards, in words.
        rounds: how often the expected positions are computed again.
    """

    temperature: float = 0.1
    form: float = 0.7
    distance: float = 0.6
    spread: float = 0.2
    reach: float = 8.0
    rounds: int = 2


def _posterior(cosine: Matrix | Array, form: Matrix, weighing: AlignmentWeights) -> Array:
    """Probabilities, 0 to 1, shape (source words, target words), from cosines and similarity of forms."""
    n, m = cosine.shape
    if not cosine.size:
        return np.zeros((n, m))
    cosine = np.asarray(cosine, np.float64)
    across = np.sort(cosine, axis=1)[:, -_NEAREST:].mean(1, keepdims=True)
    down = np.sort(cosine, axis=0)[-_NEAREST:].mean(0, keepdims=True)
    alike = np.asarray(2 * cosine - across - down + weighing.form * form)
    expected = np.arange(n) * m / n
    columns = np.arange(m)[None]
    far = np.abs(columns - expected[:, None]) / max(weighing.spread * m, _FEWEST)
    probabilities = _both_ways(alike - weighing.distance * np.minimum(far**2, 1.0), weighing.temperature)
    for _ in range(weighing.rounds):
        far = np.abs(columns - (expected + _shift_of(probabilities, expected))[:, None]) / weighing.reach
        probabilities = _both_ways(alike - weighing.distance * np.minimum(far, 1.0), weighing.temperature)
    return probabilities


def _both_ways(alike: Array, temperature: float) -> Array:
    return np.asarray(np.sqrt(_softmax(alike / temperature, 1) * _softmax(alike / temperature, 0)))


def _softmax(values: Array, axis: int) -> Array:
    powers = np.exp(values - values.max(axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis, keepdims=True))


def _shift_of(probabilities: Array, expected: Array) -> Array:
    """Shift of each source word's neighbourhood from its expected position: a weighted median, in words."""
    away = probabilities.argmax(1) - expected
    sure = probabilities.max(1) ** 2
    n = len(expected)
    median = np.zeros(n)
    for i in range(n):
        near = np.arange(max(0, i - _SURROUNDINGS), min(n, i + _SURROUNDINGS + 1))
        order = near[np.argsort(away[near], kind="stable")]
        weight = np.cumsum(sure[order] / (1 + np.abs(order - i) / _FADES))
        median[i] = away[order[np.searchsorted(weight, weight[-1] / 2)]]
    return median


class VectorAligner:
    """Links words with similar vectors, similar forms, and positions that fit.

    Args:
        encoder: for contextual vectors of words.
        weighing: weights and parameters.
    """

    def __init__(self, encoder: Encoder, weighing: AlignmentWeights | None = None) -> None:
        self._encoder, self._weighing = encoder, weighing or AlignmentWeights()
        given = self._weighing._asdict()
        self.signature = signature(aligner="vectors", forms=given["form"] > 0, **given, encoder=encoder.signature)

    def align(self, source: Side, target: Side) -> Alignment:
        """As `Aligner`."""
        if not source.words or not target.words:
            return Alignment(source, target, [])
        cosine = self._vectors(source) @ self._vectors(target).T
        probabilities = _posterior(cosine, _lexical_similarity(source, target), self._weighing)
        pairs = np.argwhere(probabilities >= _MIN_POSTERIOR).tolist()
        return Alignment(source, target, [_Link(i, j, min(1.0, float(probabilities[i, j]))) for i, j in pairs])

    def _vectors(self, side: Side) -> Matrix:
        tokens = self._encoder.tokens(side.text, sentences(side.text, side.tag))
        vectors = tokens.of_words(np.array(side.words, np.int64))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Matrix = vectors / np.maximum(lengths, 1e-9)
        return unit


def vector_aligner(encoder: str = "use-multilingual", **options: Any) -> VectorAligner:
    """The aligner with an encoder by name."""
    return VectorAligner(load_encoder(encoder, **options))


# Projection of a mark: the range of the translation that its links support.


_AGAINST = 0.5  # weight of a link to a word outside
_EMPTY = 0.02  # cost of every target word
_OTHER = 0.5  # minimum gain of a further part, as a share of the first part's


def project(source: Side, target: Side, links: Sequence[_Link], mark: Range) -> tuple[tuple[Range, ...], float] | None:
    """Project a mark of the source onto the target: its parts and their quality; None if none of its words has a link.

    The gain of a target word is the weight of its links to words inside the mark, minus half of that to words outside.
    The result is the range with the largest sum; further ranges are added if they have at least half of that sum. Words
    without a link cost almost nothing between words of the mark, and are removed at the edges.

    Args:
        source, target: the text and its translation.
        links: between their words.
        mark: half-open code point range of the source.
    """
    inside = frozenset(source.inside(mark))
    within, outside = [0.0] * len(target.words), [0.0] * len(target.words)
    for link in links:
        weights = within if link.source in inside else outside
        weights[link.target] += link.weight
    runs = _runs([own - _AGAINST * other - _EMPTY for own, other in zip(within, outside, strict=True)])
    if not runs:
        return None
    places = {j for first, last in runs for j in range(first, last + 1)}
    own, other = sum(within[j] for j in places), sum(outside[j] for j in places)
    arrived: dict[int, float] = {}
    for link in links:
        if link.source in inside and link.target in places:
            arrived[link.source] = min(1.0, arrived.get(link.source, 0.0) + link.weight)
    parts = tuple(
        _with_edges(source, target, mark, (target.words[first][0], target.words[last][1])) for first, last in runs
    )
    return parts, sum(arrived.values()) / len(inside) * own / (own + other)


def _runs(gains: Sequence[float]) -> list[Range]:
    """The range of words with the largest sum, and others with sums close to it; first and last word inclusive."""
    runs: list[Range] = []
    left = list(gains)
    threshold = 0.0
    while True:
        gain, first, last = _largest(left)
        if gain <= threshold:
            return sorted(runs)
        threshold = threshold or _OTHER * gain
        runs.append((first, last))
        left[first : last + 1] = [-math.inf] * (last + 1 - first)


def _largest(gains: Sequence[float]) -> tuple[float, int, int]:
    """The largest sum of neighbours, with its first and last index; of equal ones the first, and the shortest."""
    best, run, begun = (0.0, 0, -1), 0.0, 0
    for index, gain in enumerate(gains):
        if run <= 0:
            run, begun = 0.0, index
        run += gain
        if run > best[0]:
            best = (run, begun, index)
    return best


def _with_edges(source: Side, target: Side, mark: Range, part: Range) -> Range:
    """A part, extended by the same signs as the mark has around its words: brackets, quotes, full stops."""
    touched = source.inside(mark)
    if not touched:
        return part
    before = source.text[mark[0] : max(mark[0], source.words[touched[0]][0])]
    after = source.text[min(mark[1], source.words[touched[-1]][1]) : mark[1]]
    start, end = part
    for _ in before.strip():
        if start > 0 and _is_sign(target.text[start - 1]):
            start -= 1
    for _ in after.strip():
        if end < len(target.text) and _is_sign(target.text[end]):
            end += 1
    return start, end


def _is_sign(char: str) -> bool:
    return not char.isspace() and not char.isalnum()


# The translation of a part of a text, found in the translation of the whole.


_NORMALISED = 0.95
_MIN_LIKENESS = 0.7  # minimum similarity of a passage with a slightly different translation
_UNDECIDED = 0.8  # factor for one of several possible positions
_LONGEST = 60  # words of a part that is searched for by similarity


def _locate(side: Side, part: str, expected: float) -> tuple[Range, float] | None:
    """The range of a translated part, and its similarity."""
    part = re.sub(r"^[\W_]+|[\W_]+$", "", part)  # spaces and signs at either end
    if not part:
        return None
    starts, ends = {start for start, _ in side.words}, {end for _, end in side.words}
    for likeness, places in ((1.0, _found(side.text, part)), (_NORMALISED, _found_normalised(side.text, part))):
        whole = [(start, end) for start, end in places if start in starts and end in ends]
        if whole:
            nearest = min(whole, key=lambda span: abs(span[0] / max(1, len(side.text)) - expected))
            return nearest, likeness * (_UNDECIDED if len(whole) > 1 else 1.0)
    return _alike(side, part, expected)


def _found(text: str, part: str) -> Iterator[Range]:
    for match in re.finditer(f"(?={re.escape(part)})", text):  # lookahead, so that matches may overlap
        yield match.start(), match.start() + len(part)


def _found_normalised(text: str, part: str) -> Iterator[Range]:
    whole, wanted = normalise(text), normalise(part).text
    for start, end in _found(whole.text, wanted) if wanted else ():
        yield whole.original(start, end)


def _alike(side: Side, part: str, expected: float) -> tuple[Range, float] | None:
    """The range of words with the most words in common with the part."""
    count = len(side_of(part, side.tag).words)
    if not count or count > _LONGEST or not side.words:
        return None
    wanted = normalise(part).text
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    best: tuple[float, float, Range] | None = None
    for size in range(max(1, count - 2), count + 3):
        for first in range(len(side.words) - size + 1):
            start, end = side.words[first][0], side.words[first + size - 1][1]
            matcher.set_seq1(normalise(side.text[start:end]).text)
            floor = best[0] if best else _MIN_LIKENESS
            if matcher.real_quick_ratio() < floor or matcher.quick_ratio() < floor:
                continue
            candidate = (matcher.ratio(), -abs(start / max(1, len(side.text)) - expected), (start, end))
            best = max(best, candidate) if best else candidate
    return (best[2], best[0]) if best and best[0] >= _MIN_LIKENESS else None


# The position of a mark: results of all strategies, and the choice between them.
#
# The quality of a span, 0 to 1, is the strength of the evidence for its position. The strategy's own quality is 1 for
# markers that came back and for whole sentences, the similarity for a part that was translated separately, and that of
# `project` for alignment. If other strategies have a candidate too, the quality is 0.6 of that plus 0.4 of the overlap
# (F1 of code points) with the best of them. Two checks lower it: a number of the mark that the translation has outside
# the span (times 0.3), and a span whose share of the translation is more than four times, or less than a quarter of,
# the mark's share of the text (times 0.5). Markers that pass both checks are taken; otherwise the best candidate is.


Strategy = Literal["tags", "spans", "align"]
_Way = Literal["tags", "sentence", "spans", "align"]
STRATEGIES: tuple[Strategy, ...] = ("tags", "spans", "align")

_OWN, _SHARED = 0.6, 0.4
_NUMBER_OUTSIDE = 0.3
_ODD_LENGTH = 0.5
_TIMES = 4.0
_FEWEST_DIGITS = 2


class PlacedMark(Record):
    """A mark in a translation; the default is a mark without a position.

    Attributes:
        parts: half-open code point ranges, in order.
        quality: 0 to 1, as above.
        way: the strategy; `sentence` if the mark was a whole sentence.
    """

    parts: tuple[Range, ...] = ()
    quality: float = 0.0
    way: _Way | None = None


def best_of(
    source: Side,
    target: Side,
    marks: Sequence[Range],
    *,
    tagged: Sequence[Range] | None,
    apart: Mapping[Range, str],
    aligner: Aligner | None,
) -> list[PlacedMark]:
    """The best position of each mark.

    Args:
        source, target: a text and its translation.
        marks: half-open code point ranges of the text.
        tagged: ranges of the markers, one for each mark; None if they were lost or not used.
        apart: separate translations of marks.
        aligner: None for no alignment.
    """
    aligned = aligner.align(source, target) if aligner is not None and marks else None
    result = []
    for number, mark in enumerate(marks):
        candidates: list[tuple[_Way, tuple[Range, ...], float]] = []
        if tagged is not None:
            candidates.append(("tags", (tagged[number],), 1.0))
        whole = _sentence(source, target, mark)
        if whole is not None:
            candidates.append(("sentence", (whole,), 1.0))
        elif mark in apart:
            located = _locate(target, apart[mark], mark[0] / max(1, len(source.text)))
            if located is not None:
                part, likeness = located
                candidates.append(("spans", (_with_edges(source, target, mark, part),), likeness))
        if aligned is not None and whole is None and aligned.source.inside(mark):
            projected = project(*aligned, mark)
            if projected is not None:
                candidates.append(("align", *projected))
        result.append(_best(source, target, mark, candidates))
    return result


def _sentence(source: Side, target: Side, mark: Range) -> Range | None:
    """The whole translation, if the mark has every word of the text."""
    if not source.words or not target.words or len(source.inside(mark)) < len(source.words):
        return None
    return _with_edges(source, target, mark, (target.words[0][0], target.words[-1][1]))


def _best(
    source: Side, target: Side, mark: Range, candidates: Sequence[tuple[_Way, tuple[Range, ...], float]]
) -> PlacedMark:
    best = PlacedMark()
    for way, parts, own in candidates:
        others = [_overlap(parts, other_parts) for name, other_parts, _ in candidates if name != way]
        sound = _plausible(source, target, mark, parts)
        placed = PlacedMark(parts, min(1.0, sound * (_OWN * own + _SHARED * max(others) if others else own)), way)
        if way == "tags" and sound == 1.0:  # the translator itself gave the position
            return placed
        if not best.parts or placed.quality > best.quality + 1e-9:
            best = placed
    return best


def _overlap(first: Sequence[Range], second: Sequence[Range]) -> float:
    """F1 of the code points of two sets of ranges."""
    first_points, second_points = ({point for part in parts for point in range(*part)} for parts in (first, second))
    return 2 * len(first_points & second_points) / max(1, len(first_points) + len(second_points))


def _plausible(source: Side, target: Side, mark: Range, parts: Sequence[Range]) -> float:
    factor = 1.0
    inside = _numbers(source, [mark])
    there = _numbers(target, parts)
    if any(number in _numbers(target, [(0, len(target.text))]) for number in inside - there):
        factor *= _NUMBER_OUTSIDE
    share = (mark[1] - mark[0]) / max(1, len(source.text))
    now = sum(end - start for start, end in parts) / max(1, len(target.text))
    if now > _TIMES * share or share > _TIMES * now:
        factor *= _ODD_LENGTH
    return factor


def _numbers(side: Side, parts: Sequence[Range]) -> set[str]:
    words = (side.words[word] for part in parts for word in side.inside(part))
    numbers = (_number_of(side.text[start:end]) for start, end in words)
    return {number for number in numbers if number is not None and len(number) >= _FEWEST_DIGITS}
