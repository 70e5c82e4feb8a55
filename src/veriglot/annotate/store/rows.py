"""Rows of the tables as records."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.annotate.layers import Layer, from_data

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

__all__ = [
    "Appended",
    "Assignment",
    "Batch",
    "BatchState",
    "Event",
    "Item",
    "ItemRole",
    "NewEvent",
    "Person",
    "ProjectRow",
    "Purpose",
    "Role",
    "SessionRow",
    "State",
]


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
    """One thing to annotate, without its texts: `Reading.sample(item.id)` has them, `gold` and `silver` the layers.

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


class SessionRow(msgspec.Struct, frozen=True):
    """A browser that somebody works in; only the hash of its token is kept."""

    token_hash: str
    person_id: int
    created_at: datetime
    seen_at: datetime
    expires_at: datetime


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


class Appended(msgspec.Struct, frozen=True):
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


def layer_of(data: Any) -> Layer:
    """The layer of a column."""
    return from_data(data)


def item_of(row: RowMapping) -> Item:
    """An item of the columns that `Reading` asks for."""
    return Item(
        row["id"],
        row["project_id"],
        row["key"],
        row["position"],
        row["language"],
        ItemRole(row["role"]),
        row["batch_id"],
        row["words"],
        bool(row["has_gold"]),
        bool(row["has_silver"]),
    )


def batch_of(row: RowMapping) -> Batch:
    """A batch of its columns."""
    return Batch(**{**row, "state": BatchState(row["state"])})


def person_of(row: RowMapping) -> Person:
    """A person of their columns."""
    works_in = row["works_in"]
    known = {name: row[name] for name in Person.__struct_fields__}
    return Person(**{**known, "role": Role(row["role"]), "works_in": None if works_in is None else tuple(works_in)})


def assignment_of(row: RowMapping) -> Assignment:
    """An assignment of its columns."""
    return Assignment(
        **{
            **row,
            "purpose": Purpose(row["purpose"]),
            "state": State(row["state"]),
            "layer": layer_of(row["layer"]),
        }
    )


def event_of(row: RowMapping) -> Event:
    """An event of its columns."""
    known = {name: row[name] for name in Event.__struct_fields__}
    layer, state = row["layer"], row["state"]
    return Event(
        **{
            **known,
            "layer": None if layer is None else layer_of(layer),
            "state": None if state is None else State(state),
        }
    )
