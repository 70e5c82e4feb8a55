"""Two layers of one item compared, whatever the task: counts that add, similarity, and shared texts.

What counts depends on the task. Spans are compared over characters (code points that are no white space), whatever
their type: that is how the exam and the validation of HAT (section 3.2) are measured. Labelled units and pairs are
compared unit by unit, and there the label has to be the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sqlalchemy import select

from veriglot.metrics.agreement import Layered
from veriglot.metrics.reference import Marks
from veriglot.metrics.spans import char_bounds, segmenter
from veriglot.records.taxonomy import taxonomy
from veriglot.studio import tables as t
from veriglot.studio.layers import units_of
from veriglot.studio.project import NO_HALLUCINATION
from veriglot.studio.queue import final_states
from veriglot.studio.tables import DONE, WORK_ROLES, ItemRole, Purpose

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.records import Sample
    from veriglot.studio.layers import Layer
    from veriglot.studio.project import Form, Project
    from veriglot.studio.tables import Assignment, Item
    from veriglot.studio.transaction import ReadTransaction

__all__ = [
    "SETTLED_BY_HAND",
    "SILVER",
    "Counts",
    "annotations_by_item",
    "compare",
    "final_single_annotation",
    "gold_origins",
    "labels_of",
    "marked_share",
    "marks_in",
    "marks_of",
    "similarity",
    "sum_counts",
    "texts_with_layers",
    "units_in",
]


class Counts(NamedTuple):
    """How much of what was marked is right, and how much of what is right was marked; characters or units.

    Attributes:
        both: marked in both layers (and, for labels, alike).
        given: marked in the layer that is judged.
        wanted: marked in the layer that it is held against.
    """

    both: int
    given: int
    wanted: int

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

    def reaches(self, threshold: float) -> bool:
        """Whether precision and recall both reach a threshold; one that is undefined does.

        Who marks nothing where something is wrong has no precision, and a recall of 0.
        """
        return all(value is None or value >= threshold for value in (self.precision, self.recall))


def sum_counts(counts: Iterable[Counts]) -> Counts:
    """The sum."""
    rows = list(counts)
    return Counts(*(sum(column) for column in zip(*rows, strict=True))) if rows else Counts(0, 0, 0)


def marks_of(layer: Layer, form: Form, sample: Sample) -> Marks:
    """What a layer says is not right: its spans, its units whose label is no clean one, or all of the response."""
    marks = sorted(_marks(layer, form, sample))
    spans = np.array([(start, end) for start, end, _ in marks], np.int32).reshape(-1, 2)
    return Marks(spans, tuple(type_ for _, _, type_ in marks))


def _marks(layer: Layer, form: Form, sample: Sample) -> Iterator[tuple[int, int, str]]:
    if layer.skip is not None:
        return
    yield from ((span.start, span.end, span.type) for span in layer.spans)
    clean = taxonomy(form.taxonomy).clean if form.unit is not None else ()
    for unit in layer.units:
        if unit.label is not None and unit.label not in clean:
            yield unit.start, unit.end, unit.label
    if layer.label not in {None, NO_HALLUCINATION} and sample.response:
        yield 0, len(sample.response), str(layer.label)


def marks_in(layer: Layer, form: Form) -> int:
    """How many marks `marks_of` finds, for which the text is not needed."""
    clean = taxonomy(form.taxonomy).clean if form.unit is not None else ()
    units = sum(unit.label is not None and unit.label not in clean for unit in layer.units)
    labelled = layer.label not in {None, NO_HALLUCINATION}
    return 0 if layer.skip is not None else len(layer.spans) + units + labelled


def bounds_of(form: Form, sample: Sample) -> NDArray[np.int32]:
    """What is compared, as half-open ranges of shape `(n, 2)`: characters, units that are labelled, or the whole."""
    if form.labels:
        return np.array([[0, len(sample.response)]], np.int32)
    if form.unit is not None:
        return np.array(units_of(form, sample), np.int32).reshape(-1, 2)
    return char_bounds(sample.response)


def labels_of(marks: Marks, bounds: NDArray[np.int32], *, typed: bool) -> list[str]:
    """What marks say of each range: empty where nothing, else the type of the shortest span over it (or `marked`).

    Args:
        marks: of one layer.
        bounds: of shape `(n, 2)`.
        typed: whether the type is told; else every mark is the same.
    """
    labels = np.full(len(bounds), "", dtype=object)
    order = sorted(range(len(marks.spans)), key=lambda i: (int(marks.spans[i, 0]) - int(marks.spans[i, 1]), -i))
    for index in order:  # the shortest last
        start, end = marks.spans[index]
        labels[(bounds[:, 1] > start) & (bounds[:, 0] < end)] = (marks.types[index] or "") if typed else "marked"
    return list(labels)


def compare(given: Layer, wanted: Layer, form: Form, sample: Sample) -> Counts:
    """Count what two layers have in common: characters of spans, or units with the same label.

    A layer that skips the item marks nothing.
    """
    bounds, typed = bounds_of(form, sample), not form.has_spans
    first = labels_of(marks_of(given, form, sample), bounds, typed=typed)
    second = labels_of(marks_of(wanted, form, sample), bounds, typed=typed)
    both = sum(a == b != "" for a, b in zip(first, second, strict=True))
    return Counts(both, sum(map(bool, first)), sum(map(bool, second)))


def similarity(first_layer: Layer, second_layer: Layer, form: Form, sample: Sample) -> float:
    """How alike two layers are, from 0 to 1: the share of what either marks that both mark alike, type and all.

    Two that mark nothing are alike; one that skips an item and one that does not are not.
    """
    if (first_layer.skip is None) != (second_layer.skip is None):
        return 0.0
    bounds = bounds_of(form, sample)
    first = labels_of(marks_of(first_layer, form, sample), bounds, typed=True)
    second = labels_of(marks_of(second_layer, form, sample), bounds, typed=True)
    either = [(a, b) for a, b in zip(first, second, strict=True) if a or b]
    return sum(a == b for a, b in either) / len(either) if either else 1.0


def marked_share(layer: Layer, form: Form, sample: Sample) -> float:
    """The share of characters that a layer marks, from 0 to 1."""
    bounds = char_bounds(sample.response)
    marked = labels_of(marks_of(layer, form, sample), bounds, typed=False)
    return sum(map(bool, marked)) / len(marked) if marked else 0.0


# What was handed in, gathered for figures: texts with the layers of all who annotated them.


SILVER = "silver"
"""Stands for the silver layer among the public ids of people, none of which is this word."""

SETTLED_BY_HAND = "adjudicated"
"""The event in which a lead settles an item by hand."""
_GOLD_EVENTS = (SETTLED_BY_HAND, "settled_agreed", "settled_majority", "settled_best_with_silver", "gold")


def annotations_by_item(tx: ReadTransaction, project_id: int) -> dict[int, list[Assignment]]:
    """What annotators handed in, by item; skips too, withdrawn work not."""
    by_item: dict[int, list[Assignment]] = {}
    for row in tx.assignments(project_id, purpose=Purpose.ANNOTATE, states=DONE):
        by_item.setdefault(row.item_id, []).append(row)
    return by_item


def gold_origins(tx: ReadTransaction, project_id: int) -> dict[int, str]:
    """Item to the event that set its gold layer last; what came with the data is not among them."""
    events = t.events.c
    mine = (events.project_id == project_id, events.kind.in_(_GOLD_EVENTS), events.item_id.is_not(None))
    rows = tx.connection.execute(select(events.item_id, events.kind).where(*mine).order_by(events.id))
    return {row[0]: row[1] for row in rows}


def final_single_annotation(project: Project, item: Item, handed_in: Sequence[Assignment]) -> Assignment | None:
    """The only annotation of an item for one person, once it is through: it stands for gold where there is none.

    Args:
        project: the project.
        item: an item.
        handed_in: what annotators handed in of it, skips too.
    """
    alone = item.role is ItemRole.NORMAL and not item.has_gold and len(handed_in) == 1
    return handed_in[0] if alone and handed_in[0].state in final_states(project) else None


def texts_with_layers(
    tx: ReadTransaction,
    project: Project,
    project_id: int,
    *,
    silver: bool = False,
    shared: bool = False,
    language: str | None = None,
) -> list[Layered]:
    """Items with what each annotator marked in them, under their public ids; skipped ones are not among it.

    Args:
        tx: the transaction.
        project: the project.
        project_id: of its row.
        silver: whether the silver layer stands among them, as `SILVER`.
        shared: only items that two people or more annotated.
        language: of the items; None for all.
    """
    names = {person.id: person.public_id for person in tx.people(project_id)}
    by_item = annotations_by_item(tx, project_id)
    texts = []
    for item in _work_items(tx, project_id, language):
        layer_of = {names[row.person_id]: row.layer for row in by_item.get(item.id, ()) if row.layer.skip is None}
        if not layer_of or (shared and len(layer_of) < 2):
            continue
        sample = tx.sample(item.id)
        mechanical = tx.silver(item.id) if silver else None
        if mechanical is not None:
            layer_of[SILVER] = mechanical
        layers = {name: marks_of(layer, project.form, sample) for name, layer in layer_of.items()}
        bounds = units_in(project, sample)
        texts.append(Layered(item.key, item.language or "", len(sample.response), bounds, layers))
    return texts


def _work_items(tx: ReadTransaction, project_id: int, language: str | None) -> list[Item]:
    items = [item for role in WORK_ROLES for item in tx.items(project_id, role=role, language=language)]
    return sorted(items, key=lambda item: item.position)


def units_in(project: Project, sample: Sample) -> NDArray[np.int32]:
    """What agreement is counted in: words where spans are marked, otherwise what is labelled."""
    if project.form.has_spans:
        return segmenter("word")(sample.response, sample.language)
    return bounds_of(project.form, sample)
