"""What leads are sent and send: records of the API beside those of `views` and of the rules."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from veriglot.annotate.layers import Layer
from veriglot.annotate.store.rows import BatchState, ItemRole, Purpose, Role, State

__all__ = [
    "Adjudication",
    "AdjudicationBody",
    "AssignmentOf",
    "BatchView",
    "DisagreementView",
    "Disagreements",
    "EventView",
    "History",
    "InvitationBody",
    "ItemLine",
    "Items",
    "Link",
    "PersonState",
    "SaidView",
    "SettleBody",
    "SettledView",
]


class InvitationBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whom to invite: `languages` are those of their items, none for all; the note is for leads."""

    role: Role
    languages: Annotated[list[Annotated[str, msgspec.Meta(max_length=64)]], msgspec.Meta(max_length=100)] = []
    note: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class Link(msgspec.Struct, frozen=True):
    """A link for one person; it is not kept and cannot be shown again."""

    link: str
    expires: datetime
    person: str


class PersonState(msgspec.Struct, frozen=True):
    """Somebody after what was done to them."""

    id: str
    revoked: bool
    exam_attempts: int


class AdjudicationBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The item that a lead settles."""

    item: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class Adjudication(msgspec.Struct, frozen=True):
    """The assignment in which a lead settles an item."""

    assignment: int
    state: State


class SettleBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that settles what it can decide, of one language or all; with `again` also gold that no lead set."""

    rule: Literal["agreed", "majority", "best_with_silver"]
    language: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    again: bool = False


class SettledView(msgspec.Struct, frozen=True):
    """What a rule did: items that got a gold layer, that it left to a lead, that kept the one they had.

    Of the settled, `replaced` had another one before; of the kept, a lead had settled `by_hand` by hand.
    `best` names, by language, the public id of whoever agrees most with silver, where the rule asks for them.
    """

    settled: int
    left: int
    kept: int
    replaced: int
    by_hand: int
    best: dict[str, str]


class BatchView(msgspec.Struct, frozen=True):
    """A batch after what was done to it."""

    id: int
    number: int
    state: BatchState
    round: int


class SaidView(msgspec.Struct, frozen=True):
    """What one annotator said of an item: theirs, and what counts once a reviewer corrected it."""

    assignment: int
    by: str
    layer: Layer
    final: Layer


class DisagreementView(msgspec.Struct, frozen=True):
    """An item that several people annotated; `likeness` goes from 0 to 1."""

    key: str
    item: msgspec.Raw
    likeness: float
    settled: bool
    said: list[SaidView]


class Disagreements(msgspec.Struct, frozen=True):
    """Those items first that people are least alike on; `total` counts all."""

    total: int
    items: list[DisagreementView]


class ItemLine(msgspec.Struct, frozen=True):
    """An item in a list; `done` counts the annotations that were handed in."""

    id: int
    key: str
    language: str | None
    role: ItemRole
    done: int
    has_gold: bool


class Items(msgspec.Struct, frozen=True):
    """Items in the order of their import; `total` counts all that were asked for."""

    total: int
    items: list[ItemLine]


class AssignmentOf(msgspec.Struct, frozen=True):
    """What one person was given to do with an item, and said of it."""

    id: int
    by: str
    purpose: Purpose
    state: State
    version: int
    round: int
    layer: Layer
    message: str | None
    seconds: float


class EventView(msgspec.Struct, frozen=True):
    """Something that happened to an item; `by` is null for rules and the command line."""

    id: int
    kind: str
    by: str | None
    assignment: int | None
    layer: Layer | None
    payload: dict[str, Any] | None
    seconds: float
    at: datetime


class History(msgspec.Struct, frozen=True):
    """An item with everything that was said of it, and everything that happened to it, the latest of it."""

    key: str
    item: msgspec.Raw
    gold: Layer | None
    silver: Layer | None
    assignments: list[AssignmentOf]
    events: list[EventView]
    events_left_out: int
