"""The language that a file's name says (`silver_gold_german.json` -> de, `xquad.zh.json` -> zh-Hans), or its text."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from veriglot.errors import UnknownNameError
from veriglot.records.languages import language, languages

if TYPE_CHECKING:
    from veriglot.formats.format import Reading

__all__ = ["identified", "in_the_script_of", "language_in_name", "language_of_file", "language_tag"]

_WORDS_THAT_ARE_NO_LANGUAGE = frozenset({"and", "as", "is", "in", "to", "so", "no", "or", "be", "wiki", "gold", "test"})
_LETTERS_LOOKED_AT = 2000
# Spellings that occur in published file names and nowhere else.
_FILE_SPELLINGS = {"latina": "la", "zh-yue": "yue", "malay": "ms", "persian": "fa"}


def language_tag(name: str) -> str | None:
    """The BCP 47 tag of a language given by any name or tag; None if it is not one that is known."""
    try:
        return language(_FILE_SPELLINGS.get(name.lower(), name.replace("_", "-"))).tag
    except UnknownNameError:
        return None


def in_the_script_of(tag: str | None, text: str) -> str | None:
    """The tag of the same language in the script that `text` is written in: `sr-Latn` for Serbian in Latin letters.

    Only Latin and Cyrillic are told apart; any other tag comes back as it is.
    """
    if tag is None:
        return None
    forms = {each.script: each.tag for each in languages().values() if each.base == language(tag).base}
    if not forms.keys() >= {"Latn", "Cyrl"}:
        return tag
    names = [unicodedata.name(char, "") for char in text[:_LETTERS_LOOKED_AT] if char.isalpha()]
    latin = sum(name.startswith("LATIN") for name in names)
    cyrillic = sum(name.startswith("CYRILLIC") for name in names)
    return tag if latin == cyrillic else forms["Latn" if latin > cyrillic else "Cyrl"]


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


def language_of_file(reading: Reading) -> str | None:
    """The language of a file whose rows state none: the one that the reader was told, else the one in its name.

    What was said outright wins: `ben.txt` may be Bengali, or notes by Ben.
    """
    return reading.language or language_in_name(reading.source.stem)


def identified(text: str, reading: Reading) -> str | None:
    """The language that a response is in by its own words, for formats whose rows need not say it; None if unclear.

    It is counted in the report, and never assumed because a format's published data are in one language.
    """
    from veriglot.text import identify

    found = identify(text)
    reading.report.notes["languages_identified" if found else "languages_unknown"] += 1
    return found.tag if found else None
