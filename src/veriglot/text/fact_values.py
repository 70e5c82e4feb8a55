"""Dates, numbers and names in a sentence: what is checked by itself, whatever else the sentence says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.text.fact_rules import Rules
    from veriglot.text.fact_words import Run, SentenceWords

__all__ = ["Value", "dates", "values"]

_IN_DATE = re.compile(r"[\s.,/'’·º°ª\-–]*")
_SPACED_DASH = re.compile(r"\s[-–—]+\s")
_YEAR = re.compile(r"\d{4}")
_ARTICLE = 3  # letters that an article has at the most


class Value(NamedTuple):
    """A date, a number or a name with the words that tie it to its sentence, as a run of words."""

    run: Run
    kind: Literal["date", "number", "name"]


def dates(words: SentenceWords, rules: Rules) -> list[Run]:
    """The dates of a sentence as runs of words, without prepositions: a year, a day, a range of years without spaces.

    A word for a month or a year is in a date only beside a number.
    """
    found: list[Run] = []
    place = 0
    while place < len(words):
        if not _part_of_date(words, rules, place):
            place += 1
            continue
        end = _end_of_date(words, rules, place)
        if _is_date(words, rules, place, end):
            found.append((place, end))
        place = end
    return found


def _part_of_date(words: SentenceWords, rules: Rules, place: int) -> bool:
    return words.has_digit(place) or rules.in_date(words.folded[place])


def _end_of_date(words: SentenceWords, rules: Rules, start: int) -> int:
    end = start + 1
    while end < len(words):
        if _follows(words, end) and _part_of_date(words, rules, end):
            if "," in words.gaps[end] and (_is_year(words, end - 1) or not _is_year(words, end)):
                break  # `1914, 1918` are two; `March 14, 1879` is one
            end += 1
        elif _bridged(words, rules, end):
            end += 2
        elif words.glued(end) and words.has_digit(end - 1):  # `4-an de majo`
            end += 1
        else:
            break
    return end


def _follows(words: SentenceWords, place: int) -> bool:
    gap = words.gaps[place]
    return _IN_DATE.fullmatch(gap) is not None and _SPACED_DASH.search(gap) is None


def _bridged(words: SentenceWords, rules: Rules, place: int) -> bool:
    """Whether a word such as the `de` of `14 de marzo de 1879` stands between two parts of a date."""
    return (
        place + 1 < len(words)
        and words.folded[place] in rules.of | rules.before
        and words.joined(place)
        and words.joined(place + 1)
        and _part_of_date(words, rules, place + 1)
        and (words.folded[place - 1] in rules.months or words.folded[place + 1] in rules.months)
    )


def _is_year(words: SentenceWords, place: int) -> bool:
    word = words.folded[place]
    return _YEAR.fullmatch(word) is not None and 1000 <= int(word) <= 2100


def _is_date(words: SentenceWords, rules: Rules, start: int, end: int) -> bool:
    numbers = [place for place in range(start, end) if words.has_digit(place)]
    if numbers and any(rules.in_date(words.folded[place]) for place in range(start, end)):
        return True
    return any(_is_year(words, place) or _ends_as_date(words.folded[place], rules) for place in numbers)


def _ends_as_date(word: str, rules: Rules) -> bool:
    """Whether a number is written together with a word of a date, as in `1879년`."""
    tail = word.lstrip("0123456789")
    return tail != word and tail in rules.dates


def values(words: SentenceWords, rules: Rules, runs: Sequence[Run], found: Sequence[Run]) -> list[Value]:
    """The values of one clause, in order and disjoint, each with its prepositions and postpositions.

    Args:
        words: the sentence.
        rules: of its language.
        runs: the clause, as runs of words.
        found: the dates of the sentence.
    """
    result: list[Value] = []
    for first, last in runs:
        place = first
        while place < last:
            value = _value_at(words, rules, place, (result[-1].run[1] if result else first, last), found)
            if value is None:
                place += 1
                continue
            start, end = max(first, value.run[0]), value.run[1]
            if result and result[-1].run[1] == start - 1 >= first and words.folded[start - 1] in rules.perhaps:
                start -= 1  # `1918 and 1922`
            result.append(value._replace(run=(start, end)))
            place = end
    return result


def _value_at(words: SentenceWords, rules: Rules, place: int, bounds: Run, found: Sequence[Run]) -> Value | None:
    """The value whose first number, word of a date or capital letter stands at `place`; `bounds` is its clause."""
    low, high = bounds
    for start, end in found:
        if start == place:
            return Value(_extended(words, rules, (start, min(end, high)), bounds), "date")
    if words.has_digit(place):
        return Value(_extended(words, rules, _with_unit(words, rules, place, high), bounds), "number")
    if rules.names and words.capitalised(place):
        lead = _lead(words, rules.before - rules.of, place, low)
        if lead < place:
            return Value((lead, _end_of_name(words, rules, place, high)), "name")
    return None


def _with_unit(words: SentenceWords, rules: Rules, place: int, high: int) -> Run:
    """A number with the word that says of what, where one follows."""
    end = place + 1
    while end < high and words.has_digit(end) and words.joined(end):
        end += 1
    taken = rules.before | rules.verbs | rules.perhaps | rules.always | rules.after
    for spaced in (False, True):  # a second word, as in `58 square kilometres`, only where words have spaces
        if end >= high or not words.joined(end) or words.folded[end] in taken or (spaced and not words.gaps[end]):
            break
        end += 1
    return place, end


def _extended(words: SentenceWords, rules: Rules, run: Run, bounds: Run) -> Run:
    """A date or number with the prepositions before it and the suffix or postposition after it."""
    low, high = bounds
    start, end = run
    if end < high and (words.glued(end) or (words.folded[end] in rules.after and words.joined(end))):
        end += 1
    return _lead(words, rules.before, start, low), end


def _lead(words: SentenceWords, prepositions: frozenset[str], place: int, low: int) -> int:
    """Where the prepositions begin that stand before `place`, an article between them and it or not."""
    start = place
    if (
        start - 2 >= low
        and words.folded[start - 1] not in prepositions
        and words.folded[start - 2] in prepositions
        and len(words.folded[start - 1]) <= _ARTICLE
        and not words.capitalised(start - 1)
        and words.joined(start)
    ):
        start -= 1
    while start > low and start > place - 3 and words.folded[start - 1] in prepositions and words.joined(start):
        start -= 1
    return start if start == place or words.folded[start] in prepositions else place


def _end_of_name(words: SentenceWords, rules: Rules, place: int, high: int) -> int:
    end = place + 1
    while end < high:
        step = 1 if words.capitalised(end) else 2
        if end + step > high or not words.capitalised(end + step - 1):
            break
        if step == 2 and (words.folded[end] not in rules.of or not words.joined(end + 1)):
            break
        if not words.joined(end) and words.gaps[end].strip() not in (",", "."):  # `Brescia, Italy`, `J. F. Kennedy`
            break
        end += step
    return end
