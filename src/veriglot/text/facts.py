"""Atomic facts: units of a response that can be checked one by one, found by rules, without a language model.

Words and marks of each language split a sentence into clauses and asides, and a clause into its core and its dates,
numbers and names. Every word belongs to exactly one fact, the one whose truth depends on it: in "Ada was born in Paris
in 1901" the date is a separate fact (`in 1901`), whose context (`Ada was born`) belongs to the fact before it. So a
wrong year is one wrong fact, not two.

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

from veriglot.plugins import read_package_data
from veriglot.text.segmentation import sentences, words
from veriglot.text.values import month_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Fact", "SentenceWords", "dates", "fact_languages", "facts", "rules_of"]


# The rules of each language, in casefolded words.
#
# `fact_rules.json` was written for Veriglot; the names of months come from `values`.


_ENUMERATING = frozenset({"zh", "yue"})  # here the ideographic comma separates items of a list, not clauses


class _Rules(msgspec.Struct, forbid_unknown_fields=True):
    """The rules of one language; sets contain words."""

    months: frozenset[str]  # names of months
    commas: str  # marks that may separate clauses
    # words that begin a clause if both sides are long, or if a verb or pronoun follows
    perhaps: frozenset[str] = frozenset()
    always: frozenset[str] = frozenset()  # words that always begin a clause
    verbs: frozenset[str] = frozenset()  # copulas and auxiliaries; after an apposition they continue the main clause
    pronouns: frozenset[str] = frozenset()  # subjects that begin a clause after one of `perhaps`
    before: frozenset[str] = frozenset()  # prepositions that form an adjunct with the date, number or name after them
    of: frozenset[str] = frozenset()  # those of `before` that attach a name to the noun before it
    after: frozenset[str] = frozenset()  # postpositions and similar words of the date or number before them
    dates: frozenset[str] = frozenset()  # other words of a date: year, century, era
    topics: frozenset[str] = frozenset()  # topic particles, after which a comma does not end the clause
    topic_endings: tuple[str, ...] = ()  # the same as endings of words
    names: bool = True  # whether a capital letter marks a name
    spaces: bool = False  # whether a space may separate clauses (Thai)
    short: int = 3  # least words of a clause

    @property
    def long(self) -> int:
        """Least words on each side of one of `perhaps` to form two clauses."""
        return self.short + 2

    def in_date(self, word: str) -> bool:
        """Whether a casefolded word may stand in a date."""
        return word in self.months or word in self.dates


@cache
def _entries() -> dict[str, dict[str, str | bool | int]]:
    return read_package_data(__package__, "fact_rules.json", dict[str, dict[str, str | bool | int]])


def rules_of(language: str | None) -> _Rules | None:
    """The rules for a language tag (`zh-Hant`, `sr-Latn`, `pt-BR`); None if there are none."""
    return _rules(language.partition("-")[0].lower()) if language else None


@cache
def _rules(base: str) -> _Rules | None:
    entry = _entries().get(base)
    if entry is None:
        return None
    commas = ",，،" if base in _ENUMERATING else ",，،、"
    listed = {name: value.split() if isinstance(value, str) else value for name, value in entry.items()}
    return msgspec.convert({"months": frozenset().union(*month_names(base)), "commas": commas, **listed}, _Rules)


# A sentence as words and the gaps between them, the input of the rules.


_Run = tuple[int, int]  # half-open range of words of the sentence, or of code points

_OPENING = frozenset("([{（［【〔")
_CLOSING = frozenset(")]}）］】〕")
_PLAIN = re.compile(r"[\s'’\u00a0\-]*")


class SentenceWords:
    """The words of one sentence: half-open code point ranges in the whole text, and casefolded forms.

    `gaps` has the text before each word, from the word before it or from the beginning of the sentence.

    Args:
        text: the whole text.
        start: start of the sentence in the text.
        bounds: ranges of its words in the text.
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
        """Whether a word contains a decimal digit of any script."""
        return any(map(str.isdecimal, self.folded[index]))

    def joined(self, index: int) -> bool:
        """Whether only spaces, apostrophes or hyphens separate a word from the one before it."""
        return _PLAIN.fullmatch(self.gaps[index]) is not None

    def glued(self, index: int) -> bool:
        """Whether only an apostrophe or hyphen separates a word from the one before it, as for suffixes: `1921'de`."""
        return re.fullmatch(r"['’\-]+", self.gaps[index]) is not None

    def places(self, runs: Iterable[_Run]) -> tuple[tuple[int, int], ...]:
        """Runs of words as half-open code point ranges; adjacent runs are merged."""
        return tuple((self.bounds[first][0], self.bounds[end - 1][1]) for first, end in _joined_runs(runs))


def _joined_runs(runs: Iterable[_Run]) -> tuple[_Run, ...]:
    """Disjoint runs in order; adjacent runs are merged."""
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
_ARTICLE = 3  # most letters of an article


class _Value(NamedTuple):
    """A date, number or name with its prepositions and postpositions, as a run of words."""

    run: _Run
    kind: Literal["date", "number", "name"]


def dates(words: SentenceWords, rules: _Rules) -> list[_Run]:
    """The dates of a sentence as runs of words, without prepositions: a year, a day, a range of years without spaces.

    A word for a month or a year belongs to a date only with a number.
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
                break  # `1914, 1918` are two dates; `March 14, 1879` is one
            end += 1
        elif _bridged(words, rules, end):
            end += 2
        elif words.glued(end) and words.has_digit(end - 1):  # `4-an de majo`
            end += 1
        else:
            break
    return end


def _bridged(words: SentenceWords, rules: _Rules, index: int) -> bool:
    """Whether a word connects two parts of a date, such as `de` in `14 de marzo de 1879`."""
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
    # A number may be joined to a word of a date, as in `1879년`.
    return any(_is_year(words, index) or words.folded[index].lstrip("0123456789") in rules.dates for index in numbers)


def values(words: SentenceWords, rules: _Rules, runs: Sequence[_Run], date_runs: Sequence[_Run]) -> list[_Value]:
    """The values of a clause (given as runs of words), with their prepositions and postpositions; disjoint."""
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
    """The value whose date, number or capital letter is at `index`, or None; `bounds` is its clause."""
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
    """A number with its unit or counted noun, if any."""
    end = index + 1
    while end < high and words.has_digit(end) and words.joined(end):
        end += 1
    taken = rules.before | rules.verbs | rules.perhaps | rules.always | rules.after
    for spaced in (False, True):  # a second word, as in `58 square kilometres`, only in scripts with spaces
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
    """Start of the prepositions before `index`, with or without an article in between; else `index`."""
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


# The clauses and asides of a sentence, by punctuation, conjunctions and relative pronouns.


_MARKS = re.compile(r"[;；؛:：…。!?！？]|\s[-–—]+\s|[—―]+")
_SHORT_BEGINNING = 3  # words; a shorter beginning, such as a name and a comma, is no clause in any language
_APPOSITION_WITHIN = 4  # clauses within which a verb may continue the beginning of its sentence

_Cut = Literal["start", "comma", "mark", "open", "close", "word"]


@dataclass(frozen=True)
class _Clause:
    """A clause as runs of words of its sentence; several runs if an aside interrupts it.

    An `aside` stands within another clause, its `host`: in brackets, or as an apposition.
    """

    runs: tuple[_Run, ...]
    aside: bool = False
    cut: _Cut = "start"
    depth: int = 0
    host: tuple[_Run, ...] = field(default=())

    @property
    def size(self) -> int:
        """Number of words."""
        return sum(end - start for start, end in self.runs)

    def with_runs(self, other: _Clause) -> _Clause:
        """This clause merged with another."""
        return replace(self, runs=_joined_runs((*self.runs, *other.runs)))


def clauses(words: SentenceWords, rules: _Rules, dates: Sequence[_Run]) -> list[_Clause]:
    """The clauses of a sentence with at least one word; each word belongs to exactly one. Dates are not split."""
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
    """Add an aside for text in brackets; a single word, such as an abbreviation, joins the clause before it."""
    start, end = segment.runs[0]
    digits = any(map(words.has_digit, range(start, end)))
    if segment.size == 1 and not digits and outer and segment.cut == "open":
        outer[-1] = outer[-1].with_runs(segment)
    elif asides and segment.cut in ("comma", "word") and not digits and segment.size < rules.short:
        asides[-1] = asides[-1].with_runs(segment)
    else:
        asides.append(replace(segment, aside=True))


def _segments(words: SentenceWords, rules: _Rules, dates: Sequence[_Run]) -> list[_Clause]:
    """The sentence split at every mark and word that may separate clauses."""
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
    """Start of the clause whose conjunction or pronoun is at `index`; None if it does not begin a clause."""
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
    """Segments merged into clauses: short ones, and those after a topic, join the one before, except appositions."""
    result = segments[:1]
    for segment, following in zip_longest(segments[1:], segments[2:]):
        alone = len(result) > 1 and _resumes(words, rules, result, segment)
        if len(result) == 1 and following is not None and segment.cut == "comma":
            alone = _resumes(words, rules, result, following)  # a short apposition
        if _goes_on(words, rules, result[-1]) or (segment.size < rules.short and not alone):
            result[-1] = result[-1].with_runs(segment)
        else:
            result.append(segment)
    return result


def _goes_on(words: SentenceWords, rules: _Rules, clause: _Clause) -> bool:
    last = words.folded[clause.runs[-1][1] - 1]
    return clause.size < 2 * rules.short and (last in rules.topics or last.endswith(rules.topic_endings))


def _resumes(words: SentenceWords, rules: _Rules, before: Sequence[_Clause], segment: _Clause) -> bool:
    """Whether a segment continues the beginning of its sentence after an apposition."""
    return (
        segment.cut == "comma"
        and words.folded[segment.runs[0][0]] in rules.verbs
        and len(before) < _APPOSITION_WITHIN
        and not any(words.folded[index] in rules.verbs for run in before[0].runs for index in range(*run))
    )


def _resumed(words: SentenceWords, rules: _Rules, outer: list[_Clause]) -> list[_Clause]:
    """Merges the beginning of a sentence with the verb that continues it; clauses in between become asides.

    A beginning that is too short for a clause and is not continued joins the next clause.
    """
    if len(outer) < 2:
        return outer
    for index in range(2, min(len(outer), _APPOSITION_WITHIN)):
        if _resumes(words, rules, outer[:index], outer[index]):
            main = outer[0].with_runs(outer[index])
            asides = [replace(clause, aside=True, host=main.runs) for clause in outer[1:index]]
            return [main, *asides, *outer[index + 1 :]]
    if outer[0].size < max(rules.short, _SHORT_BEGINNING):
        return [outer[0].with_runs(outer[1]), *outer[2:]]
    return outer


FactKind = Literal["sentence", "clause", "aside", "date", "number", "name"]

_OWN_WORDS = {"date": 4, "name": 4, "number": 6}  # least words that must remain in a clause without its first value


@dataclass(frozen=True)
class Fact:
    """One atomic fact.

    Attributes:
        start: first code point.
        end: one past the last one. Other facts may lie in between, see `parts`.
        kind: `clause`; `aside` (in brackets, or an apposition); `date`, `number` or `name`, checked separately from its
            clause; `sentence`, if there are no rules or nothing to split.
        parts: half-open code point ranges of its own words, in order; each word of a text belongs to exactly one fact.
        context: ranges in the same sentence that show what the fact is about; their words belong to other facts.
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
    """Primary subtags of the languages with rules; in all others each sentence is one fact."""
    return tuple(sorted(_entries()))


def facts(text: str, language: str | None = None) -> list[Fact]:
    """The facts of a text, in order of their starts.

    Args:
        text: any text.
        language: a BCP 47 tag. If it is None or has no rules (see `fact_languages`), each sentence is one fact of kind
            `sentence`.

    Returns:
        Facts whose parts cover every word of the text exactly once; an empty list for a text without words.
    """
    rules = rules_of(language)
    return [
        fact
        for start, sentence in _sentences(text, language, rules)
        for fact in ([_whole(sentence)] if rules is None else _facts_of(SentenceWords(text, start, sentence), rules))
    ]


def _sentences(text: str, language: str | None, rules: _Rules | None) -> list[tuple[int, list[_Run]]]:
    """Start and words of each sentence that has a word.

    A full stop of an era abbreviation does not end a sentence (`พ.ศ. 2464`).
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
    """The facts of a clause: its core, and the values that become separate facts."""
    leaving = values(sentence, rules, clause.runs, found_dates)
    taken = {index for value in leaving for index in range(*value.run)}
    own = [index for run in clause.runs for index in range(*run) if index not in taken]
    kind: FactKind = "aside" if clause.aside else "clause"
    if leaving and len(own) < _OWN_WORDS[leaving[0].kind]:  # the rest would say too little: `He died`
        kind = kind if own else leaving[0].kind
        own += range(*leaving[0].run)
        del leaving[0]
    core = sentence.places((index, index + 1) for index in own)
    facts_of_runs = [(kind, core, sentence.places(clause.host))]
    facts_of_runs += [(value.kind, sentence.places([value.run]), core) for value in leaving]
    return [Fact(parts[0][0], parts[-1][1], kind, parts, context) for kind, parts, context in facts_of_runs]
