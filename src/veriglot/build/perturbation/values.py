"""Names, numbers and dates of a sentence, each with the shape that another one must have to stand in its place."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from veriglot.build.prompts import known_language
from veriglot.text import fold, script_of, words
from veriglot.text.fact_rules import rules_of
from veriglot.text.fact_values import dates
from veriglot.text.fact_words import SentenceWords
from veriglot.text.spacing import space_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Value", "ValueKind", "ending", "has_case", "values_of"]

ValueKind = Literal["date", "number", "name"]

_CASED = frozenset({"Latn", "Cyrl", "Grek", "Armn"})
_MOST_WORDS = 3  # of a name
_QUOTED = re.compile(
    r"[《『]([^《》『』]{2,20})[》』]|[「“„«]([^「」“”„«»]{2,10})[」”“»]"
)  # a work, or what is called so
_TIES = frozenset("-\u2010\u2011'’")
_NUMBER = re.compile(r"\d")
_GROUPED = 3  # digits
_GROUP = re.compile(r"[ \u00a0\u202f]\d{3}(?!\d)")
_LED = re.compile(r"\d[ \u00a0\u202f]$")


class Value(NamedTuple):
    """A name, number or date; half-open in code points of its sentence."""

    start: int
    end: int
    kind: ValueKind
    shape: str


def has_case(language: str) -> bool:
    """Whether the language is written with capital letters, which tell names."""
    entry = known_language(language)
    return entry is None or entry.script in _CASED


def ending(word: str, language: str) -> str:
    """What two words must share to be taken for forms of one kind: their last two letters, or their length."""
    return fold(word)[-2:] if space_of(language) else str(min(len(word), 4))


def values_of(
    sentence: str,
    language: str,
    rare: Callable[[str], bool],
    title: str = "",
    is_noun: Callable[[str, str], bool] = lambda _before, _word: False,
) -> list[Value]:
    """The values of a sentence, in order, not overlapping.

    Args:
        sentence: one sentence.
        language: BCP 47 tag. Where it has no capital letters, a name is the title, what stands in quotation marks, a
            word in Latin letters, or a rare word.
        rare: whether a folded word stands in few articles, as those of names do.
        title: what the article is about.
        is_noun: whether a capitalised word, after another word, is a noun and no name.
    """
    bounds = words(sentence, language)
    found = _dates(sentence, language, bounds)
    found += [
        Value(s, e, "number", _digits(sentence[s:e]))
        for s, e in bounds
        if _NUMBER.match(sentence[s:e]) and _free(found, s, e) and not _grouped(sentence, s, e)
    ]
    if has_case(language):
        named = _proper(sentence, language, bounds, found, is_noun)
        found += _capitalised(sentence, language, named, rare)
    else:
        for start, end in _named(sentence, language, bounds, rare, title):
            if _free(found, start, end):
                found.append(Value(start, end, "name", _name_shape(sentence[start:end], 1, language)))
    return sorted(found)


def _free(found: list[Value], start: int, end: int) -> bool:
    return all(end <= one.start or one.end <= start for one in found)


def _grouped(sentence: str, start: int, end: int) -> bool:
    """Whether a number is part of one that is written in groups: `8 120 000`."""
    after = _GROUP.match(sentence, end)
    before = _LED.search(sentence, max(0, start - 4), start)
    return after is not None or (before is not None and end - start == _GROUPED and sentence[start:end].isdecimal())


def _dates(sentence: str, language: str, bounds: list[tuple[int, int]]) -> list[Value]:
    rules = rules_of(language)
    if rules is None:
        return []
    whole = SentenceWords.of(sentence, 0, bounds)
    found = []
    for first, end in dates(whole, rules):
        if end - first > 1 and any(whole.has_digit(i) for i in range(first, end)):
            start, stop = bounds[first][0], bounds[end - 1][1]
            found.append(Value(start, stop, "date", _date_shape(sentence, bounds[first:end], rules.months)))
    return found


def _date_shape(sentence: str, bounds: list[tuple[int, int]], months: frozenset[str]) -> str:
    """A date with digits and months taken out of it: `18 March 1871` is `## * ####`."""
    parts, read = [], bounds[0][0]
    for start, end in bounds:
        word = sentence[start:end]
        parts += [sentence[read:start], "*" if word.casefold() in months else _digits(word)]
        read = end
    return "".join(parts)


def _digits(word: str) -> str:
    """A word with its digits taken out; one digit or two look alike."""
    return re.sub(r"(?<![\d])\d(?!\d)", "##", re.sub(r"\d{2,}", lambda m: "#" * len(m[0]), word))


def _proper(
    sentence: str, language: str, bounds: list[tuple[int, int]], taken: list[Value], is_noun: Callable[[str, str], bool]
) -> list[tuple[int, int]]:
    """The capitalised words that may be part of a name: not the first of the sentence, and no month after a number.

    A month that is no part of a date has an ending that hides it: `9 Mayıstaki`.
    """
    rules = rules_of(language)
    months = tuple(rules.months) if rules is not None else ()
    found = []
    for (before_start, before_end), (start, end) in pairwise(bounds):
        before, word = sentence[before_start:before_end], sentence[start:end]
        if not word[0].isupper() or not word.isalpha() or not _free(taken, start, end):
            continue
        if (before[-1].isdecimal() and word.casefold().startswith(months)) or is_noun(before, word):
            continue
        found.append((start, end))
    return found


def _capitalised(
    sentence: str, language: str, bounds: list[tuple[int, int]], rare: Callable[[str], bool]
) -> list[Value]:
    """Runs of words that may be part of a name, at least one of them rare."""
    runs: list[list[tuple[int, int]]] = []
    for start, end in bounds:
        if runs and len(runs[-1]) < _MOST_WORDS and sentence[runs[-1][-1][1] : start] == " ":
            runs[-1].append((start, end))
        else:
            runs.append([(start, end)])
    return [
        Value(run[0][0], run[-1][1], "name", _name_shape(sentence[run[0][0] : run[-1][1]], len(run), language))
        for run in runs
        if run[-1][1] - run[0][0] > 2
        and not _tied(sentence, run[0][0], run[-1][1])
        and any(rare(fold(sentence[s:e])) for s, e in run)
    ]


def _tied(sentence: str, start: int, end: int) -> bool:
    """Whether a hyphen or an apostrophe makes a range part of a longer word."""
    return sentence[max(0, start - 1) : start] in _TIES or sentence[end : end + 1] in _TIES


def _named(
    sentence: str, language: str, bounds: list[tuple[int, int]], rare: Callable[[str], bool], title: str
) -> list[tuple[int, int]]:
    """What may be a name where there are no capital letters."""
    found: list[tuple[int, int]] = []
    if title and title in sentence:
        start = sentence.index(title)
        if _whole(bounds, start, start + len(title)):
            found.append((start, start + len(title)))
    found += [match.span(match.lastindex or 0) for match in _QUOTED.finditer(sentence)]
    shortest = 4 if space_of(language) else 2
    for start, end in bounds:
        word = sentence[start:end]
        if not word.isalpha():
            continue
        if word[0].isupper() or (end - start >= shortest and rare(fold(word))):
            found.append((start, end))
    kept: list[tuple[int, int]] = []
    for start, end in found:
        if all(end <= s or e <= start for s, e in kept):
            kept.append((start, end))
    return kept


def _whole(bounds: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether a range begins and ends where words do."""
    return any(s == start for s, _ in bounds) and any(e == end for _, e in bounds)


def _name_shape(name: str, count: int, language: str) -> str:
    return f"{script_of(name)} {count} {ending(name, language)}"
