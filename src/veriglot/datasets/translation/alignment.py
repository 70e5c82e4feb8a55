"""Word alignment of a text and its translation: links by letters and numbers, or by vectors of an encoder."""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from veriglot.encoders.base import load_encoder
from veriglot.errors import MissingExtraError
from veriglot.hub.registry import MissingWeightsError
from veriglot.signatures import signature
from veriglot.text.normalization import fold, normalise
from veriglot.text.segmentation import sentences, word_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.encoders.base import Encoder

    Matrix = NDArray[np.float32]
    Array = NDArray[np.float64]

__all__ = [
    "Aligner",
    "AlignmentWeights",
    "LexicalAligner",
    "Link",
    "Range",
    "Side",
    "VectorAligner",
    "best_aligner",
    "number_of",
    "side_of",
    "vector_aligner",
]


_ROUNDS = 2
_TIE = 0.97  # share of its best that a pair has to have to count as as good
_SECOND = 0.9  # what the similarity of a word that has a link already counts for a second one
_CONTEXT = 0.25  # what neighbours that match each other add, at most
_REACH = 6  # words on either side
_POSITION = 0.05  # what standing at the same place adds, at most


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
        """The words as they stand."""
        return [self.text[start:end] for start, end in self.words]


class Link(NamedTuple):
    """A word of the source, one of the target (both by number, from 0), and how sure the link is, above 0 to 1."""

    source: int
    target: int
    weight: float


class Alignment(NamedTuple):
    """A text and its translation with their words linked."""

    source: Side
    target: Side
    links: Sequence[Link]


class Aligner(Protocol):
    """Links words. A class of one's own with these two is an aligner too.

    Attributes:
        signature: one line that says how it aligns.
    """

    signature: str

    def align(self, source: Side, target: Side) -> Alignment:
        """Link the words of a text and of its translation; a word may have no link, or several."""
        ...


def side_of(text: str, tag: str) -> Side:
    """A text with its words."""
    return Side(text, tag, tuple((start, end) for start, end in word_bounds(text, tag).tolist()))


def links_of(similarity: Matrix, *, threshold: float) -> list[Link]:
    """Links out of similarities, 0 to 1: pairs from `threshold` on that are each other's best, then of what is left.

    First each word gets one link at most, to its best or to one that is as good: of several equal words the one whose
    neighbours have links to each other. Then come iterations as in SimAlign's *itermax* (Jalili Sabet et al. 2020,
    section 3.1): words that have a link may have another, at a discount.
    """
    if not similarity.size:
        return []
    similarity = np.asarray(similarity, np.float32)
    allowed = similarity >= threshold
    near = allowed & (similarity >= _TIE * similarity.max(1, keepdims=True))
    near &= similarity >= _TIE * similarity.max(0, keepdims=True)
    taken = np.zeros(similarity.shape, dtype=bool)
    while True:  # each word once, to its best or as good as best; what is linked says which of several is meant
        free = near & ~np.any(taken, axis=1)[:, None] & ~np.any(taken, axis=0)[None]
        around = taken if taken.any() else similarity
        if not _taken_from(np.where(free, _in_context(similarity, around), 0.0), taken):
            break
    for _ in range(_ROUNDS):
        rows, columns = np.any(taken, axis=1)[:, None], np.any(taken, axis=0)[None]
        discount = np.where(rows ^ columns, _SECOND, np.where(rows & columns, 0.0, 1.0))
        if not _taken_from(np.where(allowed, _in_context(similarity, taken) * discount, 0.0), taken):
            break
    return [Link(i, j, float(min(1.0, similarity[i, j]))) for i, j in np.argwhere(taken).tolist()]


def _taken_from(scored: Matrix, taken: NDArray[np.bool_]) -> bool:
    """Take the pairs that are each other's best; whether there was a new one."""
    across, down = scored.argmax(1), scored.argmax(0)
    new = [(i, int(j)) for i, j in enumerate(across) if down[j] == i and scored[i, j] > 0 and not taken[i, j]]
    for pair in new:
        taken[pair] = True
    return bool(new)


def _in_context(similarity: Matrix, beside: NDArray[Any]) -> Matrix:
    """Similarities with what places add, and neighbours that `beside` says to match; only where there was any."""
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


# Alignment without a network: words that stay as they are, numbers by value, names by sound, a dictionary, places.


_NO_LETTER = re.compile("[^a-z]")
_INNER_VOWEL = re.compile("(?<=.)[aeiouyhw]")
_DOUBLED = re.compile(r"(.)\1+")
_SOUNDS = str.maketrans("ckqgjzxvbd", "kkkkyssfpt")  # spellings that scripts and languages exchange
_SHORTEST = 3  # sounds; shorter forms meet by chance
_ALIKE = 0.75
_LEAST_SIMILARITY = 0.5
_GUESSED = 0.25  # weight of a link that place alone suggests


class LexicalAligner:
    """Links words that can be recognised; those between two such words are guessed by their place, at a low weight.

    Names are held against each other by their sound where the packages of the extra `semantic` are installed (anyascii,
    rapidfuzz); the signature says whether they are.
    """

    def __init__(self) -> None:
        self.signature = signature(aligner="lexical", sounds=_sounds_available(), guess=True)

    def align(self, source: Side, target: Side) -> Alignment:
        """As `Aligner`."""
        links = links_of(_lexical_similarity(source, target), threshold=_LEAST_SIMILARITY)
        return Alignment(source, target, sorted([*links, *_guessed(links, len(source.words), len(target.words))]))


def _lexical_similarity(source: Side, target: Side) -> Matrix:
    """How alike words are by form, shape (source words, target words), 0 to 1; 0 where nothing can be said."""
    source_words, target_words = source.forms(), target.forms()
    similarity = np.zeros((len(source_words), len(target_words)), np.float32)
    if not similarity.size:
        return similarity
    columns: dict[str, list[int]] = defaultdict(list)
    for j, word in enumerate(target_words):
        for key in {fold(word), number_of(fold(word)) or fold(word)}:
            columns[key].append(j)
    for i, word in enumerate(source_words):
        for key in {fold(word), number_of(fold(word)) or fold(word)}:
            similarity[i, columns.get(key, [])] = 1.0
    return np.maximum(similarity, _by_sound(source_words, target_words)) if _sounds_available() else similarity


@lru_cache(maxsize=1 << 16)
def number_of(word: str) -> str | None:
    """The digits of a number, in ASCII and without separators; None for what is none."""
    plain = normalise(word).text
    if not any(char.isdecimal() for char in plain) or any(char.isalpha() for char in plain):
        return None
    return re.sub(r"\D", "", plain)


@lru_cache(maxsize=1)
def _sounds_available() -> str | None:
    try:
        import anyascii  # noqa: F401
        import rapidfuzz
    except ImportError:
        return None
    return f"anyascii,rapidfuzz-{rapidfuzz.__version__}"


def _by_sound(source_words: list[str], target_words: list[str]) -> Matrix:
    """How alike the sounds of words are that may be names: capitalised, or in a script without capitals."""
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


@lru_cache(maxsize=1 << 16)
def _sounds(word: str) -> str:
    """The consonants of what may be a name, in Latin letters; nothing for any other word."""
    if word[:1].islower():
        return ""
    from anyascii import anyascii

    letters = _NO_LETTER.sub("", anyascii(word).lower()).replace("ph", "f").translate(_SOUNDS)
    return _DOUBLED.sub(r"\1", _INNER_VOWEL.sub("", letters))


def _guessed(links: Sequence[Link], n: int, m: int) -> list[Link]:
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
                guesses.append(Link(i, j, _GUESSED))
    return guesses


# The best aligner that can be had on this machine as it is; nothing is fetched.


ENCODERS = ("e5-multilingual", "use-multilingual")  # best first, by docs/translate.md


def best_aligner(encoders: Sequence[str] = ENCODERS, *, begun: str | None = None) -> Aligner:
    """Vectors of the first encoder that is here, else forms alone; the signature of what is returned says which.

    On human translations vectors found more than forms did in each of eleven languages, those that an encoder is weak
    in included (docs/translate.md).

    Args:
        encoders: names of `ENCODERS` of `veriglot.encoders`, best first.
        begun: signature of the aligner that an output was begun with, which is taken again if it is one of these: an
            encoder that arrives between two calls must not cost what was translated before.

    Raises:
        WeightsError: the weights of one are here and damaged.
    """
    aligners: list[Aligner] = []
    for encoder in encoders:
        with suppress(MissingExtraError, MissingWeightsError):
            aligners.append(vector_aligner(encoder))
            if begun in (None, aligners[-1].signature):
                return aligners[-1]
    aligners.append(LexicalAligner())
    return next((aligner for aligner in aligners if aligner.signature == begun), aligners[0])


# How likely two words of a text and its translation belong together, out of how alike they are and where they stand.
#
# As in AWESOME-align (Dou and Neubig 2021, section 2.2), similarities become probabilities by a softmax in both
# directions; here their geometric mean is taken. Three things are put in before, since sentence encoders see a
# paragraph's words as all rather alike: similarities count against those of a word's nearest (CSLS; Conneau et al.
# 2018, section 2.3), equal forms and names add to them, and words far from where their surroundings went are held back.


_NEAREST = 5  # words that a similarity is held against
_FEWEST = 10.0  # words; in a short sentence order says little
_SURROUNDINGS = 8  # words on either side that say where a stretch of text went
_FADES = 4.0  # words after which a neighbour says half as much
_LEAST_POSTERIOR = 0.02  # probability of a link


class AlignmentWeights(NamedTuple):
    """What counts how much. The defaults were chosen by `benchmarks/projection.py` on half of its paragraphs.

    Attributes:
        temperature: of the softmax; lower is more decided.
        form: what an equal form adds, on the scale of two cosines.
        place: what a word far from where it is expected loses.
        spread: share of the text that is far, before anything is known of the order.
        reach: words that are far, once it is.
        rounds: how often the order is read off and put in again.
    """

    temperature: float = 0.1
    form: float = 0.7
    place: float = 0.6
    spread: float = 0.2
    reach: float = 8.0
    rounds: int = 2


def _posterior(cosine: Matrix, form: Matrix | None, weighing: AlignmentWeights) -> Array:
    """Probabilities, 0 to 1, shape (source words, target words), of cosines and, if that counts, likeness of forms."""
    n, m = cosine.shape
    if not cosine.size:
        return np.zeros((n, m))
    alike = _against_nearest(np.asarray(cosine, np.float64))
    if form is not None:
        alike = alike + weighing.form * form
    expected = np.arange(n) * m / n
    columns = np.arange(m)[None]
    far = np.abs(columns - expected[:, None]) / max(weighing.spread * m, _FEWEST)
    probabilities = _both_ways(alike - weighing.place * np.minimum(far**2, 1.0), weighing.temperature)
    for _ in range(weighing.rounds):
        far = np.abs(columns - (expected + _shift_of(probabilities, expected))[:, None]) / weighing.reach
        probabilities = _both_ways(alike - weighing.place * np.minimum(far, 1.0), weighing.temperature)
    return probabilities


def _soft_links(probabilities: Array) -> list[Link]:
    """Every pair that is not improbable, in the order of the source, with its probability as weight."""
    places = np.argwhere(probabilities >= _LEAST_POSTERIOR)
    return [Link(i, j, min(1.0, float(probabilities[i, j]))) for i, j in places.tolist()]


def _against_nearest(cosine: Array) -> Array:
    across = np.sort(cosine, axis=1)[:, -_NEAREST:].mean(1, keepdims=True)
    down = np.sort(cosine, axis=0)[-_NEAREST:].mean(0, keepdims=True)
    return np.asarray(2 * cosine - across - down)


def _both_ways(alike: Array, temperature: float) -> Array:
    return np.asarray(np.sqrt(_softmax(alike / temperature, 1) * _softmax(alike / temperature, 0)))


def _softmax(values: Array, axis: int) -> Array:
    powers = np.exp(values - values.max(axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis, keepdims=True))


def _shift_of(probabilities: Array, expected: Array) -> Array:
    """How far each source word's surroundings went from where they were expected: a weighted median, in words."""
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
    """Links words whose vectors lie close, that can be told by form, and that stand where they would.

    Args:
        encoder: gives the vectors, each in its context.
        forms: whether equal words, numbers and names count too.
        weighing: what counts how much.
    """

    def __init__(self, encoder: Encoder, *, forms: bool = True, weighing: AlignmentWeights | None = None) -> None:
        self._encoder = encoder
        self._forms = forms
        self._weighing = weighing or AlignmentWeights()
        given = {key: value for key, value in self._weighing._asdict().items() if forms or key != "form"}
        self.signature = signature(aligner="vectors", forms=forms, **given, encoder=encoder.signature)

    def align(self, source: Side, target: Side) -> Alignment:
        """As `Aligner`."""
        if not source.words or not target.words:
            return Alignment(source, target, [])
        cosine = self._vectors(source) @ self._vectors(target).T
        form = _lexical_similarity(source, target) if self._forms else None
        return Alignment(source, target, _soft_links(_posterior(cosine, form, self._weighing)))

    def _vectors(self, side: Side) -> Matrix:
        tokens = self._encoder.tokens(side.text, sentences(side.text, side.tag))
        vectors = tokens.of_words(np.array(side.words, np.int64))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Matrix = vectors / np.maximum(lengths, 1e-9)
        return unit


def vector_aligner(encoder: str = "use-multilingual", **options: Any) -> VectorAligner:
    """The aligner over an encoder by name.

    Args:
        encoder: a name of `ENCODERS`.
        options: of the encoder.
    """
    return VectorAligner(load_encoder(encoder, **options))
