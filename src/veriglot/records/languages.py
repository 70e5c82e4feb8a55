"""The language table: tags, names, scripts and families of the languages that Veriglot knows.

The data stands beside it. Tags are BCP 47, with the script where a language is written in several: `zh-Hans` and
`zh-Hant`, `sr-Cyrl` and `sr-Latn`. A bare `zh` or `sr` resolves as CLDR's likely subtags say, to `zh-Hans` and
`sr-Cyrl`; Cantonese is `yue`.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from veriglot.errors import UnknownNameError

__all__ = ["Language", "language", "languages"]

_TAG = re.compile(r"[a-z]{2,3}(-[a-z0-9]{1,8})*")
_RIGHT_TO_LEFT = frozenset({"Arab", "Hebr", "Thaa", "Syrc", "Nkoo", "Adlm", "Rohg"})
_INCLUDES = {  # ISO 15924 codes that stand for several scripts or for a variety of one
    "Jpan": ("Hira", "Kana", "Hani", "Hrkt"),
    "Kore": ("Hang", "Hani"),
    "Hans": ("Hani",),
    "Hant": ("Hani",),
}


class Language(msgspec.Struct, frozen=True):
    """A language as it is written in one script.

    Attributes:
        tag: BCP 47 tag, with the script where it matters.
        name: English name.
        native_name: the language's name in itself.
        script: ISO 15924 code; `Hans`, `Hant`, `Jpan` and `Kore` where several scripts are written together.
        direction: `ltr` or `rtl`.
        family: family, and branch in parentheses; in the terms of mFAVA, table 7.
        word_breaking: what parts words: `spaces`; a `dictionary`, where nothing is written between words; or
            `characters`, where no dictionary is at hand and syllables are the units (Tibetan).
        aliases: ISO 639 codes, other names, regional forms and common mistakes that `language` takes for this one.
        sources: which of the papers that Veriglot stands on cover the language: `mfava` (table 7), `kang` (the
            languages of its tables), `halluverse` (abstract), `hat` (tables 1 and 2).
    """

    tag: str
    name: str
    native_name: str
    script: str
    direction: Literal["ltr", "rtl"]
    family: str
    word_breaking: Literal["spaces", "dictionary", "characters"]
    aliases: tuple[str, ...]
    sources: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The primary subtag: `zh` for `zh-Hans`. Equal bases are one language in different scripts."""
        return self.tag.partition("-")[0]


@cache
def languages() -> dict[str, Language]:
    """Every language by tag, in the order of the tags."""
    data = files(__package__).joinpath("languages.json").read_bytes()
    return {entry.tag: entry for entry in msgspec.json.decode(data, type=list[Language])}


@cache
def _by_alias() -> dict[str, Language]:
    table = {}
    for entry in languages().values():
        for alias in (entry.tag, entry.name, entry.native_name, *entry.aliases):
            table[alias.casefold()] = entry
    return table


@cache
def language(name: str) -> Language:
    """The language of a tag, code or name, in any case: `zh`, `zho`, `Chinese`, `zh_CN`, `cn`, `de-DE`, `Deutsch`.

    A region or variant that the table does not know is left out (`pt-BR` is `pt`). A script other than the usual one
    is kept: `uz-Cyrl` is Uzbek, written in Cyrillic.

    Raises:
        UnknownNameError: no such language; the error suggests the nearest. Nothing defaults to English.
    """
    key = re.split(r"[.@]", name.strip().casefold())[0].replace("_", "-")
    found = _by_alias().get(key) or _by_alias().get(key.replace("-", " "))
    if found is None and _TAG.fullmatch(key):
        found = _from_tag(key)
    if found is None:
        raise UnknownNameError("language", name, get_close_matches(key, _by_alias(), n=5, cutoff=0.6) or languages())
    return found


def _from_tag(key: str) -> Language | None:
    """The language of a tag with more subtags than the table has, or None."""
    subtags = key.split("-")
    script = next((part.title() for part in subtags[1:] if len(part) == 4 and part.isalpha()), None)
    for length in range(len(subtags) - 1, 0, -1):
        found = _by_alias().get("-".join(subtags[:length]))
        if found is not None:
            return found if script is None else _in_script(found, script)
    return None


def _in_script(entry: Language, script: str) -> Language | None:
    """`entry` written in `script`; None where no language of the table is."""
    if script == entry.script or script in _INCLUDES.get(entry.script, ()):
        return entry
    sibling = languages().get(f"{entry.base}-{script}")
    if sibling is not None or script not in {known.script for known in languages().values()}:
        return sibling
    return msgspec.structs.replace(
        entry,
        tag=f"{entry.base}-{script}",
        name=f"{entry.name.partition(' (')[0]} ({script})",
        script=script,
        direction="rtl" if script in _RIGHT_TO_LEFT else "ltr",
        word_breaking="spaces",
        aliases=(),
    )
