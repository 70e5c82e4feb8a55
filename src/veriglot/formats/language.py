"""The two languages of a file of translations whose rows state none.

They are identified from the file's first texts taken together, since rows are short and a hallucinated translation may
well be in the wrong language. A pair in the file's name (`mqm_ted_zhen.tsv`, `ende_majority_dev.tsv`, `news.en-de.tsv`)
is believed where at least one of the two languages is what the texts are in, so that `test.tsv` is not taken for Telugu
to Southern Sotho. Nothing is assumed because a published data set has one pair.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from veriglot.formats.base import optional
from veriglot.records.languages import find_language, get_language, languages, same_language

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.formats.base import Reading

__all__ = [
    "TEXTS_LOOKED_AT",
    "identified",
    "in_the_script_of",
    "language_of_file",
    "language_tag",
    "pair_of",
    "stated_language",
]


# The language that a file's name says (`silver_gold_german.json` -> de, `xquad.zh.json` -> zh-Hans), or its text.


_WORDS_THAT_ARE_NO_LANGUAGE = frozenset({"and", "as", "is", "in", "to", "so", "no", "or", "be", "wiki", "gold", "test"})
_LETTERS_LOOKED_AT = 2000
# Spellings that occur in published file names and nowhere else.
_FILE_SPELLINGS = {"latina": "la", "zh-yue": "yue", "malay": "ms", "persian": "fa"}


def language_tag(name: str) -> str | None:
    """The BCP 47 tag of a language given by any name or tag; None if it is not one that is known."""
    entry = find_language(_FILE_SPELLINGS.get(name.lower(), name.replace("_", "-")))
    return entry.tag if entry else None


def stated_language(data: Any) -> str | None:
    """The tag in the `language` of a row, as it stands where it is not known; None where the row states none."""
    tag = optional(data, "language", str)
    return (language_tag(tag) or tag) if tag else None


def in_the_script_of(tag: str | None, text: str) -> str | None:
    """The tag of the same language in the script that `text` is written in: `sr-Latn` for Serbian in Latin letters.

    Only Latin and Cyrillic are told apart; any other tag comes back as it is.
    """
    if tag is None:
        return None
    forms = {each.script: each.tag for each in languages().values() if each.base == get_language(tag).base}
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
    from veriglot.text.identification import identify

    language = identify(text)
    reading.report.notes["languages_identified" if language else "languages_unknown"] += 1
    return language.tag if language else None


TEXTS_LOOKED_AT = 100
_KEY = "pair"
_HALVES = re.compile(r"([a-z]{2,3})[-_]?([a-z]{2,3})")


def pair_of(texts: Iterable[tuple[str, str]], reading: Reading) -> tuple[str | None, str | None]:
    """BCP 47 tags of source and target, None where neither name nor text says it. They are found out once a file.

    Args:
        texts: pairs of a source text and its translation, from the beginning of the file; the first
            `TEXTS_LOOKED_AT` are taken.
        reading: the file; `reading.language` wins for the target.
    """
    if _KEY not in reading.state:
        reading.state[_KEY] = _identified_pair(texts, reading)
    pair: tuple[str | None, str | None] = reading.state[_KEY]
    return pair


def pair_in_name(stem: str) -> list[tuple[str, str]]:
    """Every pair of languages that a part of a file's name can be read as: `ende`, `en-de`, `eng_deu`."""
    pairs = []
    parts = re.split(r"[_.\s]+", stem.lower())
    for part in [*parts, *(f"{a}-{b}" for a, b in pairwise(parts))]:
        match = _HALVES.fullmatch(part)
        if match is None or ("-" not in part and len(part) != 4):
            continue
        tags = [language_tag(half) for half in match.groups()]
        if tags[0] and tags[1] and tags[0] != tags[1]:
            pairs.append((tags[0], tags[1]))
    return pairs


def _identified_pair(texts: Iterable[tuple[str, str]], reading: Reading) -> tuple[str | None, str | None]:
    taken = list(islice(texts, TEXTS_LOOKED_AT))
    seen = tuple(_language_of([pair[side] for pair in taken]) for side in (0, 1))
    for named in pair_in_name(reading.source.stem):
        if any(_same(a, b) for a, b in zip(named, seen, strict=True)):
            source, target = (b if b and _same(a, b) else a for a, b in zip(named, seen, strict=True))
            return source, reading.language or target
    reading.report.notes["languages_identified"] += sum(tag is not None for tag in seen)
    return seen[0], reading.language or seen[1]


def _same(named: str, seen: str | None) -> bool:
    return seen is not None and same_language(named, seen)


def _language_of(texts: list[str]) -> str | None:
    """The language that most of the texts are in, by their length."""
    from veriglot.text.identification import identify

    weight: dict[str, int] = {}
    for text in texts:
        language = identify(text)
        if language is not None:
            weight[language.tag] = weight.get(language.tag, 0) + len(text)
    return max(weight, key=lambda tag: weight[tag]) if weight else None
