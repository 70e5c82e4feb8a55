"""Two layers of one item compared, whatever the task: counts that add, similarity, and shared texts.

What counts depends on the task. Spans are compared over characters (code points that are no white space), whatever
their type: that is how the exam and the validation of HAT (section 3.2) are measured. Labelled units and pairs are
compared unit by unit, and there the label has to be the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np
from sqlalchemy import select

from veriglot.metrics.agreement import Layered
from veriglot.metrics.reference import Marks
from veriglot.metrics.spans import char_bounds, segmenter
from veriglot.records.taxonomy import taxonomy
from veriglot.studio import tables as t
from veriglot.studio.layers import MAX_ID, units_of
from veriglot.studio.project import NO_HALLUCINATION
from veriglot.studio.tables import DONE, WORK_ROLES, ItemRole, Purpose, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.records import Sample
    from veriglot.studio.layers import Layer
    from veriglot.studio.project import Form, Project
    from veriglot.studio.store import ReadTransaction
    from veriglot.studio.tables import Assignment, Item

__all__ = [
    "SETTLED_BY_HAND",
    "SILVER",
    "Counts",
    "SuggestionCounts",
    "annotations_by_item",
    "compare",
    "count_marks",
    "count_suggestions",
    "final_single_annotation",
    "final_states",
    "gold_origins",
    "label_pairs",
    "marked_share",
    "mean_similarity",
    "sum_counts",
    "texts_with_layers",
    "types_in",
    "units_in",
    "verdict",
]


class Counts(NamedTuple):
    """How much of what was marked is right, and how much of what is right was marked; characters or units."""

    both: int  # marked in both layers (and, for labels, alike)
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

    def reaches(self, threshold: float) -> bool:
        """Whether precision and recall both reach a threshold; one that is undefined does.

        Who marks nothing where something is wrong has no precision, and a recall of 0.
        """
        return all(value is None or value >= threshold for value in (self.precision, self.recall))


def sum_counts(counts: Iterable[Counts]) -> Counts:
    """The sum of one or more."""
    return Counts(*map(sum, zip(*counts, strict=True)))


def _marks_of(layer: Layer, form: Form, sample: Sample) -> Marks:
    """What a layer says is not right: its spans, its units whose label is no clean one, or all of the response."""
    marks = sorted(_marks(layer, form, len(sample.response)))
    spans = np.array([(start, end) for start, end, _ in marks], np.int32).reshape(-1, 2)
    return Marks(spans, tuple(type_ for _, _, type_ in marks))


def count_marks(layer: Layer, form: Form) -> int:
    """How many marks `_marks_of` finds, for which the text is not needed."""
    return sum(1 for _ in _marks(layer, form, 1))


def _marks(layer: Layer, form: Form, length: int) -> Iterator[tuple[int, int, str]]:
    if layer.skip is not None:
        return
    yield from ((span.start, span.end, span.type) for span in layer.spans)
    clean = taxonomy(form.taxonomy).clean if form.unit is not None else ()
    for unit in layer.units:
        if unit.label is not None and unit.label not in clean:
            yield unit.start, unit.end, unit.label
    if layer.label not in {None, NO_HALLUCINATION} and length:
        yield 0, length, str(layer.label)


def _bounds(form: Form, sample: Sample) -> NDArray[np.int32]:
    """What is compared, as half-open ranges of shape `(n, 2)`: characters, units that are labelled, or the whole."""
    if form.labels:
        return np.array([[0, len(sample.response)]], np.int32)
    if form.unit is not None:
        return np.array(units_of(form, sample), np.int32).reshape(-1, 2)
    return char_bounds(sample.response)


def _labels(marks: Marks, bounds: NDArray[np.int32], *, typed: bool) -> list[str]:
    """What marks say of each range; the shortest of several speaks."""
    labels = np.full(len(bounds), "", dtype=object)
    order = sorted(range(len(marks.spans)), key=lambda i: (int(marks.spans[i, 0]) - int(marks.spans[i, 1]), -i))
    for index in order:
        start, end = marks.spans[index]
        labels[(bounds[:, 1] > start) & (bounds[:, 0] < end)] = (marks.types[index] or "") if typed else "marked"
    return list(labels)


def compare(given: Layer, wanted: Layer, form: Form, sample: Sample) -> Counts:
    """Count what two layers have in common: characters of spans, or units with the same label.

    A layer that skips the item marks nothing.
    """
    pairs = label_pairs(given, wanted, form, sample, _bounds(form, sample), typed=not form.has_spans)
    return Counts(sum(a == b != "" for a, b in pairs), sum(bool(a) for a, _ in pairs), sum(bool(b) for _, b in pairs))


def similarity(first: Layer, second: Layer, form: Form, sample: Sample) -> float:
    """How alike two layers are, from 0 to 1: the share of what either marks that both mark alike, type and all.

    Two that mark nothing are alike; one that skips an item and one that does not are not.
    """
    if (first.skip is None) != (second.skip is None):
        return 0.0
    pairs = label_pairs(first, second, form, sample, _bounds(form, sample), typed=True)
    either = [(a, b) for a, b in pairs if a or b]
    return sum(a == b for a, b in either) / len(either) if either else 1.0


def mean_similarity(layers: Iterable[tuple[Layer, Layer]], form: Form, sample: Sample) -> float | None:
    """The mean over pairs of layers; None where there is no pair."""
    values = [similarity(first, second, form, sample) for first, second in layers]
    return sum(values) / len(values) if values else None


def label_pairs(
    first: Layer, second: Layer, form: Form, sample: Sample, bounds: NDArray[np.int32], *, typed: bool
) -> list[tuple[str, str]]:
    """What each of two layers says of each range: empty where nothing, else the type (or `marked`, if not `typed`)."""
    labels = (_labels(_marks_of(layer, form, sample), bounds, typed=typed) for layer in (first, second))
    return list(zip(*labels, strict=True))


def marked_share(layer: Layer, form: Form, sample: Sample) -> float:
    """The share of characters that a layer marks, from 0 to 1."""
    bounds = char_bounds(sample.response)
    marked = _labels(_marks_of(layer, form, sample), bounds, typed=False)
    return sum(map(bool, marked)) / len(marked) if marked else 0.0


# What became of the marks that were shown beforehand (`assignment.suggestions_for`).


class SuggestionCounts(msgspec.Struct, frozen=True):
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
    counts = dict.fromkeys(SuggestionCounts.__struct_fields__, 0)
    for assignment in assignments:
        if not assignment.suggestions or assignment.layer.skip is not None:
            continue
        counts["items"] += 1
        for suggestion in assignment.suggestions:
            counts["shown"] += 1
            counts[verdict(suggestion, assignment.layer)] += 1
    return SuggestionCounts(**counts) if counts["items"] else None


# What was handed in, gathered for figures: texts with the layers of all who annotated them.


SILVER = "silver"
"""Stands for the silver layer among the public ids of people, none of which is this word."""

SETTLED_BY_HAND = "adjudicated"
"""The event in which a lead settles an item by hand."""
_GOLD_EVENTS = (SETTLED_BY_HAND, "settled_agreed", "settled_majority", "settled_best_with_silver", "gold")


def annotations_by_item(tx: ReadTransaction, project_id: int) -> dict[int, list[Assignment]]:
    """What annotators handed in, by item; skips too, withdrawn work not."""
    by_item: dict[int, list[Assignment]] = {}
    for row in tx.assignments(project_id, purpose=Purpose.ANNOTATE, state=DONE):
        by_item.setdefault(row.item_id, []).append(row)
    return by_item


def gold_origins(tx: ReadTransaction, project_id: int) -> dict[int, str]:
    """Item to the event that set its gold layer last; what came with the data is not among them."""
    events = t.events.c
    mine = (events.project_id == project_id, events.kind.in_(_GOLD_EVENTS), events.item_id.is_not(None))
    rows = tx.connection.execute(select(events.item_id, events.kind).where(*mine).order_by(events.id))
    return {row[0]: row[1] for row in rows}


def final_states(project: Project) -> tuple[State, ...]:
    """States in which an annotation is through: accepted, or handed in where nobody reviews."""
    return (State.ACCEPTED,) if project.entries.work.reviews else (State.ACCEPTED, State.SUBMITTED)


def final_single_annotation(project: Project, item: Item, handed_in: Sequence[Assignment]) -> Assignment | None:
    """The only annotation handed in of an item for one person, once through: it stands for gold where there is none."""
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
    """Items of a language, or all, with what each annotator marked in them, under their public ids; skips left out.

    With `silver`, the silver layer stands among them as `SILVER`; with `shared`, only items of two people or more.
    """
    names = tx.public_ids(project_id)
    by_item = annotations_by_item(tx, project_id)
    texts = []
    for item in tx.items(project_id, role=WORK_ROLES, language=language):
        layer_of = {names[row.person_id]: row.layer for row in by_item.get(item.id, ()) if row.layer.skip is None}
        if not layer_of or (shared and len(layer_of) < 2):
            continue
        sample = tx.sample(item.id)
        mechanical = tx.silver(item.id) if silver else None
        if mechanical is not None:
            layer_of[SILVER] = mechanical
        layers = {name: _marks_of(layer, project.form, sample) for name, layer in layer_of.items()}
        bounds = units_in(project.form, sample)
        texts.append(Layered(item.key, item.language or "", len(sample.response), bounds, layers))
    return texts


def types_in(texts: Iterable[Layered]) -> list[str]:
    """All types of marks that occur, sorted; an empty one where a mark has none."""
    return sorted({type_ or "" for text in texts for marks in text.layers.values() for type_ in marks.types})


def units_in(form: Form, sample: Sample) -> NDArray[np.int32]:
    """What agreement is counted in, of shape `(n, 2)`: words where spans are marked, otherwise what is labelled."""
    if form.has_spans:
        return segmenter("word")(sample.response, sample.language)
    return _bounds(form, sample)
