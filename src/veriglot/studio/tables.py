"""The tables of the store with their rows as records, and its errors.

Everything a person sees is a function of these. `events` is only ever added to; triggers refuse anything else.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from sqlalchemy import Column, Float, ForeignKey, Index, Integer, MetaData, String, Table, Text, UniqueConstraint, text
from sqlalchemy.types import TypeDecorator

from veriglot.errors import UsageError, VeriglotError
from veriglot.studio.layers import Layer

if TYPE_CHECKING:
    from sqlalchemy import RowMapping
    from sqlalchemy.engine import Dialect

__all__ = [
    "AT_WORK",
    "DONE",
    "METADATA",
    "WORK_ROLES",
    "Assignment",
    "Batch",
    "BatchState",
    "Conflict",
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
    "State",
    "StoreError",
    "assignments",
    "batches",
    "events",
    "items",
    "now",
    "people",
    "projects",
    "record_of",
    "sessions",
    "write_moment",
]


# Two kinds of columns that mean the same in every database.


_FORM = "%Y-%m-%dT%H:%M:%S.%fZ"


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def write_moment(moment: datetime) -> str:
    """A time as ISO 8601 in UTC with microseconds: 27 characters, which sort by time."""
    return moment.astimezone(UTC).strftime(_FORM)


class Moment(TypeDecorator[datetime]):
    """A time, kept as text."""

    impl = String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else write_moment(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else datetime.strptime(value, _FORM).replace(tzinfo=UTC)


class Json(TypeDecorator[Any]):
    """Plain data, kept as text; None is the database's NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        """JSON in ASCII: PostgreSQL takes no null characters in texts, and no database half characters."""
        return None if value is None else json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else json.loads(value)


METADATA = MetaData()

projects = Table(
    "projects",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("slug", String(64), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("task", String(16), nullable=False),
    Column("taxonomy", String(64), nullable=False),
    Column("created_at", Moment, nullable=False),
)

batches = Table(
    "batches",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("language", String(64)),
    Column("state", String(16), nullable=False),
    Column("round", Integer, nullable=False),
    Column("figures", Json),
    UniqueConstraint("project_id", "number", name="batch_number"),
)

items = Table(
    "items",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("key", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("language", String(64)),
    Column("role", String(16), nullable=False),
    Column("batch_id", ForeignKey("batches.id")),
    Column("words", Integer, nullable=False),
    Column("sample", Json, nullable=False),
    Column("gold", Json),
    Column("silver", Json),
    UniqueConstraint("project_id", "key", name="item_key"),
    Index("items_by_role", "project_id", "role", "language", "position"),
)

people = Table(
    "people",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("public_id", String(32), nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("name", Text),
    Column("language", String(64)),
    Column("works_in", Json),
    Column("note", Text),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("key_expires_at", Moment, nullable=False),
    Column("invited_at", Moment, nullable=False),
    Column("joined_at", Moment),
    Column("consented_at", Moment),
    Column("consent", Text),
    Column("revoked_at", Moment),
    Column("exam_attempts", Integer, nullable=False),
    Column("exam_passed_at", Moment),
    Column("out_at", Moment),
    Column("exam_figures", Json),
    Index("people_of_project", "project_id"),
)

assignments = Table(
    "assignments",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("item_id", ForeignKey("items.id"), nullable=False),
    Column("person_id", ForeignKey("people.id"), nullable=False),
    Column("purpose", String(16), nullable=False),
    Column("round", Integer, nullable=False),
    Column("subject_id", ForeignKey("assignments.id")),
    Column("state", String(16), nullable=False),
    Column("version", Integer, nullable=False),
    Column("layer", Json, nullable=False),
    Column("suggestions", Json),
    Column("message", Text),
    Column("seconds", Float, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("opened_at", Moment),
    Column("changed_at", Moment, nullable=False),
    Column("submitted_at", Moment),
    Index("assignments_of_person", "person_id", "state"),
    Index("assignments_of_item", "item_id", "purpose"),
    Index("assignments_of_project", "project_id", "purpose", "state"),
    Index("assignments_of_subject", "subject_id"),
    Index(
        "assigned_once",
        "item_id",
        "person_id",
        "purpose",
        "round",
        text("coalesce(subject_id, 0)"),
        unique=True,
    ),
)

events = Table(
    "events",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("event_id", String(64), nullable=False, unique=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("assignment_id", ForeignKey("assignments.id")),
    Column("item_id", ForeignKey("items.id")),
    Column("person_id", ForeignKey("people.id")),
    Column("kind", String(32), nullable=False),
    Column("base_version", Integer),
    Column("version", Integer),
    Column("state", String(16)),
    Column("layer", Json),
    Column("payload", Json),
    Column("digest", String(64)),
    Column("seconds", Float, nullable=False),
    Column("client_at", Moment),
    Column("at", Moment, nullable=False),
    Index("events_of_assignment", "assignment_id", "id"),
    Index("events_of_item", "item_id", "id"),
    Index("events_of_project", "project_id", "id"),
)

sessions = Table(
    "sessions",
    METADATA,
    Column("token_hash", String(64), primary_key=True),
    Column("person_id", ForeignKey("people.id"), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("seen_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
)


class StoreError(VeriglotError):
    """The database cannot be used: it is not there, damaged, newer than this version, or not for this project."""


class NotFound(UsageError):  # noqa: N818  # reads as what happened, like Conflict
    """There is no such row, or it belongs to somebody else; which of the two is not said."""

    def __init__(self, what: str) -> None:
        super().__init__(f"There is no such {what}.")


class Refused(UsageError):  # noqa: N818
    """A rule speaks against it; nothing was changed."""


class Conflict(VeriglotError):  # noqa: N818
    """An event came too late: the assignment has changed, or is no longer open. What it held is kept as an event.

    Attributes:
        version: the assignment's version now.
        state: its state now.
        layer: its layer now.
        reason: `version` or `state`.
    """

    def __init__(self, version: int, state: State, layer: Layer, reason: str) -> None:
        message = (
            "This was changed elsewhere since it was opened here."
            if reason == "version"
            else f"This is {state.value} and takes no such change."
        )
        super().__init__(message, remedy="Look at what is there now; what was sent is kept in the history.")
        self.version = version
        self.state = state
        self.layer = layer
        self.reason = reason


class Role(StrEnum):
    """What a person may do."""

    ANNOTATOR = "annotator"
    REVIEWER = "reviewer"
    LEAD = "lead"


class ItemRole(StrEnum):
    """What an item is for: the work, the exam, the overlap that agreement is measured on, or a hidden check."""

    NORMAL = "normal"
    EXAM = "exam"
    OVERLAP = "overlap"
    CHECK = "check"


WORK_ROLES = (ItemRole.NORMAL, ItemRole.OVERLAP)
"""Roles of the items that the work is about."""


class Purpose(StrEnum):
    """Why somebody has an item."""

    ANNOTATE = "annotate"
    EXAM = "exam"
    REVIEW = "review"
    ADJUDICATE = "adjudicate"
    VALIDATE = "validate"


class State(StrEnum):
    """Where an assignment stands.

    OPEN: to be worked on. SUBMITTED: handed in. RETURNED: sent back, to be worked on again. ACCEPTED: final. SKIPPED:
    left out, with a reason. WITHDRAWN: taken back by a rule or by the lead.
    """

    OPEN = "open"
    SUBMITTED = "submitted"
    RETURNED = "returned"
    ACCEPTED = "accepted"
    SKIPPED = "skipped"
    WITHDRAWN = "withdrawn"


AT_WORK = (State.OPEN, State.RETURNED)
"""States in which an assignment waits for the person that has it."""
DONE = (State.SUBMITTED, State.ACCEPTED, State.SKIPPED)
"""States in which that person is through with it."""


class BatchState(StrEnum):
    """Where a batch stands: worked on, being validated, passed, or sent back whole (and then worked on again)."""

    OPEN = "open"
    VALIDATING = "validating"
    ACCEPTED = "accepted"
    RETURNED = "returned"


class ProjectRow(msgspec.Struct, frozen=True):
    """A project as the store knows it."""

    id: int
    slug: str
    name: str
    task: str
    taxonomy: str
    created_at: datetime


class Batch(msgspec.Struct, frozen=True):
    """Items that are validated together: all of one language; `round` counts how often it was sent back."""

    id: int
    project_id: int
    number: int
    language: str | None
    state: BatchState
    round: int
    figures: dict[str, Any] | None


class Item(msgspec.Struct, frozen=True):
    """One thing to annotate, without its texts and layers: `ReadTransaction.sample`, `gold` and `silver` read them.

    Attributes:
        id: in the store.
        project_id: its project.
        key: the sample's id, unique in the project.
        position: in the order of the import, from 0.
        language: BCP 47 tag of the response, or None.
        role: what it is for.
        batch_id: its batch, or None.
        words: of the response.
        has_gold: whether there is a gold layer.
        has_silver: whether there is a silver layer.
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


class Person(msgspec.Struct, frozen=True):
    """Somebody who was invited, and perhaps joined.

    Attributes:
        id: in the store; never shown.
        project_id: their project.
        public_id: shown instead.
        role: what they may do.
        name: that they chose; None before they joined.
        language: of the interface; None before they joined.
        works_in: BCP 47 tags of the items that they get; None for all.
        note: the lead's, such as who was meant.
        key_expires_at: when their link ends.
        invited_at: when.
        joined_at: when they took up the link, or None.
        consented_at: when they agreed.
        revoked_at: when they were shut out, or None.
        exam_attempts: finished ones.
        exam_passed_at: when they passed.
        out_at: when they failed for the last time.
        exam_figures: of the attempts, in order.
    """

    id: int
    project_id: int
    public_id: str
    role: Role
    name: str | None
    language: str | None
    works_in: tuple[str, ...] | None
    note: str | None
    key_expires_at: datetime
    invited_at: datetime
    joined_at: datetime | None
    consented_at: datetime | None
    revoked_at: datetime | None
    exam_attempts: int
    exam_passed_at: datetime | None
    out_at: datetime | None
    exam_figures: list[dict[str, Any]] | None


class Assignment(msgspec.Struct, frozen=True):
    """One item given to one person for one purpose.

    Attributes:
        id: in the store.
        project_id: the project.
        item_id: the item.
        person_id: whose it is.
        purpose: why they have it.
        round: the attempt of an exam, the round of a batch; 0 for the first.
        subject_id: the assignment that a review looks at, or None.
        state: where it stands.
        version: counts changes of the layer and the state, from 0.
        layer: what was said so far.
        suggestions: what was shown beforehand, or None.
        message: the reviewer's, where it was sent back.
        seconds: of work, as the page counted them.
        created_at: when it was given.
        opened_at: when it was first looked at.
        changed_at: when it changed last.
        submitted_at: when it was handed in last.
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


class Event(msgspec.Struct, frozen=True):
    """Something that happened; never changed afterwards.

    Attributes:
        id: in the order of the store.
        event_id: given by whoever sent it.
        project_id: the project.
        assignment_id: of the assignment, or None.
        item_id: of the item, or None.
        person_id: who did it; None for a rule, or the command line.
        kind: `save`, `submit`, `conflict`, `assigned`, `imported`, `invited` ...
        base_version: the version that whoever sent it had seen.
        version: the assignment's after it.
        state: the assignment's after it.
        layer: the layer that came with it, or None.
        payload: what else there is to say.
        seconds: of work since the event before.
        client_at: the sender's clock.
        at: ours.
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
    seconds: float
    client_at: datetime | None
    at: datetime


class NewEvent(msgspec.Struct, frozen=True):
    """What somebody does to an assignment of theirs.

    Attributes:
        event_id: 8 to 64 letters, digits and hyphens, made by the sender; the same again is the same event, not another
            one.
        kind: `opened`, `save`, `submit`, `skip`, `reopen`, `confirm`, `correct`, `return`.
        base_version: the version that the sender has seen last.
        layer: what is said now; None to leave it.
        comment: to whom it concerns, such as a reviewer's reason to send back.
        seconds: of work since the event before.
        at: the sender's clock.
    """

    event_id: str
    kind: str
    base_version: int
    layer: Layer | None = None
    comment: str | None = None
    seconds: float = 0.0
    at: datetime | None = None


class EventResult(msgspec.Struct, frozen=True):
    """What became of an event.

    Attributes:
        version: the assignment's after it.
        state: the assignment's after it.
        kind: the event's, or `conflict`.
        repeated: whether it was known already, and nothing was done.
        reason: of a conflict: `version` or `state`.
    """

    version: int
    state: State
    kind: str
    repeated: bool = False
    reason: str | None = None


R = TypeVar("R", bound=msgspec.Struct)


def record_of(row: RowMapping, kind: type[R]) -> R:
    """The record of a row, which has a column for each of its fields."""
    return msgspec.convert({name: row[name] for name in kind.__struct_fields__}, kind)
