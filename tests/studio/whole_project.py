"""People who do a whole project: a lead at a command line, and all in a browser, at the server as it is served."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, Page

COMMAND = [sys.executable, "-c", "import sys; from veriglot.cli import main; sys.exit(main())", "studio"]
TYPES = ("entity", "relation", "contradictory", "invented", "subjective", "unverifiable")
_EMOJI = re.compile("[\U0001f000-\U0001faff\U0001f1e6-\U0001f1ff\u200d]+")
_SHOTS = os.environ.get("VERIGLOT_SCREENSHOTS")  # a folder, for whoever wants to look

# Where the first and the last character of a part of the text lie; a character as readers see it.
_PLACES = """([from, to]) => {
  const node = document.getElementById("response").firstChild;
  const cut = Array.from(new Intl.Segmenter("und", { granularity: "grapheme" }).segment(node.data.slice(from, to)));
  const middle = (start, end) => { const range = document.createRange();
    range.setStart(node, start); range.setEnd(node, end);
    const box = range.getClientRects()[0]; return [box.left + box.width / 2, box.top + box.height / 2]; };
  const last = cut[cut.length - 1];
  return [middle(from, from + cut[0].segment.length), middle(from + last.index, to)]; }"""


@dataclass(frozen=True)
class Mark:
    """A part of a text that somebody marks: with keys, or with the mouse."""

    text: str
    type: str
    by: str = "keys"
    rating: int | None = None

    def place(self, response: str) -> tuple[int, int, str]:
        """In code points, found without the page."""
        assert response.count(self.text) == 1, (self.text, response)
        start = response.index(self.text)
        return start, start + len(self.text), self.type


@dataclass
class Command:
    """`veriglot studio`, typed."""

    project: Path
    database: str

    def __call__(self, verb: str, *words: str) -> str:
        typed = [*COMMAND, "--database", self.database, verb, str(self.project), *words]
        done = subprocess.run(typed, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def link(self, role: str, url: str) -> str:
        return str(json.loads(self("invite", "--role", role, "--public-url", url, "--json"))[0]["link"])


def init(folder: Path, *words: str) -> Path:
    """A project file, written by the command for it."""
    done = subprocess.run([*COMMAND, "init", str(folder), *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return folder / "project.toml"


@contextmanager
def serving(project: Path, database: str) -> Iterator[str]:
    """The server in a process of its own, on a free port of loopback; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    typed = [*COMMAND, "--database", database, "serve", str(project), "--port", str(port)]
    with subprocess.Popen(typed, stderr=subprocess.PIPE, text=True) as server:
        try:
            _wait(url, server)
            yield url
        finally:
            server.terminate()
            _, said = server.communicate(timeout=60)
    assert server.returncode == 0, said
    assert "Traceback" not in said


def _wait(url: str, server: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 60
    with httpx2.Client(base_url=url, trust_env=False) as client:
        while time.monotonic() < until:
            assert server.poll() is None
            try:
                if client.get("/api/health").status_code == 200:
                    return
            except httpx2.TransportError:
                time.sleep(0.05)
    raise AssertionError("the server did not come up")


@dataclass
class Person:
    """Somebody in a browser."""

    name: str
    url: str
    context: BrowserContext
    page: Page
    trouble: list[str] = field(default_factory=list)

    def join(self, link: str) -> None:
        """Through the door: agree, choose a name, in."""
        self.page.goto(link)
        self.page.get_by_label("Your name here").fill(self.name)
        self.page.get_by_label("I have read this and agree").check()
        self.screenshot("join")
        self.button("Join")
        self.page.wait_for_url(re.compile(r"/(exam|mark|lead)$"))

    def come_back(self, link: str) -> None:
        """Through the same link on another device."""
        self.page.goto(link)
        self.page.get_by_text(f"Welcome back, {self.name}").wait_for()
        self.button("Continue")
        self.page.wait_for_selector("#response")

    def button(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def get(self, path: str) -> Any:
        answer = self.context.request.get(self.url + path)
        assert answer.ok, answer.text()
        return answer.json()

    def screenshot(self, name: str) -> None:
        """A picture for those who look at it."""
        if _SHOTS:
            Path(_SHOTS).mkdir(parents=True, exist_ok=True)
            self.page.wait_for_timeout(250)  # what moves has come to rest
            self.page.screenshot(path=f"{_SHOTS}/{name}-{self.name.split()[0].lower()}.png", full_page=True)

    @property
    def response(self) -> str | None:
        """The text on the desk, or None where there is none."""
        found = self.page.locator("#response")
        return found.text_content() if found.count() else None

    def settled(self) -> None:
        """Until there is an item to work on, or word that there is none."""
        self.page.wait_for_selector("#response, main.rest h2, main.gate h1")
        self.page.wait_for_timeout(120)  # two frames in which marks are drawn

    def mark(self, *marks: Mark) -> None:
        for mark in marks:
            self.page.locator("#response").focus()
            self.page.keyboard.press("Escape")  # what was at hand before
            self.page.keyboard.press("Escape")
            if mark.by == "keys":
                self._by_keys(mark)
            else:
                self._by_mouse(mark)
            if mark.rating is not None and mark.by == "keys":
                self.page.keyboard.press(f"Shift+{mark.rating}")
            elif mark.rating is not None:
                self.page.locator(".span-line.now .step").nth(mark.rating - 1).click()

    def _by_keys(self, mark: Mark) -> None:
        text, language = self.response or "", self.page.locator(".pane .surface").first.get_attribute("lang") or ""
        start, end, _ = mark.place(text)
        stops = sorted([*map(tuple, word_bounds(text, language).tolist()), *(e.span() for e in _EMOJI.finditer(text))])
        first = [begin for begin, _ in stops].index(start)
        last = [finish for _, finish in stops].index(end)
        forward = "ArrowLeft" if language == "ar" else "ArrowRight"
        digit = str(TYPES.index(mark.type) + 1)
        for key in ["Home", *[forward] * first, *[f"Shift+{forward}"] * (last - first), digit]:
            self.page.keyboard.press(key)

    def _by_mouse(self, mark: Mark) -> None:
        """With Alt, so that it takes just these characters, and no whole words."""
        text = self.response or ""
        start, end, _ = mark.place(text)
        units = [len(text[:point].encode("utf-16-le")) // 2 for point in (start, end)]
        first, last = self.page.evaluate(_PLACES, units)
        self.page.keyboard.down("Alt")
        self.page.mouse.move(*first)
        self.page.mouse.down()
        self.page.mouse.move(*last, steps=4)
        self.page.mouse.up()
        self.page.keyboard.up("Alt")
        if mark.type in TYPES:
            self.page.locator(".type").nth(TYPES.index(mark.type)).click()  # where there is but one, a drag marks
        assert self.page.evaluate("document.activeElement.id") == "response"  # keys go on from there

    def end(self, button: str) -> None:
        """Hand in, or whatever ends the work on an item; until the next one is there."""
        with self.page.expect_response("**/api/next"):
            self.page.get_by_role("button", name=re.compile(f"^{button}")).click()
        self.settled()

    def wait_saved(self) -> None:
        self.page.wait_for_selector('.sync[data-status="saved"][data-waiting="0"]')


# That a stranger is none of ours (401) is what the page asks first. For each picture Playwright puts a style of its own
# into the page, `body {}`, and Firefox holds it to the page's policy: it is known by its SHA-256.
_EXPECTED = ("status of 401", "sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT+SmwNZWA=")


@dataclass
class Team:
    """Opens browsers."""

    url: str
    browser: Browser

    def person(self, name: str, *, dark: bool = False, **options: Any) -> Person:
        scheme = "dark" if dark else "light"
        size = {"width": 1280, "height": 860}
        context = self.browser.new_context(**{"viewport": size, "color_scheme": scheme, "locale": "en-GB", **options})
        page = context.new_page()
        person = Person(name, self.url, context, page)

        def note(said: str) -> None:
            if not any(words in said for words in _EXPECTED):
                person.trouble.append(said)

        page.on("pageerror", lambda error: note(str(error)))
        page.on("console", lambda said: note(f"{said.text} {said.location}") if said.type == "error" else None)
        return person
