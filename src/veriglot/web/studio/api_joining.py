"""Calls of those who come and go: links, names, sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Request, Response

from veriglot import __version__
from veriglot.annotate.people import end_session, join, person_of_token, start_session
from veriglot.annotate.store import Role
from veriglot.web.studio import sessions
from veriglot.web.studio.sessions import Asking, Caller, Writing
from veriglot.web.studio.views import (
    InvitationView,
    JoinBody,
    Joined,
    Me,
    MyProject,
    PersonView,
    ProjectView,
    Stage,
)
from veriglot.web.studio.wire import body_of, described, reply
from veriglot.web.studio.words import interface_languages

if TYPE_CHECKING:
    from veriglot.annotate.store import Person
    from veriglot.web.studio.studios import Studio, Studios

__all__ = ["router", "stage_of"]

router = APIRouter()


def stage_of(studio: Studio, person: Person) -> Stage:
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


@router.get("/api/join/{token}", **described(InvitationView))
def invitation(request: Request, token: str) -> Response:
    """What a link leads to, before somebody takes it up."""
    request.app.state.rates.count("join", sessions.address_of(request))
    studios: Studios = request.app.state.studios
    studio = studios.of_token(token)
    with studio.store.reading() as tx:
        person = person_of_token(tx, studio.project, studio.secret, token)
    return reply(
        InvitationView(
            _project(studio),
            person.role,
            person.joined_at is not None,
            person.name,
            interface_languages(studio.project),
            studio.project.entries.consent,
        )
    )


@router.post("/api/join", **described(Joined, body=JoinBody))
def take_up(request: Request, body: Annotated[JoinBody, Depends(body_of(JoinBody))]) -> Response:
    """Take up a link: the answer sets the session's cookie."""
    request.app.state.rates.count("join", sessions.address_of(request))
    studios: Studios = request.app.state.studios
    studio = studios.of_token(body.token)
    with studio.store.writing(lock="people") as tx:
        person = join(
            tx,
            studio.project,
            studio.secret,
            body.token,
            name=body.name,
            language=body.language,
            consent=body.consent,
        )
        token = start_session(tx, studio.project, person)
    caller = Caller(studio, person, token)
    answer = reply(Joined(stage_of(studio, person), caller.csrf))
    sessions.start(request, answer, studio, token)
    return answer


@router.get("/api/me", **described(Me, refusals=(401,)))
def me(caller: Asking) -> Response:
    """Who asks, and what a page needs to begin."""
    person, project = caller.person, caller.studio.project
    exam = project.entries.exam
    return reply(
        Me(
            PersonView(
                person.public_id,
                person.name,
                person.role,
                person.language or "en",
                stage_of(caller.studio, person),
                person.exam_attempts,
            ),
            MyProject(
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


@router.post("/api/logout", **described(dict[str, bool], refusals=(401,)))
def logout(request: Request, caller: Writing) -> Response:
    """End this session."""
    with caller.studio.store.writing() as tx:
        end_session(tx, caller.token)
    answer = reply({"done": True})
    sessions.end(request, answer)
    return answer


def _project(studio: Studio) -> ProjectView:
    return ProjectView(studio.project.slug, studio.project.name, studio.project.task)
