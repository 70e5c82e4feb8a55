"""The rows of the store as records, their tables, and the store's errors.

Everything that people see is computed from these. `events` is append-only, which triggers enforce.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

import msgspec
from sqlalchemy import (
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Select,
    String,
    Table,
    Text,
    case,
    func,
    select,
    text,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

from veriglot.errors import UsageError, VeriglotError
from veriglot.records.settings import Record, StrictRecord
from veriglot.studio.layers import Layer

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect
    from sqlalchemy.schema import SchemaItem

    from veriglot.studio.project import Project

__all__ = [
    "AT_WORK",
    "DONE",
    "QUIET_EVENTS",
    "TABLES",
    "WORK_ROLES",
    "Assignment",
    "Batch",
    "BatchState",
    "Conflict",
    "DiskFullError",
    "Event",
    "EventResult",
    "Item",
    "ItemRole",
    "NewEvent",
    "NotFound",
    "Person",
    "ProjectRow",
    "Purpose",
    "Refused",
    "Role",
    "Stage",
    "State",
    "Step",
    "StoreError",
    "is_missing",
    "now",
    "steps_after",
    "write_moment",
]


RowId = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class StoreError(VeriglotError):
    """The database cannot be used: missing, damaged, newer than this version, or not for this project."""


class DiskFullError(StoreError):
    """The disk of the database is full; nothing was changed."""


class NotFound(UsageError):  # noqa: N818  # named after the event, like Conflict
    """The row does not exist or belongs to somebody else; the error does not tell which."""

    def __init__(self, what: str) -> None:
        super().__init__(f"There is no such {what}.")


class Refused(UsageError):  # noqa: N818
    """A rule forbids it; nothing was changed."""


class Conflict(VeriglotError):  # noqa: N818
    """An event came too late: the assignment changed, or is no longer open. The event is stored all the same.

    Attributes:
        version: the assignment's current version.
        state: its current state.
        layer: its current layer.
        reason: `version` or `state`.
    """

    def __init__(self, version: int, state: State, layer: Layer, reason: str) -> None:
        message = (
            "This was changed elsewhere since it was opened here."
            if reason == "version"
            else f"This is {state.value} and takes no such change."
        )
        super().__init__(message, "Look at what is there now; what was sent is kept in the history.")
        self.version = version
        self.state = state
        self.layer = layer
        self.reason = reason


class Role(StrEnum):
    """A person's role."""

    ANNOTATOR = "annotator"
    REVIEWER = "reviewer"
    LEAD = "lead"


class ItemRole(StrEnum):
    """The use of an item: work, exam, overlap for measuring agreement, or hidden check.

    EXCLUDED: none; a lead removed it from the work.
    """

    NORMAL = "normal"
    EXAM = "exam"
    OVERLAP = "overlap"
    CHECK = "check"
    EXCLUDED = "excluded"


QUIET_EVENTS = ("opened", "comment", "save")
"""Frequent events that change only times and the layer of unsubmitted work."""
WORK_ROLES = (ItemRole.NORMAL, ItemRole.OVERLAP)
"""Roles of the items of the work."""


class Purpose(StrEnum):
    """Why a person has an item."""

    ANNOTATE = "annotate"
    EXAM = "exam"
    REVIEW = "review"
    ADJUDICATE = "adjudicate"
    VALIDATE = "validate"


class State(StrEnum):
    """State of an assignment.

    OPEN: to do. SUBMITTED: handed in. RETURNED: sent back, to be done again. ACCEPTED: final. SKIPPED: left out, with a
    reason. WITHDRAWN: taken back by a rule or by the lead.
    """

    OPEN = "open"
    SUBMITTED = "submitted"
    RETURNED = "returned"
    ACCEPTED = "accepted"
    SKIPPED = "skipped"
    WITHDRAWN = "withdrawn"


AT_WORK = (State.OPEN, State.RETURNED)
"""States of assignments that wait for their owner."""
DONE = (State.SUBMITTED, State.ACCEPTED, State.SKIPPED)
"""States of assignments that their owner has finished."""


class BatchState(StrEnum):
    """State of a batch: in work, under validation, passed, or returned as a whole (and then in work again)."""

    OPEN = "open"
    VALIDATING = "validating"
    ACCEPTED = "accepted"
    RETURNED = "returned"


class ProjectRow(Record):
    """A project in the store."""

    id: int
    slug: str
    name: str
    task: str
    taxonomy: str
    created_at: datetime


class Batch(Record):
    """Items that are validated together, all in one language; `round` counts how often it was returned."""

    id: int
    project_id: int
    number: int
    language: str | None
    state: BatchState
    round: int
    figures: dict[str, Any] | None

    @property
    def drawn(self) -> list[int]:
        """Ids of the annotations drawn for the current validation."""
        return list((self.figures or {}).get("drawn", []))

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """The results of the validations so far, in order."""
        return list((self.figures or {}).get("rounds", []))


class Item(Record):
    """An item to annotate, without its texts and layers, which `ReadTransaction.sample`, `gold` and `silver` read.

    Attributes:
        key: the sample's id, unique in the project.
        position: rank in the order of assignment, from 0.
        language: BCP 47 tag of the response, or None.
        role: its use.
        words: number of words of the response.
        has_gold: whether there is a gold layer.
        has_silver: whether there is a silver layer.
        priority: items with a higher priority are assigned first.
        wanted: number of people who annotate it, unless all do (`OVERLAP`); None for `work.per_item`.
    """

    id: int
    project_id: int
    key: str
    position: int
    language: str | None
    role: ItemRole
    batch_id: int | None
    words: int
    has_gold: bool
    has_silver: bool
    priority: float = 0.0
    wanted: int | None = None

    def people_wanted(self, project: Project) -> int:
        """Number of people who annotate it, unless it is for all."""
        return self.wanted or project.entries.work.per_item


Stage = Literal["invited", "exam", "work", "done", "out", "revoked"]


class Person(Record):
    """A person who was invited, and maybe joined.

    Attributes:
        id: in the store; never shown.
        public_id: shown instead.
        name: chosen by the person; None before they join.
        language: of the interface; None before they join.
        works_in: BCP 47 tags of their items; None for all.
        note: from the lead, such as the person's real name.
        key_hash: hash of the key in their link.
        key_expires_at: when their link expires.
        joined_at: when they accepted the link, or None.
        consent: the text that they agreed to.
        revoked_at: when they were excluded, or None.
        exam_attempts: finished ones.
        out_at: when they failed their last attempt.
        exam_figures: results of the attempts, in order.
        email: address for signing in, or None.
    """

    id: int
    project_id: int
    public_id: str
    role: Role
    name: str | None
    language: str | None
    works_in: tuple[str, ...] | None
    note: str | None
    key_hash: str
    key_expires_at: datetime
    invited_at: datetime
    joined_at: datetime | None
    consented_at: datetime | None
    consent: str | None
    revoked_at: datetime | None
    exam_attempts: int
    exam_passed_at: datetime | None
    out_at: datetime | None
    exam_figures: list[dict[str, Any]] | None
    email: str | None = None

    @property
    def is_here(self) -> bool:
        """Whether they joined and were not excluded."""
        return self.joined_at is not None and self.revoked_at is None

    @property
    def can_judge(self) -> bool:
        """Whether they may see others' work: an active reviewer or lead."""
        return self.role in {Role.REVIEWER, Role.LEAD} and self.is_here

    def can_work(self, project: Project) -> bool:
        """Whether they may annotate: an active annotator, who passed the exam if there is one."""
        return self.role is Role.ANNOTATOR and self.is_here and self.stage(project) == "work"

    def stage(self, project: Project) -> Stage:
        """What they do next: join, pass the exam (annotators, if there is one), work, or nothing more."""
        if self.revoked_at is not None:
            return "revoked"
        if self.joined_at is None:
            return "invited"
        if self.out_at is not None:
            return "out"
        examined = project.entries.exam is not None and self.role is Role.ANNOTATOR
        return "exam" if examined and self.exam_passed_at is None else "work"

    def languages(self) -> list[ColumnElement[bool]]:
        """Conditions on `items` for their working languages."""
        return [] if self.works_in is None else [items.c.language.in_(self.works_in)]


class Assignment(Record):
    """One item assigned to one person for one purpose.

    Attributes:
        round: attempt of an exam, or round of a batch; 0 for the first.
        subject_id: the assignment under review, or None.
        version: number of changes of the layer and the state, from 0.
        layer: the annotation so far.
        suggestions: those that were shown, or None.
        message: the reviewer's, if it was returned.
        seconds: working time as counted by the page, at most the time that passed on our clock.
        created_at: when it was assigned.
        opened_at: when it was first opened.
        submitted_at: when it was last submitted.
    """

    id: int
    project_id: int
    item_id: int
    person_id: int
    purpose: Purpose
    round: int
    subject_id: int | None
    state: State
    version: int
    layer: Layer
    suggestions: list[dict[str, Any]] | None
    message: str | None
    seconds: float
    created_at: datetime
    opened_at: datetime | None
    changed_at: datetime
    submitted_at: datetime | None


class Event(Record):
    """An event; it never changes.

    Attributes:
        id: in the order of the store.
        event_id: from the sender.
        person_id: the acting person; None for a rule, or the command line.
        kind: `save`, `submit`, `conflict`, `assigned`, `imported`, `invited` ...
        base_version: the version that the sender had.
        version: the assignment's version after it.
        state: the assignment's state after it.
        layer: the layer of the event, or None.
        payload: further content.
        digest: of the request, to recognise repeated events.
        seconds: working time since the last event; the payload has `stated_seconds` if the page reported too many.
        client_at: the sender's clock.
        at: our clock.
    """

    id: int
    event_id: str
    project_id: int
    assignment_id: int | None
    item_id: int | None
    person_id: int | None
    kind: str
    base_version: int | None
    version: int | None
    state: State | None
    layer: Layer | None
    payload: dict[str, Any] | None
    digest: str | None
    seconds: float
    client_at: datetime | None
    at: datetime


class NewEvent(StrictRecord):
    """What a person does to their assignment.

    Attributes:
        event_id: 8 to 64 letters, digits and hyphens, made by the sender; an event with the same id is a repetition.
        kind: the action.
        base_version: the last version that the sender received.
        layer: the new layer; None for no change.
        comment: for the other people involved, such as a reviewer's reason for a return.
        seconds: working time since the last event.
        at: the sender's clock.
    """

    event_id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9-]{8,64}(?!\n)$", max_length=64)]
    kind: Literal["opened", "comment", "save", "submit", "skip", "reopen", "confirm", "correct", "return"]
    base_version: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    layer: Layer | None = None
    comment: Annotated[str, msgspec.Meta(max_length=10_000)] | None = None
    seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 0.0
    at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None

    def __post_init__(self) -> None:
        """Reject extreme times, which cannot be converted to UTC."""
        if self.at is not None and not 1970 <= self.at.year <= 9000:
            raise ValueError("this is no time")


class EventResult(Record):
    """The assignment after an event, and whether the event was `repeated` (known already)."""

    version: int
    state: State
    repeated: bool


# The tables. A column with a default is last, and is added to databases without it when they are opened. Any other
# change needs a new `VERSION`, and a migration from the previous one.


VERSION = "0001"


_FORM = "%Y-%m-%dT%H:%M:%S.%fZ"


def now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(UTC)


def write_moment(moment: datetime) -> str:
    """A time as ISO 8601 in UTC with microseconds: 27 characters, which sort by time."""
    return moment.astimezone(UTC).strftime(_FORM)


class _Moment(TypeDecorator[datetime]):
    impl = String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else write_moment(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else datetime.fromisoformat(value)


class _Json(TypeDecorator[Any]):
    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        """JSON in ASCII: PostgreSQL allows no null characters in texts, and no database allows lone surrogates."""
        return None if value is None else json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else json.loads(value)


_TYPES: dict[Any, TypeEngine[Any]] = {int: Integer(), float: Float(), datetime: _Moment()}
_REFERENCES = {
    "project_id": "projects.id",
    "batch_id": "batches.id",
    "item_id": "items.id",
    "person_id": "people.id",
    "assignment_id": "assignments.id",
    "subject_id": "assignments.id",
}
_UNIQUE = {"slug", "public_id", "key_hash", "event_id"}
METADATA = MetaData()


def _table(name: str, record: type[msgspec.Struct], *more: SchemaItem) -> Table:
    """A table with a column for each field of a record, except for the computed truth values.

    Fields with a default come last, in their order: they were added to existing tables.
    """
    columns: list[Column[Any]] = []
    later: list[Column[Any]] = []
    for field in msgspec.structs.fields(record):
        kinds = get_args(field.type) if isinstance(field.type, UnionType) else (field.type,)
        kind = next(kind for kind in kinds if kind is not NoneType)
        if kind is not bool:
            is_text = isinstance(kind, type) and issubclass(kind, str)
            (columns if field.required else later).append(
                Column(
                    field.name,
                    _TYPES.get(kind) or (Text() if is_text else _Json()),
                    *([ForeignKey(_REFERENCES[field.name])] if field.name in _REFERENCES else []),
                    primary_key=field.name == "id",
                    unique=field.name in _UNIQUE,
                    nullable=NoneType in kinds,
                    server_default=None if field.required or field.default is None else str(field.default),
                )
            )
    return Table(name, METADATA, *columns, *more, *later)


projects = _table("projects", ProjectRow)
batches = _table("batches", Batch, Index("batch_number", "project_id", "number", unique=True))
people = _table("people", Person, Index("people_of_project", "project_id"))
items = _table(
    "items",
    Item,
    *(Column("sample", _Json, nullable=False), Column("gold", _Json), Column("silver", _Json)),
    Column("search", Text, nullable=False, server_default=""),  # id, question and response, normalised
    Column("prediction", _Json),  # of a detector, from `items.import_all`
    Index("item_key", "project_id", "key", unique=True),
    Index("items_by_role", "project_id", "role", "language", "position"),
)
assignments = _table(
    "assignments",
    Assignment,
    Index("assignments_of_person", "person_id", "state"),
    Index("assignments_of_item", "item_id", "purpose"),
    Index("assignments_of_project", "project_id", "purpose", "state"),
    Index("assignments_of_subject", "subject_id"),
    Index("assigned_once", "item_id", "person_id", "purpose", "round", text("coalesce(subject_id, 0)"), unique=True),
)
events = _table(
    "events", Event, *(Index(f"events_of_{name}", f"{name}_id", "id") for name in ("assignment", "item", "project"))
)
sessions = Table(
    "sessions",
    METADATA,
    Column("token_hash", Text, primary_key=True),
    Column("person_id", Integer, ForeignKey("people.id"), nullable=False),
    *(Column(name, _Moment, nullable=False) for name in ("created_at", "seen_at", "expires_at")),
)


def is_missing(project: Project) -> ColumnElement[bool]:
    """Whether an item of the work has fewer people, or finished annotations, than it needs.

    An item for all needs only one, because the number of people changes.
    """
    rows, work = assignments.c, project.entries.work
    mine = (rows.item_id == items.c.id, rows.purpose == Purpose.ANNOTATE, rows.state != State.WITHDRAWN)
    people = select(func.count()).select_from(assignments).where(*mine).correlate(items).scalar_subquery()
    wanted = func.coalesce(items.c.wanted, work.per_item)
    return people < case((items.c.role == ItemRole.OVERLAP, 1), else_=wanted)


class Step(NamedTuple):
    """An event for statistics: assignments, and what became of them."""

    id: int
    kind: str
    item_id: int | None
    by: int | None  # acting person
    payload: dict[str, Any] | None  # only of orders and priorities
    annotation: int | None  # the assignment, or the one under review
    person_id: int | None  # owner of the assignment
    purpose: Purpose | None


def steps_after(project_id: int, last: int) -> Select[Any]:
    """The `Step`s of a project after an event, in order."""
    of, given = events.c, assignments.c
    ordering = ("ordered", "priority")
    return (
        select(of.id, of.kind, of.item_id, of.person_id, case((of.kind.in_(ordering), of.payload)))
        .add_columns(func.coalesce(given.subject_id, given.id), given.person_id, given.purpose)
        .outerjoin_from(events, assignments, given.id == of.assignment_id)
        .where(of.project_id == project_id, of.id > last)
        .where(of.kind.in_((*ordering, "assigned", "submit", "confirm", "correct", "return")))
        .order_by(of.id)
    )


versions = Table("alembic_version", METADATA, Column("version_num", String(32), primary_key=True))
"""The `VERSION` of a database, in one row; named like Alembic's table, which the first databases had."""
TABLES = {table.name: table for table in (projects, batches, people, items, assignments, events)}
"""Tables by name, each after the tables that it references; without the temporary `sessions`."""
