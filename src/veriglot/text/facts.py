"""Atomic facts: the units of a response that can be checked one by one, found by rules and without a language model.

A sentence is parted into clauses and what is set into them (`fact_clauses`), and each clause into what it says and its
dates, numbers and names (`fact_values`), by words and marks of each language (`fact_rules`). Every word stands in
exactly one fact, the one whose truth hangs on it: in "Ada was born in Paris in 1901" the date is a fact of its own
(`in 1901`), whose context (`Ada was born`) belongs to the fact before it. So a wrong year is one wrong fact, not two.

After Kang et al. (Kang, Blevins, Zettlemoyer 2024, section 5.1 and Table 5: single simple facts, and "each date is
counted as one fact, except for birthdates and death dates, which are counted as two") and FActScore (Min et al. 2023).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from veriglot.text.segmentation import sentences, words
from veriglot.text.values import (
    CLOSING,
    OPENING,
    SentenceWords,
    dates,
    joined_runs,
    languages_with_rules,
    rules_of,
    values,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.text.values import Rules, Run

__all__ = ["Fact", "fact_languages", "facts"]


# The clauses of a sentence and what is set into them: by punctuation, conjunctions and relative pronouns.


_MARKS = re.compile(r"[;；؛:：…。!?！？]|\s[-–—]+\s|[—―]+")
_SHORT_BEGINNING = 3  # words: a name and a comma begin a sentence and are no clause, whatever the language
_APPOSITION_WITHIN = 4  # clauses: how far off a verb may take up the beginning of its sentence again

_Cut = Literal["start", "comma", "mark", "open", "close", "word"]


@dataclass(frozen=True)
class Clause:
    """A clause as runs of words of its sentence.

    Attributes:
        runs: its words; several runs where something is set into it.
        aside: whether it is set into another clause: in brackets, or as an apposition.
        cut: how it is parted from what stands before it.
        depth: how many brackets it stands in.
        host: the clause that an aside stands in, or None.
    """

    runs: tuple[Run, ...]
    aside: bool = False
    cut: _Cut = "start"
    depth: int = 0
    host: tuple[Run, ...] = field(default=())

    @property
    def size(self) -> int:
        """Words."""
        return sum(end - start for start, end in self.runs)

    def with_runs(self, other: Clause) -> Clause:
        """This clause and another as one."""
        return replace(self, runs=joined_runs((*self.runs, *other.runs)))


def clauses(words: SentenceWords, rules: Rules, dates: Sequence[Run]) -> list[Clause]:
    """The clauses of a sentence; each word stands in exactly one.

    Args:
        words: the sentence, with one word at the least.
        rules: of its language.
        dates: runs of words that are never cut.
    """
    segments = _segments(words, rules, dates)
    outer: list[Clause] = []
    asides: list[Clause] = []
    for segment in segments:
        if segment.depth:
            _add_aside(words, segment, outer, asides, rules)
        elif segment.cut == "close" and outer:
            outer[-1] = outer[-1].with_runs(segment)
        else:
            outer.append(segment)
    merged = _resumed(words, rules, _merged(words, rules, outer))
    hosted = [replace(aside, host=_host(aside, merged)) for aside in asides]
    return sorted([*merged, *hosted], key=lambda clause: clause.runs)


def _host(aside: Clause, outer: Sequence[Clause]) -> tuple[Run, ...]:
    """The last clause that begins before an aside."""
    before = [clause for clause in outer if clause.runs[0][0] < aside.runs[0][0]]
    return before[-1].runs if before else ()


def _add_aside(words: SentenceWords, segment: Clause, outer: list[Clause], asides: list[Clause], rules: Rules) -> None:
    """Keep what stands in brackets, unless it is one word, such as an abbreviation: that goes with what it explains."""
    start, end = segment.runs[0]
    digits = any(words.has_digit(index) for index in range(start, end))
    if segment.size == 1 and not digits and outer and segment.cut == "open":
        outer[-1] = outer[-1].with_runs(segment)
    elif asides and segment.cut in ("comma", "word") and not digits and segment.size < rules.short:
        asides[-1] = asides[-1].with_runs(segment)
    else:
        asides.append(replace(segment, aside=True))


def _segments(words: SentenceWords, rules: Rules, dates: Sequence[Run]) -> list[Clause]:
    """The sentence cut at every mark and word that may part clauses."""
    cuts: dict[int, tuple[_Cut, int]] = {}
    inside = {index for start, end in dates for index in range(start + 1, end)}
    depth = sum((char in OPENING) - (char in CLOSING) for char in words.gaps[0])
    depth = max(depth, 0)
    cuts[0] = ("start", depth)
    for index in range(1, len(words)):
        gap = words.gaps[index]
        before = depth
        for char in gap:
            depth = max(depth + (char in OPENING) - (char in CLOSING), 0)
        cut = _cut_of(words, rules, gap, before, depth, index) if index not in inside else None
        if cut is not None:
            cuts[index] = (cut, depth)
    _cut_at_words(words, rules, cuts, inside)
    bounds = [*sorted(cuts), len(words)]
    return [Clause(((start, end),), cut=cuts[start][0], depth=cuts[start][1]) for start, end in pairwise(bounds)]


def _cut_of(words: SentenceWords, rules: Rules, gap: str, before: int, after: int, index: int) -> _Cut | None:
    if after > before:
        return "open"
    numeric = words.has_digit(index) and words.has_digit(index - 1)
    if _MARKS.search(gap) and not (numeric and gap.strip() == ":"):  # `10:30`
        return "mark"
    if any(mark in gap for mark in rules.commas):
        return "comma"
    if after < before or any(char in CLOSING for char in gap):
        return "close"
    return "comma" if rules.spaces and any(char.isspace() for char in gap) else None


def _cut_at_words(words: SentenceWords, rules: Rules, cuts: dict[int, tuple[_Cut, int]], inside: set[int]) -> None:
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
    words: SentenceWords, rules: Rules, cuts: dict[int, tuple[_Cut, int]], last: int, index: int
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


def _merged(words: SentenceWords, rules: Rules, segments: list[Clause]) -> list[Clause]:
    """Segments that are too short to be clauses put to their neighbours: to the one before, or where the sentence
    has only begun or a topic particle says that it goes on, to the one after."""
    result: list[Clause] = []
    for index, segment in enumerate(segments):
        alone = len(result) > 1 and _takes_up(words, rules, result, segment)
        if len(result) == 1 and index + 1 < len(segments) and segment.cut == "comma":
            alone = _takes_up(words, rules, result, segments[index + 1])  # a short apposition
        if not result:
            result.append(segment)
        elif _goes_on(words, rules, result[-1]) or (segment.size < rules.short and not alone):
            result[-1] = result[-1].with_runs(segment)
        else:
            result.append(segment)
    return result


def _goes_on(words: SentenceWords, rules: Rules, clause: Clause) -> bool:
    last = words.folded[clause.runs[-1][1] - 1]
    if clause.size >= 2 * rules.short:
        return False
    return last in rules.topics or (bool(rules.topic_endings) and last.endswith(rules.topic_endings))


def _takes_up(words: SentenceWords, rules: Rules, before: Sequence[Clause], segment: Clause) -> bool:
    """Whether a segment goes on with the beginning of its sentence after something that was set into it."""
    return (
        segment.cut == "comma"
        and words.folded[segment.runs[0][0]] in rules.verbs
        and len(before) < _APPOSITION_WITHIN
        and not _has_verb(words, rules, before[0])
    )


def _has_verb(words: SentenceWords, rules: Rules, clause: Clause) -> bool:
    return any(words.folded[index] in rules.verbs for start, end in clause.runs for index in range(start, end))


def _resumed(words: SentenceWords, rules: Rules, outer: list[Clause]) -> list[Clause]:
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


Range = tuple[int, int]
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
    parts: tuple[Range, ...]
    context: tuple[Range, ...] = ()

    def text(self, response: str) -> str:
        """The fact with its context in the order of the response, as a claim that can be read by itself."""
        return " ".join(response[start:end] for start, end in sorted({*self.parts, *self.context}))


def fact_languages() -> tuple[str, ...]:
    """The primary subtags of the languages whose sentences can be parted; in all others each sentence is one fact."""
    return languages_with_rules()


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
    result: list[Fact] = []
    for start, sentence in _sentences(text, language, rules):
        if rules is None:
            result.append(_whole(sentence))
        else:
            result += _facts_of(SentenceWords.of(text, start, sentence), rules)
    return result


def _sentences(text: str, language: str | None, rules: Rules | None) -> list[tuple[int, list[Range]]]:
    """Each sentence that holds a word: where it begins, and its words.

    A full stop after the sign of an era ends none (`พ.ศ. 2464`).
    """
    every = words(text, language)
    result: list[tuple[int, list[Range]]] = []
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


def _whole(bounds: list[Range]) -> Fact:
    start, end = bounds[0][0], bounds[-1][1]
    return Fact(start, end, "sentence", ((start, end),))


def _facts_of(sentence: SentenceWords, rules: Rules) -> list[Fact]:
    found_dates = dates(sentence, rules)
    result = [
        fact
        for clause in clauses(sentence, rules, found_dates)
        for fact in _facts_in(sentence, rules, clause, found_dates)
    ]
    if len(result) == 1:
        return [_whole(sentence.bounds)]
    return sorted(result, key=lambda fact: fact.parts)


def _facts_in(sentence: SentenceWords, rules: Rules, clause: Clause, found_dates: list[Run]) -> list[Fact]:
    """The clause without those of its values that leave it, and these."""
    leaving = values(sentence, rules, clause.runs, found_dates)
    taken = {index for value in leaving for index in range(*value.run)}
    own = [index for run in clause.runs for index in range(*run) if index not in taken]
    kind: FactKind = "aside" if clause.aside else "clause"
    if leaving and len(own) < _OWN_WORDS[leaving[0].kind]:  # what is left would say too little: `He died`
        kind = kind if own else leaving[0].kind
        own += range(*leaving[0].run)
        del leaving[0]
    core = joined_runs((index, index + 1) for index in own)
    context = sentence.places(core)
    return [
        _fact(sentence, core, kind, sentence.places(clause.host)),
        *(_fact(sentence, (value.run,), value.kind, context) for value in leaving),
    ]


def _fact(sentence: SentenceWords, runs: tuple[Run, ...], kind: FactKind, context: tuple[Range, ...]) -> Fact:
    parts = sentence.places(runs)
    return Fact(parts[0][0], parts[-1][1], kind, parts, context)
