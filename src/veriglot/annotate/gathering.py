"""What was handed in, gathered for figures: texts with the layers of all who annotated them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from veriglot.annotate.choosing import DONE
from veriglot.annotate.comparing import bounds_of, marks_of
from veriglot.annotate.store import ItemRole, Purpose, State
from veriglot.annotate.store import tables as t
from veriglot.metrics.agreement import Layered
from veriglot.metrics.units import segmenter

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Assignment, Item, Reading
    from veriglot.records import Sample

__all__ = ["BY_HAND", "SILVER", "annotations_by_item", "gold_origins", "layered", "single_through", "units_in"]

SILVER = "silver"
"""Stands for the silver layer among the public ids of people, none of which is this word."""

BY_HAND = "adjudicated"
"""The event in which a lead settles an item by hand."""
_GOLD_EVENTS = (BY_HAND, "settled_agreed", "settled_majority", "settled_best_with_silver", "gold")

_WORK = (ItemRole.NORMAL, ItemRole.OVERLAP)


def annotations_by_item(tx: Reading, project_id: int) -> dict[int, list[Assignment]]:
    """What annotators handed in, by item; skips too, withdrawn work not."""
    found: dict[int, list[Assignment]] = {}
    for row in tx.assignments(project_id, purpose=Purpose.ANNOTATE, states=DONE):
        found.setdefault(row.item_id, []).append(row)
    return found


def gold_origins(tx: Reading, project_id: int) -> dict[int, str]:
    """Item to the event that set its gold layer last; what came with the data is not among them."""
    events = t.events.c
    mine = (events.project_id == project_id, events.kind.in_(_GOLD_EVENTS), events.item_id.is_not(None))
    rows = tx.connection.execute(select(events.item_id, events.kind).where(*mine).order_by(events.id))
    return {row[0]: row[1] for row in rows}


def single_through(project: Project, item: Item, handed_in: Sequence[Assignment]) -> Assignment | None:
    """The only annotation of an item for one person, once it is through: it stands for gold where there is none.

    Args:
        project: the project.
        item: an item.
        handed_in: what annotators handed in of it, skips too.
    """
    through = {State.ACCEPTED} if project.entries.work.reviews else {State.ACCEPTED, State.SUBMITTED}
    alone = item.role is ItemRole.NORMAL and not item.has_gold and len(handed_in) == 1
    return handed_in[0] if alone and handed_in[0].state in through else None


def layered(
    tx: Reading,
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
    found = []
    for item in _work(tx, project_id, language):
        said = {names[row.person_id]: row.layer for row in by_item.get(item.id, ()) if row.layer.skip is None}
        if not said or (shared and len(said) < 2):
            continue
        sample = tx.sample(item.id)
        mechanical = tx.silver(item.id) if silver else None
        if mechanical is not None:
            said[SILVER] = mechanical
        layers = {name: marks_of(layer, project.form, sample) for name, layer in said.items()}
        bounds = units_in(project, sample)
        found.append(Layered(item.key, item.language or "", len(sample.response), bounds, layers))
    return found


def _work(tx: Reading, project_id: int, language: str | None) -> list[Item]:
    found = [item for role in _WORK for item in tx.items(project_id, role=role, language=language)]
    return sorted(found, key=lambda item: item.position)


def units_in(project: Project, sample: Sample) -> NDArray[np.int32]:
    """What agreement is counted in: words where spans are marked, otherwise what is labelled."""
    if project.form.has_spans:
        return segmenter("word")(sample.response, sample.language)
    return bounds_of(project.form, sample)
