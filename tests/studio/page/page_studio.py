"""A studio for the page's tests: projects of our own, people with browsers, and what the server has of their work."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from studio_server import for_browser

from veriglot.studio.items import import_all
from veriglot.studio.people import invite
from veriglot.studio.project import load
from veriglot.studio.tables import Role
from veriglot.studio.web import RATES, Settings, Studios
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page

# Ours, with what is hard in each: astral code points, joined emoji, combining marks, both directions in one line.
TEXTS = {
    "de": "Ada wurde 1815 in Paris 😀 geboren; ihr Va\u0308ter war der Maler Byron.",
    "ar": "وُلِدَ ابنُ سينا عام 980 قرب بخارى (Bukhara)، وتوفي في باريس 😀 سنة 1037.",
    "zh": "𠮷野家在北京有许多分店👩‍👩‍👧，人口约为五千万。",
    "hi": "ताज महल का निर्माण सम्राट अकबर ने 👍🏽 करवाया; यह क्षेत्र दिल्ली में है।",
    "th": "กรุงเทพมหานครเป็นเมืองหลวงของประเทศลาว 🇹🇭 ตั้งอยู่บนแม่น้ำเจ้าพระยา",
}
EVIDENCE = "Ada Lovelace was born in London in 1815. Her father was the poet Lord Byron. Byron left in 1816."

PROJECT = """
[project]
name = "Page"
slug = "{slug}"
task = "{task}"
{more}
[data]
path = "{slug}.jsonl"
[work]
order = "file"
overlap = 0
reviews = {reviews}
[consent]
en = "I agree."
{tables}
"""
_EMOJI = re.compile("[\U0001f000-\U0001faff\U0001f1e6-\U0001f1ff\u200d]+")


def stops(text: str, language: str) -> list[tuple[int, int]]:
    """What the arrow keys should stop at: the server's words, and emoji."""
    words = [(int(start), int(end)) for start, end in word_bounds(text, language).tolist()]
    return sorted([*words, *(found.span() for found in _EMOJI.finditer(text))])


def units(text: str, point: int) -> int:
    """UTF-16 units before a code point, counted apart from the page's own way."""
    return len(text[:point].encode("utf-16-le")) // 2


def write(folder: Path, slug: str, task: str = "spans", *, more: str = "", tables: str = "", reviews: int = 0) -> Path:
    rows = [
        {"id": f"{slug}-{tag}", "language": tag, "question": "?", "response": text,
         "evidence": [{"id": "p0", "title": "Ada", "text": EVIDENCE, "language": "en"}]}
        for tag, text in TEXTS.items()
    ]  # fmt: skip
    (folder / f"{slug}.jsonl").write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    path = folder / f"{slug}.toml"
    path.write_text(PROJECT.format(slug=slug, task=task, more=more, tables=tables, reviews=reviews), "utf-8")
    return path


@dataclass
class Desk:
    """Somebody at a page."""

    page: Page
    context: BrowserContext
    studio: Any
    url: str
    trouble: list[str]

    @property
    def language(self) -> str:
        return self.page.locator(".pane .surface").first.get_attribute("lang") or ""

    def ready(self) -> Desk:
        self.page.wait_for_selector("#response, .pair")
        self.page.wait_for_function("document.fonts.status === 'loaded'")
        self.page.wait_for_timeout(150)  # two frames in which marks are drawn
        return self

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def saved(self) -> None:
        self.page.wait_for_selector('.sync[data-status="saved"][data-waiting="0"]')

    def layers(self) -> dict[str | None, dict[str, Any]]:
        """What the server has, by the language of the item."""
        with self.studio.store.reading() as tx:
            languages = {item.id: item.key.rpartition("-")[2] for item in tx.items(self.studio.id)}
            return {languages[one.item_id]: json.loads(one.layer.encode()) for one in tx.assignments(self.studio.id)}

    def spans(self, language: str) -> list[tuple[int, int, str]]:
        return [(span["start"], span["end"], span["type"]) for span in self.layers()[language]["spans"]]

    def point(self, text: str, at: int) -> tuple[float, float]:
        """The middle of the character that begins at a code point."""
        box = self.page.evaluate(
            """([from, to]) => { const node = document.getElementById("response").firstChild;
            const range = document.createRange(); range.setStart(node, from); range.setEnd(node, to);
            const r = range.getClientRects()[0]; return [r.left + r.width / 2, r.top + r.height / 2]; }""",
            [units(text, at), units(text, at + 1)],
        )
        return box[0], box[1]

    def drag(self, text: str, first: int, last: int) -> None:
        """From the middle of one character to the middle of another."""
        self.page.mouse.move(*self.point(text, first))
        self.page.mouse.down()
        self.page.mouse.move(*self.point(text, (first + last) // 2))
        self.page.mouse.move(*self.point(text, last), steps=3)
        self.page.mouse.up()


@dataclass
class Place:
    """A running studio, and the browser that visits it."""

    url: str
    studios: Studios
    browser: Browser

    def sit(
        self, slug: str, *, role: str = "annotator", name: str = "Kim", language: str = "en", **options: Any
    ) -> Desk:
        """Somebody joins and opens the page."""
        studio = self.studios.by_slug.get(slug)
        assert studio is not None
        with studio.store.writing() as tx:
            token = invite(tx, studio, Role(role)).token
        context = self.browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        body = {"token": token, "name": name, "language": language, "consent": True}
        answer = context.request.post(f"{self.url}/api/join", data=body)
        assert answer.ok, answer.text()
        return self.open(context, studio)

    def open(self, context: BrowserContext, studio: Any, path: str = "/") -> Desk:
        page = context.new_page()
        trouble: list[str] = []
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("console", lambda message: trouble.append(message.text) if "Content Security" in message.text else None)
        page.goto(self.url + path)
        return Desk(page, context, studio, self.url, trouble)


@contextmanager
def served(paths: list[Path], database: str, browser: Browser) -> Iterator[Place]:
    """Projects served on a free port of loopback until the block ends."""
    studios = Studios([load(path) for path in paths], database)
    for studio in studios:
        import_all(studio.store, studio.project)
    settings = Settings(rates={**RATES, "call": "1000/second", "join": "1000/minute", "write": "10000/minute"})
    with for_browser(studios, settings, browser) as url:
        yield Place(url, studios, browser)
