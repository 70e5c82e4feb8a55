"""Two layers of one item compared, whatever the task: counts that add, similarity, and shared texts.

What counts depends on the task. Spans are compared over characters (code points that are no white space), as the exam
and the validation of HAT (section 3.2) are measured, each type for itself: HAT has one. Labelled units and pairs are
compared unit by unit. Whether two layers say the same is another question: then their spans are the same set
(`Comparison.differ`).
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
from veriglot.studio.agreement import beside_models
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
    """How much of what was marked is right, and how much of what is right was marked; characters or units."""

    both: int  # marked alike in both layers; what has two types counts twice
    given: int  # marked in the layer that is judged
    wanted: int  # marked in the layer that it is held against

    @property
    def precision(self) -> float | None:
        """`both / given`; None where nothing was marked."""
        return self.both / self.given if self.given else None

    @property
    def recall(self) -> float | None:
        """`both / wanted`; None where there was nothing to mark."""
        return self.both / self.wanted if self.wanted else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of the two; None where neither layer marks anything, which is agreement."""
        return 2 * self.both / (self.given + self.wanted) if self.given + self.wanted else None

    @classmethod
    def total(cls, counts: Iterable[Counts]) -> Counts:
        """The sum of one or more."""
        return cls(*map(sum, zip(*counts, strict=True)))

    def reaches(self, threshold: float) -> bool:
        """Whether precision and recall both reach a threshold; one that is undefined does.

        Who marks nothing where something is wrong has no precision, and a recall of 0.
        """
        return all(value is None or value >= threshold for value in (self.precision, self.recall))


class Comparison:
    """Layers of one item held against each other, over half-open ranges of shape `(n, 2)`."""

    def __init__(self, form: Form, sample: Sample) -> None:
        self._form, self._sample = form, sample

    @cached_property
    def bounds(self) -> Int32s:
        """Characters where spans are marked, the units that are labelled, or the whole response."""
        if self._form.labels:
            return np.array([[0, len(self._sample.response)]], np.int32)
        if self._form.unit is not None:
            return np.array(self._form.units_of(self._sample), np.int32).reshape(-1, 2)
        return segmenter("char")(self._sample.response, None)

    @cached_property
    def units(self) -> Int32s:
        """What agreement is counted in: words where spans are marked, else what is labelled."""
        words = self._form.has_spans
        return segmenter("word")(self._sample.response, self._sample.language) if words else self.bounds

    def marks(self, layer: Layer) -> Marks:
        """What a layer says is not right: its spans, its units whose label is no clean one, or all of the response."""
        marks = sorted(layer.marks(self._form, len(self._sample.response)))
        spans = np.array([(start, end) for start, end, _ in marks], np.int32).reshape(-1, 2)
        return Marks(spans, tuple(type_ for _, _, type_ in marks))

    def counts(self, given: Layer, wanted: Layer) -> Counts:
        """Count what two layers have in common: characters of spans of one type, or units with the same label.

        A layer that skips the item marks nothing.
        """
        ours, others = self._masks(given), self._masks(wanted)
        both = sum(int((mask & others[type_]).sum()) for type_, mask in ours.items() if type_ in others)
        return Counts(both, *(sum(int(mask.sum()) for mask in masks.values()) for masks in (ours, others)))

    def similarity(self, first: Layer, second: Layer) -> float:
        """How alike two layers are, from 0 to 1: the share of what either marks that both mark alike, with all types.

        Two that mark nothing are alike; one that skips an item and one that does not are not. Layers that cut the same
        words into different spans are alike, and yet they differ (`differ`).
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
        """Type to which ranges it is said of; a unit that is labelled takes one label."""
        marks = self.marks(layer)
        types = np.array([type_ or "" for type_ in marks.types], object)
        if self._form.has_spans:
            return {type_: marked(self.bounds, marks.spans[types == type_]) for type_ in set(types)}
        index = unit_marks(self.bounds, marks.spans)
        labels = np.array([*types, None], object)[index]
        return {type_: labels == type_ for type_ in set(types)}

    def differ(self, layers: Sequence[Layer]) -> bool:
        """Whether layers do not all say the same: sets of (start, end, type), trimmed of white space, or skips."""
        return len({layer.content(self._form, self._sample.response) for layer in layers}) > 1

    def mean_similarity(self, pairs: Iterable[tuple[Layer, Layer]]) -> float | None:
        """The mean over pairs of layers; None where there is no pair."""
        values = [self.similarity(first, second) for first, second in pairs]
        return sum(values) / len(values) if values else None

    def marked_share(self, layer: Layer) -> float:
        """The share of characters that a layer marks, from 0 to 1."""
        bounds = segmenter("char")(self._sample.response, None)
        return float(marked(bounds, self.marks(layer).spans).mean()) if len(bounds) else 0.0

    def label_pairs(self, first: Layer, second: Layer, *, typed: bool) -> list[tuple[str, str]]:
        """What each of two layers says of each unit: empty where nothing, else the type (`marked` if not `typed`)."""
        both = [self.marks(layer) for layer in (first, second)]
        if not typed:
            both = [Marks(marks.spans, ("marked",) * len(marks.types)) for marks in both]
        return list(zip(*(_types_of(self.units, marks) for marks in both), strict=True))


class Confusion(Record):
    """Units on which one person chose a type and another a second one; an empty type where nothing is marked."""

    first: str
    second: str
    units: int  # each pair of people counts each unit once


def confused_types(text: AnnotatedText) -> Counter[tuple[str, str]]:
    """Which types people chose for the same units of a text, over each two people."""
    counts = Counter[tuple[str, str]]()
    labels = [_types_of(text.bounds, marks) for marks in text.layers.values()]
    for first, second in combinations(labels, 2):
        counts.update((min(pair), max(pair)) for pair in zip(first, second, strict=True) if any(pair))
    return counts


def _types_of(bounds: Int32s, marks: Marks) -> list[str]:
    names = (*(type_ or "" for type_ in marks.types), "")  # an index of -1 is the one at the end
    return [names[i] for i in unit_marks(bounds, marks.spans).tolist()]


# What became of the marks that were shown beforehand (`assignment.suggestions_for`).


class SuggestionCounts(Record):
    """What became of suggestions.

    Attributes:
        items: on which any were shown.
        shown: how many.
        accepted: marked with the place and type that were suggested, by the button or by hand.
        changed: accepted, and then given another place or type.
        rejected: turned down.
        untouched: none of these: seen, and neither marked nor turned down.
    """

    items: int = 0
    shown: int = 0
    accepted: int = 0
    changed: int = 0
    rejected: int = 0
    untouched: int = 0


def suggested_id(suggestion: dict[str, Any]) -> str:
    """The id that a span has which was made of a suggestion, and by which one is rejected. The page makes the same."""
    return f"suggested-{suggestion['id']}"[:MAX_ID]


def verdict(suggestion: dict[str, Any], layer: Layer) -> Literal["accepted", "changed", "rejected", "untouched"]:
    """What a layer makes of a suggestion that was shown with it."""
    suggested = (suggestion["start"], suggestion["end"], suggestion["type"])
    if any((span.start, span.end, span.type) == suggested for span in layer.spans):
        return "accepted"
    id_ = suggested_id(suggestion)
    if any(span.id == id_ for span in layer.spans):
        return "changed"
    return "rejected" if id_ in layer.rejected else "untouched"


def count_suggestions(assignments: Iterable[Assignment]) -> SuggestionCounts | None:
    """What became of the suggestions of some assignments; None where none of them showed any.

    Items that were left out are not counted: nothing was judged there.
    """
    counts = Counter[str]()
    for assignment in assignments:
        if assignment.suggestions and assignment.layer.skip is None:
            counts.update(items=1, shown=len(assignment.suggestions))
            counts.update(verdict(suggestion, assignment.layer) for suggestion in assignment.suggestions)
    return SuggestionCounts(**counts) if counts else None


# What was handed in, gathered for figures: texts with the layers of all who annotated them.


_SILVER = "silver"

SETTLED_BY_HAND = "adjudicated"
"""The event in which a lead settles an item by hand."""
_GOLD_EVENTS = (SETTLED_BY_HAND, "settled_agreed", "settled_majority", "settled_best_with_silver", "gold")


def annotations_by_item(tx: ReadTransaction, project_id: int) -> dict[int, list[Assignment]]:
    """What annotators handed in, by item; skips too, withdrawn work not."""
    by_item: dict[int, list[Assignment]] = {}
    for row in tx.assignments(project_id, purpose=Purpose.ANNOTATE, state=DONE):
        by_item.setdefault(row.item_id, []).append(row)
    return by_item


class GoldSource(Record):
    """A span or label of a gold layer, and the annotations that it is from; none where whoever settled added it.

    It was `changed` where it was taken from them and then given other ends or another type.
    """

    start: int
    end: int
    type: str
    assignments: list[int]
    changed: bool = False


class GoldOrigin(Record):
    """How an item got its gold layer."""

    kind: str  # of the event: `adjudicated` (a lead), `settled_` and a rule
    by: str | None  # who settled it, under their public id; None for the command line
    at: datetime
    why: str | None  # their note
    sources: list[GoldSource]


def gold_origins(tx: ReadTransaction, project_id: int, item_id: int | None = None) -> dict[int, GoldOrigin]:
    """Item to how its gold layer was set last; what came with the data is not among them."""
    names, origins = tx.public_ids(project_id), {}
    for event in tx.events(project_id, kind=_GOLD_EVENTS, item_id=item_id):
        payload = event.payload or {}
        by = None if event.person_id is None else names[event.person_id]
        sources = msgspec.convert(payload.get("sources", []), list[GoldSource])
        if event.item_id is not None:
            origins[event.item_id] = GoldOrigin(event.kind, by, event.at, payload.get("comment"), sources)
    return origins


def final_states(project: Project) -> tuple[State, ...]:
    """States in which an annotation is through: accepted, or handed in where nobody reviews."""
    return (State.ACCEPTED,) if project.entries.work.reviews else (State.ACCEPTED, State.SUBMITTED)


def final_single_annotation(project: Project, item: Item, handed_in: Sequence[Assignment]) -> Assignment | None:
    """The only annotation handed in of an item for one person, once through: it stands for gold where there is none."""
    alone = item.role is ItemRole.NORMAL and not item.has_gold and len(handed_in) == item.people_wanted(project) == 1
    return handed_in[0] if alone and handed_in[0].state in final_states(project) else None


def texts_with_layers(
    tx: ReadTransaction, project: Project, *, silver: bool = False, shared: bool = False, language: str | None = None
) -> list[AnnotatedText]:
    """Items of a language, or all, with what each annotator marked in them, under their public ids; skips left out.

    With `silver`, only items with a silver layer, which is the model's; with `shared`, only items of two people or
    more.
    """
    project_id = tx.project(project.slug).id
    names, by_item = tx.public_ids(project_id), annotations_by_item(tx, project_id)
    texts = []
    for item in tx.items(project_id, role=WORK_ROLES, language=language):
        layer_of = {names[row.person_id]: row.layer for row in by_item.get(item.id, ()) if row.layer.skip is None}
        if not layer_of or (shared and len(layer_of) < 2) or (silver and not item.has_silver):
            continue
        make = partial(_layered, tx, project, item, layer_of, silver)
        texts.append(tx.remember(item.id, f"layers {silver}", make))
    return texts


def _layered(
    tx: ReadTransaction, project: Project, item: Item, layer_of: dict[str, Layer], silver: bool
) -> AnnotatedText:
    sample = tx.sample(item.id)
    comparison = Comparison(project.form, sample)
    layers = {name: comparison.marks(layer) for name, layer in layer_of.items()}
    if silver and (mechanical := tx.silver(item.id)) is not None:
        layers = beside_models(layers, {_SILVER: comparison.marks(mechanical)})
    return AnnotatedText(item.key, item.language or "", len(sample.response), comparison.units, layers)
