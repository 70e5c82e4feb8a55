"""Which item somebody gets next, read from the tables; nothing is changed here.

The order for annotators: items that everybody shares (`overlap`), then their own, with hidden checks strewn in.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import exists, select

from veriglot.studio import tables as t
from veriglot.studio.tables import AT_WORK, BatchState, ItemRole, Purpose, Role, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sqlalchemy import ColumnElement, Select

    from veriglot.studio.project import Project
    from veriglot.studio.tables import Assignment, Item, Person
    from veriglot.studio.transaction import ReadTransaction

__all__ = [
    "begun_assignment",
    "can_judge",
    "can_work",
    "draw",
    "final_states",
    "in_languages",
    "item_round",
    "next_item",
    "uniform",
]


# Chance that can be repeated: the same words give the same number, on any machine and in any version.


T = TypeVar("T")


def uniform(*words: object) -> float:
    """A number from 0 to below 1 that these words stand for."""
    joined = "\x1f".join(str(word) for word in words)
    return int.from_bytes(hashlib.sha256(joined.encode("utf-8", "surrogatepass")).digest()[:7], "big") / 2**56


def draw(rows: Iterable[T], key: Callable[[T], str], *words: object) -> list[T]:
    """Rows in an order of chance; what is added later leaves the order of the others as it is."""
    return sorted(rows, key=lambda row: (uniform(*words, key(row)), key(row)))


def checks_due(given: int, share: float, *words: object) -> int:
    """How many of somebody's first `given + 1` items are hidden checks.

    One falls into each stretch of `1 / share` items, at a place of chance that stands fixed for these words, so that
    nobody can count them off.

    Args:
        given: items that they got so far, checks too.
        share: of checks, from 0 to 0.5.
        words: whom it is about.
    """
    if share <= 0:
        return 0
    stretches = math.floor((given + 1) * share) + 1
    return sum(math.floor((stretch + uniform(*words, stretch)) / share) <= given for stretch in range(stretches))


def can_work(person: Person, project: Project) -> bool:
    """Whether somebody may annotate: an annotator who joined, was not shut out, and passed the exam if there is one."""
    through = project.entries.exam is None or person.exam_passed_at is not None
    return person.role is Role.ANNOTATOR and _is_here(person) and person.out_at is None and through


def can_judge(person: Person) -> bool:
    """Whether somebody may look at others' work: a reviewer or lead who joined and was not shut out."""
    return person.role in {Role.REVIEWER, Role.LEAD} and _is_here(person)


def _is_here(person: Person) -> bool:
    return person.joined_at is not None and person.revoked_at is None


def final_states(project: Project) -> tuple[State, ...]:
    """States in which an annotation is through: accepted, or handed in where nobody reviews."""
    return (State.ACCEPTED,) if project.entries.work.reviews else (State.ACCEPTED, State.SUBMITTED)


def in_languages(person: Person) -> list[ColumnElement[bool]]:
    """Conditions on `items` for the languages that somebody works in."""
    return [] if person.works_in is None else [t.items.c.language.in_(person.works_in)]


def begun_assignment(tx: ReadTransaction, person: Person) -> Assignment | None:
    """What somebody has to go on with: what was sent back first, then what is open, the oldest first."""
    rows = tx.assignments(person.project_id, person_id=person.id, states=AT_WORK)
    rows.sort(key=lambda row: (row.state is not State.RETURNED, row.id))
    return rows[0] if rows else None


def item_round(tx: ReadTransaction, item: Item) -> int:
    """How often the item's batch was sent back."""
    return 0 if item.batch_id is None else tx.batch(item.batch_id).round


def next_item(tx: ReadTransaction, project: Project, person: Person) -> Item | None:
    """The item that an annotator annotates next; None where there is none for them (any more)."""
    if not can_work(person, project):
        return None
    check = _check_item(tx, project, person)
    return check or _overlap_item(tx, person) or _own_item(tx, project, person)


def _check_item(tx: ReadTransaction, project: Project, person: Person) -> Item | None:
    """A hidden check, if one is due and left."""
    checks = project.entries.checks
    if checks is None:
        return None
    mine = _mine(person)
    given = tx.count(select(t.assignments.c.id).where(*mine))
    hidden = (t.items.c.id == t.assignments.c.item_id) & (t.items.c.role == ItemRole.CHECK)
    had = tx.count(select(t.assignments.c.id).join(t.items, hidden).where(*mine))
    if had >= checks_due(given, checks.share, project.slug, person.public_id):
        return None
    if _overlap_item(tx, person) is None and _own_item(tx, project, person) is None:
        return None  # nobody is kept with checks alone
    left = select(t.items.c.id).where(
        t.items.c.project_id == person.project_id,
        t.items.c.role == ItemRole.CHECK,
        *in_languages(person),
        ~_has(person),
    )
    ids = [row[0] for row in tx.connection.execute(left)]
    drawn = draw(tx.items(person.project_id, ids=ids) if ids else [], lambda item: item.key, person.public_id)
    return drawn[0] if drawn else None


def _overlap_item(tx: ReadTransaction, person: Person) -> Item | None:
    """The first shared item that this person does not have. They have none of a batch that was sent back."""
    statement = (
        _items(person, ItemRole.OVERLAP)
        .where(~_has(person), _is_worked_on())
        .order_by(_had_before(person), t.items.c.position)
    )
    return _first(tx, statement)


def _own_item(tx: ReadTransaction, project: Project, person: Person) -> Item | None:
    """The first item that nobody has, if this person may have another."""
    most = project.entries.work.per_person
    if most is not None:
        own = (t.items.c.id == t.assignments.c.item_id) & (t.items.c.role == ItemRole.NORMAL)
        live = t.assignments.c.state != State.WITHDRAWN
        if tx.count(select(t.assignments.c.id).join(t.items, own).where(*_mine(person), live)) >= most:
            return None
    taken = exists().where(
        t.assignments.c.item_id == t.items.c.id,
        t.assignments.c.purpose == Purpose.ANNOTATE,
        t.assignments.c.state != State.WITHDRAWN,
    )
    statement = _items(person, ItemRole.NORMAL).where(~taken, _is_worked_on())
    return _first(tx, statement.order_by(_had_before(person), t.items.c.position))


def _items(person: Person, role: ItemRole) -> Select[Any]:
    return select(t.items.c.id).where(
        t.items.c.project_id == person.project_id, t.items.c.role == role, *in_languages(person)
    )


def _first(tx: ReadTransaction, statement: Select[Any]) -> Item | None:
    row = tx.connection.execute(statement.limit(1)).first()
    return None if row is None else tx.item(row[0])


def _mine(person: Person) -> tuple[ColumnElement[bool], ...]:
    return t.assignments.c.person_id == person.id, t.assignments.c.purpose == Purpose.ANNOTATE


def _has(person: Person) -> ColumnElement[bool]:
    """Whether the person has the item, or is through with it."""
    live = t.assignments.c.state != State.WITHDRAWN
    return exists().where(t.assignments.c.item_id == t.items.c.id, *_mine(person), live)


def _had_before(person: Person) -> ColumnElement[bool]:
    """Whether it was taken from this person: then everything else comes first."""
    gone = t.assignments.c.state == State.WITHDRAWN
    return exists().where(t.assignments.c.item_id == t.items.c.id, *_mine(person), gone)


def _is_worked_on() -> ColumnElement[bool]:
    """Whether the item's batch, if it is in one, still takes annotations: not while it is validated, nor after."""
    states = (BatchState.VALIDATING, BatchState.ACCEPTED)
    return ~exists().where(t.batches.c.id == t.items.c.batch_id, t.batches.c.state.in_(states))
