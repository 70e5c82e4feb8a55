"""Calls of those who work: what is next, an assignment, what was done to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Path, Request, Response

from veriglot.annotate import exam
from veriglot.annotate.acting import act
from veriglot.annotate.adjudicating import said_of
from veriglot.annotate.assigning import left_for, next_assignment
from veriglot.annotate.checking import check
from veriglot.annotate.people import numbers
from veriglot.annotate.reviewing import final_layer
from veriglot.annotate.store import NewEvent, NotFound, Purpose, Role, State
from veriglot.web.studio.api_joining import stage_of
from veriglot.web.studio.sessions import Asking, Caller, Writing  # noqa: TC001  FastAPI reads them
from veriglot.web.studio.views import (
    Answered,
    AssignmentLine,
    AssignmentView,
    ConflictAnswer,
    EventBody,
    ExamResult,
    Next,
    OtherLayer,
    SharedView,
)
from veriglot.web.studio.wire import body_of, described, reply

if TYPE_CHECKING:
    from veriglot.annotate.layers import Layer
    from veriglot.annotate.store import Assignment, Reading
    from veriglot.web.studio.showing import Kept, Shown

__all__ = ["router"]

router = APIRouter()
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
_HANDING_IN = frozenset({"submit", "confirm", "correct"})


@router.post("/api/next", **described(Next, refusals=(401,)))
def next_(request: Request, caller: Writing) -> Response:
    """What to do next: what was sent back, then what is open, then something new; null where there is nothing."""
    studio = caller.studio
    given = next_assignment(studio.store, studio.project, caller.person.id)
    with studio.store.reading() as tx:
        person = tx.person(caller.person.id)
        view = None if given is None else _view(request, tx, caller, given)
        left = left_for(tx, studio.project, person)
    stage = stage_of(studio, person)
    return reply(Next(view, left, "done" if view is None and stage == "work" else stage))


@router.get("/api/exam", **described(exam.Standing, refusals=(401,)))
def standing(caller: Asking) -> Response:
    """Where one stands in the exam."""
    with caller.studio.store.reading() as tx:
        return reply(exam.standing(tx, caller.studio.project, caller.person))


@router.post("/api/exam/finish", **described(ExamResult, refusals=(401, 422)))
def finish(caller: Writing) -> Response:
    """Have the attempt at the exam measured, once all of its items are handed in."""
    done = exam.finish(caller.studio.store, caller.studio.project, caller.person.id)
    figures = {"agreement": done.agreement}
    if done.measure == "precision_recall":
        figures = {"precision": done.precision, "recall": done.recall}
    return reply(ExamResult(done.passed, done.attempt, done.attempts_left, done.measure, done.threshold, figures))


@router.get("/api/assignments", **described(list[AssignmentLine], refusals=(401,)))
def assignments(caller: Asking) -> Response:
    """One's own assignments, in the order in which they were given."""
    with caller.studio.store.reading() as tx:
        mine = tx.assignments(caller.studio.id, person_id=caller.person.id)
        languages = {item.id: item.language for item in tx.items(caller.studio.id)}
    lines = [
        AssignmentLine(
            one.id,
            one.purpose,
            one.state,
            one.version,
            one.item_id,
            languages.get(one.item_id),
            one.message,
            one.seconds,
            one.changed_at,
        )
        for one in mine
        if one.state is not State.WITHDRAWN
    ]
    return reply(lines)


@router.get("/api/assignments/{number}", **described(AssignmentView, refusals=(401, 422)))
def assignment(request: Request, caller: Asking, number: Number) -> Response:
    """One of one's own assignments, with its item."""
    with caller.studio.store.reading() as tx:
        return reply(_view(request, tx, caller, _mine(tx, caller, number)))


@router.get("/api/assignments/{number}/shared", **described(SharedView, refusals=(401, 422)))
def shared(request: Request, caller: Asking, number: Number) -> Response:
    """Words of the response that occur in the evidence too."""
    with caller.studio.store.reading() as tx:
        item_id = _mine(tx, caller, number).item_id
    shown: Shown = request.app.state.shown
    return reply(shown.shared(caller.studio, item_id))


@router.post(
    "/api/assignments/{number}/events",
    **described(Answered, body=EventBody, refusals=(401,), answers={409: ConflictAnswer}),
)
def event(
    request: Request, caller: Writing, number: Number, body: Annotated[EventBody, Depends(body_of(EventBody))]
) -> Response:
    """Do something to an assignment. Once this answers 200, it is on disk; the same event again answers the same."""
    studio = caller.studio
    if body.layer is not None:
        sample = request.app.state.shown.sample(studio, _item_of(request, caller, number))
        check(body.layer, studio.project.form, sample, complete=body.kind in _HANDING_IN and body.layer.skip is None)
    new = NewEvent(body.event_id, body.kind, body.base_version, body.layer, body.comment, body.seconds, body.at)
    done = act(studio.store, studio.project, caller.person.id, number, new)
    return reply(Answered(done.version, done.state, done.repeated))


def _item_of(request: Request, caller: Caller, number: int) -> int:
    """The item of somebody's assignment, which never changes.

    Raises:
        NotFound: it is not theirs.
    """
    kept: Kept[tuple[int, int]] = request.app.state.given

    def read() -> tuple[int, int]:
        with caller.studio.store.reading() as tx:
            found = tx.assignment(number)
        return found.person_id, found.item_id

    person_id, item_id = kept.get((caller.studio.slug, number), read)
    if person_id != caller.person.id:
        raise NotFound("assignment")
    return item_id


def _mine(tx: Reading, caller: Caller, number: int) -> Assignment:
    found = tx.assignment(number)
    if found.person_id != caller.person.id:
        raise NotFound("assignment")
    return found


def _view(request: Request, tx: Reading, caller: Caller, one: Assignment) -> AssignmentView:
    shown: Shown = request.app.state.shown
    return AssignmentView(
        one.id,
        one.purpose,
        one.state,
        one.version,
        one.layer,
        shown.item(caller.studio, one.item_id),
        one.suggestions,
        None if one.subject_id is None else _subject(tx, caller, one, one.subject_id),
        _subjects(tx, caller, one) if one.purpose is Purpose.ADJUDICATE else None,
        one.message,
        one.seconds,
    )


def _subjects(tx: Reading, caller: Caller, one: Assignment) -> list[OtherLayer]:
    """What is settled: what everybody said who handed it in, with the corrections of reviewers."""
    said = said_of(tx, tx.item(one.item_id))
    return [_other(tx, caller, other.person_id, other.final, other.assignment_id) for other in said]


def _subject(tx: Reading, caller: Caller, one: Assignment, number: int) -> OtherLayer:
    """What is reviewed: the annotator's work, with the correction of whoever reviewed it before."""
    found = tx.assignment(number)
    layer = final_layer(tx, found, before=one.id).layer if one.purpose is Purpose.REVIEW else found.layer
    return _other(tx, caller, found.person_id, layer, found.id)


def _other(tx: Reading, caller: Caller, person_id: int, layer: Layer, number: int) -> OtherLayer:
    person = tx.person(person_id)
    place = numbers(tx.people(person.project_id))[person_id]
    name = person.name if caller.person.role is Role.LEAD else None
    return OtherLayer(layer, person.public_id, number, person.role, place, name)
