"""Who gets in and what they reach: links, cookies, projects, and sites that write in the name of others."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from itsdangerous import TimestampSigner
from studio_server import event, layer

from veriglot.studio.people import change
from veriglot.studio.tables import now

if TYPE_CHECKING:
    from studio_server import Running


def test_forged_links_open_nothing(studio: Running) -> None:
    token = studio.link()
    body, _, signature = token.rpartition(".")
    other = studio.link("two")
    forged = [
        "",
        "x",
        "a.b",
        f"{body}.",
        f"{body}.{signature[:-2]}xx",
        f"{other.rpartition('.')[0]}.{signature}",
        "é.x",
    ]
    forged += [f"A{token}", token[:-1], token * 9, "../../etc/passwd", "%00", "W10.x"]
    client = studio.client()
    for one in forged:
        answer = client.post("/api/join", json={"token": one, "name": "Eve", "language": "en", "consent": True})
        assert answer.status_code in {403, 422}, one
        assert "set-cookie" not in answer.headers
    assert client.get("/api/join/nonsense").json()["error"]["code"] == "invitation_forged"
    here = studio.studio()
    with here.store.reading() as tx:
        assert all(person.joined_at is None for person in tx.people(here.id))


def test_expired_and_withdrawn_links_open_nothing(studio: Running) -> None:
    old, gone = studio.visitor(), studio.visitor()
    here = studio.studio()
    with here.store.writing() as tx:
        by_name = {person.name: person for person in tx.people(here.id)}
        tx.update_person(by_name[old.name].id, "test", key_expires_at=now() - timedelta(seconds=1))
        change(tx, by_name[gone.name].id, "revoke")
    for visitor, code in ((old, "invitation_expired"), (gone, "invitation_revoked")):
        answer = studio.client().post("/api/join", json={"token": visitor.token})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, code)
    assert gone.get("/api/me").status_code == 401  # their browser is out at once
    assert gone.post("/api/next").status_code == 401


def test_sessions_end(studio: Running) -> None:
    one = studio.visitor()
    here = studio.studio()
    from sqlalchemy import update

    from veriglot.studio.tables import sessions

    with here.store.writing() as tx:
        tx.connection.execute(update(sessions).values(expires_at=now() - timedelta(seconds=1)))
    assert one.get("/api/me").json()["error"]["code"] == "not_signed_in"


def test_cookies_that_were_not_made_here_open_nothing(studio: Running) -> None:
    one, other = studio.visitor(), studio.visitor("two")
    cookie, theirs = one.client.cookies["veriglot_session_one"], other.client.cookies["veriglot_session_two"]
    slug, token, at, signature = cookie.split(".")
    foreign = theirs.split(".")
    end = f"{at}.{signature}"
    tried = [
        f"two.{token}.{end}",
        f"{slug}.{token}.{end[:-1]}",
        f"{slug}.{foreign[1]}.{foreign[2]}.{foreign[3]}",
        theirs,
    ]
    tried += [f"{slug}.{token}.", "..", "one..", "a" * 600, f"nope.{token}.{end}", f"{slug}.{token}x.{end}"]
    tried += [f"{slug}.{token}.{foreign[2]}x.{signature}", f"{slug}.{token}.{signature}"]
    for bad in tried:
        assert studio.client().get("/api/me", headers={"Cookie": f"veriglot_session_one={bad}"}).status_code == 401, bad
    assert studio.client().get("/api/me", headers={"Cookie": f"veriglot_session_one={cookie}"}).status_code == 200


def test_one_browser_is_in_two_projects(studio: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each project has its cookie; a tab names its project, and without a name it is the one that was joined last."""
    one = studio.visitor()
    body = {"token": studio.link("two"), "name": "Ada", "language": "en", "consent": True}
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _: int(time.time()) + 60)  # a minute later
    second = one.post("/api/join", body)
    assert second.status_code == 200
    slugs = [
        one.get("/api/me", headers={"X-Project": slug}).json()["project"]["slug"] for slug in ("one", "two", "one")
    ]
    assert slugs == ["one", "two", "one"]
    assert one.post("/api/next", headers={"X-Project": "one"}).status_code == 200
    assert one.post("/api/next", headers={"X-Project": "two"}).status_code == 403  # another session's token
    assert one.get("/api/me", headers={"X-Project": "three"}).status_code == 401
    assert one.get("/api/me?project=two").json()["person"]["name"] == "Ada"
    assert one.get("/api/me").json()["project"]["slug"] == "two"
    assert one.post("/api/logout", headers={"X-Project": "one"}).status_code == 200
    assert one.get("/api/me").json()["project"]["slug"] == "two"


def test_the_session_does_not_open_another_project(studio: Running) -> None:
    """Two projects in one database: what belongs to the other one, and to others of one's own, is not there."""
    one, neighbour, foreign = studio.visitor(), studio.visitor(), studio.visitor("two")
    theirs = foreign.next()["id"]
    beside = neighbour.next()["id"]
    for number in (theirs, beside, 2**31 - 1):
        assert one.get(f"/api/assignments/{number}").status_code == 404
        assert one.get(f"/api/assignments/{number}/shared").status_code == 404
        assert one.send(number, layer=layer()).status_code == 404
        assert one.send(number).status_code == 404
    mine = {line["id"] for line in one.get("/api/assignments").json()}
    assert not mine & {theirs, beside}
    for path in (f"/api/assignments/{theirs}", f"/api/assignments/{beside}"):
        owner = foreign if str(theirs) in path else neighbour
        assert owner.get(path).json()["version"] == 0


def test_writes_need_this_sessions_token(studio: Running) -> None:
    one, other = studio.visitor(), studio.visitor()
    number = one.next()["id"]
    path = f"/api/assignments/{number}/events"
    for headers in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": "x"}, {"X-CSRF-Token": other.csrf}):
        answer = one.client.post(path, json=event(layer=layer()), headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "csrf")
    for path_ in ("/api/next", "/api/logout"):
        assert one.client.post(path_).status_code == 403
    assert one.get(f"/api/assignments/{number}").json()["version"] == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_sites_cannot_write_even_with_the_token(studio: Running, headers: dict[str, str]) -> None:
    one = studio.visitor()
    answer = one.post("/api/next", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign_origin")
    body = {"token": one.token}
    assert studio.client().post("/api/join", json=body, headers=headers).status_code == 403
    ours = {"Origin": studio.url, "Sec-Fetch-Site": "same-origin"}
    assert one.post("/api/next", headers=ours).status_code == 200


def test_forms_cannot_write(studio: Running) -> None:
    """What another site's form can send without asking is no JSON to us."""
    client = studio.client()
    for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        answer = client.post("/api/join", content=b'{"token": "x"}', headers={"Content-Type": media})
        assert answer.status_code == 415


def test_a_browser_at_a_wrong_address_gets_the_page_and_a_program_json(studio: Running) -> None:
    page = studio.client().get("/").text
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path, status in (("/nowhere", 404), ("/guidelines/", 404), ("/api/nowhere", 404), ("/api/lead/export", 401)):
        seen = studio.client().get(path, headers=browser)
        assert (seen.status_code, seen.text, seen.headers["content-type"]) == (status, page, "text/html; charset=utf-8")
        told = studio.client().get(path)
        assert (told.status_code, list(told.json())) == (status, ["error"])
