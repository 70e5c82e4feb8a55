"""A small project in a store, for tests."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from veriglot.studio.layers import Layer, LayerSpan
from veriglot.studio.tables import Assignment, NewEvent, Person, Purpose, Role, now

if TYPE_CHECKING:
    from veriglot.studio.store import Store

TEXT = "Ada war in Paris. الكلمة ข้าว 👩‍👩‍👧 क्षि"


@dataclass(frozen=True)
class Small:
    """One project, one item, one annotator with an assignment, and one reviewer."""

    project_id: int
    person: Person
    reviewer: Person
    assignment: Assignment


def person(tx, project_id: int, role: Role = Role.ANNOTATOR) -> Person:
    at = now()
    return tx.add_person(
        project_id,
        public_id=uuid.uuid4().hex[:12],
        role=role,
        key_hash=uuid.uuid4().hex,
        key_expires_at=at + timedelta(days=1),
        invited_at=at,
    )


def small(store: Store, items: int = 1, slug: str = "small") -> Small:
    with store.writing() as tx:
        project_id = tx.add_project(slug=slug, name="Small", task="spans", taxonomy="fava")
        rows = [
            {
                "key": f"item-{number}",
                "position": number,
                "language": "de",
                "role": "normal",
                "words": 6,
                "sample": {"id": f"item-{number}", "response": TEXT, "language": "de"},
            }
            for number in range(items)
        ]
        tx.add_items(project_id, rows)
        somebody, reviewer = person(tx, project_id), person(tx, project_id, Role.REVIEWER)
        assignment = tx.assign(tx.items(project_id)[0], somebody.id, Purpose.ANNOTATE)
    return Small(project_id, somebody, reviewer, assignment)


def event(kind: str = "save", base: int = 0, **more) -> NewEvent:
    return NewEvent(str(uuid.uuid4()), kind, base, **more)


def marked(start: int = 0, end: int = 3, type_: str = "entity", **more) -> Layer:
    return Layer(spans=(LayerSpan("s1", start, end, type_),), **more)
