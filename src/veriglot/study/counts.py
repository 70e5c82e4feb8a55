"""Counts of a study: units, gold labels, statuses, quality and examples, in one pass over responses and predictions."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from veriglot.datasets.quality import Quality, QualityTally
from veriglot.errors import InputError
from veriglot.metrics.reference import answer, reference
from veriglot.metrics.scores import BINS as FINE_BINS
from veriglot.metrics.scores import bin_of, coarse_bin
from veriglot.metrics.spans import marked, ranges, segmenter, unit_probabilities
from veriglot.rates.proportion import BINS, Labels, Tallies
from veriglot.records import Status
from veriglot.records.languages import UNDETERMINED, tag_of
from veriglot.signatures import digest
from veriglot.storage.checkpoint import FailedRow
from veriglot.study.responses import all_files, pairs, rows_of
from veriglot.study.results import Example

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.pipeline.engine import Watch
    from veriglot.records import Kind, Prediction, Sample, Span, Word
    from veriglot.study.config import Config, Folder

__all__ = ["Gold", "Group", "Key", "Survey", "Tallying", "gold_in", "labels_of", "survey_all", "together"]


_BIN = coarse_bin(np.arange(FINE_BINS), BINS)  # by way of an evaluation's grid: 0.15 must lie where a profile has it


class Key(NamedTuple):
    """What is estimated apart: model, language tag, and the seed of the responses (None where none is stated)."""

    model: str | None
    language: str
    seed: int | None


@dataclass
class Group:
    """The responses of one key.

    Attributes:
        statuses: predictions by status.
        ids: id of each judged response, in order; empty unless they were asked for.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)
    _counts: array[int] = field(default_factory=lambda: array("q"))  # three numbers a response: a study has many
    _histograms: array[int] = field(default_factory=lambda: array("i"))  # 20 numbers a response

    @property
    def tallies(self) -> Tallies:
        """The counts of the judged responses."""
        counts = np.array(self._counts, dtype=np.int64).reshape(-1, 3)
        all_have = len(self._histograms) == BINS * len(counts) > 0
        confidences = np.array(self._histograms, dtype=np.int64).reshape(-1, BINS) if all_have else None
        return Tallies(counts[:, 0], counts[:, 1], counts[:, 2], confidences)

    def add(self, marked: int, units: int, cluster: int, histogram: NDArray[np.int32] | None) -> None:
        """Count one judged response."""
        self._counts.extend((marked, units, cluster))
        if histogram is not None:
            self._histograms.frombytes(histogram.tobytes())


class Tallying:
    """Takes each response with its prediction, in any order.

    Args:
        unit: `char`, `word` or `hf:<tokenizer>`.
        ids: keep the ids of the judged responses, so that labels can be held against them.

    Raises:
        UnknownNameError: no such unit.
    """

    def __init__(self, unit: str, *, ids: bool = False) -> None:
        self.unit = unit
        self.groups: dict[Key, Group] = {}
        self._segment = segmenter(unit)
        self._ids = ids

    def add(self, sample: Sample, prediction: Prediction) -> None:
        """Count one response.

        Raises:
            InputError: the prediction belongs to another response, or marks beyond its end.
        """
        if prediction.id != sample.id:
            raise InputError(f"the prediction of {prediction.id!r} cannot be held against the response {sample.id!r}")
        judged = self._units(sample, prediction) if prediction.status is Status.SCORED else None
        generator = sample.generator
        name, seed = (generator.name, generator.seed) if generator is not None else (None, None)
        group = self.groups.setdefault(Key(name, language_of(sample, prediction), seed), Group())
        group.statuses[prediction.status] += 1
        if judged is None:
            return
        touched, confidences = judged
        histogram = None if confidences is None else histogram_of(confidences)
        group.add(int(np.count_nonzero(touched)), len(touched), query_of(sample), histogram)
        if self._ids:
            group.ids.append(sample.id)

    def _units(self, sample: Sample, prediction: Prediction) -> tuple[NDArray[np.bool_], NDArray[np.float64] | None]:
        """Which units are marked, and how confident the detector was of each."""
        words = prediction.words
        spans, places = (
            _within(sample, part or (), name) for part, name in ((prediction.spans, "span"), (words, "word"))
        )
        if self.unit == "word" and words is not None:  # the same words, already taken apart
            confidences = np.array([word.confidence for word in words])
            return marked(places, spans), confidences
        bounds = self._segment(sample.response, sample.language or prediction.language)
        if words is None:
            return marked(bounds, spans), None
        by_character = answer(prediction, len(sample.response)).probability
        assert by_character is not None
        return marked(bounds, spans), unit_probabilities(bounds, by_character)


def _within(sample: Sample, marks: Sequence[Span] | Sequence[Word], name: str) -> NDArray[np.int32]:
    """Spans or words as ranges, shape `(n, 2)`, none of which goes beyond the response."""
    bounds = ranges(marks)
    length = len(sample.response)
    if len(bounds) and bounds[:, 1].max() > length:
        raise InputError(
            f"the prediction of {sample.id!r} has a {name} up to {bounds[:, 1].max()} in a response of {length} code"
            " points",
            remedy="Was it made from another version of the response?",
        )
    return bounds


def histogram_of(confidences: NDArray[np.float64]) -> NDArray[np.int32]:
    """Units by confidence, shape `(20,)`."""
    return np.bincount(_BIN[bin_of(confidences)], minlength=BINS).astype(np.int32)


def language_of(sample: Sample, prediction: Prediction) -> str:
    """The tag that a response is counted under: what was asked for, or else what the detector found."""
    return tag_of(sample.language) or tag_of(prediction.language) or UNDETERMINED


def query_of(sample: Sample) -> int:
    """The number of the query that a response answers, the same in every file, model and run.

    That is `meta.query`, or else `meta.group`, or else question and evidence together, or else the response itself.
    """
    for name in ("query", "group"):
        value = sample.meta.get(name)
        if isinstance(value, str | int):
            return _number(name, str(value))
    if sample.question or sample.evidence:
        return _number("asked", sample.question or "", *(passage.text for passage in sample.evidence))
    return _number("said", sample.response)


def _number(*parts: str) -> int:
    return int(digest(parts)[:15], 16)  # 60 bits: fits an int64, and no two queries of a study meet


def together(groups: Iterable[Group]) -> Group:
    """The responses of several groups as one."""
    joined = Group()
    for group in groups:
        joined.statuses.update(group.statuses)
        joined.ids += group.ids
        joined._counts += group._counts
        joined._histograms += group._histograms
    return joined


@dataclass(frozen=True)
class Gold:
    """Labels of responses, as counts; false where there are none.

    Attributes:
        counts: unsupported units and units of each labelled response, by its id.
        kinds: who labelled: people, models or both.
    """

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    kinds: frozenset[Kind] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.counts)

    def unused(self, groups: Iterable[Group]) -> int:
        """Labelled responses that are none of the judged ones in `groups`: no estimate uses them."""
        return len(self.counts.keys() - {id_ for group in groups for id_ in group.ids})


def gold_in(paths: Sequence[Path], *, unit: str, annotator: str | None = None, format_name: str | None = None) -> Gold:
    """The labels in files of labelled samples; none where there are no files.

    Raises:
        InputError: a file cannot be read, or no row of it is labelled.
        UsageError: several annotators labelled, and nobody says whose labels count.
    """
    if not paths:
        return Gold()
    segment = segmenter(unit)
    counts: dict[str, tuple[int, int]] = {}
    kinds: set[Kind] = set()
    for row in rows_of(all_files(paths), format_name=format_name, language=None):
        if isinstance(row, FailedRow):
            raise row.as_error()
        labels = reference(row, annotator)
        if labels is not None:
            bounds = segment(row.response, row.language)
            kinds.add(labels.kind)
            counts[row.id] = (int(np.count_nonzero(marked(bounds, labels.marks.spans))), len(bounds))
    if not counts:
        raise InputError("no row of it is labelled", path=str(paths[0]), field="annotations")
    return Gold(counts, frozenset(kinds))


def labels_of(ids: Sequence[str], units: Sequence[int], gold: Gold) -> Labels | None:
    """The labels of the judged responses with these ids and units, in order; None where none is labelled.

    Raises:
        InputError: a labelled response has other units than the one that was judged, so it is another text.
    """
    indices = [index for index, id_ in enumerate(ids) if id_ in gold.counts]
    for index in indices:
        if (number := gold.counts[ids[index]][1]) != units[index]:
            raise InputError(
                f"the labelled response {ids[index]!r} is not the one that was judged: it has {number} units, and that"
                f" one {units[index]}",
                field="labels",
            )
    unsupported = np.array([gold.counts[ids[index]][0] for index in indices], dtype=np.int64)
    return Labels(unsupported, np.array(indices, dtype=np.int64)) if indices else None


# What a pass over responses and predictions sees beside the counts of units: status, quality, types, examples.


_UNTYPED = "unsupported"
NOTHING = Quality(0, 0.0, 0.0, 0.0, None, None, 0.0, 0.0, None, 0.0, 0)
_EXAMPLES = 3  # of a language


@dataclass
class Seen:
    """One model in one language: statuses, marked units by type, quality, and the most confident mark."""

    statuses: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    quality: QualityTally = field(default_factory=QualityTally)
    best: tuple[float, Example] | None = None


class Survey:
    """Takes each response with what the first detector said of it; memory grows with models and languages only.

    Args:
        unit: what types are counted in.
    """

    def __init__(self, unit: str) -> None:
        self._segment = segmenter(unit)
        self._by_words = unit == "word"
        self.cells: dict[tuple[str, str], Seen] = {}

    def add(self, model: str, sample: Sample, prediction: Prediction) -> None:
        """Count one response."""
        tag = language_of(sample, prediction)
        cell = self.cells.setdefault((model, tag), Seen())
        cell.statuses[prediction.status] += 1
        cell.quality.add(sample)
        if prediction.status is Status.SCORED and prediction.spans:
            self._add_marks(cell, tag, sample, prediction)

    def quality(self, model: str, language: str) -> Quality:
        """The quality of the responses of one model in one language; of no responses where there are none."""
        cell = self.cells.get((model, language))
        quality = cell.quality.quality() if cell is not None else None
        return quality if quality is not None else NOTHING

    def examples(self, languages: Iterable[str]) -> tuple[Example, ...]:
        """The most confident marks of each language, of different models."""
        chosen: list[Example] = []
        for tag in languages:
            best = [cell.best for (_, language), cell in self.cells.items() if language == tag and cell.best]
            best.sort(key=lambda pair: (-pair[0], pair[1].sample.id))
            chosen += [example for _, example in best[:_EXAMPLES]]
        return tuple(chosen)

    def _add_marks(self, cell: Seen, tag: str, sample: Sample, prediction: Prediction) -> None:
        spans = prediction.spans
        assert spans
        if self._by_words and prediction.words is not None:
            bounds = ranges(prediction.words)
        else:
            bounds = self._segment(sample.response, tag)
        marks = ranges(spans)
        first = np.searchsorted(bounds[:, 1], marks[:, 0], side="right")
        last = np.searchsorted(bounds[:, 0], marks[:, 1], side="left")
        for span, count in zip(spans, (last - first).tolist(), strict=True):
            cell.types[span.type or _UNTYPED] += max(0, count)
        most = max(span.confidence or 0.0 for span in spans)
        if cell.best is None or (-most, sample.id) < (-cell.best[0], cell.best[1].sample.id):
            shown = msgspec.structs.replace(prediction, words=None)
            cell.best = (most, Example(sample, shown))


def survey_all(config: Config, folder: Folder, models: Iterable[str], detector: str, watch: Watch) -> Survey:
    """Look at every response and at what one detector (by its label) said of it."""
    survey = Survey(config.study.unit)
    for model in models:
        for sample, prediction in pairs(folder.responses(model), folder.predictions(detector, model)):
            survey.add(model, sample, prediction)
            watch.advance()
    return survey
