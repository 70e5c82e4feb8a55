"""Events of people: known ones answered again, late ones kept, the others carried out.

An assignment has a version, which every change of its layer or state raises. An event names the version that its sender
had seen; it is carried out only where that is still the version. So two tabs, two reviewers or a page that comes back
online can send whatever they like: nothing is overwritten unseen, nothing is done twice, and nothing that was sent is
lost.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from sqlalchemy import update

from veriglot.annotate.layers import encode, to_data
from veriglot.annotate.store import tables
from veriglot.annotate.store.columns import now
from veriglot.annotate.store.errors import NotFound, Refused
from veriglot.annotate.store.rows import Appended, Purpose, State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from veriglot.annotate.store.rows import Assignment, NewEvent
    from veriglot.annotate.store.transaction import Writing

__all__ = ["KINDS", "append"]

_EVENT_ID = re.compile(r"[A-Za-z0-9-]{8,64}")
_LONGEST = 24 * 3600.0  # seconds that one event may claim; a page that slept is not work
_AT_WORK = (State.OPEN, State.RETURNED)
_HANDED_IN = (State.SUBMITTED, State.SKIPPED)

_Steps = dict[str, tuple[tuple[State, ...], "State | None"]]
_WORK: _Steps = {  # kind: from which states, to which; None keeps it
    "opened": (tuple(State), None),
    "save": (_AT_WORK, None),
    "submit": (_AT_WORK, State.SUBMITTED),
    "skip": (_AT_WORK, State.SKIPPED),
    "reopen": (_HANDED_IN, State.OPEN),
}
_REVIEW: _Steps = {
    "opened": (tuple(State), None),
    "save": (_AT_WORK, None),
    "confirm": (_AT_WORK, State.SUBMITTED),
    "correct": (_AT_WORK, State.SUBMITTED),
    "return": (_AT_WORK, State.SUBMITTED),
    "skip": (_AT_WORK, State.SKIPPED),
}
_STEPS: Mapping[Purpose, _Steps] = {purpose: _REVIEW if purpose is Purpose.REVIEW else _WORK for purpose in Purpose}

KINDS = frozenset({*_WORK, *_REVIEW})
"""Kinds of events that people send."""


def append(
    tx: Writing,
    assignment_id: int,
    person_id: int,
    new: NewEvent,
    *,
    before: Callable[[Writing, Assignment], None] | None,
    after: Callable[[Writing, Assignment], None] | None,
) -> Appended:
    """See `Store.append`."""
    _check(new)
    assignment = tx.assignment(assignment_id, lock=True)
    if assignment.person_id != person_id:
        raise NotFound("assignment")
    known = tx.event(new.event_id)
    if known is not None:
        return _repeated(known, assignment, person_id, new)
    if tx.person(person_id).revoked_at is not None:
        raise Refused("This person was shut out of the project.")
    reason = _too_late(assignment, new)
    if reason is not None:
        payload = {"kind": new.kind, "reason": reason}
        _record(tx, assignment, new, "conflict", assignment.version, assignment.state, payload)
        return Appended(assignment.version, assignment.state, "conflict", reason=reason)
    if before is not None:
        before(tx, assignment)
    version, state = _carry_out(tx, assignment, new)
    _record(tx, assignment, new, new.kind, version, state, {})
    if after is not None:
        after(tx, tx.assignment(assignment_id))
    return Appended(version, state, new.kind)


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


def _carry_out(tx: Writing, old: Assignment, new: NewEvent) -> tuple[int, State]:
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
    tx: Writing, assignment: Assignment, new: NewEvent, kind: str, version: int, state: State, payload: dict[str, Any]
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


def _repeated(known: Any, assignment: Assignment, person_id: int, new: NewEvent) -> Appended:
    """The first result of an event that is known; another event under its id is refused, for it would be lost."""
    same = (known["assignment_id"], known["person_id"], known["digest"]) == (assignment.id, person_id, _digest(new))
    if not same:
        raise Refused("This id belongs to another event.", remedy="Send a new UUID with each event.")
    reason = known["payload"]["reason"] if known["kind"] == "conflict" else None
    return Appended(known["version"], State(known["state"]), known["kind"], repeated=True, reason=reason)


def _digest(new: NewEvent) -> str:
    """Of what the event says; not of the clock, which a sender may read again when it repeats itself."""
    layer = "" if new.layer is None else encode(new.layer)
    said = "\0".join((new.kind, str(new.base_version), layer, new.comment or ""))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
