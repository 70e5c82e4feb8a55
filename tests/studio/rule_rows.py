"""Projects with people and items for tests of the rules, and people who act in them."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from veriglot.records import Evidence, Sample
from veriglot.studio.assignment import apply_event, next_assignment
from veriglot.studio.items import register_project
from veriglot.studio.layers import Layer, LayerSpan
from veriglot.studio.tables import Assignment, EventResult, ItemRole, NewEvent, Person, Role, State, now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from veriglot.studio.project import Project
    from veriglot.studio.store import Store

EMPTY = Layer()

RULES = """
[project]
name = "Rules"
slug = "rules"
task = "spans"

[work]
overlap = 0
reviews = 0
"""

TEXTS = {
    "de": "Ada Lovelace wurde 1815 in London geboren und schrieb über Maschinen.",
    "ar": "ولدت آدا لوفليس في لندن عام ١٨١٥ وكتبت عن الآلات.",
    "zh": "阿达·洛芙莱斯一八一五年生于伦敦，写过关于机器的文章。",
    "hi": "एडा लवलेस का जन्म १८१५ में लंदन में हुआ था और क्षितिज पर लिखा।",
    "th": "เอดา เลิฟเลซเกิดที่ลอนดอนใน พ.ศ. ๒๓๕๘ และเขียนเรื่องเครื่องจักร 👩‍👩‍👧",
}


def spans(*places: tuple[int, int] | tuple[int, int, str]) -> Layer:
    """A layer of spans; `entity` where no type is said."""
    rows = [(*place, "entity")[:3] for place in places]
    return Layer(spans=tuple(LayerSpan(f"s{n}", *row) for n, row in enumerate(rows, 1)))


@dataclass
class Team:
    """A project in a store, with those who work in it."""

    store: Store
    project: Project
    id: int
    asked: dict[int, int] = field(default_factory=dict)

    def person(
        self, role: Role = Role.ANNOTATOR, languages: Iterable[str] | None = None, *, joined: bool = True
    ) -> Person:
        at = now()
        with self.store.writing() as tx:
            found = tx.add_person(
                self.id,
                public_id=uuid.uuid4().hex[:12],
                role=role,
                works_in=None if languages is None else list(languages),
                key_hash=uuid.uuid4().hex,
                key_expires_at=at + timedelta(days=1),
                invited_at=at,
            )
            if joined:
                name = f"{role.value} {found.id}"
                found = tx.update_person(found.id, "joined", name=name, language="en", joined_at=at, consented_at=at)
        return found

    def items(
        self,
        count: int,
        language: str = "de",
        role: ItemRole = ItemRole.NORMAL,
        *,
        gold: Callable[[int], Layer | None] | Layer | None = None,
        silver: Callable[[int], Layer | None] | Layer | None = None,
        text: str | None = None,
        batch: bool = False,
    ) -> list[int]:
        response = text or TEXTS[language]

        def layer_at(of: Callable[[int], Layer | None] | Layer | None, number: int) -> dict[str, object] | None:
            found = of(number) if callable(of) else of
            return None if found is None else found.to_data()

        with self.store.writing() as tx:
            first = tx.next_position(self.id)
            rows = []
            for number in range(count):
                key = f"{language}-{role.value}-{first + number}"
                sample = Sample(
                    id=key, response=response, language=language, evidence=(Evidence(response, language=language),)
                )
                rows.append(
                    {
                        "key": key,
                        "position": first + number,
                        "language": language,
                        "role": role,
                        "words": 10,
                        "sample": msgspec.to_builtins(sample),
                        "gold": layer_at(gold, number),
                        "silver": layer_at(silver, number),
                    }
                )
            tx.add_items(self.id, rows)
            ids = [item.id for item in tx.items(self.id) if item.position >= first]
            if batch:
                tx.add_batch(self.id, ids, language=language)
        return ids

    def next(self, person: Person) -> Assignment | None:
        return next_assignment(self.store, self.project, person.id)

    def act(
        self, assignment: Assignment, kind: str = "submit", layer: Layer | None = EMPTY, **more: object
    ) -> EventResult:
        current = self.assignment(assignment.id)
        event = NewEvent(str(uuid.uuid4()), kind, current.version, layer, **more)
        return apply_event(self.store, self.project, current.person_id, current.id, event)

    def do(self, person: Person, layer: Layer = EMPTY, *, most: int = 1000, seconds: float = 30.0) -> list[Assignment]:
        """Hand in everything that somebody is given, until there is no more."""
        done = []
        for _ in range(most):
            given = self.next(person)
            if given is None:
                break
            self.act(given, "submit", layer, seconds=seconds)
            done.append(given)
        return done

    def assignment(self, id_: int) -> Assignment:
        with self.store.reading() as tx:
            return tx.assignment(id_)

    def state(self, assignment: Assignment) -> State:
        return self.assignment(assignment.id).state


def team(store: Store, project: Project) -> Team:
    return Team(store, project, register_project(store, project).id)


def shuffled(rows: Iterable[int], seed: int) -> list[int]:
    found = list(rows)
    random.Random(seed).shuffle(found)
    return found
