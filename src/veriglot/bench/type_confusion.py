"""Which types a detector takes for which: pairs for `metrics.confusion_matrix`, of responses or of marks.

Of responses where each has one label, as in halluverse's data (its Figure 4, Tables 3 and 4); of marks where responses
hold several, as in mFAVA's. Types of the detector are brought to those of the data first, or where they do not lead
there, the data's to the detector's (`type_mapping`).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from veriglot.bench.type_mapping import compare_types
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.metrics.confusion import ConfusionMatrix, confusion_matrix
from veriglot.metrics.reference import reference
from veriglot.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.bench.type_mapping import Types
    from veriglot.metrics.reference import Reference
    from veriglot.records import Prediction, Sample

__all__ = ["LEVELS", "UNMARKED", "UNTYPED", "TypeConfusion", "type_confusion"]

LEVELS = ("response", "mark")
UNMARKED = "none"  # the class of clean responses, and the answer where a detector marks nothing
UNTYPED = "other type"  # an answer: marked, but as nothing that the data has a type for


class TypeConfusion(NamedTuple):
    """A confusion matrix of types, and what is not in it.

    Attributes:
        matrix: rows are the types of the data, and `none` where there are clean responses; `NO_ANSWER` is a column
            for what the detector did not score.
        taxonomy: what the types belong to.
        left_out: responses without labels, and with several types where one is asked for; marks without a type, or of
            one that has no counterpart in the taxonomy.
        note: how types were mapped; empty where they were not.
    """

    matrix: ConfusionMatrix
    taxonomy: str
    left_out: int
    note: str = ""


def type_confusion(
    samples: Iterable[Sample],
    predictions: Iterable[Prediction],
    *,
    level: str = "response",
    annotator: str | None = None,
    detector_taxonomy: str | None = None,
) -> TypeConfusion:
    """Count what was said of the items of each type.

    Args:
        samples: labelled.
        predictions: one per sample, in order.
        level: `response`: its one type against the type that most of the detector's marked characters have; `mark`: the
            type of each mark of the reference against the type of most of its characters that the detector marks.
        annotator: whose labels; see `metrics.reference`.
        detector_taxonomy: what the detector's types belong to; None to find the taxonomy that holds them.

    Raises:
        UnknownNameError: no such level or taxonomy.
        InputError: a prediction belongs to another sample.
        UsageError: no labels, or types that cannot be compared.
    """
    if level not in LEVELS:
        raise UnknownNameError("level", level, LEVELS)
    rows = [_row(sample, prediction, annotator) for sample, prediction in zip(samples, predictions, strict=True)]
    name = next((row.found.taxonomy for row in rows if row.found is not None and row.found.taxonomy), None)
    if name is None:
        raise UsageError("Types cannot be held against each other: there are no labels of a known taxonomy.")
    said = {span.type for row in rows for span in row.prediction.spans or () if span.type is not None}
    types = compare_types(name, detector_taxonomy or (None if said else name), None, said)
    if types.taxonomy is None:
        raise UsageError(f"The detector's types cannot be held against the data's: {types.why}.")
    ask = _of_response if level == "response" else _of_marks
    pairs = [pair for row in rows for pair in ask(row, types)]
    known = [(gold, answer) for gold, answer in pairs if gold is not None]
    classes = list(types.names)
    if any(gold == UNMARKED for gold, _ in known):
        classes.append(UNMARKED)
    return TypeConfusion(confusion_matrix(known, classes), types.taxonomy, len(pairs) - len(known), types.why)


class _Row(NamedTuple):
    sample: Sample
    prediction: Prediction
    found: Reference | None


Pair = tuple[str | None, str | None]


def _row(sample: Sample, prediction: Prediction, annotator: str | None) -> _Row:
    if sample.id != prediction.id:
        raise InputError(f"the prediction of {prediction.id!r} cannot be held against the sample {sample.id!r}")
    return _Row(sample, prediction, reference(sample, annotator))


def _of_response(row: _Row, types: Types) -> Iterator[Pair]:
    """The one type of a response; halluverse's label `0` stands in `meta`, for it is no type."""
    if row.found is None:
        yield (
            (UNMARKED if row.sample.meta.get("label") == "0" else None),
            _answer(row, types, 0, len(row.sample.response)),
        )
        return
    gold = set(types.of_reference(row.found.taxonomy, row.found.marks.types))
    single = next(iter(gold)) if len(gold) == 1 else None
    yield UNMARKED if not gold else single, _answer(row, types, 0, len(row.sample.response))


def _of_marks(row: _Row, types: Types) -> Iterator[Pair]:
    if row.found is None:
        yield None, None
        return
    mapped = types.of_reference(row.found.taxonomy, row.found.marks.types)
    for (start, end), gold in zip(row.found.marks.spans.tolist(), mapped, strict=True):
        yield gold, _answer(row, types, start, end)


def _answer(row: _Row, types: Types, start: int, end: int) -> str | None:
    """The type that most marked characters of a place have; a tie goes to the first name."""
    if row.prediction.status is not Status.SCORED:
        return None
    mass: Counter[str] = Counter()
    for span in row.prediction.spans or ():
        shared = min(end, span.end) - max(start, span.start)
        if shared > 0:
            mass[types.of_detector([span.type])[0] or UNTYPED] += shared
    return min(mass, key=lambda name: (-mass[name], name)) if mass else UNMARKED
