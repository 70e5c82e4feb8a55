"""Calls of leads: how far the work is, who takes part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from veriglot.annotate import adjudicating, people, validating
from veriglot.annotate.agreeing import AgreementNow, agreement_now
from veriglot.annotate.figures import Overview, overview
from veriglot.annotate.store import NotFound, Refused
from veriglot.web.studio.lead_views import (
    Adjudication,
    AdjudicationBody,
    BatchView,
    InvitationBody,
    Link,
    PersonState,
    SettleBody,
    SettledView,
)
from veriglot.web.studio.sessions import Caller, Leading, WritingLead  # noqa: TC001  FastAPI reads them
from veriglot.web.studio.wire import body_of, described, reply

if TYPE_CHECKING:
    from veriglot.annotate.people import Invitation
    from veriglot.annotate.store import Reading
    from veriglot.web.studio.settings import Settings

__all__ = ["router"]

router = APIRouter()
_GAMMA = 30  # random annotations an item that gamma is held against
_Tag = Annotated[str | None, Query(max_length=64)]


@router.get("/api/lead/overview", **described(Overview, refusals=(401,)))
def all_at_a_glance(request: Request, caller: Leading) -> Response:
    """How far the work is: languages, queue, people with their figures, batches."""
    _heavy(request, caller)
    with caller.studio.store.reading() as tx:
        return reply(overview(tx, caller.studio.project))


@router.get("/api/lead/agreement", **described(AgreementNow, refusals=(401, 422)))
def agreement(request: Request, caller: Leading, language: _Tag = None, gamma: bool = False) -> Response:
    """How far people agree, with each other and with silver; gamma takes time, so it comes where it is asked for."""
    _heavy(request, caller)
    with caller.studio.store.reading() as tx:
        found = agreement_now(tx, caller.studio.project, language=language, gamma=_GAMMA if gamma else 0)
    return reply(found)


@router.post("/api/lead/adjudications", **described(Adjudication, body=AdjudicationBody, refusals=(401,)))
def settle(caller: WritingLead, body: Annotated[AdjudicationBody, Depends(body_of(AdjudicationBody))]) -> Response:
    """Take an item on to settle; what is then handed in becomes gold."""
    given = adjudicating.adjudicate(caller.studio.store, caller.studio.project, caller.person.id, body.item)
    return reply(Adjudication(given.id, given.state))


@router.post("/api/lead/settle", **described(SettledView, body=SettleBody, refusals=(401,)))
def settle_by_rule(
    request: Request, caller: WritingLead, body: Annotated[SettleBody, Depends(body_of(SettleBody))]
) -> Response:
    """Settle by a rule every shared item that it can decide; what it cannot is left to a lead."""
    _heavy(request, caller)
    studio = caller.studio
    done = adjudicating.settle(
        studio.store, studio.project, body.rule, language=body.language, again=body.again, by=caller.person.id
    )
    return reply(SettledView(*done))


@router.post("/api/lead/batches/{number}/validate", **described(BatchView, refusals=(401, 422)))
def validate(caller: WritingLead, number: Annotated[int, Path(ge=1, le=2**31 - 1)]) -> Response:
    """Begin the validation of a batch now, on what of it is through."""
    with caller.studio.store.reading() as tx:
        if tx.batch(number).project_id != caller.studio.id:
            raise NotFound("batch")
    done = validating.validate(caller.studio.store, caller.studio.project, number, by=caller.person.id)
    return reply(BatchView(done.id, done.number, done.state, done.round))


@router.post("/api/lead/invitations", **described(Link, body=InvitationBody, refusals=(401,)))
def invite(
    request: Request, caller: WritingLead, body: Annotated[InvitationBody, Depends(body_of(InvitationBody))]
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
    return reply(_link(request, made))


@router.post("/api/lead/people/{person}/renew", **described(Link, refusals=(401, 422)))
def renew(request: Request, caller: WritingLead, person: str) -> Response:
    """A new link for somebody in place of the old one; their browsers are signed out."""
    studio = caller.studio
    with studio.store.writing() as tx:
        made = people.renew(tx, studio.project, studio.secret, _person(tx, caller, person), by=caller.person.id)
    return reply(_link(request, made))


@router.post("/api/lead/people/{person}/{what}", **described(PersonState, refusals=(401, 422)))
def change(caller: WritingLead, person: str, what: Literal["revoke", "restore", "reset_exam"]) -> Response:
    """Shut somebody out, let them in again, or give them all attempts at the exam again."""
    done = {"revoke": people.revoke, "restore": people.restore, "reset_exam": people.reset_exam}[what]
    with caller.studio.store.writing(lock=f"assign {caller.studio.slug}") as tx:
        id_ = _person(tx, caller, person)
        if what == "revoke" and id_ == caller.person.id:
            raise Refused("Nobody shuts themselves out.", remedy="Ask another lead.")
        now = done(tx, id_, by=caller.person.id)
    return reply(PersonState(now.public_id, now.revoked_at is not None, now.exam_attempts))


def _heavy(request: Request, caller: Caller) -> None:
    request.app.state.rates.count("heavy", caller.token)


def _person(tx: Reading, caller: Caller, public_id: str) -> int:
    """Somebody of one's own project.

    Raises:
        NotFound: there is no such person in it.
    """
    found = tx.person_by(public_id=public_id)
    if found.project_id != caller.studio.id:
        raise NotFound("person")
    return found.id


def _link(request: Request, made: Invitation) -> Link:
    settings: Settings = request.app.state.settings
    base = settings.base_url or f"{request.url.scheme}://{request.url.netloc}"
    return Link(f"{base.rstrip('/')}/join/{made.token}", made.expires_at, made.person.public_id)
