"""Reviews and validation: annotations are confirmed, corrected or returned; batches are checked on a sample.

Confirmed and corrected annotations are accepted after `work.reviews` reviewers, one after the other: the second sees
the result of the first, with its correction if there is one, and decides. Returned work comes first in its annotator's
queue, with all earlier marks (HAT, section 3.1: at no cost to them), and is reviewed again. The annotator's layer is
never changed: a correction is the reviewer's layer, and `final_layer` returns the layer that counts.

Hidden checks must look like other work, so they are accepted too, without a review.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Select, and_, case, exists, func, or_, select

from veriglot.records.settings import Record, StrictRecord
from veriglot.studio import tables as t
from veriglot.studio.comparison import Comparison, Counts, final_states
from veriglot.studio.exam import draw
from veriglot.studio.store import ReadTransaction, WriteTransaction, transactional
from veriglot.studio.tables import (
    AT_WORK,
    WORK_ROLES,
    Assignment,
    Batch,
    BatchState,
    Item,
    ItemRole,
    NewEvent,
    NotFound,
    Person,
    Purpose,
    Refused,
    Role,
    RowId,
    State,
)
from veriglot.studio.web import Lead, LeadWriter, Number, Router, view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from veriglot.studio.layers import Layer
    from veriglot.studio.project import Project

__all__ = [
    "Comment",
    "after_event",
    "after_exclusion",
    "before_event",
    "conversations",
    "count_reviewable",
    "count_unread",
    "count_verdicts",
    "final_layer",
    "next_judgement",
    "ready_batches",
    "router",
    "stuck_batches",
    "thread_of",
    "written",
]


_VERDICTS = ("confirm", "correct", "return")
assignment_row, item_row, batch_row = t.assignments.c, t.items.c, t.batches.c  # in statements


def next_judgement(tx: WriteTransaction, project: Project, person: Person) -> Assignment | None:
    """Assign a person an annotation to review, or an item of a batch to check; None if there is neither."""
    return _next_review(tx, project, person) or _next_check(tx, project, person)


def _next_review(tx: WriteTransaction, project: Project, person: Person) -> Assignment | None:
    """Assign an annotation in the person's languages, not their own: the highest priority, then the longest waiting.

    Its initial layer is the annotator's, or a first reviewer's correction.
    """
    id_ = tx.connection.execute(_candidates(project, person).limit(1)).scalar()
    if id_ is None:
        return None
    subject = tx.assignment(id_, lock=True)
    rounds = len(tx.assignments(subject_id=subject.id, purpose=Purpose.REVIEW))
    item, layer = tx.item(subject.item_id), final_layer(tx, subject)
    return tx.assign(item, person.id, Purpose.REVIEW, round=rounds, subject_id=subject.id, layer=layer)


def count_reviewable(tx: ReadTransaction, project: Project, person: Person) -> int:
    """How many annotations a person could review now."""
    return tx.count(_candidates(project, person).order_by(None))


def _candidates(project: Project, person: Person) -> Select[Any]:
    """The annotations that this person could review."""
    subject, review, other = t.assignments.alias(), t.assignments.alias(), t.assignments.alias()
    of_subject = (review.c.subject_id == subject.c.id, review.c.purpose == Purpose.REVIEW)
    open_ = exists().where(*of_subject, review.c.state.in_(AT_WORK))
    since = review.c.created_at >= subject.c.submitted_at  # passed in its current state, or skipped
    had = exists().where(
        *of_subject, review.c.person_id == person.id, since, review.c.state.in_((State.SUBMITTED, State.SKIPPED))
    )
    own = exists().where(
        other.c.item_id == subject.c.item_id,
        other.c.person_id == person.id,
        other.c.purpose == Purpose.ANNOTATE,
        other.c.state != State.WITHDRAWN,
    )
    allowed = person.can_judge and project.entries.work.reviews > 0
    return (
        select(subject.c.id)
        .join(t.items, item_row.id == subject.c.item_id)
        .where(
            subject.c.project_id == (person.project_id if allowed else -1),
            subject.c.purpose == Purpose.ANNOTATE,
            subject.c.state == State.SUBMITTED,
            item_row.role.in_(WORK_ROLES),
            *person.languages(),
            ~open_,
            ~had,
            ~own,
        )
        .order_by(item_row.priority.desc(), subject.c.submitted_at, subject.c.id)
    )


def before_event(tx: ReadTransaction, assignment: Assignment, new: NewEvent) -> None:
    """Reject events that reviews and validation do not allow.

    Raises:
        Refused: work is returned without a reason, the reviewed annotation is no longer available, the batch of a check
            is decided, or an annotation is reopened that is under review or was validated.
    """
    if assignment.purpose is Purpose.REVIEW and new.kind in _VERDICTS:
        if new.kind == "return" and not (new.comment or "").strip():
            raise Refused("Work is sent back with a reason.", "Say what is to be done, in `comment`.")
        state = _reviewed(tx, assignment).state
        if state is not State.SUBMITTED:
            raise Refused(f"The annotation is {state.value}, and takes no review.")
    elif assignment.purpose is Purpose.VALIDATE:
        batch = _batch_of(tx, assignment)
        if batch is None or batch.state is not BatchState.VALIDATING or batch.round != assignment.round:
            raise Refused("This batch is decided already.")
    elif assignment.purpose is Purpose.ANNOTATE and new.kind == "reopen":
        if tx.assignments(subject_id=assignment.id, state=AT_WORK) or _passed(tx, assignment):
            raise Refused("Somebody is looking at this now.", "Wait until they are through with it.")
        batch = _batch_of(tx, assignment)
        if batch is not None and batch.state in {BatchState.VALIDATING, BatchState.ACCEPTED}:
            remedy = "Tell the lead what to change."
            raise Refused("The batch of this item is validated, or was accepted.", remedy)


def after_event(tx: WriteTransaction, project: Project, assignment: Assignment, new: NewEvent) -> None:
    """The effect of a review on its annotation, and of the last check of a batch on the batch."""
    if assignment.purpose is Purpose.REVIEW and new.kind in _VERDICTS:
        _after_review(tx, project, assignment, new)
    elif assignment.purpose is Purpose.VALIDATE and assignment.state is State.SUBMITTED:
        batch = _batch_of(tx, assignment)
        assert batch is not None
        _decide_when_checked(tx, project, batch)


def _reviewed(tx: ReadTransaction, review: Assignment, *, lock: bool = False) -> Assignment:
    assert review.subject_id is not None
    return tx.assignment(review.subject_id, lock=lock)


def _after_review(tx: WriteTransaction, project: Project, review: Assignment, new: NewEvent) -> None:
    subject = _reviewed(tx, review, lock=True)
    payload: dict[str, Any] = {"review": review.id, "verdict": new.kind}
    if new.kind == "return":
        message = (new.comment or "").strip()
        tx.move(subject.id, State.RETURNED, by=review.person_id, message=message, **payload)
        return
    if len(_passed(tx, subject)) >= project.entries.work.reviews:
        tx.move(subject.id, State.ACCEPTED, by=review.person_id, **payload)
        _accept_checks(tx, subject)


def _passed(tx: ReadTransaction, subject: Assignment) -> list[Assignment]:
    """Reviews that passed the current state of the annotation, in order."""
    passed = tx.assignments(subject_id=subject.id, purpose=Purpose.REVIEW, state=State.SUBMITTED)
    return _since_submission(subject, passed)


def _since_submission(subject: Assignment, reviews: Iterable[Assignment]) -> list[Assignment]:
    """The reviews that were assigned after the last submission."""
    at = subject.submitted_at
    return [] if at is None else [review for review in reviews if review.created_at >= at]


def _accept_checks(tx: WriteTransaction, subject: Assignment) -> None:
    """Accept the annotator's earlier submitted hidden checks, which have no review of their own."""
    statement = select(assignment_row.id).where(
        assignment_row.person_id == subject.person_id,
        assignment_row.purpose == Purpose.ANNOTATE,
        assignment_row.state == State.SUBMITTED,
        assignment_row.submitted_at <= subject.submitted_at,
        assignment_row.item_id == item_row.id,
        item_row.role == ItemRole.CHECK,
    )
    for id_ in tx.ids(statement):
        tx.move(id_, State.ACCEPTED, beside=subject.id)


def final_layer(tx: ReadTransaction, annotation: Assignment, *, before: int | None = None) -> Layer:
    """The layer of an annotation that counts: its own, or that of the last reviewer who corrected it.

    With `before` (the id of a review), the layer that this review sees or saw.
    """
    passed = [row for row in _passed(tx, annotation) if before is None or row.id < before]
    return passed[-1].layer if passed else annotation.layer


def final_layers(tx: ReadTransaction, project_id: int) -> Callable[[Assignment], Layer]:
    """`final_layer` for any annotation of a project; reads the reviews only once."""
    reviews = _reviews(tx, project_id)

    def final(annotation: Assignment) -> Layer:
        passed = _since_submission(annotation, reviews.get(annotation.id, ()))
        return passed[-1].layer if passed else annotation.layer

    return final


def _reviews(tx: ReadTransaction, project_id: int) -> dict[int | None, list[Assignment]]:
    """The submitted reviews of a project, by annotation."""
    reviews: dict[int | None, list[Assignment]] = {}
    for review in tx.assignments(project_id, purpose=Purpose.REVIEW, state=State.SUBMITTED):
        reviews.setdefault(review.subject_id, []).append(review)
    return reviews


def count_verdicts(tx: ReadTransaction, project_id: int) -> dict[tuple[int, str], int]:
    """Counts of confirmed, corrected and returned work, by (person, `confirm` | `correct` | `return`).

    An accepted annotation counts as confirmed if its final layer equals the annotator's, else as corrected, whoever
    changed it. A second review judges the first reviewer in the same way. Each return counts, for the annotator and for
    a reviewer who had passed the annotation.
    """
    counts = Counter(_sent_back(tx, project_id))
    reviews = _reviews(tx, project_id)
    if reviews:
        for subject in tx.assignments(project_id, purpose=Purpose.ANNOTATE, state=State.ACCEPTED):
            passed = _since_submission(subject, reviews.get(subject.id, ()))
            # Compare the annotator's layer with the last review, and a first review with the second.
            for mine, later in (*((subject, last) for last in passed[-1:]), *pairwise(passed)):
                same = _content(mine.layer) == _content(later.layer)
                counts[mine.person_id, "confirm" if same else "correct"] += 1
    return dict(counts)


def _content(layer: Layer) -> Layer:
    """The relevant content of a layer: ids of marks and notes do not matter."""
    spans = sorted((replace(span, id="", note="") for span in layer.spans), key=msgspec.json.encode)
    return replace(
        layer,
        spans=tuple(spans),
        units=tuple(sorted(layer.units, key=lambda unit: (unit.start, unit.end))),
        flags=tuple(sorted(layer.flags)),
        source_flags=tuple(sorted(layer.source_flags)),
        comment="",
        rejected=(),
    )


def _sent_back(tx: ReadTransaction, project_id: int) -> Iterator[tuple[int, str]]:
    """Whose work a review returned: the annotator's, and that of a reviewer who had passed it unchanged."""
    wanted = {Purpose.ANNOTATE: ("submit",), Purpose.REVIEW: _VERDICTS}
    steps = [step for step in tx.steps(project_id) if step.purpose in wanted and step.kind in wanted[step.purpose]]
    returned = {step.annotation for step in steps if step.kind == "return"}
    hands: dict[int | None, list[int]] = {}  # by annotation: who submitted it, then who passed it
    for step in steps:
        if step.annotation not in returned or step.person_id is None:
            continue
        if step.kind == "submit":
            hands[step.annotation] = [step.person_id]
        elif step.kind == "return":
            yield from ((person, "return") for person in hands[step.annotation])
        else:
            hands[step.annotation].append(step.person_id)


# Batches: others check a random part of the annotations; below the threshold the whole batch is returned.
#
# After HAT (section 3.2): random subsets are re-checked, precision and recall are recomputed, and a batch that fails is
# annotated again. A batch is ready when the annotations of all its items are final (and reviewed, if there are
# reviews). Then reviewers who did not work on it get a random `validation.share` of it; they start from the annotation
# and correct it. Their layers are the reference for precision and recall, over characters of spans (over units, if
# units or pairs are labelled).
#
# A returned batch starts its next round: its annotations are withdrawn and its items are free again. The old
# annotations stay in the store, under the previous round.


def ready_batches(tx: ReadTransaction, project: Project, project_id: int) -> set[int]:
    """The batches of a project that can be validated now."""
    if project.entries.validation is None:
        return set()
    waiting = (State.OPEN, State.RETURNED, *((State.SUBMITTED,) if project.entries.work.reviews else ()))
    mine = (assignment_row.item_id == item_row.id, assignment_row.purpose == Purpose.ANNOTATE)
    begun = exists().where(*mine, assignment_row.state.in_(waiting))
    missing = case((and_(item_row.role.in_(WORK_ROLES), or_(t.is_missing(project), begun)), 1), else_=0)
    statement = (
        select(batch_row.id)
        .join(t.items, item_row.batch_id == batch_row.id)
        .where(batch_row.project_id == project_id, batch_row.state.in_((BatchState.OPEN, BatchState.RETURNED)))
        .group_by(batch_row.id)
        .having(func.sum(missing) == 0)
    )
    return set(tx.ids(statement))


@transactional
def validate(tx: WriteTransaction, project: Project, batch_id: int, *, by: int | None = None) -> Batch:
    """Start the validation of a batch now, with its finished annotations."""
    batch = tx.batch(batch_id)
    if project.entries.validation is None:
        raise Refused("This project validates no batches.", "Add a table [validation] to its file.")
    if batch.state not in {BatchState.OPEN, BatchState.RETURNED}:
        raise Refused(f"The batch is {batch.state.value}.")
    if not _subjects(tx, project, batch):
        raise Refused("Nothing of the batch is through annotation and review.")
    return _begin(tx, project, batch, by)


def _next_check(tx: WriteTransaction, project: Project, person: Person) -> Assignment | None:
    """An item of a batch to check; starts the validation of a ready batch."""
    if project.entries.validation is None or not person.can_judge:
        return None
    through = ready_batches(tx, project, person.project_id)
    for batch in tx.batches(person.project_id):
        if person.works_in is not None and batch.language not in person.works_in:
            continue
        current = _begin(tx, project, batch, None) if batch.id in through else batch
        if current.state is not BatchState.VALIDATING:
            continue
        for subject in _drawn(tx, current):
            if _may_check(tx, current, subject, person):
                item, layer, round_ = tx.item(subject.item_id), final_layer(tx, subject), current.round
                earlier = _checks(tx, current, subject.id, (State.WITHDRAWN,), person_id=person.id)
                if earlier:
                    return tx.move(earlier[0].id, State.OPEN, kind="assigned_again")
                return tx.assign(item, person.id, Purpose.VALIDATE, round=round_, subject_id=subject.id, layer=layer)
    return None


def stuck_batches(tx: ReadTransaction, project_id: int) -> list[int]:
    """Numbers of batches under validation whose remaining checks nobody here may do, because all worked on them."""
    judges = [person for person in tx.people(project_id) if person.can_judge]
    numbers = []
    for batch in tx.batches(project_id):
        able = [row for row in judges if row.works_in is None or batch.language in row.works_in]
        for subject in _drawn(tx, batch):
            taken = _checks(tx, batch, subject.id, (*AT_WORK, State.SUBMITTED))
            if not taken and not any(_may_check(tx, batch, subject, row) for row in able):
                numbers.append(batch.number)
                break
    return numbers


def _drawn(tx: ReadTransaction, batch: Batch) -> list[Assignment]:
    """The annotations drawn for a check, without those of items that a lead excluded since."""
    subjects = map(tx.assignment, batch.drawn)
    return [subject for subject in subjects if tx.item(subject.item_id).role in WORK_ROLES]


def _checks(
    tx: ReadTransaction, batch: Batch, subject_id: int, states: tuple[State, ...], **narrowed: int
) -> list[Assignment]:
    """The checks of an annotation in the current round of its batch."""
    purpose = Purpose.VALIDATE
    return tx.assignments(subject_id=subject_id, purpose=purpose, round=batch.round, state=states, **narrowed)


def _may_check(tx: ReadTransaction, batch: Batch, subject: Assignment, person: Person) -> bool:
    """Whether an annotation still waits for a check, and this person did not work on it."""
    for row in tx.assignments(item_id=subject.item_id, person_id=person.id):
        hand = row.purpose in {Purpose.ANNOTATE, Purpose.REVIEW}
        checked = row.purpose is Purpose.VALIDATE and row.round == batch.round
        if row.state is not State.WITHDRAWN and (hand or checked):
            return False
    return not _checks(tx, batch, subject.id, (*AT_WORK, State.SUBMITTED))


def _decide_when_checked(tx: WriteTransaction, project: Project, batch: Batch) -> None:
    """After the last check of a batch: compute precision and recall, then accept the batch or return it."""
    drawn = _drawn(tx, batch)
    # a check that was skipped, done by another person and then resumed exists twice: one counts
    done = {row.id: check for row in drawn for check in _checks(tx, batch, row.id, (State.SUBMITTED,))}
    if len(done) == len(drawn):
        _decide(tx, project, batch, [(row, done[row.id]) for row in drawn])


def after_exclusion(tx: WriteTransaction, project: Project, item: Item, *, by: int | None) -> None:
    """Continue the validation of an excluded item's batch: decide it, or draw again if nothing drawn is left."""
    batch = None if item.batch_id is None else tx.batch(item.batch_id)
    if batch is None or batch.state is not BatchState.VALIDATING:
        return
    if _drawn(tx, batch):
        _decide_when_checked(tx, project, batch)
    else:
        _begin(tx, project, batch, by)


def _decide(tx: WriteTransaction, project: Project, batch: Batch, checked: list[tuple[Assignment, Assignment]]) -> None:
    entry = project.entries.validation
    assert entry is not None
    counts = Counts.total(
        Comparison(project.form, tx.sample(subject.item_id)).counts(final_layer(tx, subject), check.layer)
        for subject, check in checked
    )
    passed = counts.reaches(entry.threshold)
    figures = _with_round(
        batch,
        checked=len(checked),
        precision=counts.precision,
        recall=counts.recall,
        marked=counts.given,
        wanted=counts.wanted,
        both=counts.both,
        threshold=entry.threshold,
        passed=passed,
        by=sorted({tx.person(check.person_id).public_id for _, check in checked}),
    )
    for _, check in checked:
        tx.move(check.id, State.ACCEPTED, batch=batch.id)
    if passed:
        tx.update_batch(batch.id, "batch_accepted", state=BatchState.ACCEPTED, figures=figures)
        return
    _send_back(tx, batch)
    tx.update_batch(batch.id, "batch_returned", state=BatchState.RETURNED, round=batch.round + 1, figures=figures)


def _with_round(batch: Batch, **account: Any) -> dict[str, Any]:
    """The results of a batch with those of the finished round."""
    return {"drawn": [], "rounds": [*batch.rounds, {"round": batch.round, **account}]}


def _send_back(tx: WriteTransaction, batch: Batch) -> None:
    """Withdraw all annotations of a batch and their reviews; its items are free again."""
    for item in _items(tx, batch):
        for row in tx.assignments(item_id=item.id):
            judged = row.purpose in {Purpose.REVIEW, Purpose.VALIDATE} and row.state in AT_WORK
            annotated = row.purpose is Purpose.ANNOTATE and row.state is not State.WITHDRAWN
            if judged or annotated:
                tx.move(row.id, State.WITHDRAWN, reason="batch sent back", batch=batch.id, round=batch.round)


def _begin(tx: WriteTransaction, project: Project, batch: Batch, by: int | None) -> Batch:
    entry = project.entries.validation
    assert entry is not None
    subjects = _subjects(tx, project, batch)
    if not subjects:  # everything was skipped: there is nothing to check, and nothing to return
        empty = _with_round(batch, checked=0, precision=None, recall=None, passed=True, by=[])
        tx.update_batch(batch.id, "batch_accepted", by=by, state=BatchState.ACCEPTED, figures=empty)
        return tx.batch(batch.id)
    keys = {item.id: item.key for item in _items(tx, batch)}
    many = max(1, math.ceil(entry.share * len(subjects)))
    words = entry.seed, batch.number, batch.round
    order = draw(subjects, lambda subject: f"{keys[subject.item_id]} {subject.id}", *words)
    figures = {"drawn": sorted(subject.id for subject in order[:many]), "rounds": batch.rounds}
    tx.update_batch(batch.id, "validation_begun", by=by, state=BatchState.VALIDATING, figures=figures)
    return tx.batch(batch.id)


def _subjects(tx: ReadTransaction, project: Project, batch: Batch) -> list[Assignment]:
    """The finished annotations of a batch, without skipped ones."""
    through = final_states(project)
    return [
        row
        for item in _items(tx, batch)
        for row in tx.assignments(item_id=item.id, purpose=Purpose.ANNOTATE, state=through)
    ]


def _items(tx: ReadTransaction, batch: Batch) -> list[Item]:
    return tx.items(batch.project_id, batch_id=batch.id, role=WORK_ROLES)


def _batch_of(tx: ReadTransaction, assignment: Assignment) -> Batch | None:
    batch_id = tx.item(assignment.item_id).batch_id
    return None if batch_id is None else tx.batch(batch_id)


# Messages about an annotation: comments, and reasons for returning work.


_WRITTEN = ("comment", "return")


class Comment(Record):
    """A comment, `mine` if the reader wrote it; `name` is only for leads."""

    role: Role
    number: int
    name: str | None
    mine: bool
    at: datetime
    text: str


def written(text: str | None) -> str:
    """A comment without outer spaces.

    Raises:
        Refused: it is empty.
    """
    if not (text or "").strip():
        raise Refused("A comment says something.", "Send its text in `comment`.")
    return (text or "").strip()


def thread_of(row: Assignment) -> int | None:
    """The annotation that an assignment belongs to; None if there is nobody to write to."""
    return row.id if row.purpose is Purpose.ANNOTATE else row.subject_id


def conversations(tx: ReadTransaction, reader: Person, item_id: int | None = None) -> dict[int, list[Comment]]:
    """The comments in the reader's project, or on one item, in order, by annotation."""
    people, numbers = {row.id: row for row in tx.people(reader.project_id)}, tx.numbers(reader.project_id)
    of = t.events.c
    part = of.project_id == reader.project_id if item_id is None else of.item_id == item_id
    thread = func.coalesce(assignment_row.subject_id, assignment_row.id)
    query = (
        select(thread, of.person_id, of.at, of.payload)
        .join(t.assignments, assignment_row.id == of.assignment_id)
        .where(part, of.kind.in_(_WRITTEN))
        .order_by(of.id)
    )
    result: dict[int, list[Comment]] = {}
    for annotation_id, person_id, at, payload in tx.connection.execute(query):
        writer = people[person_id]
        name, text = writer.name if reader.role is Role.LEAD else None, payload["comment"]
        comment = Comment(writer.role, numbers[person_id], name, person_id == reader.id, at, text)
        result.setdefault(annotation_id, []).append(comment)
    return result


def count_unread(tx: ReadTransaction, person: Person) -> dict[int, int]:
    """By assignment id of this person: how many comments others wrote since it was last opened."""
    mine, other, opened, of = t.assignments.alias(), t.assignments.alias(), t.events.alias(), t.events.c
    seen = select(func.max(opened.c.id)).where(
        opened.c.assignment_id == mine.c.id, opened.c.kind.in_(("opened", "comment")), opened.c.person_id == person.id
    )
    query = (
        select(mine.c.id, func.count())
        .join(other, other.c.item_id == mine.c.item_id)
        .join(t.events, of.assignment_id == other.c.id)
        .where(
            mine.c.person_id == person.id,
            func.coalesce(mine.c.subject_id, mine.c.id) == func.coalesce(other.c.subject_id, other.c.id),
            of.kind.in_(_WRITTEN),
            of.person_id != person.id,
            of.id > func.coalesce(seen.scalar_subquery(), 0),
        )
        .group_by(mine.c.id)
    )
    return {int(id_): int(count) for id_, count in tx.connection.execute(query)}


router = Router()


class Conversation(Record):
    """The comments on an annotation; it `waits` for an answer if an annotator wrote last."""

    item: int
    key: str
    language: str | None
    assignment: int
    by: str
    waits: bool
    comments: list[Comment]


class CommentBody(StrictRecord):
    """A lead's comment on an annotation."""

    assignment: RowId
    text: Annotated[str, msgspec.Meta(max_length=10_000)]


@router.call("GET", "/api/lead/conversations")
def show_conversations(caller: Lead) -> list[Conversation]:
    """Conversations about annotations: those that wait for an answer first, then the newest first."""
    with caller.studio.store.reading() as tx:
        result = []
        for id_, comments in conversations(tx, caller.person).items():
            row = tx.assignment(id_)
            item, annotator = tx.item(row.item_id), tx.person(row.person_id)
            result.append(
                view(
                    Conversation,
                    item,
                    item=item.id,
                    assignment=id_,
                    by=annotator.public_id,
                    waits=comments[-1].role is Role.ANNOTATOR and row.purpose is Purpose.ANNOTATE,
                    comments=comments,
                )
            )
    result.sort(key=lambda row: (row.waits, row.comments[-1].at), reverse=True)
    return result


@router.call("POST", "/api/lead/comments")
def comment(caller: LeadWriter, body: CommentBody) -> Comment:
    """Comment on an annotation; its annotator and reviewers can read it."""
    text, person = written(body.text), caller.person
    with caller.studio.store.writing() as tx:
        row = tx.assignment(body.assignment)
        if row.project_id != caller.studio.id or row.purpose is not Purpose.ANNOTATE:
            raise NotFound("annotation")
        tx.change(row, "comment", {}, person_id=person.id, payload={"comment": text})
        return conversations(tx, person, row.item_id)[row.id][-1]


class BatchView(Record):
    """A batch after a change."""

    id: int
    number: int
    state: BatchState
    round: int


@router.call("POST", "/api/lead/batches/{number}/validate")
def validate_now(caller: LeadWriter, number: Number) -> BatchView:
    """Start the validation of a batch now, with its finished annotations."""
    with caller.studio.store.reading() as tx:
        if tx.batch(number).project_id != caller.studio.id:
            raise NotFound("batch")
    return view(BatchView, validate(caller.studio.store, caller.studio.project, number, by=caller.person.id))
