"""Which labels of a sample are the reference, and what they mark.

Without a name the reference is the single person's annotation; among several people's, the one named `gold`, else
what more than half of them mark (`majority`); where no person labelled the sample, the single model's. `union` and
`majority` can be asked for by name and combine people's labels (models' where there are no people's).

Types that a taxonomy calls clean (`supported`) mark nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.errors import UsageError
from veriglot.metrics.marks import covered, ranges
from veriglot.records import Kind, taxonomies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.records import Annotation, Sample

__all__ = ["COMBINED", "Marks", "Reference", "labelled", "merged_runs", "reference"]

COMBINED = ("majority", "union")
_GOLD = "gold"


@dataclass(frozen=True)
class Marks:
    """Spans as arrays: half-open ranges of shape `(n, 2)` and one type (or None) for each."""

    spans: NDArray[np.int32]
    types: tuple[str | None, ...]


@dataclass(frozen=True)
class Reference:
    """What one sample is held against.

    Attributes:
        annotator: whose labels they are, or `majority` or `union`.
        kind: people's or a model's.
        taxonomy: what the types belong to; None where the combined annotations differ.
        marks: the unsupported spans.
        soft: per code point, the share of annotators who mark it; None where the source does not say.
    """

    annotator: str
    kind: Kind
    taxonomy: str | None
    marks: Marks
    soft: NDArray[np.float64] | None


def labelled(sample: Sample) -> list[Annotation]:
    """The annotations of a sample that mark spans or units, in order."""
    return [a for a in sample.annotations if a.spans is not None or a.units is not None]


def reference(sample: Sample, annotator: str | None = None) -> Reference | None:
    """The reference labels of a sample; None where it has none (of that annotator).

    Args:
        sample: the sample.
        annotator: an annotator's name, `majority`, `union`, or None for the default above.

    Raises:
        UsageError: several models labelled the sample, no person did, and `annotator` does not say which.
    """
    found = labelled(sample)
    if annotator is not None and annotator not in COMBINED:
        named = [a for a in found if a.annotator == annotator]
        return _single(sample, named[0]) if named else None
    people = [a for a in found if a.kind is Kind.HUMAN]
    pool = people or found
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
            remedy="Say which to hold it against with --annotator.",
        )
    return _combined(sample, pool, "majority")


def _clean(taxonomy: str) -> tuple[str, ...]:
    known = taxonomies().get(taxonomy)
    return known.clean if known else ()


def _marks(annotation: Annotation) -> Marks:
    clean = _clean(annotation.taxonomy)
    if annotation.spans is not None:
        spans = [span for span in annotation.spans if span.type not in clean]
        return Marks(ranges(spans), tuple(span.type for span in spans))
    units = [
        unit
        for unit in annotation.units or ()
        if unit.label not in clean and (unit.probability is None or unit.probability > 0.5)
    ]
    known = taxonomies().get(annotation.taxonomy)
    types = known.types if known else {}
    places = np.array([(unit.start, unit.end) for unit in units], dtype=np.int32).reshape(-1, 2)
    return Marks(places, tuple(unit.label if unit.label in types else None for unit in units))


def _soft(annotation: Annotation, length: int) -> NDArray[np.float64] | None:
    """Soft labels of one annotation: units that all have a probability; code points in none of them have 0."""
    if annotation.units is None or any(unit.probability is None for unit in annotation.units):
        return None
    clean = _clean(annotation.taxonomy)
    values = np.zeros(length, dtype=np.float64)
    for unit in annotation.units:
        if unit.label in clean:
            continue
        values[unit.start : unit.end] = np.maximum(values[unit.start : unit.end], unit.probability or 0.0)
    return values


def _single(sample: Sample, annotation: Annotation) -> Reference:
    soft = _soft(annotation, len(sample.response))
    return Reference(annotation.annotator, annotation.kind, annotation.taxonomy, _marks(annotation), soft)


def merged_runs(inside: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The runs of True as half-open ranges, shape `(n, 2)`."""
    steps = np.diff(np.concatenate([[0], inside.astype(np.int8), [0]]))
    runs: NDArray[np.int32] = np.stack([np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)], axis=1).astype(
        np.int32
    )
    return runs


def _majority_type(start: int, end: int, every: Sequence[Marks]) -> str | None:
    """The type that annotators give to most code points of `[start, end)`; ties go to the first name."""
    mass: Counter[str] = Counter()
    for marks in every:
        for (low, high), type_ in zip(marks.spans.tolist(), marks.types, strict=True):
            shared = min(end, high) - max(start, low)
            if type_ is not None and shared > 0:
                mass[type_] += shared
    return min(mass, key=lambda name: (-mass[name], name)) if mass else None


def _combined(sample: Sample, annotations: Sequence[Annotation], how: str) -> Reference:
    every = [_marks(annotation) for annotation in annotations]
    length = len(sample.response)
    share = np.mean([covered(length, marks.spans) for marks in every], axis=0)
    if how == "union":
        rows = sorted(
            {
                (start, end, type_ or "")
                for marks in every
                for (start, end), type_ in zip(marks.spans.tolist(), marks.types, strict=True)
            }
        )
        spans = np.array([row[:2] for row in rows], dtype=np.int32).reshape(-1, 2)
        marks = Marks(spans, tuple(row[2] or None for row in rows))
    else:
        spans = merged_runs(share > 0.5)
        marks = Marks(spans, tuple(_majority_type(int(s), int(e), every) for s, e in spans))
    names = {annotation.taxonomy for annotation in annotations}
    return Reference(how, annotations[0].kind, names.pop() if len(names) == 1 else None, marks, share)
