"""The words of the interface, from data files of `veriglot.annotate`."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veriglot.annotate.project import Project

__all__ = ["interface_languages", "words_of"]

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
