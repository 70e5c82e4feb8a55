"""Reviews: somebody else confirms an annotation, corrects it, or sends it back with a reason.

Confirmed and corrected work is accepted once as many reviewers as `work.reviews` asks for have passed it, one after the
other: the second looks at what the first left, a correction where there is one, and decides. What is sent back comes
first in its annotator's queue, with everything that they had marked (hat, section 3.1: at no cost to them), and is
reviewed again. The annotator's layer stays theirs: a correction is the reviewer's layer, and `final_layer` says which
of them counts.

Hidden checks look like all other work, so they are accepted beside it.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from sqlalchemy import and_, exists, func, or_, select

from veriglot.annotate.choosing import AT_WORK, can_judge, in_languages
from veriglot.annotate.store import ItemRole, Purpose, Refused, State
from veriglot.annotate.store import tables as t

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Select

    from veriglot.annotate.layers import Layer
    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Assignment, NewEvent, Person, Reading, Writing

__all__ = [
    "Final",
    "after_review",
    "before_review",
    "final_layer",
    "next_review",
    "refuse_while_reviewed",
    "verdicts",
    "waiting",
]

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
    reviews = tx.assignments(
        subject.project_id, subject_id=subject.id, purpose=Purpose.REVIEW, states=(State.SUBMITTED,)
    )
    return _since(subject, reviews)


def _since(subject: Assignment, reviews: Iterable[Assignment]) -> list[Assignment]:
    """Of its reviews those that were given since it was handed in last."""
    at = subject.submitted_at
    return [] if at is None else [one for one in reviews if one.created_at >= at]


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
    """How often whose work was confirmed, corrected and sent back, by (person, `confirm` | `correct` | `return`).

    Annotators are judged by what became of their layer: once it is accepted, it is confirmed where the layer that
    counts says the same, and otherwise corrected, whoever changed it in between. A second review judges the first
    reviewer too, in the same way. What is sent back counts each time, for its annotator and for whoever had passed it.
    """
    found = Counter(_sent_back(tx, project_id))
    reviews: dict[int | None, list[Assignment]] = {}
    for review in tx.assignments(project_id, purpose=Purpose.REVIEW, states=(State.SUBMITTED,)):
        reviews.setdefault(review.subject_id, []).append(review)
    if reviews:
        for subject in tx.assignments(project_id, purpose=Purpose.ANNOTATE, states=(State.ACCEPTED,)):
            found.update(_judged(subject, _since(subject, reviews.get(subject.id, ()))))
    return dict(found)


def _judged(subject: Assignment, passed: Sequence[Assignment]) -> Iterator[tuple[int, str]]:
    """Whose layers were confirmed or corrected: the annotator's by the last review, a first review by the second."""
    pairs = [(subject, passed[-1])] if passed else []
    for mine, later in (*pairs, *pairwise(passed)):
        yield mine.person_id, "confirm" if _content(mine.layer) == _content(later.layer) else "correct"


def _content(layer: Layer) -> Layer:
    """What a layer says of the item: a mark that was drawn anew has another id, and a note corrects nothing."""
    spans = sorted((msgspec.structs.replace(span, id="", note="") for span in layer.spans), key=msgspec.json.encode)
    return msgspec.structs.replace(
        layer,
        spans=tuple(spans),
        units=tuple(sorted(layer.units, key=lambda unit: (unit.start, unit.end))),
        flags=tuple(sorted(layer.flags)),
        source_flags=tuple(sorted(layer.source_flags)),
        comment="",
        rejected=(),
    )


def _sent_back(tx: Reading, project_id: int) -> Iterator[tuple[int, str]]:
    """Whose work a review sent back: the annotator's, and that of a reviewer who had passed it as it was."""
    review, events = t.assignments.alias(), t.events.alias()
    returned = (
        select(review.c.subject_id)
        .join(events, events.c.assignment_id == review.c.id)
        .where(events.c.project_id == project_id, events.c.kind == "return")
    )
    of, row = t.events.c, t.assignments.c
    told = (
        select(func.coalesce(row.subject_id, row.id), row.person_id, of.kind)
        .join(t.assignments, row.id == of.assignment_id)
        .where(of.kind.in_(("submit", "confirm", "correct", "return")))
        .where(
            or_(
                and_(row.purpose == Purpose.ANNOTATE, row.id.in_(returned)),
                and_(row.purpose == Purpose.REVIEW, row.subject_id.in_(returned)),
            )
        )
        .order_by(of.id)
    )
    hands: dict[int, list[int]] = {}  # by annotation: who handed it in, then who passed it
    for subject_id, person_id, kind in tx.connection.execute(told):
        if kind == "submit":
            hands[subject_id] = [person_id]
        elif kind == "return":
            yield from ((one, "return") for one in hands[subject_id])
        else:
            hands[subject_id].append(person_id)
