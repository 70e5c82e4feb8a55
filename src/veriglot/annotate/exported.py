"""An item as an export sees it: its texts, everybody's layer of it, gold and silver, and what else was said."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.annotate.annotations import to_annotation
from veriglot.annotate.choosing import DONE
from veriglot.annotate.gathering import gold_origins, single_through
from veriglot.annotate.layers import EMPTY, to_data
from veriglot.annotate.reviewing import final_layer
from veriglot.annotate.store import ItemRole, Purpose
from veriglot.annotate.store.columns import write_moment
from veriglot.annotate.suggesting import verdict
from veriglot.records import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.annotate.layers import Layer
    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Assignment, Item, Reading
    from veriglot.records import Annotation, Sample

__all__ = ["Names", "Row", "rows_of", "said_beyond"]

_GOLD, _SILVER = "gold", "silver"


@dataclass(frozen=True)
class Names:
    """What people are called in an export.

    Attributes:
        by_id: of each person.
        about: name to role, whether they joined, and their public id.
        chosen: whether these are the names that they chose.
    """

    by_id: dict[int, str]
    about: dict[str, dict[str, Any]]
    chosen: bool

    @classmethod
    def of(cls, tx: Reading, project_id: int, *, chosen: bool) -> Names:
        """The people of a project; who chose `gold` or `silver` keeps their public id, for layers are called so."""
        by_id, about = {}, {}
        for person in tx.people(project_id):
            usable = chosen and person.name is not None and person.name.casefold() not in {_GOLD, _SILVER}
            name = str(person.name) if usable else person.public_id
            by_id[person.id] = name
            about[name] = {
                "id": person.public_id,
                "role": person.role.value,
                "joined": person.joined_at is not None,
                "languages": None if person.works_in is None else list(person.works_in),
            }
        return cls(by_id, about, chosen)


@dataclass
class Row:
    """An item.

    Attributes:
        sample: as it was imported, with no annotations.
        is_work: whether it is work, not the exam's nor a hidden check.
        gold: the layer that counts: settled, imported, or that of the only annotator where it is through.
        silver: the silver layer.
        people: the annotators' layers that are handed in.
        others: annotations that were imported and are none of these.
        skipped: who left the item out, and why.
        layers: all layers of people, as they are kept.
        handed_in: name of an annotator to their assignment, where it is handed in.
        studio: everything else, as plain data.
        ids: name of an annotator to their public id.
        source_flags: words of the form for what is wrong with a source.
    """

    sample: Sample
    is_work: bool
    gold: Annotation | None
    silver: Annotation | None
    people: list[Annotation]
    others: list[Annotation]
    skipped: dict[str, str]
    layers: list[Layer]
    handed_in: dict[str, Assignment]
    studio: dict[str, Any]
    ids: dict[str, str]
    source_flags: frozenset[str]

    @property
    def everybody(self) -> list[Annotation]:
        """All annotations: gold, silver, the annotators', others."""
        return [*(one for one in (self.gold, self.silver) if one is not None), *self.people, *self.others]


def said_beyond(row: Row) -> Counter[str]:
    """What the layers of an item say that only the native format keeps, counted."""
    found: Counter[str] = Counter()
    for layer in row.layers:
        found["notes at spans"] += sum(bool(span.note) for span in layer.spans)
        found["ratings of spans"] += sum(span.rating is not None for span in layer.spans)
        found["ratings of items"] += len(layer.ratings)
        found["comments"] += bool(layer.comment)
        found["rejected suggestions"] += len(layer.rejected)
        found["flags"] += len(layer.flags) + sum(len(unit.flags) for unit in layer.units)
        found["places in the evidence"] += sum(len(unit.evidence) for unit in layer.units)
        found["counts of facts"] += sum(bool(unit.counts) for unit in layer.units)
        found["reasons to skip"] += layer.skip is not None
    return +found


def rows_of(tx: Reading, project: Project, project_id: int, called: Names) -> Iterator[Row]:
    """All items of a project, in order."""
    origins = gold_origins(tx, project_id)
    by_item: dict[int, list[Assignment]] = {}
    for row in tx.assignments(project_id):
        by_item.setdefault(row.item_id, []).append(row)
    for item in tx.items(project_id):
        yield _row(tx, project, item, by_item.get(item.id, []), called, origins.get(item.id))


def _row(tx: Reading, project: Project, item: Item, rows: list[Assignment], called: Names, origin: str | None) -> Row:
    original = tx.original(item.id)
    bare = msgspec.structs.replace(original, annotations=())
    form = project.form
    handed_in = [row for row in rows if row.purpose is Purpose.ANNOTATE and row.state in DONE]
    people, skipped = [], {}
    for row in handed_in:
        name = called.by_id[row.person_id]
        annotation = to_annotation(row.layer, form, bare, name)
        if annotation is not None:
            people.append(annotation)
        elif row.layer.skip is not None:
            skipped[name] = row.layer.skip
    imported = _Imported(project, original, {one.annotator for one in people}, settled=origin is not None)
    gold, source = _gold(tx, project, item, bare, handed_in, imported, origin)
    silver = imported.silver
    if silver is None and (layer := tx.silver(item.id)) is not None:
        silver = _by_model(to_annotation(layer, form, bare, _SILVER))
    studio = {
        "item": item.id,
        "role": item.role.value,
        "gold": source,
        "layers": [_kept(row, called) for row in rows],
    }
    return Row(
        sample=bare,
        is_work=item.role in {ItemRole.NORMAL, ItemRole.OVERLAP},
        gold=gold,
        silver=silver,
        people=people,
        others=imported.others,
        skipped=skipped,
        layers=[row.layer for row in handed_in],
        handed_in={called.by_id[row.person_id]: row for row in handed_in},
        studio=studio,
        ids={one.annotator: called.about[one.annotator]["id"] for one in people},
        source_flags=frozenset(form.source_flags),
    )


class _Imported:
    """The annotations that came with an item, with names that clash with no other."""

    def __init__(self, project: Project, original: Sample, taken: set[str], *, settled: bool) -> None:
        data = project.entries.data
        self.gold: Annotation | None = None
        self.silver: Annotation | None = None
        self.others: list[Annotation] = []
        for one in original.annotations:
            if one.annotator == data.silver and self.silver is None:
                self.silver = msgspec.structs.replace(one, annotator=_SILVER)
            elif one.annotator == data.gold and self.gold is None and not settled:
                self.gold = msgspec.structs.replace(one, annotator=_GOLD)
            else:
                clash = one.annotator in {_GOLD, _SILVER, *taken}
                name = f"imported-{one.annotator}" if clash else one.annotator
                self.others.append(msgspec.structs.replace(one, annotator=name))


def _gold(
    tx: Reading,
    project: Project,
    item: Item,
    bare: Sample,
    handed_in: list[Assignment],
    imported: _Imported,
    origin: str | None,
) -> tuple[Annotation | None, str | None]:
    """The gold annotation, and where it is from: an event of `gold_origins`, `imported`, `reviewed`, `single`."""
    if imported.gold is not None:
        return imported.gold, "imported"
    layer = tx.gold(item.id)
    if layer is not None:
        return to_annotation(layer, project.form, bare, _GOLD), origin or "imported"
    only = single_through(project, item, handed_in)
    if only is None:
        return None, None
    source = "reviewed" if project.entries.work.reviews else "single"
    return to_annotation(final_layer(tx, only).layer, project.form, bare, _GOLD), source


def _by_model(annotation: Annotation | None) -> Annotation | None:
    return None if annotation is None else msgspec.structs.replace(annotation, kind=Kind.MODEL)


def _judged(row: Assignment) -> list[dict[str, Any]] | None:
    """What was suggested, each with what the layer makes of it now."""
    if row.suggestions is None:
        return None
    return [{**one, "verdict": verdict(one, row.layer)} for one in row.suggestions]


def _kept(row: Assignment, called: Names) -> dict[str, Any]:
    """An assignment as plain data, without what says nothing."""
    found = {
        "assignment": row.id,
        "by": called.by_id[row.person_id],
        "purpose": row.purpose.value,
        "state": row.state.value,
        "round": row.round or None,
        "subject": row.subject_id,
        "version": row.version,
        "layer": None if row.layer == EMPTY and row.version == 0 else to_data(row.layer),
        "suggestions": _judged(row),
        "message": row.message,
        "seconds": row.seconds,
        "submitted_at": None if row.submitted_at is None else write_moment(row.submitted_at),
    }
    return {key: value for key, value in found.items() if value is not None}
