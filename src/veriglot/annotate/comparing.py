"""Two layers of one item held against each other, whatever the kind of task: counts that add, and labels of units.

What counts depends on the task. Spans are compared over characters (code points that are no white space), whatever
their type: that is how the exam and the validation of hat (section 3.2) are measured. Labelled units and pairs are
compared unit by unit, and there the label has to be the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.annotate.checking import units_of
from veriglot.metrics.reference import Marks
from veriglot.metrics.units import char_bounds
from veriglot.records import taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from veriglot.annotate.forms import Form
    from veriglot.annotate.layers import Layer
    from veriglot.records import Sample

__all__ = ["Counts", "bounds_of", "compare", "labels_of", "likeness", "marked_share", "marks_in", "marks_of", "total"]

_NO_HALLUCINATION = "0"


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


def total(counts: Iterable[Counts]) -> Counts:
    """The sum."""
    rows = list(counts)
    return Counts(*(sum(column) for column in zip(*rows, strict=True))) if rows else Counts(0, 0, 0)


def marks_of(layer: Layer, form: Form, sample: Sample) -> Marks:
    """What a layer says is not right: its spans, its units whose label is no clean one, or all of the response."""
    found = sorted(_marks(layer, form, sample))
    spans = np.array([(start, end) for start, end, _ in found], np.int32).reshape(-1, 2)
    return Marks(spans, tuple(type_ for _, _, type_ in found))


def _marks(layer: Layer, form: Form, sample: Sample) -> Iterator[tuple[int, int, str]]:
    if layer.skip is not None:
        return
    yield from ((span.start, span.end, span.type) for span in layer.spans)
    clean = taxonomy(form.taxonomy).clean if form.unit is not None else ()
    for unit in layer.units:
        if unit.label is not None and unit.label not in clean:
            yield unit.start, unit.end, unit.label
    if layer.label not in {None, _NO_HALLUCINATION} and sample.response:
        yield 0, len(sample.response), str(layer.label)


def marks_in(layer: Layer, form: Form) -> int:
    """How many marks `marks_of` finds, for which the text is not needed."""
    clean = taxonomy(form.taxonomy).clean if form.unit is not None else ()
    units = sum(unit.label is not None and unit.label not in clean for unit in layer.units)
    labelled = layer.label not in {None, _NO_HALLUCINATION}
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
    one = labels_of(marks_of(given, form, sample), bounds, typed=typed)
    other = labels_of(marks_of(wanted, form, sample), bounds, typed=typed)
    both = sum(a == b != "" for a, b in zip(one, other, strict=True))
    return Counts(both, sum(map(bool, one)), sum(map(bool, other)))


def likeness(one: Layer, other: Layer, form: Form, sample: Sample) -> float:
    """How alike two layers are, from 0 to 1: the share of what either marks that both mark alike, type and all.

    Two that mark nothing are alike; one that skips an item and one that does not are not.
    """
    if (one.skip is None) != (other.skip is None):
        return 0.0
    bounds = bounds_of(form, sample)
    first = labels_of(marks_of(one, form, sample), bounds, typed=True)
    second = labels_of(marks_of(other, form, sample), bounds, typed=True)
    either = [(a, b) for a, b in zip(first, second, strict=True) if a or b]
    return sum(a == b for a, b in either) / len(either) if either else 1.0


def marked_share(layer: Layer, form: Form, sample: Sample) -> float:
    """The share of characters that a layer marks, from 0 to 1."""
    bounds = char_bounds(sample.response)
    marked = labels_of(marks_of(layer, form, sample), bounds, typed=False)
    return sum(map(bool, marked)) / len(marked) if marked else 0.0
