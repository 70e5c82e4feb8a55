"""What somebody does to an assignment of theirs, with everything that follows from it, in one transaction.

`act` is `Store.append` with the rules: the server and everybody else who carries out people's events call this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from veriglot.annotate.adjudicating import after_adjudication
from veriglot.annotate.reviewing import after_review, before_review, final_layer, refuse_while_reviewed
from veriglot.annotate.store import BatchState, Conflict, Purpose, Refused
from veriglot.annotate.validating import after_validation, before_validation

if TYPE_CHECKING:
    from veriglot.annotate.layers import Layer
    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Appended, Assignment, NewEvent, Reading, Store, Writing

__all__ = ["act"]

_ALONE = frozenset({"opened", "save"})  # these change nothing but their own assignment, and are frequent


def act(store: Store, project: Project, person_id: int, assignment_id: int, new: NewEvent) -> Appended:
    """Carry out an event of a person, and what follows from it; when this returns, it is on disk.

    A review moves the annotation that it looks at, the last check of a batch decides the batch, a settled item gets
    its gold layer. Layers are taken as checked (`checking.check`).

    Raises:
        NotFound: no such assignment of this person.
        Conflict: the assignment has changed since `base_version`, or its state takes no such event; it is kept.
        Refused: a rule speaks against it, such as sending back without a reason; nothing was changed.
    """
    if new.kind == "confirm":
        new = msgspec.structs.replace(new, layer=_confirmed(store, assignment_id, new.layer))
    rules = _Rules(project, new)
    lock = None if new.kind in _ALONE else f"assign {project.slug}"

    def turn() -> Appended:
        with store.writing(lock=lock) as tx:
            return tx.append(assignment_id, person_id, new, before=rules.before, after=rules.after)

    done = store.again(turn)
    if done.reason is not None:
        with store.reading() as tx:
            there = tx.assignment(assignment_id)
        raise Conflict(there.version, there.state, there.layer, done.reason)
    return done


def _confirmed(store: Store, assignment_id: int, sent: Layer | None) -> Layer | None:
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

    def before(self, tx: Writing, assignment: Assignment) -> None:
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

    def after(self, tx: Writing, assignment: Assignment) -> None:
        if assignment.purpose is Purpose.REVIEW:
            after_review(tx, self.project, assignment, self.new)
        elif assignment.purpose is Purpose.VALIDATE:
            after_validation(tx, self.project, assignment)
        elif assignment.purpose is Purpose.ADJUDICATE:
            after_adjudication(tx, assignment, self.new)


def _refuse_decided(tx: Reading, assignment: Assignment) -> None:
    batch_id = tx.item(assignment.item_id).batch_id
    if batch_id is not None and tx.batch(batch_id).state in {BatchState.VALIDATING, BatchState.ACCEPTED}:
        raise Refused("The batch of this item is validated, or was accepted.", remedy="Tell the lead what to change.")
