"""Glued spans: the replaced word and its replacement in one ("RomeParis"), and where between them the seam lies.

`text.noise` tells a seam by how it looks (`RomeParis`, `20142015`). Most seams do not show, so here a language's own
texts say what they know: which words there are, which letters follow each other, how words begin and end. A place
inside a span is a seam where both sides are known and what they make together is not. Counts come from the data set
itself (references, and responses outside their marks), so nothing is assumed of a language.

It is an estimate and a lower bound: on mFAVA's gold files, where nothing is glued by rule, it takes 1 to 6% of the
spans for glued; in its silver files 30 to 90%.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import msgspec

from veriglot.records import Kind, Span, Unit
from veriglot.text.noise import looks_glued
from veriglot.text.normalization import fold
from veriglot.text.segmentation import words
from veriglot.text.unicode import script_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from veriglot.records import Sample

__all__ = ["Glue"]

Mark = TypeVar("Mark", Span, Unit)


_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d+")
_TWICE = re.compile(r"(\d+(?:[.,]\d+)?([^\d\s]{1,3}))\d+(?:[.,]\d+)?\2")  # 1841年1840年, 5%95%
_YEARS = (1000, 2100)
_SHORTEST_WORD = 4  # of two words of two letters
_SURE_PART = 3  # letters of the shorter part from which one sighting of it is enough
_SEEN_OFTEN = 5
_DENSE = frozenset({"Hani", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"})  # no spaces between words
_SYLLABIC = "Hang"  # few letters a word, spaces between phrases
_LONGEST_DENSE = 16  # code points: in a longer span some pair of letters is new by chance
_ENOUGH = 6_000_000  # code points of a language from which nothing more is learnt
_MOST = 1 << 20  # different words or runs of letters kept before those seen once go

_Why = Literal["words", "letters", "numbers", "look"]


class _Seam(NamedTuple):
    """A seam in a span."""

    at: int | None
    why: _Why


class _Counted(Counter[str]):
    """Counts of which those that were seen once are given up where there are too many."""

    def take(self, strings: Iterable[str]) -> None:
        """Count some more."""
        self.update(strings)
        if len(self) > _MOST:
            for key in [key for key, count in self.items() if count == 1]:
                del self[key]


class SeamFinder:
    """What the texts of one language know of its words and letters; memory and time have a bound."""

    def __init__(self) -> None:
        self._learnt = 0
        self._words = _Counted()
        self._strings = _Counted()  # letters in a row: words, or clauses where no spaces part words
        self._runs: Counter[str] = Counter()  # of two, three and four letters
        self._endings: Counter[str] = Counter()
        self._beginnings: Counter[str] = Counter()

    def learn(self, text: str, language: str | None = None) -> None:
        """Take in a text that holds no glue: a reference, or a response outside its marks. Enough is enough."""
        if self._learnt > _ENOUGH:
            return
        self._learnt += len(text)
        folded = fold(text)
        self._words.take(folded[start:end] for start, end in words(text, language))
        self._strings.take(_WORD.findall(folded))
        self._runs.clear()

    def _count_letters(self) -> None:
        """Runs, endings and beginnings, from the distinct strings."""
        runs, endings, beginnings = self._runs, self._endings, self._beginnings
        endings.clear()
        beginnings.clear()
        for word, count in self._strings.items():
            for size in (2, 3, 4):
                for at in range(len(word) - size + 1):
                    runs[word[at : at + size]] += count
            if len(word) > 1:
                for size in (2, 3):
                    endings[word[-size:]] += count
                    beginnings[word[:size]] += count

    def find(self, span: str, reference: str, language: str | None = None) -> _Seam | None:
        """The first seam of a marked text, or None where none is found."""
        folded = fold(span)
        if folded in reference:
            return None
        if (at := self._between_numbers(folded, reference)) is not None:
            return _Seam(at, "numbers")
        if (at := self._between_words(folded, span, language)) is not None:
            return _Seam(at, "words")
        if (at := self._between_letters(folded)) is not None:
            return _Seam(at, "letters")
        folded_words = (fold(span[start:end]) for start, end in words(span, language))
        if looks_glued(span) and not all(self._words[word] for word in folded_words):
            return _Seam(None, "look")
        return None

    def knows(self, text: str, language: str | None = None) -> bool:
        """Whether every word of a folded text is one of the language's."""
        bounds = words(text, language)
        return bool(bounds) and all(self._words[text[start:end]] for start, end in bounds)

    def _between_numbers(self, span: str, reference: str) -> int | None:
        twice = _TWICE.fullmatch(span)
        if twice:
            return len(twice.group(1))
        for number in _NUMBER.finditer(span):
            half, odd = divmod(len(number.group()), 2)
            digits = number.group()
            if odd or half < 2 or digits in reference:
                continue
            first, second = digits[:half], digits[half:]
            if half == 2 and _YEARS[0] <= int(digits) <= _YEARS[1]:
                continue
            both_years = half == 4 and all(_YEARS[0] <= int(part) <= _YEARS[1] for part in (first, second))
            if both_years or any(_stands_alone(part, reference) for part in (first, second)):
                return number.start() + half
        return None

    def _between_words(self, folded: str, span: str, language: str | None) -> int | None:
        for start, end in words(span, language):
            word = folded[start:end]
            if len(word) < _SHORTEST_WORD or self._words[word] or any(char.isdigit() for char in word):
                continue
            best, seam = 0, None
            for cut in range(2, len(word) - 1):
                seen = min(self._words[word[:cut]], self._words[word[cut:]])
                short = min(cut, len(word) - cut)
                if seen >= (1 if short >= _SURE_PART else _SEEN_OFTEN) and seen * short > best:
                    best, seam = seen * short, start + cut
            if seam is not None:
                return seam
        return None

    def _between_letters(self, span: str) -> int | None:
        if not self._runs:
            self._count_letters()
        script = script_of(span)
        for match in _WORD.finditer(span):
            word = match.group()
            if script in _DENSE:
                cut = self._new_pair(word, self._runs, self._runs, 1) if len(span) <= _LONGEST_DENSE else None
            elif script == _SYLLABIC:
                cut = self._new_pair(word, self._endings, self._beginnings, 2)
            else:
                cut = self._new_run(word)
            if cut is not None:
                return match.start() + cut
        return None

    def _new_pair(self, word: str, before: Counter[str], after: Counter[str], fewest: int) -> int | None:
        """Where spaces tell no words: two letters that never meet, between pairs that are known on their sides."""
        for cut in range(2, len(word) - 1):
            left, right = word[cut - 2 : cut], word[cut : cut + 2]
            known = before[left] >= fewest and after[right] >= fewest
            if known and not self._runs[left[1] + right[0]]:
                return cut
        return None

    def _new_run(self, word: str) -> int | None:
        """A frequent ending before a frequent beginning, and the run of four letters across them is new."""
        runs = self._runs
        for cut in range(_SURE_PART, len(word) - _SURE_PART + 1):
            left, right = word[cut - 3 : cut], word[cut : cut + 3]
            if self._endings[left] < _SEEN_OFTEN or self._beginnings[right] < _SEEN_OFTEN:
                continue
            across = left[1:] + right[:2]
            if not runs[across] and runs[across[:3]] <= 1 and runs[across[1:]] <= 1:
                return cut
        return None


def _stands_alone(number: str, text: str) -> bool:
    return re.search(rf"(?<!\d){number}(?!\d)", text) is not None


# Glued spans of a whole data set: learn each language, look at each replaced span, keep where the seams are.


_REPLACING = frozenset({"entity", "relation"})
"""Types of spans in which one wording took the place of another; the others were put in as they are."""


class Glue:
    """Finds glued spans; one finder a language. The languages in `wanted` have spans that may be glued."""

    def __init__(self) -> None:
        self._finders: dict[str, SeamFinder] = defaultdict(SeamFinder)
        self.wanted: set[str] = set()

    def want(self, sample: Sample) -> None:
        """Note that the language of a sample has replaced spans, so that its texts will be learnt."""
        if any(True for _ in _replaced(sample)):
            self.wanted.add(_base(sample))

    def learn(self, sample: Sample, text: str) -> None:
        """Take in a text in the language of a sample that holds nothing marked: a passage, or part of a response."""
        base = _base(sample)
        if base in self.wanted:
            self._finders[base].learn(text, sample.language)

    def learn_response(self, sample: Sample) -> None:
        """Take in a response, without what anybody marked in it."""
        read = 0
        spans = sorted((span.start, span.end) for annotation in sample.annotations for span in annotation.spans or ())
        for start, end in [*spans, (len(sample.response), len(sample.response))]:
            if start > read:
                self.learn(sample, sample.response[read:start])
            read = max(read, end)

    def look(self, sample: Sample) -> Iterator[tuple[Span, _Seam | None, str]]:
        """Each replaced span, the seam in it or None, and who marked it."""
        replaced = list(_replaced(sample))
        reference, finder = _reference(sample) if replaced else "", self._finders[_base(sample)]
        for span, annotator in replaced:
            text = sample.response[span.start : span.end]
            yield span, finder.find(text, reference, sample.language), annotator

    def mended(self, sample: Sample) -> tuple[Sample, int] | None:
        """The sample without the old words in its glued spans, and how many were cut; None where that is not safe.

        Only what models labelled is mended: people marked the text as it stands. A seam is cut where it is known and
        the old text is, by the reference or by the language's words.
        """
        glued = [(span, seam) for span, seam, _ in self.look(sample) if seam is not None]
        if not glued:
            return sample, 0
        if any(annotation.kind is not Kind.MODEL for annotation in sample.annotations):
            return None
        reference = _reference(sample)
        finder = self._finders[_base(sample)]
        ranges = []
        for span, seam in glued:
            old = "" if seam.at is None else fold(sample.response[span.start : span.start + seam.at])
            if seam.at is None or not (seam.why == "numbers" or old in reference or finder.knows(old, sample.language)):
                return None
            ranges.append((span.start, span.start + seam.at))
        mended = without_ranges(sample, ranges)
        if mended is None or any(seam is not None for _, seam, _ in self.look(mended)):
            return None
        return mended, len(glued)


def _base(sample: Sample) -> str:
    return (sample.language or "").partition("-")[0]


def _reference(sample: Sample) -> str:
    return fold("\n".join(passage.text for passage in sample.evidence))


def _replaced(sample: Sample) -> Iterator[tuple[Span, str]]:
    for annotation in sample.annotations:
        for span in annotation.spans or ():
            if span.type in _REPLACING:
                yield span, annotation.annotator


_STALE = ("glued",)  # what readers left in `meta` of the text as it was


def without_ranges(sample: Sample, ranges: Iterable[tuple[int, int]]) -> Sample | None:
    """The sample without parts of its response, marks moved along; None where a mark or the response would be empty."""
    gone = bytearray(len(sample.response))
    for start, end in ranges:
        gone[start:end] = b"\x01" * (end - start)
    response = "".join(char for char, out in zip(sample.response, gone, strict=True) if not out)
    moved = [0, *accumulate(not out for out in gone)]
    annotations = []
    for annotation in sample.annotations:
        spans, units = _moved(annotation.spans, moved), _moved(annotation.units, moved)
        if (spans is None) != (annotation.spans is None) or (units is None) != (annotation.units is None):
            return None
        spans = spans and tuple(
            span if span.text is None else msgspec.structs.replace(span, text=response[span.start : span.end])
            for span in spans
        )
        annotations.append(msgspec.structs.replace(annotation, spans=spans, units=units))
    if not response.strip():
        return None
    meta = {key: value for key, value in sample.meta.items() if key not in _STALE}
    return msgspec.structs.replace(sample, response=response, annotations=tuple(annotations), meta=meta)


def _moved(marks: Sequence[Mark] | None, moved: Sequence[int]) -> tuple[Mark, ...] | None:
    """Marks at their new places; None where there are none, or one would be empty."""
    if marks is None or any(moved[mark.start] == moved[mark.end] for mark in marks):
        return None
    return tuple(msgspec.structs.replace(mark, start=moved[mark.start], end=moved[mark.end]) for mark in marks)
