"""Marks that are shown beforehand, where a project wants any: from the silver layer, or from a detector.

They bias (those who see them agree with them more), so they are off unless the project file says otherwise, are kept
with the assignment that showed them, and can be left out on a share of the items so that their effect can be measured.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from veriglot.annotate.annotations import from_annotation
from veriglot.annotate.drawing import uniform
from veriglot.annotate.layers import to_data
from veriglot.annotate.store import ItemRole
from veriglot.records import Annotation, Kind, Status

if TYPE_CHECKING:
    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Item, Reading
    from veriglot.records import Sample
    from veriglot.records.protocols import Detector

__all__ = ["suggestions_for"]


def suggestions_for(tx: Reading, project: Project, item: Item) -> list[dict[str, Any]] | None:
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
    from veriglot.detectors import load_detector

    return load_detector(name)


def _detected(name: str, project: Project, sample: Sample) -> list[dict[str, Any]] | None:
    """What a detector marks; None where it does not judge the sample."""
    detector = _detector(name)
    prediction = detector.predict([sample])[0]
    if prediction.status is not Status.SCORED:
        return None
    said = Annotation(annotator=name, kind=Kind.MODEL, taxonomy=detector.taxonomy, spans=prediction.spans)
    return list(to_data(from_annotation(said, project.form, sample))["spans"])
