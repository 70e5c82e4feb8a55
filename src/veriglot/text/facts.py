"""Atomic facts: the units of a response that can be checked one by one, found by rules and without a language model.

A sentence is parted into clauses and what is set into them (`fact_clauses`), and each clause into what it says and its
dates, numbers and names (`fact_values`), by words and marks of each language (`fact_rules`). Every word stands in
exactly one fact, the one whose truth hangs on it: in "Ada was born in Paris in 1901" the date is a fact of its own
(`in 1901`), whose context (`Ada was born`) belongs to the fact before it. So a wrong year is one wrong fact, not two.

After kang (Kang, Blevins, Zettlemoyer 2024, section 5.1 and Table 5: single simple facts, and "each date is counted as
one fact, except for birthdates and death dates, which are counted as two") and FActScore (Min et al. 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from veriglot.text.fact_clauses import Clause, clauses
from veriglot.text.fact_rules import languages_with_rules, rules_of
from veriglot.text.fact_values import dates, values
from veriglot.text.fact_words import SentenceWords, joined_runs
from veriglot.text.sentences import sentences
from veriglot.text.words import words

if TYPE_CHECKING:
    from veriglot.text.fact_rules import Rules
    from veriglot.text.fact_words import Run

__all__ = ["Fact", "FactKind", "fact_languages", "facts"]

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
    found: list[Fact] = []
    for start, sentence in _sentences(text, language, rules):
        if rules is None:
            found.append(_whole(sentence))
        else:
            found += _facts_of(SentenceWords.of(text, start, sentence), rules)
    return found


def _sentences(text: str, language: str | None, rules: Rules | None) -> list[tuple[int, list[Range]]]:
    """Each sentence that holds a word: where it begins, and its words.

    A full stop after the sign of an era ends none (`พ.ศ. 2464`).
    """
    every = words(text, language)
    found: list[tuple[int, list[Range]]] = []
    place = 0
    for start, end in sentences(text, language):
        inside = []
        while place < len(every) and every[place][0] < end:
            inside.append(every[place])
            place += 1
        if not inside:
            continue
        last = text[slice(*found[-1][1][-1])].casefold() if found else ""
        if rules is not None and last in rules.dates and "." in last and text[start].isdecimal():
            found[-1][1].extend(inside)
        else:
            found.append((start, inside))
    return found


def _whole(bounds: list[Range]) -> Fact:
    start, end = bounds[0][0], bounds[-1][1]
    return Fact(start, end, "sentence", ((start, end),))


def _facts_of(sentence: SentenceWords, rules: Rules) -> list[Fact]:
    found_dates = dates(sentence, rules)
    found = [
        fact
        for clause in clauses(sentence, rules, found_dates)
        for fact in _facts_in(sentence, rules, clause, found_dates)
    ]
    if len(found) == 1:
        return [_whole(sentence.bounds)]
    return sorted(found, key=lambda fact: fact.parts)


def _facts_in(sentence: SentenceWords, rules: Rules, clause: Clause, found_dates: list[Run]) -> list[Fact]:
    """The clause without those of its values that leave it, and these."""
    leaving = values(sentence, rules, clause.runs, found_dates)
    taken = {place for value in leaving for place in range(*value.run)}
    own = [place for run in clause.runs for place in range(*run) if place not in taken]
    kind: FactKind = "aside" if clause.aside else "clause"
    if leaving and len(own) < _OWN_WORDS[leaving[0].kind]:  # what is left would say too little: `He died`
        kind = kind if own else leaving[0].kind
        own += range(*leaving[0].run)
        del leaving[0]
    core = joined_runs((place, place + 1) for place in own)
    context = sentence.places(core)
    return [
        _fact(sentence, core, kind, sentence.places(clause.host)),
        *(_fact(sentence, (value.run,), value.kind, context) for value in leaving),
    ]


def _fact(sentence: SentenceWords, runs: tuple[Run, ...], kind: FactKind, context: tuple[Range, ...]) -> Fact:
    parts = sentence.places(runs)
    return Fact(parts[0][0], parts[-1][1], kind, parts, context)
