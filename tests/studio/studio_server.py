"""A studio that runs in a thread, and people who visit it."""

from __future__ import annotations

import json
import socket
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from veriglot.studio.app import studio_server
from veriglot.studio.items import import_all
from veriglot.studio.people import invite
from veriglot.studio.project import load
from veriglot.studio.tables import Role
from veriglot.studio.web import RATES, Settings, Studios

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import uvicorn
    from playwright.sync_api import Browser

    from veriglot.studio.web import Studio

# For what a page looks like or does by itself, which no kind of database can change; what it saves is tried on both.
any_database = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

HOSTILE = "</script><img src=x onerror=alert(1)><svg/onload=alert(2)> {{7*7}} ' OR 1=1 -- \u202e"

PROJECT = """
[project]
name = {name}
slug = "{slug}"
task = "spans"

[data]
path = "{slug}.jsonl"

[work]
order = "file"
overlap = {overlap}
reviews = {reviews}

[consent]
en = {consent}
"""

TEXTS = [
    "Ada wurde 1815 in London geboren.",
    "الكلمة الأولى في النص",
    "我在巴黎住了三年。",
    "यह किताब क्षितिज पर है।",
    "ฉันรักเมืองไทย 👩‍👩‍👧",
    HOSTILE,
]


@dataclass
class Visitor:
    """Somebody with a browser."""

    client: httpx2.Client
    token: str
    csrf: str = ""
    name: str = ""

    def get(self, path: str, **more: Any) -> httpx2.Response:
        return self.client.get(path, **more)

    def post(self, path: str, json: Any = None, **more: Any) -> httpx2.Response:
        headers = {"X-CSRF-Token": self.csrf, **more.pop("headers", {})}
        return self.client.post(path, json=json, headers=headers, **more)

    def next(self) -> dict[str, Any]:
        answer = self.post("/api/next")
        assert answer.status_code == 200, answer.text
        return answer.json()["assignment"]

    def send(self, number: int, kind: str = "save", base: int = 0, **more: Any) -> httpx2.Response:
        return self.post(f"/api/assignments/{number}/events", event(kind, base, **more))


@dataclass
class Running:
    """A studio that answers at `url`."""

    url: str
    studios: Studios
    folder: Path
    server: uvicorn.Server
    clients: list[httpx2.Client] = field(default_factory=list)

    def studio(self, slug: str = "one") -> Studio:
        found = self.studios.by_slug.get(slug)
        assert found is not None
        return found

    def client(self) -> httpx2.Client:
        headers = {"Prefer": "wait=25"}  # for figures, however slow this machine is
        made = httpx2.Client(base_url=self.url, timeout=30, trust_env=False, headers=headers)
        self.clients.append(made)
        return made

    def link(self, slug: str = "one", role: str = "annotator", note: str | None = None) -> str:
        studio = self.studio(slug)
        with studio.store.writing() as tx:
            return invite(tx, studio, Role(role), note=note).token

    def visitor(self, slug: str = "one", role: str = "annotator", name: str | None = None) -> Visitor:
        """Somebody who has joined."""
        made = Visitor(self.client(), self.link(slug, role), name=name or f"N {uuid.uuid4().hex[:8]}")
        body = {"token": made.token, "name": made.name, "language": "en", "consent": True}
        answer = made.client.post("/api/join", json=body)
        assert answer.status_code == 200, answer.text
        made.csrf = answer.json()["csrf"]
        return made


def event(kind: str = "save", base: int = 0, **more: Any) -> dict[str, Any]:
    return {"event_id": str(uuid.uuid4()), "base_version": base, "kind": kind, **more}


def layer(start: int = 0, end: int = 1, type_: str = "entity", **more: Any) -> dict[str, Any]:
    return {"spans": [{"id": "s1", "start": start, "end": end, "type": type_}], **more}


def write_project(folder: Path, slug: str, name: str = HOSTILE, overlap: int = 0, reviews: int = 0) -> Path:
    rows = [
        {
            "id": f"../../{slug}-{number} {HOSTILE}",
            "language": "de",
            "question": HOSTILE,
            "response": text,
            "evidence": [{"text": f"{text} {HOSTILE}", "title": HOSTILE, "url": "javascript:alert(1)"}],
            "meta": {"x": HOSTILE},
        }
        for number, text in enumerate(TEXTS)
    ]
    (folder / f"{slug}.jsonl").write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    path = folder / f"{slug}.toml"
    said = {"name": json.dumps(name), "consent": json.dumps(HOSTILE), "overlap": overlap, "reviews": reviews}
    path.write_text(PROJECT.format(slug=slug, **said), "utf-8")
    return path


@contextmanager
def on_loopback(studios: Studios, settings: Settings) -> Iterator[tuple[str, uvicorn.Server]]:
    """Studios served on a free port of loopback until the block ends: the address, and the server."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = studio_server(studios, settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < until
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}", server
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()
        studios.close()
    assert not thread.is_alive()


@contextmanager
def for_browser(studios: Studios, settings: Settings, browser: Browser) -> Iterator[str]:
    """The same for visitors with a browser, whose windows are closed at the end: the address."""
    with on_loopback(studios, settings) as (url, _):
        try:
            yield url
        finally:
            for context in browser.contexts:
                context.close()


@contextmanager
def running(
    folder: Path,
    database: str,
    slugs: tuple[str, ...] = ("one", "two"),
    work: dict[str, int] | None = None,
    **given: Any,
) -> Iterator[Running]:
    """Two projects in one database, served on a free port of loopback until the block ends."""
    settings = Settings(**{"rates": {**RATES, "call": "1000/second", "join": "1000/minute"}, **given})
    studios = Studios([load(write_project(folder, slug, **(work or {}))) for slug in slugs], database)
    for studio in studios:
        import_all(studio.store, studio.project)
    with on_loopback(studios, settings) as (url, server):
        found = Running(url, studios, folder, server)
        try:
            yield found
        finally:
            for client in found.clients:
                client.close()
