"""The clauses of a sentence and what is set into them: by punctuation, conjunctions and relative pronouns."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from veriglot.text.fact_words import CLOSING, OPENING, joined_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.text.fact_rules import Rules
    from veriglot.text.fact_words import Run, SentenceWords

__all__ = ["Clause", "clauses"]

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
    digits = any(words.has_digit(place) for place in range(start, end))
    if segment.size == 1 and not digits and outer and segment.cut == "open":
        outer[-1] = outer[-1].with_runs(segment)
    elif asides and segment.cut in ("comma", "word") and not digits and segment.size < rules.short:
        asides[-1] = asides[-1].with_runs(segment)
    else:
        asides.append(replace(segment, aside=True))


def _segments(words: SentenceWords, rules: Rules, dates: Sequence[Run]) -> list[Clause]:
    """The sentence cut at every mark and word that may part clauses."""
    cuts: dict[int, tuple[_Cut, int]] = {}
    inside = {place for start, end in dates for place in range(start + 1, end)}
    depth = sum((char in OPENING) - (char in CLOSING) for char in words.gaps[0])
    depth = max(depth, 0)
    cuts[0] = ("start", depth)
    for place in range(1, len(words)):
        gap = words.gaps[place]
        before = depth
        for char in gap:
            depth = max(depth + (char in OPENING) - (char in CLOSING), 0)
        cut = _cut_of(words, rules, gap, before, depth, place) if place not in inside else None
        if cut is not None:
            cuts[place] = (cut, depth)
    _cut_at_words(words, rules, cuts, inside)
    bounds = [*sorted(cuts), len(words)]
    return [Clause(((start, end),), cut=cuts[start][0], depth=cuts[start][1]) for start, end in pairwise(bounds)]


def _cut_of(words: SentenceWords, rules: Rules, gap: str, before: int, after: int, place: int) -> _Cut | None:
    if after > before:
        return "open"
    numeric = words.has_digit(place) and words.has_digit(place - 1)
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
    for place in range(1, len(words)):
        if place in cuts:
            last = place
            continue
        if place in inside:
            continue
        at = _clause_begins(words, rules, cuts, last, place)
        if at is not None and at > last and at not in inside:
            cuts[at] = ("word", cuts[last][1])
            last = at


def _clause_begins(
    words: SentenceWords, rules: Rules, cuts: dict[int, tuple[_Cut, int]], last: int, place: int
) -> int | None:
    """Where the clause begins whose conjunction or pronoun stands at `place`; None where it is none."""
    word = words.folded[place]
    if word in rules.always:
        while place - 1 > last and words.folded[place - 1] in rules.before:  # `in which`
            place -= 1
        return place
    if word not in rules.perhaps or place + 1 >= len(words) or place + 1 in cuts:
        return None
    left = place - last
    following = words.folded[place + 1]
    if left >= rules.short and (following in rules.verbs or following in rules.pronouns):
        return place
    right = next((later for later in range(place + 1, len(words)) if later in cuts), len(words)) - place - 1
    return place if left >= rules.long and right >= rules.long else None


def _merged(words: SentenceWords, rules: Rules, segments: list[Clause]) -> list[Clause]:
    """Segments that are too short to be clauses put to their neighbours: to the one before, or where the sentence
    has only begun or a topic particle says that it goes on, to the one after."""
    result: list[Clause] = []
    for place, segment in enumerate(segments):
        kept = len(result) > 1 and _takes_up(words, rules, result, segment)
        if len(result) == 1 and place + 1 < len(segments) and segment.cut == "comma":
            kept = _takes_up(words, rules, result, segments[place + 1])  # a short apposition
        if not result:
            result.append(segment)
        elif _goes_on(words, rules, result[-1]) or (segment.size < rules.short and not kept):
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
    return any(words.folded[place] in rules.verbs for start, end in clause.runs for place in range(start, end))


def _resumed(words: SentenceWords, rules: Rules, found: list[Clause]) -> list[Clause]:
    """The beginning of a sentence and the verb that takes it up again as one clause, and what lies between as asides.

    A beginning that is too short for a clause and that nothing takes up goes with what follows it.
    """
    if len(found) < 2:
        return found
    for place in range(2, min(len(found), _APPOSITION_WITHIN)):
        if _takes_up(words, rules, found[:place], found[place]):
            main = found[0].with_runs(found[place])
            asides = [replace(clause, aside=True, host=main.runs) for clause in found[1:place]]
            return [main, *asides, *found[place + 1 :]]
    if found[0].size < max(rules.short, _SHORT_BEGINNING):
        return [found[0].with_runs(found[1]), *found[2:]]
    return found
