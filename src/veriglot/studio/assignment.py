"""Assignments: preparation of items, a person's next item, events that change an assignment, and withdrawal.

- Annotators: first the exam, if the project has one. Then the items of their languages that everybody shares (the first
  `work.overlap` of each), then items of their own, each for `work.per_item` people, at most `work.per_person`. Hidden
  checks are mixed in at a rate of `checks.share`. If the annotators of an item disagree, it gets
  `work.per_disputed_item`.
- Reviewers: annotations of others that wait for a review, then items of batches under validation.
- Leads: items they took for adjudication, then the same as reviewers.

Started work comes before new work, on every device, and items with a higher priority (set by a lead) come before the
rest. The open work of people who left or were excluded goes to others, and so does work that was not saved for
`work.release_hours`; it is withdrawn with an event, and continued from its last state if the person gets it again.
"""

from __future__ import annotations

import math
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import ColumnElement, Select, and_, case, exists, or_, select

from veriglot.errors import UsageError
from veriglot.records import Annotation, Detector, Kind, Sample, Status
from veriglot.records.settings import Record, errors_of
from veriglot.studio import exam
from veriglot.studio import tables as t
from veriglot.studio.adjudication import Vote, after_adjudication, submissions_of, votes_on
from veriglot.studio.comparison import Comparison
from veriglot.studio.exam import draw
from veriglot.studio.items import draws_suggestions, suggested_spans, uniform
from veriglot.studio.layers import Layer
from veriglot.studio.rates import languages_with_enough
from veriglot.studio.review import (
    Comment,
    after_event,
    before_event,
    conversations,
    count_reviewable,
    count_unread,
    final_layer,
    next_judgement,
    thread_of,
    written,
)
from veriglot.studio.store import ReadTransaction, Store, WriteTransaction, sha256, transactional
from veriglot.studio.tables import (
    AT_WORK,
    DONE,
    QUIET_EVENTS,
    Assignment,
    BatchState,
    Conflict,
    Event,
    EventResult,
    Item,
    ItemRole,
    NewEvent,
    NotFound,
    Person,
    Purpose,
    Refused,
    Role,
    Stage,
    State,
    now,
)
from veriglot.studio.texts import SharedView, item_view, sample_of, shared_words
from veriglot.studio.web import Caller, Number, Router, SignedIn, Writer, view

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from veriglot.studio.project import Project

    _Effect = Callable[[WriteTransaction, Assignment], None]

__all__ = ["assign_item", "check_ready", "is_stale", "router", "withdraw"]

assignment_row, item_row, person_row = t.assignments.c, t.items.c, t.people.c  # in statements


# Events of people: repeated ones get the first answer again, late ones are stored, others are applied.
#
# An assignment has a version, which every change of its layer or state increments. An event names the version that its
# sender had; it is applied only if that is still the current version. So two tabs, two reviewers or a page that comes
# back online can send anything: nothing is overwritten unseen, nothing is done twice, and nothing is lost.


_HANDED_IN = (State.SUBMITTED, State.SKIPPED)
_CLOCKS_DIFFER = 2.0  # seconds that a page may report beyond the time that passed here, without a note in the history
_Steps = dict[str, tuple[tuple[State, ...], "State | None"]]
_ASIDE = frozenset({"opened", "comment"})  # these change no layer and no state, so they apply to every version
_BOTH: _Steps = {  # kind: allowed states, and the next state; None for no change
    "opened": (tuple(State), None),
    "comment": (tuple(State), None),
    "save": (AT_WORK, None),
    "skip": (AT_WORK, State.SKIPPED),
}
_WORK: _Steps = {**_BOTH, "submit": (AT_WORK, State.SUBMITTED), "reopen": (_HANDED_IN, State.OPEN)}
_REVIEW: _Steps = {**_BOTH, **dict.fromkeys(("confirm", "correct", "return"), (AT_WORK, State.SUBMITTED))}


def append(
    store: Store,
    assignment_id: int,
    person_id: int,
    new: NewEvent,
    *,
    before: _Effect | None = None,
    after: _Effect | None = None,
    lock: str | None = None,
) -> EventResult:
    """Add an event to an assignment, in one transaction; when this returns, the event is on disk.

    A repeated event returns the first result and changes nothing. A late event is stored as a `conflict` and refused.

    Args:
        store: the store.
        assignment_id: the assignment.
        person_id: the owner of the assignment.
        new: the event, with a layer that passed `layers.check`.
        before: called with the old assignment, once the event is known to be new and in time.
        after: called with the new assignment; an error in either callback undoes everything.
        lock: of the transaction, see `Store.writing`.

    Raises:
        NotFound: this person has no such assignment.
        Conflict: the assignment has changed since `base_version`, or its state does not allow the event.
        Refused: the person was excluded, or the id belongs to another event.
    """
    result = store.transact(lambda tx: _append(tx, assignment_id, person_id, new, before, after), lock=lock)
    if isinstance(result, Conflict):
        raise result
    return result


def _append(
    tx: WriteTransaction,
    assignment_id: int,
    person_id: int,
    new: NewEvent,
    before: _Effect | None,
    after: _Effect | None,
) -> EventResult | Conflict:
    """`append` inside a transaction; a late event is stored, and its conflict returned."""
    if new.event_id.startswith("server-"):
        raise Refused("Events of the server are called so.", "Send a new UUID with each event.")
    if new.kind == "skip" and (new.layer is None or new.layer.skip is None):
        raise Refused("An item is left out for a reason.", "Send a layer with the reason in `skip`.")
    if new.kind == "comment":
        new = replace(new, layer=None, comment=written(new.comment))
    assignment = tx.assignment(assignment_id, lock=True)
    if assignment.person_id != person_id:
        raise NotFound("assignment")
    known = tx.event(new.event_id)
    if known is not None:
        return _repeated(known, assignment, person_id, new)
    if tx.person(person_id).revoked_at is not None:
        raise Refused("This person was shut out of the project.")
    step = (_REVIEW if assignment.purpose is Purpose.REVIEW else _WORK).get(new.kind)
    if step is None:
        raise Refused(f"An assignment to {assignment.purpose.value} takes no event of kind {new.kind!r}.")
    states, target = step
    comment: dict[str, Any] = {} if new.comment is None else {"comment": new.comment}
    seconds = min(new.seconds, tx.seconds_left(assignment.id))
    if seconds < new.seconds - _CLOCKS_DIFFER:
        comment["stated_seconds"] = new.seconds
    sent: dict[str, Any] = {
        "event_id": new.event_id,
        "layer": new.layer,
        "seconds": seconds,
        "person_id": person_id,
        "base_version": new.base_version,
        "digest": _digest(new),
        "client_at": new.at,
    }
    if new.kind not in _ASIDE and (new.base_version != assignment.version or assignment.state not in states):
        reason = "version" if new.base_version != assignment.version else "state"
        tx.change(assignment, "conflict", {}, payload={"kind": new.kind, "reason": reason, **comment}, **sent)
        return Conflict(assignment.version, assignment.state, assignment.layer, reason)
    if before is not None:
        before(tx, assignment)
    changes = _changes(assignment, new, target or assignment.state, seconds)
    tx.change(assignment, new.kind, changes, payload=comment or None, **sent)
    layer = {} if new.layer is None else {"layer": new.layer}
    changed = replace(assignment, **changes | layer)
    if after is not None:
        after(tx, changed)
    return EventResult(changed.version, changed.state, repeated=False)


def _changes(old: Assignment, new: NewEvent, state: State, worked: float) -> dict[str, Any]:
    """The changes of the assignment's row; `worked` are the event's seconds, as far as they are possible."""
    at, seconds = now(), old.seconds + worked
    if new.kind in _ASIDE:
        return {"seconds": seconds, "opened_at": old.opened_at or at}
    changes: dict[str, Any] = {"seconds": seconds, "version": old.version + 1, "state": state, "changed_at": at}
    if new.layer is not None:
        changes["layer"] = new.layer.to_data()
    if state in _HANDED_IN:
        changes["submitted_at"] = at
    return changes


def _repeated(known: Event, assignment: Assignment, person_id: int, new: NewEvent) -> EventResult | Conflict:
    """The first result of a repeated event; a different event with the same id is refused, so that it is not lost."""
    if (known.assignment_id, known.person_id, known.digest) != (assignment.id, person_id, _digest(new)):
        raise Refused("This id belongs to another event.", "Send a new UUID with each event.")
    if known.kind == "conflict":
        return Conflict(assignment.version, assignment.state, assignment.layer, (known.payload or {})["reason"])
    assert known.version is not None
    assert known.state is not None
    return EventResult(known.version, known.state, repeated=True)


def _digest(new: NewEvent) -> str:
    """Digest of the content of an event, without the time, which may differ when a sender repeats it."""
    layer = "" if new.layer is None else new.layer.encode()
    joined = "\0".join((new.kind, str(new.base_version), layer, new.comment or ""))
    return sha256(joined)


# What a person does to their assignment, with all consequences, in one transaction.


def apply_event(store: Store, project: Project, person_id: int, assignment_id: int, new: NewEvent) -> EventResult:
    """Apply a person's event and its consequences; when this returns, it is on disk.

    A review changes the state of its annotation, the last check of a batch decides the batch, a settled item gets its
    gold layer. Layers must have passed `layers.check`.
    """
    if new.kind == "confirm":
        # Confirm the layer under review, whatever the reviewer tried out.
        with store.reading() as tx:
            review = tx.assignment(assignment_id)
            if review.subject_id is not None:
                new = replace(new, layer=final_layer(tx, tx.assignment(review.subject_id), before=review.id))

    def before(tx: WriteTransaction, assignment: Assignment) -> None:
        if assignment.purpose is Purpose.EXAM and new.kind == "skip":
            raise Refused("An item of the exam cannot be left out.", "Hand it in with what you can say.")
        if new.kind == "comment" and thread_of(assignment) is None:
            raise Refused("Nobody reads comments here.", "Write to the lead, or comment on an annotation.")
        if new.kind not in _ASIDE:
            before_event(tx, assignment, new)

    def after(tx: WriteTransaction, assignment: Assignment) -> None:
        after_event(tx, project, assignment, new)
        if assignment.purpose is Purpose.ANNOTATE and new.kind in {"submit", "skip"}:
            _ask_more(tx, project, tx.item(assignment.item_id))
        if assignment.purpose is Purpose.ADJUDICATE and new.kind == "submit":
            after_adjudication(tx, project, assignment)

    lock = None if new.kind in QUIET_EVENTS else project.lock
    return append(store, assignment_id, person_id, new, before=before, after=after, lock=lock)


def _ask_more(tx: WriteTransaction, project: Project, item: Item) -> None:
    """If all annotators of an item are done and disagree, ask for `work.per_disputed_item`."""
    most = project.entries.work.per_disputed_item
    if most is None or item.role is not ItemRole.NORMAL or item.people_wanted(project) >= most:
        return
    live = [row for row in tx.assignments(item_id=item.id, purpose=Purpose.ANNOTATE) if row.state != State.WITHDRAWN]
    if len(live) < item.people_wanted(project) or any(row.state not in DONE for row in live):
        return
    if Comparison(project.form, tx.sample(item.id)).differ([row.layer for row in live]):
        tx.update_item(item, "disputed", wanted=most)


# Roles of items, set once before the work: shared by all, exam, or hidden checks.
#
# Items that the project file names for the exam or as checks are imported with their role; the others are drawn here
# from the data. It runs when somebody first asks for work, and again after an import; roles that were set stay.


def _prepare(tx: WriteTransaction, project: Project, project_id: int) -> None:
    entries = project.entries
    counts = tx.tally(project_id, "items", "language", "role")
    for language in sorted({language for language, role in counts if language is not None and role == ItemRole.NORMAL}):
        roles = {role: counts.get((language, role), 0) for role in ItemRole}
        for_exam, for_checks = set[int](), set[int]()
        if entries.exam is not None and not entries.exam.path and not roles[ItemRole.EXAM]:
            for_exam = _unassigned_with(tx, project_id, language, entries.exam.against)
        if entries.checks is not None and not entries.checks.path and not roles[ItemRole.CHECK]:
            for_checks = _unassigned_with(tx, project_id, language, "gold")
        missing = max(0, entries.work.overlap - roles[ItemRole.OVERLAP])
        if not (for_exam or for_checks or missing):
            continue
        free = tx.items(project_id, role=ItemRole.NORMAL, language=language)
        if for_exam:
            chosen = exam.draw_pool(tx, project, [item for item in free if item.id in for_exam])
            free = _set_role(tx, free, chosen, ItemRole.EXAM)
        if for_checks and entries.checks is not None:
            most = math.ceil(entries.checks.share * (len(free) + roles[ItemRole.OVERLAP]))
            fitting = draw([item for item in free if item.id in for_checks], _key, project.slug, "checks")
            drawn = fitting[: min(most, max(1, len(fitting) // 2))]
            free = _set_role(tx, free, [item.id for item in drawn], ItemRole.CHECK)
        _set_role(tx, free, [item.id for item in free[:missing]], ItemRole.OVERLAP)


def _key(item: Item) -> str:
    return item.key


def _set_role(tx: WriteTransaction, items: list[Item], chosen: Collection[int], role: ItemRole) -> list[Item]:
    """Give a role to the chosen items; returns the others."""
    for item in sorted(items, key=lambda item: item.id):
        if item.id in chosen:
            tx.set_role(item, role)
    return [item for item in items if item.id not in chosen]


def _unassigned_with(tx: ReadTransaction, project_id: int, language: str, layer: str) -> set[int]:
    """Items of the data with this layer that nobody was assigned; only these can still get a role."""
    given = exists().where(assignment_row.item_id == item_row.id)
    statement = select(item_row.id).where(
        item_row.project_id == project_id,
        item_row.role == ItemRole.NORMAL,
        item_row.language == language,
        t.items.c[layer].is_not(None),
        ~given,
    )
    return set(tx.ids(statement))


# What comes next for somebody.


def next_assignment(
    store: Store, project: Project, person_id: int, *, enough: Collection[str] = ()
) -> Assignment | None:
    """A person's next assignment, started or new; None if there is nothing for them now.

    Nobody gets new items in languages with `enough` labels, except items with a higher priority from a lead.

    Two concurrent calls, in one process or several, get different items. None has several causes; `Person.stage` and
    `count_left` tell which: the exam waits for `exam.finish`, the work is done, or others have to finish first.
    """
    with store.reading() as tx:
        person = tx.person(person_id)
        if person.revoked_at is not None:
            return None
        begun = _begun(tx, person)
    if begun is not None:
        return begun
    return _assign_next(store, project, person_id, enough)


@transactional
def _assign_next(tx: WriteTransaction, project: Project, person_id: int, enough: Collection[str]) -> Assignment | None:
    person = tx.person(person_id)
    begun = _begun(tx, person)
    if begun is not None or person.revoked_at is not None:
        return begun
    _prepare(tx, project, person.project_id)
    _withdraw_from_absent(tx, project, person.project_id)
    if person.can_judge:
        return next_judgement(tx, project, person)
    if person.stage(project) == "exam":
        return exam.begin(tx, project, person)
    item = _next_item(tx, project, person, enough)
    return None if item is None else assign_item(tx, project, item, person)


def _begun(tx: ReadTransaction, person: Person) -> Assignment | None:
    """A person's started work: returned items first, then by priority, then the oldest."""
    order = (assignment_row.state != State.RETURNED, item_row.priority.desc(), assignment_row.id)
    mine = (assignment_row.person_id == person.id, assignment_row.state.in_(AT_WORK))
    joined = select(assignment_row.id).join(t.items, item_row.id == assignment_row.item_id)
    return next(map(tx.assignment, tx.ids(joined.where(*mine).order_by(*order).limit(1))), None)


def assign_item(
    tx: WriteTransaction, project: Project, item: Item, person: Person, *, by: int | None = None
) -> Assignment:
    """Assign an item for annotation, automatically or `by` a lead; a withdrawn assignment continues where it was."""
    round_ = 0 if item.batch_id is None else tx.batch(item.batch_id).round
    earlier = tx.assignments(item_id=item.id, person_id=person.id, purpose=Purpose.ANNOTATE, round=round_)
    if earlier:
        return tx.move(earlier[0].id, State.OPEN, kind="assigned_again", by=by)
    suggestions = suggestions_for(tx, project, item)
    return tx.assign(item, person.id, Purpose.ANNOTATE, round=round_, suggestions=suggestions, by=by)


def withdraw(tx: WriteTransaction, assignment_id: int, *, reason: str, by: int | None = None) -> Assignment:
    """Withdraw an assignment, so that somebody else can get the item. Its content stays in it and in the history.

    Open reviews of it are withdrawn too. An assignment that is already withdrawn does not change.
    """
    old = tx.assignment(assignment_id, lock=True)
    if old.state is State.WITHDRAWN:
        return old
    for review in tx.assignments(subject_id=old.id, state=AT_WORK):
        tx.move(review.id, State.WITHDRAWN, by=by, reason="subject withdrawn")
    return tx.move(old.id, State.WITHDRAWN, by=by, reason=reason)


def is_stale(hours: float) -> ColumnElement[bool]:
    """Whether the owner of an assignment has saved nothing, there or elsewhere, for so many hours."""
    since, other = now() - timedelta(hours=hours), t.assignments.alias().c
    saved = and_(other.state.in_(AT_WORK), other.version > 0, other.changed_at >= since)
    busy = exists().where(other.person_id == assignment_row.person_id, or_(saved, other.submitted_at >= since))
    return and_(assignment_row.state.in_(AT_WORK), assignment_row.changed_at < since, ~busy)


def _withdraw_from_absent(tx: WriteTransaction, project: Project, project_id: int) -> None:
    """Withdraw stale work, and started work of people who were excluded, failed, or whose link expired.

    Submitted work stays, see `people.revoke`; so do the exam and a lead's adjudications.
    """
    gone = or_(person_row.revoked_at.is_not(None), person_row.out_at.is_not(None), person_row.key_expires_at <= now())
    hours = project.entries.work.release_hours
    if hours is not None:
        gone = or_(gone, is_stale(hours))
    statement = (
        select(assignment_row.id)
        .join(t.people, person_row.id == assignment_row.person_id)
        .where(
            assignment_row.project_id == project_id,
            assignment_row.purpose.in_((Purpose.ANNOTATE, Purpose.REVIEW, Purpose.VALIDATE)),
            assignment_row.state.in_(AT_WORK),
            gone,
        )
        .order_by(assignment_row.id)
    )
    for id_ in tx.ids(statement):
        withdraw(tx, id_, reason="absent")


def count_left(tx: ReadTransaction, project: Project, person: Person, enough: Collection[str] = ()) -> int:
    """How many items wait for a person now: the started ones, plus one if a new one is available."""
    begun = len(tx.assignments(person_id=person.id, state=AT_WORK))
    if begun:
        return begun
    if person.can_judge:
        return count_reviewable(tx, project, person)
    return int(_next_item(tx, project, person, enough) is not None)


# An annotator's next item: first shared items, then items of their own, with hidden checks mixed in.


def _checks_due(given: int, share: float, *words: object) -> int:
    """How many of a person's first `given + 1` items are hidden checks.

    Each stretch of `1 / share` items has one, at a position that is random but fixed for these words, so that nobody
    can predict it.
    """
    if share <= 0:
        return 0
    stretches = math.floor((given + 1) * share) + 1
    return sum(math.floor((stretch + uniform(*words, stretch)) / share) <= given for stretch in range(stretches))


def _next_item(tx: ReadTransaction, project: Project, person: Person, enough: Collection[str]) -> Item | None:
    """The annotator's next item; None if there is none for them (any more)."""
    if not person.can_work(project):
        return None
    item = _work_item(tx, project, person, enough)
    return None if item is None else _check_item(tx, project, person) or item  # checks only while there is work


def _check_item(tx: ReadTransaction, project: Project, person: Person) -> Item | None:
    """A hidden check, if one is due and available."""
    checks = project.entries.checks
    if checks is None:
        return None
    mine = select(assignment_row.id).where(*_mine(person))
    hidden = (item_row.id == assignment_row.item_id) & (item_row.role == ItemRole.CHECK)
    due = _checks_due(tx.count(mine), checks.share, project.slug, person.public_id)
    if tx.count(mine.join(t.items, hidden)) >= due:
        return None
    left = tx.ids(_items(person, ItemRole.CHECK).where(~_has(person)))
    drawn = draw(tx.items(person.project_id, id=left), _key, person.public_id)
    return drawn[0] if drawn else None


def _work_item(tx: ReadTransaction, project: Project, person: Person, enough: Collection[str]) -> Item | None:
    """The first available item for this person: by priority, then shared items, then items for a few people.

    Only items that this person does not have yet, in batches that still take annotations. Items that were withdrawn
    from them come last.
    """
    roles, most = [ItemRole.OVERLAP], project.entries.work.per_person
    own = (item_row.id == assignment_row.item_id) & (item_row.role == ItemRole.NORMAL)
    live = assignment_row.state != State.WITHDRAWN
    if most is None or tx.count(select(assignment_row.id).join(t.items, own).where(*_mine(person), live)) < most:
        roles.append(ItemRole.NORMAL)
    closed = (BatchState.VALIDATING, BatchState.ACCEPTED)
    is_closed = exists().where(t.batches.c.id == item_row.batch_id, t.batches.c.state.in_(closed))
    had_before = exists().where(
        assignment_row.item_id == item_row.id, *_mine(person), assignment_row.state == State.WITHDRAWN
    )
    waiting = or_(item_row.role == ItemRole.OVERLAP, t.is_missing(project))
    items = _items(person, *roles).where(waiting, ~_has(person), ~is_closed)
    if enough:  # items with some annotations still get the missing ones, or they would have no label
        is_begun = exists().where(
            assignment_row.item_id == item_row.id, assignment_row.purpose == Purpose.ANNOTATE, live
        )
        shared_out = and_(item_row.role == ItemRole.NORMAL, is_begun)
        items = items.where(or_(item_row.language.not_in(enough), item_row.priority > 0, shared_out))
    shared = case((item_row.role == ItemRole.OVERLAP, 0), else_=1)
    order = items.order_by(had_before, item_row.priority.desc(), shared, item_row.position).limit(1)
    return next(map(tx.item, tx.ids(order)), None)


def _items(person: Person, *roles: ItemRole) -> Select[Any]:
    return select(item_row.id).where(
        item_row.project_id == person.project_id, item_row.role.in_(roles), *person.languages()
    )


def _mine(person: Person) -> tuple[ColumnElement[bool], ...]:
    return assignment_row.person_id == person.id, assignment_row.purpose == Purpose.ANNOTATE


def _has(person: Person) -> ColumnElement[bool]:
    """Whether the person has the item or has finished it."""
    live = assignment_row.state != State.WITHDRAWN
    return exists().where(assignment_row.item_id == item_row.id, *_mine(person), live)


# Suggestions: marks shown before the work, if a project wants any: from the silver layer, a detector, or predictions.
#
# They bias (people who see them agree with them more), so they are off by default, are stored with the assignment that
# showed them, and can be hidden on a share of the items so that their effect can be measured. `comparison.verdict`
# classifies what people did with each.


def suggestions_for(tx: ReadTransaction, project: Project, item: Item) -> list[dict[str, Any]] | None:
    """Suggested spans for an item, as in a layer; None if the item shows none (an empty list means nothing to mark).

    Never in the exam. Hidden checks show them like all other items, so that they do not stand out.
    """
    entry = project.entries.suggestions
    if entry is None or item.role is ItemRole.EXAM or not project.form.has_spans:
        return None
    if not draws_suggestions(project, item.key):
        return None
    if entry.detector is not None:
        return _detected(entry.detector, project, tx.sample(item.id))
    if entry.predictions:
        prediction = tx.prediction(item.id)
        return None if prediction is None else list(prediction["spans"])
    silver = tx.silver(item.id)
    return None if silver is None else list(silver.to_data()["spans"])


@lru_cache(4)
def _detector(name: str) -> Detector:
    from veriglot.detectors.registry import load_detector

    return load_detector(name)


def check_ready(tx: ReadTransaction, project: Project, project_id: int) -> list[str]:
    """Problems of the exam, in words, after checking that annotators can start.

    Raises:
        VeriglotError: the detector for suggestions cannot be loaded.
        UsageError: there are items, but none for the exam.
    """
    entry = project.entries.suggestions
    if entry is not None and entry.detector is not None:
        with errors_of(project.path):
            _detector(entry.detector)
    lacking, asked = exam.missing_items(tx, project, project_id), project.entries.exam
    if asked is not None and lacking and not exam.could_begin(tx, asked, project_id):
        raise UsageError(
            f"The exam of {project.slug} has no items: nobody could begin.",
            f"It needs items with known answers: name who gave them as `{asked.against}` under [data], and their files"
            " as `path` under [exam] if the data lack them; then import. Or take [exam] out of the project file.",
        )
    return lacking


def _detected(name: str, project: Project, sample: Sample) -> list[dict[str, Any]] | None:
    """The spans of a detector; None if it does not judge the sample."""
    detector = _detector(name)
    prediction = detector.predict([sample])[0]
    if prediction.status is not Status.SCORED:
        return None
    annotation = Annotation(annotator=name, kind=Kind.MODEL, taxonomy=detector.taxonomy, spans=prediction.spans)
    return suggested_spans(annotation, project.form, sample)


# Endpoints for annotators and reviewers.


router = Router()
_HANDING_IN = frozenset({"submit", "confirm", "correct"})


class OtherLayer(Record):
    """Another person's layer of the item, under their public id.

    `role` and `number` are shown instead of the id (`Annotator 3`); `name` is only for leads.
    """

    layer: Layer
    by: str
    assignment: int
    role: Role
    number: int
    name: str | None = None


class AssignmentView(Record):
    """An item as it was assigned to the caller."""

    id: int
    purpose: Purpose
    state: State
    version: int
    layer: Layer
    item: msgspec.Raw
    suggestions: list[dict[str, Any]] | None
    subject: OtherLayer | None
    subjects: list[OtherLayer] | None
    votes: list[Vote] | None  # on the spans and labels of the subjects, during adjudication
    message: str | None
    conversation: list[Comment] | None  # about the annotation; None if nobody else is involved
    seconds: float


class AssignmentLine(Record):
    """An assignment in a list; `unread` counts others' comments since it was last opened."""

    id: int
    purpose: Purpose
    state: State
    version: int
    item: int
    language: str | None
    message: str | None
    seconds: float
    unread: int


class Next(Record):
    """The next assignment, and how many are known to be left."""

    assignment: AssignmentView | None
    left: int
    stage: Stage
    enough: list[str]  # languages of the person with no new items, because their rates are precise enough


@router.call("POST", "/api/next")
def next_(caller: Writer) -> Next:
    """The next assignment: returned work first, then open work, then new work; null if there is none."""
    studio = caller.studio
    enough = languages_with_enough(caller)
    given = next_assignment(studio.store, studio.project, caller.person.id, enough=enough)
    with studio.store.reading() as tx:
        person = tx.person(caller.person.id)
        view = None if given is None else _assignment(tx, caller, given)
        left = count_left(tx, studio.project, person, enough)
    stage = person.stage(studio.project)
    mine = [] if person.can_judge else sorted(tag for tag in enough if tag in (person.works_in or enough))
    return Next(view, left, "done" if view is None and stage == "work" else stage, mine)


@router.call("GET", "/api/assignments")
def assignments(caller: SignedIn) -> list[AssignmentLine]:
    """The caller's assignments, in the order in which they were assigned."""
    with caller.studio.store.reading() as tx:
        mine = tx.assignments(person_id=caller.person.id)
        languages = {item.id: item.language for item in tx.items(caller.studio.id)}
        unread = count_unread(tx, caller.person)
    return [
        view(AssignmentLine, row, item=row.item_id, language=languages.get(row.item_id), unread=unread.get(row.id, 0))
        for row in mine
        if row.state is not State.WITHDRAWN
    ]


@router.call("GET", "/api/assignments/{number}")
def assignment(caller: SignedIn, number: Number) -> AssignmentView:
    """One of the caller's assignments, with its item."""
    with caller.studio.store.reading() as tx:
        return _assignment(tx, caller, _own(tx, caller, number))


@router.call("GET", "/api/assignments/{number}/shared", answer=SharedView)
def shared(caller: SignedIn, number: Number) -> msgspec.Raw:
    """Words of the response that also occur in the evidence."""
    with caller.studio.store.reading() as tx:
        item_id = _own(tx, caller, number).item_id
    return shared_words(caller.studio, item_id)


@router.call("POST", "/api/assignments/{number}/events")
def event(caller: Writer, number: Number, body: NewEvent) -> EventResult:
    """Apply an event to an assignment. After status 200 it is on disk; repeating it returns the same answer."""
    studio = caller.studio
    if body.layer is not None:
        with studio.store.reading() as tx:
            item_id = _own(tx, caller, number).item_id
        sample = sample_of(studio, item_id)
        body.layer.check(studio.project.form, sample, complete=body.kind in _HANDING_IN)
    return apply_event(studio.store, studio.project, caller.person.id, number, body)


def _own(tx: ReadTransaction, caller: Caller, number: int) -> Assignment:
    assignment = tx.assignment(number)
    if assignment.person_id != caller.person.id:
        raise NotFound("assignment")
    return assignment


def _assignment(tx: ReadTransaction, caller: Caller, row: Assignment) -> AssignmentView:
    """An assignment, with the layers to review, check or adjudicate."""
    subject: OtherLayer | None = None
    if row.subject_id is not None:
        annotation = tx.assignment(row.subject_id)
        layer = annotation.layer
        if row.purpose is Purpose.REVIEW:
            layer = final_layer(tx, annotation, before=row.id)
        subject = _other(tx, caller, tx.person(annotation.person_id), layer, annotation.id)
    subjects: list[OtherLayer] | None = None
    votes: list[Vote] | None = None
    if row.purpose is Purpose.ADJUDICATE:
        submissions = submissions_of(tx, tx.item(row.item_id))
        subjects = [
            _other(tx, caller, tx.person_by(public_id=other.by), other.final, other.assignment) for other in submissions
        ]
        votes = votes_on(submissions, caller.studio.project.form, sample_of(caller.studio, row.item_id))
    item = item_view(caller.studio, row.item_id)
    thread = thread_of(row)
    comments = None if thread is None else conversations(tx, caller.person, row.item_id).get(thread, [])
    more = {"subject": subject, "subjects": subjects, "votes": votes, "conversation": comments}
    return view(AssignmentView, row, item=item, **more)


def _other(tx: ReadTransaction, caller: Caller, person: Person, layer: Layer, assignment: int) -> OtherLayer:
    number = tx.numbers(person.project_id)[person.id]
    name = person.name if caller.person.role is Role.LEAD else None
    return OtherLayer(layer, person.public_id, assignment, person.role, number, name)
