"""What is seen: enough contrast in both lights, names for those who listen, a page that fits a phone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from page_studio import served, write
from studio_server import any_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from page_studio import Desk, Place
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

# The contrast of every text that is on the screen with what lies behind it, computed by the browser's own colours.
CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
  const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] + under[i] * (1 - top[3]));
  const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = (rgb) => { const [r, g, b] = rgb.map(linear);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (element) => { const all = [];
    for (let e = element; e; e = e.parentElement) all.push(rgba(getComputedStyle(e).backgroundColor));
    return all.reverse().reduce((under, top) => over(top, under), [255, 255, 255]); };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const says = Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.data.trim());
    if (!says || !element.checkVisibility() || element.closest(".unseen, :disabled, option")) continue;
    const behind = ground(element);
    const [a, b] = [light(over(rgba(getComputedStyle(element).color), behind)), light(behind)];
    const contrast = Math.round(100 * (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)) / 100;
    found.push([contrast, element.className || element.tagName, element.textContent.slice(0, 40)]);
  }
  return found;
}"""

NAMELESS = """() =>
  Array.from(document.querySelectorAll("button, input, select, textarea, a, [tabindex='0'], dialog, progress"))
  .filter((e) => e.checkVisibility())
  .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length))
  .map((e) => e.outerHTML.slice(0, 120))"""


def busy(desk: Desk) -> None:
    """Something of everything on the screen."""
    desk.ready().press(
        "Home", "Shift+ArrowRight", "1", "Shift+4", "Escape", "ArrowRight", "Shift+ArrowRight", "3", "Escape"
    )
    desk.page.fill("#evidence-search", "byron")
    desk.saved()
    desk.press("Escape", "Tab")


@any_database
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("slug", ["spans", "facts", "translation", "pairs"])
def test_words_stand_out(place: Place, slug: str, scheme: str) -> None:
    desk = place.sit(slug, color_scheme=scheme).ready()
    if slug == "spans":
        busy(desk)
    elif slug != "translation":
        desk.press("1")
    for panel in (None, "Keys and help", "My items"):
        if panel:
            desk.page.locator(".top .tool").filter(has_text="?" if panel.startswith("Keys") else panel).click()
            desk.page.wait_for_timeout(350)
        found = desk.page.evaluate(CONTRAST)
        assert len(found) > 8
        assert [one for one in found if one[0] < 4.5] == []
        if panel:
            desk.press("Escape")
    assert desk.trouble == []


@any_database
def test_the_switch_turns_the_light(place: Place) -> None:
    desk = place.sit("spans", color_scheme="light").ready()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = desk.page.evaluate(ground)
    desk.page.click("#theme")
    assert desk.page.evaluate(ground) == light
    desk.page.click("#theme")
    dark = desk.page.evaluate(ground)
    assert dark != light
    desk.page.reload()
    desk.ready()
    assert desk.page.evaluate(ground) == dark  # kept on this device


@any_database
def test_everything_has_a_name_and_marks_are_said(place: Place) -> None:
    desk = place.sit("spans")
    busy(desk)
    assert desk.page.evaluate(NAMELESS) == []
    desk.press("Home", "Escape", "End", "1")
    said = desk.page.locator('.said[role="status"][aria-live="polite"]').inner_text()
    assert said.startswith("Marked as Entity")
    desk.press("Escape", "Home")
    assert " — " in desk.page.locator(".said").inner_text()  # the word, and how it is marked


@any_database
def test_tab_leaves_the_text_after_the_last_mark(place: Place) -> None:
    desk = place.sit("spans").ready()
    desk.press("Home", "1", "Escape", "Home", "Tab")
    assert desk.page.evaluate("document.activeElement.id") == "response"
    desk.press("Tab")
    assert desk.page.evaluate("document.activeElement.id") != "response"


@any_database
def test_a_phone_shows_the_evidence_below_the_text_whatever_is_scrolled(place: Place) -> None:
    desk = place.sit("spans", viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True).ready()
    assert desk.page.evaluate("document.documentElement.scrollWidth") <= 360
    response, evidence = (desk.page.locator(name) for name in ("section.pane:not(.proof)", ".proof"))
    response.evaluate("(pane) => pane.scrollTo(0, pane.scrollHeight)")
    upper, lower = response.bounding_box(), evidence.bounding_box()
    assert upper is not None
    assert lower is not None
    assert lower["y"] >= upper["y"] + upper["height"] - 1  # below, not beside
    assert lower["height"] > 150
    foot = desk.page.locator(".foot").bounding_box()
    assert foot is not None
    assert lower["y"] + lower["height"] <= foot["y"] + 1
    assert foot["y"] + foot["height"] <= 741
    desk.page.locator(".divider").focus()
    desk.press("ArrowUp", "ArrowUp", "ArrowUp")
    higher = evidence.bounding_box()
    assert higher is not None
    assert higher["height"] > lower["height"] + 40
    desk.page.reload()
    desk.ready()
    assert desk.page.locator(".proof").bounding_box() == higher  # kept on this device


@any_database
def test_the_guidelines_stand_beside_the_text_that_is_marked(place: Place) -> None:
    desk = place.sit("spans").ready()
    desk.press("g")
    desk.page.wait_for_selector(".guide .guidelines h3")
    desk.press("Home", "1")
    desk.saved()
    assert [type_ for *_, type_ in desk.spans("de")] == ["entity"]
    desk.press("Enter")  # they stay for the next item
    desk.page.wait_for_selector(".surface[lang=ar] #response")
    assert desk.page.locator(".guide").is_visible()
    desk.page.get_by_role("button", name="Close", exact=True).click()
    assert desk.page.locator(".guide").count() == 0


@any_database
@pytest.mark.parametrize("width", [390, 1024])
def test_a_long_mark_stays_in_its_pane(place: Place, width: int) -> None:
    desk = place.sit("spans", viewport={"width": width, "height": 800}).ready()
    desk.press("Home", *["Shift+ArrowRight"] * 11, "1", "Escape")  # all of the German text
    desk.saved()
    panes = desk.page.evaluate("[...document.querySelectorAll('.pane')].map((e) => [e.scrollWidth, e.clientWidth])")
    assert len(panes) == 2
    assert all(needed <= there for needed, there in panes)
    assert desk.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture
def repeating(browser: Browser, tmp_path: Path) -> Iterator[Place]:
    """A response of 3,500 words, each of which the evidence has 20 times: 70,000 places, of which 500 differ."""
    path = write(tmp_path, "spans")
    row = {"id": "x", "language": "en", "response": " ".join(f"word{at % 25}" for at in range(3500))}
    evidence = " ".join(f"word{at % 25}" for at in range(25 * 30))
    (tmp_path / "spans.jsonl").write_text(json.dumps({**row, "evidence": [{"id": "p0", "text": evidence}]}), "utf-8")
    with served([path], str(tmp_path / "studio.sqlite"), browser) as there:
        yield there


def test_shared_words_of_a_long_text_are_shown(repeating: Place) -> None:
    desk = repeating.sit("spans").ready()
    desk.page.get_by_role("button", name="Shared words").click()
    desk.page.wait_for_function("() => CSS.highlights.get('shared')?.size > 0")
    in_evidence = "[...CSS.highlights.get('shared')].filter((r) => r.startContainer.parentElement.id === 'passage-p0')"
    assert desk.page.evaluate(f"{in_evidence}.length") == 25 * 20  # each place once
    assert desk.trouble == []


@any_database
def test_nothing_moves_for_those_who_want_rest(place: Place) -> None:
    desk = place.sit("spans", reduced_motion="reduce").ready()
    desk.page.locator(".top .tool").first.click()
    assert desk.page.evaluate("document.getAnimations().length") == 0


def test_a_reviewer_sees_the_marks_and_sends_back_with_a_note(place: Place) -> None:
    desk = place.sit("reviewed").ready()
    desk.press("Home", "1", "Enter")
    desk.page.wait_for_timeout(800)
    judge = place.sit("reviewed", role="reviewer", name="Rev").ready()
    assert judge.page.locator(".span-line").count() == 1
    confirm, correct, back = judge.page.locator(".ending > button").all()[:3]
    assert (confirm.is_enabled(), correct.is_enabled()) == (True, False)
    judge.press("Home", "2")
    judge.press("Escape", "Tab", "3")
    assert (confirm.is_enabled(), correct.is_enabled()) == (False, True)
    judge.press("Control+z", "Control+z")
    assert back.is_enabled()
    judge.press("b")
    judge.page.keyboard.type("The year is right.")
    judge.press("Control+Enter")
    judge.page.get_by_text("Nothing to do for now").wait_for()
    again = place.open(desk.context, desk.studio).ready()
    assert "The year is right." in again.page.locator(".notice.returned").inner_text()


def test_a_reviewer_confirms_or_corrects_by_a_key(place: Place) -> None:
    desk = place.sit("reviewed").ready()
    for language in ("de", "ar"):
        desk.page.wait_for_selector(f".surface[lang={language}] #response")
        desk.ready().press("Home", "1", "Enter")
    desk.saved()
    judge = place.sit("reviewed", role="reviewer", name="Rev").ready()
    judge.press("Enter")
    judge.page.wait_for_selector(".surface[lang=ar] #response")
    judge.ready().press("End", "2", "Enter")
    judge.page.get_by_text("Nothing to do for now").wait_for()
    with judge.studio.store.reading() as tx:
        verdicts = [
            event.kind for event in tx.events(judge.studio.id) if event.kind in {"confirm", "correct", "return"}
        ]
    assert verdicts == ["confirm", "correct"]


def test_a_question_and_its_answer_are_read_where_the_work_is(place: Place) -> None:
    desk = place.sit("reviewed").ready()
    desk.page.get_by_text("Write to the others about this item").click()
    desk.page.locator(".reply textarea").fill("Is 1815 right?")
    desk.press("Control+Enter")
    desk.page.locator(".comments li").wait_for()
    desk.page.click("#submit")
    desk.page.wait_for_selector(".surface[lang=ar] #response")
    desk.saved()
    judge = place.sit("reviewed", role="reviewer", name="Rev").ready()
    assert "Is 1815 right?" in judge.page.locator(".notice.conversation").inner_text()
    judge.page.locator(".conversation .reply textarea").fill("It is.")
    judge.page.locator(".conversation .reply button").click()
    judge.page.locator(".comments li").nth(1).wait_for()
    judge.saved()
    desk.page.reload()
    desk.ready()
    desk.page.locator(".tool .unread").wait_for()
    desk.page.locator(".tool").first.click()
    desk.page.locator(".item-go .unread").click()
    desk.page.wait_for_selector(".surface[lang=de] #response")
    assert desk.page.locator(".comments .written").all_inner_texts() == ["Is 1815 right?", "It is."]
    desk.saved()
    lead = place.sit("reviewed", role="lead", name="Ines")
    lead.page.goto(f"{place.url}/lead/conversations")
    lead.page.locator(".card .written").nth(1).wait_for()
    assert lead.page.locator(".comments b").all_inner_texts() == ["Kim", "Rev"]
    assert desk.trouble == judge.trouble == lead.trouble == []


@any_database
def test_focus_comes_back_to_what_was_opened_from(place: Place) -> None:
    desk = place.sit("spans").ready()
    at_hand = "document.activeElement.ariaLabel || document.activeElement.textContent"
    for name in ("My items", "Keys and help"):
        desk.page.locator(".top").get_by_role("button", name=name, exact=True).focus()
        desk.press("Enter")
        desk.page.wait_for_selector("dialog[open]")
        if name == "My items":
            assert desk.page.locator(".item-go").first.inner_text().split() == ["1", "Annotation", "German", "Open"]
        desk.press("Escape")
        desk.page.wait_for_selector("dialog", state="detached")
        assert desk.page.evaluate(at_hand) == name
    desk.page.get_by_role("button", name="Skip…", exact=True).focus()
    desk.press("Enter")
    desk.page.get_by_role("button", name="Unreadable").wait_for()
    assert desk.page.evaluate(at_hand) == "Skip…"
    desk.press("Enter")
    desk.page.get_by_role("button", name="Unreadable").wait_for(state="detached")
    assert desk.page.evaluate(at_hand) == "Skip…"


@any_database
def test_a_phone_shows_what_was_done_in_whole_words(place: Place) -> None:
    desk = place.sit("spans", viewport={"width": 390, "height": 800}).ready()
    desk.press("Home", "1")
    said = desk.page.locator(".said")
    assert said.inner_text() == "Marked as Entity: Ada"
    assert said.evaluate("(line) => line.scrollWidth <= line.clientWidth")
    assert desk.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert desk.page.locator("#evidence-search").evaluate("(e) => getComputedStyle(e).textOverflow") == "ellipsis"


def test_a_long_title_of_evidence_stays_in_its_pane(browser: Browser, tmp_path: Path) -> None:
    path = write(tmp_path, "spans")
    row = {
        "id": "x",
        "language": "en",
        "response": "Ada.",
        "evidence": [{"id": "p0", "text": "Ada.", "title": "x" * 200}],
    }
    (tmp_path / "spans.jsonl").write_text(json.dumps(row), "utf-8")
    with served([path], str(tmp_path / "studio.sqlite"), browser) as place:
        desk = place.sit("spans").ready()
        assert desk.page.locator(".proof").evaluate("(pane) => pane.scrollWidth <= pane.clientWidth")
