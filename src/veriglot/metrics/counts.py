"""Counts, the sufficient statistics of an evaluation: built per response, summed, joined, and kept in a file.

All figures are computed from counts. They can be stored, added to those of another run and resampled, without new
inference.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from veriglot.errors import InputError, UsageError
from veriglot.metrics.estimate import stream, weights
from veriglot.metrics.scores import BINS, EDGES, bin_of, spearman
from veriglot.metrics.spans import (
    MATCHES,
    covered,
    fact_marks,
    fact_scores,
    marked,
    sentence_scores,
    unit_probabilities,
)
from veriglot.plugins import read_package_data
from veriglot.records.settings import Record
from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from veriglot.arrays import Bools, Float64s, Int32s, Int64s
    from veriglot.metrics.reference import Marks
    from veriglot.text.facts import Fact

    Array = Float64s
    Bounds = Int32s
    Mask = Bools

__all__ = ["Builder", "Counts", "CountsFile", "Coverage", "Histogram", "JudgedResponse", "Sums"]


# Name of a block to its columns. `_widths` adds `types`, which has four columns for each type.
BLOCKS = read_package_data(__package__, "blocks.toml", dict[str, tuple[str, ...]])
SUPPORT = BLOCKS["support"]
HISTOGRAMS = ("unit", "fact", "sentence", "response")


class Histogram(NamedTuple):
    """Confidences of many responses in the bins of `metrics.scores`, without empty cells.

    Attributes:
        response: index of the response of each cell, shape `(cells,)`.
        bin: the bin of each cell, shape `(cells,)`.
        values: unsupported and supported units, sum of confidences, sum of squared errors; shape `(cells, 4)`.
    """

    response: Int64s
    bin: Int64s
    values: Array


@dataclass(frozen=True)
class JudgedResponse:
    """One response with its labels and the detector's prediction, as arrays.

    Attributes:
        id: the sample's id.
        language: BCP 47 tag.
        cluster: key of the text; responses with the same key are resampled together.
        length: code points of the response.
        bounds: units, shape `(n, 2)`.
        sentences: sentences, shape `(m, 2)`.
        gold: the unsupported spans of the reference.
        predicted: the spans of the detector.
        probability: the detector's probability per code point, shape `(length,)`; None if it gave none.
        soft: share of annotators per code point, shape `(length,)`, or None.
        predicted_soft: the prediction to compare with `soft`, shape `(length,)`, or None.
        score: the detector's probability that anything in the response is unsupported, or None.
        facts: atomic facts of the response; empty if they are not counted.
        threshold: score from which a sentence counts as marked; None to mark those that a span overlaps.
        unsupported: label of the whole response, if nobody marked spans; it then counts only in figures of
            responses.
    """

    id: str
    language: str
    cluster: str
    length: int
    bounds: Bounds
    sentences: Bounds
    gold: Marks
    predicted: Marks
    probability: Array | None = None
    soft: Array | None = None
    predicted_soft: Array | None = None
    score: float | None = None
    facts: Sequence[Fact] = ()
    threshold: float | None = None
    unsupported: bool | None = None


@dataclass(frozen=True)
class Sums:
    """Summed counts: the data in draw 0, then the resamples."""

    blocks: dict[str, Array]
    histograms: dict[str, Array]

    def column(self, block: str, name: str) -> Array:
        """One of the `BLOCKS` columns, with a value for each draw."""
        return self.blocks[block][..., BLOCKS[block].index(name)]

    def first(self) -> Sums:
        """The data alone."""
        return Sums(*({name: part[:1] for name, part in parts.items()} for parts in (self.blocks, self.histograms)))

    def __add__(self, other: Sums) -> Sums:
        """The sums of two strata, added in each draw."""
        pairs = ((self.blocks, other.blocks), (self.histograms, other.histograms))
        return Sums(*({name: part + more[name] for name, part in parts.items()} for parts, more in pairs))


@dataclass(frozen=True)
class Counts:
    """Counts of many responses.

    Attributes:
        unit: the unit of level `unit`.
        types: the types of level `category`; empty if types cannot be compared.
        ids: id of each response.
        languages: BCP 47 tag of each response.
        clusters: text key of each response.
        blocks: name of a block (`BLOCKS`, and `types`: four columns for each type) to counts, shape `(responses, k)`.
        histograms: level to the confidences of its units.
    """

    unit: str
    types: tuple[str, ...]
    ids: tuple[str, ...]
    languages: tuple[str, ...]
    clusters: tuple[str, ...]
    blocks: dict[str, Array]
    histograms: dict[str, Histogram]

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def join(cls, parts: Sequence[Counts]) -> Counts:
        """Join the counts of several runs, at least one.

        Raises:
            UsageError: they have different units or types.
        """
        first = parts[0]
        for part in parts[1:]:
            if (part.unit, part.types) != (first.unit, first.types):
                raise UsageError(
                    f"Counts of {part.unit} with {len(part.types)} types cannot be added to counts of {first.unit} with"
                    f" {len(first.types)} types.",
                    "Evaluate both at the same unit and in the same taxonomy.",
                )
        offsets = np.cumsum([0, *(len(part) for part in parts)]).tolist()
        histograms = {}
        for level in HISTOGRAMS:
            pieces = [part.histograms[level] for part in parts]
            shifted = [piece._replace(response=piece.response + o) for piece, o in zip(pieces, offsets, strict=False)]
            histograms[level] = Histogram(*(np.concatenate(columns) for columns in zip(*shifted, strict=True)))
        return replace(
            first,
            ids=tuple(i for part in parts for i in part.ids),
            languages=tuple(tag for part in parts for tag in part.languages),
            clusters=tuple(key for part in parts for key in part.clusters),
            blocks={name: np.concatenate([part.blocks[name] for part in parts]) for name in first.blocks},
            histograms=histograms,
        )

    def sums(self, language: str, *, resamples: int, seed: int) -> tuple[Sums, int]:
        """The sums of one language and its number of clusters; empty and 0 if the language is absent."""
        group = np.full(len(self), -1, np.int64)
        number: dict[str, int] = {}
        for index, (tag, key) in enumerate(zip(self.languages, self.clusters, strict=True)):
            if tag == language:
                group[index] = number.setdefault(key, len(number))
        clusters = len(number)
        drawn_weights = weights(clusters, resamples, stream(seed, language)) if clusters else None
        widths = [block.shape[1] for block in self.blocks.values()] + [4 * BINS] * len(self.histograms)
        drawn = np.zeros((1 + resamples, sum(widths)))
        for first in range(0, clusters, _CLUSTERS):
            size = min(_CLUSTERS, clusters - first)
            inside = (group >= first) & (group < first + size)
            table = _table(self, np.where(inside, group - first, -1), size)
            drawn[0] += table.sum(axis=0)
            used = np.flatnonzero(table.any(axis=0))  # most bins are empty: multiply only the others
            if drawn_weights is not None:
                block = drawn_weights[:, first : first + size].astype(np.float64)
                drawn[1:, used] += block @ table[:, used]
        parts = np.split(drawn, np.cumsum(widths)[:-1], axis=1)
        blocks = dict(zip(self.blocks, parts, strict=False))
        tables = [part.reshape(-1, 4, BINS) for part in parts[len(blocks) :]]
        return Sums(blocks, dict(zip(self.histograms, tables, strict=True))), clusters

    def histogram(self, level: str, language: str) -> Array:
        """The confidences of one language by bin, shape `(4, BINS)`: see `Histogram.values`."""
        table: Array = _dense(self.histograms[level], np.where(np.array(self.languages) == language, 0, -1), 1)[0]
        return table


# Counts summed over a language and over its resamples.

_CLUSTERS = 1024  # clusters in dense form at a time: about 70 MB


def _dense(histogram: Histogram, group: Int64s, groups: int) -> Array:
    """Histograms summed over groups of responses (-1 for no group), shape `(groups, 4, BINS)`."""
    home = group[histogram.response] if len(histogram.response) else np.zeros(0, np.int64)
    inside = home >= 0
    cell = home[inside] * BINS + histogram.bin[inside]
    columns = [
        np.bincount(cell, weights=histogram.values[inside, column], minlength=groups * BINS).reshape(groups, BINS)
        for column in range(4)
    ]
    return np.stack(columns, axis=1)


def _table(counts: Counts, group: Int64s, clusters: int) -> Array:
    """All counts of each cluster in one row: the blocks, then the histograms."""
    chosen = group >= 0
    columns = []
    for block in counts.blocks.values():
        sums = np.zeros((clusters, block.shape[1]))
        np.add.at(sums, group[chosen], block[chosen])
        columns.append(sums)
    columns += [_dense(histogram, group, clusters).reshape(clusters, -1) for histogram in counts.histograms.values()]
    return np.concatenate(columns, axis=1)


def _widths(types: Sequence[str]) -> dict[str, int]:
    """Number of columns of each block, including `types`."""
    return {**{name: len(columns) for name, columns in BLOCKS.items()}, "types": 4 * len(types)}


def _confusion(gold: Mask, predicted: Mask) -> list[int]:
    tp = int(np.count_nonzero(gold & predicted))
    fp, fn = int(np.count_nonzero(predicted)) - tp, int(np.count_nonzero(gold)) - tp
    return [tp, fp, fn, len(gold) - tp - fp - fn]


def _cells(confidence: Array, gold: Mask) -> tuple[Int64s, Array]:
    """The non-empty bins of one response and their four sums."""
    bins, index = np.unique(bin_of(confidence), return_inverse=True)
    positive = gold.astype(np.float64)
    columns = (positive, 1.0 - positive, confidence, (confidence - positive) ** 2)
    return bins, np.stack([np.bincount(index, weights=c, minlength=len(bins)) for c in columns], axis=1)


def marked_types(bounds: Bounds, spans: Bounds, types: Sequence[str | None], names: Sequence[str]) -> Mask:
    """Which units overlap a span of which type, shape `(n, len(names))`; a unit may have several types.

    Spans with type None, or a type not in `names`, mark no column.
    """
    table = np.zeros((len(bounds), len(names)), bool)
    labels = np.array([name if name is not None else "" for name in types], object)
    for column, name in enumerate(names):
        chosen = labels == name
        if chosen.any():
            table[:, column] = marked(bounds, spans[chosen])
    return table


# Character-level agreement on one response, as defined in the Mu-SHROOM shared task (SemEval-2025 task 3).
#
# Both figures count every code point of the response, including white space, as the task's scorer does.

_DIGITS = 8  # the task's scorer rounds to 8 digits before it checks whether a vector is constant


def intersection_over_union(gold: Mask, predicted: Mask) -> float:
    """Characters marked by both over characters marked by either; 1.0 if neither marks any."""
    either = int(np.count_nonzero(gold | predicted))
    return int(np.count_nonzero(gold & predicted)) / either if either else 1.0


def soft_correlation(gold: Array, predicted: Array) -> float:
    """Spearman's correlation of predicted probabilities with soft labels, per code point of one response.

    If either vector is constant the correlation is undefined; the task's scorer then gives 1.0 if both are constant,
    and 0.0 if only one is. An empty response counts as constant on both sides.
    """
    constant = [len(np.unique(np.round(vector, _DIGITS))) <= 1 for vector in (gold, predicted)]
    if any(constant):
        return float(all(constant))
    return float(spearman(gold, predicted, np.ones((1, len(gold))))[0])


def support(gold: Mask, predicted: Mask, scores: Array | None) -> list[float]:
    """The `SUPPORT` columns of one response, from which of its facts are unsupported; zeros if it has none.

    If the detector gives no `scores` (the probability that each is unsupported), marks replace them.
    """
    if not len(gold):
        return [0.0] * len(SUPPORT)
    true, marked = 1.0 - float(gold.mean()), 1.0 - float(predicted.mean())
    expected = marked if scores is None else 1.0 - float(scores.mean())
    return [1.0, true, marked, expected, abs(expected - true), true**2, expected**2, true * expected]


@dataclass
class Builder:
    """Builds counts, one response at a time."""

    unit: str
    types: tuple[str, ...] = ()
    _names: list[tuple[str, str, str]] = field(default_factory=list)
    _rows: dict[str, list[Sequence[float]]] = field(default_factory=dict)
    _cells: dict[str, list[tuple[int, Int64s, Array]]] = field(default_factory=dict)

    def add(self, judged: JudgedResponse) -> None:
        """Count one response."""
        index = len(self._names)
        self._names.append((judged.id, judged.language, judged.cluster))
        gold, predicted = judged.gold, judged.predicted
        any_gold, any_marked = np.array([len(gold.spans) > 0]), np.array([len(predicted.spans) > 0])
        if judged.unsupported is not None:
            any_gold = np.array([judged.unsupported])
            for block, width in _widths(self.types).items():
                counted = block == "response" or (block == "unit" and self.unit == "response")
                self._row(block, _confusion(any_gold, any_marked) if counted else [0] * width)
            in_unit = any_gold
        else:
            in_unit = self._units(judged)
            self._row("response", _confusion(any_gold, any_marked))
            self._sentences(judged, index, self._facts(judged, index))
            self._spans(gold, predicted)
            self._characters(judged)
        if judged.probability is not None and (judged.unsupported is None or self.unit == "response"):
            self._histogram("unit", index, unit_probabilities(judged.bounds, judged.probability), in_unit)
        if judged.score is not None:
            self._histogram("response", index, np.array([judged.score]), any_gold)

    def _row(self, block: str, values: Sequence[float]) -> None:
        self._rows.setdefault(block, []).append(values)

    def _histogram(self, level: str, index: int, confidence: Array, gold: Mask) -> None:
        if len(confidence):
            self._cells.setdefault(level, []).append((index, *_cells(confidence, gold)))

    def _units(self, judged: JudgedResponse) -> Mask:
        gold, predicted = judged.gold, judged.predicted
        in_gold, in_marked = marked(judged.bounds, gold.spans), marked(judged.bounds, predicted.spans)
        self._row("unit", _confusion(in_gold, in_marked))
        typed_gold = marked_types(judged.bounds, gold.spans, gold.types, self.types)
        typed = marked_types(judged.bounds, predicted.spans, predicted.types, self.types)
        self._row("types", [n for t in range(len(self.types)) for n in _confusion(typed_gold[:, t], typed[:, t])])
        both = typed_gold.any(axis=1) & typed.any(axis=1)
        right = (typed_gold & typed).any(axis=1)
        self._row("typing", [int(np.count_nonzero(right)), int(np.count_nonzero(both))])
        return in_gold

    def _facts(self, judged: JudgedResponse, index: int) -> Array | None:
        """Count the facts, marked if a span overlaps them; returns their scores, if there are confidences."""
        gold = fact_marks(judged.facts, judged.length, judged.gold.spans)
        predicted = fact_marks(judged.facts, judged.length, judged.predicted.spans)
        scores = None if judged.probability is None else fact_scores(judged.facts, judged.probability)
        self._row("fact", _confusion(gold, predicted))
        self._row("support", support(gold, predicted, scores))
        if scores is not None:
            self._histogram("fact", index, scores, gold)
        return scores

    def _sentences(self, judged: JudgedResponse, index: int, facts: Array | None) -> None:
        gold, predicted = (marked(judged.sentences, marks.spans) for marks in (judged.gold, judged.predicted))
        if judged.probability is not None:
            scores = unit_probabilities(judged.sentences, judged.probability)
            if facts is not None and len(facts):
                scores = sentence_scores(judged.sentences, judged.facts, facts, judged.probability)
            self._histogram("sentence", index, scores, gold)
            predicted = predicted if judged.threshold is None else scores >= judged.threshold
        self._row("sentence", _confusion(gold, predicted))

    def _spans(self, gold: Marks, predicted: Marks) -> None:
        left, right = predicted.spans, gold.spans
        for block, match in MATCHES.items():
            self._row(block, match(left, right))
        for block in ("exact", "overlap"):
            typed = MATCHES[block](left, right, predicted.types, gold.types) if self.types else (0, 0, 0)
            self._row(f"typed_{block}", typed)

    def _characters(self, judged: JudgedResponse) -> None:
        gold = covered(judged.length, judged.gold.spans)
        predicted = covered(judged.length, judged.predicted.spans)
        self._row("iou", (intersection_over_union(gold, predicted), 1))
        self._row("extent", (int(np.count_nonzero(gold)), judged.length))
        if judged.soft is not None and judged.predicted_soft is not None:
            self._row("soft", (soft_correlation(judged.soft, judged.predicted_soft), 1))
        else:
            self._row("soft", (0, 0))

    def counts(self) -> Counts:
        """The counts of all responses so far."""
        number = len(self._names)
        blocks = {
            name: np.array(self._rows.get(name, []), np.float64).reshape(number, width)
            for name, width in _widths(self.types).items()
        }
        ids, languages, clusters = zip(*self._names, strict=True) if self._names else ((), (), ())
        histograms = {level: _stack(self._cells.get(level, [])) for level in HISTOGRAMS}
        return Counts(self.unit, self.types, ids, languages, clusters, blocks, histograms)


def _stack(cells: Sequence[tuple[int, Int64s, Array]]) -> Histogram:
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 4))
    columns = zip(nothing, *((np.full(len(bins), index), bins, values) for index, bins, values in cells), strict=True)
    return Histogram(*map(np.concatenate, columns))


class Coverage(Record):
    """Status counts of the samples of one language, or of all.

    Attributes:
        samples: number of samples.
        labelled: those with labels of the chosen annotator; the others are in no figure.
        scored: labelled ones that the detector scored; figures use only these.
        unscored: status to number of labelled samples with it; `missing` without a prediction.
    """

    samples: int = 0
    labelled: int = 0
    scored: int = 0
    unscored: dict[str, int] = {}

    @property
    def share(self) -> float | None:
        """scored / labelled; None if nothing is labelled."""
        return self.scored / self.labelled if self.labelled else None

    def with_sample(self, *, labelled: bool, status: str) -> Coverage:
        """Add one sample; `status` is `scored`, another status of a prediction, or `missing`."""
        scored = labelled and status == "scored"
        unscored = {status: 1} if labelled and not scored else {}
        return Coverage.total([self, Coverage(1, int(labelled), int(scored), unscored)])

    @classmethod
    def total(cls, parts: Iterable[Coverage]) -> Coverage:
        """The sum of several."""
        numbers, unscored = np.zeros(3, np.int64), Counter[str]()
        for part in parts:
            numbers += (part.samples, part.labelled, part.scored)
            unscored.update(part.unscored)
        samples, labelled, scored = numbers.tolist()
        return cls(samples, labelled, scored, dict(unscored))


FORMAT = "veriglot-counts-1"
_GRID = digest([np.round(EDGES, 9).tobytes()])[:12]  # rounded, since libraries differ in the last bit


class _Cells(msgspec.Struct):
    response: list[int]
    bin: list[int]
    values: list[tuple[float, float, float, float]]


class _File(msgspec.Struct, kw_only=True):
    format: str
    about: dict[str, str | float | None]
    coverage: dict[str, Coverage]
    unit: str
    types: tuple[str, ...]
    grid: str
    ids: tuple[str, ...]
    languages: tuple[str, ...]
    clusters: tuple[str, ...]
    blocks: dict[str, list[list[float]]]
    histograms: dict[str, _Cells]


class CountsFile(Record):
    """Counts with their sources; from the file, figures can be computed with another seed, or counts added.

    Attributes:
        counts: the counts.
        coverage: language to the status counts of its samples.
        about: the parts of the signature: data, detector, threshold, annotator and so on.
    """

    counts: Counts
    coverage: dict[str, Coverage]
    about: dict[str, str | float | None]

    def save(self, path: Path) -> None:
        """Write the counts as one JSON object."""
        head = {"format": FORMAT, "about": self.about, "coverage": self.coverage, "grid": _GRID}
        histograms = {level: cells._asdict() for level, cells in self.counts.histograms.items()}
        plain = head | vars(self.counts) | {"histograms": histograms}
        path.write_bytes(msgspec.json.encode(plain, enc_hook=np.ndarray.tolist) + b"\n")

    @staticmethod
    def is_at(path: Path) -> bool:
        """Whether a file begins like those of `save`."""
        head = f'{{"format":"{FORMAT}"'.encode()
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(head)) == head

    @classmethod
    def load(cls, path: Path) -> CountsFile:
        """Read a file written by `save`.

        Raises:
            InputError: the file is of another kind, or its parts are inconsistent.
        """
        try:
            plain = msgspec.json.decode(path.read_bytes(), type=_File)
            return cls(_checked(plain), plain.coverage, plain.about)
        except (OSError, msgspec.DecodeError, ValueError) as error:
            raise InputError(f"these are no counts: {error}", path=str(path)) from error


def _checked(plain: _File) -> Counts:
    if plain.format != FORMAT:
        raise ValueError(f"the format is {plain.format!r}, not {FORMAT!r}")
    if plain.grid != _GRID:
        raise ValueError("confidences were counted on another grid, by another version")
    size = len(plain.ids)
    if not len(plain.languages) == len(plain.clusters) == size:
        raise ValueError("`ids`, `languages` and `clusters` differ in length")
    blocks = {
        name: np.array(plain.blocks.get(name, [[0.0] * width] * size), np.float64).reshape(size, width)
        for name, width in _widths(plain.types).items()
    }
    histograms = {}
    for level in HISTOGRAMS:
        cells = plain.histograms.get(level, _Cells([], [], []))
        response, bins = np.array(cells.response, np.int64), np.array(cells.bin, np.int64)
        values = np.array(cells.values, np.float64).reshape(-1, 4)
        if not len(response) == len(bins) == len(values):
            raise ValueError(f"the columns of the histogram {level!r} differ in length")
        if len(response) and not (
            0 <= response.min() <= response.max() < size and 0 <= bins.min() <= bins.max() < BINS
        ):
            raise ValueError(f"the histogram {level!r} names a response or bin that does not exist")
        histograms[level] = Histogram(response, bins, values)
    return Counts(plain.unit, plain.types, plain.ids, plain.languages, plain.clusters, blocks, histograms)
