"""From responses and predictions to numbers per response: one pass, and memory that grows with counts, not texts."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.errors import InputError
from veriglot.metrics.histogram import BINS as FINE_BINS
from veriglot.metrics.histogram import bin_of, coarse_bin
from veriglot.metrics.marks import marked, ranges, unit_probabilities
from veriglot.metrics.predictions import answer
from veriglot.metrics.units import segmenter
from veriglot.provenance import digest
from veriglot.rates import BINS, Tallies
from veriglot.records import Status
from veriglot.study.files import tag_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from veriglot.records import Prediction, Sample, Span, Word

__all__ = ["UNDETERMINED", "Group", "Key", "Tallying", "cluster_of", "language_of", "together"]

UNDETERMINED = "und"
_BIN = coarse_bin(np.arange(FINE_BINS), BINS)  # by way of an evaluation's grid: 0.15 must lie where a profile has it
"""The tag of responses whose language neither the sample states nor the detector found."""


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
    def coverage(self) -> float:
        """Judged responses over all; 0 where there is none."""
        given = self.statuses.total()
        return self.statuses[Status.SCORED] / given if given else 0.0

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

    def join(self, other: Group) -> None:
        """Add the responses of another group."""
        self.statuses.update(other.statuses)
        self.ids += other.ids
        self._counts += other._counts
        self._histograms += other._histograms


class Tallying:
    """Takes each response with its prediction, in any order.

    Args:
        unit: `char`, `word` or `hf:<tokenizer>`.
        confidences: keep how confident the detector was of the units, where predictions have words.
        ids: keep the ids of the judged responses, so that labels can be held against them.

    Raises:
        UnknownNameError: no such unit.
    """

    def __init__(self, unit: str, *, confidences: bool = True, ids: bool = False) -> None:
        self.unit = unit
        self.groups: dict[Key, Group] = {}
        self._segment = segmenter(unit)
        self._confidences = confidences
        self._ids = ids

    def add(self, sample: Sample, prediction: Prediction) -> None:
        """Count one response.

        Raises:
            InputError: the prediction belongs to another response, or marks beyond its end.
        """
        if prediction.id != sample.id:
            raise InputError(f"the prediction of {prediction.id!r} cannot be held against the response {sample.id!r}")
        judged = self._units(sample, prediction) if prediction.status is Status.SCORED else None
        group = self.groups.setdefault(key_of(sample, prediction), Group())
        group.statuses[prediction.status] += 1
        if judged is None:
            return
        touched, confidences = judged
        histogram = None if confidences is None else histogram_of(confidences)
        group.add(int(np.count_nonzero(touched)), len(touched), cluster_of(sample), histogram)
        if self._ids:
            group.ids.append(sample.id)

    def _units(self, sample: Sample, prediction: Prediction) -> tuple[NDArray[np.bool_], NDArray[np.float64] | None]:
        """Which units are marked, and how confident the detector was of each."""
        words = prediction.words
        spans, places = (
            _within(sample, part or (), name) for part, name in ((prediction.spans, "span"), (words, "word"))
        )
        if self.unit == "word" and words is not None:  # the same words, already taken apart
            confidences = np.array([word.confidence for word in words]) if self._confidences else None
            return marked(places, spans), confidences
        bounds = self._segment(sample.response, sample.language or prediction.language)
        if words is None or not self._confidences:
            return marked(bounds, spans), None
        by_character = answer(prediction, len(sample.response)).probability
        assert by_character is not None
        return marked(bounds, spans), unit_probabilities(bounds, by_character)


def _within(sample: Sample, marks: Sequence[Span] | Sequence[Word], name: str) -> NDArray[np.int32]:
    """Spans or words as ranges, shape `(n, 2)`, none of which goes beyond the response."""
    found = ranges(marks)
    length = len(sample.response)
    if len(found) and found[:, 1].max() > length:
        raise InputError(
            f"the prediction of {sample.id!r} has a {name} up to {found[:, 1].max()} in a response of {length} code"
            " points",
            remedy="Was it made from another version of the response?",
        )
    return found


def histogram_of(confidences: NDArray[np.float64]) -> NDArray[np.int32]:
    """Units by confidence, shape `(20,)`."""
    return np.bincount(_BIN[bin_of(confidences)], minlength=BINS).astype(np.int32)


def key_of(sample: Sample, prediction: Prediction) -> Key:
    """Where a response is counted: under the language that was asked for, or else the one that the detector found."""
    generator = sample.generator
    tag = language_of(sample, prediction)
    return Key(generator.name if generator else None, tag, generator.seed if generator else None)


def language_of(sample: Sample, prediction: Prediction) -> str:
    """The tag that a response is counted under: what was asked for, or else what the detector found."""
    return tag_of(sample.language) or tag_of(prediction.language) or UNDETERMINED


def cluster_of(sample: Sample) -> int:
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
        joined.join(group)
    return joined
