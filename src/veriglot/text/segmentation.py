"""Sentences, words and grapheme clusters: where they begin and end, in code points.

The basis is Unicode's sentence boundaries (UAX 29, by ICU), with these corrections:

- an abbreviation, an initial, or an ordinal number (`Am 3. Mai`, in languages that write ordinals so) ends no
  sentence, nor does a list item's number. The abbreviations of each language are in `abbreviations.json`; without a
  language only those common to nearly all languages apply;
- Thai and Lao have no sentence marks: a long passage is split at its spaces;
- a full stop whose space is missing (`end.Next`) ends a sentence;
- a line break always ends a sentence. White space belongs to no sentence.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from icu4py.breakers import BaseBreaker, CharacterBreaker, SentenceBreaker, WordBreaker

from veriglot.plugins import read_package_data
from veriglot.text.normalization import fold
from veriglot.text.unicode import Kind, code_points, kind_table, text_of

if TYPE_CHECKING:
    from veriglot.arrays import Int32s, Int64s, UInt8s, UInt32s
__all__ = ["clusters", "folded_words", "sentences", "space_of", "word_bounds", "words"]


# Languages without spaces between words and sentences.


_UNSPACED = frozenset({"zh", "yue", "ja", "th", "lo", "km", "my"})


def space_of(language: str) -> str:
    """The separator between words and between sentences: a space, or an empty string."""
    return "" if language.split("-")[0] in _UNSPACED else " "


def segment_ends(breaker: type[BaseBreaker], text: str, codes: UInt32s, locale: str) -> Int64s:
    """The end of each segment of `text`, in code points, in order; the segments cover the text.

    ICU does not accept lone surrogates; they are replaced by the replacement character.
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
_LOOK_BACK = 200  # code points: of longer sentences only the end is checked, so that time stays linear
_MIN_UNMARKED = 60  # code points; Thai clauses also have spaces between them, but sentences are rarely shorter


def sentences(text: str, language: str | None = None) -> list[tuple[int, int]]:
    """The sentences of a text as half-open code point ranges, in order.

    Every code point that is not white space lies in exactly one sentence, and no sentence begins or ends with white
    space. A text of white space has none.

    Args:
        text: any text.
        language: a BCP 47 tag for the abbreviations, or None if unknown.
    """
    return [*_sentences(text, language)]


@lru_cache(16)  # several rules split the texts of a sample
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
        ranges.extend(_split_at_spaces(text, start, end))
        start = end
    solid = np.flatnonzero(kinds & Kind.SPACE == 0)
    bounds = np.searchsorted(solid, np.array(ranges, np.int64).reshape(-1, 2))
    low, high = bounds[bounds[:, 0] < bounds[:, 1]].T
    return tuple(zip(solid[low].tolist(), (solid[high - 1] + 1).tolist(), strict=True))


def _missing_spaces(codes: UInt32s, kinds: UInt8s) -> Int64s:
    """Ends of full stops between a lower-case letter and a capitalised word, without a space (`end.Next`)."""
    stops = np.flatnonzero(codes[1:-2] == _FULL_STOP) + 1
    upper, lower = int(Kind.UPPER), int(Kind.LOWER)
    glued = (kinds[stops - 1] & lower != 0) & (kinds[stops + 1] & upper != 0) & (kinds[stops + 2] & lower != 0)
    ends: Int64s = stops[glued] + 1
    return ends


def _ends_sentence(text: str, start: int, end: int, language: str | None) -> bool:
    """Whether a sentence really ends at `end`, a boundary of UAX 29."""
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
        return last != "I" or base not in ("", "en")  # an initial, possibly with vowel signs; not the pronoun `I`
    lower = last.lower()
    if lower in _abbreviations()["any"] or lower in _abbreviations().get(base, ()):
        return True
    initials = last.split(".")
    return len(initials) > 1 and all(len(part) == 1 and part.isupper() for part in initials)


@cache
def _abbreviations() -> dict[str, frozenset[str]]:
    listed = read_package_data(__package__, "abbreviations.json", dict[str, str])
    return {tag: frozenset(forms.split()) for tag, forms in listed.items()}


def _split_at_spaces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """A range split at spaces between Thai or Lao letters, if it is long."""
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


# Characters as users perceive them: Unicode's extended grapheme clusters (UAX 29), in code points.


def grapheme_ends(text: str) -> Int64s:
    """The end of each character, in code points, in order; the last one is the length of the text."""
    return segment_ends(CharacterBreaker, text, code_points(text), "root")


def clusters(text: str) -> list[tuple[int, int]]:
    """The characters of more than one code point, as half-open ranges in order.

    Examples are a letter with combining marks, a syllable of Devanagari, a flag, a family emoji. A span that begins or
    ends inside one would cut a character in two.
    """
    ends = grapheme_ends(text)
    starts = np.append(0, ends)[:-1]
    long = ends - starts > 1
    return list(zip(starts[long].tolist(), ends[long].tolist(), strict=True))


# Words: starts and ends, in code points.
#
# A word is a segment with at least one letter or digit, by Unicode's word boundaries (UAX 29) with ICU's dictionaries
# for Chinese, Japanese, Thai, Lao, Khmer and Burmese. In particular:
#
# - numbers include their inner marks (`1,234.5` is one word); a date or range with dashes or slashes is several words;
# - an apostrophe inside stays inside (`can't`), except after an elided article or pronoun of the Romance languages
#   (`l'homme` is `l` and `homme`), in whatever language, so that the same text always gives the same words;
# - a hyphen separates words, and so does a colon (but not in Finnish and Swedish: `EU:n`); an underscore joins them; a
#   full stop joins letters (`example.com`), but not a lower-case letter to a capital (`end.Next` is two words without
#   their space);
# - Arabic and Hebrew clitics belong to their word; Korean words are separated by spaces;
# - combining marks and joiners belong to their letter; no word begins or ends with a format character;
# - punctuation, symbols and emoji are no words.


_WORD = int(Kind.LETTER | Kind.DIGIT)
_LANGUAGES_WITH_COLON = {"fi", "sv"}
_SEPARATORS = (0x27, 0x2019, 0x2E)  # apostrophes and the full stop, which separate some words
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
        text: any text; lone surrogates count as replacement characters, so they are never part of a word.
        language: a BCP 47 tag, or None; only used for Finnish and Swedish, whose words may contain a colon.
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
    marks = _SEPARATORS if joined else (*_SEPARATORS, _COLON)
    starts, ends = _split_inside(text, codes, kinds, starts, ends, marks)
    return np.stack([starts, ends], 1).astype(np.int32)


def _without_edges(starts: Int64s, ends: Int64s, kinds: UInt8s) -> tuple[Int64s, Int64s]:
    """Strip format characters and connectors from the ends of words; each contains a letter or digit, so this stops."""
    while (loose := kinds[ends - 1] & Kind.EDGE != 0).any():
        ends = ends - loose
    while (loose := kinds[starts] & (_WORD | Kind.MARK) == 0).any():
        starts = starts + loose
    return starts, ends


def _split_inside(
    text: str, codes: UInt32s, kinds: UInt8s, starts: Int64s, ends: Int64s, separators: tuple[int, ...]
) -> tuple[Int64s, Int64s]:
    """Words split at the marks in `separators` for which `_separates` is true; the mark is dropped."""
    marks = np.logical_or.reduce([codes == mark for mark in separators])
    if not marks.any():
        return starts, ends
    places = np.flatnonzero(marks[1:-1]) + 1
    letters = kinds & Kind.LETTER != 0
    places = places[letters[places - 1] & letters[places + 1]]
    owner = np.searchsorted(starts, places, "right") - 1
    cuts = [
        index
        for index, word in zip(places.tolist(), owner.tolist(), strict=True)
        if word >= 0 and index < ends[word] and _separates(text, kinds, int(starts[word]), index)
    ]
    if not cuts:
        return starts, ends
    at = np.array(cuts)
    return np.sort(np.concatenate([starts, at + 1])), np.sort(np.concatenate([ends, at]))


def _separates(text: str, kinds: UInt8s, start: int, index: int) -> bool:
    """Whether the mark at `index`, between two letters of the word from `start` on, separates two words."""
    if text[index] == ":":
        return True
    if text[index] == ".":
        return bool(kinds[index - 1] & Kind.LOWER and kinds[index + 1] & Kind.UPPER)
    elided = _ELIDED.fullmatch(text, start, index) is not None
    return elided and index + 2 < len(text) and bool(kinds[index + 2] & Kind.LETTER)
