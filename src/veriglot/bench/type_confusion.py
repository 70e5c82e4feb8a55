"""Which types of errors a detector takes for which: matched types, pairs of labels, and confusion matrices by language.

Of responses where each has one label, as in HalluVerse25's data (its Figure 4, Tables 3 and 4); of marks where
responses hold several, as in mFAVA's. Types of the detector are brought to those of the data first, or where they do
not lead there, the data's to the detector's (`type_mapping`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from veriglot.bench.items import tag_of
from veriglot.bench.results import BenchConfusion
from veriglot.errors import InputError, UsageError
from veriglot.metrics.reference import reference
from veriglot.records import Status
from veriglot.records.taxonomy import taxonomies, taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from veriglot.metrics.reference import Reference
    from veriglot.records import Prediction, Sample

__all__ = ["Types", "compare_types", "holding", "type_confusions"]


@dataclass
class Types:
    """The types that figures at level `category` are given for.

    Attributes:
        taxonomy: what they belong to; None where types are not compared.
        names: the types that mark text as unsupported; empty where types are not compared.
        detector: a type of the detector to the one it counts as.
        why: why types are not compared, or how they were mapped; empty where neither is worth saying.
    """

    taxonomy: str | None
    names: tuple[str, ...]
    detector: dict[str, str]
    why: str = ""
    _reference: dict[str, dict[str, str]] = field(default_factory=dict)

    def of_detector(self, types: Sequence[str | None]) -> tuple[str | None, ...]:
        """The detector's types as types of `taxonomy`; None where there is no counterpart."""
        return tuple(self.detector.get(name) if name is not None else None for name in types)

    def of_reference(self, source: str | None, types: Sequence[str | None]) -> tuple[str | None, ...]:
        """The types of reference spans as types of `taxonomy`; None where there is no counterpart."""
        if self.taxonomy is None or source is None:
            return (None,) * len(types)
        if source not in self._reference:
            self._reference[source] = _mapping(source, self.taxonomy) or {}
        mapping = self._reference[source]
        return tuple(mapping.get(name) if name is not None else None for name in types)


def _mapping(source: str, target: str) -> dict[str, str] | None:
    """Type to type, or None where no mapping is defined."""
    if source not in taxonomies():
        return None
    try:
        return taxonomy(source).to(target)
    except UsageError:
        return None


def holding(types: set[str], preferred: str | None = None) -> str | None:
    """The taxonomy that holds all of these types: the preferred one if it does, else the first."""
    if not types:
        return None
    order = ([preferred] if preferred in taxonomies() else []) + list(taxonomies())
    return next((name for name in order if name and types <= set(taxonomy(name).types)), None)


def compare_types(data: str | None, detector: str | None, asked: str | None, given: set[str]) -> Types:
    """Decide in which taxonomy types are compared.

    That is the one asked for, or the data's own if the detector's types lead to it, or else the detector's if the
    data's lead there. Where neither leads to the other, types are not compared and only binary figures are given.

    Args:
        data: taxonomy of the reference, or None.
        detector: taxonomy of the detector, or None to find the one that holds `given`.
        asked: the taxonomy that the user asked for, or None.
        given: types that the detector's predictions hold.

    Raises:
        UnknownNameError: `asked` or `detector` is no taxonomy.
        UsageError: a taxonomy was asked for to which types of the data or of the detector do not lead.
    """
    for name in (asked, detector):
        if name is not None:
            taxonomy(name)
    detector = detector or holding(given, data)
    if detector is None or data is None:
        side = "predictions" if detector is None else "labels"
        return Types(None, (), {}, f"types are not compared: the {side} are not of one known taxonomy")
    for target in [asked] if asked else [data, detector]:
        if target not in taxonomies():
            continue
        of_detector, of_data = _mapping(detector, target), _mapping(data, target)
        if of_detector is not None and of_data is not None:
            entry = taxonomy(target)
            names = tuple(name for name in entry.types if name not in entry.clean)
            mapped = {name for name in (detector, data) if name != target}
            why = f"types of {' and '.join(sorted(mapped))} are compared as those of {target}" if mapped else ""
            return Types(target, names, of_detector, why)
    if asked:
        raise UsageError(
            f"The types of the data ({data}) and of the detector ({detector}) do not both lead to {asked!r}.",
            remedy="Leave --taxonomy out to see the figures that can be had.",
        )
    return Types(None, (), {}, f"types are not compared: none of {data} and {detector} leads to the other")


UNMARKED = "none"  # the class of clean responses, and the answer where a detector marks nothing
UNTYPED = "other type"  # an answer: marked, but as nothing that the data has a type for
NO_ANSWER = "no answer"  # the column of what the detector did not score


class TypeConfusion(NamedTuple):
    """Counts of types, as fields of `BenchConfusion`; `answers` are the classes, `none`, and what is no class."""

    taxonomy: str
    classes: tuple[str, ...]
    answers: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    left_out: int
    reason: str | None


def confusion_matrix(
    pairs: Iterable[tuple[str, str | None]], classes: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """The answers and, for each class, how often each was given, from pairs of the true class and what was said."""
    counted = Counter((gold, NO_ANSWER if answer is None else answer) for gold, answer in pairs)
    strange = sorted({gold for gold, _ in counted} - set(classes))
    if strange:
        raise UsageError(
            f"Items are of classes that the matrix does not have: {', '.join(strange)}.",
            remedy=f"Its classes are {', '.join(classes)}.",
        )
    extra = {answer for _, answer in counted} - {*classes, UNMARKED}
    answers = (*dict.fromkeys((*classes, UNMARKED)), *sorted(extra, key=lambda name: (name == NO_ANSWER, name)))
    return answers, tuple(tuple(counted[gold, answer] for answer in answers) for gold in classes)


def type_confusion(
    samples: Iterable[Sample],
    predictions: Iterable[Prediction],
    *,
    level: str = "response",
    annotator: str | None = None,
    detector_taxonomy: str | None = None,
) -> TypeConfusion:
    """Count what was said of the items of each type, in predictions that are one per sample, in order.

    Level `response` holds its one type against the type that most of the detector's marked characters have; `mark` the
    type of each mark of the reference against the type of most of its characters that the detector marks.
    """
    rows = [_row(sample, prediction, annotator) for sample, prediction in zip(samples, predictions, strict=True)]
    name = next((row.labels.taxonomy for row in rows if row.labels is not None and row.labels.taxonomy), None)
    if name is None:
        raise UsageError("Types cannot be held against each other: there are no labels of a known taxonomy.")
    predicted = {span.type for row in rows for span in row.prediction.spans or () if span.type is not None}
    types = compare_types(name, detector_taxonomy or (None if predicted else name), None, predicted)
    if types.taxonomy is None:
        raise UsageError(f"The detector's types cannot be held against the data's: {types.why}.")
    ask = _of_response if level == "response" else _of_marks
    pairs = [pair for row in rows for pair in ask(row, types)]
    known = [(gold, answer) for gold, answer in pairs if gold is not None]
    classes = types.names + ((UNMARKED,) if any(gold == UNMARKED for gold, _ in known) else ())
    answers, counts = confusion_matrix(known, classes)
    return TypeConfusion(types.taxonomy, classes, answers, counts, len(pairs) - len(known), types.why or None)


class _Row(NamedTuple):
    sample: Sample
    prediction: Prediction
    labels: Reference | None


Pair = tuple[str | None, str | None]


def _row(sample: Sample, prediction: Prediction, annotator: str | None) -> _Row:
    if sample.id != prediction.id:
        raise InputError(f"the prediction of {prediction.id!r} cannot be held against the sample {sample.id!r}")
    return _Row(sample, prediction, reference(sample, annotator))


def _of_response(row: _Row, types: Types) -> Iterator[Pair]:
    """The one type of a response; HalluVerse25's label `0` stands in `meta`, for it is no type."""
    if row.labels is None:
        yield (
            (UNMARKED if row.sample.meta.get("label") == "0" else None),
            _answer(row, types, 0, len(row.sample.response)),
        )
        return
    gold = set(types.of_reference(row.labels.taxonomy, row.labels.marks.types))
    single = next(iter(gold)) if len(gold) == 1 else None
    yield UNMARKED if not gold else single, _answer(row, types, 0, len(row.sample.response))


def _of_marks(row: _Row, types: Types) -> Iterator[Pair]:
    if row.labels is None:
        yield None, None
        return
    mapped = types.of_reference(row.labels.taxonomy, row.labels.marks.types)
    for (start, end), gold in zip(row.labels.marks.spans.tolist(), mapped, strict=True):
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


# Confusion matrices of types for the results: of one detector on one data set, in each language and in all.


EVERY = "all"
"""The language of a matrix of all languages together: counts add, as HalluVerse25's Figure 4 has them."""

Grain = Literal["response", "mark"]


def grain_of_types(samples: Sequence[Sample], annotator: str | None = None) -> Grain | None:
    """What has one type in labelled data: `response` where each has one at most, else `mark`.

    None where labels tell no types apart: no taxonomy, or one with a single type (`hat`, `critical`).
    """
    references = [labels for labels in (reference(sample, annotator) for sample in samples) if labels is not None]
    if not any(len(_types(labels.taxonomy)) > 1 and any(labels.marks.types) for labels in references):
        return None
    return "response" if all(len(set(labels.marks.types)) <= 1 for labels in references) else "mark"


def _types(name: str | None) -> list[str]:
    known = taxonomies().get(name or "")
    return [type_ for type_ in known.types if type_ not in known.clean] if known else []


def type_confusions(
    system: str,
    data: str,
    samples: Sequence[Sample],
    predictions: Sequence[Prediction],
    *,
    detector_taxonomy: str | None,
    annotator: str | None,
    seen: bool,
    suffix: str,
) -> Iterator[BenchConfusion]:
    """The matrices of one detector on one data set: of all languages, then of each where there are several.

    Nothing where the labels have no types. Where the types of the data and of the detector do not lead to each other,
    one record without counts says so.

    Args:
        system, data: names.
        samples: test samples, with labels.
        predictions: of these, in order.
        detector_taxonomy: what the detector's types belong to; None to find the taxonomy that holds them.
        annotator: whose labels; see `metrics.reference`.
        seen: whether the system's own training held the data.
        suffix: what signatures end with.
    """
    grain = grain_of_types(samples, annotator)
    if grain is None:
        return
    parts = {EVERY: list(zip(samples, predictions, strict=True))}
    tags = sorted({tag_of(sample.language) for sample in samples})
    if len(tags) > 1:
        parts |= {tag: [row for row in parts[EVERY] if tag_of(row[0].language) == tag] for tag in tags}
    for language, rows in parts.items():
        signed = f"types:{grain}|language:{language}|{suffix}"
        empty = BenchConfusion(system=system, data=data, language=language, of=grain, seen=seen, signature=signed)
        try:
            confusion = type_confusion(
                (sample for sample, _ in rows),
                (prediction for _, prediction in rows),
                level=grain,
                annotator=annotator,
                detector_taxonomy=detector_taxonomy,
            )
        except UsageError as error:
            if language == EVERY:
                yield msgspec.structs.replace(empty, reason=error.message)
                return
            continue  # a language whose labels have no types
        yield msgspec.structs.replace(empty, **confusion._asdict())
