"""The two languages of a file of translations whose rows state none.

They are identified from the file's first texts taken together, since rows are short and a hallucinated translation may
well be in the wrong language. A pair in the file's name (`mqm_ted_zhen.tsv`, `ende_majority_dev.tsv`, `news.en-de.tsv`)
is believed where at least one of the two languages is what the texts are in, so that `test.tsv` is not taken for Telugu
to Southern Sotho. Nothing is assumed because a published data set has one pair.
"""

from __future__ import annotations

import re
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from veriglot.formats.file_language import language_tag
from veriglot.records.languages import language

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.formats.format import Reading

__all__ = ["TEXTS_LOOKED_AT", "pair_in_name", "pair_of"]

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
        reading.state[_KEY] = _found(texts, reading)
    pair: tuple[str | None, str | None] = reading.state[_KEY]
    return pair


def pair_in_name(stem: str) -> list[tuple[str, str]]:
    """Every pair of languages that a part of a file's name can be read as: `ende`, `en-de`, `eng_deu`."""
    found = []
    parts = re.split(r"[_.\s]+", stem.lower())
    for part in [*parts, *(f"{a}-{b}" for a, b in pairwise(parts))]:
        match = _HALVES.fullmatch(part)
        if match is None or ("-" not in part and len(part) != 4):
            continue
        tags = [language_tag(half) for half in match.groups()]
        if tags[0] and tags[1] and tags[0] != tags[1]:
            found.append((tags[0], tags[1]))
    return found


def _found(texts: Iterable[tuple[str, str]], reading: Reading) -> tuple[str | None, str | None]:
    taken = list(islice(texts, TEXTS_LOOKED_AT))
    seen = tuple(_language_of([pair[side] for pair in taken]) for side in (0, 1))
    for named in pair_in_name(reading.source.stem):
        if any(_same(a, b) for a, b in zip(named, seen, strict=True)):
            source, target = (b if b and _same(a, b) else a for a, b in zip(named, seen, strict=True))
            return source, reading.language or target
    reading.report.notes["languages_identified"] += sum(tag is not None for tag in seen)
    return seen[0], reading.language or seen[1]


def _same(one: str, other: str | None) -> bool:
    return other is not None and language(one).base == language(other).base


def _language_of(texts: list[str]) -> str | None:
    """The language that most of the texts are in, by their length."""
    from veriglot.text import identify

    weight: dict[str, int] = {}
    for text in texts:
        found = identify(text)
        if found is not None:
            weight[found.tag] = weight.get(found.tag, 0) + len(text)
    return max(weight, key=lambda tag: weight[tag]) if weight else None
