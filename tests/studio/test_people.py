"""Links: signed, hashed, expiring, revocable, of one project; and names that hide nothing."""

from __future__ import annotations

import stat
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from itsdangerous import URLSafeSerializer
from sqlalchemy import select, text

from veriglot.errors import InputError, UnknownNameError
from veriglot.studio import tables
from veriglot.studio.items import register_project
from veriglot.studio.people import change, invite, join, person_of_token, renew, start_session
from veriglot.studio.tables import Refused, Role, StoreError, now
from veriglot.studio.texts import words_of
from veriglot.studio.web import InvitationError, Studio, _secret_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from veriglot.studio.people import Invitation
    from veriglot.studio.project import Project
    from veriglot.studio.store import Store

SECRET = b"s" * 32
PROJECT = '[project]\nname = "{slug}"\nslug = "{slug}"\ntask = "spans"\n[consent]\nen = "I agree."\n'


@pytest.fixture
def studio(store: Store, make_project: Callable[..., Project]) -> Studio:
    return served(store, make_project(PROJECT.format(slug="one")))


def served(store: Store, project: Project) -> Studio:
    return Studio(project, store, register_project(store, project).id, SECRET)


def invited(store: Store, studio: Studio, role: Role = Role.ANNOTATOR) -> Invitation:
    with store.writing() as tx:
        return invite(tx, studio, role, languages=["german"])


def joined(store: Store, studio: Studio, token: str, name: str = "Ada", **more):
    with store.writing(lock="people") as tx:
        return join(tx, studio, token, **{"name": name, "language": "en", "consent": True, **more})


def reason(store: Store, studio: Studio, token: str, secret: bytes = SECRET) -> str:
    with store.reading() as tx, pytest.raises(InvitationError) as refused:
        person_of_token(tx, replace(studio, secret=secret), token)
    return refused.value.reason


def test_a_link_lets_one_person_in_and_in_again(store: Store, studio: Studio) -> None:
    made = invited(store, studio)
    assert made.person.works_in == ("de",)
    person = joined(store, studio, made.token, "  Ada\u0308  Lovelace ")
    assert (person.name, person.language, person.id) == ("Adä Lovelace", "en", made.person.id)
    assert person.key_expires_at > made.person.key_expires_at + timedelta(days=100)
    again = joined(store, studio, made.token, "Another", consent=False)
    assert again == person


@pytest.mark.parametrize(
    ("consent", "language", "shown"),
    [
        *((True, language, shown) for language, shown in [("en", "I agree."), ("de-AT", "Ja."), ("ar", "I agree.")]),
        *((False, tag, words_of(tag)[1]["join.consent_text"]) for tag in ("de-AT", "ar", "th", "xx")),
    ],
)
def test_what_was_agreed_to_is_what_was_shown(
    store: Store, make_project: Callable[..., Project], consent: bool, language: str, shown: str
) -> None:
    """The page shows the nearest text of the project, or Veriglot's in the language of the page; that one is kept."""
    text = PROJECT.format(slug="two")
    made = served(store, make_project(text + 'de = "Ja."\n' if consent else text.partition("[consent]")[0]))
    person = joined(store, made, invited(store, made).token, language=language)
    with store.reading() as tx:
        kept = tx.connection.execute(select(tables.people.c.consent).where(tables.people.c.id == person.id)).scalar()
    assert kept == shown


@pytest.mark.parametrize("imported", [False, True])
def test_languages_without_items_are_refused(
    store: Store, make_project: Callable[..., Project], imported: bool
) -> None:
    """The languages are those of the project file, or without any those of the items."""
    text = PROJECT.format(slug="two")
    studio = served(store, make_project(text if imported else text.replace("task", 'languages = ["tr", "th"]\ntask')))
    with store.writing() as tx:
        made = {"role": "normal", "words": 1, "sample": {"response": "x"}}
        tags = ("tr", "th") if imported else ()
        tx.add_items(studio.id, [{"key": tag, "position": 0, "language": tag, **made} for tag in tags])
        assert invite(tx, studio, Role.ANNOTATOR, languages=["turkish", "th"]).person.works_in == ("tr", "th")
        with pytest.raises(Refused, match="no items in the language 'de'") as refused:
            invite(tx, studio, Role.ANNOTATOR, languages=["tr", "german"])
    assert set(refused.value.remedy.removeprefix("Choose from: ").rstrip(".").split(", ")) == {"th", "tr"}


def test_only_hashes_are_kept(store: Store, studio: Studio) -> None:
    made = invited(store, studio)
    person = joined(store, studio, made.token)
    with store.writing() as tx:
        token = start_session(tx, studio, person)
    _, key = URLSafeSerializer(SECRET, salt="veriglot.studio.invitation").loads(made.token)
    with store.reading() as tx:
        kept = "".join(
            str(row)
            for name in ("people", "events", "sessions")
            for row in tx.connection.execute(text(f"SELECT * FROM {name}"))
        )
        assert tx.person_of_session(token) == person
    for secret in (made.token, key, token):
        assert secret not in kept


def test_links_that_open_nothing(store: Store, studio: Studio, make_project: Callable[..., Project]) -> None:
    made = invited(store, studio)
    token = made.token
    body, _, signature = token.rpartition(".")
    for forged in ("", "x", token[:-1], token + "a", f"{body}.{signature[::-1]}", "é", "a" * 10_000, f"x{token}"):
        assert reason(store, studio, forged) == "forged"
    assert reason(store, studio, token, b"another secret of thirty-two bytes") == "forged"
    signer = URLSafeSerializer(SECRET, salt="veriglot.studio.invitation")
    assert reason(store, studio, signer.dumps(["one", "nobody's key"])) == "unknown"
    for odd in (signer.dumps("one"), signer.dumps([1]), signer.dumps({"a": 1, "b": 2, "c": 3}), signer.dumps(None)):
        assert reason(store, studio, odd) == "forged"
    other = served(store, make_project(PROJECT.format(slug="two"), "two.toml"))
    assert reason(store, other, token) == "unknown"
    _, key = signer.loads(token)
    assert reason(store, other, signer.dumps(["two", key])) == "unknown"
    with store.writing() as tx:
        tx.update_person(made.person.id, "test", key_expires_at=now() - timedelta(seconds=1))
    assert reason(store, studio, token) == "expired"


def test_who_was_shut_out_stays_out_until_let_in(store: Store, studio: Studio) -> None:
    made = invited(store, studio)
    person = joined(store, studio, made.token)
    with store.writing() as tx:
        session = start_session(tx, studio, person)
    with store.writing() as tx:
        change(tx, person.id, "revoke")
        assert tx.person_of_session(session) is None
    assert reason(store, studio, made.token) == "revoked"
    with store.writing() as tx:
        change(tx, person.id, "restore")
        assert person_of_token(tx, studio, made.token).name == "Ada"
        assert tx.person_of_session(session) is None


def test_a_renewed_link_ends_the_old_one(store: Store, studio: Studio) -> None:
    made = invited(store, studio)
    with store.writing() as tx:
        new = renew(tx, studio, made.person.id)
    assert reason(store, studio, made.token) == "unknown"
    assert joined(store, studio, new.token).id == made.person.id


def test_sessions_end(store: Store, studio: Studio) -> None:
    person = joined(store, studio, invited(store, studio).token)
    with store.writing() as tx:
        tx.add_session("old", person.id, now() - timedelta(seconds=1))
        assert tx.person_of_session("old") is None
        assert tx.person_of_session("x" * 9999) is None
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
def test_what_cannot_be_taken_is_refused_by_field(store: Store, studio: Studio, more: dict, field: str) -> None:
    joined(store, studio, invited(store, studio).token, "Ada")
    token = invited(store, studio).token
    with pytest.raises(InputError) as refused:
        joined(store, studio, token, **{"name": "Grace", **more})
    assert refused.value.field == field
    with store.reading() as tx:
        assert person_of_token(tx, studio, token).joined_at is None


def test_an_unknown_language_or_a_long_note_invites_nobody(store: Store, studio: Studio) -> None:
    with pytest.raises(UnknownNameError), store.writing() as tx:
        invite(tx, studio, Role.ANNOTATOR, languages=["klingonish"])
    with store.reading() as tx:
        assert tx.people(tx.project("one").id) == []


def test_the_secret_is_made_once_for_its_owner(make_project: Callable[..., Project]) -> None:
    project = make_project(PROJECT.format(slug="one"))
    first = _secret_of(project)
    path = project.path.parent / "one.secret"
    assert _secret_of(project) == first
    assert len(first) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("short")
    with pytest.raises(StoreError, match="damaged"):
        _secret_of(project)


def test_the_secret_of_the_environment_wins_if_it_is_long(
    make_project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(PROJECT.format(slug="one"))
    monkeypatch.setenv("VERIGLOT_STUDIO_SECRET", "x" * 32)
    assert _secret_of(project) == b"x" * 32
    monkeypatch.setenv("VERIGLOT_STUDIO_SECRET", "x" * 31)
    with pytest.raises(StoreError, match="fewer than 32"):
        _secret_of(project)


@given(st.text(max_size=600))
def test_any_text_is_a_forged_link(token: str) -> None:
    with pytest.raises(InvitationError):
        Studio(cast("Project", None), cast("Store", None), 0, SECRET).read_token(token)
