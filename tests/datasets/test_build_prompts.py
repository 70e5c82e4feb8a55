"""Prompts: in every language of mfava and kang, in that language, with everything filled in."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

import pytest

from veriglot.datasets.prompts import (
    STYLES,
    answer_messages,
    answer_prompt,
    answer_stop,
    biography_languages,
    biography_prompt,
    check_prompt,
    prompt_version,
    write_prompt,
)
from veriglot.records.languages import languages, same_language
from veriglot.text.identification import identify
from veriglot.text.unicode import script_of

MFAVA = [tag for tag, entry in languages().items() if "mfava" in entry.sources]
KANG = [tag for tag, entry in languages().items() if "kang" in entry.sources]
ANSWERS: dict[str, Any] = tomllib.loads(files("veriglot.datasets").joinpath("prompts/answer.toml").read_text("utf-8"))[
    "languages"
]


def test_every_language_of_the_papers_has_prompts_of_its_own() -> None:
    assert len({languages()[tag].base for tag in MFAVA}) == 30
    assert len(KANG) == 19
    assert set(MFAVA) | set(KANG) <= ANSWERS.keys()
    assert set(biography_languages()) == set(KANG)


@pytest.mark.parametrize("tag", sorted(ANSWERS))
def test_instructions_are_in_their_language_and_script(tag: str) -> None:
    entry = ANSWERS[tag]
    assert tag in languages()
    found = identify(f"{entry['instructed']} {entry['open']}")
    assert found is not None
    assert same_language(found.tag, tag), found
    headings = [entry[name] for name in ("text", "question", "answer")]
    assert all(text.endswith((":", "：")) for text in headings)
    assert len(set(headings)) == 3
    texts = [entry["instructed"], entry["open"], *headings]
    assert len({script_of(char) for text in texts for char in text if char.isalpha()} - {"Hira", "Hani"}) <= 1
    assert "{" not in "".join(texts)


@pytest.mark.parametrize("tag", KANG)
def test_a_prompt_for_a_biography_is_in_its_language_and_holds_the_name_as_it_is(tag: str) -> None:
    prompt = biography_prompt(tag, "Xq {0} Zv")
    assert prompt.count("Xq {0} Zv") == 1
    found = identify(prompt.replace("Xq {0} Zv", ""))
    assert found is not None
    assert same_language(found.tag, tag), found


def test_no_wording_is_the_papers_own() -> None:
    assert "Tell me a biography" not in biography_prompt("en", "x")


def test_a_language_without_prompts_is_asked_in_english_by_its_name() -> None:
    assert "in Swahili" in answer_messages("open", "sw", "Q", "E")[0].content
    assert "in Swahili" in answer_messages("instructed", "sw", "Q", "E")[0].content
    assert biography_prompt("sw", "Ann") == "Write a biography of the following person in Swahili: Ann"
    assert "in tlh" in answer_messages("instructed", "tlh", "Q", "")[0].content  # not even in the language table


def test_closed_is_the_question_alone_and_only_open_shows_the_evidence() -> None:
    texts = {style: answer_messages(style, "de", "Wann?", "BEWEIS")[0].content for style in STYLES}
    assert texts["closed"] == "Wann?"
    assert texts["instructed"].endswith("\n\nWann?")
    assert [style for style in STYLES if "BEWEIS" in texts[style]] == ["open"]


@pytest.mark.parametrize("style", STYLES)
def test_a_completion_prompt_asks_once_and_ends_where_the_answer_begins(style: Any) -> None:
    prompt = answer_prompt(style, "fr", "Quand ?", "PREUVE")
    assert prompt.endswith("\n\nRéponse :\n")
    assert prompt.count("Question :") == 1
    assert prompt.count("Quand ?") == 1
    assert ("PREUVE" in prompt) == (style == "open")
    assert answer_stop("fr") == ("\nQuestion :",)


def test_a_tag_is_resolved_as_everywhere() -> None:
    assert answer_messages("open", "zh", "Q", "E") == answer_messages("open", "zh-Hans", "Q", "E")
    assert answer_messages("open", "pt-BR", "Q", "E") == answer_messages("open", "pt", "Q", "E")


def test_what_stands_in_a_text_is_no_placeholder() -> None:
    prompt = write_prompt("de", "Titel {count}", "Text {language} {0}", 2)
    assert "Titel {count}" in prompt
    assert "Text {language} {0}" in prompt
    assert "2 questions" in prompt
    assert '{"queries": [' in prompt
    assert "in German" in prompt
    check = check_prompt("ja", "問{0}?", "文{text}")
    assert "問{0}?" in check
    assert "文{text}" in check
    assert '{"answerable": true' in check


def test_versions_have_names() -> None:
    assert prompt_version("answer") == "answer@1"
    assert prompt_version("queries") == "queries@1"
    assert prompt_version("biography") == "biography@1"
