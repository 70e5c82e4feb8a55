"""Marks that are shown beforehand: accepted or rejected on the page, kept with the layer, undone and told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from page_studio import TEXTS, served, stops, write

from veriglot.studio.dashboard import overview

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from page_studio import Place
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

GERMAN = TEXTS["de"]
FIRST, SECOND, THIRD = stops(GERMAN, "de")[:3]


@pytest.fixture
def hinted(browser: Browser, database: str, tmp_path: Path) -> Iterator[Place]:
    """One German item with three suggestions, read by a reviewer afterwards."""
    path = write(tmp_path, "hinted", tables="[suggestions]\nsilver = true", reviews=1)
    path.write_text(path.read_text("utf-8").replace("[data]\n", '[data]\nsilver = "silver"\n'), "utf-8")
    spans = [{"start": start, "end": end, "type": "entity"} for start, end in (FIRST, SECOND, THIRD)]
    said = {"annotator": "silver", "kind": "model", "taxonomy": "fava", "spans": spans}
    row = {"id": "hinted-de", "language": "de", "response": GERMAN, "annotations": [said]}
    (tmp_path / "hinted.jsonl").write_text(json.dumps(row), "utf-8")
    with served([path], database, browser) as found:
        yield found


def test_what_becomes_of_suggestions_is_kept_and_told(hinted: Place) -> None:
    desk = hinted.sit("hinted").ready()
    page = desk.page
    buttons = page.get_by_role("button", name="Reject")
    assert buttons.count() == 3
    buttons.nth(2).click()
    page.get_by_role("button", name="Accept").nth(0).click()
    desk.saved()
    layer = desk.layers()["de"]
    assert [(span["start"], span["end"]) for span in layer["spans"]] == [FIRST]
    (rejected,) = layer["rejected"]
    again = hinted.open(desk.context, desk.studio).ready()  # on any device of theirs
    assert again.page.get_by_role("button", name="Reject").count() == 1
    again.page.get_by_role("button", name="Reject").click()
    again.saved()
    assert len(again.layers()["de"]["rejected"]) == 2
    again.press("Control+z")
    again.saved()
    assert again.layers()["de"]["rejected"] == [rejected]
    assert again.page.get_by_role("button", name="Reject").count() == 1
    again.page.click("#submit")
    again.page.get_by_text("nothing").first.wait_for()
    with desk.studio.store.reading() as tx:
        told = overview(tx, desk.studio.project).people[0].suggested
    assert (told.shown, told.accepted, told.rejected, told.untouched) == (3, 1, 1, 1)
    assert desk.trouble == again.trouble == []


def test_a_reviewer_reads_a_number_and_no_key(hinted: Place) -> None:
    desk = hinted.sit("hinted", name="Kim").ready()
    desk.page.click("#submit")
    desk.page.get_by_text("nothing").first.wait_for()
    reviewer = hinted.sit("hinted", role="reviewer", name="Rev").ready()
    notice = reviewer.page.locator(".notice strong", has_text="Annotation by")
    assert notice.inner_text() == "Annotation by Annotator 1."
    with desk.studio.store.reading() as tx:
        (person,) = [one for one in tx.people(desk.studio.id) if one.name == "Kim"]
    said = reviewer.page.locator("body").inner_text()
    assert person.public_id not in said
    assert "Kim" not in said
