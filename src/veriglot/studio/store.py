"""The store: SQLite or PostgreSQL with the same behaviour, and the reads and writes of a transaction.

Every change of a row adds an event.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import threading
import time
import uuid
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast
from zlib import crc32

import msgspec
from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    RowMapping,
    Select,
    Table,
    Update,
    bindparam,
    create_engine,
    delete,
    event,
    func,
    insert,
    inspect,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.schema import CreateColumn

from veriglot.errors import UsageError, requires_extra
from veriglot.plugins import read_package_data
from veriglot.records import Sample, from_mapping, sample_from
from veriglot.studio import tables
from veriglot.studio.layers import Layer
from veriglot.studio.tables import (
    Assignment,
    Batch,
    BatchState,
    DiskFullError,
    Event,
    Item,
    ItemRole,
    NotFound,
    Person,
    ProjectRow,
    Purpose,
    Role,
    State,
    Step,
    StoreError,
    now,
)
from veriglot.text.normalization import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from veriglot.studio.project import Project

__all__ = ["ReadTransaction", "Store", "WriteTransaction", "fill_search", "open_store", "sha256", "transactional"]

R = TypeVar("R", bound=msgspec.Struct)
T = TypeVar("T")
P = ParamSpec("P")


def sha256(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_SOURCES: dict[type[msgspec.Struct], Table] = {
    ProjectRow: tables.projects,
    Batch: tables.batches,
    Person: tables.people,
    Item: tables.items,
    Assignment: tables.assignments,
    Event: tables.events,
}
_GIVEN = ("assigned", "assigned_again", "returned", "reopened")  # events that start the clock of an assignment
_ITEM_COLUMNS = {  # built once: figures read thousands
    name: select(tables.items.c[name]).where(tables.items.c.id == bindparam("item"))
    for name in ("sample", "gold", "silver", "prediction")
}
_HAS_LAYERS = tuple(tables.items.c[name].is_not(None).label(f"has_{name}") for name in ("gold", "silver"))


class ReadTransaction:
    """A read transaction. For other queries, `connection` takes statements over `studio.tables`.

    Methods for a single row, such as `item`, raise `NotFound` if it does not exist.

    Attributes:
        connection: SQLAlchemy's, in the transaction.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def project(self, slug: str) -> ProjectRow:
        """The project with a slug."""
        return self._one(ProjectRow, slug=slug)

    def item(self, item_id: int) -> Item:
        """An item."""
        return self._one(Item, id=item_id)

    def items(self, project_id: int, **columns: Any) -> list[Item]:
        """Items of a project in their order; `columns` filter them, see `assignments`."""
        return self._all(Item, "position", project_id=project_id, **columns)

    def sample(self, item_id: int) -> Sample:
        """The texts of an item, without others' annotations and without `meta`."""
        return msgspec.structs.replace(self.original(item_id), annotations=(), meta={})

    def original(self, item_id: int) -> Sample:
        """An item as it was imported, with all annotations: for exports, not for annotators."""
        return sample_from(self._item_column(item_id, "sample"))

    def gold(self, item_id: int) -> Layer | None:
        """The gold layer of an item, if it has one."""
        return self._layer(item_id, "gold")

    def silver(self, item_id: int) -> Layer | None:
        """The silver layer of an item, if it has one."""
        return self._layer(item_id, "silver")

    def prediction(self, item_id: int) -> dict[str, Any] | None:
        """The imported prediction of an item: see `items._prediction_data`."""
        return cast("dict[str, Any] | None", self._item_column(item_id, "prediction"))

    def _layer(self, item_id: int, column: str) -> Layer | None:
        data = self._item_column(item_id, column)
        return None if data is None else from_mapping(data, Layer)

    def _item_column(self, item_id: int, name: str) -> Any:
        row = self.connection.execute(_ITEM_COLUMNS[name], {"item": item_id}).first()
        if row is None:
            raise NotFound("item")
        return row[0]

    def batch(self, batch_id: int) -> Batch:
        """A batch."""
        return self._one(Batch, id=batch_id)

    def batches(self, project_id: int) -> list[Batch]:
        """The batches of a project, in order."""
        return self._all(Batch, "number", project_id=project_id)

    def person(self, person_id: int) -> Person:
        """A person."""
        return self.person_by(id=person_id)

    def person_by(self, **columns: Any) -> Person:
        """The person with a `public_id`, or with the `key_hash` of a link."""
        return self._one(Person, **columns)

    def people(self, project_id: int) -> list[Person]:
        """The people of a project, in the order of their invitations."""
        return self._all(Person, "id", project_id=project_id)

    def numbers(self, project_id: int) -> dict[int, int]:
        """Ids of people to the numbers shown instead of names (`Annotator 3`).

        They count from 1 within a role, in the order of the invitations, so a number never changes.
        """
        counts = Counter[Role]()
        result = {}
        for person in self.people(project_id):
            counts[person.role] += 1
            result[person.id] = counts[person.role]
        return result

    def public_ids(self, project_id: int) -> dict[int, str]:
        """Ids of the people of a project to their public ids."""
        return {person.id: person.public_id for person in self.people(project_id)}

    def assignment(self, assignment_id: int, *, lock: bool = False) -> Assignment:
        """An assignment; with `lock`, others cannot change it until this write transaction ends."""
        return self._one(Assignment, lock=lock, id=assignment_id)

    def assignments(self, project_id: int | None = None, **columns: Any) -> list[Assignment]:
        """Assignments in the order of their creation.

        Args:
            project_id: the project; None if `columns` contain an item, a person or another assignment.
            columns: filters: the value of a column, or a list or tuple of values; None does not filter.
        """
        return self._all(Assignment, "id", project_id=project_id, **columns)

    def events(self, project_id: int, **columns: Any) -> Iterator[Event]:
        """Events of a project in order, streamed, filtered as in `assignments`."""
        statement = _select(Event, project_id=project_id, **columns).order_by(tables.events.c.id)
        rows = self.connection.execute(statement, execution_options={"yield_per": 500})
        return (_record_of(row, Event) for row in rows.mappings())

    def steps(self, project_id: int) -> list[Step]:
        """The steps of a project, in order."""
        return [Step(*row) for row in self.connection.execute(tables.steps_after(project_id, 0))]

    def cached(self, owner: int | str, name: str, make: Callable[[], T], stamp: Any = None) -> T:  # noqa: ARG002
        """The result of `make`, computed from an item (by its id) and its annotations.

        A process with a cache (`figures.RowCache`) computes it again only when one of these, or the `stamp`, changed.
        """
        return make()

    def event(self, event_id: str) -> Event | None:
        """The event with this id from its sender, or None."""
        return next(iter(self._all(Event, "id", event_id=event_id)), None)

    def seconds_left(self, assignment_id: int) -> float:
        """The maximum working time of an assignment, in seconds, that is not counted yet.

        It is the time on our clock since the item was assigned or returned: pages that were offline send several events
        at once, so the time between two events means nothing.
        """
        row = tables.events.c
        given = select(func.max(row.id)).where(row.assignment_id == assignment_id, row.kind.in_(_GIVEN))
        since = select(func.min(row.at), func.sum(row.seconds)).where(
            row.assignment_id == assignment_id, row.id >= given.scalar_subquery()
        )
        at, seconds = self.connection.execute(since).one()
        return 0.0 if at is None else max(0.0, round((now() - at).total_seconds() - seconds, 3))

    def person_of_session(self, token: str) -> Person | None:
        """The owner of a session; None if it has expired or the person was excluded."""
        table = tables.sessions
        statement = select(table.c.person_id).where(table.c.token_hash == sha256(token), table.c.expires_at > now())
        row = self.connection.execute(statement).first()
        person = None if row is None else self.person(row[0])
        return None if person is None or person.revoked_at is not None else person

    def ids(self, statement: Select[Any]) -> list[int]:
        """The ids that a statement selects."""
        return list(self.connection.execute(statement).scalars())

    def count(self, statement: Select[Any]) -> int:
        """Number of rows of a statement."""
        return int(self.connection.execute(select(func.count()).select_from(statement.subquery())).scalar_one())

    def tally(self, project_id: int, table: str, *columns: str, **narrowed: Any) -> dict[tuple[Any, ...], int]:
        """Counts of a project's rows by column values, filtered as in `assignments`.

        `tally(id, "items", "role", language="de")` counts the German items of each role.
        """
        source = tables.TABLES[table]
        chosen = [source.c[name] for name in columns]
        where = _equal(source, project_id=project_id, **narrowed)
        statement = select(*chosen, func.count()).where(*where).group_by(*chosen)
        return {tuple(row[:-1]): int(row[-1]) for row in self.connection.execute(statement)}

    def _all(self, kind: type[R], order: str, /, **columns: Any) -> list[R]:
        statement = _select(kind, **columns).order_by(_SOURCES[kind].c[order])
        return [_record_of(row, kind) for row in self.connection.execute(statement).mappings()]

    def _one(self, kind: type[R], /, *, lock: bool = False, **columns: Any) -> R:
        row = self.connection.execute(_select_one(kind, tuple(columns), lock), columns).mappings().first()
        if row is None:
            raise NotFound(kind.__name__.removesuffix("Row").lower())
        return _record_of(row, kind)


def _select(kind: type[msgspec.Struct], /, **columns: Any) -> Select[Any]:
    table = _SOURCES[kind]
    fields = [table.c[name] for name in kind.__struct_fields__ if name in table.c]
    return select(*fields, *(_HAS_LAYERS if kind is Item else ())).where(*_equal(table, **columns))


@cache
def _select_one(kind: type[msgspec.Struct], names: tuple[str, ...], lock: bool) -> Select[Any]:
    """The query of a row by some columns, built once: building statements was a third of the time of a save."""
    table = _SOURCES[kind]
    statement = _select(kind).where(*(table.c[name] == bindparam(name) for name in names))
    return statement.with_for_update() if lock else statement


@cache
def _update_one(table: Table) -> Update:
    return update(table).where(table.c.id == bindparam("row"))


def _record_of(row: RowMapping, kind: type[R]) -> R:
    return msgspec.convert({name: row[name] for name in kind.__struct_fields__}, kind)


def _equal(table: Table, **columns: Any) -> list[ColumnElement[bool]]:
    """Conditions that columns have a value, or one from a list or tuple; None adds no condition."""
    return [
        table.c[name].in_(value) if isinstance(value, list | tuple) else table.c[name] == value
        for name, value in columns.items()
        if value is not None
    ]


class WriteTransaction(ReadTransaction):
    """A write transaction: everything of `ReadTransaction`, and changes."""

    def record(
        self,
        kind: str,
        project_id: int,
        *,
        event_id: str | None = None,
        payload: dict[str, Any] | None = None,
        layer: Layer | None = None,
        **columns: Any,
    ) -> None:
        """Add an event. The methods below do so themselves; use this for events without a change of a row.

        Args:
            kind: name of the event, at most 32 characters.
            project_id: the project.
            event_id: from the sender; None creates one.
            payload: further content, as plain data.
            layer: the layer of the event.
            columns: other columns of `tables.events`; `person_id` is the acting person.
        """
        values = {"event_id": event_id or f"server-{uuid.uuid4()}", "project_id": project_id, "kind": kind}
        data = None if layer is None else layer.to_data()
        self._insert(
            tables.events, values | {"payload": payload, "layer": data, "seconds": 0.0, "at": now(), **columns}
        )

    def add_project(self, **columns: Any) -> int:
        """Add a project, with its `slug`, `name`, `task` and `taxonomy`; returns its id."""
        id_ = self._insert(tables.projects, {**columns, "created_at": now()})
        self.record("created", id_, payload=columns)
        return id_

    def update_project(self, project_id: int, **changes: Any) -> None:
        """Change `name`, `task` or `taxonomy` of a project."""
        self._update(tables.projects, project_id, changes)
        self.record("changed", project_id, payload=changes)

    def add_items(self, project_id: int, rows: Iterable[dict[str, Any]]) -> None:
        """Add items, with the columns of `tables.items`. Their events are `imported`."""
        for row in rows:
            search = _search_text(row["key"], row["sample"])
            id_ = self._insert(tables.items, {"project_id": project_id, "search": search, **row})
            self.record("imported", project_id, item_id=id_, payload={"role": str(row["role"])})

    def add_batch(self, project_id: int, item_ids: Sequence[int], *, language: str | None) -> int:
        """Make a batch of items without a batch; returns its id."""
        number = self.count(select(tables.batches.c.id).where(tables.batches.c.project_id == project_id)) + 1
        values = {"project_id": project_id, "number": number, "language": language, "round": 0}
        id_ = self._insert(tables.batches, {**values, "state": BatchState.OPEN})
        for start in range(0, len(item_ids), 500):  # databases limit the variables of a statement
            chosen = tables.items.c.id.in_(item_ids[start : start + 500])
            self.connection.execute(update(tables.items).where(chosen).values(batch_id=id_))
        self.record("batched", project_id, payload={"batch": id_, "number": number, "items": list(item_ids)})
        return id_

    def update_batch(self, batch_id: int, kind: str, *, by: int | None = None, **changes: Any) -> None:
        """Change `state`, `round` or `figures` of a batch."""
        batch = self.batch(batch_id)
        self._update(tables.batches, batch_id, changes)
        self.record(kind, batch.project_id, person_id=by, payload={"batch": batch_id, **changes})

    def set_role(self, item: Item, role: ItemRole, *, by: int | None = None) -> None:
        """Set the role of an item."""
        self._update(tables.items, item.id, {"role": role})
        payload = {"from": item.role.value, "to": role.value}
        self.record("role", item.project_id, item_id=item.id, person_id=by, payload=payload)

    def update_item(self, item: Item, kind: str, *, by: int | None = None, **changes: Any) -> None:
        """Change `priority`, `wanted` or `prediction` of an item, with an event of a kind such as `priority`."""
        self._update(tables.items, item.id, changes)
        self.record(kind, item.project_id, item_id=item.id, person_id=by, payload=changes)

    def set_gold(
        self, item: Item, layer: Layer, kind: str, *, by: int | None, payload: dict[str, Any] | None = None
    ) -> None:
        """Set the gold layer of an item; `payload` is for the event."""
        self._update(tables.items, item.id, {"gold": layer.to_data()})
        self.record(kind, item.project_id, item_id=item.id, person_id=by, layer=layer, payload=payload)

    def add_person(self, project_id: int, *, by: int | None = None, **columns: Any) -> Person:
        """Add a person, with the columns of `tables.people`; see `people.invite`."""
        id_ = self._insert(tables.people, {"project_id": project_id, "exam_attempts": 0, **columns})
        payload = {"person": columns["public_id"], "role": columns["role"]}
        self.record("invited", project_id, person_id=by, payload=payload)
        return self.person(id_)

    def update_person(
        self, person_id: int, kind: str, *, by: int | None = None, payload: dict[str, Any] | None = None, **changes: Any
    ) -> Person:
        """Change columns of a person, with an event of a kind such as `joined`.

        The event's payload has the names of the changed columns, not their values. `by` is the acting person; None for
        a rule or the command line.
        """
        self._update(tables.people, person_id, changes)
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
        round: int = 0,  # noqa: A002  # the name of the column
        subject_id: int | None = None,
        layer: Layer | None = None,
        suggestions: list[dict[str, Any]] | None = None,
        by: int | None = None,
    ) -> Assignment:
        """Assign an item to a person.

        Raises:
            IntegrityError: (SQLAlchemy's) the same assignment exists already; `Store.transact` retries.
        """
        at, layer = now(), layer or Layer()
        of = {"project_id": item.project_id, "item_id": item.id, "person_id": person_id, "subject_id": subject_id}
        values = {"purpose": purpose, "round": round, "state": State.OPEN, "version": 0, "seconds": 0.0}
        values |= {"layer": layer.to_data(), "suggestions": suggestions, "created_at": at, "changed_at": at}
        id_ = self._insert(tables.assignments, of | values)
        payload: dict[str, Any] = {"purpose": purpose.value, "to": self.person(person_id).public_id}
        if suggestions is not None:
            payload["suggestions"] = suggestions
        if round or subject_id is not None:
            payload |= {"round": round, "subject": subject_id}
        given: dict[str, Any] = {"assignment_id": id_, "item_id": item.id, "person_id": by}
        self.record("assigned", item.project_id, payload=payload, layer=layer, version=0, state=State.OPEN, **given)
        return self.assignment(id_)

    def move(
        self,
        assignment_id: int,
        state: State,
        *,
        kind: str | None = None,
        by: int | None = None,
        message: str | None = None,
        **payload: Any,
    ) -> Assignment:
        """Change the state of an assignment by a rule or by another person; this increments its version.

        The event's kind defaults to the state's name; a `message` to the owner replaces the last one.
        """
        old = self.assignment(assignment_id, lock=True)
        changes: dict[str, Any] = {"state": state, "version": old.version + 1, "changed_at": now()}
        if message is not None:
            changes["message"] = payload["message"] = message
        self.change(old, kind or state.value, changes, payload=payload or None, person_id=by, base_version=old.version)
        return self.assignment(assignment_id)

    def change(self, old: Assignment, kind: str, changes: dict[str, Any], **columns: Any) -> None:
        """Change columns of an assignment, and add an event."""
        self._update(tables.assignments, old.id, changes)
        after = {name: changes.get(name, getattr(old, name)) for name in ("version", "state")}
        self.record(kind, old.project_id, assignment_id=old.id, item_id=old.item_id, **after, **columns)

    def add_session(self, token: str, person_id: int, expires_at: datetime) -> None:
        """Store a browser session, by the hash of its token. Sessions are temporary, so they have no events."""
        at = now()
        values = {"token_hash": sha256(token), "person_id": person_id, "created_at": at, "seen_at": at}
        self.connection.execute(insert(tables.sessions).values(**values, expires_at=expires_at))

    def end_sessions(self, **columns: Any) -> None:
        """Delete the sessions of a `token_hash` or a `person_id`, and all expired ones."""
        table = tables.sessions
        self.connection.execute(delete(table).where(or_(table.c.expires_at <= now(), *_equal(table, **columns))))

    def next_position(self, project_id: int) -> int:
        """The position of the next item of a project."""
        last = select(func.max(tables.items.c.position)).where(tables.items.c.project_id == project_id)
        position = self.connection.execute(last).scalar()
        return 0 if position is None else int(position) + 1

    def _insert(self, table: Table, values: dict[str, Any]) -> int:
        done = self.connection.execute(insert(table), values).inserted_primary_key
        assert done is not None
        return int(done[0])

    def _update(self, table: Table, id_: int, changes: dict[str, Any]) -> None:
        if changes:
            self.connection.execute(_update_one(table), {**changes, "row": id_})


_LOCK_KEY = 0x7665_7269  # "veri": only one process at a time creates the tables of a PostgreSQL database
_ONLY_ADDED = read_package_data(__package__, "triggers.toml", dict[str, list[str]])


def _search_text(key: str, sample: dict[str, Any]) -> str:
    """The text that the item search uses; PostgreSQL stores no null characters."""
    return fold("\n".join((key, sample.get("question") or "", sample["response"]))).replace("\0", "")


def fill_search(connection: Connection) -> None:
    """Fill the search column of items that an earlier version imported."""
    row = tables.items.c
    missing = select(row.id, row.key, row.sample).where(row.search == "")
    while batch := connection.execute(missing.limit(500)).all():
        values = [{"item": id_, "text": _search_text(key, sample)} for id_, key, sample in batch]
        statement = update(tables.items).where(row.id == bindparam("item")).values(search=bindparam("text"))
        connection.execute(statement, values)


def _add_columns(connection: Connection) -> None:
    """Add columns of later versions; see `tables`."""
    database = inspect(connection)
    for table in tables.TABLES.values():
        names = {column["name"] for column in database.get_columns(table.name)}
        for column in table.c:
            if column.name not in names:
                definition = CreateColumn(column).compile(dialect=connection.dialect)
                connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {definition}"))
                if column is tables.items.c.search:
                    fill_search(connection)


def _make_tables(connection: Connection) -> None:
    """Create the tables if they are missing; refuse a database of a newer version."""
    database = connection.dialect.name
    if database == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
    if inspect(connection).has_table(tables.versions.name):
        version = connection.execute(select(tables.versions.c.version_num)).scalar()
        if version != tables.VERSION:
            raise StoreError(
                f"This database was made by a newer version of Veriglot (step {version}; this version knows"
                f" {tables.VERSION}).",
                "Update Veriglot. Nothing was changed.",
            )
        _add_columns(connection)
        return
    if inspect(connection).has_table("events"):
        raise StoreError(
            "This database holds tables that are not Veriglot's.", "Name an empty database, or another file."
        )
    tables.METADATA.create_all(connection, checkfirst=False)
    connection.execute(insert(tables.versions).values(version_num=tables.VERSION))
    for statement in _ONLY_ADDED[database]:
        connection.exec_driver_sql(statement)


_WAIT = 60.0  # maximum seconds that a writer waits for another on SQLite
_TRIES = 5
_RETRYABLE = {"40001", "40P01"}  # PostgreSQL: could not serialise, deadlock
_FULL = "53100"  # PostgreSQL: disk full
_MIN_FREE = 16 * 2**20  # minimum free bytes on the disk of an SQLite file; journals need space too
_REMEMBERED = 60.0  # seconds until the free space is checked again after a full disk


class Store:
    """A database of projects. Threads may share it; each process needs its own.

    Attributes:
        engine: SQLAlchemy's.
    """

    def __init__(self, engine: Engine | URL) -> None:
        self.engine = _engine(engine) if isinstance(engine, URL) else engine
        self._turn = threading.Lock() if self.engine.dialect.name == "sqlite" else nullcontext()
        self._full_until = 0.0

    @property
    def is_sqlite(self) -> bool:
        """Whether it is an SQLite file."""
        return self.engine.dialect.name == "sqlite"

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.engine.url,)  # another process opens its own connections

    def __str__(self) -> str:
        return self.engine.url.render_as_string(hide_password=True)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def check(self) -> None:
        """Raise `StoreError` if the database does not answer or has no space: a write failed recently or would fail."""
        with self.reading() as tx:
            tx.connection.execute(select(1))
        folder = Path(str(self.engine.url.database)).parent
        lacking = self.is_sqlite and shutil.disk_usage(folder).free < _MIN_FREE
        if lacking or time.monotonic() < self._full_until:
            raise DiskFullError(f"The disk of {self} is full.", "Make room on it.")

    @contextmanager
    def reading(self) -> Iterator[ReadTransaction]:
        """A read transaction; it sees one consistent state."""
        with self._connected() as connection:
            if self.is_sqlite:
                connection = connection.execution_options(veriglot_reads=True)
            else:
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield ReadTransaction(connection)

    @contextmanager
    def writing(self, lock: str | None = None) -> Iterator[WriteTransaction]:
        """A write transaction: committed when the block ends, rolled back after an error.

        Args:
            lock: a name; transactions with the same name run one after the other. SQLite has only one writer at a time,
                but on PostgreSQL a choice that depends on existing rows (who gets which item) needs a lock.
        """
        # SQLite has one writer; threads of one process queue up here, because SQLite itself waits with growing sleeps.
        with self._turn, self._connected() as connection, connection.begin():
            if lock is not None and not self.is_sqlite:
                key = crc32(lock.encode())
                connection.execute(text("SELECT pg_advisory_xact_lock(:area, :key)"), {"area": 1, "key": key - 2**31})
            yield WriteTransaction(connection)
        self._full_until = 0.0

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            with self.engine.connect() as connection:
                yield connection
        except OperationalError as error:
            if _retryable(error):
                raise
            failure = _unreachable(self.engine.url, error)
            if isinstance(failure, DiskFullError):
                self._full_until = time.monotonic() + _REMEMBERED
            raise failure from error

    def transact(self, act: Callable[[WriteTransaction], T], *, lock: str | None = None) -> T:
        """Run `act` in a write transaction and return its result; retried after deadlocks and duplicate ids."""
        for turn in range(_TRIES):
            try:
                with self.writing(lock) as tx:
                    return act(tx)
            except (OperationalError, IntegrityError) as error:
                retry = isinstance(error, IntegrityError) or _retryable(error)
                if not retry or turn == _TRIES - 1:
                    raise
            time.sleep(0.01 * 2**turn)
        raise AssertionError


def transactional(
    act: Callable[Concatenate[WriteTransaction, Project, P], T],
) -> Callable[Concatenate[Store, Project, P], T]:
    """Decorator: run a rule in its own transaction (see `Store.transact`), one after the other in each project."""

    @wraps(act)
    def transacted(store: Store, project: Project, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return store.transact(lambda tx: act(tx, project, *args, **kwargs), lock=project.lock)

    return transacted


def open_store(database: str | Path, *, create: bool = True) -> Store:
    """Open a store, and create missing tables.

    Args:
        database: a path of an SQLite file, `sqlite:///PATH`, or `postgresql://...`.
        create: whether to create a missing SQLite file.

    Raises:
        MissingExtraError: the driver of PostgreSQL is needed and not installed.
        StoreError: the database cannot be reached, is newer than this version of Veriglot, or is not a store.
    """
    url = _url(str(database))
    if url.get_backend_name() == "sqlite":
        _check_file(Path(str(url.database)), create)
    with requires_extra("PostgreSQL", "postgres"):
        engine = _engine(url)
    store = Store(engine)
    try:
        for turn in range(_TRIES):  # two processes may create the file at the same time
            try:
                with store.engine.begin() as connection:
                    _make_tables(connection)
                break
            except OperationalError as error:
                if "locked" not in str(error) or turn == _TRIES - 1:
                    raise _unreachable(url, error) from error
                time.sleep(0.2 * 2**turn)
            except DBAPIError as error:
                raise _unreachable(url, error) from error
    except BaseException:
        store.close()
        raise
    return store


def _url(database: str) -> URL:
    if "://" not in database:
        return make_url("sqlite://").set(database=str(Path(database).expanduser().absolute()))
    try:
        url = make_url(database)
    except ArgumentError:
        raise UsageError("This is no address of a database.", "Name a file, or postgresql://HOST/NAME.") from None
    if url.drivername in {"postgresql", "postgres"}:
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database:
        return url.set(database=str(Path(url.database).absolute()))
    raise UsageError(f"There is no store on {url.drivername!r}.", "Name a file of SQLite, or postgresql://HOST/NAME.")


def _check_file(path: Path, create: bool) -> None:
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a database.")
    if not path.exists() and not create:
        raise StoreError(f"There is no database at {path}.", "Type: veriglot studio import PROJECT")
    if not path.parent.is_dir():
        raise StoreError(f"There is no folder {path.parent}.", "Make it, or name another file.")
    with suppress(OSError):  # SQLite reports errors when it opens the file; others' files keep their permissions
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # its journals get the same permissions
        for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
            if file.exists() and file.stat().st_mode & 0o007:  # old files; group permissions were set on purpose
                file.chmod(0o600)


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_size=10, max_overflow=30, pool_pre_ping=True)
    engine = create_engine(url, pool_size=10, max_overflow=30, connect_args={"timeout": _WAIT})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # we start transactions, not the driver
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {int(_WAIT * 1000)}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")  # committed data survives a crash of the machine
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    reads = connection.get_execution_options().get("veriglot_reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _retryable(error: DBAPIError) -> bool:
    return _sqlstate(error) in _RETRYABLE


def _sqlstate(error: DBAPIError) -> str | None:
    state: str | None = getattr(error.orig, "sqlstate", None)
    return state


def _unreachable(url: URL, error: DBAPIError) -> StoreError:
    if getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL or _sqlstate(error) == _FULL:
        name = url.render_as_string(hide_password=True)
        return DiskFullError(f"The disk of {name} is full; nothing was changed.", "Make room on it.")
    lines = str(error.orig).strip().splitlines()
    return StoreError(
        f"The database {url.render_as_string(hide_password=True)} cannot be used: {lines[0] if lines else error}",
        "Check that it runs, that the name is right, and that this user may write to it.",
    )
