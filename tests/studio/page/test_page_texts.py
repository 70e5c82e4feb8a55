"""Where marks may lie: the page counts as the server does, and cuts no character that the server would not."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from page_studio import TEXTS, units
from studio_server import any_database

from veriglot.studio.layers import CharBoundaries
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from page_studio import Place
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow

HARD = [
    "", "a", "😀", "e\u0301", "👩‍👩‍👧‍👦", "🇹🇭🇩🇪🇫", "क्षेत्र स्त्री र्‍क", "বাংলা ক্ষমা", "മലയാളം ന്‍റെ",
    "తెలుగు క్ష", "ગુજરાતી ક્ષ", "ଓଡ଼ିଆ କ୍ଷ", "தமிழ் க்ஷ ஸ்ரீ", "ภาษาไทยกำ", "한국어 \u1112\u1161\u11ab",
    "\r\n\n x", "שָׁלוֹם", "\u202eabc\u202c", "𠮷𝒳y\u0308\u0327", "👍🏽👍🏿x", "1\ufe0f\u20e3", "a\u200db",
    "ພາສາລາວ ນ້ຳ", "မြန်မာ က္ခ", "ខ្មែរ ក្ស", "සිංහල ක්‍ෂ", "བོད་ཡིག",
]  # fmt: skip


@pytest.fixture
def page(place: Place) -> Page:
    return place.sit("spans").ready().page


def module(page: Page, name: str, does: str, given: Any) -> Any:
    """What a few lines make of a module of the page."""
    address = page.locator("script[type=module]").get_attribute("src") or ""
    return page.evaluate(
        f"async ([address, given]) => {{ const m = await import(address); {does} }}",
        [address.replace("app.js", name), given],
    )


def strings(count: int) -> list[str]:
    dice = random.Random(7)
    parts = [*HARD, *TEXTS.values(), " ", ".", "\u0301", "\u200d", "\u094d", "क", "😀", "𐍈", "\ufe0f"]
    return [*HARD, *("".join(dice.choices(parts, k=dice.randint(1, 6))) for _ in range(count))]


@any_database
def test_code_points_become_units_and_back(page: Page) -> None:
    texts = strings(150)
    does = """return given.map((text) => { const c = new m.CodePoints(text);
      const all = [...Array(c.length + 1).keys()];
      return [c.length, all.map((p) => c.unit(p)), all.map((p) => c.point(c.unit(p))),
              [...Array(text.length + 1).keys()].map((u) => c.point(u))]; })"""
    for text, (length, to_units, back, points) in zip(texts, module(page, "offsets.js", does, texts), strict=True):
        assert length == len(text)
        assert to_units == [units(text, point) for point in range(len(text) + 1)]
        assert back == list(range(len(text) + 1))
        for unit, point in enumerate(points):  # the middle of a pair belongs to the code point that it halves
            assert point == max(at for at in range(len(text) + 1) if units(text, at) <= unit)


@any_database
def test_no_border_of_the_page_is_refused_by_the_server(page: Page) -> None:
    texts = strings(200)
    given = [[text, word_bounds(text, None).tolist()] for text in texts]
    does = """const { CodePoints } = await import(address.replace("stops.js", "offsets.js"));
      return given.map(([text, words]) => { const s = new m.Stops(new CodePoints(text), words);
        return [s.borders, s.list, words.map(([a, b]) => s.snap(a, b))]; })"""
    for (text, words), (borders, found, snapped) in zip(given, module(page, "stops.js", does, given), strict=True):
        allowed = CharBoundaries.of(text)
        assert not allowed.inside & set(borders), text
        assert (borders[0], borders[-1]) == (0, len(text))
        for start, end in [*found, *filter(None, snapped)]:
            allowed.refuse(start, end, "here")
        assert found == sorted(found)
        assert all(end <= start for (_, end), (start, _) in pairwise(found))
        for start, end in words:  # every word is reached, widened where it would cut a character
            assert any(low <= start and end <= high for low, high in found)


@any_database
def test_searching_finds_without_accents_and_counts_code_points(page: Page) -> None:
    given = [
        ["Ünï 😀 ÜNÏ uni", "uni"],
        ["وُلِدَ في ولد", "ولد"],
        ["क्षेत्र", "क्ष"],
        ["Straße", "x"],
        ["aaaa", "aa"],
        ["a", " "],
    ]
    found = module(page, "search.js", "return given.map(([text, wanted]) => m.find(text, wanted))", given)
    assert found[0] == [[0, 3], [6, 9], [10, 13]]
    assert [given[1][0][start:end][0] for start, end in found[1]] == ["و", "و"]
    assert found[2] == [[0, 3]]
    assert found[3:] == [[], [[0, 2], [2, 4]], []]


@any_database
def test_more_places_are_painted_than_a_call_takes_arguments(page: Page) -> None:
    does = """const { CodePoints } = await import(address.replace("highlights.js", "offsets.js"));
      const text = "ab ".repeat(given), node = document.createTextNode(text);
      const places = Array.from({ length: given }, (_, at) => [at * 3, at * 3 + 2]);
      m.paint("hit", "x", node, new CodePoints(text), places); return CSS.highlights.get("hit").size"""
    assert module(page, "highlights.js", does, 150_000) == 150_000


@any_database
def test_a_diff_gives_both_sides_back(page: Page) -> None:
    given = [
        ["The cat sat.", "The dog sat down."],
        ["", "new"],
        ["old", ""],
        ["ab", "ab"],
        ["北京是首都", "东京是首都"],
    ]
    found = module(page, "diff.js", "return given.map(([a, b]) => m.diff(a, b, null))", given)
    for (before, after), parts in zip(given, found, strict=True):
        assert "".join(part["text"] for part in parts if part["kind"] != "in") == before
        assert "".join(part["text"] for part in parts if part["kind"] != "out") == after
    assert {part["kind"] for part in found[3]} == {"same"}


@any_database
def test_lanes_keep_what_overlaps_apart(page: Page) -> None:
    dice = random.Random(3)
    given = []
    for _ in range(60):
        starts = [dice.randrange(40) for _ in range(dice.randint(0, 12))]
        given.append([{"start": start, "end": start + dice.randint(1, 15)} for start in starts])
    does = "return given.map((spans) => { const l = m.lanesOf(spans); return spans.map((s) => l.get(s)); })"
    for spans, lanes in zip(given, module(page, "lanes.js", does, given), strict=True):
        for index, (span, lane) in enumerate(zip(spans, lanes, strict=True)):
            for other, its in list(zip(spans, lanes, strict=True))[:index]:
                if span["start"] < other["end"] and other["start"] < span["end"]:
                    assert lane != its
