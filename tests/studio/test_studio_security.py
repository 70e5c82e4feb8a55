"""What the studio gives away: texts that want to be programs, errors, files, paths, logs and secrets."""

from __future__ import annotations

import re
import socket
import stat
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sqlalchemy import event, text
from studio_server import HOSTILE, layer

from veriglot.studio.people import change, make_token
from veriglot.studio.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from studio_server import Running

FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION full_disk()
"""
_SAFE = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


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
    with studio.studio().store.writing() as tx:
        tx.connection.execute(text("ALTER TABLE sessions RENAME TO gone"))
    answer = one.get("/api/me")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    for word in ("Traceback", "sqlalchemy", "sessions", "SELECT", ".py", "sqlite"):
        assert word not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_full_disk_is_told_of(studio: Running) -> None:
    """A save that finds no room answers 507 and changes nothing, health says so, and both go on once there is room."""
    one = studio.visitor()
    number = one.next()["id"]
    store = studio.studio().store
    if store.is_sqlite:
        store.engine.dispose()
        listener = (store.engine, "connect", lambda raw, _: raw.execute("PRAGMA max_page_count = 1"))  # what there is
        event.listen(*listener)
    else:
        with store.writing() as tx:
            tx.connection.execute(text(FULL))
    assert studio.client().get("/api/health").status_code == 200
    version = 0
    while (
        full := one.send(number, base=version, layer=layer(comment="x" * 5_000))
    ).status_code == 200 and version < 50:
        version += 1
    assert (full.status_code, full.json()["error"]["code"]) == (507, "disk_full")
    assert "full" in full.json()["error"]["message"]
    health = studio.client().get("/api/health")
    assert (health.status_code, health.json()["error"]["code"]) == (507, "disk_full")
    if store.is_sqlite:
        event.remove(*listener)
        store.engine.dispose()
    else:
        with store.engine.begin() as connection:
            connection.execute(text("DROP TRIGGER full_disk ON events"))
    assert one.get(f"/api/assignments/{number}").json()["version"] == version
    assert one.send(number, base=version, layer=layer()).status_code == 200
    assert studio.client().get("/api/health").status_code == 200


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


def test_the_database_is_its_owners_alone(start, tmp_path: Path) -> None:
    """With its journals, also where it was made when the world could read it; what a group was given stays."""
    studio = start()
    studio.visitor()
    files = list(studio.folder.glob("studio.sqlite*"))
    assert len(files) == 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    for mode, wanted in ((0o644, 0o600), (0o660, 0o660)):
        old = tmp_path / f"old-{mode}.sqlite"
        old.touch()
        old.chmod(mode)
        open_store(old).close()
        assert stat.S_IMODE(old.stat().st_mode) == wanted


def test_connections_that_bring_nothing_are_closed(start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veriglot.http.server._KEEP_ALIVE", 1)
    studio = start(body_seconds=0.3)
    parts = urlsplit(studio.url)
    head = f"Host: {parts.netloc}\r\nContent-Type: application/json\r\n"
    beginnings = ["", "GET / HT", f"GET /api/health HTTP/1.1\r\n{head}\r\n", f"POST /api/join HTTP/1.1\r\n{head}"]
    beginnings += [f"{method} HTTP/1.1\r\n{head}Content-Length: 9\r\n\r\n{{" for method in ("GET /", "POST /api/join")]
    beginnings += [f"POST /api/logout HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n"]
    connections = []
    for beginning in beginnings:
        connection = socket.create_connection((parts.hostname, parts.port), timeout=20)
        connection.sendall(beginning.encode())
        connections.append(connection)
    for connection in connections:
        with connection:
            while connection.recv(65_536):
                pass


def test_only_leads_read_the_description(start) -> None:
    studio = start()
    assert studio.client().get("/api/openapi.json").status_code == 401
    assert studio.visitor().get("/api/openapi.json").status_code == 404
    assert studio.visitor(role="lead").get("/api/openapi.json").json()["openapi"].startswith("3.")


def test_a_script_reads_what_leads_see_and_writes_nothing(studio: Running) -> None:
    with studio.studio().store.writing() as tx:
        made = make_token(tx, studio.studio(), note="nightly")
    client = studio.client()
    header = {"Authorization": f"Bearer {made.token}"}
    for path in ("overview", "items", "export?format=native"):
        assert client.get(f"/api/lead/{path}", headers=header).status_code == 200, path
    with studio.studio().store.reading() as tx:
        assert not list(tx.events(studio.studio().id, kind="exported"))
    csrf = client.get("/api/me", headers=header).json()["csrf"]
    body = {"action": "priority", "value": 1}
    written = client.post("/api/lead/items", json=body, headers={**header, "X-CSRF-Token": csrf})
    assert (written.status_code, written.json()["error"]["code"]) == (403, "reads_only")
    for wrong in (made.token[:-1], made.token.replace("one.", "two.", 1), studio.link(role="lead"), "x", "é"):
        value = f"Bearer {wrong}".encode()
        assert client.get("/api/lead/overview", headers={"Authorization": value}).status_code == 401, wrong
    client.cookies.set("veriglot_session_one", made.token)  # it is no session of a browser
    assert client.get("/api/lead/overview").status_code == 401
    assert made.token not in client.get("/api/lead/overview", headers=header).text
    with studio.studio().store.writing() as tx:
        change(tx, made.person.id, "revoke")
    assert client.get("/api/lead/overview", headers=header).status_code == 401
