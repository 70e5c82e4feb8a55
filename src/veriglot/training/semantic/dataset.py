"""Training data of the semantic detector: examples of all kinds, as arrays whose vectors lie in files."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.detectors.grounding.document import Document, Lexicon
from veriglot.detectors.semantic.detector import shared_folder
from veriglot.detectors.semantic.features import ACROSS, NAME, OTHER_SCRIPT, Case, EncoderVectors, pieces, read_sample
from veriglot.errors import VeriglotError
from veriglot.records import Kind
from veriglot.text.normalization import fold
from veriglot.text.segmentation import sentences, space_of, words
from veriglot.training.grounding.examples import Example, Mark, WordLabels, labels_of, majority, share_of
from veriglot.training.grounding.synthetic_data import (
    Paragraph,
    answers_across,
    count_words,
    is_held_out_group,
    made_by_rule,
    paragraphs,
    sentences_across,
)

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import NDArray

    from veriglot.encoders.base import Encoder
    from veriglot.records import Annotation, Sample
    from veriglot.training.grounding.examples import Labelled

    _Read = tuple[int, NDArray[np.float32], NDArray[np.float32], int, tuple[int, int, int]]

__all__ = [
    "TOKENS",
    "Arrays",
    "Blinder",
    "Row",
    "Shelves",
    "examples_of",
    "is_held_out",
    "principal_directions",
    "relation_of",
    "rows_of",
]


_PIECES = 64  # that are encoded at a time: bounds the memory


@dataclass(frozen=True)
class Row(WordLabels):
    """One example: what is needed of it to draw batches and to judge; the rest lies on a shelf.

    Attributes:
        slots: evidence slots.
        address: of its `Arrays`.
    """

    slots: int
    address: tuple[int, int, int]


@dataclass(frozen=True)
class Arrays:
    """What the network is given of one example; a place says where the vector of a word lies, or -1.

    Attributes:
        features: float16, shape (n, f).
        columns: float16, shape (n, c).
        sentence: shape (n,).
        types: shape (n, 6).
        words, question, slots: places, shapes (n,), (q,), (l,).
        ours, slot, value: matches by form: word, slot, how well; shape (k,).
    """

    features: NDArray[np.float16]
    columns: NDArray[np.float16]
    sentence: NDArray[np.int32]
    types: NDArray[np.float32]
    words: NDArray[np.int64]
    question: NDArray[np.int64]
    slots: NDArray[np.int64]
    ours: NDArray[np.int32]
    slot: NDArray[np.int32]
    value: NDArray[np.float16]


class ShelvedVectors(EncoderVectors):
    """Vectors of an encoder where a word's vector is one number: the place at which the projected vector was put.

    Every text is encoded whole when it is first seen, for other responses may ask for other sentences of it.
    """

    def __init__(self, encoder: Encoder, projection: NDArray[np.float32], shelf: Shelf) -> None:
        super().__init__(encoder)
        self._projection, self._shelf = projection, shelf
        self._known: dict[tuple[str | None, str], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def words(
        self,
        text: str,
        tag: str | None,
        bounds: NDArray[np.int64],
        chosen: Sequence[int] | None = None,  # noqa: ARG002
    ) -> NDArray[Any]:
        """The place of each word's vector, shape (n, 1)."""
        key = (tag, text)
        if key not in self._known:
            known = Document([text], tag).bounds
            self._known[key] = known, self._put(text, tag, known)
        known, places = self._known[key]
        at = np.minimum(np.searchsorted(known[:, 0], bounds[:, 0]), max(0, len(known) - 1))
        if len(bounds) and not (len(known) and (known[at] == bounds).all()):
            return self._put(text, tag, bounds)[:, None]  # the words of a text may differ among others
        return places[at][:, None] if len(bounds) else np.zeros((0, 1), np.int64)

    def _put(self, text: str, tag: str | None, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        parts = pieces(text, tag)
        vectors = np.zeros((len(bounds), self._projection.shape[1]), np.float32)
        for at in range(0, len(parts), _PIECES):
            some = parts[at : at + _PIECES]
            inside = np.flatnonzero((bounds[:, 1] > some[0, 0]) & (bounds[:, 0] < some[-1, 1]))
            vectors[inside] += self._encoder.tokens(text, some).of_words(bounds[inside]) @ self._projection
        return self._shelf.put(vectors)


def row_of(example: Example, lexicon: Lexicon, encoder: Encoder, vectors: ShelvedVectors, shelf: Shelf) -> Row | None:
    """Read an example as the detector reads a sample; None where response or evidence hold no word."""
    evidence_language = example.evidence_language or example.language
    strong = tuple(encoder.strength(tag) == "measured" for tag in (example.language, evidence_language))
    case = Case(
        response=example.response,
        passages=example.passages,
        question=example.question,
        language=example.language,
        evidence_language=evidence_language,
        translation=example.translation,
        strong=(strong[0], strong[1]),
    )
    reading = read_sample(case, lexicon, vectors)
    if reading is None:
        return None
    extract = reading.extract
    labels = labels_of(example, extract.response.bounds, extract.markup)
    places = reading.evidence[:, 0].astype(np.int64)
    arrays = Arrays(
        features=extract.values.astype(np.float16),
        columns=reading.columns.astype(np.float16),
        sentence=extract.sentence.astype(np.int32),
        types=labels.types,
        words=reading.words[:, 0].astype(np.int64),
        question=reading.question[:, 0].astype(np.int64),
        slots=np.where(reading.slots >= 0, places, -1),
        ours=reading.ours.astype(np.int32),
        slot=reading.others.astype(np.int32),
        value=reading.value.astype(np.float16),
    )
    return Row(example, labels.target, labels.weight, len(arrays.slots), shelf.record(arrays))


# Rows as if their evidence were in another language: what stands in it as it is written is taken away.
#
# Parallel data is scarce, a few hundred paragraphs, and a network learns them by heart. So half of the rows whose
# evidence is in the response's own language are shown without their forms: meaning, numbers and most names are what is
# left to go by, as across languages.


_FAMILIES = (
    "stretch_", "in_evidence", "log_count", "stem_in_evidence", "log_stem_count", "beginning", "ending", "pair_",
    "near_", "skip_pair_", "swapped", "question_with", "far_", "sentence_best", "sentence_with", "in_best",
    "best_for_question", "sentence_in_", "sentence_before_", "sentence_after_", "sentence_stem", "sentence_stretch",
    "sentence_far", "sentence_pair", "response_stem", "response_stretch",
)  # fmt: skip
_HERE = "log_count_here"  # of the response alone
_NAMES_KEPT = 0.7
_SCRIPTS_DIFFER = 0.6
_SPELT_ALIKE = (0.54, 0.9)  # how well a name that is kept matches by sound


class Blinder:
    """Takes the forms away.

    Args:
        names: the grounding detector's features, in order; word vectors follow them.
        share: of the rows that are blinded.
        rng: draws which, and which names are kept.
    """

    def __init__(self, names: Sequence[str], share: float, rng: np.random.Generator) -> None:
        self._forms = [i for i, name in enumerate(names) if name.startswith(_FAMILIES) and name != _HERE]
        self._number, self._capital = names.index("is_number"), names.index("capital")
        self._share, self._rng = share, rng

    def __call__(self, arrays: Arrays) -> Arrays:
        """A row, blinded or as it was."""
        if self._rng.random() >= self._share:
            return arrays
        features, columns = arrays.features.copy(), arrays.columns.copy()
        number, capital = features[:, self._number] > 0, features[:, self._capital] > 0
        features[:, self._forms] = 0
        value = np.minimum(arrays.value, self._likeness(number, capital)[arrays.ours])
        columns[:, NAME] = 0
        np.maximum.at(columns[:, NAME], arrays.ours, np.where(number[arrays.ours], 0, value).astype(np.float16))
        columns[:, ACROSS] = 1
        columns[:, OTHER_SCRIPT] = self._rng.random() < _SCRIPTS_DIFFER
        left = value > 0
        return replace(
            arrays,
            features=features,
            columns=columns,
            ours=arrays.ours[left],
            slot=arrays.slot[left],
            value=value[left].astype(np.float16),
        )

    def _likeness(self, number: NDArray[np.bool_], capital: NDArray[np.bool_]) -> NDArray[np.float64]:
        """How well each word may still match: numbers in full, most words with a capital as names do."""
        names = capital & (self._rng.random(len(capital)) < _NAMES_KEPT)
        return np.where(number, 1.0, np.where(names, self._rng.uniform(*_SPELT_ALIKE, len(names)), 0.0))


# The principal directions of an encoder's word vectors: what is kept of them while the head is trained.


DIRECTIONS = 256
_PER_LANGUAGE = 50  # responses
_LONGEST = 600  # code points of each


def principal_directions(examples: Sequence[Example], encoder: Encoder, seed: int) -> NDArray[np.float32]:
    """What word vectors are multiplied by before they are stored, shape (d, p).

    The directions in which the tokens of some responses in every language differ most, `DIRECTIONS` of them or as many
    as the encoder has. All are scaled alike, so that numbers are of about the size of one.

    Args:
        examples: whose responses are sampled; one at least has to hold a token.
        encoder: gives the vectors of tokens, shape (t, d).
        seed: of the sample.
    """
    rng = Random(f"directions {seed}")  # noqa: S311  a seeded draw, not a secret
    by_language: dict[str | None, list[Example]] = defaultdict(list)
    for example in examples:
        by_language[example.language].append(example)
    vectors = np.concatenate(
        [
            encoder.tokens(example.response[:_LONGEST]).vectors
            for some in by_language.values()
            for example in rng.sample(some, min(len(some), _PER_LANGUAGE))
        ]
    ).astype(np.float64)
    centred = vectors - vectors.mean(axis=0)
    spread, directions = np.linalg.eigh(centred.T @ centred / max(1, len(centred)))
    largest = np.argsort(-spread)[:DIRECTIONS]
    size = np.sqrt(max(float(spread[largest].mean()), 1e-12))
    result: NDArray[np.float32] = (directions[:, largest] / size).astype(np.float32)
    return result


# Vectors and arrays in files, so that training takes the memory of a batch and not that of all texts.
#
# A share of the examples writes two files: one of vectors, float16, row after row, and one of records. A place is one
# number: the share, and the row in its file.


_ROW_BITS = 40  # of a place: rows of a share


class Shelf:
    """The files of one share, to write."""

    def __init__(self, folder: Path, share: int) -> None:
        self._vectors = _vectors_file(folder, share).open("wb")
        self._records = _records_file(folder, share).open("wb")
        self._share, self._rows = share, 0

    def __enter__(self) -> Shelf:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._vectors.close()
        self._records.close()

    def put(self, vectors: NDArray[np.float32]) -> NDArray[np.int64]:
        """Add vectors, shape (n, p), and say where each lies, shape (n,)."""
        self._vectors.write(vectors.astype(np.float16).tobytes())
        first = (self._share << _ROW_BITS) + self._rows
        self._rows += len(vectors)
        return np.arange(first, first + len(vectors))

    def record(self, value: Any) -> tuple[int, int, int]:
        """Add a record, and say where it lies."""
        data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        start = self._records.tell()
        self._records.write(data)
        return self._share, start, len(data)


class Shelves:
    """The files of all shares, to read.

    Args:
        folder: where they lie.
        width: numbers of a vector.
    """

    def __init__(self, folder: Path, width: int) -> None:
        self.width = width
        self._folder = folder
        self._vectors: dict[int, NDArray[np.float16]] = {}
        self._records: dict[int, NDArray[np.uint8]] = {}

    def take(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors at places, shape (n, p); zeros where a place is -1."""
        vectors = np.zeros((len(places), self.width), np.float32)
        shares = places >> _ROW_BITS
        for share in np.unique(shares[places >= 0]).tolist():
            here = shares == share
            vectors[here] = self._of(share)[places[here] & ((1 << _ROW_BITS) - 1)]
        return vectors

    def record(self, address: tuple[int, int, int]) -> Any:
        """The record at an address."""
        share, start, size = address
        if share not in self._records:
            self._records[share] = np.memmap(_records_file(self._folder, share), np.uint8, "r")
        return pickle.loads(self._records[share][start : start + size].tobytes())  # noqa: S301  our own, of this run

    def _of(self, share: int) -> NDArray[np.float16]:
        if share not in self._vectors:
            file = np.memmap(_vectors_file(self._folder, share), np.float16, "r")
            self._vectors[share] = file.reshape(-1, self.width)
        return self._vectors[share]


def _vectors_file(folder: Path, share: int) -> Path:
    return folder / f"{share}.vectors"


def _records_file(folder: Path, share: int) -> Path:
    return folder / f"{share}.records"


# Rows of all examples, made by several processes, each share of the examples with files of its own.


_SHARES = 32  # as many whatever the processes, so that the files are the same


@dataclass(frozen=True)
class _Work:
    """One share: its number, and the examples with their places among all."""

    share: int
    examples: list[tuple[int, Example]]
    folder: Path
    encoder: Encoder
    projection: NDArray[np.float32]


def rows_of(
    examples: Sequence[Example],
    encoder: Encoder,
    projection: NDArray[np.float32],
    folder: Path,
    *,
    jobs: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """The rows of the examples that hold words, in their order.

    Args:
        examples: what to read.
        encoder: gives the vectors; has to be picklable for `jobs` above 1.
        projection: what word vectors are multiplied by, shape (d, p).
        folder: an empty folder, for some 30 kB an example and 512 bytes a word of evidence at 256 directions.
        jobs: processes.
        say: told of progress.

    Raises:
        VeriglotError: a process died.
    """
    result: dict[int, Row] = {}
    work = [_Work(n, some, folder, encoder, projection) for n, some in sorted(_shared(examples).items())]
    for done, rows in enumerate(_made(work, jobs), start=1):
        result.update({read[0]: Row(examples[read[0]], *read[1:]) for read in rows})
        if 4 * done // len(work) > 4 * (done - 1) // len(work):
            say(f"read {len(result)} of {len(examples)} responses")
    return [result[index] for index in sorted(result)]


def _shared(examples: Sequence[Example]) -> dict[int, list[tuple[int, Example]]]:
    """The examples of each share: those with the same evidence together, one after the other."""
    shares: dict[int, list[tuple[int, Example]]] = defaultdict(list)
    for index, example in enumerate(examples):
        shares[int(share_of("\0".join(example.passages)) * _SHARES)].append((index, example))
    for some in shares.values():
        some.sort(key=lambda pair: (pair[1].passages, pair[0]))
    return shares


def _made(work: list[_Work], jobs: int) -> Iterator[list[_Read]]:
    if jobs == 1:
        yield from map(_rows, work)
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by processes that start: each has one core
    context = multiprocessing.get_context("spawn")  # safe whatever threads the caller runs
    try:
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            yield from pool.map(_rows, work)
    except BrokenProcessPool as error:
        raise VeriglotError(
            "A process that reads training texts died.", remedy="Give it more memory, or fewer jobs."
        ) from error


def _rows(work: _Work) -> list[_Read]:
    """What makes the rows of a share, without the texts, which need not travel back."""
    lexicon = Lexicon.load(shared_folder())
    rows = []
    with Shelf(work.folder, work.share) as shelf:
        vectors = ShelvedVectors(work.encoder, work.projection, shelf)
        for index, example in work.examples:
            row = row_of(example, lexicon, work.encoder, vectors, shelf)
            if row is not None:
                rows.append((index, row.target, row.weight, row.slots, row.address))
    return rows


# Which rows train nothing, and how response and evidence of a row are related.


def is_held_out(row: WordLabels) -> bool:
    """Whether a row trains nothing and calibrates: a tenth, by group; of parallel articles that after the tests."""
    return is_held_out_group(row.example.group)


def relation_of(row: WordLabels) -> str:
    """How response and evidence are related: `same` (language), `across` (languages) or `translation`."""
    example = row.example
    if example.translation:
        return "translation"
    ours, evidence_tag = ((tag or "").split("-")[0] for tag in (example.language, example.evidence_language))
    return "across" if evidence_tag and ours != evidence_tag else "same"


@dataclass(frozen=True)
class Parallel:
    """One short text in two languages or more: translations of each other."""

    group: str
    versions: dict[str, str]


def aligned(paragraphs: Sequence[Paragraph]) -> list[Parallel]:
    """Questions, and sentences of paragraphs, in those languages that cut a paragraph into as many as English does.

    Where English is not there, the language whose tag comes first takes its place.
    """
    texts = []
    for paragraph in paragraphs:
        questions: dict[str, dict[str, str]] = defaultdict(dict)
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


# From parallel texts: right translations, and wrong ones of the kinds that translation systems make.
#
# A system that hallucinates runs in circles (`repeated`), says something else altogether (`detached`), or says what the
# source does not beside what it does (`inserted`). Raunak et al. (NAACL 2021) and Guerreiro et al. (EACL 2023) describe
# these kinds; HAT's guidelines count all of them as hallucination.


_RIGHT, _REPEATED, _DETACHED = 0.4, 0.55, 0.7  # cumulative shares of the kinds; the rest is inserted
_TRIES_TO_DRAW = 20
_REPEATED_WORDS = (1, 2, 3, 4, 5)
_TIMES = (1, 2, 2, 3, 5, 8)
_INSERTED_WORDS = (1, 2, 3, 4, 6, 9, 14)
_AMONG, _BEHIND = 0.35, 0.65  # cumulative shares of the places of what is inserted; the rest replaces the end
_LEAST_KEPT = 3  # the end that is replaced begins after a third of the words

_Others = dict[str, list[tuple[str, str]]]  # language to group and text
_Translated = tuple[str, list[Mark], str]  # text, marks, kind


def translations_of(texts: Sequence[Parallel], count: int, rng: Random) -> Iterator[Example]:
    """Up to `count` translations between two drawn languages of a drawn text; none where there are no texts."""
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
    """A text of another group, and another text, as a rule."""
    for _ in range(_TRIES_TO_DRAW):
        tag, text = rng.choice(others)
        if tag != group and text != version:
            break
    return text


def _phrase(text: str, lengths: tuple[int, ...], language: str, rng: Random) -> tuple[int, int]:
    """Some words of a text in a row, as half-open code points; the text has one at least."""
    bounds = words(text, language)
    count = min(len(bounds), rng.choice(lengths))
    first = rng.randrange(len(bounds) - count + 1)
    return bounds[first][0], bounds[first + count - 1][1]


def _repeated(text: str, language: str, rng: Random) -> _Translated | None:
    """A phrase said again and again, the rest of the sentence behind it or not; None for two words or fewer."""
    if len(words(text, language)) < 3:
        return None
    start, end = _phrase(text, _REPEATED_WORDS, language, rng)
    repetition = (space_of(language) + text[start:end]) * rng.choice(_TIMES)
    rest = text[end:] if rng.random() < 0.5 else ""
    return text[:end] + repetition + rest, [Mark(end, end + len(repetition), "invented")], "repeated"


def _inserted(text: str, other: str, language: str, rng: Random) -> _Translated | None:
    """Words of another text among those of this one, behind them, or in place of their end."""
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
        position, space, rest = rng.choice(bounds[len(bounds) // _LEAST_KEPT :])[0], "", ""
    start = position + len(space)
    marks = [Mark(start, start + len(phrase), "invented")]
    return text[:position] + space + phrase + rest, marks, "inserted"


# From translations labelled by people to training examples, and to parallel texts where they are right.


TOKENS = "translation tokens"  # every word was looked at: nothing teaches more
_ERRORS, _PATHOLOGIES, _CRITICAL = "translation errors", "translation pathologies", "translation critical"
_MOST_WITHOUT = 1500  # translations without an addition, among those of error spans: additions are rare
_MOST_RIGHT = 4000  # right translations of those with critical errors
_MOST_PARALLEL = 2500  # of these that others are made from, in a language
_MOST_MADE = 1800  # made from these, in a language
_EXAMPLES_OF_A_TEXT = 6  # examples made of one text at most, on average
_DIVIDED = 0.6  # how unsupported a word of a strongly detached translation is: a part is, and nobody said which


def labelled_translations(samples: Sequence[Sample], left_out: Counter[str], rng: Random) -> Iterator[Example]:
    """Every labelled translation that teaches something, and some made by rule from those that are right.

    What a label teaches hangs on its form. Spans that are agreed on (`gold`) say of every word whether the source has
    it. Spans of single raters are one category of an error typology, additions, and rare: translations without any
    are sampled. Flags name a pathology of the whole. A binary judgement says that a translation is right, or that
    something somewhere is wrong, which teaches nothing.
    """
    sources: dict[str, list[Sample]] = defaultdict(list)
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
    whole, flags = len(sample.response), _gold(sample).flags
    if "full_detachment" in flags:
        return _example(sample, _PATHOLOGIES, (Mark(0, whole, "invented"),))
    if "strong_detachment" in flags:
        return _example(sample, _PATHOLOGIES, (Mark(0, whole, "invented"),), shares=((0, whole, _DIVIDED),))
    return _example(sample, _PATHOLOGIES, tuple(_repeats(sample)) if "oscillation" in flags else ())


def _repeats(sample: Sample) -> Iterator[Mark]:
    """The words of every pair of neighbours that stood further left already."""
    bounds = words(sample.response, sample.language)
    forms = [fold(sample.response[start:end]) for start, end in bounds]
    seen: set[tuple[str, str]] = set()
    marked: set[int] = set()
    for nth, pair in enumerate(pairwise(forms)):
        if pair in seen:
            marked |= {nth, nth + 1}
        seen.add(pair)
    for nth in sorted(marked):
        yield Mark(*bounds[nth], "invented")


def _of_right_ones(right: list[Sample], rng: Random) -> Iterator[Example]:
    for sample in rng.sample(right, min(len(right), _MOST_RIGHT)):
        yield _example(sample, _CRITICAL, (), kind="clean")
    by_pair: dict[tuple[str | None, str | None], list[Sample]] = defaultdict(list)
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


# From what was read to all examples that the semantic detector learns from.


_MOST_TRANSLATIONS = 9000  # made from parallel sets
_TRANSLATIONS_OF_A_TEXT = 6  # of each of their texts at most, on average


def examples_of(labelled: Labelled, seed: int) -> list[Example]:
    """Labelled examples, those made as for the grounding detector, and those across languages and of translation.

    Args:
        labelled: what was read; what is not used is counted in `left_out`.
        seed: of everything that is drawn.
    """
    rng = Random(f"across {seed}")  # noqa: S311  a seeded draw, not a secret
    commonness = count_words(labelled)
    parallel = paragraphs(labelled.answers)
    made = list(_regrouped(made_by_rule(labelled, commonness, seed), parallel))
    texts = aligned(parallel)
    return [
        *labelled.examples,
        *made,
        *answers_across(parallel, rng),
        *sentences_across(parallel, commonness, rng),
        *translations_of(texts, min(_MOST_TRANSLATIONS, _TRANSLATIONS_OF_A_TEXT * len(texts)), rng),
        *labelled_translations(labelled.translations, labelled.left_out, rng),
    ]


def _regrouped(examples: Iterable[Example], paragraphs: list[Paragraph]) -> Iterable[Example]:
    """The examples, those about a parallel paragraph in the group of its article, which holds in every language."""
    groups = {
        (language, paragraph.passage(language)): paragraph.group
        for paragraph in paragraphs
        for language in paragraph.versions
    }
    for example in examples:
        group = groups.get((example.language or "", example.passages[0]))
        yield example if group is None else replace(example, group=group)
