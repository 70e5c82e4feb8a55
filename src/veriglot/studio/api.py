"""The HTTP calls of the studio: sessions, work of annotators and reviewers, and the lead's overview and settings."""

from __future__ import annotations

import tempfile
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from sqlalchemy import func, select
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from veriglot.signatures import __version__
from veriglot.studio import adjudication, exam, people, review, schemas, sessions, tables
from veriglot.studio.assignment import apply_event, count_left, next_assignment
from veriglot.studio.dashboard import Overview, ProjectAgreement, measure_agreement, overview
from veriglot.studio.export import Format, export_zip
from veriglot.studio.layers import check
from veriglot.studio.responses import body_reader, json_response, openapi
from veriglot.studio.sessions import (
    Caller,
    Lead,
    LeadWriter,
    SignedIn,
    Writer,
)
from veriglot.studio.tables import DONE, NewEvent, NotFound, Purpose, Refused, Role, State, now
from veriglot.studio.texts import guidelines, interface_languages, words_of

if TYPE_CHECKING:
    from veriglot.studio.layers import Layer
    from veriglot.studio.people import Invitation
    from veriglot.studio.settings import Settings, Studio, Studios
    from veriglot.studio.store import ReadTransaction
    from veriglot.studio.tables import Assignment, Person

__all__ = ["router"]


router = APIRouter()


def stage_of(studio: Studio, person: Person) -> schemas.Stage:
    """What somebody is to do: join, pass the exam, work, or nothing more."""
    if person.joined_at is None:
        return "consent"
    if person.role is not Role.ANNOTATOR:
        return "work"
    if person.out_at is not None:
        return "out"
    if studio.project.entries.exam is not None and person.exam_passed_at is None:
        return "exam"
    return "work"


@router.get("/api/join/{token}", **openapi(schemas.InvitationView))
def invitation(request: Request, token: str) -> Response:
    """What a link leads to, before somebody takes it up."""
    request.app.state.rates.count("join", sessions.client_address(request))
    studios: Studios = request.app.state.studios
    studio = studios.of_token(token)
    with studio.store.reading() as tx:
        person = people.person_of_token(tx, studio.project, studio.secret, token)
    return json_response(
        schemas.InvitationView(
            _project(studio),
            person.role,
            person.joined_at is not None,
            person.name,
            interface_languages(studio.project),
            studio.project.entries.consent,
        )
    )


@router.post("/api/join", **openapi(schemas.Joined, body=schemas.JoinBody))
def accept_invitation(
    request: Request, body: Annotated[schemas.JoinBody, Depends(body_reader(schemas.JoinBody))]
) -> Response:
    """Take up a link: the answer sets the session's cookie."""
    request.app.state.rates.count("join", sessions.client_address(request))
    studios: Studios = request.app.state.studios
    studio = studios.of_token(body.token)
    with studio.store.writing(lock="people") as tx:
        person = people.join(
            tx,
            studio.project,
            studio.secret,
            body.token,
            name=body.name,
            language=body.language,
            consent=body.consent,
        )
        token = people.start_session(tx, studio.project, person)
    caller = Caller(studio, person, token)
    answer = json_response(schemas.Joined(stage_of(studio, person), caller.csrf))
    sessions.set_cookie(request, answer, studio, token)
    return answer


@router.get("/api/me", **openapi(schemas.Me, refusals=(401,)))
def me(caller: SignedIn) -> Response:
    """Who asks, and what a page needs to begin."""
    person, project = caller.person, caller.studio.project
    exam = project.entries.exam
    return json_response(
        schemas.Me(
            schemas.PersonView(
                person.public_id,
                person.name,
                person.role,
                person.language or "en",
                stage_of(caller.studio, person),
                person.exam_attempts,
            ),
            schemas.MyProject(
                project.slug,
                project.name,
                project.task,
                project.form,
                project.entries.pace.idle,
                None if exam is None else exam.attempts,
                interface_languages(project),
            ),
            caller.csrf,
            __version__,
        )
    )


@router.post("/api/logout", **openapi(dict[str, bool], refusals=(401,)))
def logout(request: Request, caller: Writer) -> Response:
    """End this session."""
    with caller.studio.store.writing() as tx:
        people.end_session(tx, caller.token)
    answer = json_response({"done": True})
    sessions.delete_cookie(request, answer)
    return answer


def _project(studio: Studio) -> schemas.ProjectView:
    return schemas.ProjectView(studio.project.slug, studio.project.name, studio.project.task)


Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
_HANDING_IN = frozenset({"submit", "confirm", "correct"})


@router.post("/api/next", **openapi(schemas.Next, refusals=(401,)))
def next_(request: Request, caller: Writer) -> Response:
    """What to do next: what was sent back, then what is open, then something new; null where there is nothing."""
    studio = caller.studio
    given = next_assignment(studio.store, studio.project, caller.person.id)
    with studio.store.reading() as tx:
        person = tx.person(caller.person.id)
        view = None if given is None else _view(request, tx, caller, given)
        left = count_left(tx, studio.project, person)
    stage = stage_of(studio, person)
    return json_response(schemas.Next(view, left, "done" if view is None and stage == "work" else stage))


@router.get("/api/exam", **openapi(exam.ExamStatus, refusals=(401,)))
def standing(caller: SignedIn) -> Response:
    """Where one stands in the exam."""
    with caller.studio.store.reading() as tx:
        return json_response(exam.exam_status(tx, caller.studio.project, caller.person))


@router.post("/api/exam/finish", **openapi(schemas.ExamResult, refusals=(401, 422)))
def finish(caller: Writer) -> Response:
    """Have the attempt at the exam measured, once all of its items are handed in."""
    done = exam.finish(caller.studio.store, caller.studio.project, caller.person.id)
    figures = {"agreement": done.agreement}
    if done.measure == "precision_recall":
        figures = {"precision": done.precision, "recall": done.recall}
    return json_response(
        schemas.ExamResult(done.passed, done.attempt, done.attempts_left, done.measure, done.threshold, figures)
    )


@router.get("/api/assignments", **openapi(list[schemas.AssignmentLine], refusals=(401,)))
def assignments(caller: SignedIn) -> Response:
    """One's own assignments, in the order in which they were given."""
    with caller.studio.store.reading() as tx:
        mine = tx.assignments(caller.studio.id, person_id=caller.person.id)
        languages = {item.id: item.language for item in tx.items(caller.studio.id)}
    lines = [
        schemas.AssignmentLine(
            row.id,
            row.purpose,
            row.state,
            row.version,
            row.item_id,
            languages.get(row.item_id),
            row.message,
            row.seconds,
            row.changed_at,
        )
        for row in mine
        if row.state is not State.WITHDRAWN
    ]
    return json_response(lines)


@router.get("/api/assignments/{number}", **openapi(schemas.AssignmentView, refusals=(401, 422)))
def assignment(request: Request, caller: SignedIn, number: Number) -> Response:
    """One of one's own assignments, with its item."""
    with caller.studio.store.reading() as tx:
        return json_response(_view(request, tx, caller, _mine(tx, caller, number)))


@router.get("/api/assignments/{number}/shared", **openapi(schemas.SharedView, refusals=(401, 422)))
def shared(request: Request, caller: SignedIn, number: Number) -> Response:
    """Words of the response that occur in the evidence too."""
    with caller.studio.store.reading() as tx:
        item_id = _mine(tx, caller, number).item_id
    cache = _items(request)
    return json_response(cache.shared(caller.studio, item_id))


@router.post(
    "/api/assignments/{number}/events",
    **openapi(schemas.Answered, body=schemas.EventBody, refusals=(401,), answers={409: schemas.ConflictAnswer}),
)
def event(
    request: Request,
    caller: Writer,
    number: Number,
    body: Annotated[schemas.EventBody, Depends(body_reader(schemas.EventBody))],
) -> Response:
    """Do something to an assignment. Once this answers 200, it is on disk; the same event again answers the same."""
    studio = caller.studio
    if body.layer is not None:
        cache = _items(request)
        person_id, item_id = cache.assigned(studio, number)
        if person_id != caller.person.id:
            raise NotFound("assignment")
        sample = cache.sample(studio, item_id)
        check(body.layer, studio.project.form, sample, complete=body.kind in _HANDING_IN and body.layer.skip is None)
    new = NewEvent(body.event_id, body.kind, body.base_version, body.layer, body.comment, body.seconds, body.at)
    done = apply_event(studio.store, studio.project, caller.person.id, number, new)
    return json_response(schemas.Answered(done.version, done.state, done.repeated))


def _mine(tx: ReadTransaction, caller: Caller, number: int) -> Assignment:
    assignment = tx.assignment(number)
    if assignment.person_id != caller.person.id:
        raise NotFound("assignment")
    return assignment


def _view(request: Request, tx: ReadTransaction, caller: Caller, assignment: Assignment) -> schemas.AssignmentView:
    cache = _items(request)
    return schemas.AssignmentView(
        assignment.id,
        assignment.purpose,
        assignment.state,
        assignment.version,
        assignment.layer,
        cache.item(caller.studio, assignment.item_id),
        assignment.suggestions,
        None if assignment.subject_id is None else _subject(tx, caller, assignment, assignment.subject_id),
        _subjects(tx, caller, assignment) if assignment.purpose is Purpose.ADJUDICATE else None,
        assignment.message,
        assignment.seconds,
    )


def _subjects(tx: ReadTransaction, caller: Caller, assignment: Assignment) -> list[schemas.OtherLayer]:
    """What is settled: what everybody said who handed it in, with the corrections of reviewers."""
    submissions = adjudication.submissions_of(tx, tx.item(assignment.item_id))
    return [_other(tx, caller, other.person_id, other.final, other.assignment_id) for other in submissions]


def _subject(tx: ReadTransaction, caller: Caller, assignment: Assignment, number: int) -> schemas.OtherLayer:
    """What is reviewed: the annotator's work, with the correction of whoever reviewed it before."""
    subject = tx.assignment(number)
    layer = (
        review.final_layer(tx, subject, before=assignment.id) if assignment.purpose is Purpose.REVIEW else subject.layer
    )
    return _other(tx, caller, subject.person_id, layer, subject.id)


def _other(tx: ReadTransaction, caller: Caller, person_id: int, layer: Layer, number: int) -> schemas.OtherLayer:
    person = tx.person(person_id)
    ordinal = people.number_people(tx.people(person.project_id))[person_id]
    name = person.name if caller.person.role is Role.LEAD else None
    return schemas.OtherLayer(layer, person.public_id, number, person.role, ordinal, name)


@router.get("/api/health", **openapi(schemas.Health))
def health(request: Request) -> Response:
    """Whether the server answers and reaches its databases."""
    studios: Studios = request.app.state.studios
    studios.healthy()
    return json_response(schemas.Health("ok", __version__))


@router.get("/api/words/{language}", **openapi(schemas.WordsView))
def words(request: Request, language: str) -> Response:
    """The interface's words in a language; those that it lacks are English."""
    tag, texts = words_of(language)
    studios: Studios = request.app.state.studios
    offered = sorted({tag for studio in studios for tag in interface_languages(studio.project)})
    return json_response(schemas.WordsView(tag, schemas.direction("", tag), offered, texts))


@router.get("/api/guidelines", **openapi(schemas.GuidelinesView, refusals=(401, 422)))
def guideline(caller: SignedIn, language: Annotated[str | None, Query(max_length=64)] = None) -> Response:
    """The guidelines of the project, in the language asked for where there are such."""
    result = guidelines(caller.studio.project, language or caller.person.language or "en")
    return json_response(
        schemas.GuidelinesView(result.language, schemas.direction(result.markdown, result.language), result.html)
    )


# Calls of leads.


_MOST_EVENTS = 500  # of one history; exports have all
_Tag = Annotated[str | None, Query(max_length=64)]
_Limit = Annotated[int, Query(ge=1, le=500)]


@router.get("/api/lead/disagreements", **openapi(schemas.Disagreements, refusals=(401, 422)))
def list_disagreements(
    request: Request, caller: Lead, language: _Tag = None, settled: bool = False, limit: _Limit = 10
) -> Response:
    """What people said of one item, side by side; those items first that they are least alike on."""
    _heavy(request, caller)
    studio, cache = caller.studio, _items(request)
    with studio.store.reading() as tx:
        result = adjudication.disagreements(tx, studio.project, studio.id, language=language, settled=settled)
        names = _names(tx, studio.id)
    views = [
        schemas.DisagreementView(
            disagreement.item.key,
            cache.item(studio, disagreement.item.id),
            disagreement.likeness,
            disagreement.settled,
            [
                schemas.SubmissionView(
                    submission.assignment_id, names[submission.person_id], submission.layer, submission.final
                )
                for submission in disagreement.submissions
            ],
        )
        for disagreement in result[:limit]
    ]
    return json_response(schemas.Disagreements(len(result), views))


@router.get("/api/lead/items", **openapi(schemas.Items, refusals=(401, 422)))
def items(
    caller: Lead,
    language: _Tag = None,
    search: Annotated[str | None, Query(max_length=200)] = None,
    limit: _Limit = 50,
) -> Response:
    """The items, by language, and by a part of their id."""
    studio = caller.studio
    table = tables.assignments
    with studio.store.reading() as tx:
        matching = [
            item
            for item in tx.items(studio.id, language=language)
            if search is None or search.casefold() in item.key.casefold()
        ]
        done = (
            select(table.c.item_id, func.count())
            .where(table.c.project_id == studio.id, table.c.purpose == Purpose.ANNOTATE, table.c.state.in_(DONE))
            .group_by(table.c.item_id)
        )
        counts: dict[int, int] = {row[0]: row[1] for row in tx.connection.execute(done)}
    lines = [
        schemas.ItemLine(item.id, item.key, item.language, item.role, counts.get(item.id, 0), item.has_gold)
        for item in matching[:limit]
    ]
    return json_response(schemas.Items(len(matching), lines))


@router.get("/api/lead/items/{number}/history", **openapi(schemas.History, refusals=(401, 422)))
def history(request: Request, caller: Lead, number: Number) -> Response:
    """Everything that was said of an item, and everything that happened to it."""
    studio = caller.studio
    with studio.store.reading() as tx:
        item = tx.item(number)
        if item.project_id != studio.id:
            raise NotFound("item")
        names = _names(tx, studio.id)
        given = tx.assignments(studio.id, item_id=number)
        count = tx.count(select(tables.events.c.id).where(tables.events.c.item_id == number))
        last = (
            select(tables.events.c.id)
            .where(tables.events.c.item_id == number)
            .order_by(tables.events.c.id.desc())
            .offset(_MOST_EVENTS)
            .limit(1)
        )
        after = tx.connection.execute(last).scalar() or 0
        events = list(tx.events(studio.id, item_id=number, after=after))
        gold, silver = tx.gold(number), tx.silver(number)
    assignments = [
        schemas.AssignmentHistory(
            row.id,
            names[row.person_id],
            row.purpose,
            row.state,
            row.version,
            row.round,
            row.layer,
            row.message,
            row.seconds,
        )
        for row in given
    ]
    happened = [
        schemas.EventView(
            row.id,
            row.kind,
            None if row.person_id is None else names[row.person_id],
            row.assignment_id,
            row.layer,
            row.payload,
            row.seconds,
            row.at,
        )
        for row in events
    ]
    left_out = count - len(happened)
    return json_response(
        schemas.History(item.key, _items(request).item(studio, number), gold, silver, assignments, happened, left_out)
    )


def _names(tx: ReadTransaction, project_id: int) -> dict[int, str]:
    """Public ids by ids."""
    return {person.id: person.public_id for person in tx.people(project_id)}


def _items(request: Request) -> schemas.ItemCache:
    cache: schemas.ItemCache = request.app.state.items
    return cache


# The call for an export: everything that was said so far, as one ZIP file.


def _described() -> dict[str, Any]:
    description = openapi(dict[str, str], refusals=(401, 422))
    file = {"application/zip": {"schema": {"type": "string", "format": "binary"}}}
    description["responses"][200] = {"description": "A ZIP file", "content": file}
    return description


@router.get("/api/lead/export", response_class=FileResponse, **_described())
def export(request: Request, caller: Lead, format: Format = "native", names: bool = False) -> Response:  # noqa: A002
    """Export now, while people work on; `names` are those that people chose, in place of their public ids."""
    _heavy(request, caller)
    folder = tempfile.TemporaryDirectory(prefix="veriglot-export-")
    try:
        path = FilePath(folder.name) / "export.zip"
        export_zip(caller.studio.store, caller.studio.project, path, format, names=names)
        with caller.studio.store.writing() as tx:
            payload = {"format": format, "names": names}
            tx.record("exported", caller.studio.id, person_id=caller.person.id, payload=payload)
    except BaseException:
        folder.cleanup()
        raise
    name = f"{caller.studio.slug}-{format}-{now():%Y%m%d-%H%M}.zip"
    return FileResponse(path, media_type="application/zip", filename=name, background=BackgroundTask(folder.cleanup))


# Calls of leads: how far the work is, who takes part.


_GAMMA = 30  # random annotations an item that gamma is held against


@router.get("/api/lead/overview", **openapi(Overview, refusals=(401,)))
def show_overview(request: Request, caller: Lead) -> Response:
    """How far the work is: languages, queue, people with their figures, batches."""
    _heavy(request, caller)
    with caller.studio.store.reading() as tx:
        return json_response(overview(tx, caller.studio.project))


@router.get("/api/lead/agreement", **openapi(ProjectAgreement, refusals=(401, 422)))
def agreement(request: Request, caller: Lead, language: _Tag = None, gamma: bool = False) -> Response:
    """How far people agree, with each other and with silver; gamma takes time, so it comes where it is asked for."""
    _heavy(request, caller)
    with caller.studio.store.reading() as tx:
        result = measure_agreement(tx, caller.studio.project, language=language, gamma=_GAMMA if gamma else 0)
    return json_response(result)


@router.post("/api/lead/adjudications", **openapi(schemas.Adjudication, body=schemas.AdjudicationBody, refusals=(401,)))
def settle(
    caller: LeadWriter, body: Annotated[schemas.AdjudicationBody, Depends(body_reader(schemas.AdjudicationBody))]
) -> Response:
    """Take an item on to settle; what is then handed in becomes gold."""
    given = adjudication.adjudicate(caller.studio.store, caller.studio.project, caller.person.id, body.item)
    return json_response(schemas.Adjudication(given.id, given.state))


@router.post("/api/lead/settle", **openapi(adjudication.Settled, body=schemas.SettleBody, refusals=(401,)))
def settle_by_rule(
    request: Request, caller: LeadWriter, body: Annotated[schemas.SettleBody, Depends(body_reader(schemas.SettleBody))]
) -> Response:
    """Settle by a rule every shared item that it can decide; what it cannot is left to a lead."""
    _heavy(request, caller)
    studio = caller.studio
    done = adjudication.settle(
        studio.store, studio.project, body.rule, language=body.language, again=body.again, by=caller.person.id
    )
    return json_response(done)


@router.post("/api/lead/batches/{number}/validate", **openapi(schemas.BatchView, refusals=(401, 422)))
def validate(caller: LeadWriter, number: Number) -> Response:
    """Begin the validation of a batch now, on what of it is through."""
    with caller.studio.store.reading() as tx:
        if tx.batch(number).project_id != caller.studio.id:
            raise NotFound("batch")
    done = review.validate(caller.studio.store, caller.studio.project, number, by=caller.person.id)
    return json_response(schemas.BatchView(done.id, done.number, done.state, done.round))


@router.post("/api/lead/invitations", **openapi(schemas.Link, body=schemas.InvitationBody, refusals=(401,)))
def invite(
    request: Request,
    caller: LeadWriter,
    body: Annotated[schemas.InvitationBody, Depends(body_reader(schemas.InvitationBody))],
) -> Response:
    """Make a link for somebody; it is shown this once."""
    studio = caller.studio
    with studio.store.writing() as tx:
        made = people.invite(
            tx,
            studio.project,
            studio.secret,
            body.role,
            languages=body.languages,
            note=body.note,
            by=caller.person.id,
        )
    return json_response(_link(request, made))


@router.post("/api/lead/people/{person}/renew", **openapi(schemas.Link, refusals=(401, 422)))
def renew(request: Request, caller: LeadWriter, person: str) -> Response:
    """A new link for somebody in place of the old one; their browsers are signed out."""
    studio = caller.studio
    with studio.store.writing() as tx:
        made = people.renew(tx, studio.project, studio.secret, _person(tx, caller, person), by=caller.person.id)
    return json_response(_link(request, made))


@router.post("/api/lead/people/{person}/{what}", **openapi(schemas.PersonState, refusals=(401, 422)))
def change(caller: LeadWriter, person: str, what: Literal["revoke", "restore", "reset_exam"]) -> Response:
    """Shut somebody out, let them in again, or give them all attempts at the exam again."""
    done = {"revoke": people.revoke, "restore": people.restore, "reset_exam": people.reset_exam}[what]
    with caller.studio.store.writing(lock=caller.studio.project.lock) as tx:
        id_ = _person(tx, caller, person)
        if what == "revoke" and id_ == caller.person.id:
            raise Refused("Nobody shuts themselves out.", remedy="Ask another lead.")
        now = done(tx, id_, by=caller.person.id)
    return json_response(schemas.PersonState(now.public_id, now.revoked_at is not None, now.exam_attempts))


def _heavy(request: Request, caller: Caller) -> None:
    request.app.state.rates.count("heavy", caller.token)


def _person(tx: ReadTransaction, caller: Caller, public_id: str) -> int:
    """Somebody of one's own project.

    Raises:
        NotFound: there is no such person in it.
    """
    somebody = tx.person_by(public_id=public_id)
    if somebody.project_id != caller.studio.id:
        raise NotFound("person")
    return somebody.id


def _link(request: Request, made: Invitation) -> schemas.Link:
    settings: Settings = request.app.state.settings
    base = settings.base_url or f"{request.url.scheme}://{request.url.netloc}"
    return schemas.Link(f"{base.rstrip('/')}/join/{made.token}", made.person.key_expires_at, made.person.public_id)
