"""The HTTP calls of the studio: sessions, work of annotators and reviewers, and the lead's overview and settings.

The records that are sent and received stand first. Offsets are half-open and count code points.
"""

from __future__ import annotations

import tempfile
from datetime import datetime
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from sqlalchemy import func, select
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from veriglot.signatures import __version__
from veriglot.studio import adjudication, dashboard, exam, people, review, tables, texts, web
from veriglot.studio.adjudication import Submission
from veriglot.studio.assignment import apply_event, count_left, next_assignment
from veriglot.studio.export import Format, export_zip
from veriglot.studio.layers import Layer
from veriglot.studio.project import Form
from veriglot.studio.tables import (
    DONE,
    BatchState,
    EventResult,
    ItemRole,
    NewEvent,
    NotFound,
    Purpose,
    Refused,
    Role,
    State,
    now,
)
from veriglot.studio.web import Caller, Lead, LeadWriter, SignedIn, Writer

if TYPE_CHECKING:
    from veriglot.studio.people import Invitation
    from veriglot.studio.store import ReadTransaction
    from veriglot.studio.tables import Assignment, Person
    from veriglot.studio.web import Settings, Studio, Studios

__all__ = ["router"]


Stage = Literal["consent", "exam", "work", "done", "out"]


class JoinBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Taking up a link. Who has joined before keeps their name; the other fields are then not looked at."""

    token: Annotated[str, msgspec.Meta(max_length=512)]
    name: Annotated[str, msgspec.Meta(max_length=400)] = ""
    language: Annotated[str, msgspec.Meta(max_length=64)] = "en"
    consent: bool = False


class ProjectView(msgspec.Struct, frozen=True):
    """A project, for those who take part."""

    slug: str
    name: str
    task: str


class InvitationView(msgspec.Struct, frozen=True):
    """What a link leads to, before it is taken up: `consent` by interface language."""

    project: ProjectView
    role: Role
    joined: bool
    name: str | None
    languages: list[str]
    consent: dict[str, str]


class Joined(msgspec.Struct, frozen=True):
    """The answer to a link that was taken up; the session is in a cookie."""

    stage: Stage
    csrf: str


class PersonView(msgspec.Struct, frozen=True):
    """Whoever asks."""

    id: str
    name: str | None
    role: Role
    language: str
    stage: Stage
    exam_attempts: int


class MyProject(msgspec.Struct, frozen=True):
    """The project of whoever asks, with what there is to fill in."""

    slug: str
    name: str
    task: str
    form: Form
    idle: float
    exam_attempts: int | None
    languages: list[str]


class Me(msgspec.Struct, frozen=True):
    """Whoever asks, and what a page needs to begin."""

    person: PersonView
    project: MyProject
    csrf: str
    server_version: str


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


class WordsView(msgspec.Struct, frozen=True):
    """The texts of the interface: those of the language, and English ones where it has none."""

    language: str
    direction: texts.Direction
    languages: list[str]
    words: dict[str, str]


class Health(msgspec.Struct, frozen=True):
    """Whether the server answers and reaches its databases."""

    status: Literal["ok"]
    version: str


class ExamResult(msgspec.Struct, frozen=True):
    """What became of an attempt: `figures` are `precision` and `recall`, or `agreement`, as the project measures it."""

    passed: bool
    attempt: int
    attempts_left: int
    measure: str
    threshold: float
    figures: dict[str, float | None]


class InvitationBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whom to invite: `languages` are those of their items, none for all; the note is for leads."""

    role: Role
    languages: Annotated[list[Annotated[str, msgspec.Meta(max_length=64)]], msgspec.Meta(max_length=100)] = []
    note: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class Link(msgspec.Struct, frozen=True):
    """A link for one person; it is not kept and cannot be shown again."""

    link: str
    expires: datetime
    person: str


class PersonState(msgspec.Struct, frozen=True):
    """Somebody after what was done to them."""

    id: str
    revoked: bool
    exam_attempts: int


class AdjudicationBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The item that a lead settles."""

    item: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class Adjudication(msgspec.Struct, frozen=True):
    """The assignment in which a lead settles an item."""

    assignment: int
    state: State


class SettleBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that settles what it can decide, of one language or all; with `again` also gold that no lead set."""

    rule: Literal["agreed", "majority", "best_with_silver"]
    language: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    again: bool = False


class BatchView(msgspec.Struct, frozen=True):
    """A batch after what was done to it."""

    id: int
    number: int
    state: BatchState
    round: int


class DisagreementView(msgspec.Struct, frozen=True):
    """An item that several people annotated; `likeness` goes from 0 to 1."""

    key: str
    item: msgspec.Raw
    likeness: float
    settled: bool
    submissions: list[Submission] = msgspec.field(name="said")


class Disagreements(msgspec.Struct, frozen=True):
    """Those items first that people are least alike on; `total` counts all."""

    total: int
    items: list[DisagreementView]


class ItemLine(msgspec.Struct, frozen=True):
    """An item in a list; `done` counts the annotations that were handed in."""

    id: int
    key: str
    language: str | None
    role: ItemRole
    done: int
    has_gold: bool


class Items(msgspec.Struct, frozen=True):
    """Items in the order of their import; `total` counts all that were asked for."""

    total: int
    items: list[ItemLine]


class AssignmentHistory(msgspec.Struct, frozen=True):
    """What one person was given to do with an item, and said of it."""

    id: int
    by: str
    purpose: Purpose
    state: State
    version: int
    round: int
    layer: Layer
    message: str | None
    seconds: float


class EventView(msgspec.Struct, frozen=True):
    """Something that happened to an item; `by` is null for rules and the command line."""

    id: int
    kind: str
    by: str | None
    assignment: int | None
    layer: Layer | None
    payload: dict[str, Any] | None
    seconds: float
    at: datetime


class History(msgspec.Struct, frozen=True):
    """An item with everything that was said of it, and everything that happened to it, the latest of it."""

    key: str
    item: msgspec.Raw
    gold: Layer | None
    silver: Layer | None
    assignments: list[AssignmentHistory]
    events: list[EventView]
    events_left_out: int


V = TypeVar("V", bound=msgspec.Struct)


def _view(kind: type[V], row: Any, **more: Any) -> V:
    """A record with the fields of a row that bear the same names, and `more`."""
    fields = (name for name in kind.__struct_fields__ if name not in more)
    return kind(**{name: getattr(row, name) for name in fields}, **more)


# Calls of everybody.


router = APIRouter()
_get, _post = partial(web.call, router, "GET"), partial(web.call, router, "POST")
_Tag = Annotated[str | None, Query(max_length=64)]
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
_HANDING_IN = frozenset({"submit", "confirm", "correct"})


def _stage(studio: Studio, person: Person) -> Stage:
    """What somebody is to do: join, pass the exam, work, or nothing more."""
    if person.joined_at is None:
        return "consent"
    if person.out_at is not None:
        return "out"
    return "exam" if exam.is_due(person, studio.project) else "work"


@_get("/api/join/{token}")
def invitation(request: Request, token: str) -> InvitationView:
    """What a link leads to, before somebody takes it up."""
    studio = _of_link(request, token)
    project = studio.project
    with studio.store.reading() as tx:
        person = people.person_of_token(tx, project, studio.secret, token)
    return InvitationView(
        ProjectView(project.slug, project.name, project.task),
        person.role,
        person.joined_at is not None,
        person.name,
        texts.interface_languages(project),
        project.entries.consent,
    )


@_post("/api/join", answer=Joined)
def accept_invitation(request: Request, body: JoinBody) -> Response:
    """Take up a link: the answer sets the session's cookie."""
    studio = _of_link(request, body.token)
    terms: dict[str, Any] = {"name": body.name, "language": body.language, "consent": body.consent}
    with studio.store.writing(lock="people") as tx:
        person = people.join(tx, studio.project, studio.secret, body.token, **terms)
        token = people.start_session(tx, studio.project, person)
    answer = web.json_response(Joined(_stage(studio, person), Caller(studio, person, token).csrf))
    web.set_cookie(request, answer, studio, token)
    return answer


def _of_link(request: Request, token: str) -> Studio:
    request.app.state.rates.count("join", web.client_address(request))
    studios: Studios = request.app.state.studios
    return studios.of_token(token)


@_get("/api/me")
def me(caller: SignedIn) -> Me:
    """Who asks, and what a page needs to begin."""
    person, project, studio = caller.person, caller.studio.project, caller.studio
    language, stage = person.language or "en", _stage(studio, person)
    return Me(
        _view(PersonView, person, id=person.public_id, language=language, stage=stage),
        _view(
            MyProject,
            project,
            idle=project.entries.pace.idle,
            exam_attempts=None if project.entries.exam is None else project.entries.exam.attempts,
            languages=texts.interface_languages(project),
        ),
        caller.csrf,
        __version__,
    )


@_post("/api/logout", answer=dict[str, bool])
def logout(request: Request, caller: Writer) -> Response:
    """End this session."""
    with caller.studio.store.writing() as tx:
        people.end_session(tx, caller.token)
    answer = web.json_response({"done": True})
    web.delete_cookie(request, answer)
    return answer


@_get("/api/health")
def health(request: Request) -> Health:
    """Whether the server answers and reaches its databases."""
    request.app.state.studios.check()
    return Health("ok", __version__)


@_get("/api/words/{language}")
def words(request: Request, language: str) -> WordsView:
    """The interface's words in a language; those that it lacks are English."""
    tag, words = texts.words_of(language)
    studios: Studios = request.app.state.studios
    offered = sorted({tag for studio in studios for tag in texts.interface_languages(studio.project)})
    return WordsView(tag, texts.direction("", tag), offered, words)


@_get("/api/guidelines")
def guidelines(caller: SignedIn, language: _Tag = None) -> texts.Guidelines:
    """The guidelines of the project, in the language asked for where there are such."""
    return texts.guidelines(caller.studio.project, language or caller.person.language or "en")


# Calls of those who work.


@_post("/api/next")
def next_(request: Request, caller: Writer) -> Next:
    """What to do next: what was sent back, then what is open, then something new; null where there is nothing."""
    studio = caller.studio
    given = next_assignment(studio.store, studio.project, caller.person.id)
    with studio.store.reading() as tx:
        person = tx.person(caller.person.id)
        view = None if given is None else _assignment(request, tx, caller, given)
        left = count_left(tx, studio.project, person)
    stage = _stage(studio, person)
    return Next(view, left, "done" if view is None and stage == "work" else stage)


@_get("/api/exam")
def standing(caller: SignedIn) -> exam.ExamStatus:
    """Where one stands in the exam."""
    with caller.studio.store.reading() as tx:
        return exam.exam_status(tx, caller.studio.project, caller.person)


@_post("/api/exam/finish")
def finish(caller: Writer) -> ExamResult:
    """Have the attempt at the exam measured, once all of its items are handed in."""
    outcome = exam.finish(caller.studio.store, caller.studio.project, caller.person.id)
    names = ("precision", "recall") if outcome.measure == "precision_recall" else ("agreement",)
    return _view(ExamResult, outcome, figures={name: getattr(outcome, name) for name in names})


@_get("/api/assignments")
def assignments(caller: SignedIn) -> list[AssignmentLine]:
    """One's own assignments, in the order in which they were given."""
    with caller.studio.store.reading() as tx:
        mine = tx.assignments(caller.studio.id, person_id=caller.person.id)
        languages = {item.id: item.language for item in tx.items(caller.studio.id)}
    return [
        _view(AssignmentLine, row, item=row.item_id, language=languages.get(row.item_id))
        for row in mine
        if row.state is not State.WITHDRAWN
    ]


@_get("/api/assignments/{number}")
def assignment(request: Request, caller: SignedIn, number: Number) -> AssignmentView:
    """One of one's own assignments, with its item."""
    with caller.studio.store.reading() as tx:
        return _assignment(request, tx, caller, _mine(tx, caller, number))


@_get("/api/assignments/{number}/shared", answer=texts.SharedView)
def shared(request: Request, caller: SignedIn, number: Number) -> msgspec.Raw:
    """Words of the response that occur in the evidence too."""
    with caller.studio.store.reading() as tx:
        item_id = _mine(tx, caller, number).item_id
    return _items(request).shared(caller.studio, item_id)


@_post("/api/assignments/{number}/events")
def event(request: Request, caller: Writer, number: Number, body: NewEvent) -> EventResult:
    """Do something to an assignment. Once this answers 200, it is on disk; the same event again answers the same."""
    studio = caller.studio
    if body.layer is not None:
        with studio.store.reading() as tx:
            item_id = _mine(tx, caller, number).item_id
        sample = _items(request).sample(studio, item_id)
        body.layer.check(studio.project.form, sample, complete=body.kind in _HANDING_IN)
    return apply_event(studio.store, studio.project, caller.person.id, number, body)


def _mine(tx: ReadTransaction, caller: Caller, number: int) -> Assignment:
    assignment = tx.assignment(number)
    if assignment.person_id != caller.person.id:
        raise NotFound("assignment")
    return assignment


def _assignment(request: Request, tx: ReadTransaction, caller: Caller, row: Assignment) -> AssignmentView:
    """An assignment, with what is reviewed or checked, or with what is settled."""
    subject: OtherLayer | None = None
    if row.subject_id is not None:
        annotation = tx.assignment(row.subject_id)
        layer = annotation.layer
        if row.purpose is Purpose.REVIEW:
            layer = review.final_layer(tx, annotation, before=row.id)
        subject = _other(tx, caller, tx.person(annotation.person_id), layer, annotation.id)
    subjects: list[OtherLayer] | None = None
    if row.purpose is Purpose.ADJUDICATE:
        subjects = [
            _other(tx, caller, tx.person_by(public_id=other.by), other.final, other.assignment)
            for other in adjudication.submissions_of(tx, tx.item(row.item_id))
        ]
    item = _items(request).item(caller.studio, row.item_id)
    return _view(AssignmentView, row, item=item, subject=subject, subjects=subjects)


def _other(tx: ReadTransaction, caller: Caller, person: Person, layer: Layer, assignment: int) -> OtherLayer:
    number = people.number_people(tx.people(person.project_id))[person.id]
    name = person.name if caller.person.role is Role.LEAD else None
    return OtherLayer(layer, person.public_id, assignment, person.role, number, name)


def _items(request: Request) -> texts.ItemCache:
    cache: texts.ItemCache = request.app.state.items
    return cache


# Calls of leads: the items, and what was said of them.


_MOST_EVENTS = 500  # of one history; exports have all
_GAMMA = 30  # random annotations an item that gamma is held against
_Limit = Annotated[int, Query(ge=1, le=500)]


@_get("/api/lead/disagreements")
def list_disagreements(
    request: Request, caller: Lead, language: _Tag = None, settled: bool = False, limit: _Limit = 10
) -> Disagreements:
    """What people said of one item, side by side; those items first that they are least alike on."""
    _heavy(request, caller)
    studio, cache = caller.studio, _items(request)
    with studio.store.reading() as tx:
        rows = adjudication.disagreements(tx, studio.project, studio.id, language=language, settled=settled)
    views = [
        _view(DisagreementView, row, key=row.item.key, item=cache.item(studio, row.item.id)) for row in rows[:limit]
    ]
    return Disagreements(len(rows), views)


@_get("/api/lead/items")
def items(
    caller: Lead,
    language: _Tag = None,
    search: Annotated[str | None, Query(max_length=200)] = None,
    limit: _Limit = 50,
) -> Items:
    """The items, by language, and by a part of their id."""
    studio, part = caller.studio, (search or "").casefold()
    table = tables.assignments
    with studio.store.reading() as tx:
        matching = [item for item in tx.items(studio.id, language=language) if part in item.key.casefold()]
        done = (
            select(table.c.item_id, func.count())
            .where(table.c.project_id == studio.id, table.c.purpose == Purpose.ANNOTATE, table.c.state.in_(DONE))
            .group_by(table.c.item_id)
        )
        counts: dict[int, int] = {row[0]: row[1] for row in tx.connection.execute(done)}
    return Items(len(matching), [_view(ItemLine, item, done=counts.get(item.id, 0)) for item in matching[:limit]])


@_get("/api/lead/items/{number}/history")
def history(request: Request, caller: Lead, number: Number) -> History:
    """Everything that was said of an item, and everything that happened to it."""
    studio, ids = caller.studio, tables.events.c.id
    with studio.store.reading() as tx:
        item = tx.item(number)
        if item.project_id != studio.id:
            raise NotFound("item")
        names = tx.public_ids(studio.id)
        given = tx.assignments(studio.id, item_id=number)
        of_item = select(ids).where(tables.events.c.item_id == number)
        last = of_item.order_by(ids.desc()).offset(_MOST_EVENTS).limit(1)
        events = list(tx.events(studio.id, item_id=number, after=tx.connection.execute(last).scalar() or 0))
        left_out = tx.count(of_item) - len(events)
        gold, silver = tx.gold(number), tx.silver(number)
    return History(
        item.key,
        _items(request).item(studio, number),
        gold,
        silver,
        [_view(AssignmentHistory, row, by=names[row.person_id]) for row in given],
        [_view(EventView, row, by=names.get(row.person_id or 0), assignment=row.assignment_id) for row in events],
        left_out,
    )


@_get("/api/lead/export")
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


# Calls of leads: how far the work is, what settles it, who takes part.


@_get("/api/lead/overview")
def show_overview(request: Request, caller: Lead) -> dashboard.Overview:
    """How far the work is: languages, queue, people with their figures, batches."""
    _heavy(request, caller)
    with caller.studio.store.reading() as tx:
        return dashboard.overview(tx, caller.studio.project)


@_get("/api/lead/agreement")
def agreement(request: Request, caller: Lead, language: _Tag = None, gamma: bool = False) -> dashboard.ProjectAgreement:
    """How far people agree, with each other and with silver; gamma takes time, so it comes where it is asked for."""
    _heavy(request, caller)
    samples = _GAMMA if gamma else 0
    with caller.studio.store.reading() as tx:
        return dashboard.measure_agreement(tx, caller.studio.project, language=language, gamma=samples)


@_post("/api/lead/adjudications")
def settle(caller: LeadWriter, body: AdjudicationBody) -> Adjudication:
    """Take an item on to settle; what is then handed in becomes gold."""
    given = adjudication.adjudicate(caller.studio.store, caller.studio.project, caller.person.id, body.item)
    return Adjudication(given.id, given.state)


@_post("/api/lead/settle")
def settle_by_rule(request: Request, caller: LeadWriter, body: SettleBody) -> adjudication.Settled:
    """Settle by a rule every shared item that it can decide; what it cannot is left to a lead."""
    _heavy(request, caller)
    studio = caller.studio
    which: dict[str, Any] = {"language": body.language, "again": body.again, "by": caller.person.id}
    return adjudication.settle(studio.store, studio.project, body.rule, **which)


@_post("/api/lead/batches/{number}/validate")
def validate(caller: LeadWriter, number: Number) -> BatchView:
    """Begin the validation of a batch now, on what of it is through."""
    with caller.studio.store.reading() as tx:
        if tx.batch(number).project_id != caller.studio.id:
            raise NotFound("batch")
    return _view(BatchView, review.validate(caller.studio.store, caller.studio.project, number, by=caller.person.id))


@_post("/api/lead/invitations")
def invite(request: Request, caller: LeadWriter, body: InvitationBody) -> Link:
    """Make a link for somebody; it is shown this once."""
    studio = caller.studio
    about: dict[str, Any] = {"languages": body.languages, "note": body.note, "by": caller.person.id}
    with studio.store.writing() as tx:
        return _link(request, people.invite(tx, studio.project, studio.secret, body.role, **about))


@_post("/api/lead/people/{person}/renew")
def renew(request: Request, caller: LeadWriter, person: str) -> Link:
    """A new link for somebody in place of the old one; their browsers are signed out."""
    studio = caller.studio
    with studio.store.writing() as tx:
        id_ = _person(tx, caller, person)
        return _link(request, people.renew(tx, studio.project, studio.secret, id_, by=caller.person.id))


@_post("/api/lead/people/{person}/{what}")
def change(caller: LeadWriter, person: str, what: Literal["revoke", "restore", "reset_exam"]) -> PersonState:
    """Shut somebody out, let them in again, or give them all attempts at the exam again."""
    act = {"revoke": people.revoke, "restore": people.restore, "reset_exam": people.reset_exam}[what]
    with caller.studio.store.writing(lock=caller.studio.project.lock) as tx:
        id_ = _person(tx, caller, person)
        if what == "revoke" and id_ == caller.person.id:
            raise Refused("Nobody shuts themselves out.", remedy="Ask another lead.")
        changed = act(tx, id_, by=caller.person.id)
    return PersonState(changed.public_id, changed.revoked_at is not None, changed.exam_attempts)


def _heavy(request: Request, caller: Caller) -> None:
    request.app.state.rates.count("heavy", caller.token)


def _person(tx: ReadTransaction, caller: Caller, public_id: str) -> int:
    """Somebody of one's own project; others are not there."""
    person = tx.person_by(public_id=public_id)
    if person.project_id != caller.studio.id:
        raise NotFound("person")
    return person.id


def _link(request: Request, made: Invitation) -> Link:
    settings: Settings = request.app.state.settings
    base = settings.base_url or f"{request.url.scheme}://{request.url.netloc}"
    return Link(f"{base.rstrip('/')}/join/{made.token}", made.person.key_expires_at, made.person.public_id)
