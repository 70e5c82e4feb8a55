"""Marks that are shown beforehand, where a project wants any: from the silver layer, or from a detector.

They bias (those who see them agree with them more), so they are off unless the project file says otherwise, are kept
with the assignment that showed them, and can be left out on a share of the items so that their effect can be measured.
What became of each (accepted, changed, rejected, untouched) follows from the layer that was handed in.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from veriglot.records import Annotation, Kind, Status
from veriglot.studio.layers import MAX_ID, from_annotation, to_data
from veriglot.studio.queue import uniform
from veriglot.studio.tables import ItemRole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.records import Detector, Sample
    from veriglot.studio.layers import Layer
    from veriglot.studio.project import Project
    from veriglot.studio.tables import Assignment, Item
    from veriglot.studio.transaction import ReadTransaction

__all__ = ["SuggestionCounts", "count_suggestions", "suggestions_for", "verdict"]

Verdict = Literal["accepted", "changed", "rejected", "untouched"]


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


def verdict(suggestion: dict[str, Any], layer: Layer) -> Verdict:
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


def suggestions_for(tx: ReadTransaction, project: Project, item: Item) -> list[dict[str, Any]] | None:
    """Spans to show with an item, as in a layer; None where none are shown (which an empty list is not).

    Never in the exam. On hidden checks as on all others, for they would stand out.
    """
    entry = project.entries.suggestions
    if entry is None or item.role is ItemRole.EXAM or not project.form.has_spans:
        return None
    if uniform(project.slug, "suggestions", item.key) >= entry.share:
        return None
    if entry.detector is not None:
        return _detected(entry.detector, project, tx.sample(item.id))
    silver = tx.silver(item.id)
    return None if silver is None else list(to_data(silver)["spans"])


@lru_cache(maxsize=4)
def _detector(name: str) -> Detector:
    from veriglot.detectors.registry import load_detector

    return load_detector(name)


def _detected(name: str, project: Project, sample: Sample) -> list[dict[str, Any]] | None:
    """What a detector marks; None where it does not judge the sample."""
    detector = _detector(name)
    prediction = detector.predict([sample])[0]
    if prediction.status is not Status.SCORED:
        return None
    annotation = Annotation(annotator=name, kind=Kind.MODEL, taxonomy=detector.taxonomy, spans=prediction.spans)
    return list(to_data(from_annotation(annotation, project.form, sample))["spans"])
