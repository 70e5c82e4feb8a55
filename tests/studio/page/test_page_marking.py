"""What is marked by keyboard and mouse is what the server has, to the code point, in five scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from page_studio import TEXTS, stops
from studio_server import any_database

if TYPE_CHECKING:
    from page_studio import Desk, Place

pytestmark = pytest.mark.slow

FORWARD = {"ar": "ArrowLeft"}
BACK = {"ar": "ArrowRight"}


def at_work(place: Place, language: str, slug: str = "spans", **options: object) -> Desk:
    """Somebody who has the item of a language before them."""
    desk = place.sit(slug, **options)
    desk.ready()
    for _ in TEXTS:
        if desk.language == language:
            return desk
        was = desk.language
        desk.press("Enter")
        desk.page.wait_for_function("was => document.querySelector('.pane .surface')?.lang !== was", arg=was)
        desk.ready()
    raise AssertionError(f"no item in {language}")


@any_database
@pytest.mark.parametrize("language", TEXTS)
def test_keys_mark_what_they_say(place: Place, language: str) -> None:
    desk, text = at_work(place, language), TEXTS[language]
    forward, found = FORWARD.get(language, "ArrowRight"), stops(text, language)
    first, last = 2, len(found) - 2
    desk.press("Home", *[forward] * first, *[f"Shift+{forward}"] * (last - first), "2")
    desk.press("Escape", "End", "1")
    desk.saved()
    assert desk.spans(language) == [(found[first][0], found[last][1], "relation"), (*found[-1], "entity")]
    assert desk.trouble == []


@any_database
@pytest.mark.parametrize("language", TEXTS)
def test_a_drag_marks_the_words_it_touches(place: Place, language: str) -> None:
    desk, text = at_work(place, language), TEXTS[language]
    words = [span for span in stops(text, language) if text[span[0]].isalpha()]
    (first, _), (last, end) = words[1], words[3]
    desk.drag(text, first, last)  # from the first letter of a word to the first of another
    desk.press("3")
    desk.press("Escape")
    desk.drag(text, words[-1][0], words[-2][0])  # against the reading direction
    desk.page.locator(".type").nth(3).click()
    desk.saved()
    assert desk.spans(language) == [(first, end, "contradictory"), (words[-2][0], words[-1][1], "invented")]


@any_database
@pytest.mark.parametrize("language", TEXTS)
def test_one_side_or_the_other_moves(place: Place, language: str) -> None:
    desk, text = at_work(place, language), TEXTS[language]
    forward, back, found = FORWARD.get(language, "ArrowRight"), BACK.get(language, "ArrowLeft"), stops(text, language)
    desk.press("Home", *[forward] * 2, *[f"Shift+{forward}"] * 3, "1")  # words 2 to 5, marked and at hand
    desk.press(f"Shift+{back}", f"Control+{forward}")  # 3 to 4
    desk.saved()
    assert desk.spans(language) == [(found[3][0], found[4][1], "entity")]
    desk.press(f"Control+{back}", f"Control+{back}", "4")  # 1 to 4, and another type
    desk.saved()
    assert desk.spans(language) == [(found[1][0], found[4][1], "invented")]


@any_database
def test_characters_are_never_halved(place: Place) -> None:
    """Alt goes by characters; what a reader takes for one is one, however many code points it has."""
    desk, text = at_work(place, "hi"), TEXTS["hi"]
    thumb = text.index("👍🏽")
    field = text.index("क्षेत्र")
    found = stops(text, "hi")
    desk.press("Home", *["ArrowRight"] * found.index((field, field + len("क्षेत्र"))))
    desk.press("Alt+Shift+ArrowLeft", "1")  # क्षेत्र is क्षे and त्र: one stays
    desk.saved()
    assert desk.spans("hi") == [(field, field + len("क्षे"), "entity")]
    desk.press("Escape")
    desk.drag(text, thumb, thumb)
    desk.press("2")
    desk.saved()
    assert (thumb, thumb + 2, "relation") in desk.spans("hi")


@any_database
def test_spans_nest_overlap_and_are_all_seen(place: Place) -> None:
    desk = at_work(place, "de")
    desk.press("Home", *["Shift+ArrowRight"] * 4, "1", "Escape")  # 0 to 4
    desk.press("Home", "ArrowRight", "Shift+ArrowRight", "2", "Escape")  # 1 to 2, inside
    desk.press("Home", *["ArrowRight"] * 2, *["Shift+ArrowRight"] * 4, "3", "Escape")  # 2 to 6, across
    desk.press("Home", "ArrowRight", "Shift+ArrowRight", "5", "Escape")  # the same place, another type
    desk.page.wait_for_timeout(100)
    lines = desk.page.evaluate(
        """() => Array.from(document.querySelectorAll("#response")).flatMap(() =>
        Array.from(document.querySelectorAll(".pane .box.span"), (one) => { const r = one.getBoundingClientRect();
        return { left: r.left, right: r.right, line: r.bottom }; }))"""
    )
    assert len(lines) >= 4
    for one in lines:
        for other in lines:
            if one is not other and one["left"] < other["right"] and other["left"] < one["right"]:
                assert abs(one["line"] - other["line"]) >= 4  # no underline hides another
    letters = desk.page.locator(".pane .letter").all_inner_texts()
    assert sorted(letters) == ["Co", "En", "Re", "Su"]
    desk.press("Home", "Tab")
    assert desk.page.locator('.type[aria-pressed="true"]').count() == 1
    desk.press("Delete", "Tab", "Delete")
    desk.saved()
    assert len(desk.spans("de")) == 2


def test_undo_and_redo_reach_the_server(place: Place) -> None:
    desk = at_work(place, "de")
    desk.press("Home", "1", "Shift+3", "Escape", "ArrowRight", "2")
    desk.saved()
    both = desk.layers()["de"]["spans"]
    assert [(one["type"], one["rating"]) for one in both] == [("entity", 3), ("relation", None)]
    desk.press("Control+z")
    desk.saved()
    assert desk.layers()["de"]["spans"] == both[:1]
    desk.press("Control+z", "Control+z")
    desk.saved()
    assert desk.layers()["de"]["spans"] == []
    desk.press("Control+y", "Control+Shift+z", "Control+y")
    desk.saved()
    assert desk.layers()["de"]["spans"] == both


@any_database
def test_undo_and_redo_have_buttons_for_fingers(place: Place) -> None:
    desk = at_work(place, "de")
    undo, redo = (desk.page.get_by_role("button", name=name, exact=True) for name in ("Undo", "Redo"))
    assert (undo.is_disabled(), redo.is_disabled()) == (True, True)
    desk.press("Home", "1")
    undo.click()
    desk.saved()
    assert desk.spans("de") == []
    redo.click()
    desk.saved()
    assert [type_ for *_, type_ in desk.spans("de")] == ["entity"]
    assert redo.is_disabled()


@any_database
def test_a_finger_taps_and_drags_handles(place: Place) -> None:
    desk = at_work(place, "de", viewport={"width": 420, "height": 800}, has_touch=True, is_mobile=True)
    text, found = TEXTS["de"], stops(TEXTS["de"], "de")
    desk.page.touchscreen.tap(*desk.point(text, found[1][0]))
    handle = desk.page.locator(".handle.finish").bounding_box()
    assert handle is not None
    x, y = desk.point(text, found[3][0])
    desk.page.mouse.move(handle["x"] + 1, handle["y"] + handle["height"] + 6)
    desk.page.mouse.down()
    desk.page.mouse.move(x, y, steps=6)
    desk.page.mouse.up()
    desk.page.locator(".type").first.tap()
    desk.saved()
    assert desk.spans("de") == [(found[1][0], found[3][1], "entity")]


@any_database
def test_the_steps_of_a_rating_say_which_end_is_which(place: Place) -> None:
    desk = place.sit("spans", viewport={"width": 390, "height": 844}).ready()
    desk.press("Home", "1")
    steps = desk.page.locator(".span-line.now .steps")
    assert steps.locator(".step-name").inner_text() == "1: very unlikely · 5: very likely"
    steps.locator(".step").nth(1).click()
    assert steps.locator(".step-name").inner_text() == "unlikely"
