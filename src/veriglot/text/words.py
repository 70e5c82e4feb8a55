"""Words: where they begin and end, in code points.

A word is a run that holds at least one letter or digit, cut by Unicode's word boundaries (UAX 29) with ICU's
dictionaries for Chinese, Japanese, Thai, Lao, Khmer and Burmese. In particular:

- numbers keep their inner marks (`1,234.5` is one word); a date or range with dashes or slashes is several;
- an apostrophe inside stays inside (`can't`), except after an elided article or pronoun of the Romance languages
  (`l'homme` is `l` and `homme`), in whatever language, so that the same text always gives the same words;
- a hyphen parts words, and so does a colon (but not in Finnish and Swedish: `EU:n`); an underscore joins them; a
  full stop joins letters (`example.com`), but not a lower-case letter to a capital (`end.Next` is two words whose
  space is missing);
- Arabic and Hebrew clitics stay with their word, Korean words are what stands between spaces;
- combining marks and joiners belong to their letter; format characters never stand at a word's edge;
- punctuation, symbols and emoji are no words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from icu4py.breakers import WordBreaker

from veriglot.text.unicode_table import Kind, code_points, kind_table
from veriglot.text.utf16 import segment_ends

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["word_bounds", "words"]

_WORD = int(Kind.LETTER | Kind.DIGIT)
_LANGUAGES_WITH_COLON = {"fi", "sv"}
_PARTING = (0x27, 0x2019, 0x2E)  # apostrophes and the full stop: they part some words
_COLON = 0x3A
_ELIDED = re.compile(
    r"[ldcjmnst]|qu|(?:jus|lors|puis|quoi|quel|pres)qu|gl|un|(?:d|n|qu)ell|all|sull|dall|coll|quest|bell|sant|tutt|"
    r"mezz|cent|senz|grand|quattr",
    re.IGNORECASE,
)


def words(text: str, language: str | None = None) -> list[tuple[int, int]]:
    """The words of a text as half-open code point ranges, in order. `word_bounds` gives the same as an array."""
    return [(start, end) for start, end in word_bounds(text, language).tolist()]


def word_bounds(text: str, language: str | None = None) -> NDArray[np.int32]:
    """The words of a text: half-open `[start, end)` code point ranges, sorted, disjoint, shape (n, 2).

    Args:
        text: any text; lone surrogates are taken as replacement characters and so are never part of a word.
        language: a BCP 47 tag, or None. It matters only to Finnish and Swedish, where a colon may stand in a word.
    """
    codes = code_points(text)
    ends = segment_ends(WordBreaker, text, codes, "root")
    if not ends.size:
        return np.empty((0, 2), np.int32)
    kinds = kind_table()[codes]
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1]
    is_word = (kinds & _WORD) != 0
    keep = np.logical_or.reduceat(is_word, starts)
    starts, ends = _without_edges(starts[keep], ends[keep], kinds)
    joined = language is not None and language.split("-")[0].lower() in _LANGUAGES_WITH_COLON
    marks = _PARTING if joined else (*_PARTING, _COLON)
    starts, ends = _split_inside(text, codes, kinds, starts, ends, marks)
    bounds = np.empty((len(starts), 2), np.int32)
    bounds[:, 0] = starts
    bounds[:, 1] = ends
    return bounds


def _without_edges(
    starts: NDArray[np.int64], ends: NDArray[np.int64], kinds: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Words without format characters and connectors at their edges. Each holds a letter or digit, so it ends."""
    while (loose := kinds[ends - 1] & Kind.EDGE != 0).any():
        ends = ends - loose
    while (loose := kinds[starts] & (_WORD | Kind.MARK) == 0).any():
        starts = starts + loose
    return starts, ends


def _split_inside(
    text: str,
    codes: NDArray[np.uint32],
    kinds: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    parting: tuple[int, ...],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Words parted at those of the `parting` marks inside them that part; the mark is left out."""
    marks = np.logical_or.reduce([codes == mark for mark in parting])
    if not marks.any():
        return starts, ends
    places = np.flatnonzero(marks[1:-1]) + 1
    letters = kinds & Kind.LETTER != 0
    places = places[letters[places - 1] & letters[places + 1]]
    owner = np.searchsorted(starts, places, side="right") - 1
    cuts = [
        place
        for place, word in zip(places.tolist(), owner.tolist(), strict=True)
        if word >= 0 and place < ends[word] and _parts(text, kinds, int(starts[word]), place)
    ]
    if not cuts:
        return starts, ends
    at = np.array(cuts)
    return np.sort(np.concatenate([starts, at + 1])), np.sort(np.concatenate([ends, at]))


def _parts(text: str, kinds: NDArray[np.uint8], start: int, place: int) -> bool:
    """Whether the mark at `place`, between two letters of the word that begins at `start`, parts it."""
    if text[place] == ":":
        return True
    if text[place] == ".":
        return bool(kinds[place - 1] & Kind.LOWER and kinds[place + 1] & Kind.UPPER)
    elided = _ELIDED.fullmatch(text, start, place) is not None
    return elided and place + 2 < len(text) and bool(kinds[place + 2] & Kind.LETTER)
