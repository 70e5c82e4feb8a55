"""A studio for the tests of the lead's pages: a project with shared items, an exam and batches, and its people."""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from studio_server import for_browser

from veriglot.studio.items import import_all
from veriglot.studio.people import invite
from veriglot.studio.project import load
from veriglot.studio.tables import Role
from veriglot.studio.web import RATES, Settings, Studios

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page

    from veriglot.studio.web import Studio

HOSTILE = "<img src=x onerror=alert(1)>"
TEXTS = {
    "de": "Ada wurde 1815 in Paris 😀 geboren; ihr Va\u0308ter war Maler.",
    "ar": "وُلِدَ ابنُ سينا عام 980 قرب بخارى، وتوفي في باريس 😀 سنة 1037.",
}
PROJECT = """
[project]
name = {name}
slug = "house"
task = "spans"
languages = ["de", "ar"]
[data]
path = "house.jsonl"
silver = "silver"
gold = "gold"
[work]
order = "file"
overlap = 2
per_person = 1
reviews = 0
[validation]
batch_size = 2
share = 0.5
[checks]
share = 0.0
[pace]
hourly = 12.0
currency = "EUR"
[exam]
items = 2
path = "exam.jsonl"
against = "gold"
attempts = 2
feedback = true
[consent]
en = {consent}
"""


@dataclass
class Visitor:
    """Somebody with a browser, and what went wrong in it."""

    page: Page
    context: BrowserContext
    url: str
    trouble: list[str]

    def go(self, path: str, wait: str = "h1, h2") -> Page:
        self.page.goto(self.url + path)
        self.page.wait_for_selector(wait)
        return self.page

    def post(self, path: str, body: Any = None) -> Any:
        csrf = self.context.request.get(f"{self.url}/api/me").json()["csrf"]
        answer = self.context.request.post(self.url + path, data=body or {}, headers={"X-CSRF-Token": csrf})
        assert answer.ok, answer.text()
        return answer.json()

    def get(self, path: str) -> Any:
        answer = self.context.request.get(self.url + path)
        assert answer.ok, answer.text()
        return answer.json()

    def hand_in(self, spans: dict[str, list[tuple[int, int, str]]]) -> int:
        """Hand in all that there is, with spans by language; how many items."""
        count = 0
        while (one := self.post("/api/next")["assignment"]) is not None:
            marks = [
                {"id": f"s{number}", "start": start, "end": end, "type": type_}
                for number, (start, end, type_) in enumerate(spans.get(one["item"]["language"], []))
            ]
            event = {"event_id": str(uuid.uuid4()), "base_version": one["version"], "kind": "submit"}
            self.post(f"/api/assignments/{one['id']}/events", {**event, "layer": {"spans": marks}, "seconds": 30.0})
            count += 1
        return count


@dataclass
class House:
    """The running studio, and the browser that visits it."""

    url: str
    studio: Studio
    browser: Browser

    def link(self, role: str = "annotator") -> str:
        with self.studio.store.writing() as tx:
            return invite(tx, self.studio, Role(role)).token

    def stranger(self, **options: Any) -> Visitor:
        context = self.browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        page = context.new_page()
        trouble: list[str] = []
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(f"dialog {dialog.message}"))
        page.on("console", lambda said: trouble.append(said.text) if "Content Security" in said.text else None)
        return Visitor(page, context, self.url, trouble)

    def person(self, name: str, role: str = "annotator", *, passed: bool = True, **options: Any) -> Visitor:
        """Somebody who has joined, and passed the exam where that is wanted."""
        from veriglot.studio.tables import now

        made = self.stranger(**options)
        body = {"token": self.link(role), "name": name, "language": "en", "consent": True}
        answer = made.context.request.post(f"{self.url}/api/join", data=body)
        assert answer.ok, answer.text()
        if passed and role == "annotator":
            public = made.get("/api/me")["person"]["id"]
            with self.studio.store.writing() as tx:
                figures = [{"passed": True, "precision": 1.0, "recall": 1.0}]
                changes: dict[str, Any] = {"exam_attempts": 1, "exam_passed_at": now(), "exam_figures": figures}
                tx.update_person(tx.person_by(public_id=public).id, "exam_passed", **changes)
        return made


def _rows(name: str, per_language: int, **more: Any) -> str:
    rows = [
        {
            "id": f"{name}-{tag}-{number} {HOSTILE}",
            "language": tag,
            "question": HOSTILE,
            "response": text,
            "evidence": [{"id": "p0", "title": HOSTILE, "text": f"{text} {HOSTILE}"}],
            **more,
        }
        for tag, text in TEXTS.items()
        for number in range(per_language)
    ]
    return "\n".join(json.dumps(row) for row in rows)


def _layer(annotator: str, kind: str) -> dict[str, Any]:
    spans = [{"start": 4, "end": 9, "type": "entity"}]
    return {"annotator": annotator, "kind": kind, "taxonomy": "fava", "spans": spans}


@contextmanager
def served(folder: Path, database: str, browser: Browser) -> Iterator[House]:
    """The project served on a free port of loopback until the block ends."""
    (folder / "house.jsonl").write_text(_rows("item", 3, annotations=[_layer("silver", "model")]), "utf-8")
    (folder / "exam.jsonl").write_text(_rows("exam", 4, annotations=[_layer("gold", "human")]), "utf-8")
    said = {"name": json.dumps(f"Gold {HOSTILE}"), "consent": json.dumps(f"I agree. {HOSTILE}")}
    (folder / "house.toml").write_text(PROJECT.format(**said), "utf-8")
    studios = Studios([load(folder / "house.toml")], database)
    studio = studios.by_slug.get("house")
    assert studio is not None
    import_all(studio.store, studio.project)
    often = {"call": "1000/second", "join": "1000/minute", "write": "10000/minute", "heavy": "1000/minute"}
    settings = Settings(rates={**RATES, **often})
    with for_browser(studios, settings, browser) as url:
        yield House(url, studio, browser)
