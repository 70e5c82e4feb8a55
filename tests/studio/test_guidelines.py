"""Guidelines: which ones somebody reads, and that their HTML can do nothing."""

from __future__ import annotations

from html.parser import HTMLParser
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import InputError
from veriglot.studio.project import load, preset, presets
from veriglot.studio.texts import guidelines, render, words_of

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.studio.project import Project

_ELEMENTS = {
    "a",
    "blockquote",
    "br",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
} | {*("mark", "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul")}
_ATTRIBUTES = {
    "a": {"href", "target", "rel"},
    "dl": {"class"},
    "dd": {"lang", "dir"},
    "mark": {"data-type"},
    "span": {"class", "lang"},
    "ol": {"start"},
}


class _Walk(HTMLParser):
    """Elements, attributes and text of some HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def _check_harmless(html: str) -> None:
    for element, attributes in _Walk(html).elements:
        assert element in _ELEMENTS
        assert set(attributes) <= _ATTRIBUTES.get(element, set()), (element, attributes)
        href = (attributes.get("href") or "#").lower()
        assert href.startswith(("https://", "http://", "mailto:", "#"))


_HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt&#58;alert(1))",
    "[a](data:text/html,<script>alert(1)</script>)",
    "![a](https://elsewhere.example/pixel.png)",
    '<https://a.example/"onmouseover=alert(1)>',
    '[a](https://a.example "x\\" onclick=alert(1)")',
    '```example "><script>alert(1)</script>\nA: b\n```',
    "```example en\nA<script>: <entity>x</entity><img src=x>\n```",
    '```"><script>\nalert(1)\n```',
    "| a |\n|:-:|\n| <b>x</b> |",
    "[x]: javascript:alert(1)\n\n[x]",
    "<style>*{display:none}</style>",
]


@pytest.mark.parametrize("markdown", _HOSTILE)
def test_hostile_markdown_gives_harmless_html(markdown: str) -> None:
    _check_harmless(render(markdown))


@given(st.lists(st.one_of(st.sampled_from(_HOSTILE), st.text(max_size=20)), max_size=6).map("\n".join))
def test_whatever_is_written_gives_harmless_html(markdown: str) -> None:
    _check_harmless(render(markdown))


def test_markup_is_shown_as_text() -> None:
    assert _Walk(render("a <script>alert(1)</script> <b>")).text.strip() == "a <script>alert(1)</script> <b>"


def test_an_example_shows_types_languages_and_directions() -> None:
    html = render("```example en\nSource [ar]: باريس\nAnswer: in <entity>Rome <relation>and</relation></entity>.\n```")
    walk = _Walk(html)
    assert [found for found in walk.elements if found[0] == "dd"] == [
        ("dd", {"lang": "ar", "dir": "rtl"}),
        ("dd", {"lang": "en", "dir": "ltr"}),
    ]
    assert [found[1] for found in walk.elements if found[0] == "mark"] == [
        {"data-type": "entity"},
        {"data-type": "relation"},
    ]
    assert walk.text.strip() == "Sourceباريس" + "Answerin Rome andrelationentity."


def test_headings_leave_the_first_level_to_the_page() -> None:
    assert [element for element, _ in _Walk(render("# a\n\n###### b")).elements] == ["h2", "h6"]


def test_too_long_guidelines_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 200,000"):
        render("a" * 200_001)


def _project(folder: Path, name: str, more: str = "") -> Project:
    (folder / "project.toml").write_text(preset(name, title="T", slug="t", data=["data.jsonl"]) + more, "utf-8")
    return load(folder / "project.toml")


_FILES = [entry.name.split(".")[:2] for entry in (files("veriglot.studio") / "guidelines").iterdir()]
_PRESETS = {"fava": "mfava", "support": "kang"}  # those that are not named as their guidelines
_SHIPPED = sorted((_PRESETS.get(name, name), tag) for name, tag in _FILES)
_TRANSLATED = [(name, tag) for name, tag in _SHIPPED if tag != "en"]
_CHECKED: set[tuple[str, str]] = set()  # those of them that a native speaker has checked: without the notice


def test_each_preset_has_english_guidelines() -> None:
    assert {name for name, tag in _SHIPPED if tag == "en"} == set(presets())


@pytest.mark.parametrize(("name", "tag"), _SHIPPED)
def test_each_preset_has_guidelines_that_show_each_of_its_types(tmp_path: Path, name: str, tag: str) -> None:
    project = _project(tmp_path, name)
    found = guidelines(project, tag)
    shown = {attributes.get("data-type") for element, attributes in _Walk(found.html).elements if element == "mark"}
    choices = project.form.types or project.form.unit_labels or project.form.labels
    assert found.language == tag
    assert shown == {choice.name for choice in choices} - {"0"}


@pytest.mark.parametrize(("name", "tag"), _TRANSLATED)
def test_translated_guidelines_are_built_as_the_english_ones(tmp_path: Path, name: str, tag: str) -> None:
    """The same headings, lists, tables and examples, no `*` that was not understood as emphasis, and the notice."""

    def built(language: str) -> tuple[list[str], str]:
        walk = _Walk(guidelines(_project(tmp_path, name), language).html)
        return [element for element, _ in walk.elements if element not in {"mark", "span", "em", "strong"}], walk.text

    elements, text = built(tag)
    marked = (name, tag) not in _CHECKED
    assert elements == built("en")[0] + ["p"] * marked
    assert not marked or text.strip().endswith(words_of(tag)[1]["translation.notice"])
    assert "*" not in text
    assert "<" not in text


def test_a_language_without_guidelines_of_its_own_gets_the_nearest(tmp_path: Path) -> None:
    project = _project(tmp_path, "mfava")
    assert guidelines(project, "en-GB").language == "en"
    assert guidelines(project, "tlh").language == "en"
    assert guidelines(project, "../../etc").language == "en"


def test_the_projects_own_guidelines_come_first(tmp_path: Path) -> None:
    (tmp_path / "pt.md").write_text("# Olá\n", "utf-8")
    project = _project(tmp_path, "mfava", '\n[guidelines]\npt = "pt.md"\n')
    found = guidelines(project, "pt-BR")
    assert (found.language, found.html) == ("pt", "<h2>Olá</h2>\n")
    assert guidelines(project, "de").language == "pt"


def test_guidelines_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "en.md").write_bytes(b"\xff\xfe\x00")
    project = _project(tmp_path, "mfava", '\n[guidelines]\nen = "en.md"\n')
    with pytest.raises(InputError, match="guidelines"):
        guidelines(project, "en")


def test_a_taxonomy_without_guidelines_lists_its_types(tmp_path: Path) -> None:
    path = tmp_path / "project.toml"
    path.write_text(
        '[project]\nname = "T"\nslug = "t"\ntask = "translation"\ntaxonomy = "critical"\n[data]\npath = "d.jsonl"\n',
        "utf-8",
    )
    assert "critical_error" in guidelines(load(path), "en").html


def test_each_language_of_the_interface_has_guidelines_of_fava() -> None:
    words = {entry.name.removesuffix(".json") for entry in (files("veriglot.studio") / "words").iterdir()}
    assert words == {tag for name, tag in _SHIPPED if name == "mfava"}
