"""Words of a response that its evidence contradicts, by rule: who did what to whom, which value is whose, more or less.

No rule knows whether a response is right. Each reads what the response and the evidence say of the same, and marks the
words by which they differ; what it can't read it leaves to the network.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.judging.phrases import Patterns, patterns_of
from veriglot.judging.relations import HANGUL, HIRAGANA, Words, turned_names
from veriglot.text.segmentation import sentences, space_of
from veriglot.text.values import Value, likeliest_amount, read_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.arrays import Bools

    Range = tuple[int, int]

__all__ = ["contradicted_words"]


def contradicted_words(response: Words, evidence: Words, language: str, question: str | None = None) -> Bools:
    """The words that say otherwise than the evidence, shape (n,).

    Args:
        response: the response.
        evidence: all passages, a line break between each two.
        language: BCP 47 tag of both.
        question: the question, if there is one.
    """
    return (
        _exchanged(response, evidence, language)
        | turned_names(response, evidence, language, question)
        | _misplaced(response, evidence, language, question)
        | _reversed(response, evidence, language, question)
    )


# Words that changed places.


_STEM = 5  # code points: words that agree in their first four or more count as one where endings change
_LONGEST = 8  # words that change places together
_SHARED = 3  # words that two sentences have in common at least
_GAPS = 2  # words of longer names that may stand between: "by [Louis] Fabre"
_OFTEN = 200  # sentences of the evidence: a word in more of them finds none
_SCORE = set("比对対대")  # parts the two numbers of a score
_SHORT = 3  # letters of words that mean little by themselves
_PARTED = re.compile(r"[^\w\s'’\"“”«»()\[\]（）-]")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\u0e00-\u0e7f\uac00-\ud7af]")


class _Line(NamedTuple):
    """A sentence.

    Attributes:
        first: the number of its first word among all.
        words: as written.
        keys: by which words are the same.
        parted: whether a comma or the like stands before each.
        places: of each key.
    """

    first: int
    words: list[str]
    keys: list[str]
    parted: list[bool]
    places: dict[str, list[int]]

    def kind(self, low: int, high: int) -> str | None:
        """What some words are; None where they mean little."""
        words = self.words[low:high]
        if any(character.isdigit() for word in words for character in word):
            return "number"
        if any(word[0].isupper() for word in words):
            return "name"
        return "word" if _tells(words) else None

    def beside(self, low: int, high: int) -> bool:
        """Whether nothing parts two words but parts of a name."""
        if not 0 <= high - low <= _GAPS or any(self.parted[low : high + 1]):
            return False
        between = self.words[low:high]
        return all(word[0].isupper() for word in between) or (len(between) == 1 and not between[0][0].islower())

    def key(self, index: int) -> str | None:
        """Of a word; None outside."""
        return self.keys[index] if 0 <= index < len(self.keys) else None


class _Run(NamedTuple):
    """The same words in two sentences: where they begin and end in each."""

    start: int
    end: int
    other_start: int
    other_end: int


def _tells(words: list[str]) -> bool:
    if _UNSPACED.match(words[0]):
        return len("".join(words)) > 1 and not HIRAGANA.fullmatch("".join(words))
    return any(word.isalpha() and len(word) > _SHORT for word in words)


def _lines(words: Words, *, inflected: bool) -> list[_Line]:
    written = words.written
    keys = [word.lower()[: max(_STEM - 1, len(word) - 2) if inflected else None] for word in written]
    marks = np.searchsorted([mark.start() for mark in _PARTED.finditer(words.text)], words.bounds.ravel())
    parted = (np.diff(marks, prepend=0)[::2] > 0).tolist()
    cuts = [0, *(np.flatnonzero(np.diff(words.sentence)) + 1).tolist(), len(keys)]
    lines = [_Line(low, written[low:high], keys[low:high], parted[low:high], {}) for low, high in pairwise(cuts)]
    for line in lines:
        for index, key in enumerate(line.keys):
            line.places.setdefault(key, []).append(index)
    return lines


def _exchanged(response: Words, evidence: Words, language: str) -> Bools:
    """The words that changed places: the evidence has "Ada taught Bo", the response "Bo taught Ada".

    Two names, two numbers or two other words count, if the same words stand between them in one sentence of the
    evidence, and nowhere do they stand as in the response.
    """
    patterns = patterns_of(language)
    listing, inflected = (patterns.listing, patterns.inflected) if patterns else (set[str](), False)
    lines = _lines(evidence, inflected=inflected)
    having = defaultdict[str, list[int]](list)
    for number, line in enumerate(lines):
        for key in line.places:
            having[key].append(number)
    result = np.zeros(len(response.bounds), bool)
    for line in _lines(response, inflected=inflected):
        rare = (key for key in line.places if len(having[key]) <= _OFTEN)
        shared = Counter(number for key in rare for number in having[key])
        others = [lines[number] for number, count in shared.items() if count >= _SHARED]
        for left, right in (pair for other in others for pair in _exchanges(line, other, listing, inflected=inflected)):
            stretch = f" {' '.join(line.keys[left.end - 1 : right.start + 1])} "
            if not any(stretch in f" {' '.join(other.keys)} " for other in others):
                for run in (left, right):
                    result[line.first + run.start : line.first + run.end] = True
    return result


def _exchanges(line: _Line, other: _Line, listing: set[str], *, inflected: bool) -> Iterator[tuple[_Run, _Run]]:
    """Words before and after the same words, which stand in the other order in the evidence."""
    runs, behind = _runs(line.keys, other), defaultdict[_Run, list[_Run]](list)
    for number, run in enumerate(runs, 1):
        for after in runs[number:]:  # by where they begin in the line
            if after.start > run.end + _GAPS:
                break
            if other.beside(after.other_end, run.other_start) and line.beside(run.end, after.start):
                behind[run].append(after)
    turned = ((left, run, right) for left in behind for run in behind[left] for right in behind.get(run, ()))
    for left, run, right in turned:
        between = line.keys[run.start : run.end]
        is_score = _SCORE.issuperset(between) and line.kind(left.start, left.end) == "number"  # "27比24"
        if is_score or listing.issuperset(between):
            continue
        goes_on = line.key(left.start - 1) == other.key(right.other_start - 1) is not None
        goes_on |= line.key(right.end) == other.key(left.other_end) is not None
        gaps = right.start - left.end + left.other_start - right.other_end - 2 * (run.end - run.start)
        if not _tells(line.words[run.start : run.end]) and (gaps or not goes_on):
            continue
        forms = [line.words[x.start : x.end] == other.words[x.other_start : x.other_end] for x in (left, right)]
        if _alike(line, left, right) and not (inflected and all(forms)):
            yield left, right


def _runs(keys: list[str], other: _Line) -> list[_Run]:
    """The longest runs of words that stand in both."""
    runs = []
    for i, key in enumerate(keys):
        for j in other.places.get(key, ()):
            if not i or not j or keys[i - 1] != other.keys[j - 1]:
                size = 1
                while i + size < len(keys) and other.key(j + size) == keys[i + size]:
                    size += 1
                runs.append(_Run(i, i + size, j, j + size))
    return runs


def _alike(line: _Line, left: _Run, right: _Run) -> bool:
    """Whether two names, numbers or words can change places; a preposition stays with its own."""
    kind, *begin = line.kind(left.start, left.end), line.words[left.start], line.words[right.start]
    own = any(word.islower() and len(word) <= _SHORT and not _UNSPACED.match(word) for word in begin)
    same = None is not kind == line.kind(right.start, right.end) and (not own or begin[0] == begin[1])
    different = line.keys[left.start : left.end] != line.keys[right.start : right.end]
    return same and different and max(left.end - left.start, right.end - right.start) <= _LONGEST


# Values of another thing: "the museum opened in 1973" where that is when the kiln was built.


_PARTS = r"[,:](?!\d)|[;،؛、，；：()（）|]"  # between the parts of a sentence
_SAYS = re.compile(r"[^\W\d_\u3040-\u309f]")
_LABELS, _STOPS = ":：()（）", ";；؛"  # parts that belong to the value beside them, and those that do not
_SMALL = 10  # numbers below it, without a unit, may count anything
_REACH = 6, 3  # code points between values of the same, "in 1920 and 1921"; where words are not parted
_SHORT_EVIDENCE = 12  # sentences: in a longer one a word may tell of many things, and two must agree
_OCCURRENCES = 4  # of a word in the evidence; more tell nothing


class _Stated(NamedTuple):
    """A value in a text: what it measures, its amounts, where it stands, and in which sentence."""

    measure: str
    amounts: tuple[float, ...]
    span: Range
    sentence: int


class _Values:
    """The values of a text that can belong to one thing or another: years, shares, and numbers of what is counted."""

    def __init__(self, words: Words, language: str) -> None:
        self.words, self._language = words, language
        self.stated = [
            _Stated(measure, value.amounts, (value.start, value.end), self._sentence(value.end))
            for value in read_values(words.text, language)
            if (measure := _measure(value, words.text))
        ]
        self.reach = _REACH[not space_of(language)]

    def _sentence(self, end: int) -> int:
        return int(self.words.sentence[max(int(np.searchsorted(self.words.bounds[:, 0], end)) - 1, 0)])

    @cached_property
    def parts(self) -> list[int]:
        """Where the parts of sentences end."""
        patterns = patterns_of(self._language)
        listing = map(re.escape, patterns.listing if patterns and space_of(self._language) else ())
        joined = rf"{_PARTS}|\s(?:{'|'.join(['[-–—]', *listing])})\s"
        return [match.start() for match in re.finditer(joined, self.words.text)]

    @cached_property
    def telling(self) -> set[int]:
        """The words that say what a value may be of."""
        words, inside = self.words, np.zeros(len(self.words.bounds), bool)
        for value in self.stated:
            counted = 1 if value.measure.startswith("number") else 0
            inside[words.within(value.span[0], value.span[1] + 2 * counted)] = True
        indices = np.flatnonzero(words.telling & ~inside).tolist()
        return {index for index in indices if _SAYS.search(words.written[index])}

    def key(self, index: int) -> str:
        """By which a word is found: its stem; of a Korean one the beginning, since particles follow."""
        word = self.words.written[index]
        return word[:2] if HANGUL.match(word) else str(self.words.stem[index])

    def part(self, start: int) -> int:
        """The number of the part in which a code point stands."""
        return bisect_right(self.parts, start)


def _measure(value: Value, text: str) -> str:
    """What makes two values comparable; empty where nothing does."""
    if value.kind in {"year", "percent"}:
        return value.kind
    amount = value.amounts[0]
    counts = value.kind == "number" and text[value.start].isdigit()
    return f"number {value.unit or value.counted}" if counts and (amount >= _SMALL or value.unit or amount % 1) else ""


class _Beside(NamedTuple):
    """What the evidence tells beside a word, or the words of a name.

    Attributes:
        amounts: of the same part of a sentence, or of the whole one where the part has none.
        loose: those of whole sentences.
        occurrences: of the word in the evidence.
    """

    amounts: set[float]
    loose: set[float]
    occurrences: int


class _Index:
    """Finds beside which values of the evidence a word stands."""

    def __init__(self, values: _Values) -> None:
        self._values = values
        self._of_sentence = defaultdict[tuple[str, int], list[_Stated]](list)
        for value in values.stated:
            self._of_sentence[value.measure, value.sentence].append(value)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places = defaultdict[str, list[int]](list)
        for index in self._values.telling:
            places[self._values.key(index)].append(index)
        return places

    def beside(self, keys: list[str], measure: str) -> _Beside:
        """Of a word, or of the words of a name."""
        amounts, loose, words = set[float](), set[float](), self._values.words
        places = [index for key in keys for index in self._places.get(key, ())]
        for index in places:
            all_of = self._of_sentence.get((measure, int(words.sentence[index])), [])
            part = self._values.part(int(words.bounds[index, 0]))
            inside = [value for value in all_of if self._values.part(value.span[0]) == part]
            beside = {
                value.amounts[0]
                for value in all_of
                if not inside or any(_gap(value, other) <= self._values.reach for other in inside)
            }
            amounts |= beside
            loose |= set() if inside else beside
        return _Beside(amounts, loose, len(places))


def _gap(value: _Stated, other: _Stated) -> int:
    return max(value.span[0] - other.span[1], other.span[0] - value.span[1])


def _misplaced(response: Words, evidence: Words, language: str, question: str | None) -> Bools:
    """The values that the evidence tells of another thing: all words that say what they are of stand beside another.

    Words stand beside a value if they share a part of a sentence with it, or the sentence where the part has none. A
    sentence with two values of one measure is not judged, nor a value that the question names.
    """
    result = np.zeros(len(response.bounds), bool)
    values = _Values(response, language)
    known = _Values(evidence, language) if values.stated else None
    if known is None or not known.stated:
        return result
    asked = {amount for value in read_values(question or "", language) for amount in value.amounts}
    count = Counter((value.sentence, value.measure) for value in values.stated)
    needed = 1 if len(set(evidence.sentence.tolist())) <= _SHORT_EVIDENCE else 2
    index = _Index(known)
    for value in values.stated:
        amounts = {other.amounts[0] for other in known.stated if _equal(value, other)}
        if not amounts or count[value.sentence, value.measure] > 1 or asked.intersection(value.amounts):
            continue
        part, clause, sentence = (
            [index.beside(keys, value.measure) for keys in keys_of] for keys_of in _scopes(values, value)
        )
        near = part if any(words.amounts for words in part) else clause
        rivals = set[float]().union(*(words.amounts for words in near)) - amounts
        is_supported = any(words.amounts & amounts and not words.amounts & rivals for words in sentence)
        if not is_supported and _is_of_another(near, amounts, needed):
            result[response.within(*value.span)] = True
    return result


def _equal(value: _Stated, other: _Stated) -> bool:
    return value.measure == other.measure and not set(value.amounts).isdisjoint(other.amounts)


def _scopes(values: _Values, value: _Stated) -> Iterator[Iterator[list[str]]]:
    """The words of a value's part of a sentence, of what semicolons part from the rest, and of the sentence."""
    start, end = value.span
    whole = np.searchsorted(values.words.sentence, [value.sentence, value.sentence + 1])
    first, last = int(values.words.bounds[whole[0], 0]), int(values.words.bounds[whole[1] - 1, 1])
    marks = [(part, values.words.text[part]) for part in values.parts if first <= part < last]
    parts = [part for part, mark in marks if mark not in _LABELS]
    stops = [part for part, mark in marks if mark in _STOPS]
    for cuts in (parts, stops, []):
        low, high = (part for part in cuts if part <= start), (part for part in cuts if part >= end)
        yield _keys(values, (max(low, default=first), min(high, default=last)))


def _keys(values: _Values, scope: Range) -> Iterator[list[str]]:
    """Of the telling words of a range; those of a name together."""
    words = values.words
    inside = words.within(*scope)
    telling = [index for index in range(inside.start, inside.stop) if index in values.telling]
    capital = [words.written[index][0].isupper() for index in telling]
    name: list[str] = []
    for number, index in enumerate(telling):
        name.append(values.key(index))
        if not all(capital[number : number + 2]) or telling[number + 1 : number + 2] != [index + 1]:
            yield name
            name = []


def _is_of_another(near: list[_Beside], amounts: set[float], needed: int) -> bool:
    """Whether words stand beside another amount, and none beside these unless it stands beside the other, too."""
    supporting = [words for words in near if not amounts.isdisjoint(words.amounts)]
    against = [
        words.amounts - words.loose
        for words in near
        if amounts.isdisjoint(words.amounts) and words.occurrences <= _OCCURRENCES
    ]
    rivals = Counter(rival for others in against for rival in others)
    return all(amounts.isdisjoint(words.loose) for words in supporting) and any(
        count >= needed and all(rival in words.amounts for words in supporting) for rival, count in rivals.items()
    )


# More and less.


_NEAR = 12  # code points between "more than" and its number
_AMOUNTS = ("number", "percent")  # kinds of values
_STOP = re.compile(r"[.;!?।۔](?=\s)|[。；！？\n]")  # ends a sentence, also before a digit


class _Trend(NamedTuple):
    """What a sentence of the evidence tells: two years, and whether there was more (1) or less (-1) in the later."""

    years: frozenset[float]
    sign: float


def _trends(evidence: str, language: str) -> Iterator[_Trend]:
    """Of sentences with two years and two amounts: "from 9,000 in 1990 to 3,500 in 2010"."""
    ends = [match.end() for match in _STOP.finditer(evidence)]
    parts = groupby(read_values(evidence, language), lambda value: bisect_right(ends, value.start))
    for inside in (list(values) for _, values in parts):
        years = [value.amounts[0] for value in inside if value.kind == "year"]
        amounts = [likeliest_amount(value, evidence, language) for value in inside if value.kind in _AMOUNTS]
        if len(years) == len(amounts) == 2 and (change := (amounts[1] - amounts[0]) * (years[1] - years[0])):
            yield _Trend(frozenset(years), float(np.sign(change)))


def _reversed(response: Words, evidence: Words, language: str, question: str | None) -> Bools:
    """The words that say "more" or "rose" where numbers of the evidence say "less" or "fell", or the reverse.

    Only sentences count that name a year of such numbers, or follow a question that does.
    """
    result, patterns = np.zeros(len(response.bounds), bool), patterns_of(language)
    claims = list(_claims(response.text, language, question, patterns)) if patterns else []
    trends = set(_trends(evidence.text, language)) if claims else set()
    for claim in claims:
        known = {trend for trend in trends if claim.years <= trend.years}
        if len({trend.sign for trend in known}) == 1:
            both, sign = known.pop()
            if claim.sign * _later(both, claim.years, claim.compared) == -sign:
                for span in claim.places:
                    result[response.within(*span)] = True
    return result


class _Claim(NamedTuple):
    """What a sentence of the response says: its years, those it compares with, more (1) or less (-1), and where."""

    years: set[float]
    compared: set[float]
    sign: int
    places: list[Range]


def _claims(response: str, language: str, question: str | None, patterns: Patterns) -> Iterator[_Claim]:
    asked = _years(read_values(question or "", language))
    for start, end in sentences(response, language):
        text = response[start:end]
        moves = list(patterns.moves(text))
        values = read_values(text, language) if moves else []
        amounts = [value.start for value in values if value.kind in _AMOUNTS]
        moves = [move for move in moves if not _counts(move[1], amounts)]
        years, signs = _years(values) or asked, {sign for *_, sign in moves}
        if years and len(signs) == 1:
            places = [(start + low, start + high) for low, high, _ in moves]
            yield _Claim(years, patterns.compared(text), signs.pop(), places)


def _counts(end: int, amounts: list[int]) -> bool:
    """Whether one of the amounts, by where they begin, follows at once: "more than 3,400"."""
    behind = bisect_left(amounts, end)
    return behind < len(amounts) and amounts[behind] - end <= _NEAR


def _years(values: Sequence[Value]) -> set[float]:
    return {value.amounts[0] for value in values if value.kind == "year"}


def _later(both: frozenset[float], years: set[float], compared: set[float]) -> int:
    """1 where a sentence speaks of the later of two years, -1 of the earlier, 0 where that is not clear."""
    if len(compared) == 1:
        return 1 if compared == {min(both)} else -1
    return 0 if years == {min(both)} else 1
