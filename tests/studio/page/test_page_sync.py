"""Nothing is lost between the page and the server: offline, loaded anew, in two tabs, refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from page_studio import EVIDENCE, TEXTS, stops
from studio_server import any_database

if TYPE_CHECKING:
    from page_studio import Desk, Place
    from playwright.sync_api import Dialog

pytestmark = pytest.mark.slow


def first(place: Place, slug: str = "spans", **options: object) -> Desk:
    return place.sit(slug, **options).ready()


def kinds(desk: Desk) -> list[str]:
    """What the server recorded of the work, in order."""
    with desk.studio.store.reading() as tx:
        (one,) = tx.assignments(desk.studio.id)
        return [
            event.kind for event in tx.events(desk.studio.id, assignment_id=one.id) if event.person_id == one.person_id
        ]


def test_work_waits_while_the_line_is_down(place: Place) -> None:
    desk = first(place)
    desk.saved()
    desk.context.set_offline(True)
    desk.press("Home", "1", "Escape", "ArrowRight", "ArrowRight", "2")
    desk.page.wait_for_selector('.sync[data-status="offline"]')
    desk.press("Escape", "End", "4")
    desk.page.wait_for_timeout(900)
    assert desk.page.get_attribute(".sync", "data-status") == "offline"
    assert int(desk.page.get_attribute(".sync", "data-waiting") or 0) >= 1
    assert desk.spans(desk.language) == []
    shown = desk.page.locator(".span-line").count()
    asked: list[str] = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.accept()

    desk.page.on("dialog", answer)
    desk.page.get_by_role("button", name="Sign out", exact=True).click()
    desk.page.wait_for_timeout(300)
    assert [text.split(".")[0] for text in asked] == [
        "Some of your work is not on the server yet",
        "The studio cannot be reached",  # and the session goes on: the page said nothing, and looked left
    ]
    assert desk.page.locator(".span-line").count() == shown
    desk.context.set_offline(False)
    desk.saved()
    assert shown == len(desk.spans(desk.language)) == 3


def test_what_waited_is_sent_after_the_page_is_loaded_anew(place: Place) -> None:
    desk = first(place)
    desk.saved()
    language = desk.language
    desk.press("Home", "1")
    desk.saved()
    desk.page.route("**/api/assignments/*/events", lambda route: route.abort())
    desk.press("Escape", "ArrowRight", "2", "Escape", "ArrowRight", "3")
    desk.page.wait_for_selector('.sync[data-status="offline"]')
    desk.press("Escape", "ArrowRight", "4")
    desk.page.on("dialog", lambda dialog: dialog.accept())  # it warns before it is left
    desk.page.reload()
    desk.ready()
    assert desk.page.locator(".span-line").count() == 4  # the draft, not what the server had
    desk.page.unroute("**/api/assignments/*/events")
    desk.page.evaluate("dispatchEvent(new Event('online'))")
    desk.saved()
    assert [type_ for _, _, type_ in desk.spans(language)] == ["entity", "relation", "contradictory", "invented"]
    assert "conflict" not in kinds(desk)


@any_database
def test_a_full_disk_is_no_lost_line_and_the_work_waits(place: Place) -> None:
    desk = first(place)
    desk.saved()
    full = {"error": {"code": "disk_full", "message": "The disk is full.", "remedy": "", "field": None}}
    desk.page.route("**/api/assignments/*/events", lambda route: route.fulfill(status=507, json=full))
    desk.press("Home", "1")
    desk.page.wait_for_selector('.sync[data-status="full"]')
    assert desk.page.locator(".sync-words").inner_text().startswith("The server's disk is full. Your work waits")
    assert desk.spans(desk.language) == []
    desk.page.unroute("**/api/assignments/*/events")
    desk.saved()  # the page tries again by itself
    assert len(desk.spans(desk.language)) == 1


def test_an_answer_that_was_lost_doubles_nothing(place: Place) -> None:
    desk = first(place)
    desk.saved()
    lost = []

    def swallow(route: object) -> None:
        if not lost:
            lost.append(route.fetch().status)  # type: ignore[attr-defined]
            route.abort()  # type: ignore[attr-defined]
        else:
            route.continue_()  # type: ignore[attr-defined]

    desk.page.route("**/api/assignments/*/events", swallow)
    desk.press("Home", "1")
    desk.page.wait_for_selector('.sync[data-status="offline"]')
    desk.press("Escape", "ArrowRight", "2")
    desk.saved()
    assert lost == [200]
    assert len(desk.spans(desk.language)) == 2
    assert kinds(desk).count("save") == 2
    assert "conflict" not in kinds(desk)


def two_tabs(place: Place) -> tuple[Desk, Desk]:
    """Somebody changes the same item in one tab and then in another that has not heard of it."""
    here = first(place)
    here.saved()
    there = place.open(here.context, here.studio).ready()
    there.press("Home", "1", "Escape")
    there.saved()
    here.page.bring_to_front()
    here.press("Home", "ArrowRight", "2")
    here.page.wait_for_selector(".versions .surface")
    return here, there


def test_of_two_versions_mine_is_kept(place: Place) -> None:
    here, _ = two_tabs(place)
    assert here.page.get_attribute(".sync", "data-status") == "conflict"
    assert here.page.locator(".version .box.span").count() == 2  # one in each
    here.page.locator(".version button.primary").first.click()
    here.saved()
    assert [type_ for _, _, type_ in here.spans(here.language)] == ["relation"]
    assert kinds(here).count("conflict") == 1  # both are in the history
    here.press("Control+z")
    here.page.wait_for_timeout(100)


def test_of_two_versions_the_servers_is_taken(place: Place) -> None:
    here, _ = two_tabs(place)
    here.page.reload()  # the choice waits
    here.page.wait_for_selector(".versions .surface")
    here.page.locator(".version button.primary").last.click()
    here.ready().saved()
    assert [type_ for _, _, type_ in here.spans(here.language)] == ["entity"]
    assert here.page.locator(".span-line").count() == 1
    here.press("Home", "ArrowRight", "ArrowRight", "3")
    here.saved()
    assert [type_ for _, _, type_ in here.spans(here.language)] == ["entity", "contradictory"]


def test_leaving_with_unsent_work_asks(place: Place) -> None:
    desk = first(place)
    desk.saved()
    asked: list[str] = []
    desk.page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    desk.page.route("**/api/assignments/*/events", lambda route: route.abort())
    desk.press("Home", "1")
    desk.page.reload()
    assert asked == ["beforeunload"]


def test_handing_in_goes_to_the_next_item_and_can_be_taken_back(place: Place) -> None:
    desk = first(place)
    was = desk.language
    desk.press("Home", "1", "Enter")
    desk.page.wait_for_function("was => document.querySelector('.pane .surface')?.lang !== was", arg=was)
    desk.ready()
    desk.page.get_by_role("button", name="My items").click()
    desk.page.locator(".item-go.submitted").click()
    desk.page.get_by_role("button", name="Reopen").click()
    desk.page.wait_for_selector("#submit")
    desk.ready().press("Home", "ArrowRight", "2")
    desk.saved()
    assert len(desk.spans(was)) == 2


def test_facts_have_labels_counts_flags_and_evidence(place: Place) -> None:
    desk = first(place, "facts")
    desk.press("2")
    desk.page.locator(".unit-line.now .count-of input").nth(1).fill("2")
    desk.page.get_by_label("Conflicts with the text before").check()
    desk.page.focus("#passage-p0")
    desk.press("Home", "Shift+ArrowRight", "Enter")
    desk.saved()
    (unit,) = desk.layers()[desk.language]["units"]
    assert (unit["label"], unit["counts"], unit["flags"]) == ("contradicted", {"contradicted": 2}, ["context_conflict"])
    _, end = stops(EVIDENCE, "en")[1]
    assert unit["evidence"] == [{"id": "p0", "start": 0, "end": end}]


def test_the_source_is_spoken_of_before_a_translation_is_handed_in(place: Place) -> None:
    desk = first(place, "translation")
    text, language = TEXTS[desk.language], desk.language
    words = stops(text, language)
    desk.drag(text, words[0][0], words[1][0])  # one type: a drag marks
    desk.press("Enter")
    desk.page.wait_for_function("document.querySelector('.said').textContent.includes('No issues')")
    desk.page.get_by_label("No issues").check()
    desk.page.locator("#submit").click()
    desk.page.wait_for_function("was => document.querySelector('.pane .surface')?.lang !== was", arg=language)
    assert desk.spans(language) == [(words[0][0], words[1][1], "hallucination")]


def test_a_pair_is_labelled_by_a_digit(place: Place) -> None:
    desk = first(place, "pairs")
    assert desk.page.locator(".pair del").count() > 0
    desk.press("2")
    desk.saved()
    (label,) = {layer["label"] for layer in desk.layers().values()}
    assert label == "relation"


@any_database
@pytest.mark.parametrize("status", [400, 403, 422, 429])
def test_what_the_server_refuses_is_told_in_its_words(place: Place, status: int) -> None:
    desk = place.sit("spans").ready()
    error = {"code": "refused", "message": "The exam has no item.", "remedy": "Ask the lead."}
    answer = {"status": status, "content_type": "application/json", "body": json.dumps({"error": error})}
    desk.page.route("**/api/next", lambda route: route.fulfill(**answer))
    desk.page.reload()
    desk.page.get_by_text("The exam has no item.").wait_for()
    desk.page.get_by_text("Ask the lead.").wait_for()
    assert desk.page.get_by_text("cannot be reached").count() == 0
