"""Coming in by a link, and the exam, in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lead_studio import HOSTILE, TEXTS
from studio_server import any_database

if TYPE_CHECKING:
    from lead_studio import House, Visitor
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow

SAVED = '.sync[data-status="saved"][data-waiting="0"]'


def _button(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_somebody_joins_by_a_link_and_the_key_leaves_the_address(house: House) -> None:
    visitor = house.stranger(locale="en-GB")
    page = visitor.go(f"/join/{house.link()}")
    assert page.locator("h1").inner_text() == f"Gold {HOSTILE}"
    assert HOSTILE in page.locator(".consent-text").inner_text()
    page.locator(".gate select").select_option("es")
    page.get_by_text("Traducción automática").wait_for()
    page.locator(".gate select").select_option("en")
    page.get_by_text("Traducción automática").wait_for(state="detached")
    join = page.get_by_role("button", name="Join")
    assert join.is_disabled()
    page.get_by_label("Your name here").fill("Kim ⚘")
    assert join.is_disabled()  # nobody takes part who has not agreed
    page.get_by_label("I have read this and agree").check()
    join.click()
    page.wait_for_url("**/exam")
    assert visitor.get("/api/me")["person"]["name"] == "Kim ⚘"
    assert visitor.trouble == []


@any_database
def test_a_name_that_is_taken_is_refused_where_it_was_written(house: House) -> None:
    house.person("Kim")
    page = house.stranger().go(f"/join/{house.link()}")
    page.get_by_label("Your name here").fill("kim")
    page.get_by_label("I have read this and agree").check()
    _button(page, "Join")
    page.get_by_role("alert").wait_for()
    assert "has this name already" in page.get_by_role("alert").inner_text()
    field = page.get_by_label("Your name here")
    assert field.get_attribute("aria-invalid") == "true"
    assert field.evaluate("node => node === document.activeElement")


def test_a_link_lets_somebody_in_again_on_another_device(house: House) -> None:
    token = house.link()
    body = {"token": token, "name": "Kim", "language": "en", "consent": True}
    assert house.stranger().context.request.post(f"{house.url}/api/join", data=body).ok
    page = house.stranger().go(f"/join/{token}")
    assert "Welcome back, Kim" in page.locator(".gate").inner_text()
    _button(page, "Continue")
    page.wait_for_url("**/exam")


@any_database
@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("nonsense", "damaged"),
        ("<script>alert(1)</script>", "damaged"),
        ("%2e%2e%2fapi", "damaged"),
        ("%E0%A4%A", "damaged"),
    ],
)
def test_a_link_that_opens_nothing_says_so(house: House, token: str, said: str) -> None:
    visitor = house.stranger()
    page = visitor.go(f"/join/{token}")
    assert page.locator("h1").inner_text() == "This link does not work"
    assert said in page.get_by_role("alert").inner_text()
    assert visitor.trouble == []


@any_database
def test_a_wrong_address_says_what_to_do_in_the_language_of_the_browser(house: House) -> None:
    stranger = house.stranger(locale="ar")
    page = stranger.go(f"/join/{house.link()[:-3]}")
    assert page.get_by_role("alert").inner_text().split("\n")[0] == "هذا الرابط تالف أو لم يُنشأ هنا."
    page = stranger.go("/nowhere", ".lonely p + p")
    assert page.locator(".lonely p").all_inner_texts() == [
        "لا توجد هنا صفحة كهذه. تحقّق من العنوان.",
        "افتح رابط دعوتك: فهو يقود إلى عملك.",
    ]
    kim, lead = house.person("Kim"), house.person("Ines", "lead")
    for path in ("/nowhere", "/mark/first"):
        page = kim.go(path, ".lonely a")
        assert page.locator(".lonely p").inner_text() == "There is no such page here. Check the address."
    page.get_by_role("link", name="To my items").click()
    page.wait_for_selector("#response")
    page.wait_for_selector(SAVED)  # else the browser asks before it leaves
    page = kim.go("/mark/9999", "h2")
    assert page.locator("h2").inner_text() == "This item is not here, or somebody else has it now."
    _button(page, "Next item")
    page.wait_for_selector("#response")
    page = lead.go("/lead/nowhere", "main [role=alert]")
    assert "no such page here" in page.locator("main").inner_text()
    page = lead.go("/lead/items/9999", "main [role=alert]")
    assert "This item is not here" in page.locator("main").inner_text()
    page.get_by_role("link", name="All items").click()
    page.wait_for_selector("table")
    assert not [*stranger.trouble, *kim.trouble, *lead.trouble]


def _exam(visitor: Visitor, spans: dict[str, list[tuple[int, int, str]]]) -> Page:
    """From the first page of the exam to its result."""
    page = visitor.go("/", ".guidelines h2")
    assert page.url.endswith("/exam")
    _button(page, "Begin the exam")
    page.wait_for_selector("#response")
    assert visitor.hand_in(spans) > 0
    visitor.go("/exam/finish")
    page.get_by_role("button", name="Item 1", exact=True).wait_for()
    _button(page, "Submit the exam")
    page.wait_for_selector("main[aria-live] h1")
    return page


def test_who_marks_what_is_known_passes(house: House) -> None:
    visitor = house.person("Kim", passed=False)
    known = [(4, 9, "entity")]
    page = _exam(visitor, {"de": known, "ar": known})
    assert page.locator("h1").inner_text() == "You passed"
    assert page.locator(".exam-figures dd").all_inner_texts() == ["100%", "100%"]
    _button(page, "To my items")
    page.wait_for_url("**/mark")
    page.wait_for_selector("#response")
    assert visitor.trouble == []


@any_database
def test_an_exam_that_has_begun_goes_on_and_is_not_counted_as_work(house: House) -> None:
    visitor = house.person("Kim", passed=False)
    page = visitor.go("/", ".guidelines h2")
    _button(page, "Begin the exam")
    page.wait_for_selector("#response")
    page.wait_for_selector(SAVED)  # else the browser asks before it leaves
    visitor.go("/", "#response, .guidelines")  # before anything is handed in
    assert page.url.endswith("/mark")
    page.wait_for_selector("#response")
    page.wait_for_selector(SAVED)
    visitor.go("/exam", ".guidelines h2")
    _button(page, "Continue the exam")
    page.wait_for_selector("#response")
    items = len(visitor.get("/api/assignments"))
    assert page.locator(".progress .fine").inner_text() == f"Exam · 0 done · {items} open"
    page.set_viewport_size({"width": 390, "height": 800})  # nothing lies over what is saved on a phone
    figures, saved = (page.locator(name).bounding_box() for name in (".progress .fine", ".sync"))
    assert figures["x"] + figures["width"] <= saved["x"] or figures["y"] + figures["height"] <= saved["y"]
    page.keyboard.press("Enter")
    page.get_by_text(f"1 done · {items - 1} open").wait_for()
    house.person("Bo").hand_in({})
    known = [(4, 9, "entity")]
    other = house.person("Lin", passed=False)
    page = _exam(other, {"de": known, "ar": known})
    _button(page, "To my items")
    page.wait_for_selector("#response")
    page.wait_for_selector(SAVED)
    assert page.locator(".progress .fine").inner_text() == "0 done"  # how much follows is not known: no full bar
    assert not page.locator(".progress progress").count()
    page.reload()
    page.wait_for_selector("#response")
    assert page.locator(".progress .fine").inner_text().startswith("0 done")


def test_each_answer_stands_beside_the_known_one_once_the_exam_is_handed_in(house: House) -> None:
    visitor = house.person("Kim", passed=False)
    page = visitor.go("/", ".guidelines h2")
    _button(page, "Begin the exam")
    page.wait_for_selector("#response")
    assert visitor.get("/api/exam/feedback") == []  # nothing of it is told before
    assert visitor.hand_in({"de": [(4, 14, "entity")], "ar": []}) == 4
    assert visitor.get("/api/exam/feedback") == []
    visitor.go("/exam/finish")
    _button(page, "Submit the exam")
    page.locator(".feedback .case").nth(3).wait_for()
    german = page.locator(".feedback .case", has=page.locator('.marked-text[lang="de"]')).first
    yours, known = (german.locator(".side").nth(at).locator("q").all_inner_texts() for at in (0, 1))
    assert (yours, known) == ([TEXTS["de"][4:14]], [TEXTS["de"][4:9]])
    # of the 9 characters that are no spaces 5 are right: "wurde" of "wurde 1815"
    figures = german.locator(".case-head p").inner_text()
    assert figures == "Of what you marked, correct: 55.6% · Of what was to be marked, found: 100%"
    assert visitor.trouble == []


def test_who_fails_twice_is_out(house: House) -> None:
    visitor = house.person("Kim", passed=False)
    page = _exam(visitor, {"de": [(4, 9, "entity")]})
    assert page.locator("h1").inner_text() == "Not passed this time"
    assert "one more attempt" in page.locator("main").inner_text()
    assert "Needed in each language: " in page.locator("main").inner_text()
    arabic, german = (line.split(":")[0] for line in page.locator(".exam-languages li").all_inner_texts())
    assert (arabic, german) == ("✗ Arabic", "✓ German")
    told = house.person("Ines", "lead").go("/lead/people", ".people").locator("tr", has_text="Kim").inner_text()
    assert "Arabic: – · 0% < " in told
    assert "German: " not in told
    _button(page, "Try again")
    page.wait_for_selector(".guidelines h2")
    assert "one attempt" in page.locator("main").inner_text()
    page = _exam(visitor, {})
    assert page.locator("h1").inner_text() == "You did not pass the exam"
    visitor.go("/mark", "h1")
    visitor.go("/")
    page.wait_for_url("**/exam")
    assert "No attempt is left" in page.locator("main").inner_text()
    assert visitor.trouble == []


@any_database
def test_guidelines_show_examples_in_the_colours_of_the_types(house: House) -> None:
    visitor = house.person("Kim")
    page = visitor.go("/guidelines", ".guidelines mark")
    assert page.locator("h1").inner_text() == "Guidelines"
    mark = page.locator('mark[data-type="entity"]').first
    assert mark.locator(".mark-type").inner_text() == "Entity"
    assert mark.evaluate("node => getComputedStyle(node).boxShadow") != "none"
    assert visitor.trouble == []
