"""Sentences: where they begin and end, in code points.

Unicode's sentence boundaries (UAX 29, by ICU) are the ground. On it stand these corrections:

- an abbreviation, an initial, or an ordinal number (`Am 3. Mai`, in languages that write ordinals so) ends no
  sentence, nor does a list item's number. The abbreviations of each language are in `abbreviations.json`; without a
  language only those that nearly all share are taken;
- Thai and Lao write no sentence marks: there a long stretch is parted at its spaces;
- a full stop whose space is missing (`end.Next`) ends a sentence;
- a line break always ends a sentence. White space belongs to no sentence.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from icu4py.breakers import SentenceBreaker

from veriglot.text.unicode_table import Kind, code_points, kind_table
from veriglot.text.utf16 import segment_ends

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["sentences"]

_FULL_STOP = 0x2E
_LINE_ENDS = frozenset("\n\r\x0b\x0c\x85\u2028\u2029")
_ORDINALS = frozenset("az bs cs da de et eu fi fo hr hu is lb lt lv no nn pl sk sl sr tr".split())  # noqa: SIM905
_OPENING = frozenset("([{«“„‘‚\"'¿¡—–-")
_CLOSING = frozenset(")]}»”’\"'")
_UNMARKED = ((0x0E00, 0x0E80), (0x0E80, 0x0F00))  # Thai, Lao
_LOOK_BACK = 200  # code points: where a sentence is longer, only its end is looked at, so that time stays linear
_MIN_UNMARKED = 60  # code points: a Thai sentence is rarely shorter, and its clauses too are parted by spaces


def sentences(text: str, language: str | None = None) -> list[tuple[int, int]]:
    """The sentences of a text as half-open code point ranges, in order.

    Every code point that is not white space lies in exactly one sentence, and no sentence begins or ends with white
    space. A text of white space has none.

    Args:
        text: any text.
        language: a BCP 47 tag, or None where it is not known; it chooses the abbreviations.
    """
    codes = code_points(text)
    kinds = kind_table()[codes]
    ends = np.union1d(segment_ends(SentenceBreaker, text, codes, "root"), _missing_spaces(codes, kinds)).tolist()
    found = []
    start = 0
    for bound in ends:
        if bound < len(text) and not _ends_sentence(text, max(start, bound - _LOOK_BACK), bound, language):
            continue
        end = _without_opening(text, bound)
        found.extend(_parted(text, codes, start, end))
        start = end
    spaces = kinds & Kind.SPACE != 0
    return [span for span in (_trimmed(spaces, first, last) for first, last in found) if span[0] < span[1]]


def _missing_spaces(codes: NDArray[np.uint32], kinds: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Where a full stop stands between a lower-case letter and a capitalised word, without the space (`end.Next`)."""
    stops = np.flatnonzero(codes[1:-2] == _FULL_STOP) + 1
    upper, lower = int(Kind.UPPER), int(Kind.LOWER)
    glued = (kinds[stops - 1] & lower != 0) & (kinds[stops + 1] & upper != 0) & (kinds[stops + 2] & lower != 0)
    ends: NDArray[np.int64] = stops[glued] + 1
    return ends


def _without_opening(text: str, end: int) -> int:
    """`end` moved before an opening quotation mark that UAX 29 leaves at the end of the sentence before it."""
    if text[end - 1] in "“「『《" and end < len(text) and text[end - 2] in "。！？!?.”」』》":
        return end - 1
    return end


def _trimmed(spaces: NDArray[np.bool_], start: int, end: int) -> tuple[int, int]:
    inside = np.flatnonzero(~spaces[start:end])
    return (start + int(inside[0]), start + int(inside[-1]) + 1) if inside.size else (start, start)


def _ends_sentence(text: str, start: int, end: int, language: str | None) -> bool:
    """Whether a sentence ends at `end`, where UAX 29 sees one that began at `start`."""
    if text[end - 1] in _LINE_ENDS:
        return True
    body = text[start:end].rstrip()
    if not body:
        return False
    if not any(char.isalpha() for char in body):  # `1.` before a list item, or stray punctuation
        return False
    if not body.endswith("."):
        return True
    if body[-2:-1] == "." or body[-2:-1] in _CLOSING:  # an ellipsis, a closed quotation
        return True
    if end < len(text) and not text[end - 1].isspace() and _unmarked(text[end]):
        return False
    return not _is_short_form(body, language)


def _is_short_form(body: str, language: str | None) -> bool:
    """Whether the last word of `body`, which ends in a full stop, is an abbreviation, an initial or an ordinal."""
    last = body[:-1].split()[-1].lstrip("".join(_OPENING))
    base = language.split("-")[0].lower() if language else ""
    if last.isdecimal():
        return base in _ORDINALS and len(last) <= 2
    if sum(char.isalpha() for char in last) == 1 and not any(char.isdecimal() for char in last):
        return last != "I" or base not in ("", "en")  # an initial, perhaps with vowel signs; in English, the pronoun
    lower = last.lower()
    if lower in _abbreviations()["any"] or lower in _abbreviations().get(base, ()):
        return True
    initials = last.split(".")
    return len(initials) > 1 and all(len(part) == 1 and part.isupper() for part in initials)


@cache
def _abbreviations() -> dict[str, frozenset[str]]:
    data = files(__package__).joinpath("abbreviations.json").read_bytes()
    return {tag: frozenset(forms.split()) for tag, forms in msgspec.json.decode(data, type=dict[str, str]).items()}


def _unmarked(char: str) -> bool:
    return any(first <= ord(char) < last for first, last in _UNMARKED)


def _parted(text: str, codes: NDArray[np.uint32], start: int, end: int) -> list[tuple[int, int]]:
    """A stretch parted at spaces between letters of a script without sentence marks, where it is long."""
    if end - start < 2 * _MIN_UNMARKED or not ((codes[start:end] >= 0x0E00) & (codes[start:end] < 0x0F00)).any():
        return [(start, end)]
    parts = []
    first = start
    for place in range(start + 1, end - 1):
        if text[place] != " " or place - first < _MIN_UNMARKED or end - place < _MIN_UNMARKED // 2:
            continue
        if _unmarked(text[place - 1]) and _unmarked(text[place + 1]) and text[place + 1] not in "ๆฯ":
            parts.append((first, place))
            first = place
    return [*parts, (first, end)]
