"""Assignments: preparing the items, the next one for a person, events that change one, and withdrawal.

- Annotators: the exam first, if the project has one. Then the items of their languages that everybody shares (the
  first `work.overlap` of each), then items of their own, each for one person, `work.per_person` at most. Hidden checks
  are strewn in at `checks.share`.
- Reviewers: annotations of others that wait for a review, then items of batches that are validated.
- Leads: what they took on to settle, then what reviewers do.

What somebody has begun comes before anything new, on whatever device. What people who left or were shut out had
begun goes to others; it is withdrawn, with its event, and taken up where it was left if it comes back to them.
"""

from __future__ import annotations

import math
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import exists, or_, select

from veriglot.records import Annotation, Kind, Status
from veriglot.studio import exam
from veriglot.studio import tables as t
from veriglot.studio.adjudication import after_adjudication, submissions_of
from veriglot.studio.exam import draw, uniform
from veriglot.studio.layers import Layer
from veriglot.studio.review import after_event, before_event, count_reviewable, final_layer, next_judgement
from veriglot.studio.tables import (
    AT_WORK,
    Assignment,
    BatchState,
    EventResult,
    Item,
    ItemRole,
    NewEvent,
    NotFound,
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
    from collections.abc import Collection

    from sqlalchemy import ColumnElement, Select

    from veriglot.records import Detector, Sample
    from veriglot.studio.project import Project
    from veriglot.studio.store import ReadTransaction, Store, WriteTransaction
    from veriglot.studio.tables import Person

__all__ = ["router"]


# What somebody does to an assignment of theirs, with everything that follows from it, in one transaction.


_ALONE = frozenset({"opened", "save"})  # these change nothing but their own assignment, and are frequent


def apply_event(store: Store, project: Project, person_id: int, assignment_id: int, new: NewEvent) -> EventResult:
    """Carry out an event of a person, and what follows from it; when this returns, it is on disk.

    A review moves the annotation that it looks at, the last check of a batch decides the batch, a settled item gets
    its gold layer. Layers are taken as checked (`layers.check`).
    """
    if new.kind == "confirm":
        new = msgspec.structs.replace(new, layer=_reviewed_layer(store, assignment_id, new.layer))

    def before(tx: WriteTransaction, assignment: Assignment) -> None:
        if assignment.purpose is Purpose.EXAM and new.kind == "skip":
            raise Refused("An item of the exam cannot be left out.", remedy="Hand it in with what you can say.")
        if new.kind != "opened":
            before_event(tx, assignment, new)

    def after(tx: WriteTransaction, assignment: Assignment) -> None:
        after_event(tx, project, assignment, new)
        if assignment.purpose is Purpose.ADJUDICATE and new.kind == "submit":
            after_adjudication(tx, assignment)

    lock = None if new.kind in _ALONE else project.lock
    return store.append(assignment_id, person_id, new, before=before, after=after, lock=lock)


def _reviewed_layer(store: Store, assignment_id: int, sent: Layer | None) -> Layer | None:
    """What is confirmed is the layer that was to be reviewed, whatever the reviewer had tried out."""
    with store.reading() as tx:
        review = tx.assignment(assignment_id)
        if review.subject_id is None:
            return sent
        return final_layer(tx, tx.assignment(review.subject_id), before=review.id)


# What items are for, said once before the work: shared by all, for the exam, or hidden checks.
#
# Items that the project file names for the exam or as checks come with their role; the others are drawn here from the
# data. It is done when somebody first asks for work, and again when more items were imported; what was said stays.


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
    """Give a role to the chosen ones; the rest."""
    for item in sorted(items, key=lambda item: item.id):
        if item.id in chosen:
            tx.set_role(item, role)
    return [item for item in items if item.id not in chosen]


def _unassigned_with(tx: ReadTransaction, project_id: int, language: str, layer: str) -> set[int]:
    """Items of the data with this layer that nobody was given yet: only of them it can still be said what they are."""
    given = exists().where(t.assignments.c.item_id == t.items.c.id)
    statement = select(t.items.c.id).where(
        t.items.c.project_id == project_id,
        t.items.c.role == ItemRole.NORMAL,
        t.items.c.language == language,
        t.items.c[layer].is_not(None),
        ~given,
    )
    return set(tx.connection.execute(statement).scalars())


# What comes next for somebody.


def next_assignment(store: Store, project: Project, person_id: int) -> Assignment | None:
    """What somebody does next: what they have begun, or something new; None where there is nothing for them now.

    Two that ask at once, in one process or several, get different items. None has several reasons, of which
    `exam.exam_status` and `count_left` tell: the exam waits to be finished (`exam.finish`), the work is done, or others
    have to come first.
    """
    with store.reading() as tx:
        person = tx.person(person_id)
        if person.revoked_at is not None:
            return None
        begun = _begun(tx, person)
    if begun is not None:
        return begun
    return store.transact(lambda tx: _assign_next(tx, project, person_id), lock=project.lock)


def _assign_next(tx: WriteTransaction, project: Project, person_id: int) -> Assignment | None:
    person = tx.person(person_id)
    begun = _begun(tx, person)
    if begun is not None or person.revoked_at is not None:
        return begun
    _prepare(tx, project, person.project_id)
    _withdraw_from_absent(tx, person.project_id)
    if person.can_judge:
        return next_judgement(tx, project, person)
    if person.stage(project) == "exam":
        return exam.begin(tx, project, person)
    item = _next_item(tx, project, person)
    return None if item is None else _assign_item(tx, project, item, person)


def _begun(tx: ReadTransaction, person: Person) -> Assignment | None:
    """What somebody has to go on with: what was sent back first, then what is open, the oldest first."""
    rows = tx.assignments(person.project_id, person_id=person.id, state=AT_WORK)
    return min(rows, key=lambda row: (row.state is not State.RETURNED, row.id), default=None)


def _assign_item(tx: WriteTransaction, project: Project, item: Item, person: Person) -> Assignment:
    """Give an item to annotate; where it was withdrawn from them, they find what they had."""
    round_ = 0 if item.batch_id is None else tx.batch(item.batch_id).round
    earlier = tx.assignments(
        item.project_id, item_id=item.id, person_id=person.id, purpose=Purpose.ANNOTATE, round=round_
    )
    if earlier:
        return tx.move(earlier[0].id, State.OPEN, kind="assigned_again")
    suggestions = suggestions_for(tx, project, item)
    return tx.assign(item, person.id, Purpose.ANNOTATE, round=round_, suggestions=suggestions)


def withdraw(tx: WriteTransaction, assignment_id: int, *, reason: str) -> Assignment:
    """Withdraw an assignment: the item can go to somebody else. What was done stays in it and in the history.

    Open reviews of it are withdrawn too. One that is withdrawn already stays as it is.
    """
    old = tx.assignment(assignment_id, lock=True)
    if old.state is State.WITHDRAWN:
        return old
    for review in tx.assignments(old.project_id, subject_id=old.id, state=AT_WORK):
        tx.move(review.id, State.WITHDRAWN, reason="subject withdrawn")
    return tx.move(old.id, State.WITHDRAWN, reason=reason)


def _withdraw_from_absent(tx: WriteTransaction, project_id: int) -> None:
    """Withdraw what people had begun who were shut out, failed, or whose link has ended.

    What they handed in stays: `people.revoke` says so. The exam and what a lead settles stay as well.
    """
    gone = or_(t.people.c.revoked_at.is_not(None), t.people.c.out_at.is_not(None), t.people.c.key_expires_at <= now())
    statement = (
        select(t.assignments.c.id)
        .join(t.people, t.people.c.id == t.assignments.c.person_id)
        .where(
            t.assignments.c.project_id == project_id,
            t.assignments.c.purpose.in_((Purpose.ANNOTATE, Purpose.REVIEW, Purpose.VALIDATE)),
            t.assignments.c.state.in_(AT_WORK),
            gone,
        )
        .order_by(t.assignments.c.id)
    )
    for id_ in tx.connection.execute(statement).scalars().all():
        withdraw(tx, id_, reason="absent")


def count_left(tx: ReadTransaction, project: Project, person: Person) -> int:
    """How many items wait for somebody now: begun ones, and one more where something new is there for them."""
    begun = len(tx.assignments(person.project_id, person_id=person.id, state=AT_WORK))
    if begun:
        return begun
    if person.can_judge:
        return count_reviewable(tx, project, person)
    return int(_next_item(tx, project, person) is not None)


# The item that an annotator gets next: one that everybody shares, then one of their own, with hidden checks strewn in.


def _checks_due(given: int, share: float, *words: object) -> int:
    """How many of somebody's first `given + 1` items are hidden checks.

    One falls into each stretch of `1 / share` items, at a place of chance that stands fixed for these words, so that
    nobody can count them off.
    """
    if share <= 0:
        return 0
    stretches = math.floor((given + 1) * share) + 1
    return sum(math.floor((stretch + uniform(*words, stretch)) / share) <= given for stretch in range(stretches))


def _next_item(tx: ReadTransaction, project: Project, person: Person) -> Item | None:
    """The item that an annotator annotates next; None where there is none for them (any more)."""
    if not person.can_work(project):
        return None
    item = _overlap_item(tx, person) or _own_item(tx, project, person)
    return None if item is None else _check_item(tx, project, person) or item  # nobody is kept with checks alone


def _check_item(tx: ReadTransaction, project: Project, person: Person) -> Item | None:
    """A hidden check, if one is due and left."""
    checks = project.entries.checks
    if checks is None:
        return None
    mine = select(t.assignments.c.id).where(*_mine(person))
    hidden = (t.items.c.id == t.assignments.c.item_id) & (t.items.c.role == ItemRole.CHECK)
    due = _checks_due(tx.count(mine), checks.share, project.slug, person.public_id)
    if tx.count(mine.join(t.items, hidden)) >= due:
        return None
    left = tx.connection.execute(_items(person, ItemRole.CHECK).where(~_has(person))).scalars()
    drawn = draw(tx.items(person.project_id, id=list(left)), _key, person.public_id)
    return drawn[0] if drawn else None


def _overlap_item(tx: ReadTransaction, person: Person) -> Item | None:
    """The first shared item that this person does not have. They have none of a batch that was sent back."""
    return _first(tx, person, _items(person, ItemRole.OVERLAP).where(~_has(person)))


def _own_item(tx: ReadTransaction, project: Project, person: Person) -> Item | None:
    """The first item that nobody has, if this person may have another."""
    most = project.entries.work.per_person
    if most is not None:
        own = (t.items.c.id == t.assignments.c.item_id) & (t.items.c.role == ItemRole.NORMAL)
        live = t.assignments.c.state != State.WITHDRAWN
        if tx.count(select(t.assignments.c.id).join(t.items, own).where(*_mine(person), live)) >= most:
            return None
    taken = exists().where(
        t.assignments.c.item_id == t.items.c.id,
        t.assignments.c.purpose == Purpose.ANNOTATE,
        t.assignments.c.state != State.WITHDRAWN,
    )
    return _first(tx, person, _items(person, ItemRole.NORMAL).where(~taken))


def _items(person: Person, role: ItemRole) -> Select[Any]:
    return select(t.items.c.id).where(
        t.items.c.project_id == person.project_id, t.items.c.role == role, *person.languages()
    )


def _first(tx: ReadTransaction, person: Person, items: Select[Any]) -> Item | None:
    """The first whose batch, if any, still takes annotations; what was taken from this person comes last."""
    closed = (BatchState.VALIDATING, BatchState.ACCEPTED)
    is_closed = exists().where(t.batches.c.id == t.items.c.batch_id, t.batches.c.state.in_(closed))
    had_before = exists().where(
        t.assignments.c.item_id == t.items.c.id, *_mine(person), t.assignments.c.state == State.WITHDRAWN
    )
    order = items.where(~is_closed).order_by(had_before, t.items.c.position).limit(1)
    id_ = tx.connection.execute(order).scalar()
    return None if id_ is None else tx.item(id_)


def _mine(person: Person) -> tuple[ColumnElement[bool], ...]:
    return t.assignments.c.person_id == person.id, t.assignments.c.purpose == Purpose.ANNOTATE


def _has(person: Person) -> ColumnElement[bool]:
    """Whether the person has the item, or is through with it."""
    live = t.assignments.c.state != State.WITHDRAWN
    return exists().where(t.assignments.c.item_id == t.items.c.id, *_mine(person), live)


# Marks that are shown beforehand, where a project wants any: from the silver layer, or from a detector.
#
# They bias (those who see them agree with them more), so they are off unless the project file says otherwise, are kept
# with the assignment that showed them, and can be left out on a share of the items so that their effect can be
# measured. `comparison.verdict` says what became of each.


def suggestions_for(tx: ReadTransaction, project: Project, item: Item) -> list[dict[str, Any]] | None:
    """Spans to show with an item, as in a layer; None where none are shown (which an empty list is not).

    Never in the exam. On hidden checks as on all others, for they would stand out.
    """
    entry = project.entries.suggestions
    if entry is None or item.role is ItemRole.EXAM or not project.form.has_spans:
        return None
    if uniform(project.slug, "suggestions", item.key) >= entry.share:
        return None
    if entry.detector is not None:
        return _detected(entry.detector, project, tx.sample(item.id))
    silver = tx.silver(item.id)
    return None if silver is None else list(silver.to_data()["spans"])


@lru_cache(maxsize=4)
def _detector(name: str) -> Detector:
    from veriglot.detectors.registry import load_detector

    return load_detector(name)


def _detected(name: str, project: Project, sample: Sample) -> list[dict[str, Any]] | None:
    """What a detector marks; None where it does not judge the sample."""
    detector = _detector(name)
    prediction = detector.predict([sample])[0]
    if prediction.status is not Status.SCORED:
        return None
    annotation = Annotation(annotator=name, kind=Kind.MODEL, taxonomy=detector.taxonomy, spans=prediction.spans)
    return list(Layer.from_annotation(annotation, project.form, sample).to_data()["spans"])


# The calls of those who work.


router = Router()
_HANDING_IN = frozenset({"submit", "confirm", "correct"})


class OtherLayer(msgspec.Struct, frozen=True):
    """What somebody else said of the item, under their public id.

    `role` and `number` are what people read in its place (`Annotator 3`); `name` is for leads, who know the names.
    """

    layer: Layer
    by: str
    assignment: int
    role: Role
    number: int
    name: str | None = None


class AssignmentView(msgspec.Struct, frozen=True):
    """An item as it was given to whoever asks."""

    id: int
    purpose: Purpose
    state: State
    version: int
    layer: Layer
    item: msgspec.Raw
    suggestions: list[dict[str, Any]] | None
    subject: OtherLayer | None
    subjects: list[OtherLayer] | None
    message: str | None
    seconds: float


class AssignmentLine(msgspec.Struct, frozen=True):
    """An assignment in a list."""

    id: int
    purpose: Purpose
    state: State
    version: int
    item: int
    language: str | None
    message: str | None
    seconds: float
    changed_at: datetime


class Next(msgspec.Struct, frozen=True):
    """What to do next, and how much is left of what is known."""

    assignment: AssignmentView | None
    left: int
    stage: Stage


@router.call("POST", "/api/next")
def next_(caller: Writer) -> Next:
    """What to do next: what was sent back, then what is open, then something new; null where there is nothing."""
    studio = caller.studio
    given = next_assignment(studio.store, studio.project, caller.person.id)
    with studio.store.reading() as tx:
        person = tx.person(caller.person.id)
        view = None if given is None else _assignment(tx, caller, given)
        left = count_left(tx, studio.project, person)
    stage = person.stage(studio.project)
    return Next(view, left, "done" if view is None and stage == "work" else stage)


@router.call("GET", "/api/assignments")
def assignments(caller: SignedIn) -> list[AssignmentLine]:
    """One's own assignments, in the order in which they were given."""
    with caller.studio.store.reading() as tx:
        mine = tx.assignments(caller.studio.id, person_id=caller.person.id)
        languages = {item.id: item.language for item in tx.items(caller.studio.id)}
    return [
        view(AssignmentLine, row, item=row.item_id, language=languages.get(row.item_id))
        for row in mine
        if row.state is not State.WITHDRAWN
    ]


@router.call("GET", "/api/assignments/{number}")
def assignment(caller: SignedIn, number: Number) -> AssignmentView:
    """One of one's own assignments, with its item."""
    with caller.studio.store.reading() as tx:
        return _assignment(tx, caller, _own(tx, caller, number))


@router.call("GET", "/api/assignments/{number}/shared", answer=SharedView)
def shared(caller: SignedIn, number: Number) -> msgspec.Raw:
    """Words of the response that occur in the evidence too."""
    with caller.studio.store.reading() as tx:
        item_id = _own(tx, caller, number).item_id
    return shared_words(caller.studio, item_id)


@router.call("POST", "/api/assignments/{number}/events")
def event(caller: Writer, number: Number, body: NewEvent) -> EventResult:
    """Do something to an assignment. Once this answers 200, it is on disk; the same event again answers the same."""
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
    """An assignment, with what is reviewed or checked, or with what is settled."""
    subject: OtherLayer | None = None
    if row.subject_id is not None:
        annotation = tx.assignment(row.subject_id)
        layer = annotation.layer
        if row.purpose is Purpose.REVIEW:
            layer = final_layer(tx, annotation, before=row.id)
        subject = _other(tx, caller, tx.person(annotation.person_id), layer, annotation.id)
    subjects: list[OtherLayer] | None = None
    if row.purpose is Purpose.ADJUDICATE:
        subjects = [
            _other(tx, caller, tx.person_by(public_id=other.by), other.final, other.assignment)
            for other in submissions_of(tx, tx.item(row.item_id))
        ]
    item = item_view(caller.studio, row.item_id)
    return view(AssignmentView, row, item=item, subject=subject, subjects=subjects)


def _other(tx: ReadTransaction, caller: Caller, person: Person, layer: Layer, assignment: int) -> OtherLayer:
    number = tx.numbers(person.project_id)[person.id]
    name = person.name if caller.person.role is Role.LEAD else None
    return OtherLayer(layer, person.public_id, assignment, person.role, number, name)
