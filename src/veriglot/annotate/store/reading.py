"""What one transaction reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import func, select

from veriglot.annotate.store import tables
from veriglot.annotate.store.columns import now
from veriglot.annotate.store.errors import NotFound
from veriglot.annotate.store.rows import (
    Assignment,
    Batch,
    Event,
    Item,
    ItemRole,
    Person,
    ProjectRow,
    Purpose,
    SessionRow,
    State,
    assignment_of,
    batch_of,
    event_of,
    item_of,
    layer_of,
    person_of,
)
from veriglot.records import sample_from

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection, RowMapping, Select

    from veriglot.annotate.layers import Layer
    from veriglot.records import Sample

__all__ = ["Reading"]

_ITEM = (
    *(
        tables.items.c[name]
        for name in ("id", "project_id", "key", "position", "language", "role", "batch_id", "words")
    ),
    tables.items.c.gold.is_not(None).label("has_gold"),
    tables.items.c.silver.is_not(None).label("has_silver"),
)


class Reading:
    """One transaction that reads. For what it has no method for, `connection` takes statements over `store.tables`.

    Attributes:
        connection: SQLAlchemy's, in the transaction.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def projects(self) -> list[ProjectRow]:
        """All projects of the database."""
        return [ProjectRow(**row) for row in self._all(select(tables.projects).order_by(tables.projects.c.id))]

    def project(self, slug: str) -> ProjectRow:
        """The project of a slug.

        Raises:
            NotFound: there is none.
        """
        return ProjectRow(**self._one(select(tables.projects).where(tables.projects.c.slug == slug), "project"))

    def item(self, item_id: int) -> Item:
        """An item.

        Raises:
            NotFound: there is none.
        """
        return item_of(self._one(select(*_ITEM).where(tables.items.c.id == item_id), "item"))

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
        return [item_of(row) for row in self._all(select(*_ITEM).where(*where).order_by(table.c.position))]

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
        return sample_from(self._one(select(table.c.sample).where(table.c.id == item_id), "item")["sample"])

    def gold(self, item_id: int) -> Layer | None:
        """The gold layer of an item, if it has one."""
        return self._layer(item_id, "gold")

    def silver(self, item_id: int) -> Layer | None:
        """The silver layer of an item, if it has one."""
        return self._layer(item_id, "silver")

    def _layer(self, item_id: int, name: str) -> Layer | None:
        data = self._one(select(tables.items.c[name]).where(tables.items.c.id == item_id), "item")[name]
        return None if data is None else layer_of(data)

    def batch(self, batch_id: int) -> Batch:
        """A batch.

        Raises:
            NotFound: there is none.
        """
        return batch_of(self._one(select(tables.batches).where(tables.batches.c.id == batch_id), "batch"))

    def batches(self, project_id: int) -> list[Batch]:
        """The batches of a project, in order."""
        table = tables.batches
        found = select(table).where(table.c.project_id == project_id).order_by(table.c.number)
        return [batch_of(row) for row in self._all(found)]

    def person(self, person_id: int) -> Person:
        """A person.

        Raises:
            NotFound: there is none.
        """
        return person_of(self._one(select(tables.people).where(tables.people.c.id == person_id), "person"))

    def person_by(self, *, public_id: str | None = None, key_hash: str | None = None) -> Person:
        """The person of a public id or of the hash of a link's key.

        Raises:
            NotFound: there is none.
        """
        where = _equal(tables.people.c, public_id=public_id, key_hash=key_hash)
        if not where:
            raise NotFound("person")
        return person_of(self._one(select(tables.people).where(*where), "person"))

    def people(self, project_id: int, *, role: str | None = None) -> list[Person]:
        """The people of a project, in the order of their invitations."""
        table = tables.people
        where = [table.c.project_id == project_id, *_equal(table.c, role=role)]
        return [person_of(row) for row in self._all(select(table).where(*where).order_by(table.c.id))]

    def assignment(self, assignment_id: int, *, lock: bool = False) -> Assignment:
        """An assignment.

        Args:
            assignment_id: which.
            lock: keep others from changing it until this transaction ends (only in one that writes).

        Raises:
            NotFound: there is none.
        """
        statement = select(tables.assignments).where(tables.assignments.c.id == assignment_id)
        return assignment_of(self._one(statement.with_for_update() if lock else statement, "assignment"))

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
        given = {"person_id": person_id, "item_id": item_id, "purpose": purpose}
        where = [
            table.c.project_id == project_id,
            *_equal(table.c, **given, subject_id=subject_id, round=round),
        ]
        if states is not None:
            where.append(table.c.state.in_(states))
        return [assignment_of(row) for row in self._all(select(table).where(*where).order_by(table.c.id))]

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
        found = self.connection.execute(
            select(table).where(*where).order_by(table.c.id), execution_options={"yield_per": 500}
        )
        return (event_of(row) for row in found.mappings())

    def event(self, event_id: str) -> RowMapping | None:
        """The row of the event that somebody gave this id, or None."""
        return self._first(select(tables.events).where(tables.events.c.event_id == event_id))

    def session(self, token_hash: str) -> tuple[SessionRow, Person] | None:
        """A session that is not over and its person, who was not shut out; None otherwise."""
        table = tables.sessions
        row = self._first(select(table).where(table.c.token_hash == token_hash, table.c.expires_at > now()))
        if row is None:
            return None
        person = self.person(row["person_id"])
        return None if person.revoked_at is not None else (SessionRow(**row), person)

    def count(self, statement: Select[Any]) -> int:
        """How many rows a statement finds."""
        return int(self.connection.execute(select(func.count()).select_from(statement.subquery())).scalar_one())

    def tally(self, project_id: int, table: str, *columns: str) -> dict[tuple[Any, ...], int]:
        """How many rows of a project have which values: `tally(id, "items", "role", "language")`."""
        source = tables.METADATA.tables[table]
        chosen = [source.c[name] for name in columns]
        statement = select(*chosen, func.count()).where(source.c.project_id == project_id).group_by(*chosen)
        return {tuple(row[:-1]): int(row[-1]) for row in self.connection.execute(statement)}

    def _all(self, statement: Select[Any]) -> Sequence[RowMapping]:
        return self.connection.execute(statement).mappings().all()

    def _first(self, statement: Select[Any]) -> RowMapping | None:
        return self.connection.execute(statement).mappings().first()

    def _one(self, statement: Select[Any], what: str) -> RowMapping:
        row = self._first(statement)
        if row is None:
            raise NotFound(what)
        return row


def _equal(columns: Any, **given: Any) -> list[ColumnElement[bool]]:
    return [columns[name] == value for name, value in given.items() if value is not None]
