"""The words of the interface and the guidelines, from data files of `veriglot.annotate` and from the project."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veriglot.annotate.project import Project

__all__ = ["guidelines", "interface_languages", "rendered", "words_of"]

_FALLBACK = "en"


@cache
def _words() -> dict[str, dict[str, str]]:
    """Words by language; each language has English ones where it lacks its own."""
    folder = files("veriglot.annotate") / "words"
    if not folder.is_dir():
        return {_FALLBACK: {}}
    found = {
        entry.name.removesuffix(".json"): json.loads(entry.read_text("utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".json")
    }
    english = found.get(_FALLBACK, {})
    return {tag: {**english, **own} for tag, own in sorted({_FALLBACK: english, **found}.items())}


def interface_languages(project: Project) -> list[str]:
    """Languages that people of a project may choose for the interface."""
    chosen = project.entries.project.interface
    return [tag for tag in _words() if not chosen or tag in chosen] or [_FALLBACK]


def words_of(tag: str) -> tuple[str, dict[str, str]]:
    """The words of a language, and the language that they are in: its own, its base language's, or English."""
    for candidate in (tag, tag.partition("-")[0]):
        if candidate in _words():
            return candidate, _words()[candidate]
    return _FALLBACK, _words()[_FALLBACK]


def guidelines(project: Project, tag: str) -> tuple[str, str]:
    """The guidelines in Markdown, and their language: those of the project, else those that Veriglot ships."""
    own = project.entries.guidelines
    for candidate in dict.fromkeys((tag, tag.partition("-")[0], _FALLBACK, *own)):
        if candidate in own:
            return candidate, project.place(own[candidate]).read_text("utf-8")
    folder = files("veriglot.annotate") / "guidelines"
    for candidate in dict.fromkeys((tag, tag.partition("-")[0], _FALLBACK)):
        for name in (f"{project.task.value}.{candidate}.md", f"{project.form.taxonomy}.{candidate}.md"):
            if (entry := folder / name).is_file():
                return candidate, entry.read_text("utf-8")
    return _FALLBACK, ""


@cache
def _renderer() -> Any:
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    made.validateLink = _is_harmless  # type: ignore[method-assign]
    return made.disable("image")  # nothing is loaded from elsewhere


def _is_harmless(url: str) -> bool:
    return url.lower().startswith(("https://", "http://", "mailto:", "#"))


def rendered(markdown: str) -> str:
    """Markdown as HTML. Markup in it is shown as text; links lead to web addresses only; images are not loaded."""
    html: str = _renderer().render(markdown)
    return html
