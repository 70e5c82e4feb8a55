"""Reviews: somebody else confirms an annotation, corrects it, or sends it back with a reason.

Confirmed and corrected work is accepted once as many reviewers as `work.reviews` asks for have passed it, one after the
other: the second looks at what the first left, a correction where there is one, and decides. What is sent back comes
first in its annotator's queue, with everything that they had marked (hat, section 3.1: at no cost to them), and is
reviewed again. The annotator's layer stays theirs: a correction is the reviewer's layer, and `final_layer` says which
of them counts.

Hidden checks look like all other work, so they are accepted beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import exists, func, select

from veriglot.annotate.choosing import AT_WORK, can_judge, in_languages
from veriglot.annotate.store import ItemRole, Purpose, Refused, State
from veriglot.annotate.store import tables as t

if TYPE_CHECKING:
    from sqlalchemy import Select

    from veriglot.annotate.layers import Layer
    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Assignment, NewEvent, Person, Reading, Writing

__all__ = ["Final", "after_review", "before_review", "final_layer", "next_review", "refuse_while_reviewed", "waiting"]

_REVIEWED = (ItemRole.NORMAL, ItemRole.OVERLAP)


class Final(NamedTuple):
    """What counts of an annotation.

    Attributes:
        layer: the annotator's, or the reviewer's who corrected it.
        by: whose layer it is.
        reviewers: who passed it, in order.
    """

    layer: Layer
    by: int
    reviewers: tuple[int, ...]


def next_review(tx: Writing, project: Project, person: Person) -> Assignment | None:
    """Give somebody an annotation to review: of their languages, not their own, the one that has waited longest.

    Its layer is the annotator's, or a first reviewer's correction, to be corrected where that is needed.
    """
    row = tx.connection.execute(_candidates(project, person).limit(1)).first()
    if row is None:
        return None
    subject = tx.assignment(row[0], lock=True)
    rounds = len(tx.assignments(project_id=subject.project_id, subject_id=subject.id, purpose=Purpose.REVIEW))
    item = tx.item(subject.item_id)
    return tx.assign(
        item, person.id, Purpose.REVIEW, round=rounds, subject_id=subject.id, layer=final_layer(tx, subject).layer
    )


def waiting(tx: Reading, project: Project, person: Person) -> int:
    """How many annotations somebody could review now."""
    return tx.count(_candidates(project, person).order_by(None))


def _candidates(project: Project, person: Person) -> Select[Any]:
    """The annotations that this person could review."""
    subject, review, other = t.assignments.alias(), t.assignments.alias(), t.assignments.alias()
    of_subject = (review.c.subject_id == subject.c.id, review.c.purpose == Purpose.REVIEW)
    open_ = exists().where(*of_subject, review.c.state.in_(AT_WORK))
    since = review.c.created_at >= subject.c.submitted_at  # passed as it is now, or left out
    had = exists().where(
        *of_subject, review.c.person_id == person.id, since, review.c.state.in_((State.SUBMITTED, State.SKIPPED))
    )
    own = exists().where(
        other.c.item_id == subject.c.item_id,
        other.c.person_id == person.id,
        other.c.purpose == Purpose.ANNOTATE,
        other.c.state != State.WITHDRAWN,
    )
    allowed = can_judge(person) and project.entries.work.reviews > 0
    return (
        select(subject.c.id)
        .join(t.items, t.items.c.id == subject.c.item_id)
        .where(
            subject.c.project_id == (person.project_id if allowed else -1),
            subject.c.purpose == Purpose.ANNOTATE,
            subject.c.state == State.SUBMITTED,
            t.items.c.role.in_(_REVIEWED),
            *in_languages(person),
            ~open_,
            ~had,
            ~own,
        )
        .order_by(subject.c.submitted_at, subject.c.id)
    )


def before_review(tx: Reading, review: Assignment, new: NewEvent) -> None:
    """Refuse what a reviewer cannot say.

    Raises:
        Refused: work is sent back without a reason.
    """
    if new.kind == "return" and not (new.comment or "").strip():
        raise Refused("Work is sent back with a reason.", remedy="Say what is to be done, in `comment`.")
    if new.kind in {"confirm", "correct", "return"}:
        assert review.subject_id is not None
        subject = tx.assignment(review.subject_id)
        if subject.state is not State.SUBMITTED:
            raise Refused(f"The annotation is {subject.state.value}, and takes no review.")


def after_review(tx: Writing, project: Project, review: Assignment, new: NewEvent) -> None:
    """What a review does to the annotation that it looks at."""
    if new.kind not in {"confirm", "correct", "return"}:
        return
    assert review.subject_id is not None
    subject = tx.assignment(review.subject_id, lock=True)
    said = {"review": review.id, "verdict": new.kind}
    if new.kind == "return":
        tx.move(
            subject.id,
            State.RETURNED,
            "returned",
            by=review.person_id,
            message=(new.comment or "").strip(),
            payload=said,
        )
        return
    if len(_passed(tx, subject)) >= project.entries.work.reviews:
        tx.move(subject.id, State.ACCEPTED, "accepted", by=review.person_id, payload=said)
        _accept_checks(tx, subject)


def _passed(tx: Reading, subject: Assignment) -> list[Assignment]:
    """Reviews that passed the annotation as it stands, in order."""
    if subject.submitted_at is None:
        return []
    reviews = tx.assignments(
        subject.project_id, subject_id=subject.id, purpose=Purpose.REVIEW, states=(State.SUBMITTED,)
    )
    return [one for one in reviews if one.created_at >= subject.submitted_at]


def _accept_checks(tx: Writing, subject: Assignment) -> None:
    """Accept the annotator's hidden checks that were handed in before: else these alone would never be accepted."""
    found = select(t.assignments.c.id).where(
        t.assignments.c.person_id == subject.person_id,
        t.assignments.c.purpose == Purpose.ANNOTATE,
        t.assignments.c.state == State.SUBMITTED,
        t.assignments.c.submitted_at <= subject.submitted_at,
        t.assignments.c.item_id == t.items.c.id,
        t.items.c.role == ItemRole.CHECK,
    )
    for (id_,) in tx.connection.execute(found).all():
        tx.move(id_, State.ACCEPTED, "accepted", payload={"beside": subject.id})


def refuse_while_reviewed(tx: Reading, assignment: Assignment) -> None:
    """Refuse to open an annotation again that somebody looks at.

    Raises:
        Refused: a review or a validation of it is open, or one reviewer of several has passed it.
    """
    looked = tx.assignments(assignment.project_id, subject_id=assignment.id, states=AT_WORK)
    if looked or _passed(tx, assignment):
        raise Refused("Somebody is looking at this now.", remedy="Wait until they are through with it.")


def final_layer(tx: Reading, annotation: Assignment, *, before: int | None = None) -> Final:
    """What counts of an annotation: its own layer, or that of the reviewer who corrected it last.

    Args:
        tx: the transaction.
        annotation: the annotator's assignment.
        before: a review of it, to leave it and later ones aside: what it looks at, or looked at.
    """
    passed = [one for one in _passed(tx, annotation) if before is None or one.id < before]
    layer = passed[-1].layer if passed else annotation.layer
    author = next(one for one in (annotation, *passed) if one.layer == layer)  # a confirmation is nobody's layer
    return Final(layer, author.person_id, tuple(one.person_id for one in passed))


def verdicts(tx: Reading, project_id: int) -> dict[tuple[int, str], int]:
    """How often whose annotations were confirmed, corrected and sent back, by (annotator, verdict)."""
    review, subject = t.assignments.alias(), t.assignments.alias()
    kinds = ("confirm", "correct", "return")
    found = (
        select(subject.c.person_id, t.events.c.kind, func.count())
        .select_from(t.events)
        .join(review, review.c.id == t.events.c.assignment_id)
        .join(subject, subject.c.id == review.c.subject_id)
        .where(t.events.c.project_id == project_id, t.events.c.kind.in_(kinds))
        .group_by(subject.c.person_id, t.events.c.kind)
    )
    return {(person, kind): int(count) for person, kind, count in tx.connection.execute(found)}
