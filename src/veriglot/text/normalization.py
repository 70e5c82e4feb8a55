"""Normalisation with a map to the original offsets (`normalise`), and folding that keeps the length (`fold`).

`normalise` does what changes the length: compatibility composition, full case folding, removal of vowel marks, tatweel
and invisible characters, and single spaces. It maps every code point of the result to its range in the original.
"""

from __future__ import annotations

import sys
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.plugins import read_package_data
from veriglot.text.unicode import Kind, code_points, kind_table, text_of

if TYPE_CHECKING:
    from veriglot.arrays import Int32s, UInt32s
__all__ = ["fold", "fold_codes", "normalise"]


# `fold`: replaces variants of a letter by one form, at the same length.
#
# The table is `fold_pairs.json`, written by `tools/build_unicode_tables.py` from Unicode's case folding and
# compatibility forms, interchangeable letters within a language, and OpenCC's simplified characters.


_TABLE_SIZE = 0x30000  # planes 0 to 2; nothing beyond them is folded


@cache
def _table() -> UInt32s:
    pairs = read_package_data(__package__, "fold_pairs.json", dict[str, str])
    table = np.arange(_TABLE_SIZE, dtype=np.uint32)
    table[code_points(pairs["from"])] = code_points(pairs["to"])
    return table


def fold_codes(codes: UInt32s) -> UInt32s:
    """`fold` on an array of code points; same shape."""
    if codes.size and int(codes.max()) >= _TABLE_SIZE:
        low = codes < _TABLE_SIZE
        folded = codes.copy()
        folded[low] = _table()[codes[low]]
        return folded
    return _table()[codes]


def fold(text: str) -> str:
    """The text with unified case, width, digits and interchangeable letter forms, at the same length.

    Folded, code point by code point: case (Turkish dotted and dotless i become `i`); full width, half width and
    other compatibility forms of one code point; digits of every script and superscripts to ASCII by value; Arabic
    alef, yeh, kaf and heh forms; Hebrew final letters; Cyrillic yo; apostrophes, quotation marks, dashes, spaces and
    sentence marks to ASCII; traditional Chinese characters to simplified ones. Not folded: accents, marks, and
    anything that changes the number of code points (see `normalise`). Folding is idempotent.
    """
    if text.isascii():
        return text.lower()
    return text_of(fold_codes(code_points(text)))


# Interchangeable forms of letters and marks within a language; the table is `letter_forms.json`.


class _LetterForms(msgspec.Struct):
    letters: dict[str, str]
    punctuation: dict[str, str]


@cache
def letter_forms() -> dict[str, str]:
    """Mapping from a form of a letter or mark to the unified form; both are single code points."""
    table = read_package_data(__package__, "letter_forms.json", _LetterForms)
    return {other: form for form, others in (table.letters | table.punctuation).items() for other in others}


_CACHED_FORMS = 100_000
_JOINS = sys.maxunicode + 1
_MARKS = read_package_data(__package__, "marks.toml", dict[str, list[tuple[int, int]]])


@dataclass(frozen=True)
class Normalised:
    """A normalised text, and the start and end of each code point in the original."""

    text: str
    starts: Int32s
    ends: Int32s

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The original range of the normalised range `[start, end)`, which must not be empty."""
        if not 0 <= start < end <= len(self.text):
            raise IndexError(f"[{start}, {end}) is no range of a text of {len(self.text)} code points")
        return int(self.starts[start]), int(self.ends[end - 1])


class _Forms(dict[str, str]):
    """Cache of the normalised form of each cluster (a character with its combining marks)."""

    def __init__(self, *, fold_case: bool) -> None:
        super().__init__()
        self._fold_case = fold_case
        self._replaced = letter_forms() | ({"İ": "i", "ı": "i"} if fold_case else {})
        self._single = np.zeros(sys.maxunicode + 1, np.uint32)

    def single(self, codes: UInt32s) -> UInt32s:
        """The form of each code point if that is one code point; `_JOINS` if it joins the one before; else 0."""
        for code in set(codes[self._single[codes] == 0].tolist()):
            char = chr(code)
            self._single[code] = _JOINS if _joins(char) else ord(self[char]) if len(self[char]) == 1 else 0
        return self._single[codes]

    def __missing__(self, cluster: str) -> str:
        if len(self) > _CACHED_FORMS:
            self.clear()
        plain = unicodedata.normalize("NFKC", "".join(self._replaced.get(c, c) for c in cluster))
        if self._fold_case:
            plain = unicodedata.normalize("NFKC", plain.casefold())
        form = self[cluster] = "".join(map(self._char, plain))
        return form

    def _char(self, char: str) -> str:
        code, category = ord(char), unicodedata.category(char)
        semitic = any(first <= code < last for first, last in _MARKS["semitic"])
        if semitic or category == "Cf" or 0xFE00 <= code < 0xFE10 or code == 0x034F:
            return ""
        char = self._replaced.get(char, char)
        return str(unicodedata.decimal(char)) if unicodedata.category(char) == "Nd" else char


_forms = lru_cache(8)(_Forms)


@lru_cache(_CACHED_FORMS)
def _joins(char: str) -> bool:
    """Whether normalisation may compose or reorder `char` with the character before it."""
    first = unicodedata.normalize("NFKC", char)[0]
    return unicodedata.category(first)[0] == "M" or any(a <= ord(first) < b for a, b in _MARKS["jamo_that_join"])


@lru_cache(16)  # several rules normalise the texts of a sample
def normalise(text: str, *, fold_case: bool = True, spaces: bool = True) -> Normalised:
    """A unified form of a text, with a map to the original code points.

    It applies NFKC. Apostrophes, quotation marks, dashes, commas and full stops become ASCII, and so do decimal digits
    of every script, by value; Arabic alef, yeh, kaf and heh forms, Hebrew finals and Cyrillic yo are folded as in
    `fold`; Arabic vowel marks and tatweel, Hebrew niqqud and cantillation, format characters (bidirectional marks,
    joiners, soft hyphens) and variation selectors are removed.

    Args:
        text: any text.
        fold_case: full case folding; dotted and dotless i become `i`.
        spaces: replace every run of white space by one space.
    """
    result, starts, ends = _by_cluster(text, _forms(fold_case=fold_case))
    if spaces and result.size:
        result, starts, ends = _single_spaces(result, starts, ends)
    return Normalised(text_of(result), starts, ends)


@lru_cache(64)  # several rules use the same sentences
def plain(text: str) -> str:
    """`normalise` without changing spaces, then `fold`; without the map. Meant for sentences."""
    if text.isascii():
        return text.lower()
    return text_of(fold_codes(_by_cluster(text, _forms(fold_case=True))[0]))


def _by_cluster(text: str, forms: _Forms) -> tuple[UInt32s, Int32s, Int32s]:
    """Each cluster replaced by its form; removed code points map to the code point before them."""
    plain = forms.single(code_points(text))
    if ((plain > 0) & (plain < _JOINS)).all():
        bounds = np.arange(len(text) + 1, dtype=np.int32)
        return plain, bounds[:-1], bounds[1:]
    plain[0] = 0
    first = np.flatnonzero(plain != _JOINS).astype(np.int32)
    last = np.append(first[1:], np.int32(len(text)))
    plain = plain[first]
    longer = (plain == 0) | (last - first > 1)
    clusters = zip(first[longer].tolist(), last[longer].tolist(), strict=True)
    pieces = [forms[text[start:end]] for start, end in clusters]
    lengths = np.ones(len(first), np.int32)
    lengths[longer] = [len(piece) for piece in pieces]
    result = np.repeat(plain, lengths)
    result[np.repeat(longer, lengths)] = code_points("".join(pieces))
    present = lengths > 0
    first, lengths = first[present], lengths[present]
    last = np.append(first[1:], np.int32(len(text)))[: len(first)]
    first[:1] = 0
    return result, np.repeat(first, lengths), np.repeat(last, lengths)


def _single_spaces(codes: UInt32s, starts: Int32s, ends: Int32s) -> tuple[UInt32s, Int32s, Int32s]:
    is_space = kind_table()[codes] & Kind.SPACE != 0
    if not is_space.any():
        return codes, starts, ends
    keep = ~is_space
    keep[0] = True
    keep[1:] |= ~is_space[:-1]
    indices = np.flatnonzero(keep)
    run_ends = np.append(indices[1:], len(codes)) - 1
    return np.where(is_space, np.uint32(0x20), codes)[indices], starts[indices], ends[run_ends]
