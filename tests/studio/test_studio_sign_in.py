"""Sign-in by OpenID Connect, at a provider on loopback, and several projects in one browser."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from studio_server import Running, for_browser, on_loopback, write_project

from veriglot.errors import UsageError, VeriglotError
from veriglot.studio.app import studio_server
from veriglot.studio.items import import_all
from veriglot.studio.people import change, invite
from veriglot.studio.project import load
from veriglot.studio.tables import Role
from veriglot.studio.web import RATES, Settings, Studios

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow
SECRET = "a client secret"
ADDRESS = "Ada@Example.org"


@dataclass
class Provider:
    """A provider that knows one person; `changes` are made to what its tokens say."""

    issuer: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, dict[str, str]] = field(default_factory=dict)  # by code, what the browser brought

    def discovery(self) -> dict[str, Any]:
        ends = {f"{name}_endpoint": f"{self.issuer}/{name}" for name in ("authorization", "token")}
        return {"issuer": self.issuer, **ends}

    def authorize(self, query: dict[str, str]) -> str:
        code = f"code-{len(self.asked)}"
        self.asked[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        asked = self.asked.pop(form["code"], None)
        basic = "Basic " + base64.b64encode(f"veriglot:{SECRET}".encode()).decode()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        if asked is None or authorization != basic or asked["code_challenge"] != challenge.decode():
            return None
        claims = {"iss": self.issuer, "aud": "veriglot", "exp": time.time() + 60, "nonce": asked["nonce"]}
        claims |= {"email": ADDRESS, "email_verified": True} | self.changes
        parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({}, claims)]
        return {"id_token": ".".join((*parts, "signature")), "access_token": "x", "token_type": "Bearer"}


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("VERIGLOT_STUDIO_OIDC_SECRET", SECRET)
    made = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            if address.path.endswith("openid-configuration"):
                return self.answer(200, made.discovery())
            return self.answer(302, {}, made.authorize({k: v[0] for k, v in parse_qs(address.query).items()}))

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
            tokens = made.token({k: v[0] for k, v in form.items()}, self.headers.get("authorization", ""))
            self.answer(400 if tokens is None else 200, tokens or {"error": "invalid_grant"})

        def answer(self, status: int, data: Any, location: str = "") -> None:
            body = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            if location:
                self.send_header("location", location)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.issuer = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made
    server.shutdown()
    server.server_close()


def _studios(folder: Path, provider: Provider) -> Studios:
    paths = [write_project(folder, slug, name=slug.title()) for slug in ("one", "two", "three")]
    for path in paths:
        table = f'\n[sign_in]\nissuer = "{provider.issuer}"\nclient_id = "veriglot"\n'
        path.write_text(path.read_text("utf-8") + table, "utf-8")
    studios = Studios([load(path) for path in paths], str(folder / "studio.sqlite"))
    for studio in studios:
        import_all(studio.store, studio.project)
    return studios


@pytest.fixture
def served(tmp_path: Path, provider: Provider) -> Iterator[Running]:
    studios = _studios(tmp_path, provider)
    with on_loopback(studios, Settings(rates={**RATES, "call": "1000/second"})) as (url, server):
        running = Running(url, studios, tmp_path, server)
        yield running
        for client in running.clients:
            client.close()


def _invite(running: Running, slug: str, email: str | None = ADDRESS.lower(), role: Role = Role.ANNOTATOR) -> str:
    studio = running.studio(slug)
    with studio.store.writing() as tx:
        return invite(tx, studio, role, email=email).token


def _sign_in(running: Running, client: httpx2.Client, slug: str = "one") -> httpx2.Response:
    return client.get(f"/api/sign-in?project={slug}", follow_redirects=True)


def _join(client: httpx2.Client, token: str, name: str = "Ada") -> None:
    body = {"token": token, "name": name, "language": "en", "consent": True}
    assert client.post("/api/join", json=body).status_code == 200


def test_one_sign_in_opens_all_projects_that_invited_the_address(served: Running) -> None:
    for slug in ("one", "two"):
        _join(served.client(), _invite(served, slug))
    _join(served.client(), _invite(served, "three", "eve@example.org"))
    client = served.client()
    stranger = client.get("/api/me")
    assert (stranger.status_code, stranger.json()["error"]["code"]) == (401, "sign_in")
    answer = _sign_in(served, client, "two")
    assert (answer.status_code, str(answer.url)) == (200, f"{served.url}/?project=two")
    for slug in ("one", "two"):
        me = client.get("/api/me", headers={"X-Project": slug}).json()
        assert (me["project"]["slug"], me["person"]["name"]) == (slug, "Ada")
        assert [row["slug"] for row in me["projects"]] == ["one", "two"]
    assert client.get("/api/me", headers={"X-Project": "three"}).status_code == 401


def test_who_has_not_joined_agrees_first(served: Running) -> None:
    _invite(served, "one")
    client = served.client()
    answer = _sign_in(served, client)
    token = str(answer.url).rpartition("/join/")[2]
    assert client.get("/api/me").status_code == 401
    _join(client, token)
    assert client.get("/api/me").json()["person"]["name"] == "Ada"
    again = served.client()
    assert str(_sign_in(served, again).url) == f"{served.url}/?project=one"
    assert again.get("/api/me").json()["person"]["name"] == "Ada"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"email_verified": False}, 200),
        ({"email": "eve@example.org"}, 200),
        ({"iss": "https://evil.example.org"}, 503),
        ({"aud": "another"}, 503),
        ({"aud": ["veriglot", "another"]}, 503),
        ({"nonce": "another"}, 503),
        ({"exp": 1000.0}, 503),
    ],
)
def test_what_a_token_has_to_say(served: Running, provider: Provider, changes: dict[str, Any], status: int) -> None:
    _join(served.client(), _invite(served, "one"))
    provider.changes = changes
    client = served.client()
    answer = _sign_in(served, client)
    assert answer.status_code == status
    if status == 200:
        assert str(answer.url).endswith("/#refused")
    assert client.get("/api/me").status_code == 401


def test_an_answer_that_was_not_asked_for_opens_nothing(served: Running, provider: Provider) -> None:
    """Neither another browser's, nor one without its state, nor one that was used."""
    _join(served.client(), _invite(served, "one"))
    client, other = served.client(), served.client()
    there = client.get("/api/sign-in").headers["location"]
    back = provider.authorize({k: v[0] for k, v in parse_qs(urlsplit(there).query).items()})
    assert other.get(back).status_code == 403
    assert client.get(back.replace("state=", "state=x")).status_code == 403
    assert client.get(back).status_code == 303
    assert client.get("/api/me").status_code == 200
    assert client.get(back).status_code == 403


def test_who_was_shut_out_stays_out(served: Running) -> None:
    _join(served.client(), _invite(served, "one"))
    studio = served.studio()
    with studio.store.writing() as tx:
        change(tx, tx.people(studio.id)[0].id, "revoke")
    client = served.client()
    assert str(_sign_in(served, client).url).endswith("/#refused")
    assert client.get("/api/me").status_code == 401


def test_an_address_is_one_persons(served: Running) -> None:
    _invite(served, "one")
    for address in (ADDRESS, "none", "a b@c", "@"):
        with pytest.raises(VeriglotError):
            _invite(served, "one", address)
    lead = served.visitor(role="lead")
    body = {"role": "annotator", "email": "eve@example.org"}
    assert lead.post("/api/lead/invitations", json=body).status_code == 200
    assert lead.post("/api/lead/invitations", json=body).status_code == 422


def test_without_a_provider_nobody_signs_in(studio: Running) -> None:
    assert studio.client().get("/api/sign-in").status_code == 404
    assert studio.client().get("/api/signed-in?code=x&state=y").status_code == 403
    with pytest.raises(VeriglotError, match="Nobody signs in"):
        _invite(studio, "one")


def test_a_provider_without_its_secret_is_not_served(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VERIGLOT_STUDIO_OIDC_SECRET")
    studios = _studios(tmp_path, provider)
    with pytest.raises(UsageError, match="is not set"):
        studio_server(studios, Settings())
    studios.close()


@contextmanager
def _page(browser: Browser, folder: Path, provider: Provider) -> Iterator[tuple[Running, Any]]:
    studios = _studios(folder, provider)
    with for_browser(studios, Settings(), browser) as url:
        yield Running(url, studios, folder, None), browser.new_context().new_page()  # type: ignore[arg-type]


def test_somebody_signs_in_and_goes_from_project_to_project(
    browser: Browser, tmp_path: Path, provider: Provider
) -> None:
    with _page(browser, tmp_path, provider) as (running, page):
        for slug, role in (("one", Role.LEAD), ("two", Role.ANNOTATOR)):
            with running.client() as client:
                _join(client, _invite(running, slug, role=role))
        page.goto(running.url)
        page.get_by_role("link", name="Sign in").click()
        page.wait_for_url("**/lead*")
        page.get_by_label("Project", exact=True).select_option("Two")
        page.wait_for_url("**/mark*")
        assert page.get_by_label("Project", exact=True).input_value() == "two"
        provider.changes = {"email": "eve@example.org"}
        stranger = browser.new_context().new_page()
        stranger.goto(running.url)
        stranger.get_by_role("link", name="Sign in").click()
        stranger.get_by_text("Nobody invited this address here").wait_for()


def test_a_token_comes_over_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    from veriglot.http.server import CallRefused
    from veriglot.studio import sign_in
    from veriglot.studio.project import SignInEntry

    issuer = "https://accounts.example.org"
    endpoints = {"token_endpoint": f"{issuer}/token"}
    monkeypatch.setattr(
        sign_in, "_ask", lambda *_: sign_in._Provider(issuer=issuer, authorization_endpoint=f"{issuer}/in", **endpoints)
    )
    entry = SignInEntry(issuer, "veriglot")
    assert sign_in._provider(entry).issuer == issuer
    endpoints["token_endpoint"] = "http://accounts.example.org/token"
    with pytest.raises(CallRefused, match="without TLS"):
        sign_in._provider(entry)
