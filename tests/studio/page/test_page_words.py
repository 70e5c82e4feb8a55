"""The interface's words: every one that the page asks for is there, in every language with its plurals and places."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest

pytestmark = pytest.mark.slow

FOLDER = files("veriglot.studio") / "words"
PAGE = files("veriglot.studio") / "page"
# Categories of plurals by language, after CLDR.
PLURALS = {
    "en": {"one", "other"}, "de": {"one", "other"}, "hi": {"one", "other"}, "tr": {"one", "other"},
    "ar": {"zero", "one", "two", "few", "many", "other"}, "ru": {"one", "few", "many", "other"},
    "th": {"other"}, "zh": {"other"}, "ja": {"other"}, "ko": {"other"}, "fa": {"one", "other"},
}  # fmt: skip
FORMS = {"zero", "one", "two", "few", "many", "other"}


def words(tag: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((FOLDER / f"{tag}.json").read_text("utf-8"))
    return found


def split(key: str) -> tuple[str, str | None]:
    before, _, last = key.rpartition(".")
    return (before, last) if last in FORMS else (key, None)


def keys(tag: str) -> set[str]:
    return {split(key)[0] for key in words(tag)}


def test_every_file_is_a_language_that_is_known_here() -> None:
    assert {entry.name for entry in FOLDER.iterdir() if entry.name.endswith(".json")} == {
        f"{tag}.json" for tag in PLURALS
    }


@pytest.mark.parametrize("tag", PLURALS)
def test_languages_have_the_same_words(tag: str) -> None:
    assert keys("en") - keys(tag) == set()
    assert keys(tag) - keys("en") == set()


@pytest.mark.parametrize("tag", PLURALS)
def test_plurals_and_places_are_complete(tag: str) -> None:
    own, english = words(tag), words("en")
    for key, text in own.items():
        assert text.strip(), key
        name, form = split(key)
        places = set(re.findall(r"\{(\w+)\}", english.get(f"{name}.other") or english[key]))
        said = set(re.findall(r"\{(\w+)\}", text))
        assert said <= places, key
        if form in {None, "other", "many"}:
            assert said == places, key
        if form is not None:
            assert {one for one in FORMS if f"{name}.{one}" in own} == PLURALS[tag], key


def test_every_word_that_the_page_asks_for_is_there() -> None:
    asked = set()
    for folder in (PAGE, PAGE / "lead"):
        for entry in folder.iterdir():
            if entry.name.endswith(".js"):
                asked |= set(re.findall(r"""\bt\(\s*"([\w.]+)\"""", entry.read_text("utf-8")))
    assert len(asked) > 150
    assert asked - keys("en") == set()
