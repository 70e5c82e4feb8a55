"""The page of `veriglot serve`, in a browser: ask, see, save and open, on a phone, in the dark, from right to left."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from loopback import serving

from veriglot.server.app import DetectionServerSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loopback import Loopback
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

HOSTILE = "</script><img src=x onerror=document.title=1> 1879"
KEY = "a-key-of-some-length"


@pytest.fixture(scope="module")
def served() -> Iterator[Loopback]:
    with serving() as found:
        yield found


class Visit:
    """A page, what it wrote to the console, and whom it asked."""

    def __init__(self, browser: Browser, url: str, **context: Any) -> None:
        self.context = browser.new_context(**context)
        self.page: Page = self.context.new_page()
        self.troubles: list[str] = []
        self.asked: set[str] = set()
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", lambda request: self.asked.add(httpx2.URL(request.url).host))
        self.page.goto(url)

    def check(self, evidence: str, response: str) -> None:
        self.page.fill("#ask-evidence", evidence)
        self.page.fill("#ask-response", response)
        self.page.focus("#ask-response")
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_selector("body:not(.unasked)")

    def close(self) -> None:
        self.context.close()
        assert self.troubles == []
        assert self.asked == {"127.0.0.1"}


def test_it_marks_what_the_evidence_does_not_support(browser: Browser, served: Loopback) -> None:
    visit = Visit(browser, served.url)
    page = visit.page
    visit.check("The bridge was opened in 1897.\n---\nIt is 240 metres long.", f"It was opened in 1879. {HOSTILE}")
    page.wait_for_selector("mark.part")
    assert page.inner_text("mark.part >> nth=0").startswith("1879")
    assert page.locator("#evidence .passage").count() == 2
    assert "Unsupported" in page.inner_text("#ask-state")
    assert page.title() == "Veriglot"  # nothing of the texts was run
    page.focus("mark.part >> nth=0")
    assert "confidence" in page.inner_text("#inspector")
    assert [option.inner_text() for option in page.locator("#ask-strictness option").all()] == list(
        served.batcher.detectors[0].strictness
    )
    visit.close()


def test_a_view_of_what_changed_since_is_said(browser: Browser, served: Loopback) -> None:
    visit = Visit(browser, served.url)
    page = visit.page
    page.select_option("#ask-strictness", "low")
    assert page.inner_text("#ask-state") == ""  # nothing was checked yet
    visit.check("The bridge was opened in 1897.", "It was opened in 1879.")
    page.wait_for_selector("mark.part")
    for change in (lambda: page.select_option("#ask-strictness", "high"), lambda: page.click("#ask-example")):
        visit.check("The bridge was opened in 1897.", "It was opened in 1879.")
        page.wait_for_selector("#ask-state:text-is('Unsupported.')")
        change()
        assert "press Check" in page.inner_text("#ask-state")
    visit.close()


def test_what_is_not_checked_is_said(browser: Browser, served: Loopback) -> None:
    visit = Visit(browser, served.url)
    visit.check("", "It was opened in 1879.")
    assert "Not checked" in visit.page.inner_text("#ask-state")
    assert visit.page.locator("#verdict.not-checked").count() == 1
    visit.close()


def test_it_is_shared_by_file(browser: Browser, served: Loopback, tmp_path: Path) -> None:
    visit = Visit(browser, served.url)
    visit.page.select_option("#ask-strictness", "high")
    visit.check("The bridge was opened in 1897.", "It was opened in 1879.")
    with visit.page.expect_download() as saving:
        visit.page.click("#ask-save")
    saved = tmp_path / "shared.json"
    saving.value.save_as(saved)
    assert json.loads(saved.read_text("utf-8"))["prediction"]["verdict"] == "unsupported"
    visit.close()
    other = Visit(browser, served.url)
    other.page.set_input_files("#ask-file", saved)
    other.page.wait_for_selector("mark.part")
    other.page.wait_for_selector("#ask-state:has-text('as it was saved')")
    assert other.page.input_value("#ask-response") == "It was opened in 1879."
    assert other.page.input_value("#ask-strictness") == "high"
    saved.write_text("[]", "utf-8")
    other.page.set_input_files("#ask-file", saved)
    other.page.wait_for_selector(".ask-bad")
    assert "was not saved by this page" in other.page.inner_text("#ask-state")
    other.close()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_phones_and_desks_from_right_to_left(
    browser: Browser, served: Loopback, width: int, scheme: Any
) -> None:
    visit = Visit(browser, served.url, viewport={"width": width, "height": 800}, color_scheme=scheme)
    visit.check("افتُتح الجسر عام 1897.", "افتُتح الجسر عام 1879.")
    page = visit.page
    page.wait_for_selector("mark.part")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.get_attribute("#response", "dir") == "rtl"
    assert page.evaluate("getComputedStyle(document.getElementById('ask-response')).direction") == "rtl"
    light = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] > 127")
    assert light is (scheme == "light")
    visit.close()


def test_every_control_is_reached_by_keys_and_named(browser: Browser, served: Loopback) -> None:
    visit = Visit(browser, served.url)
    page = visit.page
    seen = []
    for _ in range(14):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id"))
    for name in ("question", "response", "evidence", "detector", "strictness", "language", "example", "check"):
        assert f"ask-{name}" in seen
    nameless = page.evaluate(
        "[...document.querySelectorAll('#ask textarea, #ask select, #ask input:not([type=file])')]"
        ".filter((each) => !each.labels.length).length"
    )
    assert nameless == 0
    visit.close()


def test_it_asks_for_a_key_where_one_is_needed(browser: Browser) -> None:
    with serving(settings=DetectionServerSettings(keys=(KEY,))) as served:
        visit = Visit(browser, served.url)
        page = visit.page
        page.fill("#ask-response", "It was opened in 1879.")
        page.click("#ask-check")
        page.wait_for_selector(".ask-bad")
        assert "API key" in page.inner_text("#ask-state")
        page.fill("#ask-key", KEY)
        visit.check("The bridge was opened in 1897.", "It was opened in 1879.")
        page.wait_for_selector("mark.part")
        visit.troubles = [each for each in visit.troubles if "401" not in each]
        visit.close()
