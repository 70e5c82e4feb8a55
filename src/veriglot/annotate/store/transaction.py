"""What one transaction reads and writes. Whatever changes a row adds the event that says so."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, insert, select, update

from veriglot.annotate.layers import EMPTY, Layer, to_data
from veriglot.annotate.store import tables
from veriglot.annotate.store.appending import append
from veriglot.annotate.store.columns import now
from veriglot.annotate.store.errors import NotFound
from veriglot.annotate.store.reading import Reading
from veriglot.annotate.store.rows import Appended, Assignment, BatchState, Item, ItemRole, Person, Purpose, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import Table

    from veriglot.annotate.store.rows import NewEvent

__all__ = ["Reading", "Writing"]


class Writing(Reading):
    """One transaction that writes: everything of `Reading`, and changes."""

    def append(
        self,
        assignment_id: int,
        person_id: int,
        new: NewEvent,
        *,
        before: Callable[[Writing, Assignment], None] | None = None,
        after: Callable[[Writing, Assignment], None] | None = None,
    ) -> Appended:
        """`Store.append` inside a transaction; one that came too late is kept and said in `reason`, not raised."""
        return append(self, assignment_id, person_id, new, before=before, after=after)

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
        said = {**(payload or {}), "person": person.public_id, "changed": sorted(changes)}
        self.record(kind, person.project_id, person_id=by, payload=said)
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
            IntegrityError: (SQLAlchemy's) they have it for this purpose, round and subject already. `Store.again` tries
            anew.
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
        about: dict[str, Any] = {
            "assignment_id": id_,
            "item_id": item.id,
            "person_id": by,
            "version": 0,
            "state": State.OPEN,
        }
        self.record("assigned", item.project_id, layer=layer, payload=payload, **about)
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

    def touch_session(self, token_hash: str) -> None:
        """Remember that it was seen now."""
        chosen = tables.sessions.c.token_hash == token_hash
        self.connection.execute(update(tables.sessions).where(chosen).values(seen_at=now()))

    def end_sessions(self, *, token_hash: str | None = None, person_id: int | None = None, over: bool = False) -> int:
        """Forget sessions: that of a token, those of a person, or those whose time is over; how many."""
        from sqlalchemy import delete

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
        found = self.connection.execute(last).scalar()
        return 0 if found is None else int(found) + 1

    def _insert(self, table: Table, values: dict[str, Any]) -> int:
        done = self.connection.execute(insert(table).values(**values)).inserted_primary_key
        assert done is not None
        return int(done[0])

    def _update(self, table: Table, id_: int, changes: dict[str, Any], what: str) -> None:
        if changes and self.connection.execute(update(table).where(table.c.id == id_).values(**changes)).rowcount != 1:
            raise NotFound(what)
