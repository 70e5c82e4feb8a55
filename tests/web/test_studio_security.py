"""What others may try: links, cookies, sites, hosts, sizes, paths, and texts that want to be programs."""

from __future__ import annotations

import re
import socket
import stat
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from studio_server import HOSTILE, event, layer, running

from veriglot.annotate.people import revoke
from veriglot.annotate.store import open_store
from veriglot.annotate.store.columns import now

if TYPE_CHECKING:
    from pathlib import Path

    from studio_server import Running

_SAFE = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


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
        revoke(tx, by_name[gone.name].id)
    for visitor, code in ((old, "invitation_expired"), (gone, "invitation_revoked")):
        answer = studio.client().post("/api/join", json={"token": visitor.token})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, code)
    assert gone.get("/api/me").status_code == 401  # their browser is out at once
    assert gone.post("/api/next").status_code == 401


def test_sessions_end(studio: Running) -> None:
    one = studio.visitor()
    here = studio.studio()
    from sqlalchemy import update

    from veriglot.annotate.store.tables import sessions

    with here.store.writing() as tx:
        tx.connection.execute(update(sessions).values(expires_at=now() - timedelta(seconds=1)))
    assert one.get("/api/me").json()["error"]["code"] == "not_signed_in"


def test_cookies_that_were_not_made_here_open_nothing(studio: Running) -> None:
    one, other = studio.visitor(), studio.visitor("two")
    cookie = one.client.cookies["veriglot_session"]
    slug, token, signature = cookie.split(".")
    foreign = other.client.cookies["veriglot_session"].split(".")
    tried = [f"two.{token}.{signature}", f"{slug}.{token}.{signature[:-1]}", f"{slug}.{foreign[1]}.{foreign[2]}"]
    tried += [f"{slug}.{token}.", "..", "one..", "a" * 600, f"nope.{token}.{signature}", f"{slug}.{token}x.{signature}"]
    for bad in tried:
        assert studio.client().get("/api/me", headers={"Cookie": f"veriglot_session={bad}"}).status_code == 401, bad
    assert studio.client().get("/api/me", headers={"Cookie": f"veriglot_session={cookie}"}).status_code == 200


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


def test_texts_are_data_and_never_a_page(studio: Running) -> None:
    """Every text of a file or a field comes back as it was, in JSON, under headers that keep browsers from guessing."""
    one = studio.visitor(name="<b onclick=alert(1)>Eve</b>")
    seen = [one.get("/api/me"), studio.client().get(f"/api/join/{studio.link()}")]
    given = None
    while given is None or given["item"]["response"] != HOSTILE:
        answer = one.post("/api/next")
        seen.append(answer)
        given = answer.json()["assignment"]
        marked = layer(*given["item"]["words"][0], comment=HOSTILE)
        marked["spans"][0]["note"] = HOSTILE
        seen.append(one.send(given["id"], "submit", layer=marked, comment=HOSTILE))
        assert seen[-1].status_code == 200
        seen.append(one.get(f"/api/assignments/{given['id']}"))
        seen.append(one.get(f"/api/assignments/{given['id']}/shared"))
    assert given["item"]["question"] == HOSTILE
    assert given["item"]["evidence"][0]["title"] == HOSTILE
    assert given["item"]["evidence"][0]["url"] is None  # javascript: is nowhere to go
    assert seen[-2].json()["layer"]["comment"] == HOSTILE
    assert seen[-2].json()["layer"]["spans"][0]["note"] == HOSTILE
    seen += [one.get("/api/guidelines"), one.get(f"/api/words/{'<script>'}"), one.get("/<script>alert(1)</script>")]
    seen += [one.get("/api/assignments/<script>"), one.post("/api/assignments/1/events", {"<script>": 1})]
    for answer in seen:
        assert answer.headers["content-type"] == "application/json", answer.url
        for name, value in _SAFE.items():
            assert answer.headers[name] == value
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store" or "/api/" not in str(answer.url)
    html = one.get("/api/guidelines").json()["html"]
    assert not re.search(r"<(script|img|svg|iframe|object|style|form)|\son\w+=|javascript:", html, re.IGNORECASE)


def test_the_policy_allows_nothing_inline_and_nobody_else(start) -> None:
    policy = start().client().get("/").headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == rules["object-src"] == "'none'"
    assert "unsafe" not in policy
    assert "http" not in policy


def test_errors_show_nothing_of_the_inside(start) -> None:
    """A database that breaks under a running server: an answer, a number for the operator, and no trace."""
    studio = start()
    one = studio.visitor()
    from sqlalchemy import text

    with studio.studio().store.writing() as tx:
        tx.connection.execute(text("ALTER TABLE sessions RENAME TO gone"))
    answer = one.get("/api/me")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    for word in ("Traceback", "sqlalchemy", "sessions", "SELECT", ".py", "sqlite"):
        assert word not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_hundred_megabytes_are_refused_before_they_are_read(start, chunked: bool) -> None:
    studio = start()
    one = studio.visitor()
    parts = urlsplit(studio.url)
    sent = 0
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 104857600"
        cookie = "; ".join(f"{name}={value}" for name, value in one.client.cookies.items())
        head = (
            f"POST /api/join HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
            f"Cookie: {cookie}\r\nX-CSRF-Token: {one.csrf}\r\n"
        ).encode()
        connection.sendall(head + framing + b"\r\n\r\n")
        block = b"[" * 65_536
        if chunked:
            block = b"10000\r\n" + block + b"\r\n"
        try:
            while sent < 104_857_600:
                connection.sendall(block)
                sent += len(block)
        except OSError:
            pass  # it hung up on us, as it should
        connection.settimeout(10)
        try:
            said = connection.recv(65_536)
        except OSError:
            said = b""
    assert sent < 50_000_000
    assert said == b"" or said.startswith(b"HTTP/1.1 413")
    before = time.monotonic()
    assert one.get("/api/me").status_code == 200
    assert time.monotonic() - before < 5


def test_a_large_body_is_answered_in_words(start) -> None:
    studio = start(max_body=10_000)
    one = studio.visitor()
    answer = one.post("/api/assignments/1/events", {"x": "y" * 20_000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


def test_a_body_that_does_not_come_is_not_waited_for(start) -> None:
    studio = start(body_seconds=0.5)
    parts = urlsplit(studio.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        head = f"POST /api/join HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        assert connection.recv(65_536).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 50_000,
        b'{"token": NaN}',
        b'{"token": "\\ud800"}',
        b'{"token": 1e999}',
        b"null",
        b"[]",
        b'"x"',
        b'{"token": "x", "token2": 1}',
        b'{"token": {"$ne": null}}',
    ],
)
def test_what_is_no_json_is_refused(start, body: bytes) -> None:
    answer = start().client().post("/api/join", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "malformed")


def test_names_of_others_hosts_are_refused(start) -> None:
    """A name that somebody else's DNS points at us: their page would be of one origin with ours."""
    studio = start(base_url="https://studio.example.org")
    client = studio.client()
    for host, status in (("evil.example", 400), ("studio.example.org", 200), ("studio.example.org.evil", 400)):
        assert client.get("/api/health", headers={"Host": host}).status_code == status
    ours = {"Host": "studio.example.org", "X-Forwarded-Host": "evil.example"}
    assert client.get("/api/health", headers=ours).status_code == 200


def test_behind_https_cookies_are_secure(start) -> None:
    studio = start(base_url="https://studio.example.org")
    headers = {"Host": "studio.example.org", "Origin": "https://studio.example.org"}
    body = {"token": studio.link(), "name": "Ada", "language": "en", "consent": True}
    answer = studio.client().post("/api/join", json=body, headers=headers)
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-veriglot_session=")
    assert "Secure" in cookie
    assert "HttpOnly" in cookie
    assert "max-age=" in answer.headers["strict-transport-security"]
    evil = {**headers, "Origin": "http://studio.example.org"}
    assert studio.client().post("/api/join", json=body, headers=evil).status_code == 403


def test_a_path_below_a_host(start) -> None:
    """Whether a proxy passes the path on or takes it away."""
    studio = start(base_url="https://example.org/studio")
    headers = {"Host": "example.org", "Origin": "https://example.org"}
    body = {"token": studio.link(), "name": "Ada", "language": "en", "consent": True}
    answer = studio.client().post("/studio/api/join", json=body, headers=headers)
    assert answer.status_code == 200
    assert "Path=/studio;" in answer.headers["set-cookie"]
    assert answer.headers["cache-control"] == "no-store"
    assert studio.client().get("/api/health", headers=headers).status_code == 200


def test_forwarded_addresses_are_believed_of_trusted_proxies_only(start, tmp_path: Path) -> None:
    studio = start(rates={"join": "3/minute"})
    client = studio.client()
    said = [client.get("/api/join/x", headers={"X-Forwarded-For": f"10.0.0.{n}"}).status_code for n in range(5)]
    assert said == [403, 403, 403, 429, 429]  # the header changes nothing
    (tmp_path / "proxied").mkdir()
    given = {"rates": {"join": "3/minute"}, "trusted_proxies": ("127.0.0.1",)}
    with running(tmp_path / "proxied", str(tmp_path / "proxied" / "s.sqlite"), **given) as proxied:
        client = proxied.client()
        said = [client.get("/api/join/x", headers={"X-Forwarded-For": f"10.0.0.{n}"}).status_code for n in range(5)]
        assert said == [403] * 5
        again = [client.get("/api/join/x", headers={"X-Forwarded-For": "10.0.0.1"}).status_code for n in range(4)]
        assert again[-1] == 429


def test_too_often_is_said_with_a_time(start) -> None:
    studio = start(rates={"call": "5/minute", "stranger": "2/minute"})
    one = studio.visitor()
    answers = [one.get("/api/me") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert [studio.client().get("/api/me").status_code for _ in range(3)] == [401, 401, 429]
    assert studio.visitor().get("/api/me").status_code == 200  # others are not held up


def test_files_of_the_page_are_those_and_no_others(start) -> None:
    studio = start()
    client = studio.client()
    index = client.get("/")
    assert index.headers["content-type"] == "text/html; charset=utf-8"
    assert not re.search(rb"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=", index.content)
    names = set(re.findall(r'"(/page/[0-9a-f]{16}/[^"]+)"', index.text))
    assert names
    for name in names:
        found = client.get(name)
        assert found.status_code == 200, name
        assert "immutable" in found.headers["cache-control"]
        assert found.headers["content-type"].split(";")[0] in {
            "text/javascript",
            "text/css",
            "image/svg+xml",
            "image/png",
        }
    place = next(iter(names)).rpartition("/")[0]
    climbing = ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "....//app.py", "..\\app.py", "/etc/passwd", "%00", ""]
    climbing += ["vendor/../../app.py", "../../../annotate_serve.py", "index.html", "__init__.py"]
    parts = urlsplit(studio.url)
    for name in climbing:
        with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:  # as it stands
            connection.sendall(
                f"GET {place}/{name} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode()
            )
            said = connection.recv(65_536)
        assert said.split(b" ")[1] in {b"404", b"400"}, name


def test_links_are_not_logged(start, capfd) -> None:
    studio = start()
    token = studio.link()
    studio.client().get(f"/join/{token}")
    studio.client().get(f"/api/join/{token}")
    out, err = capfd.readouterr()
    assert token not in out + err


def test_the_secret_is_its_owners_alone(start) -> None:
    studio = start()
    files = [path for path in studio.folder.iterdir() if path.suffix == ".secret"]
    assert len(files) == 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert len({path.read_text() for path in files}) == 2


def test_only_leads_read_the_description(start) -> None:
    studio = start()
    assert studio.client().get("/api/openapi.json").status_code == 401
    assert studio.visitor().get("/api/openapi.json").status_code == 404
    assert studio.visitor(role="lead").get("/api/openapi.json").json()["openapi"].startswith("3.")


def test_it_stops_once_calls_in_work_are_done(tmp_path: Path) -> None:
    """A save that waits for the database while the server is told to stop: answered, and on disk."""
    database = str(tmp_path / "studio.sqlite")
    said: list[int] = []
    with running(tmp_path, database, ("one",)) as studio:
        one = studio.visitor()
        number = one.next()["id"]
        here = studio.studio()
        with here.store.writing():  # SQLite has one writer: the save waits
            thread = threading.Thread(target=lambda: said.append(one.send(number, layer=layer()).status_code))
            thread.start()
            time.sleep(0.5)
            studio.server.should_exit = True
            time.sleep(0.5)
            assert not said
        thread.join(30)
    assert said == [200]
    store = open_store(database)
    with store.reading() as tx:
        assert tx.assignment(number).version == 1
    store.close()
