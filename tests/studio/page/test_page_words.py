"""The interface's words: every one that the page asks for is there, in every language with its plurals and places."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

FOLDER = files("veriglot.studio") / "words"
PAGE = files("veriglot.studio") / "page"
TAGS = sorted(entry.name.removesuffix(".json") for entry in FOLDER.iterdir())
FORMS = {"zero", "one", "two", "few", "many", "other"}
# The plurals of a language after the browser's CLDR, and those of them that stand for one number alone.
PLURALS = """tag => {
  const rules = new Intl.PluralRules(tag), numbers = {};
  for (let n = 0; n <= 1000; n++) (numbers[rules.select(n)] ??= []).push(n);
  return [rules.resolvedOptions().pluralCategories, Object.keys(numbers).filter((form) => numbers[form].length === 1)];
}"""


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Page:
    return browser.new_page()


def words(tag: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((FOLDER / f"{tag}.json").read_text("utf-8"))
    return found


def split(key: str) -> tuple[str, str | None]:
    before, _, last = key.rpartition(".")
    return (before, last) if last in FORMS else (key, None)


def keys(tag: str) -> set[str]:
    return {split(key)[0] for key in words(tag)}


def test_every_file_is_a_language_that_the_browser_knows(tab: Page) -> None:
    assert tab.evaluate("tags => Intl.PluralRules.supportedLocalesOf(tags)", TAGS) == TAGS


@pytest.mark.parametrize("tag", TAGS)
def test_languages_have_the_same_words(tag: str) -> None:
    assert keys("en") - keys(tag) == set()
    assert keys(tag) - keys("en") == set()


@pytest.mark.parametrize("tag", TAGS)
def test_plurals_and_places_are_complete(tab: Page, tag: str) -> None:
    own, english = words(tag), words("en")
    plurals, of_one_number = tab.evaluate(PLURALS, tag)
    for key, text in own.items():
        assert text.strip() or key == "translation.notice", key
        name, form = split(key)
        places = set(re.findall(r"\{(\w+)\}", english.get(f"{name}.other") or english[key]))
        said = set(re.findall(r"\{(\w+)\}", text))
        assert said <= places, key
        if form not in of_one_number:
            assert said == places, key
        if form is not None:
            assert {one for one in FORMS if f"{name}.{one}" in own} == set(plurals), key


def test_every_word_that_the_page_asks_for_is_there() -> None:
    asked = set()
    for folder in (PAGE, PAGE / "lead"):
        for entry in folder.iterdir():
            if entry.name.endswith(".js"):
                asked |= set(re.findall(r"""\bt\(\s*"([\w.]+)\"""", entry.read_text("utf-8")))
    assert len(asked) > 150
    assert asked - keys("en") == set()
