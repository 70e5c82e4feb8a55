"""Normalisation with a map back to the original offsets, and folding that moves none.

What `fold` cannot do at the same length is done here: compatibility composition, full case folding, removal of
vowel marks, tatweel and invisible characters, runs of white space. Every code point of the result knows the original
range that it came from.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from veriglot.text.unicode import Kind, code_points, kind_table, text_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Normalised", "fold", "fold_codes", "normalise"]


# `fold`: letters that differ only in how they are written become one, and no offset moves.
#
# The table is `fold_pairs.json`, written by `tools/build_unicode_tables.py` from Unicode's case folding and
# compatibility forms, the letters that writers of one language interchange, and OpenCC's simplified characters.


_TABLE_SIZE = 0x30000  # planes 0 to 2: nothing folds beyond them


class _Pairs(msgspec.Struct):
    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")


@cache
def _table() -> NDArray[np.uint32]:
    pairs = msgspec.json.decode(files(__package__).joinpath("fold_pairs.json").read_bytes(), type=_Pairs)
    table = np.arange(_TABLE_SIZE, dtype=np.uint32)
    table[code_points(pairs.source)] = code_points(pairs.target)
    return table


def fold_codes(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """`fold` on an array of code points; same shape."""
    if codes.size and int(codes.max()) >= _TABLE_SIZE:
        low = codes < _TABLE_SIZE
        folded = codes.copy()
        folded[low] = _table()[codes[low]]
        return folded
    return _table()[codes]


def fold(text: str) -> str:
    """The text with case, width, digits and interchangeable letter forms made one; always of the same length.

    Folded, code point by code point: case (Turkish dotted and dotless i meet at `i`); full width, half width and
    other compatibility forms of one code point; digits of every script and superscripts to ASCII by value; Arabic
    alef, yeh, kaf and heh forms; Hebrew final letters; Cyrillic yo; apostrophes, quotation marks, dashes, spaces and
    sentence marks to ASCII; traditional Chinese characters to simplified ones. Not folded: accents, marks, and
    whatever would need more or fewer code points (`normalise` does that). Folding twice changes nothing more.
    """
    if text.isascii():
        return text.lower()
    return text_of(fold_codes(code_points(text)))


# Forms of letters and marks that writers of one language interchange; the table is `letter_forms.json`.


class _LetterForms(msgspec.Struct):
    letters: dict[str, str]
    punctuation: dict[str, str]


@cache
def letter_forms(group: Literal["letters", "punctuation"]) -> dict[str, str]:
    """Each form with the form that is kept in its place; both are single code points."""
    table = msgspec.json.decode(files(__package__).joinpath("letter_forms.json").read_bytes(), type=_LetterForms)
    return {other: form for form, others in getattr(table, group).items() for other in others}


_CACHED_FORMS = 100_000
_JAMO_THAT_JOIN = ((0x1160, 0x1200), (0xD7B0, 0xD800))  # Hangul vowels and finals compose with what stands before
_SEMITIC_MARKS = (
    (0x0591, 0x05BE), (0x05BF, 0x05C0), (0x05C1, 0x05C3), (0x05C4, 0x05C6), (0x05C7, 0x05C8),  # niqqud, cantillation
    (0x0610, 0x061B), (0x0640, 0x0641), (0x064B, 0x0660), (0x0670, 0x0671),  # tashkeel and tatweel
    (0x06D6, 0x06DD), (0x06DF, 0x06E5), (0x06E7, 0x06E9), (0x06EA, 0x06EE),
    (0x0898, 0x08A0), (0x08CA, 0x08E2), (0x08E3, 0x0900),
)  # fmt: skip


@dataclass(frozen=True)
class Normalised:
    """A normalised text and where each of its code points comes from.

    Attributes:
        text: the normalised text.
        starts: per code point of `text`, the first original code point; int32, never decreasing.
        ends: per code point of `text`, one past the last original code point; int32, never decreasing. What was
            removed belongs to the code point before it, so the ranges cover the original without a gap. Ranges
            overlap where one original character is written as several.
    """

    text: str
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The original range of the normalised range `[start, end)`, which must not be empty.

        Raises:
            IndexError: the range is empty or leaves the text.
        """
        if not 0 <= start < end <= len(self.text):
            raise IndexError(f"[{start}, {end}) is no range of a text of {len(self.text)} code points")
        return int(self.starts[start]), int(self.ends[end - 1])


class _Options(msgspec.Struct, frozen=True):
    fold_case: bool
    compatibility: bool
    digits: bool
    letters: bool
    marks: bool
    punctuation: bool
    invisible: bool


class _Forms(dict[str, str]):
    """The normalised form of each cluster (a character and what joins it), found once."""

    def __init__(self, options: _Options) -> None:
        super().__init__()
        self._options = options
        self._replaced = {
            **(letter_forms("letters") if options.letters else {}),
            **(letter_forms("punctuation") if options.punctuation else {}),
            **({"İ": "i", "ı": "i"} if options.fold_case else {}),
        }

    def __missing__(self, cluster: str) -> str:
        if len(self) > _CACHED_FORMS:
            self.clear()
        form = self[cluster] = self._form(cluster)
        return form

    def _form(self, cluster: str) -> str:
        composed: Literal["NFC", "NFKC"] = "NFKC" if self._options.compatibility else "NFC"
        plain = unicodedata.normalize(composed, "".join(self._replaced.get(c, c) for c in cluster))
        if self._options.fold_case:
            plain = unicodedata.normalize(composed, plain.casefold())
        chars = (self._replaced.get(c, c) for c in plain if not self._removed(c))
        return "".join(self._digit(c) for c in chars)

    def _removed(self, char: str) -> bool:
        code = ord(char)
        if self._options.marks and any(first <= code < last for first, last in _SEMITIC_MARKS):
            return True
        if not self._options.invisible:
            return False
        return unicodedata.category(char) == "Cf" or 0xFE00 <= code < 0xFE10 or code == 0x034F

    def _digit(self, char: str) -> str:
        if self._options.digits and unicodedata.category(char) == "Nd":
            return str(unicodedata.decimal(char))
        return char


@lru_cache(maxsize=16)
def _forms(options: _Options) -> _Forms:
    return _Forms(options)


@lru_cache(maxsize=_CACHED_FORMS)
def _joins(char: str) -> bool:
    """Whether normalisation may compose or reorder `char` with what stands before it."""
    first = unicodedata.normalize("NFKC", char)[0]
    return unicodedata.category(first)[0] == "M" or any(a <= ord(first) < b for a, b in _JAMO_THAT_JOIN)


def normalise(
    text: str,
    *,
    fold_case: bool = True,
    compatibility: bool = True,
    digits: bool = True,
    letters: bool = True,
    marks: bool = True,
    punctuation: bool = True,
    invisible: bool = True,
    spaces: bool = True,
) -> Normalised:
    """The text in one form for all its ways of writing, with a map back to the original code points.

    Args:
        text: any text.
        fold_case: full case folding; dotted and dotless i meet at `i`.
        compatibility: NFKC (full and half width, ligatures, presentation forms); NFC where False.
        digits: decimal digits of every script to ASCII, by value.
        letters: Arabic alef, yeh, kaf and heh forms, Hebrew finals, Cyrillic yo, as in `fold`.
        marks: removes Arabic vowel marks and tatweel, Hebrew niqqud and cantillation.
        punctuation: apostrophes, quotation marks, dashes, commas and full stops to ASCII.
        invisible: removes format characters (bidirectional marks, joiners, soft hyphens) and variation selectors.
        spaces: every run of white space to one space.
    """
    options = _Options(fold_case, compatibility, digits, letters, marks, punctuation, invisible)
    codes = code_points(text)
    if text.isascii():
        result = code_points(text.lower()) if fold_case else codes
        starts = np.arange(len(codes), dtype=np.int32)
        ends = starts + np.int32(1)
    else:
        result, starts, ends = _by_cluster(text, codes, _forms(options))
    if spaces and result.size:
        result, starts, ends = _single_spaces(result, starts, ends)
    return Normalised(text_of(result), starts, ends)


def _by_cluster(
    text: str, codes: NDArray[np.uint32], forms: _Forms
) -> tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.int32]]:
    """Each cluster replaced by its form; removed code points fall to the code point before them."""
    used, inverse = np.unique(codes, return_inverse=True)
    joins = np.array([_joins(chr(code)) for code in used.tolist()])[inverse]
    joins[0] = False
    first = np.flatnonzero(~joins)
    if len(first) == len(text):
        pieces = [forms[chr(code)] for code in used.tolist()]
        lengths = np.array([len(piece) for piece in pieces])[inverse]
        plain = text.translate(dict(zip(used.tolist(), pieces, strict=True)))
    else:
        bounds = zip(first.tolist(), [*first[1:].tolist(), len(text)], strict=True)
        clusters = [forms[text[start:end]] for start, end in bounds]
        lengths = np.array([len(piece) for piece in clusters])
        plain = "".join(clusters)
    present = lengths > 0
    first, lengths = first[present].astype(np.int32), lengths[present]
    last = np.append(first[1:], np.int32(len(text)))[: len(first)]
    first[:1] = 0
    return code_points(plain), np.repeat(first, lengths), np.repeat(last, lengths)


def _single_spaces(
    codes: NDArray[np.uint32], starts: NDArray[np.int32], ends: NDArray[np.int32]
) -> tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.int32]]:
    is_space = kind_table()[codes] & Kind.SPACE != 0
    if not is_space.any():
        return codes, starts, ends
    keep = ~is_space
    keep[0] = True
    keep[1:] |= ~is_space[:-1]
    indices = np.flatnonzero(keep)
    run_ends = np.append(indices[1:], len(codes)) - 1
    return np.where(is_space, np.uint32(0x20), codes)[indices], starts[indices], ends[run_ends]
