"""The reference labels of a sample, and the spans that they mark.

By default the reference is the single person's annotation; among several people's, the one named `gold`, else what
more than half of them mark (`majority`); if no person labelled the sample, the single model's. `union` and `majority`
can be requested by name and combine people's labels (models' if there are no people's). If some mark spans, a person
who rates the whole response as supported counts as marking nothing in it.

Types that a taxonomy calls clean (`supported`) mark nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace

from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.metrics.spans import covered, max_by_character, ranges, word_probabilities
from veriglot.records import Annotation, DataSource, Kind, Prediction, Sample, Span, Status, Unit
from veriglot.records.taxonomy import SOURCE_FLAGS, taxonomies
from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from veriglot.arrays import Bools, Float64s, Int32s


__all__ = [
    "COMBINED",
    "FlagFilter",
    "Marks",
    "Reference",
    "answer",
    "at_threshold",
    "check_pair",
    "labelled",
    "reference",
    "require_annotator",
    "source_flags",
    "source_of",
]


COMBINED = ("majority", "union")
_GOLD = "gold"


@dataclass(frozen=True)
class Marks:
    """Spans as arrays: half-open ranges of shape `(n, 2)` and one type (or None) for each."""

    spans: Int32s
    types: tuple[str | None, ...]


@dataclass(frozen=True)
class Reference:
    """The reference labels of one sample.

    Attributes:
        annotator: whose labels they are, or `majority` or `union`.
        kind: people's or a model's.
        taxonomy: of the types; None if the combined annotations differ.
        marks: the unsupported spans.
        soft: per code point, the share of annotators who mark it; None if the source does not say.
        units: the labelled units, including clean ones, if one annotator labelled units; else empty.
        annotations: the annotations behind the labels.
    """

    annotator: str
    kind: Kind
    taxonomy: str | None
    marks: Marks
    soft: Float64s | None
    units: tuple[Unit, ...] = ()
    annotations: tuple[Annotation, ...] = ()


def source_of(hashes: Iterable[str], kinds: Collection[Kind]) -> DataSource:
    """The source of labels: a digest of the hashes of samples, and `gold`, `silver`, `mixed` or `none`."""
    names = {"gold" if kind is Kind.HUMAN else "silver" for kind in kinds}
    return DataSource(digest(hashes), names.pop() if len(names) == 1 else "mixed" if names else "none")


def labelled(sample: Sample) -> list[Annotation]:
    """The annotations of a sample that mark spans or units, in order."""
    return [a for a in sample.annotations if a.spans is not None or a.units is not None]


def require_annotator(asked: str | None, known: Collection[str]) -> None:
    """Raise an error if no annotator of the samples has this name.

    Raises:
        UnknownNameError: there are others; the message suggests similar names.
    """
    if asked and known and asked not in {*known, *COMBINED}:
        raise UnknownNameError("annotator", asked, {*known, *COMBINED})


def reference(sample: Sample, annotator: str | None = None) -> Reference | None:
    """The reference labels of a sample; None if it has none (of that annotator).

    Args:
        sample: the sample.
        annotator: an annotator's name, `majority`, `union`, or None for the default above.

    Raises:
        UsageError: several models labelled the sample, no person did, and `annotator` does not say which.
    """
    annotations = labelled(sample)
    if annotator is not None and annotator not in COMBINED:
        named = [a for a in annotations if a.annotator == annotator]
        return _single(sample, named[0]) if named else None
    annotations += [
        replace(a, taxonomy=annotations[0].taxonomy, spans=())
        for a in sample.annotations
        if annotations and a not in annotations and a.ratings.get("unsupported") == 0
    ]
    people = [a for a in annotations if a.kind is Kind.HUMAN]
    pool = people or annotations
    if not pool:
        return None
    if annotator is not None:
        return _combined(sample, pool, annotator)
    if len(pool) == 1:
        return _single(sample, pool[0])
    gold = [a for a in pool if a.annotator == _GOLD]
    if gold:
        return _single(sample, gold[0])
    if not people:
        names = ", ".join(a.annotator for a in pool)
        raise UsageError(
            f"The sample {sample.id!r} has labels of several models ({names}) and of no person.",
            "Choose one with --annotator.",
        )
    return _combined(sample, pool, "majority")


def response_label(sample: Sample, annotator: str | None) -> tuple[Annotation, bool] | None:
    """Who labelled a response as a whole, and whether as unsupported (the rating `unsupported`); None if nobody did.

    Args:
        sample: the sample.
        annotator: as for `reference`; models that disagree are also combined by `majority`.
    """
    rated = [a for a in sample.annotations if a.ratings.get("unsupported") in (0, 1)]
    if annotator is not None and annotator not in COMBINED:
        rated = [a for a in rated if a.annotator == annotator]
    pool = [a for a in rated if a.kind is Kind.HUMAN] or rated
    if annotator is None:
        pool = [a for a in pool if a.annotator == _GOLD][:1] or pool
    if not pool:
        return None
    by = pool[0] if len(pool) == 1 else replace(pool[0], annotator=annotator or "majority")
    votes = sum(a.ratings["unsupported"] == 1 for a in pool)
    return by, votes > (0 if annotator == "union" else len(pool) / 2)


# Samples with flags: if the source itself is faulty, a label is not about the response.


_SOURCE = "source"  # in a list of flags to drop: all flags of the source


def source_flags(sample: Sample, annotator: str | None = None) -> tuple[str, ...]:
    """The flags about faults of a sample's source, sorted; of one annotator if one is named."""
    return tuple(sorted(flag for flag in _flags(sample, annotator) if _of_source(flag)))


def _of_source(flag: str) -> bool:
    return flag in SOURCE_FLAGS or flag.startswith(f"{_SOURCE}_")


def _flags(sample: Sample, annotator: str | None) -> set[str]:
    named = annotator is not None and annotator not in COMBINED
    return {flag for a in sample.annotations if not named or a.annotator == annotator for flag in a.flags}


@dataclass
class FlagFilter:
    """Drops samples by the flags of their annotators, and counts them; HAT drops those with a faulty source.

    Attributes:
        drop: flags; `source` stands for all flags about faults of the source.
        annotator: whose flags count; None, `majority` or `union` for everybody's.
        dropped: how many samples were dropped by each flag; one sample may have several.
        total: how many samples were dropped.
        faulty: how many of the other samples have a faulty source.
    """

    drop: tuple[str, ...] = ()
    annotator: str | None = None
    dropped: Counter[str] = field(default_factory=Counter)
    total: int = 0
    faulty: int = 0

    def admits(self, sample: Sample) -> bool:
        """Whether a sample stays."""
        flags = _flags(sample, self.annotator)
        hits = [flag for flag in flags if flag in self.drop or (_SOURCE in self.drop and _of_source(flag))]
        self.dropped.update(hits)
        self.total += bool(hits)
        self.faulty += not hits and any(map(_of_source, flags))
        return not hits

    def notes(self) -> tuple[str, ...]:
        """Sentences without full stop: what was dropped, and what could be."""
        notes = []
        if self.drop:
            counts = ", ".join(f"{flag} {count}" for flag, count in sorted(self.dropped.items()))
            notes.append(f"{self.total} samples dropped by their flags: {counts or 'none has ' + ', '.join(self.drop)}")
        if self.faulty:
            notes.append(
                f'{self.faulty} samples are flagged for a faulty source, and count; drop_flags = ["source"] drops them'
            )
        return tuple(notes)


def _marks(annotation: Annotation) -> Marks:
    known = taxonomies().get(annotation.taxonomy)
    clean = known.clean if known else ()
    if annotation.spans is not None:
        spans = [span for span in annotation.spans if span.type not in clean]
        return Marks(ranges(spans), tuple(span.type for span in spans))
    units = [
        unit
        for unit in annotation.units or ()
        if unit.label not in clean and (unit.probability is None or unit.probability > 0.5)
    ]
    types = known.types if known else {}
    places = np.array([(unit.start, unit.end) for unit in units], np.int32).reshape(-1, 2)
    return Marks(places, tuple(unit.label if unit.label in types else None for unit in units))


def _soft(annotation: Annotation, length: int) -> Float64s | None:
    """Soft labels of one annotation whose units all have a probability; code points outside of units have 0."""
    if annotation.units is None or any(unit.probability is None for unit in annotation.units):
        return None
    known = taxonomies().get(annotation.taxonomy)
    bad = (unit for unit in annotation.units if known is None or unit.label not in known.clean)
    return max_by_character(length, ((unit.start, unit.end, unit.probability or 0.0) for unit in bad))


def _single(sample: Sample, annotation: Annotation) -> Reference:
    soft = _soft(annotation, len(sample.response))
    units = (annotation.units or ()) if annotation.spans is None else ()
    marks = _marks(annotation)
    return Reference(annotation.annotator, annotation.kind, annotation.taxonomy, marks, soft, units, (annotation,))


def merged_runs(inside: Bools) -> Int32s:
    """The runs of True as half-open ranges, shape `(n, 2)`."""
    steps = np.diff(np.concatenate([[0], inside.astype(np.int8), [0]]))
    return np.stack([np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)], axis=1).astype(np.int32)


def majority_type(start: int, end: int, marks: Iterable[tuple[int, int, str | None]]) -> str | None:
    """The type with most code points of `[start, end)` among marks `(start, end, type)`; ties go to the first name."""
    mass = Counter[str]()
    for low, high, type_ in marks:
        shared = min(end, high) - max(start, low)
        if type_ is not None and shared > 0:
            mass[type_] += shared
    return min(mass, key=lambda name: (-mass[name], name), default=None)


def _combined(sample: Sample, annotations: Sequence[Annotation], how: str) -> Reference:
    every = [_marks(annotation) for annotation in annotations]
    length = len(sample.response)
    share = np.mean([covered(length, marks.spans) for marks in every], axis=0)
    typed = [(start, end, type_) for m in every for (start, end), type_ in zip(m.spans.tolist(), m.types, strict=True)]
    if how == "union":
        rows = sorted({(start, end, type_ or "") for start, end, type_ in typed})
        spans = np.array([row[:2] for row in rows], np.int32).reshape(-1, 2)
        marks = Marks(spans, tuple(row[2] or None for row in rows))
    else:
        spans = merged_runs(share > 0.5)
        marks = Marks(spans, tuple(majority_type(start, end, typed) for start, end in spans.tolist()))
    names = {annotation.taxonomy for annotation in annotations}
    named = names.pop() if len(names) == 1 else None
    return Reference(how, annotations[0].kind, named, marks, share, annotations=tuple(annotations))


# A prediction as arrays, and a prediction at another threshold.


def check_pair(sample: Sample, prediction: Prediction) -> None:
    """Raise an error if a prediction is of another sample.

    Raises:
        InputError: the ids differ.
    """
    if prediction.id != sample.id:
        raise InputError(f"the prediction of {prediction.id!r} cannot be compared with the sample {sample.id!r}")


class Answer(NamedTuple):
    """The content of a scored prediction."""

    marks: Marks
    probability: Float64s | None
    soft: Float64s | None


def answer(prediction: Prediction, length: int) -> Answer:
    """The arrays of a scored prediction.

    Args:
        prediction: with status `scored`.
        length: code points of the response.

    Raises:
        InputError: it marks beyond the end of the response.
    """
    spans = prediction.spans or ()
    bounds = ranges(spans)
    for name, places in (("spans", bounds), ("words", ranges(prediction.words or ()))):
        for index in np.flatnonzero(places[:, 1] > length).tolist():
            start, end = places[index]
            raise InputError(
                f"the prediction of {prediction.id!r} marks [{start}, {end}) in a response of {length} code points",
                "Was it made from another version of the data?",
                field=f"{name}[{index}]",
            )
    marks = Marks(bounds, tuple(span.type for span in spans))
    if prediction.words is not None:
        by_word = word_probabilities(length, prediction.words)
        return Answer(marks, by_word, by_word)
    if any(span.confidence is None for span in spans):
        return Answer(marks, None, None)
    return Answer(
        marks, None, max_by_character(length, ((span.start, span.end, span.confidence or 0.0) for span in spans))
    )


def at_threshold(prediction: Prediction, threshold: float, sentences: Int32s | None = None) -> Prediction:
    """The prediction at another threshold, with new spans.

    With words, the new spans are runs of words with at least that confidence, each with the type of the original span
    that overlaps it most (None if none does). Runs end at the end of a sentence, unless an original span continues
    there, so that the original threshold gives the original spans. Without words, spans below the threshold are dropped
    and those without a confidence stay, so the threshold can only be raised.

    Args:
        prediction: any prediction; an unscored one is returned unchanged.
        threshold: confidence from which a word is marked, 0 to 1.
        sentences: the sentences of the response, in order, shape `(m, 2)`; None to ignore sentences.
    """
    if prediction.status is not Status.SCORED:
        return prediction
    spans = prediction.spans or ()
    if prediction.words is None:
        remaining = tuple(span for span in spans if span.confidence is None or span.confidence >= threshold)
        return replace(prediction, spans=remaining)
    cuts = _cuts(spans, sentences)
    runs: list[Span] = []
    open_run: list[float] = []
    for word in sorted(prediction.words, key=lambda word: word.start):
        if word.confidence < threshold:
            open_run = []
            continue
        if open_run and np.searchsorted(cuts, runs[-1].end) < np.searchsorted(cuts, word.start, "right"):
            open_run = []
        start = runs.pop().start if open_run else word.start
        open_run.append(word.confidence)
        runs.append(_typed(start, word.end, max(open_run), spans))
    return replace(prediction, spans=tuple(runs))


def _cuts(spans: tuple[Span, ...], sentences: Int32s | None) -> Int32s:
    """Starts of sentences that are not inside a span."""
    if sentences is None:
        return np.zeros(0, np.int32)
    starts = sentences[:, 0]
    return starts[[not any(span.start < start < span.end for span in spans) for start in starts.tolist()]]


def _typed(start: int, end: int, confidence: float, spans: tuple[Span, ...]) -> Span:
    shares = [(min(end, span.end) - max(start, span.start), -index) for index, span in enumerate(spans)]
    shared, negated = max(shares, default=(0, 0))
    return Span(start, end, type=spans[-negated].type if shared > 0 else None, confidence=confidence)
