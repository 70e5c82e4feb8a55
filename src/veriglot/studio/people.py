"""People: invited by a link, known by a name that they choose and nothing else, shut out or let in again by a lead.

The link is the person's own. It holds a key that is signed, and of which the store keeps only a hash. Until somebody
joins by it, it ends after `people.invitation_days`; then it opens their work on any device for `people.resume_days`.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import unicodedata
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from itsdangerous import BadData, URLSafeSerializer

from veriglot.errors import InputError, UsageError
from veriglot.records.languages import get_language
from veriglot.studio.project import LANGUAGE_TAG
from veriglot.studio.tables import NotFound, Refused, Role, StoreError, items, now

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from sqlalchemy import ColumnElement

    from veriglot.studio.project import Project
    from veriglot.studio.store import ReadTransaction, WriteTransaction
    from veriglot.studio.tables import Person

__all__ = [
    "Invitation",
    "InvitationError",
    "can_judge",
    "can_work",
    "end_session",
    "in_languages",
    "invite",
    "join",
    "number_people",
    "person_of_session",
    "person_of_token",
    "read_slug",
    "renew",
    "reset_exam",
    "restore",
    "revoke",
    "secret_of",
    "start_session",
]

_VARIABLE = "VERIGLOT_STUDIO_SECRET"
_SALT = "veriglot.studio.invitation"
_SHORTEST_SECRET = 32
_LONGEST_NAME = 40
_LONGEST_TOKEN = 512
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # a name that reorders or hides what stands around it


class InvitationError(UsageError):
    """A link that opens nothing.

    Attributes:
        reason: `forged`, `unknown`, `expired` or `revoked`.
    """

    def __init__(self, reason: str) -> None:
        messages = {
            "forged": "This link is damaged or was not made here.",
            "unknown": "This link is no longer valid.",
            "expired": "This link has expired.",
            "revoked": "This link was withdrawn.",
        }
        super().__init__(messages[reason], remedy="Ask whoever sent it for a new one.")
        self.reason = reason


class Invitation(NamedTuple):
    """A link to hand to somebody: the `token` in it is not kept and cannot be shown again; `person` says how long."""

    person: Person
    token: str


def secret_of(project: Project) -> bytes:
    """The secret that links of a project are signed with.

    It comes from the environment (`VERIGLOT_STUDIO_SECRET`, at least 32 characters) or from the file `<slug>.secret`
    beside the project file, which is made where there is none, for its owner's eyes.

    Raises:
        StoreError: it is too short, or cannot be read or written.
    """
    given = os.environ.get(_VARIABLE)
    if given is not None:
        if len(given) < _SHORTEST_SECRET:
            raise StoreError(f"{_VARIABLE} has fewer than {_SHORTEST_SECRET} characters.", remedy="Set a longer one.")
        return given.encode()
    path = project.path.parent / f"{project.slug}.secret"
    try:
        return _secret_in(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be used: {error.strerror}.", remedy=f"Or set {_VARIABLE}.") from error


def _secret_in(path: Path) -> bytes:
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    if not path.exists():
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
        try:
            os.link(new, path)  # whole, or not at all; the first of two that make it wins
        except FileExistsError:
            pass
        finally:
            new.unlink()
    secret = path.read_bytes().strip()
    if len(secret) < _SHORTEST_SECRET:
        raise StoreError(f"{path} is damaged.", remedy="Delete it; links that were sent then need to be renewed.")
    return secret


def invite(
    tx: WriteTransaction,
    project: Project,
    secret: bytes,
    role: Role,
    *,
    languages: Sequence[str] = (),
    note: str | None = None,
    by: int | None = None,
) -> Invitation:
    """Invite somebody to a project that the store knows (`items.register_project`).

    Args:
        tx: the transaction.
        project: the project.
        secret: `secret_of` it.
        role: what they may do.
        languages: of the items that they get; empty for all.
        note: the lead's, such as who is meant; at most 200 characters.
        by: who invites; None for the command line.

    Raises:
        UnknownNameError: a language that does not exist.
        Refused: the note is too long.
    """
    if note is not None and (len(note) > 200 or any(unicodedata.category(char) == "Cs" for char in note)):
        raise Refused("A note has at most 200 characters.")
    key, at = secrets.token_urlsafe(24), now()
    person = tx.add_person(
        tx.project(project.slug).id,
        by=by,
        public_id=secrets.token_hex(6),
        role=role,
        works_in=[get_language(name).tag for name in languages] or None,
        note=note,
        key_hash=_hash(key),
        key_expires_at=at + timedelta(days=project.entries.people.invitation_days),
        invited_at=at,
    )
    return Invitation(person, _token(secret, project.slug, key))


def renew(
    tx: WriteTransaction, project: Project, secret: bytes, person_id: int, *, by: int | None = None
) -> Invitation:
    """A new link for somebody; the old one opens nothing any more, and their browsers have to use the new one."""
    terms, key = project.entries.people, secrets.token_urlsafe(24)
    days = terms.invitation_days if tx.person(person_id).joined_at is None else terms.resume_days
    expires_at = now() + timedelta(days=days)
    person = tx.update_person(person_id, "renewed", by=by, key_hash=_hash(key), key_expires_at=expires_at)
    tx.end_sessions(person_id=person_id)
    return Invitation(person, _token(secret, project.slug, key))


def read_slug(secret: bytes, token: str) -> str:
    """The slug of the project that a link leads to.

    Raises:
        InvitationError: `forged`: it was not signed with this secret.
    """
    return _read(secret, token)[0]


def person_of_token(tx: ReadTransaction, project: Project, secret: bytes, token: str) -> Person:
    """Whose link it is.

    Raises:
        InvitationError: it is forged, of another project, replaced by another, over, or they were shut out.
    """
    slug, key = _read(secret, token)
    if slug != project.slug:
        raise InvitationError("unknown")
    try:
        person = tx.person_by(key_hash=_hash(key))
    except NotFound:
        raise InvitationError("unknown") from None
    if person.project_id != tx.project(slug).id:
        raise InvitationError("unknown")
    if person.revoked_at is not None:
        raise InvitationError("revoked")
    if person.key_expires_at <= now():
        raise InvitationError("expired")
    return person


def consent_text(project: Project, language: str) -> str:
    """What somebody whose interface has a language is asked to agree to; empty where the project has no text.

    The same order as the page's: the language, the language without script and region, English, any.
    """
    texts = project.entries.consent
    order = (language, language.partition("-")[0], "en", *texts)
    return next((texts[tag] for tag in order if texts.get(tag)), "")


def join(
    tx: WriteTransaction, project: Project, secret: bytes, token: str, *, name: str, language: str, consent: bool
) -> Person:
    """Take up an invitation; who has joined already is let in again, and keeps their name.

    Args:
        tx: the transaction; `writing(lock="people")`, so that no two take one name.
        project: the project.
        secret: `secret_of`.
        token: of the link.
        name: that they choose, 1 to 40 characters; nobody else of the project may have it.
        language: of the interface, as a tag.
        consent: whether they agreed to the project's text.

    Raises:
        InvitationError: the link opens nothing.
        InputError: the name or language cannot be taken, or they did not agree; `field` names which.
    """
    person = person_of_token(tx, project, secret, token)
    if person.joined_at is not None:
        return person
    if not consent:
        raise InputError("Without your agreement there is nothing to take part in.", field="consent")
    chosen = _name(name)
    others = {other.name.casefold() for other in tx.people(person.project_id) if other.name is not None}
    if chosen.casefold() in others:
        raise InputError("Somebody here has this name already.", field="name", remedy="Choose another.")
    if not LANGUAGE_TAG.fullmatch(language) or len(language) > 64:
        raise InputError("This is no tag of a language.", field="language")
    at = now()
    text = consent_text(project, language)
    return tx.update_person(
        person.id,
        "joined",
        by=person.id,
        payload={"name": chosen, "language": language, "consent_sha256": hashlib.sha256(text.encode()).hexdigest()},
        name=chosen,
        language=language,
        joined_at=at,
        consented_at=at,
        consent=text or None,
        key_expires_at=at + timedelta(days=project.entries.people.resume_days),
    )


def revoke(tx: WriteTransaction, person_id: int, *, by: int | None = None) -> Person:
    """Shut somebody out: their link and sessions end, their work stays."""
    tx.end_sessions(person_id=person_id)
    return tx.update_person(person_id, "revoked", by=by, revoked_at=now())


def restore(tx: WriteTransaction, person_id: int, *, by: int | None = None) -> Person:
    """Let somebody in again."""
    return tx.update_person(person_id, "restored", by=by, revoked_at=None)


def reset_exam(tx: WriteTransaction, person_id: int, *, by: int | None = None) -> Person:
    """Give somebody all attempts at the exam again; the figures of the old ones stay in the events."""
    figures = tx.person(person_id).exam_figures
    changes = {"exam_attempts": 0, "exam_passed_at": None, "out_at": None}
    return tx.update_person(person_id, "exam_reset", by=by, payload={"figures": figures}, **changes)


def can_work(person: Person, project: Project) -> bool:
    """Whether somebody may annotate: an annotator who joined, was not shut out, and passed the exam if there is one."""
    through = project.entries.exam is None or person.exam_passed_at is not None
    return person.role is Role.ANNOTATOR and _is_here(person) and person.out_at is None and through


def can_judge(person: Person) -> bool:
    """Whether somebody may look at others' work: a reviewer or lead who joined and was not shut out."""
    return person.role in {Role.REVIEWER, Role.LEAD} and _is_here(person)


def _is_here(person: Person) -> bool:
    return person.joined_at is not None and person.revoked_at is None


def in_languages(person: Person) -> list[ColumnElement[bool]]:
    """Conditions on `items` for the languages that somebody works in."""
    return [] if person.works_in is None else [items.c.language.in_(person.works_in)]


def number_people(people: Iterable[Person]) -> dict[int, int]:
    """Ids of people to the numbers that they are called by where names are not to be known (`Annotator 3`).

    They count from 1 among those of a role, in the order of the invitations (`ReadTransaction.people`). Nobody is ever
    deleted and roles do not change, so a number stays.
    """
    counts: dict[Role, int] = {}
    result = {}
    for person in people:
        counts[person.role] = result[person.id] = counts.get(person.role, 0) + 1
    return result


def start_session(tx: WriteTransaction, project: Project, person: Person) -> str:
    """Remember a browser: the token for its cookie, of which only the hash is kept."""
    token = secrets.token_urlsafe(32)
    tx.end_sessions()  # those whose time is over
    tx.add_session(_hash(token), person.id, now() + timedelta(days=project.entries.people.session_days))
    return token


def end_session(tx: WriteTransaction, token: str) -> None:
    """Forget a browser."""
    tx.end_sessions(token_hash=_hash(token))


def person_of_session(tx: ReadTransaction, token: str) -> Person | None:
    """Whose browser it is; None where the session is over or they were shut out."""
    return tx.person_of_session(_hash(token)) if len(token) <= _LONGEST_TOKEN else None


def _name(name: str) -> str:
    chosen = unicodedata.normalize("NFC", " ".join(name.split()))
    if not 1 <= len(chosen) <= _LONGEST_NAME:
        raise InputError(f"A name has 1 to {_LONGEST_NAME} characters.", field="name")
    if any(unicodedata.category(char) in _UNSEEN for char in chosen):
        raise InputError("A name holds no invisible characters.", field="name")
    return chosen


def _token(secret: bytes, slug: str, key: str) -> str:
    return str(URLSafeSerializer(secret, salt=_SALT).dumps([slug, key]))


def _read(secret: bytes, token: str) -> tuple[str, str]:
    try:
        if len(token) > _LONGEST_TOKEN:
            raise InvitationError("forged")
        slug, key = URLSafeSerializer(secret, salt=_SALT).loads(token)
    except (BadData, TypeError, ValueError):
        raise InvitationError("forged") from None
    return str(slug), str(key)


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
