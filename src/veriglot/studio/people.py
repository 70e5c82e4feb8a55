"""People: invited by a link, known only by a name that they choose, excluded or readmitted by a lead.

The link is personal. It has a signed key, of which the store has only a hash. Before the person joins, it expires after
`people.invitation_days`; afterwards it opens their work on any device for `people.resume_days`.
"""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
from fastapi import Request, Response  # noqa: TC002  # the call reads its annotations

from veriglot.http.server import json_response
from veriglot.records.languages import get_language
from veriglot.records.settings import Record, StrictRecord, require
from veriglot.studio.project import LANGUAGE_TAG, Form, Project
from veriglot.studio.store import ReadTransaction, WriteTransaction, sha256
from veriglot.studio.tables import AT_WORK, NotFound, Person, Purpose, Refused, Role, Stage, State, now
from veriglot.studio.texts import interface_languages, words_of
from veriglot.studio.web import (
    Caller,
    InvitationError,
    LeadWriter,
    Router,
    Settings,
    SignedIn,
    Studio,
    Writer,
    client_address,
    delete_cookie,
    set_cookie,
    signed_in_studios,
    view,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


__all__ = ["invite", "make_token", "router"]

_LONGEST_NAME = 40
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # such characters could reorder or hide the text around a name


class Invitation(NamedTuple):
    """A link for a person: its `token` is not stored and cannot be shown again; `person` has its expiry time."""

    person: Person
    token: str


def invite(
    tx: WriteTransaction,
    studio: Studio,
    role: Role,
    *,
    languages: Sequence[str] = (),
    note: str | None = None,
    email: str | None = None,
    by: int | None = None,
) -> Invitation:
    """Invite a person to a project in the store (`items.register_project`).

    Args:
        tx: the transaction.
        studio: the project.
        role: the person's role.
        languages: of their items; empty for all.
        note: the lead's note, such as the person's real name; at most 200 characters.
        email: address for signing in without the link (`[sign_in]`).
        by: who invites; None for the command line.

    Raises:
        UnknownNameError: a language does not exist.
        Refused: the project does not have a language, the note is too long, or the address is invalid or used by
            somebody else here.
    """
    if note is not None and (len(note) > 200 or any(unicodedata.category(char) == "Cs" for char in note)):
        raise Refused("A note has at most 200 characters.")
    if email is not None:
        _check_email(tx, studio, email)
    key, at = secrets.token_urlsafe(24), now()
    person = tx.add_person(
        studio.id,
        by=by,
        public_id=secrets.token_hex(6),
        role=role,
        works_in=_works_in(tx, studio, languages),
        note=note,
        email=email,
        key_hash=sha256(key),
        key_expires_at=at + timedelta(days=studio.project.entries.people.invitation_days),
        invited_at=at,
    )
    return Invitation(person, studio.link_token(key))


def _works_in(tx: ReadTransaction, studio: Studio, languages: Sequence[str]) -> list[str] | None:
    """Tags of a person's languages; None for all. In other languages than the project's, nobody would get an item."""
    tags = [get_language(name).tag for name in languages]
    imported = (tag for (tag,) in tx.tally(studio.id, "items", "language") if tag is not None)
    known = studio.project.languages or tuple(sorted(imported))
    for tag in tags:
        if known and tag not in known:
            raise Refused(f"This project has no items in the language {tag!r}.", f"Choose from: {', '.join(known)}.")
    return tags or None


def _check_email(tx: ReadTransaction, studio: Studio, email: str) -> None:
    name, _, host = email.rpartition("@")
    if not (name and host) or len(email) > 200 or not email.isprintable() or any(map(str.isspace, email)):
        raise Refused("This is no e-mail address.")
    if studio.project.entries.sign_in is None:
        raise Refused("Nobody signs in by an address here.", "Name a provider under [sign_in].")
    if any((person.email or "").casefold() == email.casefold() for person in tx.people(studio.id)):
        raise Refused("Somebody here has this address already.")


def renew(tx: WriteTransaction, studio: Studio, person_id: int, *, by: int | None = None) -> Invitation:
    """A new link for a person; the old one and their sessions become invalid."""
    terms, key = studio.project.entries.people, secrets.token_urlsafe(24)
    days = terms.invitation_days if tx.person(person_id).joined_at is None else terms.resume_days
    expires_at = now() + timedelta(days=days)
    person = tx.update_person(person_id, "renewed", by=by, key_hash=sha256(key), key_expires_at=expires_at)
    tx.end_sessions(person_id=person_id)
    return Invitation(person, studio.link_token(key))


def make_token(tx: WriteTransaction, studio: Studio, *, note: str | None = None) -> Invitation:
    """A token for a script that reads what leads see, valid for `people.resume_days` or until a lead excludes it.

    In the list of people it is a lead who never joined; nobody knows its link.
    """
    expires_at, token = now() + timedelta(days=studio.project.entries.people.resume_days), secrets.token_urlsafe(32)
    made = invite(tx, studio, Role.LEAD, note=note or "script")
    tx.add_session(token, made.person.id, expires_at)
    person = tx.update_person(made.person.id, "token", key_expires_at=expires_at)
    return Invitation(person, studio.signer("script").sign(f"{studio.slug}.{token}").decode())


def person_of_token(tx: ReadTransaction, studio: Studio, token: str) -> Person:
    """The owner of a link."""
    slug, key = studio.read_token(token)
    if slug != studio.slug:
        raise InvitationError("unknown")
    try:
        person = tx.person_by(key_hash=sha256(key))
    except NotFound:
        raise InvitationError("unknown") from None
    if person.project_id != studio.id:
        raise InvitationError("unknown")
    if person.revoked_at is not None:
        raise InvitationError("revoked")
    if person.key_expires_at <= now():
        raise InvitationError("expired")
    return person


def consent_text(project: Project, language: str) -> str:
    """The consent text for an interface language, as the page shows it.

    If the project has texts: in the language, without script and region, in English, in any. Otherwise Veriglot's.
    """
    texts = project.entries.consent
    order = (language, language.partition("-")[0], "en", *texts)
    return next((texts[tag] for tag in order if texts.get(tag)), words_of(language)[1]["join.consent_text"])


def join(tx: WriteTransaction, studio: Studio, token: str, *, name: str, language: str, consent: bool) -> Person:
    """Accept an invitation; a person who has joined before is signed in again, and keeps their name."""
    person = person_of_token(tx, studio, token)
    if person.joined_at is not None:
        return person
    require(consent, "Without your agreement there is nothing to take part in.", "consent")
    chosen = _name(name)
    others = {other.name.casefold() for other in tx.people(person.project_id) if other.name is not None}
    require(chosen.casefold() not in others, "Somebody here has this name already.", "name", "Choose another.")
    require(LANGUAGE_TAG.fullmatch(language) and len(language) <= 64, "This is no tag of a language.", "language")
    at = now()
    text = consent_text(studio.project, language)
    return tx.update_person(
        person.id,
        "joined",
        by=person.id,
        payload={"name": chosen, "language": language, "consent_sha256": hashlib.sha256(text.encode()).hexdigest()},
        name=chosen,
        language=language,
        joined_at=at,
        consented_at=at,
        consent=text,
        key_expires_at=at + timedelta(days=studio.project.entries.people.resume_days),
    )


def start_session(tx: WriteTransaction, studio: Studio, person: Person) -> str:
    """Start a session: returns the token for its cookie; only the hash is stored."""
    token = secrets.token_urlsafe(32)
    tx.end_sessions()  # the expired ones
    tx.add_session(token, person.id, now() + timedelta(days=studio.project.entries.people.session_days))
    return token


def _name(name: str) -> str:
    chosen = unicodedata.normalize("NFC", " ".join(name.split()))
    require(1 <= len(chosen) <= _LONGEST_NAME, f"A name has 1 to {_LONGEST_NAME} characters.", "name")
    unseen = any(unicodedata.category(char) in _UNSEEN for char in chosen)
    require(not unseen, "A name holds no invisible characters.", "name")
    return chosen


_Change = Literal["revoke", "restore", "reset_exam"]


def change(tx: WriteTransaction, person_id: int, what: _Change, *, by: int | None = None) -> Person:
    """Exclude a person (their link and sessions end, their work stays), readmit them, or give them all exam attempts
    again (the results of the old ones stay in the events).
    """
    if what == "revoke":
        tx.end_sessions(person_id=person_id)
        return tx.update_person(person_id, "revoked", by=by, revoked_at=now())
    if what == "restore":
        return tx.update_person(person_id, "restored", by=by, revoked_at=None)
    figures = tx.person(person_id).exam_figures
    changes = {"exam_attempts": 0, "exam_passed_at": None, "out_at": None}
    return tx.update_person(person_id, "exam_reset", by=by, payload={"figures": figures}, **changes)


# Endpoints: links, sessions, and a lead's invitations and exclusions.


router = Router()


class JoinBody(StrictRecord):
    """Accept a link. A person who has joined before keeps their name; the other fields are then ignored."""

    token: Annotated[str, msgspec.Meta(max_length=512)]
    name: Annotated[str, msgspec.Meta(max_length=400)] = ""
    language: Annotated[str, msgspec.Meta(max_length=64)] = "en"
    consent: bool = False


class ProjectView(Record):
    """A project, for participants."""

    slug: str
    name: str
    task: str


class InvitationView(Record):
    """The target of a link, before it is accepted; `consent` is by interface language, empty for Veriglot's text."""

    project: ProjectView
    role: Role
    joined: bool
    name: str | None
    languages: list[str]
    consent: dict[str, str]


class Joined(Record):
    """The answer after a link was accepted; the session is in a cookie."""

    stage: Stage
    csrf: str


class PersonView(Record):
    """The caller."""

    id: str
    name: str | None
    role: Role
    language: str
    stage: Stage
    exam_attempts: int
    exam_begun: bool  # whether an attempt is in progress


class MyProject(Record):
    """The caller's project, with its form."""

    slug: str
    name: str
    task: str
    form: Form
    idle: float
    exam_attempts: int | None
    exam_feedback: bool
    sign_in: bool  # whether people can be invited by e-mail address
    languages: list[str]


class Me(Record):
    """The caller, and what a page needs at start; `projects` are all that this browser is signed in to."""

    person: PersonView
    project: MyProject
    projects: list[ProjectView]
    csrf: str


class InvitationBody(StrictRecord):
    """A new invitation: `languages` are those of the items, empty for all; the note is for leads."""

    role: Role
    languages: Annotated[list[Annotated[str, msgspec.Meta(max_length=64)]], msgspec.Meta(max_length=100)] = []  # noqa: RUF012
    note: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    email: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class Link(Record):
    """A link for one person; it is not stored and cannot be shown again."""

    link: str
    expires: datetime
    person: str


class PersonState(Record):
    """A person after a change."""

    id: str
    revoked: bool
    exam_attempts: int


@router.call("GET", "/api/join/{token}")
def invitation(request: Request, token: str) -> InvitationView:
    """The target of a link, before it is accepted."""
    with _of_link(request, token) as studio, studio.store.reading() as tx:
        person = person_of_token(tx, studio, token)
    project = studio.project
    return InvitationView(
        ProjectView(project.slug, project.name, project.task),
        person.role,
        person.joined_at is not None,
        person.name,
        interface_languages(project),
        project.entries.consent,
    )


@router.call("POST", "/api/join", answer=Joined)
def accept_invitation(request: Request, body: JoinBody) -> Response:
    """Accept a link: the answer sets the session's cookie."""
    terms: dict[str, Any] = {"name": body.name, "language": body.language, "consent": body.consent}
    with _of_link(request, body.token) as studio, studio.store.writing(lock="people") as tx:
        person = join(tx, studio, body.token, **terms)
        token = start_session(tx, studio, person)
    answer = json_response(Joined(person.stage(studio.project), Caller(studio, person, token, request).csrf))
    set_cookie(request, answer, studio, token)
    return answer


@contextmanager
def _of_link(request: Request, token: str) -> Iterator[Studio]:
    """The project of a link. Invalid links count as attempts of an address, others as normal calls."""
    studios, rates = request.app.state.studios, request.app.state.rates
    try:
        studio = studios.of_token(token)
        rates.count("join", token)
        yield studio
    except InvitationError:
        rates.count("join", client_address(request))
        raise


@router.call("GET", "/api/me")
def me(caller: SignedIn) -> Me:
    """The caller, and what a page needs at start."""
    person, project = caller.person, caller.studio.project
    exam, language, stage = project.entries.exam, person.language or "en", person.stage(project)
    with caller.studio.store.reading() as tx:
        begun = bool(tx.assignments(person_id=person.id, purpose=Purpose.EXAM, state=(*AT_WORK, State.SUBMITTED)))
    return Me(
        view(PersonView, person, id=person.public_id, language=language, stage=stage, exam_begun=begun),
        view(
            MyProject,
            project,
            idle=project.entries.pace.idle,
            exam_attempts=None if exam is None else exam.attempts,
            exam_feedback=exam is not None and exam.feedback,
            sign_in=project.entries.sign_in is not None,
            languages=interface_languages(project),
        ),
        [view(ProjectView, studio.project) for studio in signed_in_studios(caller.request)],
        caller.csrf,
    )


@router.call("POST", "/api/logout", answer=dict[str, bool])
def logout(request: Request, caller: Writer) -> Response:
    """End this session."""
    with caller.studio.store.writing() as tx:
        tx.end_sessions(token_hash=sha256(caller.token))
    answer = json_response({"done": True})
    delete_cookie(request, answer, caller.studio)
    return answer


@router.call("POST", "/api/lead/invitations")
def invite_person(request: Request, caller: LeadWriter, body: InvitationBody) -> Link:
    """Create a link for a person; it is shown only once."""
    studio = caller.studio
    about: dict[str, Any] = {"languages": body.languages, "note": body.note, "email": body.email}
    with studio.store.writing() as tx:
        return _link(request, invite(tx, studio, body.role, by=caller.person.id, **about))


@router.call("POST", "/api/lead/people/{person}/renew")
def renew_link(request: Request, caller: LeadWriter, person: str) -> Link:
    """Replace a person's link; their browsers are signed out."""
    studio = caller.studio
    with studio.store.writing() as tx:
        id_ = _person(tx, caller, person)
        return _link(request, renew(tx, studio, id_, by=caller.person.id))


@router.call("POST", "/api/lead/people/{person}/{what}")
def change_person(caller: LeadWriter, person: str, what: _Change) -> PersonState:
    """Exclude a person, readmit them, or give them all exam attempts again."""
    with caller.studio.store.writing(lock=caller.studio.project.lock) as tx:
        id_ = _person(tx, caller, person)
        if what == "revoke" and id_ == caller.person.id:
            raise Refused("Nobody shuts themselves out.", "Ask another lead.")
        changed = change(tx, id_, what, by=caller.person.id)
    return PersonState(changed.public_id, changed.revoked_at is not None, changed.exam_attempts)


def _person(tx: ReadTransaction, caller: Caller, public_id: str) -> int:
    """The id of a person in the caller's project; people of others are not found."""
    person = tx.person_by(public_id=public_id)
    if person.project_id != caller.studio.id:
        raise NotFound("person")
    return person.id


def base_address(request: Request) -> str:
    """The public address of this server, without a slash at the end."""
    settings: Settings = request.app.state.settings
    return (settings.base_url or f"{request.url.scheme}://{request.url.netloc}").rstrip("/")


def _link(request: Request, made: Invitation) -> Link:
    return Link(f"{base_address(request)}/join/{made.token}", made.person.key_expires_at, made.person.public_id)
