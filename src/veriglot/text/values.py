"""Dates, numbers and names of a sentence, and the words by which its facts are told apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "CLOSING",
    "OPENING",
    "Rules",
    "Run",
    "SentenceWords",
    "dates",
    "joined_runs",
    "languages_with_rules",
    "rules_of",
    "values",
]


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
    result: list[Run] = []
    index = 0
    while index < len(words):
        if not _part_of_date(words, rules, index):
            index += 1
            continue
        end = _end_of_date(words, rules, index)
        if _is_date(words, rules, index, end):
            result.append((index, end))
        index = end
    return result


def _part_of_date(words: SentenceWords, rules: Rules, index: int) -> bool:
    return words.has_digit(index) or rules.in_date(words.folded[index])


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


def _follows(words: SentenceWords, index: int) -> bool:
    gap = words.gaps[index]
    return _IN_DATE.fullmatch(gap) is not None and _SPACED_DASH.search(gap) is None


def _bridged(words: SentenceWords, rules: Rules, index: int) -> bool:
    """Whether a word such as the `de` of `14 de marzo de 1879` stands between two parts of a date."""
    return (
        index + 1 < len(words)
        and words.folded[index] in rules.of | rules.before
        and words.joined(index)
        and words.joined(index + 1)
        and _part_of_date(words, rules, index + 1)
        and (words.folded[index - 1] in rules.months or words.folded[index + 1] in rules.months)
    )


def _is_year(words: SentenceWords, index: int) -> bool:
    word = words.folded[index]
    return _YEAR.fullmatch(word) is not None and 1000 <= int(word) <= 2100


def _is_date(words: SentenceWords, rules: Rules, start: int, end: int) -> bool:
    numbers = [index for index in range(start, end) if words.has_digit(index)]
    if numbers and any(rules.in_date(words.folded[index]) for index in range(start, end)):
        return True
    return any(_is_year(words, index) or _ends_as_date(words.folded[index], rules) for index in numbers)


def _ends_as_date(word: str, rules: Rules) -> bool:
    """Whether a number is written together with a word of a date, as in `1879년`."""
    tail = word.lstrip("0123456789")
    return tail != word and tail in rules.dates


def values(words: SentenceWords, rules: Rules, runs: Sequence[Run], date_runs: Sequence[Run]) -> list[Value]:
    """The values of one clause, in order and disjoint, each with its prepositions and postpositions.

    Args:
        words: the sentence.
        rules: of its language.
        runs: the clause, as runs of words.
        found: the dates of the sentence.
    """
    result: list[Value] = []
    for first, last in runs:
        index = first
        while index < last:
            value = _value_at(words, rules, index, (result[-1].run[1] if result else first, last), date_runs)
            if value is None:
                index += 1
                continue
            start, end = max(first, value.run[0]), value.run[1]
            if result and result[-1].run[1] == start - 1 >= first and words.folded[start - 1] in rules.perhaps:
                start -= 1  # `1918 and 1922`
            result.append(value._replace(run=(start, end)))
            index = end
    return result


def _value_at(words: SentenceWords, rules: Rules, index: int, bounds: Run, date_runs: Sequence[Run]) -> Value | None:
    """The value whose first number, word of a date or capital letter stands at `place`; `bounds` is its clause."""
    low, high = bounds
    for start, end in date_runs:
        if start == index:
            return Value(_extended(words, rules, (start, min(end, high)), bounds), "date")
    if words.has_digit(index):
        return Value(_extended(words, rules, _with_unit(words, rules, index, high), bounds), "number")
    if rules.names and words.capitalised(index):
        lead = _lead(words, rules.before - rules.of, index, low)
        if lead < index:
            return Value((lead, _end_of_name(words, rules, index, high)), "name")
    return None


def _with_unit(words: SentenceWords, rules: Rules, index: int, high: int) -> Run:
    """A number with the word that says of what, where one follows."""
    end = index + 1
    while end < high and words.has_digit(end) and words.joined(end):
        end += 1
    taken = rules.before | rules.verbs | rules.perhaps | rules.always | rules.after
    for spaced in (False, True):  # a second word, as in `58 square kilometres`, only where words have spaces
        if end >= high or not words.joined(end) or words.folded[end] in taken or (spaced and not words.gaps[end]):
            break
        end += 1
    return index, end


def _extended(words: SentenceWords, rules: Rules, run: Run, bounds: Run) -> Run:
    """A date or number with the prepositions before it and the suffix or postposition after it."""
    low, high = bounds
    start, end = run
    if end < high and (words.glued(end) or (words.folded[end] in rules.after and words.joined(end))):
        end += 1
    return _lead(words, rules.before, start, low), end


def _lead(words: SentenceWords, prepositions: frozenset[str], index: int, low: int) -> int:
    """Where the prepositions begin that stand before `place`, an article between them and it or not."""
    start = index
    if (
        start - 2 >= low
        and words.folded[start - 1] not in prepositions
        and words.folded[start - 2] in prepositions
        and len(words.folded[start - 1]) <= _ARTICLE
        and not words.capitalised(start - 1)
        and words.joined(start)
    ):
        start -= 1
    while start > low and start > index - 3 and words.folded[start - 1] in prepositions and words.joined(start):
        start -= 1
    return start if start == index or words.folded[start] in prepositions else index


def _end_of_name(words: SentenceWords, rules: Rules, index: int, high: int) -> int:
    end = index + 1
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


# The words by which the facts of a sentence are told apart, language by language.
#
# `fact_rules.json` was written for Veriglot; `tools/build_month_names.py` makes `months.json` from the Unicode Common
# Locale Data Repository. All words are casefolded.


_ENUMERATING = frozenset({"zh", "yue"})  # where the ideographic comma parts the items of a list, and no clauses


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """One language as it stands in the data file; see `Rules`."""

    perhaps: str = ""
    always: str = ""
    verbs: str = ""
    pronouns: str = ""
    before: str = ""
    of: str = ""
    after: str = ""
    dates: str = ""
    topics: str = ""
    topic_endings: str = ""
    names: bool = True
    spaces: bool = False
    short: int = 3


@dataclass(frozen=True)
class Rules:
    """What is known of one language.

    Attributes:
        perhaps: words that begin a clause where both sides of them are long, or a verb or pronoun follows.
        always: words that begin a clause wherever they stand.
        verbs: copulas and auxiliaries; after an apposition they take the sentence up again.
        pronouns: subjects that begin a clause after one of `perhaps`.
        before: prepositions that make an adjunct of the date, number or name after them.
        of: those of `before` that tie a name to the noun before it instead.
        after: postpositions and the like that belong to the date or number before them.
        months: names of months.
        dates: other words of a date: year, century, era.
        topics: particles after which the sentence goes on, whatever the comma says.
        topic_endings: the same, as endings of words.
        names: whether a capital letter tells a name from a noun.
        spaces: whether a space may part clauses (Thai).
        commas: the marks that may part clauses.
        short: words that a clause has at the least.
    """

    perhaps: frozenset[str]
    always: frozenset[str]
    verbs: frozenset[str]
    pronouns: frozenset[str]
    before: frozenset[str]
    of: frozenset[str]
    after: frozenset[str]
    months: frozenset[str]
    dates: frozenset[str]
    topics: frozenset[str]
    topic_endings: tuple[str, ...]
    names: bool
    spaces: bool
    commas: str
    short: int

    @property
    def long(self) -> int:
        """Words on each side of one of `perhaps` that make two clauses of them."""
        return self.short + 2

    def in_date(self, word: str) -> bool:
        """Whether a casefolded word may stand in a date."""
        return word in self.months or word in self.dates


@cache
def _entries() -> dict[str, _Entry]:
    data = files(__package__).joinpath("fact_rules.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, _Entry])


@cache
def _months() -> dict[str, str]:
    return msgspec.json.decode(files(__package__).joinpath("months.json").read_bytes(), type=dict[str, str])


def languages_with_rules() -> tuple[str, ...]:
    """The primary subtags of the languages that have rules, sorted."""
    return tuple(sorted(_entries()))


def rules_of(language: str | None) -> Rules | None:
    """The rules of a language by its tag (`zh-Hant`, `sr-Latn`, `pt-BR`); None where there are none."""
    return _rules(language.partition("-")[0].lower()) if language else None


@cache
def _rules(base: str) -> Rules | None:
    entry = _entries().get(base)
    if entry is None:
        return None
    return Rules(
        perhaps=frozenset(entry.perhaps.split()),
        always=frozenset(entry.always.split()),
        verbs=frozenset(entry.verbs.split()),
        pronouns=frozenset(entry.pronouns.split()),
        before=frozenset(entry.before.split()),
        of=frozenset(entry.of.split()),
        after=frozenset(entry.after.split()),
        months=frozenset(_months().get(base, "").split()),
        dates=frozenset(entry.dates.casefold().split()),
        topics=frozenset(entry.topics.split()),
        topic_endings=tuple(entry.topic_endings.split()),
        names=entry.names,
        spaces=entry.spaces,
        commas=",，،" if base in _ENUMERATING else ",，،、",
        short=entry.short,
    )


# One sentence as words and the gaps between them: what the rules of facts look at.


Run = tuple[int, int]  # half-open, counted in words of the sentence

OPENING = frozenset("([{（［【〔")
CLOSING = frozenset(")]}）］】〕")
_PLAIN = re.compile(r"[\s'’\u00a0\-]*")


@dataclass(frozen=True)
class SentenceWords:
    """The words of one sentence.

    Attributes:
        text: the whole text.
        bounds: the words of the sentence, half-open in code points of the text, in order.
        folded: the same words, casefolded.
        gaps: what stands before each word, since the word before it or the beginning of the sentence.
    """

    text: str
    bounds: list[tuple[int, int]]
    folded: list[str]
    gaps: list[str]

    @classmethod
    def of(cls, text: str, start: int, bounds: list[tuple[int, int]]) -> SentenceWords:
        """The words `bounds` of the sentence that begins at `start`."""
        ends = [start, *(end for _, end in bounds)]
        gaps = [text[ends[index] : first] for index, (first, _) in enumerate(bounds)]
        return cls(text, bounds, [text[first:end].casefold() for first, end in bounds], gaps)

    def __len__(self) -> int:
        return len(self.bounds)

    def capitalised(self, index: int) -> bool:
        """Whether a word begins with a capital letter."""
        first = self.text[self.bounds[index][0]]
        return first.isupper() or first.istitle()

    def has_digit(self, index: int) -> bool:
        """Whether a word holds a decimal digit of any script."""
        return any(char.isdecimal() for char in self.folded[index])

    def joined(self, index: int) -> bool:
        """Whether nothing but space, an apostrophe or a hyphen parts a word from the one before it."""
        return _PLAIN.fullmatch(self.gaps[index]) is not None

    def glued(self, index: int) -> bool:
        """Whether a word is written together with the one before it, as a suffix is: `1921'de`, `1921-ben`."""
        gap = self.gaps[index]
        return gap != "" and not any(char.isspace() for char in gap) and _PLAIN.fullmatch(gap) is not None

    def places(self, runs: Iterable[Run]) -> tuple[tuple[int, int], ...]:
        """Runs of words as half-open ranges of code points; runs that follow on each other become one."""
        return tuple((self.bounds[first][0], self.bounds[end - 1][1]) for first, end in joined_runs(runs))


def joined_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Disjoint runs in order; those that follow on each other become one."""
    merged: list[Run] = []
    for first, end in sorted(runs):
        if merged and merged[-1][1] == first:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((first, end))
    return tuple(merged)
