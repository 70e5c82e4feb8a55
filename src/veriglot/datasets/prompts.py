"""Prompts as data: texts with slots, some of them by language, and with what version signatures name them."""

from __future__ import annotations

from functools import cache
from typing import Any

from veriglot.plugins import packaged
from veriglot.records.languages import find_language, language_name

__all__ = ["by_language", "filled", "load_prompts", "prompt_version"]


@cache
def load_prompts(name: str) -> dict[str, Any]:
    """The table of `prompts/NAME.toml`: its `version`, and texts with slots."""
    return packaged(__package__, f"prompts/{name}.toml", dict[str, Any])


def prompt_version(name: str) -> str:
    """Name and version of a table, such as `answer@1`; it lands in signatures."""
    return f"{name}@{load_prompts(name)['version']}"


def filled(table: str, key: str, tag: str, /, **values: object) -> str:
    """A text of a table with its slots filled in; `language` is that of the BCP 47 tag, in English."""
    text: str = load_prompts(table)[key]
    return text.format(language=language_name(tag), **values).strip()


def by_language(name: str, tag: str) -> Any:
    """What a table has in the language of a BCP 47 tag; its English `fallback`, which names the language, beyond."""
    table, entry = load_prompts(name), find_language(tag)
    return table["languages"].get(entry.tag if entry else tag, table["fallback"])
