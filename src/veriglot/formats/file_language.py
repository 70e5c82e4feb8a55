"""The language that a file's name says: `silver_gold_german.json` -> de, `xquad.zh.json` -> zh. None if it says none."""

from __future__ import annotations

import re

from veriglot.errors import UnknownNameError
from veriglot.records.languages import language

__all__ = ["language_in_name", "language_tag"]

_WORDS_THAT_ARE_NO_LANGUAGE = frozenset({"and", "as", "is", "in", "to", "so", "no", "or", "be", "wiki", "gold", "test"})
# Spellings that occur in published file names and nowhere else.
_FILE_SPELLINGS = {"latina": "la", "zh-yue": "yue", "malay": "ms", "persian": "fa"}


def language_tag(name: str) -> str | None:
    """The BCP 47 tag of a language given by any name or tag; None if it is not one that is known."""
    try:
        return language(_FILE_SPELLINGS.get(name.lower(), name)).tag
    except UnknownNameError:
        return None


def language_in_name(file_name: str) -> str | None:
    """The BCP 47 tag of the last part of a file name (without folders) that names a language."""
    parts = re.split(r"[_.\s]+", file_name.lower())
    for part in reversed(parts):
        if part in _WORDS_THAT_ARE_NO_LANGUAGE or len(part) < 2:
            continue
        tag = language_tag(part)
        if tag is not None:
            return tag
    return None
