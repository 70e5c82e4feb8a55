"""Sentences, words and grapheme clusters: where they begin and end, in code points.

Unicode's sentence boundaries (UAX 29, by ICU) are the ground. On it stand these corrections:

- an abbreviation, an initial, or an ordinal number (`Am 3. Mai`, in languages that write ordinals so) ends no
  sentence, nor does a list item's number. The abbreviations of each language are in `abbreviations.json`; without a
  language only those that nearly all share are taken;
- Thai and Lao write no sentence marks: there a long stretch is parted at its spaces;
- a full stop whose space is missing (`end.Next`) ends a sentence;
- a line break always ends a sentence. White space belongs to no sentence.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from icu4py.breakers import BaseBreaker, CharacterBreaker, SentenceBreaker, WordBreaker

from veriglot.plugins import packaged
from veriglot.text.normalization import fold
from veriglot.text.unicode import Kind, code_points, kind_table, text_of

if TYPE_CHECKING:
    from veriglot.arrays import Int32s, Int64s, UInt8s, UInt32s
__all__ = ["clusters", "folded_words", "sentences", "space_of", "word_bounds", "words"]


# Whether a language sets spaces between words and sentences.


_UNSPACED = frozenset({"zh", "yue", "ja", "th", "lo", "km", "my"})


def space_of(language: str) -> str:
    """What stands between two words, or two sentences: a space, or nothing."""
    return "" if language.split("-")[0] in _UNSPACED else " "


def segment_ends(breaker: type[BaseBreaker], text: str, codes: UInt32s, locale: str) -> Int64s:
    """Where each segment of `text` ends, in code points, in order; the segments cover the text.

    A lone surrogate, which ICU cannot be given, is shown to it as a replacement character.
    """
    try:
        segments = breaker(text, locale).segments()
    except UnicodeEncodeError:
        surrogate = (codes >= 0xD800) & (codes < 0xE000)
        segments = breaker(text_of(np.where(surrogate, np.uint32(0xFFFD), codes)), locale).segments()
    ends = np.array([end for _, end in segments], np.int64)
    astral = codes > 0xFFFF
    if not astral.any():
        return ends
    in_utf16 = np.arange(1, len(codes) + 1) + np.cumsum(astral)
    return np.searchsorted(in_utf16, ends) + 1


_FULL_STOP = 0x2E
_LINE_ENDS = frozenset("\n\r\x0b\x0c\x85\u2028\u2029")
_ORDINALS = frozenset("az bs cs da de et eu fi fo hr hu is lb lt lv no nn pl sk sl sr tr".split())  # noqa: SIM905
_OPENING = "([{«“„‘‚\"'¿¡—–-"
_CLOSING = frozenset(")]}»”’\"'")
_UNMARKED = re.compile("[\u0e00-\u0eff]")  # Thai, Lao
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
    return [*_sentences(text, language)]


@lru_cache(16)  # one sample asks several times of the same texts
def _sentences(text: str, language: str | None) -> tuple[tuple[int, int], ...]:
    codes = code_points(text)
    kinds = kind_table()[codes]
    ends = np.union1d(segment_ends(SentenceBreaker, text, codes, "root"), _missing_spaces(codes, kinds)).tolist()
    ranges = []
    start = 0
    for bound in ends:
        if bound < len(text) and not _ends_sentence(text, max(start, bound - _LOOK_BACK), bound, language):
            continue
        end = bound
        if text[end - 1] in "“「『《" and end < len(text) and text[end - 2] in "。！？!?.”」』》":
            end -= 1  # UAX 29 leaves an opening quotation mark at the end of the sentence before it
        ranges.extend(_parted(text, start, end))
        start = end
    solid = np.flatnonzero(kinds & Kind.SPACE == 0)
    bounds = np.searchsorted(solid, np.array(ranges, np.int64).reshape(-1, 2))
    low, high = bounds[bounds[:, 0] < bounds[:, 1]].T
    return tuple(zip(solid[low].tolist(), (solid[high - 1] + 1).tolist(), strict=True))


def _missing_spaces(codes: UInt32s, kinds: UInt8s) -> Int64s:
    """Where a full stop stands between a lower-case letter and a capitalised word, without the space (`end.Next`)."""
    stops = np.flatnonzero(codes[1:-2] == _FULL_STOP) + 1
    upper, lower = int(Kind.UPPER), int(Kind.LOWER)
    glued = (kinds[stops - 1] & lower != 0) & (kinds[stops + 1] & upper != 0) & (kinds[stops + 2] & lower != 0)
    ends: Int64s = stops[glued] + 1
    return ends


def _ends_sentence(text: str, start: int, end: int, language: str | None) -> bool:
    """Whether a sentence ends at `end`, where UAX 29 sees one that began at `start`."""
    if text[end - 1] in _LINE_ENDS:
        return True
    body = text[start:end].rstrip()
    if not any(map(str.isalpha, body)):  # `1.` before a list item, or stray punctuation
        return False
    if not body.endswith("."):
        return True
    if body[-2:-1] in _CLOSING | {"."}:  # an ellipsis, a closed quotation
        return True
    if end < len(text) and not text[end - 1].isspace() and _UNMARKED.match(text, end):
        return False
    return not _is_short_form(body, language)


def _is_short_form(body: str, language: str | None) -> bool:
    """Whether the last word of `body`, which ends in a full stop, is an abbreviation, an initial or an ordinal."""
    last = body[:-1].rsplit(maxsplit=1)[-1].lstrip(_OPENING)
    base = language.split("-")[0].lower() if language else ""
    if last.isdecimal():
        return base in _ORDINALS and len(last) <= 2
    if sum(map(str.isalpha, last)) == 1 and not any(map(str.isdecimal, last)):
        return last != "I" or base not in ("", "en")  # an initial, perhaps with vowel signs; in English, the pronoun
    lower = last.lower()
    if lower in _abbreviations()["any"] or lower in _abbreviations().get(base, ()):
        return True
    initials = last.split(".")
    return len(initials) > 1 and all(len(part) == 1 and part.isupper() for part in initials)


@cache
def _abbreviations() -> dict[str, frozenset[str]]:
    listed = packaged(__package__, "abbreviations.json", dict[str, str])
    return {tag: frozenset(forms.split()) for tag, forms in listed.items()}


def _parted(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """A stretch parted at spaces between letters of a script without sentence marks, where it is long."""
    if end - start < 2 * _MIN_UNMARKED or not _UNMARKED.search(text, start, end):
        return [(start, end)]
    parts = []
    first = start
    for index in range(start + 1, end - 1):
        if text[index] != " " or index - first < _MIN_UNMARKED or end - index < _MIN_UNMARKED // 2:
            continue
        if _UNMARKED.match(text, index - 1) and _UNMARKED.match(text, index + 1) and text[index + 1] not in "ๆฯ":
            parts.append((first, index))
            first = index
    return [*parts, (first, end)]


# What a reader takes for one character (Unicode's extended grapheme clusters, UAX 29), in code points.


def grapheme_ends(text: str) -> Int64s:
    """Where each character ends, in code points, in order; the last one is the length of the text."""
    return segment_ends(CharacterBreaker, text, code_points(text), "root")


def clusters(text: str) -> list[tuple[int, int]]:
    """The characters that are made of more than one code point, half-open, in order.

    A letter with combining marks, a syllable of Devanagari, a flag, a family of emoji: a mark that begins or ends
    inside one of them would cut a character in two.
    """
    ends = grapheme_ends(text)
    starts = np.append(0, ends)[:-1]
    long = ends - starts > 1
    return list(zip(starts[long].tolist(), ends[long].tolist(), strict=True))


# Words: where they begin and end, in code points.
#
# A word is a run that holds at least one letter or digit, cut by Unicode's word boundaries (UAX 29) with ICU's
# dictionaries for Chinese, Japanese, Thai, Lao, Khmer and Burmese. In particular:
#
# - numbers keep their inner marks (`1,234.5` is one word); a date or range with dashes or slashes is several;
# - an apostrophe inside stays inside (`can't`), except after an elided article or pronoun of the Romance languages
#   (`l'homme` is `l` and `homme`), in whatever language, so that the same text always gives the same words;
# - a hyphen parts words, and so does a colon (but not in Finnish and Swedish: `EU:n`); an underscore joins them; a
#   full stop joins letters (`example.com`), but not a lower-case letter to a capital (`end.Next` is two words whose
#   space is missing);
# - Arabic and Hebrew clitics stay with their word, Korean words are what stands between spaces;
# - combining marks and joiners belong to their letter; format characters never stand at a word's edge;
# - punctuation, symbols and emoji are no words.


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


def folded_words(text: str, language: str | None = None) -> list[str]:
    """The words of a text that was folded (`normalization.fold`), in order."""
    folded = fold(text)
    return [folded[start:end] for start, end in words(folded, language)]


def word_bounds(text: str, language: str | None = None) -> Int32s:
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
    starts = np.append(0, ends)[:-1]
    is_word = (kinds & _WORD) != 0
    keep = np.logical_or.reduceat(is_word, starts)
    starts, ends = _without_edges(starts[keep], ends[keep], kinds)
    joined = language is not None and language.split("-")[0].lower() in _LANGUAGES_WITH_COLON
    marks = _PARTING if joined else (*_PARTING, _COLON)
    starts, ends = _split_inside(text, codes, kinds, starts, ends, marks)
    return np.stack([starts, ends], 1).astype(np.int32)


def _without_edges(starts: Int64s, ends: Int64s, kinds: UInt8s) -> tuple[Int64s, Int64s]:
    """Words without format characters and connectors at their edges. Each holds a letter or digit, so it ends."""
    while (loose := kinds[ends - 1] & Kind.EDGE != 0).any():
        ends = ends - loose
    while (loose := kinds[starts] & (_WORD | Kind.MARK) == 0).any():
        starts = starts + loose
    return starts, ends


def _split_inside(
    text: str, codes: UInt32s, kinds: UInt8s, starts: Int64s, ends: Int64s, parting: tuple[int, ...]
) -> tuple[Int64s, Int64s]:
    """Words parted at those of the `parting` marks inside them that part; the mark is left out."""
    marks = np.logical_or.reduce([codes == mark for mark in parting])
    if not marks.any():
        return starts, ends
    places = np.flatnonzero(marks[1:-1]) + 1
    letters = kinds & Kind.LETTER != 0
    places = places[letters[places - 1] & letters[places + 1]]
    owner = np.searchsorted(starts, places, "right") - 1
    cuts = [
        index
        for index, word in zip(places.tolist(), owner.tolist(), strict=True)
        if word >= 0 and index < ends[word] and _parts(text, kinds, int(starts[word]), index)
    ]
    if not cuts:
        return starts, ends
    at = np.array(cuts)
    return np.sort(np.concatenate([starts, at + 1])), np.sort(np.concatenate([ends, at]))


def _parts(text: str, kinds: UInt8s, start: int, index: int) -> bool:
    """Whether the mark at `place`, between two letters of the word that begins at `start`, parts it."""
    if text[index] == ":":
        return True
    if text[index] == ".":
        return bool(kinds[index - 1] & Kind.LOWER and kinds[index + 1] & Kind.UPPER)
    elided = _ELIDED.fullmatch(text, start, index) is not None
    return elided and index + 2 < len(text) and bool(kinds[index + 2] & Kind.LETTER)
