"""Batches: a random part of what was annotated is checked by somebody else; below the threshold all of it goes back.

After hat (section 3.2): random subsets are re-checked, precision and recall are recomputed, and a batch that fails is
annotated anew. A batch is ready when each of its items is through annotation (and review, where there is one). Then a
random `validation.share` of it is given to reviewers who had no hand in it; they begin with what was annotated and put
it right. What they hand in is what precision and recall are measured against, over characters of spans (over units,
where units or pairs are labelled).

A batch that is sent back begins its next round: its annotations are withdrawn and its items are free again. What was
said stays in the store, under the round before.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sqlalchemy import case, exists, func, or_, select

from veriglot.annotate.choosing import AT_WORK, can_judge
from veriglot.annotate.comparing import compare, total
from veriglot.annotate.drawing import draw
from veriglot.annotate.reviewing import final_layer
from veriglot.annotate.store import BatchState, ItemRole, Purpose, Refused, State
from veriglot.annotate.store import tables as t

if TYPE_CHECKING:
    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Assignment, Batch, Item, Person, Reading, Store, Writing

__all__ = ["after_validation", "before_validation", "is_ready", "next_validation", "ready", "stuck", "validate"]

_WORK = (ItemRole.NORMAL, ItemRole.OVERLAP)


def is_ready(tx: Reading, project: Project, batch: Batch) -> bool:
    """Whether everything of a batch is annotated (and reviewed), so that it can be validated."""
    return batch.id in ready(tx, project, batch.project_id)


def ready(tx: Reading, project: Project, project_id: int) -> set[int]:
    """The batches of a project that can be validated now."""
    if project.entries.validation is None:
        return set()
    waiting = (State.OPEN, State.RETURNED, *((State.SUBMITTED,) if project.entries.work.reviews else ()))
    mine = (t.assignments.c.item_id == t.items.c.id, t.assignments.c.purpose == Purpose.ANNOTATE)
    had = exists().where(*mine, t.assignments.c.state != State.WITHDRAWN)
    begun = exists().where(*mine, t.assignments.c.state.in_(waiting))
    missing = case((or_(~had, begun), 1), else_=0)
    found = (
        select(t.batches.c.id)
        .join(t.items, t.items.c.batch_id == t.batches.c.id)
        .where(
            t.batches.c.project_id == project_id,
            t.batches.c.state.in_((BatchState.OPEN, BatchState.RETURNED)),
            t.items.c.role.in_(_WORK),
        )
        .group_by(t.batches.c.id)
        .having(func.sum(missing) == 0)
    )
    return {row[0] for row in tx.connection.execute(found)}


def validate(store: Store, project: Project, batch_id: int, *, by: int | None = None) -> Batch:
    """Begin the validation of a batch now, on what of it is through.

    Raises:
        NotFound: no such batch.
        Refused: the project has no validation, the batch is being validated or accepted, or nothing is through.
    """

    def act() -> Batch:
        with store.writing(lock=f"assign {project.slug}") as tx:
            batch = tx.batch(batch_id)
            if project.entries.validation is None:
                raise Refused("This project validates no batches.", remedy="Add a table [validation] to its file.")
            if batch.state not in {BatchState.OPEN, BatchState.RETURNED}:
                raise Refused(f"The batch is {batch.state.value}.")
            if not _subjects(tx, project, batch):
                raise Refused("Nothing of the batch is through annotation and review.")
            return _begin(tx, project, batch, by)

    return store.again(act)


def next_validation(tx: Writing, project: Project, person: Person) -> Assignment | None:
    """Give somebody an item of a batch to check; begins the validation of a batch that is ready."""
    if project.entries.validation is None or not can_judge(person):
        return None
    through = ready(tx, project, person.project_id)
    for batch in tx.batches(person.project_id):
        if person.works_in is not None and batch.language not in person.works_in:
            continue
        current = _begin(tx, project, batch, None) if batch.id in through else batch
        if current.state is not BatchState.VALIDATING:
            continue
        for id_ in _drawn(current):
            subject = tx.assignment(id_)
            if _may_check(tx, current, subject, person):
                layer = final_layer(tx, subject).layer
                item = tx.item(subject.item_id)
                more: dict[str, Any] = {"round": current.round, "subject_id": subject.id}
                return tx.assign(item, person.id, Purpose.VALIDATE, layer=layer, **more)
    return None


def stuck(tx: Reading, project_id: int) -> list[int]:
    """The numbers of batches under validation of which nobody here may check the rest: all had a hand in it."""
    judges = [person for person in tx.people(project_id) if can_judge(person)]
    found = []
    for batch in tx.batches(project_id):
        able = [one for one in judges if one.works_in is None or batch.language in one.works_in]
        for subject in map(tx.assignment, _drawn(batch)):
            checks = tx.assignments(project_id, subject_id=subject.id, purpose=Purpose.VALIDATE, round=batch.round)
            taken = any(one.state in {*AT_WORK, State.SUBMITTED} for one in checks)
            if not taken and not any(_may_check(tx, batch, subject, one) for one in able):
                found.append(batch.number)
                break
    return found


def _may_check(tx: Reading, batch: Batch, subject: Assignment, person: Person) -> bool:
    """Whether an annotation still waits for a check, and this person had no hand in it."""
    item_rows = tx.assignments(subject.project_id, item_id=subject.item_id, person_id=person.id)
    mine = [one for one in item_rows if one.purpose in {Purpose.ANNOTATE, Purpose.REVIEW, Purpose.VALIDATE}]
    live = [one for one in mine if one.state is not State.WITHDRAWN or one.purpose is Purpose.VALIDATE]
    if any(one.purpose is not Purpose.VALIDATE or one.round == batch.round for one in live):
        return False
    checks = tx.assignments(subject.project_id, subject_id=subject.id, purpose=Purpose.VALIDATE, round=batch.round)
    return not any(one.state in {*AT_WORK, State.SUBMITTED} for one in checks)


def before_validation(tx: Reading, assignment: Assignment) -> None:
    """Refuse changes to a check whose batch is decided.

    Raises:
        Refused: it is.
    """
    batch = _batch_of(tx, assignment)
    if batch is None or batch.state is not BatchState.VALIDATING or batch.round != assignment.round:
        raise Refused("This batch is decided already.")


def after_validation(tx: Writing, project: Project, assignment: Assignment) -> None:
    """Once the last check of a batch is handed in: measure, then accept the batch or send all of it back."""
    batch = _batch_of(tx, assignment)
    if batch is None or assignment.state is not State.SUBMITTED:
        return
    drawn = _drawn(batch)
    done = {
        one.subject_id: one
        for id_ in drawn
        for one in tx.assignments(
            batch.project_id, subject_id=id_, purpose=Purpose.VALIDATE, round=batch.round, states=(State.SUBMITTED,)
        )
    }
    if len(done) == len(drawn):
        _decide(tx, project, batch, [(tx.assignment(id_), done[id_]) for id_ in drawn])


def _decide(tx: Writing, project: Project, batch: Batch, checked: list[tuple[Assignment, Assignment]]) -> None:
    entry = project.entries.validation
    assert entry is not None
    counts = total(
        compare(final_layer(tx, subject).layer, check.layer, project.form, tx.sample(subject.item_id))
        for subject, check in checked
    )
    passed = counts.reaches(entry.threshold)
    account = {
        "round": batch.round,
        "checked": len(checked),
        "precision": counts.precision,
        "recall": counts.recall,
        "marked": counts.given,
        "wanted": counts.wanted,
        "both": counts.both,
        "threshold": entry.threshold,
        "passed": passed,
        "by": sorted({tx.person(check.person_id).public_id for _, check in checked}),
    }
    figures = {"drawn": [], "rounds": [*_rounds(batch), account]}
    for _, check in checked:
        tx.move(check.id, State.ACCEPTED, "accepted", payload={"batch": batch.id})
    if passed:
        tx.update_batch(batch.id, "batch_accepted", state=BatchState.ACCEPTED, figures=figures)
        return
    _send_back(tx, batch)
    tx.update_batch(batch.id, "batch_returned", state=BatchState.RETURNED, round=batch.round + 1, figures=figures)


def _send_back(tx: Writing, batch: Batch) -> None:
    """Withdraw all annotations of a batch, and what looks at them; its items are free again."""
    said = {"reason": "batch sent back", "batch": batch.id, "round": batch.round}
    for item in _items(tx, batch):
        for one in tx.assignments(batch.project_id, item_id=item.id):
            judged = one.purpose in {Purpose.REVIEW, Purpose.VALIDATE} and one.state in AT_WORK
            annotated = one.purpose is Purpose.ANNOTATE and one.state is not State.WITHDRAWN
            if judged or annotated:
                tx.move(one.id, State.WITHDRAWN, "withdrawn", payload=said)


def _begin(tx: Writing, project: Project, batch: Batch, by: int | None) -> Batch:
    entry = project.entries.validation
    assert entry is not None
    subjects = _subjects(tx, project, batch)
    if not subjects:  # everything was skipped: there is nothing to check, and nothing to send back
        account: dict[str, Any] = {
            "round": batch.round,
            "checked": 0,
            "precision": None,
            "recall": None,
            "passed": True,
            "by": [],
        }
        empty = {"drawn": [], "rounds": [*_rounds(batch), account]}
        tx.update_batch(batch.id, "batch_accepted", by=by, state=BatchState.ACCEPTED, figures=empty)
        return tx.batch(batch.id)
    keys = {item.id: item.key for item in _items(tx, batch)}
    many = max(1, math.ceil(entry.share * len(subjects)))
    order = draw(subjects, lambda one: f"{keys[one.item_id]} {one.id}", entry.seed, batch.number, batch.round)
    figures = {"drawn": sorted(one.id for one in order[:many]), "rounds": _rounds(batch)}
    tx.update_batch(batch.id, "validation_begun", by=by, state=BatchState.VALIDATING, figures=figures)
    return tx.batch(batch.id)


def _subjects(tx: Reading, project: Project, batch: Batch) -> list[Assignment]:
    """The annotations of a batch that are through, without those that were skipped."""
    states = (State.ACCEPTED,) if project.entries.work.reviews else (State.ACCEPTED, State.SUBMITTED)
    return [
        one
        for item in _items(tx, batch)
        for one in tx.assignments(batch.project_id, item_id=item.id, purpose=Purpose.ANNOTATE, states=states)
    ]


def _items(tx: Reading, batch: Batch) -> list[Item]:
    return [item for item in tx.items(batch.project_id, batch_id=batch.id) if item.role in _WORK]


def _batch_of(tx: Reading, assignment: Assignment) -> Batch | None:
    batch_id = tx.item(assignment.item_id).batch_id
    return None if batch_id is None else tx.batch(batch_id)


def _drawn(batch: Batch) -> list[int]:
    return list((batch.figures or {}).get("drawn", []))


def _rounds(batch: Batch) -> list[dict[str, Any]]:
    return list((batch.figures or {}).get("rounds", []))
