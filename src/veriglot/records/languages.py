"""The language table: tags, names, scripts and families of the languages that Veriglot knows.

The data is in this folder. Tags are BCP 47, with the script if a language is written in several: `zh-Hans` and
`zh-Hant`, `sr-Cyrl` and `sr-Latn`. A bare `zh` or `sr` resolves by CLDR's likely subtags, to `zh-Hans` and
`sr-Cyrl`; Cantonese is `yue`.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from typing import Literal

import msgspec

from veriglot.errors import UnknownNameError
from veriglot.plugins import read_package_data

__all__ = [
    "UNDETERMINED",
    "Language",
    "base_tag",
    "find_language",
    "get_language",
    "language_name",
    "languages",
    "same_language",
    "tag_of",
    "translation_codes",
]


UNDETERMINED = "und"
"""The tag of texts in an unknown language."""

_TAG = re.compile(r"[a-z]{2,3}(-[a-z0-9]{1,8})*")
_RIGHT_TO_LEFT = frozenset({"Arab", "Hebr", "Thaa", "Syrc", "Nkoo", "Adlm", "Rohg"})
_CONFUSABLE = read_package_data(
    __package__, "neighbours.json", list[set[str]]
)  # languages that identification confuses
_INCLUDES = read_package_data(__package__, "scripts.toml", dict[str, tuple[str, ...]])


class Language(msgspec.Struct, frozen=True):
    """A language in one script.

    Attributes:
        tag: BCP 47 tag, with the script if needed.
        name: English name.
        native_name: its name in the language itself.
        script: ISO 15924 code; `Hans`, `Hant`, `Jpan` and `Kore` for several scripts written together.
        direction: `ltr` or `rtl`.
        family: family, and branch in parentheses; in the terms of mFAVA, table 7.
        word_breaking: how words are separated: by `spaces`; by a `dictionary`, if nothing is written between words; or
            by `characters`, if there is no dictionary and syllables are the units (Tibetan).
        aliases: ISO 639 codes, other names, regional forms and common mistakes that `language` resolves to this one.
        sources: which of the papers behind Veriglot cover the language: `mfava` (table 7), `kang` (the
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
        """The primary subtag: `zh` for `zh-Hans`. Languages with the same base differ only in script."""
        return self.tag.partition("-")[0]

    @property
    def scripts(self) -> frozenset[str]:
        """ISO 15924 codes of its scripts: `Hang` and `Hani` for `Kore`."""
        return frozenset(_INCLUDES.get(self.script, (self.script,)))


@cache
def languages() -> dict[str, Language]:
    """Every language by tag, sorted by tag."""
    return {entry.tag: entry for entry in read_package_data(__package__, "languages.json", list[Language])}


@cache
def _by_alias() -> dict[str, Language]:
    table = {}
    for entry in languages().values():
        for alias in (entry.tag, entry.name, entry.native_name, *entry.aliases):
            table[alias.casefold()] = entry
    return table


@cache
def get_language(name: str) -> Language:
    """The language for a tag, code or name, in any case: `zh`, `zho`, `Chinese`, `zh_CN`, `cn`, `de-DE`, `Deutsch`.

    An unknown region or variant is ignored (`pt-BR` is `pt`). A script other than the usual one stays: `uz-Cyrl` is
    Uzbek, written in Cyrillic.

    Raises:
        UnknownNameError: no such language; the message suggests similar names. Nothing defaults to English.
    """
    key = re.split(r"[.@]", name.strip().casefold())[0].replace("_", "-")
    entry = _by_alias().get(key) or _by_alias().get(key.replace("-", " "))
    if entry is None and _TAG.fullmatch(key):
        entry = _from_tag(key)
    if entry is None:
        raise UnknownNameError("language", name, get_close_matches(key, _by_alias(), n=5, cutoff=0.6) or languages())
    return entry


def find_language(name: str) -> Language | None:
    """The language for a tag, code or name, as in `get_language`; None if it is not in the table."""
    try:
        return get_language(name)
    except UnknownNameError:
        return None


def language_name(tag: str | None) -> str:
    """The English name of a language tag; the tag itself if it is not in the table."""
    known = find_language(tag) if tag else None
    return known.name if known is not None else (tag or "unknown")


@cache
def tag_of(name: str | None) -> str | None:
    """The tag under which a language is counted: `zho`, `Chinese` and `zh-CN` are one, and unknown names stay."""
    entry = None if name is None else find_language(name)
    return name if entry is None else entry.tag


def base_tag(tag: str) -> str:
    """The primary subtag of a tag or name, known or not: `zh` for `zh-Hant`."""
    entry = find_language(tag)
    return entry.base if entry is not None else tag.partition("-")[0]


def same_language(first: str, second: str, *, similar: bool = False) -> bool:
    """Whether two tags are one language, in any script: `zh-Hans` and `zh-Hant` are, `zh` and `yue` are not.

    Args:
        first: a BCP 47 tag.
        second: another.
        similar: whether languages that identification confuses, such as `id` and `ms`, count as one.
    """
    pair = {base_tag(first), base_tag(second)}
    return len(pair) == 1 or (similar and any(pair <= group for group in _CONFUSABLE))


def _from_tag(key: str) -> Language | None:
    """The language for a tag with more subtags than the table has, or None."""
    subtags = key.split("-")
    script = next((part.title() for part in subtags[1:] if len(part) == 4 and part.isalpha()), None)
    for length in range(len(subtags) - 1, 0, -1):
        entry = _by_alias().get("-".join(subtags[:length]))
        if entry is not None:
            return entry if script is None else _in_script(entry, script)
    return None


def _in_script(entry: Language, script: str) -> Language | None:
    """`entry` written in `script`; None if no language of the table uses the script."""
    if script == entry.script or script in entry.scripts:
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


# Language codes of translation models: NLLB and SONAR, M2M-100 and mBART-50 each have their own.


class _TranslationCodes(msgspec.Struct):
    flores200: tuple[str, ...]  # lines of codes
    flores200_named: dict[str, str]  # codes that are not an ISO 639 code and a script of our table
    m2m100: dict[str, str]
    mbart50: dict[str, str]


@cache
def translation_codes() -> dict[str, dict[str, str]]:
    """The codes of each family of models, by tag, such as `deu_Latn` for `de`: `nllb`, `m2m100` and `mbart50`.

    `nllb` uses the codes of FLORES-200, as SONAR does. A language in a script that a family does not support has no
    code: `sr-Latn`.
    """
    table = read_package_data(__package__, "translation_codes.json", _TranslationCodes)
    known = frozenset(code for line in table.flores200 for code in line.split())
    flores = dict(table.flores200_named)
    for tag in languages():
        entry = get_language(tag)
        candidates = (f"{name}_{entry.script}" for name in (entry.base, *entry.aliases))
        flores_code = next((code for code in candidates if code in known), None)
        if flores_code is not None:
            flores.setdefault(entry.tag, flores_code)
    return {"nllb": flores, "m2m100": table.m2m100, "mbart50": table.mbart50}
