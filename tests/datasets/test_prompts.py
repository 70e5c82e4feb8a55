"""Prompts: in every language of mfava and kang, in that language, with all slots filled."""

from __future__ import annotations

import tomllib
from contextvars import copy_context
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, get_args

import pytest

from veriglot.datasets.prompts import filled, load_prompts, prompt_version, use_prompts
from veriglot.datasets.queries import NamedPerson, biographies, biography_languages
from veriglot.datasets.responses import Respondent, Style
from veriglot.errors import InputError
from veriglot.records import Evidence, Sample
from veriglot.records.languages import languages, same_language
from veriglot.text.identification import identify
from veriglot.text.unicode import script_of

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.llm.client import Request

MFAVA = [tag for tag, entry in languages().items() if "mfava" in entry.sources]
KANG = [tag for tag, entry in languages().items() if "kang" in entry.sources]
ANSWERS: dict[str, Any] = tomllib.loads(files("veriglot.datasets").joinpath("prompts/answer.toml").read_text("utf-8"))[
    "languages"
]
STYLES: tuple[Style, ...] = get_args(Style)


def asked(style: Style, tag: str, question: str, evidence: str, *, completion: bool = False) -> Request:
    query = Sample("q", "", language=tag, question=question, evidence=(Evidence(evidence),))
    return Respondent("m", "m", style=style, completion=completion).request(query, None)


def biography(tag: str, name: str) -> str:
    (query,) = biographies([NamedPerson("Q1", {tag: name})], [tag])
    assert isinstance(query, Sample)
    return query.question or ""


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
    prompt = biography(tag, "Xq {0} Zv")
    assert prompt.count("Xq {0} Zv") == 1
    found = identify(prompt.replace("Xq {0} Zv", ""))
    assert found is not None
    assert same_language(found.tag, tag), found


def test_no_wording_is_the_papers_own() -> None:
    assert "Tell me a biography" not in biography("en", "x")


def test_a_language_without_prompts_is_asked_in_english_by_its_name() -> None:
    assert "in Swahili" in asked("open", "sw", "Q", "E").text
    assert "in Swahili" in asked("instructed", "sw", "Q", "E").text
    assert biography("sw", "Ann") == "Write a biography of the following person in Swahili: Ann"
    assert "in tlh" in asked("instructed", "tlh", "Q", "").text  # not even in the language table


def test_closed_is_the_question_alone_and_only_open_shows_the_evidence() -> None:
    texts = {style: asked(style, "de", "Wann?", "BEWEIS").text for style in STYLES}
    assert texts["closed"] == "Wann?"
    assert texts["instructed"].endswith("\n\nWann?")
    assert [style for style in STYLES if "BEWEIS" in texts[style]] == ["open"]


@pytest.mark.parametrize("style", STYLES)
def test_a_completion_prompt_asks_once_and_ends_where_the_answer_begins(style: Any) -> None:
    request = asked(style, "fr", "Quand ?", "PREUVE", completion=True)
    prompt = request.text
    assert prompt.endswith("\n\nRéponse :\n")
    assert prompt.count("Question :") == 1
    assert prompt.count("Quand ?") == 1
    assert ("PREUVE" in prompt) == (style == "open")
    assert request.settings.stop == ("\nQuestion :",)


def test_a_tag_is_resolved_as_everywhere() -> None:
    assert asked("open", "zh", "Q", "E") == asked("open", "zh-Hans", "Q", "E")
    assert asked("open", "pt-BR", "Q", "E") == asked("open", "pt", "Q", "E")


def test_what_stands_in_a_text_is_no_placeholder() -> None:
    prompt = filled("queries", "write", "de", title="Titel {count}", text="Text {language} {0}", count=2)
    assert "Titel {count}" in prompt
    assert "Text {language} {0}" in prompt
    assert "2 questions" in prompt
    assert '{"queries": [' in prompt
    assert "in German" in prompt
    check = filled("queries", "check", "ja", question="問{0}?", text="文{text}")
    assert "問{0}?" in check
    assert "文{text}" in check
    assert '{"answerable": true' in check


def test_versions_have_names() -> None:
    assert prompt_version("answer") == "answer@1"
    assert prompt_version("queries") == "queries@2"
    assert prompt_version("biography") == "biography@1"


def test_own_prompts_hold_in_their_context_and_their_hash_is_in_the_version(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('version = 2\nwrite = "{count} Fragen zu {text}"\n', "utf-8")
    shipped = load_prompts("queries")

    def texts() -> tuple[str, str, str]:
        use_prompts(path, "queries")
        asked = filled("queries", "write", "de", title="T", text="{x}", count=3)
        return asked, load_prompts("queries")["check"], prompt_version("queries")

    own = sha256(path.read_bytes()).hexdigest()[:12]
    assert copy_context().run(texts) == ("3 Fragen zu {x}", shipped["check"], f"queries@2+mine.2.{own}")
    assert load_prompts("queries") == shipped


def test_a_fallback_of_ones_own_holds_in_every_language_that_the_file_does_not_name(tmp_path: Path) -> None:
    path = tmp_path / "bio.toml"

    def texts(content: str) -> list[str]:
        path.write_text(content, "utf-8")
        use_prompts(path, "biography")
        return [biography(tag, "Ann") for tag in ("de", "fi")]

    shipped = biography("fi", "Ann")
    german = '[languages]\nGerman = "Wer ist {name}?"\n'
    assert copy_context().run(texts, german) == ["Wer ist Ann?", shipped]
    fallback = f'fallback = "{{name}}, in {{language}}"\n{german}'
    assert copy_context().run(texts, fallback) == ["Wer ist Ann?", "Ann, in Finnish"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('write = "{tex} {language}"', r"field write: placeholders of the prompt: {text} missing, {tex} unknown"),
        ('check = "{question} {"', "field check: a brace of the prompt stands alone"),
        ('wirte = "{text}"', "field wirte: There is no prompt named 'wirte'"),
        ("write = 3", "field write: this is a text"),
        ('version = "1"', "there is no prompt"),
        ("write =", "this is not valid TOML"),
    ],
)
def test_a_file_of_prompts_that_cannot_be_used_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(content, "utf-8")
    with pytest.raises(InputError, match=f"mine.toml, {message}|mine.toml: {message}"):
        copy_context().run(use_prompts, path, "queries")


def test_errors_of_a_type_are_described_anew_but_put_in_as_before(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"

    def entity(content: str) -> dict[str, Any]:
        path.write_text(content, "utf-8")
        use_prompts(path, "injection")
        described: dict[str, Any] = load_prompts("injection")["fava"]["entity"]
        return described

    own = copy_context().run(entity, '[fava.entity]\nwhat = "a {wrong} name"\nexamples = [["a", "b"]]\n')
    assert own == {"what": "a {wrong} name", "how": "replace", "examples": [("a", "b")]}
    for wrong in ('how = "insert"', "examples = [3]"):
        with pytest.raises(InputError, match=f"field fava.entity.{wrong.split()[0]}"):
            copy_context().run(entity, f"[fava.entity]\n{wrong}\n")


def test_a_response_is_asked_for_in_ones_own_words(tmp_path: Path) -> None:
    path = tmp_path / "ask.toml"

    def request(content: str, evidence: str, *, completion: bool = False) -> tuple[str, str]:
        path.write_text(content, "utf-8")
        use_prompts(path, "response")
        query = Sample("q", "", language="de", question="Wann?", evidence=(Evidence(evidence),))
        respondent = Respondent("m", "m", style="own", completion=completion)
        return respondent.request(query, None).text, respondent.refuses(query)

    both = 'user = "{evidence} / {question} ({language})"'
    assert copy_context().run(request, both, "1750") == ("1750 / Wann? (German)", "")
    assert (
        copy_context().run(request, both, " ")[1]
        == "the style `own` gives the model the evidence, and the query has none"
    )
    assert copy_context().run(request, 'user = "{question}!"', "", completion=True) == ("Wann?!\n", "")
