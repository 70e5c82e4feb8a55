"""What one transaction reads and writes. Whatever changes a row adds the event that says so."""

from __future__ import annotations

import hashlib
import re
import uuid
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import delete, func, insert, select, update

from veriglot.records import sample_from
from veriglot.studio import tables
from veriglot.studio.layers import EMPTY, Layer, encode, from_data, to_data
from veriglot.studio.tables import (
    AT_WORK,
    Assignment,
    Batch,
    BatchState,
    Event,
    EventResult,
    Item,
    ItemRole,
    NotFound,
    Person,
    ProjectRow,
    Purpose,
    Refused,
    State,
    now,
    record_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, RowMapping, Select, Table

    from veriglot.records import Sample
    from veriglot.studio.tables import NewEvent, R

__all__ = ["ReadTransaction", "WriteTransaction"]


# Events of people: known ones answered again, late ones kept, the others carried out.
#
# An assignment has a version, which every change of its layer or state raises. An event names the version that its
# sender had seen; it is carried out only where that is still the version. So two tabs, two reviewers or a page that
# comes back online can send whatever they like: nothing is overwritten unseen, nothing is done twice, and nothing that
# was sent is lost.


_EVENT_ID = re.compile(r"[A-Za-z0-9-]{8,64}")
_LONGEST = 24 * 3600.0  # seconds that one event may claim; a page that slept is not work
_HANDED_IN = (State.SUBMITTED, State.SKIPPED)

_Steps = dict[str, tuple[tuple[State, ...], "State | None"]]
_WORK: _Steps = {  # kind: from which states, to which; None keeps it
    "opened": (tuple(State), None),
    "save": (AT_WORK, None),
    "submit": (AT_WORK, State.SUBMITTED),
    "skip": (AT_WORK, State.SKIPPED),
    "reopen": (_HANDED_IN, State.OPEN),
}
_REVIEW: _Steps = {
    "opened": (tuple(State), None),
    "save": (AT_WORK, None),
    "confirm": (AT_WORK, State.SUBMITTED),
    "correct": (AT_WORK, State.SUBMITTED),
    "return": (AT_WORK, State.SUBMITTED),
    "skip": (AT_WORK, State.SKIPPED),
}
_STEPS: Mapping[Purpose, _Steps] = {purpose: _REVIEW if purpose is Purpose.REVIEW else _WORK for purpose in Purpose}

KINDS = frozenset({*_WORK, *_REVIEW})
"""Kinds of events that people send."""


def _check(new: NewEvent) -> None:
    if not _EVENT_ID.fullmatch(new.event_id) or new.event_id.startswith("server-"):
        raise Refused(
            "An event's id has 8 to 64 letters, digits and hyphens.", remedy="Send a new UUID with each event."
        )
    if new.kind not in KINDS:
        raise Refused(f"There is no event of kind {new.kind!r}.", remedy=f"Known: {', '.join(sorted(KINDS))}.")
    if new.kind == "skip" and (new.layer is None or new.layer.skip is None):
        raise Refused("An item is left out for a reason.", remedy="Send a layer with the reason in `skip`.")
    if not 0.0 <= new.seconds < float("inf"):
        raise Refused("Seconds of work are a number from 0.")


def _too_late(assignment: Assignment, new: NewEvent) -> str | None:
    step = _STEPS[assignment.purpose].get(new.kind)
    if step is None:
        raise Refused(f"An assignment to {assignment.purpose.value} takes no event of kind {new.kind!r}.")
    if new.kind == "opened":
        return None
    if new.base_version != assignment.version:
        return "version"
    return None if assignment.state in step[0] else "state"


def _apply(tx: WriteTransaction, old: Assignment, new: NewEvent) -> tuple[int, State]:
    """Change the row; the version and the state after it."""
    at = now()
    changes: dict[str, Any] = {"seconds": old.seconds + min(new.seconds, _LONGEST)}
    version, state = old.version, old.state
    if new.kind == "opened":
        if old.opened_at is None:
            changes["opened_at"] = at
    else:
        version, state = old.version + 1, _STEPS[old.purpose][new.kind][1] or old.state
        changes |= {"version": version, "state": state, "changed_at": at}
        if new.layer is not None:
            changes["layer"] = to_data(new.layer)
        if state in _HANDED_IN:
            changes["submitted_at"] = at
    table = tables.assignments
    chosen = (table.c.id == old.id) & (table.c.version == old.version)
    if tx.connection.execute(update(table).where(chosen).values(**changes)).rowcount != 1:
        raise AssertionError("an assignment changed while it was locked")
    return version, state


def _record(
    tx: WriteTransaction,
    assignment: Assignment,
    new: NewEvent,
    kind: str,
    version: int,
    state: State,
    payload: dict[str, Any],
) -> None:
    if new.comment is not None:
        payload["comment"] = new.comment
    tx.record(
        kind,
        assignment.project_id,
        event_id=new.event_id,
        payload=payload or None,
        layer=new.layer,
        seconds=min(new.seconds, _LONGEST),
        assignment_id=assignment.id,
        item_id=assignment.item_id,
        person_id=assignment.person_id,
        base_version=new.base_version,
        version=version,
        state=state,
        digest=_digest(new),
        client_at=new.at,
    )


def _repeated(known: Any, assignment: Assignment, person_id: int, new: NewEvent) -> EventResult:
    """The first result of an event that is known; another event under its id is refused, for it would be lost."""
    same = (known["assignment_id"], known["person_id"], known["digest"]) == (assignment.id, person_id, _digest(new))
    if not same:
        raise Refused("This id belongs to another event.", remedy="Send a new UUID with each event.")
    reason = known["payload"]["reason"] if known["kind"] == "conflict" else None
    return EventResult(known["version"], State(known["state"]), known["kind"], repeated=True, reason=reason)


def _digest(new: NewEvent) -> str:
    """Of what the event says; not of the clock, which a sender may read again when it repeats itself."""
    layer = "" if new.layer is None else encode(new.layer)
    joined = "\0".join((new.kind, str(new.base_version), layer, new.comment or ""))
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()


# What one transaction reads.


_ITEM = (
    *(
        tables.items.c[name]
        for name in ("id", "project_id", "key", "position", "language", "role", "batch_id", "words")
    ),
    tables.items.c.gold.is_not(None).label("has_gold"),
    tables.items.c.silver.is_not(None).label("has_silver"),
)


class ReadTransaction:
    """One transaction that reads. For what it has no method for, `connection` takes statements over `store.tables`.

    Attributes:
        connection: SQLAlchemy's, in the transaction.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def projects(self) -> list[ProjectRow]:
        """All projects of the database."""
        return self._records(select(tables.projects).order_by(tables.projects.c.id), ProjectRow)

    def project(self, slug: str) -> ProjectRow:
        """The project of a slug.

        Raises:
            NotFound: there is none.
        """
        return self._one(select(tables.projects).where(tables.projects.c.slug == slug), ProjectRow)

    def item(self, item_id: int) -> Item:
        """An item.

        Raises:
            NotFound: there is none.
        """
        return self._one(select(*_ITEM).where(tables.items.c.id == item_id), Item)

    def items(
        self,
        project_id: int,
        *,
        role: ItemRole | None = None,
        language: str | None = None,
        batch_id: int | None = None,
        ids: Collection[int] | None = None,
        keys: Collection[str] | None = None,
    ) -> list[Item]:
        """Items of a project in their order; each argument that is given narrows them."""
        table = tables.items
        where = [table.c.project_id == project_id, *_equal(table.c, role=role, language=language, batch_id=batch_id)]
        if ids is not None:
            where.append(table.c.id.in_(ids))
        if keys is not None:
            where.append(table.c.key.in_(keys))
        return self._records(select(*_ITEM).where(*where).order_by(table.c.position), Item)

    def sample(self, item_id: int) -> Sample:
        """The texts of an item, without what others said of them: no annotations, no `meta`.

        Raises:
            NotFound: there is none.
        """
        return msgspec.structs.replace(self.original(item_id), annotations=(), meta={})

    def original(self, item_id: int) -> Sample:
        """An item as it was imported, with every annotation: for exports, not for those who annotate.

        Raises:
            NotFound: there is none.
        """
        table = tables.items
        return sample_from(self._row(select(table.c.sample).where(table.c.id == item_id), "item")["sample"])

    def gold(self, item_id: int) -> Layer | None:
        """The gold layer of an item, if it has one."""
        return self._layer(item_id, "gold")

    def silver(self, item_id: int) -> Layer | None:
        """The silver layer of an item, if it has one."""
        return self._layer(item_id, "silver")

    def _layer(self, item_id: int, name: str) -> Layer | None:
        data = self._row(select(tables.items.c[name]).where(tables.items.c.id == item_id), "item")[name]
        return None if data is None else from_data(data)

    def batch(self, batch_id: int) -> Batch:
        """A batch.

        Raises:
            NotFound: there is none.
        """
        return self._one(select(tables.batches).where(tables.batches.c.id == batch_id), Batch)

    def batches(self, project_id: int) -> list[Batch]:
        """The batches of a project, in order."""
        table = tables.batches
        return self._records(select(table).where(table.c.project_id == project_id).order_by(table.c.number), Batch)

    def person(self, person_id: int) -> Person:
        """A person.

        Raises:
            NotFound: there is none.
        """
        return self._one(select(tables.people).where(tables.people.c.id == person_id), Person)

    def person_by(self, *, public_id: str | None = None, key_hash: str | None = None) -> Person:
        """The person of a public id or of the hash of a link's key.

        Raises:
            NotFound: there is none.
        """
        where = _equal(tables.people.c, public_id=public_id, key_hash=key_hash)
        if not where:
            raise NotFound("person")
        return self._one(select(tables.people).where(*where), Person)

    def people(self, project_id: int, *, role: str | None = None) -> list[Person]:
        """The people of a project, in the order of their invitations."""
        table = tables.people
        where = [table.c.project_id == project_id, *_equal(table.c, role=role)]
        return self._records(select(table).where(*where).order_by(table.c.id), Person)

    def assignment(self, assignment_id: int, *, lock: bool = False) -> Assignment:
        """An assignment.

        Args:
            assignment_id: which.
            lock: keep others from changing it until this transaction ends (only in one that writes).

        Raises:
            NotFound: there is none.
        """
        statement = select(tables.assignments).where(tables.assignments.c.id == assignment_id)
        return self._one(statement.with_for_update() if lock else statement, Assignment)

    def assignments(
        self,
        project_id: int,
        *,
        person_id: int | None = None,
        item_id: int | None = None,
        purpose: Purpose | None = None,
        subject_id: int | None = None,
        round: int | None = None,  # noqa: A002  # the word of the table
        states: Sequence[State] | None = None,
    ) -> list[Assignment]:
        """Assignments of a project in the order in which they were given; each argument that is given narrows them."""
        table = tables.assignments
        given = {"person_id": person_id, "item_id": item_id, "purpose": purpose, "subject_id": subject_id}
        where = [table.c.project_id == project_id, *_equal(table.c, **given, round=round)]
        if states is not None:
            where.append(table.c.state.in_(states))
        return self._records(select(table).where(*where).order_by(table.c.id), Assignment)

    def events(
        self,
        project_id: int,
        *,
        assignment_id: int | None = None,
        item_id: int | None = None,
        person_id: int | None = None,
        kinds: Collection[str] | None = None,
        after: int = 0,
    ) -> Iterator[Event]:
        """Events of a project in order, streamed; each argument that is given narrows them."""
        table = tables.events
        given = _equal(table.c, assignment_id=assignment_id, item_id=item_id, person_id=person_id)
        where = [table.c.project_id == project_id, table.c.id > after, *given]
        if kinds is not None:
            where.append(table.c.kind.in_(kinds))
        rows = self.connection.execute(
            select(table).where(*where).order_by(table.c.id), execution_options={"yield_per": 500}
        )
        return (record_of(row, Event) for row in rows.mappings())

    def event(self, event_id: str) -> RowMapping | None:
        """The row of the event that somebody gave this id, or None."""
        return self._first(select(tables.events).where(tables.events.c.event_id == event_id))

    def person_of_session(self, token_hash: str) -> Person | None:
        """Whose session it is; None where it has expired or the person was shut out."""
        table = tables.sessions
        row = self._first(select(table).where(table.c.token_hash == token_hash, table.c.expires_at > now()))
        person = None if row is None else self.person(row["person_id"])
        return None if person is None or person.revoked_at is not None else person

    def count(self, statement: Select[Any]) -> int:
        """How many rows a statement finds."""
        return int(self.connection.execute(select(func.count()).select_from(statement.subquery())).scalar_one())

    def tally(self, project_id: int, table: str, *columns: str) -> dict[tuple[Any, ...], int]:
        """How many rows of a project have which values: `count_suggestions(id, "items", "role", "language")`."""
        source = tables.METADATA.tables[table]
        chosen = [source.c[name] for name in columns]
        statement = select(*chosen, func.count()).where(source.c.project_id == project_id).group_by(*chosen)
        return {tuple(row[:-1]): int(row[-1]) for row in self.connection.execute(statement)}

    def _records(self, statement: Select[Any], kind: type[R]) -> list[R]:
        return [record_of(row, kind) for row in self.connection.execute(statement).mappings()]

    def _first(self, statement: Select[Any]) -> RowMapping | None:
        return self.connection.execute(statement).mappings().first()

    def _one(self, statement: Select[Any], kind: type[R]) -> R:
        return record_of(self._row(statement, kind.__name__.removesuffix("Row").lower()), kind)

    def _row(self, statement: Select[Any], name: str) -> RowMapping:
        row = self._first(statement)
        if row is None:
            raise NotFound(name)
        return row


def _equal(columns: Any, **given: Any) -> list[ColumnElement[bool]]:
    return [columns[name] == value for name, value in given.items() if value is not None]


class WriteTransaction(ReadTransaction):
    """One transaction that writes: everything of `ReadTransaction`, and changes."""

    def append(
        self,
        assignment_id: int,
        person_id: int,
        new: NewEvent,
        *,
        before: Callable[[WriteTransaction, Assignment], None] | None = None,
        after: Callable[[WriteTransaction, Assignment], None] | None = None,
    ) -> EventResult:
        """`Store.append` inside a transaction; an event that came too late is kept, and `reason` says why."""
        _check(new)
        assignment = self.assignment(assignment_id, lock=True)
        if assignment.person_id != person_id:
            raise NotFound("assignment")
        known = self.event(new.event_id)
        if known is not None:
            return _repeated(known, assignment, person_id, new)
        if self.person(person_id).revoked_at is not None:
            raise Refused("This person was shut out of the project.")
        reason = _too_late(assignment, new)
        if reason is not None:
            payload = {"kind": new.kind, "reason": reason}
            _record(self, assignment, new, "conflict", assignment.version, assignment.state, payload)
            return EventResult(assignment.version, assignment.state, "conflict", reason=reason)
        if before is not None:
            before(self, assignment)
        version, state = _apply(self, assignment, new)
        _record(self, assignment, new, new.kind, version, state, {})
        if after is not None:
            after(self, self.assignment(assignment_id))
        return EventResult(version, state, new.kind)

    def record(
        self,
        kind: str,
        project_id: int,
        *,
        event_id: str | None = None,
        payload: dict[str, Any] | None = None,
        layer: Layer | None = None,
        seconds: float = 0.0,
        **columns: Any,
    ) -> int:
        """Add an event. The methods below do so themselves; this is for what changes no row of theirs.

        Args:
            kind: what happened, at most 32 characters.
            project_id: the project.
            event_id: of whoever sent it; None makes one.
            payload: what there is to say, as plain data.
            layer: that came with it.
            seconds: of work.
            columns: `assignment_id`, `item_id`, `person_id` (who did it), `base_version`, `version`, `state`, `digest`,
                `client_at`.
        """
        values = {
            "event_id": event_id or f"server-{uuid.uuid4()}",
            "project_id": project_id,
            "kind": kind,
            "payload": payload,
            "layer": None if layer is None else to_data(layer),
            "seconds": seconds,
            "at": now(),
            **columns,
        }
        return self._insert(tables.events, values)

    def add_project(self, *, slug: str, name: str, task: str, taxonomy: str) -> int:
        """Add a project; its id."""
        values = {"slug": slug, "name": name, "task": task, "taxonomy": taxonomy, "created_at": now()}
        id_ = self._insert(tables.projects, values)
        self.record("created", id_, payload={"slug": slug, "name": name, "task": task, "taxonomy": taxonomy})
        return id_

    def update_project(self, project_id: int, kind: str, *, by: int | None = None, **changes: Any) -> None:
        """Change `name`, `task` or `taxonomy` of a project."""
        self._update(tables.projects, project_id, changes, "project")
        self.record(kind, project_id, person_id=by, payload=changes)

    def add_items(self, project_id: int, rows: Iterable[dict[str, Any]], *, by: int | None = None) -> int:
        """Add items, with the columns of `tables.items`; how many. Their events are `imported`."""
        added = 0
        for row in rows:
            id_ = self._insert(tables.items, {"project_id": project_id, **row})
            self.record("imported", project_id, item_id=id_, person_id=by, payload={"role": str(row["role"])})
            added += 1
        return added

    def add_batch(self, project_id: int, item_ids: Sequence[int], *, language: str | None) -> int:
        """Make a batch of items that are in none; its id."""
        number = self.count(select(tables.batches.c.id).where(tables.batches.c.project_id == project_id)) + 1
        state = BatchState.OPEN
        values = {"project_id": project_id, "number": number, "language": language, "state": state, "round": 0}
        id_ = self._insert(tables.batches, values)
        for start in range(0, len(item_ids), 500):
            chosen = tables.items.c.id.in_(item_ids[start : start + 500])
            self.connection.execute(update(tables.items).where(chosen).values(batch_id=id_))
        self.record("batched", project_id, payload={"batch": id_, "number": number, "items": list(item_ids)})
        return id_

    def update_batch(self, batch_id: int, kind: str, *, by: int | None = None, **changes: Any) -> None:
        """Change `state`, `round` or `figures` of a batch."""
        batch = self.batch(batch_id)
        self._update(tables.batches, batch_id, changes, "batch")
        self.record(kind, batch.project_id, person_id=by, payload={"batch": batch_id, **changes})

    def set_role(self, item_ids: Iterable[int], role: ItemRole, *, by: int | None = None) -> None:
        """Say what items are for."""
        for id_ in item_ids:
            item = self.item(id_)
            if item.role is not role:
                self._update(tables.items, id_, {"role": role}, "item")
                payload = {"from": item.role.value, "to": role.value}
                self.record("role", item.project_id, item_id=id_, person_id=by, payload=payload)

    def set_gold(self, item_id: int, layer: Layer | None, kind: str = "gold", *, by: int | None = None) -> None:
        """Set the gold layer of an item."""
        item = self.item(item_id)
        self._update(tables.items, item_id, {"gold": None if layer is None else to_data(layer)}, "item")
        self.record(kind, item.project_id, item_id=item_id, person_id=by, layer=layer)

    def add_person(self, project_id: int, *, by: int | None = None, **columns: Any) -> Person:
        """Add a person, with the columns of `tables.people`; see `people.invite`."""
        id_ = self._insert(tables.people, {"project_id": project_id, "exam_attempts": 0, **columns})
        payload = {"person": columns["public_id"], "role": columns["role"]}
        self.record("invited", project_id, person_id=by, payload=payload)
        return self.person(id_)

    def update_person(
        self, person_id: int, kind: str, *, by: int | None = None, payload: dict[str, Any] | None = None, **changes: Any
    ) -> Person:
        """Change columns of a person.

        Args:
            person_id: whom.
            kind: of the event: `joined`, `revoked`, `exam_passed` ...
            by: who did it; None for a rule or the command line.
            payload: of the event; the names of the changed columns are in it, their values are not.
            changes: new values of columns of `tables.people`.
        """
        self._update(tables.people, person_id, changes, "person")
        person = self.person(person_id)
        details = {**(payload or {}), "person": person.public_id, "changed": sorted(changes)}
        self.record(kind, person.project_id, person_id=by, payload=details)
        return person

    def assign(
        self,
        item: Item,
        person_id: int,
        purpose: Purpose,
        *,
        round: int = 0,  # noqa: A002  # the word of the table
        subject_id: int | None = None,
        layer: Layer = EMPTY,
        suggestions: list[dict[str, Any]] | None = None,
        by: int | None = None,
    ) -> Assignment:
        """Give an item to a person.

        Raises:
            IntegrityError: (SQLAlchemy's) they have it for this purpose, round and subject already. `Store.transact`
            retries.
        """
        at = now()
        values = {
            "project_id": item.project_id,
            "item_id": item.id,
            "person_id": person_id,
            "purpose": purpose,
            "round": round,
            "subject_id": subject_id,
            "state": State.OPEN,
            "version": 0,
            "layer": to_data(layer),
            "suggestions": suggestions,
            "seconds": 0.0,
            "created_at": at,
            "changed_at": at,
        }
        id_ = self._insert(tables.assignments, values)
        payload: dict[str, Any] = {"purpose": purpose.value, "to": self.person(person_id).public_id}
        if suggestions is not None:
            payload["suggestions"] = suggestions
        if round or subject_id is not None:
            payload |= {"round": round, "subject": subject_id}
        about: dict[str, Any] = {"assignment_id": id_, "item_id": item.id, "person_id": by}
        self.record("assigned", item.project_id, layer=layer, payload=payload, **about, version=0, state=State.OPEN)
        return self.assignment(id_)

    def move(
        self,
        assignment_id: int,
        state: State,
        kind: str,
        *,
        by: int | None = None,
        layer: Layer | None = None,
        message: str | None = None,
        payload: dict[str, Any] | None = None,
    ) -> Assignment:
        """Change the state of an assignment by a rule or by somebody other than whose it is; its version goes up.

        Args:
            assignment_id: which.
            state: the new one.
            kind: of the event: `accepted`, `returned`, `withdrawn` ...
            by: who did it.
            layer: a new layer, or None to keep what is there.
            message: to whoever has it; None keeps what is there.
            payload: of the event.
        """
        old = self.assignment(assignment_id, lock=True)
        changes: dict[str, Any] = {"state": state, "version": old.version + 1, "changed_at": now()}
        if layer is not None:
            changes["layer"] = to_data(layer)
        if message is not None:
            changes["message"] = message
            payload = {**(payload or {}), "message": message}
        self._update(tables.assignments, assignment_id, changes, "assignment")
        about: dict[str, Any] = {"assignment_id": old.id, "item_id": old.item_id, "person_id": by}
        seen: dict[str, Any] = {"base_version": old.version, "version": old.version + 1, "state": state}
        self.record(kind, old.project_id, layer=layer, payload=payload, **about, **seen)
        return self.assignment(assignment_id)

    def add_session(self, token_hash: str, person_id: int, expires_at: datetime) -> None:
        """Remember a browser. Sessions pass, so they leave no event."""
        at = now()
        values = {"token_hash": token_hash, "person_id": person_id, "created_at": at, "seen_at": at}
        self.connection.execute(insert(tables.sessions).values(**values, expires_at=expires_at))

    def end_sessions(self, *, token_hash: str | None = None, person_id: int | None = None, over: bool = False) -> int:
        """Forget sessions: that of a token, those of a person, or those whose time is over; how many."""
        table = tables.sessions
        statement = delete(table)
        if token_hash is not None:
            statement = statement.where(table.c.token_hash == token_hash)
        if person_id is not None:
            statement = statement.where(table.c.person_id == person_id)
        if over:
            statement = statement.where(table.c.expires_at <= now())
        if token_hash is None and person_id is None and not over:
            return 0
        return self.connection.execute(statement).rowcount

    def next_position(self, project_id: int) -> int:
        """The position of the next item of a project."""
        last = select(func.max(tables.items.c.position)).where(tables.items.c.project_id == project_id)
        position = self.connection.execute(last).scalar()
        return 0 if position is None else int(position) + 1

    def _insert(self, table: Table, values: dict[str, Any]) -> int:
        done = self.connection.execute(insert(table).values(**values)).inserted_primary_key
        assert done is not None
        return int(done[0])

    def _update(self, table: Table, id_: int, changes: dict[str, Any], what: str) -> None:
        if changes and self.connection.execute(update(table).where(table.c.id == id_).values(**changes)).rowcount != 1:
            raise NotFound(what)
