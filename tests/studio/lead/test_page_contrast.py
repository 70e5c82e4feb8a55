"""What is written on the lead's pages can be read, in light and dark, and is told to those who do not see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from studio_server import any_database

if TYPE_CHECKING:
    from lead_studio import House

pytestmark = pytest.mark.slow

PAGES = ["", "/people", "/agreement", "/disagreements", "/conversations", "/batches", "/items", "/items/1", "/exports"]
MARKS = {"de": [(4, 9, "entity"), (13, 17, "invented")], "ar": [(0, 6, "relation")]}

# Every text with the colours that it is drawn in; colours that are translucent are laid over what is behind them.
CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const over = (top, below) => { const a = top[3] / 255;
    return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)).concat(255); };
  const ground = (node) => { const layers = [];
    for (let at = node; at; at = at.parentElement) layers.unshift(rgba(getComputedStyle(at).backgroundColor));
    return layers.reduce((below, top) => over(top, below), [255, 255, 255, 255]); };
  const light = (rgb) => { const [r, g, b] = rgb.map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const walker = document.createTreeWalker(document.getElementById("app"), NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility() || node.closest(":disabled, .unseen, svg")) continue;
    const below = ground(node);
    const [a, b] = [light(over(rgba(getComputedStyle(node).color), below)), light(below)];
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), walker.currentNode.data.trim().slice(0, 40)]);
  }
  return found;
}"""

NAMELESS = """() => [...document.querySelectorAll("a, button, input, select, summary, table")].filter((node) => {
  const labels = node.labels ? [...node.labels].map((label) => label.textContent).join("") : "";
  const name = node.getAttribute("aria-label") || labels || node.textContent || node.title;
  return node.checkVisibility() && !name.trim();
}).map((node) => node.outerHTML.slice(0, 120))"""


@any_database
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_and_controls_have_names(house: House, scheme: str) -> None:
    house.person("Ali").hand_in(MARKS)
    house.person("Bo").hand_in({})
    lead = house.person("Ines", "lead", color_scheme=scheme)
    for path in PAGES:
        page = lead.go(f"/lead{path}", "#lead-main h2")
        page.wait_for_selector(".waiting", state="detached")
        found = page.evaluate(CONTRASTS)
        assert len(found) > 10
        assert [one for one in found if one[0] < 4.5] == [], (path, scheme)
        assert page.evaluate(NAMELESS) == [], path
    assert lead.trouble == []


@any_database
def test_nothing_runs_over_the_edge_of_a_phone(house: House) -> None:
    house.person("Ali").hand_in(MARKS)
    house.person("Bo").hand_in({})
    lead = house.person("Ines", "lead", viewport={"width": 390, "height": 800})
    for path in PAGES:
        page = lead.go(f"/lead{path}", "#lead-main h2")
        page.wait_for_selector(".waiting", state="detached")
        wide = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], path
        tab = page.locator(".tabs [aria-current]").bounding_box()
        assert tab["x"] >= 0, path
        assert tab["x"] + tab["width"] <= 390, path
