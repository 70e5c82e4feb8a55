"""Comparison of two layers of one item, for all tasks: counts that can be added, similarity, and shared texts.

What is counted depends on the task. Spans are compared by characters (code points without white space), as in the exam
and the validation of HAT (section 3.2), separately for each type; HAT has one. Labelled units and pairs are compared
unit by unit. Whether two layers are equal is another question: their spans must be the same set (`Comparison.differ`).
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime  # records read their annotations
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np

from veriglot.metrics.agreement import AnnotatedText
from veriglot.metrics.reference import Marks
from veriglot.metrics.spans import marked, segmenter, unit_marks
from veriglot.records.settings import Record
from veriglot.studio.agreement import merge_with_models
from veriglot.studio.layers import MAX_ID, Layer
from veriglot.studio.tables import DONE, WORK_ROLES, Assignment, Item, ItemRole, Purpose, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.arrays import Bools, Int32s
    from veriglot.records import Sample
    from veriglot.studio.project import Form, Project
    from veriglot.studio.store import ReadTransaction

__all__ = [
    "SETTLED_BY_HAND",
    "Comparison",
    "Confusion",
    "Counts",
    "GoldOrigin",
    "GoldSource",
    "SuggestionCounts",
    "annotations_by_item",
    "confused_types",
    "count_suggestions",
    "final_single_annotation",
    "final_states",
    "gold_origins",
    "suggested_id",
    "texts_with_layers",
    "verdict",
]


class Counts(NamedTuple):
    """Counts for precision (how much of the marked is right) and recall; in characters or units."""

    both: int  # marked alike in both layers; characters with two types count twice
    given: int  # marked in the layer under evaluation
    wanted: int  # marked in the reference layer

    @property
    def precision(self) -> float | None:
        """`both / given`; None if nothing was marked."""
        return self.both / self.given if self.given else None

    @property
    def recall(self) -> float | None:
        """`both / wanted`; None if there was nothing to mark."""
        return self.both / self.wanted if self.wanted else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall; None if neither layer marks anything, which is agreement."""
        return 2 * self.both / (self.given + self.wanted) if self.given + self.wanted else None

    @classmethod
    def total(cls, counts: Iterable[Counts]) -> Counts:
        """The sum of one or more."""
        return cls(*map(sum, zip(*counts, strict=True)))

    def reaches(self, threshold: float) -> bool:
        """Whether precision and recall both reach a threshold; an undefined value counts as reached.

        If nothing is marked although something is wrong, precision is undefined and recall is 0.
        """
        return all(value is None or value >= threshold for value in (self.precision, self.recall))


class Comparison:
    """Compares layers of one item, over half-open ranges of shape `(n, 2)`."""

    def __init__(self, form: Form, sample: Sample) -> None:
        self._form, self._sample = form, sample

    @cached_property
    def bounds(self) -> Int32s:
        """Characters if spans are marked, the labelled units, or the whole response."""
        if self._form.labels:
            return np.array([[0, len(self._sample.response)]], np.int32)
        if self._form.unit is not None:
            return np.array(self._form.units_of(self._sample), np.int32).reshape(-1, 2)
        return segmenter("char")(self._sample.response, None)

    @cached_property
    def units(self) -> Int32s:
        """Units of agreement: words if spans are marked, else the labelled units."""
        words = self._form.has_spans
        return segmenter("word")(self._sample.response, self._sample.language) if words else self.bounds

    def marks(self, layer: Layer) -> Marks:
        """What a layer marks as wrong: its spans, its units with a label that is not clean, or the whole response."""
        marks = sorted(layer.marks(self._form, len(self._sample.response)))
        spans = np.array([(start, end) for start, end, _ in marks], np.int32).reshape(-1, 2)
        return Marks(spans, tuple(type_ for _, _, type_ in marks))

    def counts(self, given: Layer, wanted: Layer) -> Counts:
        """Count what two layers share: characters of spans with the same type, or units with the same label.

        A layer that skips the item marks nothing.
        """
        ours, others = self._masks(given), self._masks(wanted)
        both = sum(int((mask & others[type_]).sum()) for type_, mask in ours.items() if type_ in others)
        return Counts(both, *(sum(int(mask.sum()) for mask in masks.values()) for masks in (ours, others)))

    def similarity(self, first: Layer, second: Layer) -> float:
        """Similarity of two layers, from 0 to 1: of all marks in either, types included, the share in both.

        Two layers without marks are alike; if only one skips the item, they are not. Layers that split the same words
        into different spans are alike, although they differ (`differ`).
        """
        if (first.skip is None) != (second.skip is None):
            return 0.0
        ours, others = self._masks(first), self._masks(second)
        none = np.zeros(len(self.bounds), bool)
        either, apart = none.copy(), none.copy()
        for type_ in ours.keys() | others.keys():
            mask, opposite = ours.get(type_, none), others.get(type_, none)
            either |= mask | opposite
            apart |= mask != opposite
        return 1.0 - float(apart.sum() / either.sum()) if either.any() else 1.0

    def _masks(self, layer: Layer) -> dict[str, Bools]:
        """Type to a mask over the ranges; a labelled unit has one label."""
        marks = self.marks(layer)
        types = np.array([type_ or "" for type_ in marks.types], object)
        if self._form.has_spans:
            return {type_: marked(self.bounds, marks.spans[types == type_]) for type_ in set(types)}
        index = unit_marks(self.bounds, marks.spans)
        labels = np.array([*types, None], object)[index]
        return {type_: labels == type_ for type_ in set(types)}

    def differ(self, layers: Sequence[Layer]) -> bool:
        """Whether layers are not all equal: sets of (start, end, type) without outer white space, or skips."""
        return len({layer.content(self._form, self._sample.response) for layer in layers}) > 1

    def mean_similarity(self, pairs: Iterable[tuple[Layer, Layer]]) -> float | None:
        """Mean over pairs of layers; None if there is no pair."""
        values = [self.similarity(first, second) for first, second in pairs]
        return sum(values) / len(values) if values else None

    def marked_share(self, layer: Layer) -> float:
        """Share of characters that a layer marks, from 0 to 1."""
        bounds = segmenter("char")(self._sample.response, None)
        return float(marked(bounds, self.marks(layer).spans).mean()) if len(bounds) else 0.0

    def label_pairs(self, first: Layer, second: Layer, *, typed: bool) -> list[tuple[str, str]]:
        """The types of each unit in two layers: empty if unmarked, else the type (`marked` if not `typed`)."""
        both = [self.marks(layer) for layer in (first, second)]
        if not typed:
            both = [Marks(marks.spans, ("marked",) * len(marks.types)) for marks in both]
        return list(zip(*(_types_of(self.units, marks) for marks in both), strict=True))


class Confusion(Record):
    """Units where one person chose a type and another a second one; an empty type means unmarked."""

    first: str
    second: str
    units: int  # each pair of people counts a unit once


def confused_types(text: AnnotatedText) -> Counter[tuple[str, str]]:
    """Type pairs that two people chose for the same units of a text, counted over all pairs of people."""
    counts = Counter[tuple[str, str]]()
    labels = [_types_of(text.bounds, marks) for marks in text.layers.values()]
    for first, second in combinations(labels, 2):
        counts.update((min(pair), max(pair)) for pair in zip(first, second, strict=True) if any(pair))
    return counts


def _types_of(bounds: Int32s, marks: Marks) -> list[str]:
    names = (*(type_ or "" for type_ in marks.types), "")  # index -1 is the empty type
    return [names[i] for i in unit_marks(bounds, marks.spans).tolist()]


# What people did with suggestions (`assignment.suggestions_for`).


class SuggestionCounts(Record):
    """What people did with suggestions.

    Attributes:
        items: items that showed any.
        shown: number of suggestions.
        accepted: marked with the suggested range and type, by the button or by hand.
        changed: accepted, then given another range or type.
        rejected: rejected by the button.
        untouched: neither marked nor rejected.
    """

    items: int = 0
    shown: int = 0
    accepted: int = 0
    changed: int = 0
    rejected: int = 0
    untouched: int = 0


def suggested_id(suggestion: dict[str, Any]) -> str:
    """The id of a span that was made from a suggestion, also used to reject it. The page computes the same."""
    return f"suggested-{suggestion['id']}"[:MAX_ID]


def verdict(suggestion: dict[str, Any], layer: Layer) -> Literal["accepted", "changed", "rejected", "untouched"]:
    """What a layer does with a suggestion that was shown with it."""
    suggested = (suggestion["start"], suggestion["end"], suggestion["type"])
    if any((span.start, span.end, span.type) == suggested for span in layer.spans):
        return "accepted"
    id_ = suggested_id(suggestion)
    if any(span.id == id_ for span in layer.spans):
        return "changed"
    return "rejected" if id_ in layer.rejected else "untouched"


def count_suggestions(assignments: Iterable[Assignment]) -> SuggestionCounts | None:
    """Counts over the suggestions of some assignments; None if none of them showed any.

    Skipped items are not counted, because nothing was judged there.
    """
    counts = Counter[str]()
    for assignment in assignments:
        if assignment.suggestions and assignment.layer.skip is None:
            counts.update(items=1, shown=len(assignment.suggestions))
            counts.update(verdict(suggestion, assignment.layer) for suggestion in assignment.suggestions)
    return SuggestionCounts(**counts) if counts else None


# Submitted work for statistics: texts with the layers of all annotators.


_SILVER = "silver"

SETTLED_BY_HAND = "adjudicated"
"""The event in which a lead settles an item by hand."""
_GOLD_EVENTS = (SETTLED_BY_HAND, "settled_agreed", "settled_majority", "settled_best_with_silver", "gold")


def annotations_by_item(tx: ReadTransaction, project_id: int) -> dict[int, list[Assignment]]:
    """Submitted annotations by item, with skips, without withdrawn work."""
    by_item: dict[int, list[Assignment]] = {}
    for row in tx.assignments(project_id, purpose=Purpose.ANNOTATE, state=DONE):
        by_item.setdefault(row.item_id, []).append(row)
    return by_item


class GoldSource(Record):
    """A span or label of a gold layer, and the annotations it is from; none if it was added in adjudication.

    It is `changed` if it was taken from them and then given other ends or another type.
    """

    start: int
    end: int
    type: str
    assignments: list[int]
    changed: bool = False


class GoldOrigin(Record):
    """How an item got its gold layer."""

    kind: str  # of the event: `adjudicated` (by a lead), `settled_` and the rule
    by: str | None  # public id of the lead who settled it; None for the command line
    at: datetime
    why: str | None  # the lead's note
    sources: list[GoldSource]


def gold_origins(tx: ReadTransaction, project_id: int, item_id: int | None = None) -> dict[int, GoldOrigin]:
    """Item to the origin of its current gold layer; without gold that came with the data."""
    names, origins = tx.public_ids(project_id), {}
    for event in tx.events(project_id, kind=_GOLD_EVENTS, item_id=item_id):
        payload = event.payload or {}
        by = None if event.person_id is None else names[event.person_id]
        sources = msgspec.convert(payload.get("sources", []), list[GoldSource])
        if event.item_id is not None:
            origins[event.item_id] = GoldOrigin(event.kind, by, event.at, payload.get("comment"), sources)
    return origins


def final_states(project: Project) -> tuple[State, ...]:
    """States of a finished annotation: accepted, or submitted if the project has no reviews."""
    return (State.ACCEPTED,) if project.entries.work.reviews else (State.ACCEPTED, State.SUBMITTED)


def final_single_annotation(project: Project, item: Item, handed_in: Sequence[Assignment]) -> Assignment | None:
    """The only submitted annotation of an item for one person, if finished; it counts as gold if there is none."""
    alone = item.role is ItemRole.NORMAL and not item.has_gold and len(handed_in) == item.people_wanted(project) == 1
    return handed_in[0] if alone and handed_in[0].state in final_states(project) else None


def texts_with_layers(
    tx: ReadTransaction, project: Project, *, silver: bool = False, shared: bool = False, language: str | None = None
) -> list[AnnotatedText]:
    """Items of one language or all, with the marks of each annotator under their public id; without skips.

    With `silver`, only items with a silver layer, which becomes the model's layer; with `shared`, only items of two or
    more people.
    """
    project_id = tx.project(project.slug).id
    names, by_item = tx.public_ids(project_id), annotations_by_item(tx, project_id)
    texts = []
    for item in tx.items(project_id, role=WORK_ROLES, language=language):
        layer_of = {names[row.person_id]: row.layer for row in by_item.get(item.id, ()) if row.layer.skip is None}
        if not layer_of or (shared and len(layer_of) < 2) or (silver and not item.has_silver):
            continue
        make = partial(_layered, tx, project, item, layer_of, silver)
        texts.append(tx.cached(item.id, f"layers {silver}", make))
    return texts


def _layered(
    tx: ReadTransaction, project: Project, item: Item, layer_of: dict[str, Layer], silver: bool
) -> AnnotatedText:
    sample = tx.sample(item.id)
    comparison = Comparison(project.form, sample)
    layers = {name: comparison.marks(layer) for name, layer in layer_of.items()}
    if silver and (mechanical := tx.silver(item.id)) is not None:
        layers = merge_with_models(layers, {_SILVER: comparison.marks(mechanical)})
    return AnnotatedText(item.key, item.language or "", len(sample.response), comparison.units, layers)
