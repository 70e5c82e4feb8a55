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
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import exists, or_, select

from veriglot.studio import exam
from veriglot.studio import tables as t
from veriglot.studio.adjudication import after_adjudication
from veriglot.studio.queue import begun_assignment, can_judge, draw, item_round, next_item
from veriglot.studio.review import (
    after_review,
    after_validation,
    before_review,
    before_validation,
    count_reviewable,
    final_layer,
    next_review,
    next_validation,
    refuse_while_reviewed,
)
from veriglot.studio.suggestions import suggestions_for
from veriglot.studio.tables import AT_WORK, BatchState, Item, ItemRole, Purpose, Refused, State, now

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.studio.layers import Layer
    from veriglot.studio.project import Project
    from veriglot.studio.store import Store
    from veriglot.studio.tables import Assignment, EventResult, NewEvent, Person
    from veriglot.studio.transaction import ReadTransaction, WriteTransaction

__all__ = ["apply_event", "count_left", "next_assignment"]


# What somebody does to an assignment of theirs, with everything that follows from it, in one transaction.
#
# `act` is `Store.append` with the rules: the server and everybody else who carries out people's events call this one.


_ALONE = frozenset({"opened", "save"})  # these change nothing but their own assignment, and are frequent


def apply_event(store: Store, project: Project, person_id: int, assignment_id: int, new: NewEvent) -> EventResult:
    """Carry out an event of a person, and what follows from it; when this returns, it is on disk.

    A review moves the annotation that it looks at, the last check of a batch decides the batch, a settled item gets
    its gold layer. Layers are taken as checked (`layers.check`).

    Raises:
        NotFound: no such assignment of this person.
        Conflict: the assignment has changed since `base_version`, or its state takes no such event; it is kept.
        Refused: a rule speaks against it, such as sending back without a reason; nothing was changed.
    """
    if new.kind == "confirm":
        new = msgspec.structs.replace(new, layer=_reviewed_layer(store, assignment_id, new.layer))
    rules = _Rules(project, new)
    lock = None if new.kind in _ALONE else project.lock
    return store.append(assignment_id, person_id, new, before=rules.before, after=rules.after, lock=lock)


def _reviewed_layer(store: Store, assignment_id: int, sent: Layer | None) -> Layer | None:
    """What is confirmed is the layer that was to be reviewed, whatever the reviewer had tried out."""
    with store.reading() as tx:
        review = tx.assignment(assignment_id)
        if review.subject_id is None:
            return sent
        return final_layer(tx, tx.assignment(review.subject_id), before=review.id).layer


@dataclass(frozen=True)
class _Rules:
    project: Project
    new: NewEvent

    def before(self, tx: WriteTransaction, assignment: Assignment) -> None:
        if self.new.kind == "opened":
            return
        if assignment.purpose is Purpose.REVIEW:
            before_review(tx, assignment, self.new)
        elif assignment.purpose is Purpose.VALIDATE:
            before_validation(tx, assignment)
        elif assignment.purpose is Purpose.EXAM and self.new.kind == "skip":
            raise Refused("An item of the exam cannot be left out.", remedy="Hand it in with what you can say.")
        elif assignment.purpose is Purpose.ANNOTATE and self.new.kind == "reopen":
            refuse_while_reviewed(tx, assignment)
            _refuse_decided(tx, assignment)

    def after(self, tx: WriteTransaction, assignment: Assignment) -> None:
        if assignment.purpose is Purpose.REVIEW:
            after_review(tx, self.project, assignment, self.new)
        elif assignment.purpose is Purpose.VALIDATE:
            after_validation(tx, self.project, assignment)
        elif assignment.purpose is Purpose.ADJUDICATE:
            after_adjudication(tx, assignment, self.new)


def _refuse_decided(tx: ReadTransaction, assignment: Assignment) -> None:
    batch_id = tx.item(assignment.item_id).batch_id
    if batch_id is not None and tx.batch(batch_id).state in {BatchState.VALIDATING, BatchState.ACCEPTED}:
        raise Refused("The batch of this item is validated, or was accepted.", remedy="Tell the lead what to change.")


# What items are for, said once before the work: shared by all, for the exam, or hidden checks.
#
# Items that the project file names for the exam or as checks come with their role; the others are drawn here from the
# data. It is done when somebody first asks for work, and again when more items were imported; what was said stays.


def prepare(store: Store, project: Project) -> None:
    """Say what every item is for. Does no harm when it is called again.

    Raises:
        NotFound: the store does not know the project.
    """
    with store.writing(lock=project.lock) as tx:
        prepare_in(tx, project, tx.project(project.slug).id)


def is_prepared(tx: ReadTransaction, project: Project, project_id: int) -> bool:
    """Whether there is nothing to prepare: every language has its shared items, and what was to be drawn is."""
    counts = tx.tally(project_id, "items", "language", "role")
    languages = {language for language, _ in counts if language is not None}
    return all(not _lacks(tx, project, project_id, counts, language) for language in languages)


def _lacks(
    tx: ReadTransaction, project: Project, project_id: int, counts: dict[tuple[str | None, str], int], language: str
) -> bool:
    entries = project.entries

    def of(role: ItemRole) -> int:
        return counts.get((language, role), 0)

    if not of(ItemRole.NORMAL):
        return False
    if of(ItemRole.OVERLAP) < entries.work.overlap:
        return True
    exam_entry, checks = entries.exam, entries.checks
    if exam_entry is not None and not exam_entry.path and not of(ItemRole.EXAM):
        return bool(_unassigned_with(tx, project_id, language, exam_entry.against))
    if checks is not None and not checks.path and not of(ItemRole.CHECK):
        return bool(_unassigned_with(tx, project_id, language, "gold"))
    return False


def prepare_in(tx: WriteTransaction, project: Project, project_id: int) -> None:
    """`prepare` inside a transaction, which has to hold the lock `assign SLUG`."""
    entries = project.entries
    counts = tx.tally(project_id, "items", "language", "role")
    for language in sorted({language for language, _ in counts if language is not None}):
        roles = {role: counts.get((language, role), 0) for role in ItemRole}
        free = tx.items(project_id, role=ItemRole.NORMAL, language=language)
        if entries.exam is not None and not entries.exam.path and not roles[ItemRole.EXAM]:
            usable = _unassigned_with(tx, project_id, language, entries.exam.against)
            chosen = exam.draw_pool(tx, project, [item for item in free if item.id in usable])
            free = _set_role(tx, free, chosen, ItemRole.EXAM)
        if entries.checks is not None and not entries.checks.path and not roles[ItemRole.CHECK]:
            usable = _unassigned_with(tx, project_id, language, "gold")
            most = math.ceil(entries.checks.share * (len(free) + roles[ItemRole.OVERLAP]))
            fitting = draw([item for item in free if item.id in usable], _key, project.slug, "checks")
            chosen = {item.id for item in fitting[: min(most, max(1, len(fitting) // 2))]}
            free = _set_role(tx, free, chosen, ItemRole.CHECK)
        missing = max(0, entries.work.overlap - roles[ItemRole.OVERLAP])
        _set_role(tx, free, {item.id for item in free[:missing]}, ItemRole.OVERLAP)


def _key(item: Item) -> str:
    return item.key


def _set_role(tx: WriteTransaction, items: list[Item], chosen: Iterable[int], role: ItemRole) -> list[Item]:
    """Give a role to the chosen ones; the rest."""
    ids = set(chosen)
    tx.set_role(sorted(ids), role)
    return [item for item in items if item.id not in ids]


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
    return {row[0] for row in tx.connection.execute(statement)}


def next_assignment(store: Store, project: Project, person_id: int) -> Assignment | None:
    """What somebody does next: what they have begun, or something new; None where there is nothing for them now.

    Two that ask at once, in one process or several, get different items. None has several reasons, of which
    `exam.exam_status` and `count_left` tell: the exam waits to be finished (`exam.finish`), the work is done, or others
    have to come first.

    Args:
        store: where the work is kept.
        project: the project, which the store knows.
        person_id: who asks.

    Raises:
        NotFound: no such person.
        Refused: the project has an exam and no items for it in this person's languages.
    """
    with store.reading() as tx:
        person = tx.person(person_id)
        if person.revoked_at is not None:
            return None
        begun = begun_assignment(tx, person)
    if begun is not None:
        return begun
    return store.transact(lambda tx: assign_next(tx, project, person_id), lock=project.lock)


def assign_next(tx: WriteTransaction, project: Project, person_id: int) -> Assignment | None:
    """`next_assignment` inside a transaction, which has to hold the lock `assign SLUG`."""
    person = tx.person(person_id)
    begun = begun_assignment(tx, person)
    if begun is not None or person.revoked_at is not None:
        return begun
    if not is_prepared(tx, project, person.project_id):
        prepare_in(tx, project, person.project_id)
    withdraw_from_absent(tx, person.project_id)
    if can_judge(person):
        return next_review(tx, project, person) or next_validation(tx, project, person)
    if exam.is_due(person, project):
        return exam.begin(tx, project, person)
    item = next_item(tx, project, person)
    return None if item is None else assign_item(tx, project, item, person)


def assign_item(tx: WriteTransaction, project: Project, item: Item, person: Person) -> Assignment:
    """Give an item to annotate; where it was withdrawn from them, they find what they had."""
    round_ = item_round(tx, item)
    earlier = tx.assignments(
        item.project_id, item_id=item.id, person_id=person.id, purpose=Purpose.ANNOTATE, round=round_
    )
    if earlier:
        return tx.move(earlier[0].id, State.OPEN, "assigned_again")
    suggestions = suggestions_for(tx, project, item)
    return tx.assign(item, person.id, Purpose.ANNOTATE, round=round_, suggestions=suggestions)


def withdraw(tx: WriteTransaction, assignment_id: int, *, by: int | None = None, reason: str = "lead") -> Assignment:
    """Withdraw an assignment: the item can go to somebody else. What was done stays in it and in the history.

    Open reviews of it are withdrawn too. One that is withdrawn already stays as it is.
    """
    old = tx.assignment(assignment_id, lock=True)
    if old.state is State.WITHDRAWN:
        return old
    for review in tx.assignments(old.project_id, subject_id=old.id, states=AT_WORK):
        tx.move(review.id, State.WITHDRAWN, "withdrawn", by=by, payload={"reason": "subject withdrawn"})
    return tx.move(old.id, State.WITHDRAWN, "withdrawn", by=by, payload={"reason": reason})


def withdraw_from_absent(tx: WriteTransaction, project_id: int) -> list[int]:
    """Withdraw what people had begun who were shut out, failed, or whose link has ended; the ids.

    What they handed in stays: `people.revoke` says so. The exam and what a lead settles stay as well.
    """
    gone = or_(t.people.c.revoked_at.is_not(None), t.people.c.out_at.is_not(None), t.people.c.key_expires_at <= now())
    purposes = (Purpose.ANNOTATE, Purpose.REVIEW, Purpose.VALIDATE)
    statement = (
        select(t.assignments.c.id)
        .join(t.people, t.people.c.id == t.assignments.c.person_id)
        .where(
            t.assignments.c.project_id == project_id,
            t.assignments.c.purpose.in_(purposes),
            t.assignments.c.state.in_(AT_WORK),
            gone,
        )
        .order_by(t.assignments.c.id)
    )
    ids = [row[0] for row in tx.connection.execute(statement)]
    for id_ in ids:
        withdraw(tx, id_, reason="absent")
    return ids


def count_left(tx: ReadTransaction, project: Project, person: Person) -> int:
    """How many items wait for somebody now: begun ones, and one more where something new is there for them."""
    begun = len(tx.assignments(person.project_id, person_id=person.id, states=AT_WORK))
    if begun:
        return begun
    if can_judge(person):
        return count_reviewable(tx, project, person)
    return int(next_item(tx, project, person) is not None)
