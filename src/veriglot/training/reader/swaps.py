"""Sentences in which two names, numbers or words changed places, or one was taken from another sentence.

The right one is a sentence or a clause of the evidence, or its translation. What is wrong in the other one stands at
another place of the evidence. Half of the time it is the evidence that was changed: how well a sentence reads tells
nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from veriglot.text.segmentation import sentences, words
from veriglot.training.grounding.examples import Example, Mark
from veriglot.training.reader.sources import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from random import Random

__all__ = ["Swaps"]

_PASSAGE = 4000  # code points: of longer passages no sentence is taken
_PASSAGES = 30  # of a language, or it has no swaps
_LENGTHS = ((25, 220, 750), (25, 90, 260))  # code points, with and without spaces: of a sentence, most of the evidence
_WORD = 4  # code points: shorter words are no names and mean little
_NAMED = 0.85  # of sentences with two names or two numbers: those change places, not two words
_LONGER = 15  # code points: two parts whose lengths differ by more do not change places
_TRIES = 6  # at two parts of a sentence
_DRAWS = 100  # sentences that are tried
_MIRRORED = 0.5
_BESIDE = (0, 0, 1, 2, 3, 5)  # further sentences of the evidence
_BORROWED = 0.5  # where there are further sentences
_CLAUSE, _SHORTEST = 0.4, 0.3
_UNSPACED = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\u0e00-\u0e7f\uac00-\ud7af]")
_COMMA = re.compile(r"[,;:،、，；：–—]\s*")
_LISTED = re.compile(r"[\s,;、，]*\w{1,4}[\s,;、，]*")  # between two items of a list the order tells nothing


class _Part(NamedTuple):
    kind: str
    text: str
    start: int
    end: int
    words: tuple[int, int]  # first and last


def _parts(text: str, language: str | None) -> Iterator[_Part]:
    """Names, numbers and other words that mean something; the first word of a sentence is no name by its capital."""
    bounds, number = words(text, language), 0
    while number < len(bounds):
        first, (start, end) = number, bounds[number]
        word, number = text[start:end], number + 1
        if word[0].isupper():
            while number < len(bounds) and text[end : bounds[number][0]] in (" ", "-") and text[end + 1].isupper():
                end, number = bounds[number][1], number + 1
            if first or number > 1:
                yield _Part("name", text[start:end], start, end, (first, number - 1))
        elif word.isdigit():
            yield _Part(f"{len(word)} digits", word, start, end, (first, first))
        elif word.isalpha() and len(word) >= (2 if _UNSPACED.match(word) else _WORD):
            yield _Part("word", word, start, end, (first, first))


class Swap(NamedTuple):
    """A right and a wrong sentence, and where they differ, half-open code points."""

    right: str
    wrong: str
    places: tuple[tuple[int, int], ...]  # in the right one
    marks: tuple[tuple[int, int], ...]  # in the wrong one

    def mirrored(self) -> Swap:
        """The other way round."""
        return Swap(self.wrong, self.right, self.marks, self.places)

    def clause(self, rng: Random) -> Swap:
        """A part of both, cut at commas, in which all differences stand."""
        starts = [0, *(comma.end() for comma in _COMMA.finditer(self.right) if comma.end() <= self.places[0][0])]
        ends = [comma.start() for comma in _COMMA.finditer(self.right, self.places[-1][1])] or [len(self.right)]
        start, after = rng.choice(starts), len(self.right) - rng.choice(ends)
        if rng.random() < _SHORTEST:
            start, after = starts[-1], len(self.right) - ends[0]
        return Swap(
            self.right[start : len(self.right) - after],
            self.wrong[start : len(self.wrong) - after],
            tuple((low - start, high - start) for low, high in self.places),
            tuple((low - start, high - start) for low, high in self.marks),
        )

    def rows(self, language: str | None, evidence: str, evidence_language: str | None = None) -> list[Row]:
        """The right one and the wrong one with their evidence."""
        rows = []
        for text, places in ((self.right, ()), (self.wrong, self.marks)):
            marks = tuple(Mark(start, end, "relation") for start, end in places)
            example = Example(
                "swap" if marks else "clean", "swaps", "swaps", language, text, (evidence,), None, marks,
                evidence_language=evidence_language,
            )  # fmt: skip
            rows.append(Row(example, bool(marks), located=True, twin="swap"))
        return rows


def exchanged(text: str, language: str | None, rng: Random) -> Swap | None:
    """A sentence with two names, numbers or words in each other's place; None where there are no two such."""
    by_kind = defaultdict[str, list[_Part]](list)
    for part in _parts(text, language):
        by_kind[part.kind].append(part)
    kinds = [kind for kind, parts in by_kind.items() if len(parts) > 1]
    telling = [kind for kind in kinds if kind != "word"]
    if not kinds:
        return None
    kind = rng.choice(telling if telling and rng.random() < _NAMED else kinds)
    for _ in range(_TRIES):
        left, right = sorted(rng.sample(by_kind[kind], 2), key=lambda part: part.start)
        first, between, second = left.text, text[left.end : right.start], right.text
        apart = right.words[0] - left.words[1] > 2 and not _LISTED.fullmatch(between)
        if apart and first.lower() != second.lower() and abs(len(first) - len(second)) <= _LONGER:
            start = left.start + len(second) + len(between)
            wrong = text[: left.start] + second + between + first + text[right.end :]
            marks = ((left.start, left.start + len(second)), (start, start + len(first)))
            return Swap(text, wrong, ((left.start, left.end), (right.start, right.end)), marks)
    return None


def borrowed(text: str, others: Sequence[str], language: str | None, rng: Random) -> Swap | None:
    """A sentence with a name or number of another one in place of its own; None where there is none of the kind."""
    parts = [part for part in _parts(text, language) if part.kind != "word"]
    for part in rng.sample(parts, len(parts)):
        values = [
            rival.text
            for other in others
            for rival in _parts(other, language)
            if rival.kind == part.kind
            and rival.text.lower() not in text.lower()
            and part.text.lower() not in rival.text.lower()
        ]
        if values:
            value = rng.choice(values)
            wrong = text[: part.start] + value + text[part.end :]
            return Swap(text, wrong, ((part.start, part.end),), ((part.start, part.start + len(value)),))
    return None


class Swaps:
    """Draws sentences without end.

    Args:
        rows: rows that train; sentences are taken from their evidence.
        pairs: rows of sentence pairs that train; those of one group in several languages are translations.
    """

    def __init__(self, rows: Iterable[Row], pairs: Iterable[Row]) -> None:
        passages = defaultdict[str, dict[str, None]](dict)
        for example in (row.example for row in rows):
            language = example.evidence_language or example.language
            if language is not None:
                passages[language].update({p: None for p in example.passages if len(p) < _PASSAGE})
        self._passages = {tag: list(texts) for tag, texts in passages.items() if len(texts) >= _PASSAGES}
        groups = defaultdict[str, dict[str, Row]](dict)
        for row in pairs:
            groups[row.example.group][row.example.language or ""] = row
        self._translated = [group for group in groups.values() if len(group) > 1]

    def draw(self, rng: Random) -> list[Row]:
        """A right and a wrong sentence with their evidence; none where there is nothing to draw from."""
        ways = [way for way, texts in ((self._across, self._translated), (self._same, self._passages)) if texts]
        drawn = (rng.choice(ways)(rng) for _ in range(_DRAWS if ways else 0))
        return next(filter(None, drawn), [])

    def _same(self, rng: Random) -> list[Row]:
        """A sentence of a passage, or a clause of it, and sentences beside it."""
        language = rng.choice(sorted(self._passages))
        passage = rng.choice(self._passages[language])
        unspaced = _UNSPACED.search(passage)
        fewest, most, longest = _LENGTHS[bool(unspaced)]
        lines = [passage[start:end].strip() for start, end in sentences(passage, language)]
        fitting = [number for number, line in enumerate(lines) if fewest <= len(line) <= most]
        if not fitting:
            return []
        number = rng.choice(fitting)
        beside = rng.choice(_BESIDE)
        first = max(0, number - rng.randint(0, beside))
        evidence = lines[first : max(number + 1, first + beside + 1)]
        if sum(map(len, evidence)) > longest:
            first, evidence = number, [lines[number]]
        others = [line for line in evidence if line != lines[number]]
        swap = borrowed(lines[number], others, language, rng) if others and rng.random() < _BORROWED else None
        swap = swap or exchanged(lines[number], language, rng)
        if swap is None:
            return []
        if rng.random() < _MIRRORED:
            swap = swap.mirrored()
        evidence[number - first] = swap.right
        if rng.random() < _CLAUSE:
            swap = swap.clause(rng)
        return swap.rows(language, ("" if unspaced else " ").join(evidence))

    def _across(self, rng: Random) -> list[Row]:
        """A sentence, held against its translation."""
        group = rng.choice(self._translated)
        source, target = (group[language].example for language in rng.sample(sorted(group), 2))
        alike = rng.random() < 0.5 or bool(group[target.language or ""].unsupported)
        text = target.passages[0] if alike else target.response
        swap = exchanged(text, target.language, rng)
        return swap.rows(target.language, source.passages[0], source.language) if swap is not None else []
