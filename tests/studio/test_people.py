"""Links: signed, hashed, expiring, revocable, of one project; and names that hide nothing."""

from __future__ import annotations

import stat
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from itsdangerous import URLSafeSerializer
from sqlalchemy import select, text

from veriglot.errors import InputError, UnknownNameError
from veriglot.studio import people, tables
from veriglot.studio.items import register_project
from veriglot.studio.people import InvitationError, invite, join, person_of_token
from veriglot.studio.tables import Role, StoreError, now

if TYPE_CHECKING:
    from collections.abc import Callable

    from veriglot.studio.people import Invitation
    from veriglot.studio.project import Project
    from veriglot.studio.store import Store

SECRET = b"s" * 32
PROJECT = '[project]\nname = "{slug}"\nslug = "{slug}"\ntask = "spans"\n[consent]\nen = "I agree."\n'


@pytest.fixture
def project(store: Store, make_project: Callable[..., Project]) -> Project:
    made = make_project(PROJECT.format(slug="one"))
    register_project(store, made)
    return made


def invited(store: Store, project: Project, role: Role = Role.ANNOTATOR) -> Invitation:
    with store.writing() as tx:
        return invite(tx, project, SECRET, role, languages=["german"])


def joined(store: Store, project: Project, token: str, name: str = "Ada", **more):
    with store.writing(lock="people") as tx:
        return join(tx, project, SECRET, token, **{"name": name, "language": "en", "consent": True, **more})


def reason(store: Store, project: Project, token: str, secret: bytes = SECRET) -> str:
    with store.reading() as tx, pytest.raises(InvitationError) as refused:
        person_of_token(tx, project, secret, token)
    return refused.value.reason


def test_a_link_lets_one_person_in_and_in_again(store: Store, project: Project) -> None:
    made = invited(store, project)
    assert made.person.works_in == ("de",)
    person = joined(store, project, made.token, "  Ada\u0308  Lovelace ")
    assert (person.name, person.language, person.id) == ("Adä Lovelace", "en", made.person.id)
    assert person.key_expires_at > made.person.key_expires_at + timedelta(days=100)
    again = joined(store, project, made.token, "Another", consent=False)
    assert again == person


@pytest.mark.parametrize(("language", "shown"), [("en", "I agree."), ("de-AT", "Ja."), ("ar", "I agree.")])
def test_what_was_agreed_to_is_what_was_shown(
    store: Store, make_project: Callable[..., Project], language: str, shown: str
) -> None:
    """The page shows the nearest text that there is; that one is kept."""
    made = make_project(PROJECT.format(slug="two") + 'de = "Ja."\n')
    register_project(store, made)
    person = joined(store, made, invited(store, made).token, language=language)
    with store.reading() as tx:
        kept = tx.connection.execute(select(tables.people.c.consent).where(tables.people.c.id == person.id)).scalar()
    assert kept == shown


def test_only_hashes_are_kept(store: Store, project: Project) -> None:
    made = invited(store, project)
    person = joined(store, project, made.token)
    with store.writing() as tx:
        token = people.start_session(tx, project, person)
    _, key = URLSafeSerializer(SECRET, salt="veriglot.studio.invitation").loads(made.token)
    with store.reading() as tx:
        kept = "".join(
            str(row)
            for name in ("people", "events", "sessions")
            for row in tx.connection.execute(text(f"SELECT * FROM {name}"))
        )
        assert people.person_of_session(tx, token) == person
    for secret in (made.token, key, token):
        assert secret not in kept


def test_links_that_open_nothing(store: Store, project: Project, make_project: Callable[..., Project]) -> None:
    made = invited(store, project)
    token = made.token
    body, _, signature = token.rpartition(".")
    for forged in ("", "x", token[:-1], token + "a", f"{body}.{signature[::-1]}", "é", "a" * 10_000, f"x{token}"):
        assert reason(store, project, forged) == "forged"
    assert reason(store, project, token, b"another secret of thirty-two bytes") == "forged"
    signer = URLSafeSerializer(SECRET, salt="veriglot.studio.invitation")
    assert reason(store, project, signer.dumps(["one", "nobody's key"])) == "unknown"
    for odd in (signer.dumps("one"), signer.dumps([1]), signer.dumps({"a": 1, "b": 2, "c": 3}), signer.dumps(None)):
        assert reason(store, project, odd) == "forged"
    other = make_project(PROJECT.format(slug="two"), "two.toml")
    register_project(store, other)
    assert reason(store, other, token) == "unknown"
    _, key = signer.loads(token)
    assert reason(store, other, signer.dumps(["two", key])) == "unknown"
    with store.writing() as tx:
        tx.update_person(made.person.id, "test", key_expires_at=now() - timedelta(seconds=1))
    assert reason(store, project, token) == "expired"


def test_who_was_shut_out_stays_out_until_let_in(store: Store, project: Project) -> None:
    made = invited(store, project)
    person = joined(store, project, made.token)
    with store.writing() as tx:
        session = people.start_session(tx, project, person)
    with store.writing() as tx:
        people.revoke(tx, person.id)
        assert people.person_of_session(tx, session) is None
    assert reason(store, project, made.token) == "revoked"
    with store.writing() as tx:
        people.restore(tx, person.id)
        assert person_of_token(tx, project, SECRET, made.token).name == "Ada"
        assert people.person_of_session(tx, session) is None


def test_a_renewed_link_ends_the_old_one(store: Store, project: Project) -> None:
    made = invited(store, project)
    with store.writing() as tx:
        new = people.renew(tx, project, SECRET, made.person.id)
    assert reason(store, project, made.token) == "unknown"
    assert joined(store, project, new.token).id == made.person.id


def test_sessions_end(store: Store, project: Project) -> None:
    person = joined(store, project, invited(store, project).token)
    with store.writing() as tx:
        tx.add_session(people._hash("old"), person.id, now() - timedelta(seconds=1))
        assert people.person_of_session(tx, "old") is None
        assert people.person_of_session(tx, "x" * 9999) is None
        assert tx.count(select(tables.sessions)) == 1
        tx.end_sessions()
        assert tx.count(select(tables.sessions)) == 0


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": " \n "}, "name"),
        ({"name": "x" * 41}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"name": "\ud800"}, "name"),
        ({"name": "ADA"}, "name"),
        ({"consent": False}, "consent"),
        ({"language": "<script>"}, "language"),
        ({"language": "de" + "-abcdefgh" * 9}, "language"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_field(store: Store, project: Project, more: dict, field: str) -> None:
    joined(store, project, invited(store, project).token, "Ada")
    token = invited(store, project).token
    with pytest.raises(InputError) as refused:
        joined(store, project, token, **{"name": "Grace", **more})
    assert refused.value.field == field
    with store.reading() as tx:
        assert person_of_token(tx, project, SECRET, token).joined_at is None


def test_an_unknown_language_or_a_long_note_invites_nobody(store: Store, project: Project) -> None:
    with pytest.raises(UnknownNameError), store.writing() as tx:
        invite(tx, project, SECRET, Role.ANNOTATOR, languages=["klingonish"])
    with store.reading() as tx:
        assert tx.people(tx.project("one").id) == []


def test_the_secret_is_made_once_for_its_owner(make_project: Callable[..., Project]) -> None:
    project = make_project(PROJECT.format(slug="one"))
    first = people.secret_of(project)
    path = project.path.parent / "one.secret"
    assert people.secret_of(project) == first
    assert len(first) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("short")
    with pytest.raises(StoreError, match="damaged"):
        people.secret_of(project)


def test_the_secret_of_the_environment_wins_if_it_is_long(
    make_project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(PROJECT.format(slug="one"))
    monkeypatch.setenv("VERIGLOT_STUDIO_SECRET", "x" * 32)
    assert people.secret_of(project) == b"x" * 32
    monkeypatch.setenv("VERIGLOT_STUDIO_SECRET", "x" * 31)
    with pytest.raises(StoreError, match="fewer than 32"):
        people.secret_of(project)


@given(st.text(max_size=600))
def test_any_text_is_a_forged_link(token: str) -> None:
    with pytest.raises(InvitationError):
        people.read_slug(SECRET, token)
