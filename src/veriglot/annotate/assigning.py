"""Who gets what: one call gives somebody what they are to do next, and never gives one item to two people twice.

- Annotators: the exam first, if the project has one. Then the items of their languages that everybody shares (the
  first `work.overlap` of each), then items of their own, each for one person, `work.per_person` at most. Hidden checks
  are strewn in at `checks.share`.
- Reviewers: annotations of others that wait for a review, then items of batches that are validated.
- Leads: what they took on to settle, then what reviewers do.

What somebody has begun comes before anything new, on whatever device. What people who left or were shut out had
begun goes to others; it is withdrawn, with its event, and taken up where it was left if it comes back to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import or_, select

from veriglot.annotate import exam, reviewing, validating
from veriglot.annotate.choosing import AT_WORK, can_judge, item_round, next_item, resumed
from veriglot.annotate.preparing import is_prepared, prepare_in
from veriglot.annotate.store import Purpose, State
from veriglot.annotate.store import tables as t
from veriglot.annotate.store.columns import now
from veriglot.annotate.suggesting import suggestions_for

if TYPE_CHECKING:
    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Assignment, Item, Person, Reading, Store, Writing

__all__ = ["assign_next", "give", "left_for", "next_assignment", "take_back", "take_back_from_absent"]


def next_assignment(store: Store, project: Project, person_id: int) -> Assignment | None:
    """What somebody does next: what they have begun, or something new; None where there is nothing for them now.

    Two that ask at once, in one process or several, get different items. None has several reasons, of which
    `exam.standing` and `left_for` tell: the exam waits to be finished (`exam.finish`), the work is done, or others
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
        begun = resumed(tx, person)
    if begun is not None:
        return begun

    def act() -> Assignment | None:
        with store.writing(lock=f"assign {project.slug}") as tx:
            return assign_next(tx, project, person_id)

    return store.again(act)


def assign_next(tx: Writing, project: Project, person_id: int) -> Assignment | None:
    """`next_assignment` inside a transaction, which has to hold the lock `assign SLUG`."""
    person = tx.person(person_id)
    begun = resumed(tx, person)
    if begun is not None or person.revoked_at is not None:
        return begun
    if not is_prepared(tx, project, person.project_id):
        prepare_in(tx, project, person.project_id)
    take_back_from_absent(tx, person.project_id)
    if can_judge(person):
        return reviewing.next_review(tx, project, person) or validating.next_validation(tx, project, person)
    if exam.is_due(person, project):
        return exam.begin(tx, project, person)
    item = next_item(tx, project, person)
    return None if item is None else give(tx, project, item, person)


def give(tx: Writing, project: Project, item: Item, person: Person) -> Assignment:
    """Give an item to annotate; where it was withdrawn from them, they find what they had."""
    round_ = item_round(tx, item)
    earlier = tx.assignments(
        item.project_id, item_id=item.id, person_id=person.id, purpose=Purpose.ANNOTATE, round=round_
    )
    if earlier:
        return tx.move(earlier[0].id, State.OPEN, "assigned_again")
    suggestions = suggestions_for(tx, project, item)
    return tx.assign(item, person.id, Purpose.ANNOTATE, round=round_, suggestions=suggestions)


def take_back(tx: Writing, assignment_id: int, *, by: int | None = None, reason: str = "lead") -> Assignment:
    """Withdraw an assignment: the item can go to somebody else. What was done stays in it and in the history.

    Open reviews of it are withdrawn too. One that is withdrawn already stays as it is.
    """
    old = tx.assignment(assignment_id, lock=True)
    if old.state is State.WITHDRAWN:
        return old
    for review in tx.assignments(old.project_id, subject_id=old.id, states=AT_WORK):
        tx.move(review.id, State.WITHDRAWN, "withdrawn", by=by, payload={"reason": "subject withdrawn"})
    return tx.move(old.id, State.WITHDRAWN, "withdrawn", by=by, payload={"reason": reason})


def take_back_from_absent(tx: Writing, project_id: int) -> list[int]:
    """Withdraw what people had begun who were shut out, failed, or whose link has ended; the ids.

    What they handed in stays: `people.revoke` says so. The exam and what a lead settles stay as well.
    """
    gone = or_(t.people.c.revoked_at.is_not(None), t.people.c.out_at.is_not(None), t.people.c.key_expires_at <= now())
    purposes = (Purpose.ANNOTATE, Purpose.REVIEW, Purpose.VALIDATE)
    found = (
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
    ids = [row[0] for row in tx.connection.execute(found)]
    for id_ in ids:
        take_back(tx, id_, reason="absent")
    return ids


def left_for(tx: Reading, project: Project, person: Person) -> int:
    """How many items wait for somebody now: begun ones, and one more where something new is there for them."""
    begun = len(tx.assignments(person.project_id, person_id=person.id, states=AT_WORK))
    if begun:
        return begun
    if can_judge(person):
        return reviewing.waiting(tx, project, person)
    return int(next_item(tx, project, person) is not None)
