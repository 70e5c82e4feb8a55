"""Atomic facts: the units of a response that can be checked one by one, found by rules and without a language model.

A sentence is parted into clauses and what is set into them, and each clause into what it says and its dates, numbers
and names, by words and marks of each language. Every word stands in exactly one fact, the one whose truth hangs on it:
in "Ada was born in Paris in 1901" the date is a fact of its own (`in 1901`), whose context (`Ada was born`) belongs to
the fact before it. So a wrong year is one wrong fact, not two.

After Kang et al. (Kang, Blevins, Zettlemoyer 2024, section 5.1 and Table 5: single simple facts, and "each date is
counted as one fact, except for birthdates and death dates, which are counted as two") and FActScore (Min et al. 2023).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from veriglot.plugins import packaged
from veriglot.text.segmentation import sentences, words
from veriglot.text.values import month_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Fact", "SentenceWords", "dates", "fact_languages", "facts", "rules_of"]


# The words by which the facts of a sentence are told apart, language by language.
#
# `fact_rules.json` was written for Veriglot; the names of months are those of `values`. All words are casefolded.


_ENUMERATING = frozenset({"zh", "yue"})  # where the ideographic comma parts the items of a list, and no clauses


class _Rules(msgspec.Struct, forbid_unknown_fields=True):
    """What is known of one language, as words unless it is said otherwise."""

    months: frozenset[str]  # names of months
    commas: str  # the marks that may part clauses
    # words that begin a clause where both sides of them are long, or a verb or pronoun follows
    perhaps: frozenset[str] = frozenset()
    always: frozenset[str] = frozenset()  # words that begin a clause wherever they stand
    verbs: frozenset[str] = frozenset()  # copulas and auxiliaries; after an apposition they take the sentence up again
    pronouns: frozenset[str] = frozenset()  # subjects that begin a clause after one of `perhaps`
    before: frozenset[str] = frozenset()  # prepositions that make an adjunct of the date, number or name after them
    of: frozenset[str] = frozenset()  # those of `before` that tie a name to the noun before it instead
    after: frozenset[str] = frozenset()  # postpositions and the like that belong to the date or number before them
    dates: frozenset[str] = frozenset()  # other words of a date: year, century, era
    topics: frozenset[str] = frozenset()  # particles after which the sentence goes on, whatever the comma says
    topic_endings: tuple[str, ...] = ()  # the same, as endings of words
    names: bool = True  # whether a capital letter tells a name from a noun
    spaces: bool = False  # whether a space may part clauses (Thai)
    short: int = 3  # words that a clause has at the least

    @property
    def long(self) -> int:
        """Words on each side of one of `perhaps` that make two clauses of them."""
        return self.short + 2

    def in_date(self, word: str) -> bool:
        """Whether a casefolded word may stand in a date."""
        return word in self.months or word in self.dates


@cache
def _entries() -> dict[str, dict[str, str | bool | int]]:
    return packaged(__package__, "fact_rules.json", dict[str, dict[str, str | bool | int]])


def rules_of(language: str | None) -> _Rules | None:
    """The rules of a language by its tag (`zh-Hant`, `sr-Latn`, `pt-BR`); None where there are none."""
    return _rules(language.partition("-")[0].lower()) if language else None


@cache
def _rules(base: str) -> _Rules | None:
    entry = _entries().get(base)
    if entry is None:
        return None
    commas = ",，،" if base in _ENUMERATING else ",，،、"
    listed = {name: value.split() if isinstance(value, str) else value for name, value in entry.items()}
    return msgspec.convert({"months": frozenset().union(*month_names(base)), "commas": commas, **listed}, _Rules)


# One sentence as words and the gaps between them: what the rules of facts look at.


_Run = tuple[int, int]  # half-open, counted in words of the sentence, or in code points

_OPENING = frozenset("([{（［【〔")
_CLOSING = frozenset(")]}）］】〕")
_PLAIN = re.compile(r"[\s'’\u00a0\-]*")


class SentenceWords:
    """The words of one sentence, half-open in code points of the whole text, and casefolded.

    `gaps` holds what stands before each word, since the word before it or the beginning of the sentence.

    Args:
        text: the whole text.
        start: where the sentence begins in it.
        bounds: where its words stand in it.
    """

    def __init__(self, text: str, start: int, bounds: list[tuple[int, int]]) -> None:
        self.text, self.bounds = text, bounds
        self.folded = [text[first:end].casefold() for first, end in bounds]
        ends = [start, *(end for _, end in bounds)]
        self.gaps = [text[end:first] for end, (first, _) in zip(ends, bounds, strict=False)]

    def __len__(self) -> int:
        return len(self.bounds)

    def capitalised(self, index: int) -> bool:
        """Whether a word begins with a capital letter."""
        first = self.text[self.bounds[index][0]]
        return first.isupper() or first.istitle()

    def has_digit(self, index: int) -> bool:
        """Whether a word holds a decimal digit of any script."""
        return any(map(str.isdecimal, self.folded[index]))

    def joined(self, index: int) -> bool:
        """Whether nothing but space, an apostrophe or a hyphen parts a word from the one before it."""
        return _PLAIN.fullmatch(self.gaps[index]) is not None

    def glued(self, index: int) -> bool:
        """Whether a word is written together with the one before it, as a suffix is: `1921'de`, `1921-ben`."""
        return re.fullmatch(r"['’\-]+", self.gaps[index]) is not None

    def places(self, runs: Iterable[_Run]) -> tuple[tuple[int, int], ...]:
        """Runs of words as half-open ranges of code points; runs that follow on each other become one."""
        return tuple((self.bounds[first][0], self.bounds[end - 1][1]) for first, end in _joined_runs(runs))


def _joined_runs(runs: Iterable[_Run]) -> tuple[_Run, ...]:
    """Disjoint runs in order; those that follow on each other become one."""
    merged: list[_Run] = []
    for first, end in sorted(runs):
        if merged and merged[-1][1] == first:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((first, end))
    return tuple(merged)


# Dates, numbers and names of a sentence.


_IN_DATE = re.compile(r"[\s.,/'’·º°ª\-–]*")
_SPACED_DASH = re.compile(r"\s[-–—]+\s")
_YEAR = re.compile(r"\d{4}")
_ARTICLE = 3  # letters that an article has at the most


class _Value(NamedTuple):
    """A date, a number or a name with the words that tie it to its sentence, as a run of words."""

    run: _Run
    kind: Literal["date", "number", "name"]


def dates(words: SentenceWords, rules: _Rules) -> list[_Run]:
    """The dates of a sentence as runs of words, without prepositions: a year, a day, a range of years without spaces.

    A word for a month or a year is in a date only beside a number.
    """
    result = []
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


def _part_of_date(words: SentenceWords, rules: _Rules, index: int) -> bool:
    return words.has_digit(index) or rules.in_date(words.folded[index])


def _end_of_date(words: SentenceWords, rules: _Rules, start: int) -> int:
    end = start + 1
    while end < len(words):
        gap = words.gaps[end]
        follows = _IN_DATE.fullmatch(gap) is not None and _SPACED_DASH.search(gap) is None
        if follows and _part_of_date(words, rules, end):
            if "," in gap and (_is_year(words, end - 1) or not _is_year(words, end)):
                break  # `1914, 1918` are two; `March 14, 1879` is one
            end += 1
        elif _bridged(words, rules, end):
            end += 2
        elif words.glued(end) and words.has_digit(end - 1):  # `4-an de majo`
            end += 1
        else:
            break
    return end


def _bridged(words: SentenceWords, rules: _Rules, index: int) -> bool:
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


def _is_date(words: SentenceWords, rules: _Rules, start: int, end: int) -> bool:
    numbers = list(filter(words.has_digit, range(start, end)))
    if numbers and any(map(rules.in_date, words.folded[start:end])):
        return True
    # A number may be written together with a word of a date, as in `1879년`.
    return any(_is_year(words, index) or words.folded[index].lstrip("0123456789") in rules.dates for index in numbers)


def values(words: SentenceWords, rules: _Rules, runs: Sequence[_Run], date_runs: Sequence[_Run]) -> list[_Value]:
    """The values of one clause, given as runs of words, each with its prepositions and postpositions; disjoint."""
    result: list[_Value] = []
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


def _value_at(
    words: SentenceWords, rules: _Rules, index: int, bounds: _Run, date_runs: Sequence[_Run]
) -> _Value | None:
    """The value whose first number, word of a date or capital letter stands at `place`; `bounds` is its clause."""
    low, high = bounds
    for start, end in date_runs:
        if start == index:
            return _Value(_extended(words, rules, (start, min(end, high)), bounds), "date")
    if words.has_digit(index):
        return _Value(_extended(words, rules, _with_unit(words, rules, index, high), bounds), "number")
    if rules.names and words.capitalised(index):
        lead = _lead(words, rules.before - rules.of, index, low)
        if lead < index:
            return _Value((lead, _end_of_name(words, rules, index, high)), "name")
    return None


def _with_unit(words: SentenceWords, rules: _Rules, index: int, high: int) -> _Run:
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


def _extended(words: SentenceWords, rules: _Rules, run: _Run, bounds: _Run) -> _Run:
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


def _end_of_name(words: SentenceWords, rules: _Rules, index: int, high: int) -> int:
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


# The clauses of a sentence and what is set into them: by punctuation, conjunctions and relative pronouns.


_MARKS = re.compile(r"[;；؛:：…。!?！？]|\s[-–—]+\s|[—―]+")
_SHORT_BEGINNING = 3  # words: a name and a comma begin a sentence and are no clause, whatever the language
_APPOSITION_WITHIN = 4  # clauses: how far off a verb may take up the beginning of its sentence again

_Cut = Literal["start", "comma", "mark", "open", "close", "word"]


@dataclass(frozen=True)
class _Clause:
    """A clause as runs of words of its sentence; several runs where something is set into it.

    An `aside` is set into another clause, its `host`: in brackets, or as an apposition.
    """

    runs: tuple[_Run, ...]
    aside: bool = False
    cut: _Cut = "start"
    depth: int = 0
    host: tuple[_Run, ...] = field(default=())

    @property
    def size(self) -> int:
        """Words."""
        return sum(end - start for start, end in self.runs)

    def with_runs(self, other: _Clause) -> _Clause:
        """This clause and another as one."""
        return replace(self, runs=_joined_runs((*self.runs, *other.runs)))


def clauses(words: SentenceWords, rules: _Rules, dates: Sequence[_Run]) -> list[_Clause]:
    """The clauses of a sentence, which has a word at the least; each word stands in exactly one. No date is cut."""
    segments = _segments(words, rules, dates)
    outer: list[_Clause] = []
    asides: list[_Clause] = []
    for segment in segments:
        if segment.depth:
            _add_aside(words, segment, outer, asides, rules)
        elif segment.cut == "close" and outer:
            outer[-1] = outer[-1].with_runs(segment)
        else:
            outer.append(segment)
    merged = _resumed(words, rules, _merged(words, rules, outer))
    hosted = [
        replace(aside, host=next((each.runs for each in reversed(merged) if each.runs[0] < aside.runs[0]), ()))
        for aside in asides
    ]
    return sorted([*merged, *hosted], key=lambda clause: clause.runs)


def _add_aside(
    words: SentenceWords, segment: _Clause, outer: list[_Clause], asides: list[_Clause], rules: _Rules
) -> None:
    """Keep what stands in brackets, unless it is one word, such as an abbreviation: that goes with what it explains."""
    start, end = segment.runs[0]
    digits = any(map(words.has_digit, range(start, end)))
    if segment.size == 1 and not digits and outer and segment.cut == "open":
        outer[-1] = outer[-1].with_runs(segment)
    elif asides and segment.cut in ("comma", "word") and not digits and segment.size < rules.short:
        asides[-1] = asides[-1].with_runs(segment)
    else:
        asides.append(replace(segment, aside=True))


def _segments(words: SentenceWords, rules: _Rules, dates: Sequence[_Run]) -> list[_Clause]:
    """The sentence cut at every mark and word that may part clauses."""
    cuts: dict[int, tuple[_Cut, int]] = {}
    inside = {index for start, end in dates for index in range(start + 1, end)}
    depth = max(sum((char in _OPENING) - (char in _CLOSING) for char in words.gaps[0]), 0)
    cuts[0] = ("start", depth)
    for index, gap in enumerate(words.gaps[1:], 1):
        before = depth
        for char in gap:
            depth = max(depth + (char in _OPENING) - (char in _CLOSING), 0)
        cut = _cut_of(words, rules, gap, before, depth, index) if index not in inside else None
        if cut is not None:
            cuts[index] = (cut, depth)
    _cut_at_words(words, rules, cuts, inside)
    bounds = [*sorted(cuts), len(words)]
    return [_Clause(((start, end),), cut=cuts[start][0], depth=cuts[start][1]) for start, end in pairwise(bounds)]


def _cut_of(words: SentenceWords, rules: _Rules, gap: str, before: int, after: int, index: int) -> _Cut | None:
    if after > before:
        return "open"
    numeric = words.has_digit(index) and words.has_digit(index - 1)
    if _MARKS.search(gap) and not (numeric and gap.strip() == ":"):  # `10:30`
        return "mark"
    if any(mark in gap for mark in rules.commas):
        return "comma"
    if after < before or not _CLOSING.isdisjoint(gap):
        return "close"
    return "comma" if rules.spaces and re.search(r"\s", gap) else None


def _cut_at_words(words: SentenceWords, rules: _Rules, cuts: dict[int, tuple[_Cut, int]], inside: set[int]) -> None:
    """Add a cut before each conjunction and relative pronoun that begins a clause."""
    last = 0
    for index in range(1, len(words)):
        if index in cuts:
            last = index
            continue
        if index in inside:
            continue
        at = _clause_begins(words, rules, cuts, last, index)
        if at is not None and at > last and at not in inside:
            cuts[at] = ("word", cuts[last][1])
            last = at


def _clause_begins(
    words: SentenceWords, rules: _Rules, cuts: dict[int, tuple[_Cut, int]], last: int, index: int
) -> int | None:
    """Where the clause begins whose conjunction or pronoun stands at `place`; None where it is none."""
    word = words.folded[index]
    if word in rules.always:
        while index - 1 > last and words.folded[index - 1] in rules.before:  # `in which`
            index -= 1
        return index
    if word not in rules.perhaps or index + 1 >= len(words) or index + 1 in cuts:
        return None
    left = index - last
    following = words.folded[index + 1]
    if left >= rules.short and (following in rules.verbs or following in rules.pronouns):
        return index
    right = next((later for later in range(index + 1, len(words)) if later in cuts), len(words)) - index - 1
    return index if left >= rules.long and right >= rules.long else None


def _merged(words: SentenceWords, rules: _Rules, segments: list[_Clause]) -> list[_Clause]:
    """Segments that are too short to be clauses put to their neighbours: to the one before, or where the sentence
    has only begun or a topic particle says that it goes on, to the one after."""
    result = segments[:1]
    for segment, following in zip_longest(segments[1:], segments[2:]):
        alone = len(result) > 1 and _takes_up(words, rules, result, segment)
        if len(result) == 1 and following is not None and segment.cut == "comma":
            alone = _takes_up(words, rules, result, following)  # a short apposition
        if _goes_on(words, rules, result[-1]) or (segment.size < rules.short and not alone):
            result[-1] = result[-1].with_runs(segment)
        else:
            result.append(segment)
    return result


def _goes_on(words: SentenceWords, rules: _Rules, clause: _Clause) -> bool:
    last = words.folded[clause.runs[-1][1] - 1]
    return clause.size < 2 * rules.short and (last in rules.topics or last.endswith(rules.topic_endings))


def _takes_up(words: SentenceWords, rules: _Rules, before: Sequence[_Clause], segment: _Clause) -> bool:
    """Whether a segment goes on with the beginning of its sentence after something that was set into it."""
    return (
        segment.cut == "comma"
        and words.folded[segment.runs[0][0]] in rules.verbs
        and len(before) < _APPOSITION_WITHIN
        and not any(words.folded[index] in rules.verbs for run in before[0].runs for index in range(*run))
    )


def _resumed(words: SentenceWords, rules: _Rules, outer: list[_Clause]) -> list[_Clause]:
    """The beginning of a sentence and the verb that takes it up again as one clause, and what lies between as asides.

    A beginning that is too short for a clause and that nothing takes up goes with what follows it.
    """
    if len(outer) < 2:
        return outer
    for index in range(2, min(len(outer), _APPOSITION_WITHIN)):
        if _takes_up(words, rules, outer[:index], outer[index]):
            main = outer[0].with_runs(outer[index])
            asides = [replace(clause, aside=True, host=main.runs) for clause in outer[1:index]]
            return [main, *asides, *outer[index + 1 :]]
    if outer[0].size < max(rules.short, _SHORT_BEGINNING):
        return [outer[0].with_runs(outer[1]), *outer[2:]]
    return outer


FactKind = Literal["sentence", "clause", "aside", "date", "number", "name"]

_OWN_WORDS = {"date": 4, "name": 4, "number": 6}  # words that a clause needs so that a value may leave it


@dataclass(frozen=True)
class Fact:
    """One thing that a sentence says.

    Attributes:
        start: first code point.
        end: one past the last one. Other facts may lie between, see `parts`.
        kind: `clause`; `aside` (in brackets, or an apposition); `date`, `number` or `name` that is checked apart from
            its clause; `sentence`, where the whole sentence is one, for want of rules or of anything to part.
        parts: the places of its own words, half-open, in order; together the facts of a text hold each word once.
        context: places in the same sentence that say what the fact is about; their words belong to other facts.
    """

    start: int
    end: int
    kind: FactKind
    parts: tuple[_Run, ...]
    context: tuple[_Run, ...] = ()

    def text(self, response: str) -> str:
        """The fact with its context in the order of the response, as a claim that can be read by itself."""
        return " ".join(response[start:end] for start, end in sorted({*self.parts, *self.context}))


def fact_languages() -> tuple[str, ...]:
    """The primary subtags of the languages whose sentences can be parted; in all others each sentence is one fact."""
    return tuple(sorted(_entries()))


def facts(text: str, language: str | None = None) -> list[Fact]:
    """The facts of a text, in order of their beginnings.

    Args:
        text: any text.
        language: a BCP 47 tag. Without rules for it (see `fact_languages`), or where it is None, each sentence is one
            fact of kind `sentence`.

    Returns:
        Facts whose parts hold every word of the text exactly once. A text without words has none.
    """
    rules = rules_of(language)
    return [
        fact
        for start, sentence in _sentences(text, language, rules)
        for fact in ([_whole(sentence)] if rules is None else _facts_of(SentenceWords(text, start, sentence), rules))
    ]


def _sentences(text: str, language: str | None, rules: _Rules | None) -> list[tuple[int, list[_Run]]]:
    """Each sentence that holds a word: where it begins, and its words.

    A full stop after the sign of an era ends none (`พ.ศ. 2464`).
    """
    every = words(text, language)
    result: list[tuple[int, list[_Run]]] = []
    index = 0
    for start, end in sentences(text, language):
        inside = []
        while index < len(every) and every[index][0] < end:
            inside.append(every[index])
            index += 1
        if not inside:
            continue
        last = text[slice(*result[-1][1][-1])].casefold() if result else ""
        if rules is not None and last in rules.dates and "." in last and text[start].isdecimal():
            result[-1][1].extend(inside)
        else:
            result.append((start, inside))
    return result


def _whole(bounds: list[_Run]) -> Fact:
    start, end = bounds[0][0], bounds[-1][1]
    return Fact(start, end, "sentence", ((start, end),))


def _facts_of(sentence: SentenceWords, rules: _Rules) -> list[Fact]:
    sentence_dates = dates(sentence, rules)
    result = [
        fact
        for clause in clauses(sentence, rules, sentence_dates)
        for fact in _facts_in(sentence, rules, clause, sentence_dates)
    ]
    if len(result) == 1:
        return [_whole(sentence.bounds)]
    return sorted(result, key=lambda fact: fact.parts)


def _facts_in(sentence: SentenceWords, rules: _Rules, clause: _Clause, found_dates: list[_Run]) -> list[Fact]:
    """The clause without those of its values that leave it, and these."""
    leaving = values(sentence, rules, clause.runs, found_dates)
    taken = {index for value in leaving for index in range(*value.run)}
    own = [index for run in clause.runs for index in range(*run) if index not in taken]
    kind: FactKind = "aside" if clause.aside else "clause"
    if leaving and len(own) < _OWN_WORDS[leaving[0].kind]:  # what is left would say too little: `He died`
        kind = kind if own else leaving[0].kind
        own += range(*leaving[0].run)
        del leaving[0]
    core = sentence.places((index, index + 1) for index in own)
    facts_of_runs = [(kind, core, sentence.places(clause.host))]
    facts_of_runs += [(value.kind, sentence.places([value.run]), core) for value in leaving]
    return [Fact(parts[0][0], parts[-1][1], kind, parts, context) for kind, parts, context in facts_of_runs]
