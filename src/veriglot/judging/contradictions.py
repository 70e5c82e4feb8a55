"""Rules that find words which the evidence contradicts: swapped roles, values of something else, wrong trends.

No rule can show that a response is right. Each compares what response and evidence say about the same thing and marks
the words that differ; what no rule can read is left to the network.
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
from veriglot.judging.relations import HANGUL, HIRAGANA, Words, swapped_names
from veriglot.text.segmentation import sentences, space_of
from veriglot.text.values import Value, likeliest_amount, read_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.arrays import Bools

    Range = tuple[int, int]

__all__ = ["contradicted_words"]


def contradicted_words(response: Words, evidence: Words, language: str, question: str | None = None) -> Bools:
    """The words of the response that contradict the evidence, shape (n,).

    Args:
        response: the response.
        evidence: all passages, joined by line breaks.
        language: BCP 47 tag of both.
        question: the question, if there is one.
    """
    return (
        _swapped_words(response, evidence, language)
        | swapped_names(response, evidence, language, question)
        | _misattributed(response, evidence, language, question)
        | _wrong_trends(response, evidence, language, question)
    )


# Swapped words.


_STEM = 5  # code points; in inflected languages, words that agree in at least the first four count as equal
_LONGEST = 8  # most words of a swapped run
_MIN_SHARED = 3  # words that two compared sentences must share
_GAPS = 2  # most words of longer names in between: "by [Louis] Fabre"
_FREQUENT = 200  # words in more sentences of the evidence are not used to find sentences
_SCORE = set("比对対대")  # separates the two numbers of a score
_SHORT = 3  # most letters of function words
_SEPARATOR = re.compile(r"[^\w\s'’\"“”«»()\[\]（）-]")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\u0e00-\u0e7f\uac00-\ud7af]")


class _Sentence(NamedTuple):
    """A sentence.

    Attributes:
        first: index of its first word in the text.
        words: as written.
        keys: equal for words that count as equal.
        separated: whether a comma or similar mark precedes each word.
        positions: indices of each key.
    """

    first: int
    words: list[str]
    keys: list[str]
    separated: list[bool]
    positions: dict[str, list[int]]

    def kind(self, low: int, high: int) -> str | None:
        """`number`, `name` or `word`; None for function words."""
        words = self.words[low:high]
        if any(character.isdigit() for word in words for character in word):
            return "number"
        if any(word[0].isupper() for word in words):
            return "name"
        return "word" if _has_content(words) else None

    def beside(self, low: int, high: int) -> bool:
        """Whether only parts of a name stand between two words."""
        if not 0 <= high - low <= _GAPS or any(self.separated[low : high + 1]):
            return False
        between = self.words[low:high]
        return all(word[0].isupper() for word in between) or (len(between) == 1 and not between[0][0].islower())

    def key(self, index: int) -> str | None:
        """The key of a word; None outside of the sentence."""
        return self.keys[index] if 0 <= index < len(self.keys) else None


class _SharedRun(NamedTuple):
    """Equal words of two sentences, as a half-open word range in each."""

    start: int
    end: int
    other_start: int
    other_end: int


def _has_content(words: list[str]) -> bool:
    if _UNSPACED.match(words[0]):
        return len("".join(words)) > 1 and not HIRAGANA.fullmatch("".join(words))
    return any(word.isalpha() and len(word) > _SHORT for word in words)


def _sentences_of(words: Words, *, inflected: bool) -> list[_Sentence]:
    written = words.written
    keys = [word.lower()[: max(_STEM - 1, len(word) - 2) if inflected else None] for word in written]
    marks = np.searchsorted([mark.start() for mark in _SEPARATOR.finditer(words.text)], words.bounds.ravel())
    separated = (np.diff(marks, prepend=0)[::2] > 0).tolist()
    cuts = [0, *(np.flatnonzero(np.diff(words.sentence)) + 1).tolist(), len(keys)]
    result = [
        _Sentence(low, written[low:high], keys[low:high], separated[low:high], {}) for low, high in pairwise(cuts)
    ]
    for sentence in result:
        for index, key in enumerate(sentence.keys):
            sentence.positions.setdefault(key, []).append(index)
    return result


def _swapped_words(response: Words, evidence: Words, language: str) -> Bools:
    """Words in swapped order: the evidence has "Ada taught Bo", the response "Bo taught Ada".

    Two names, two numbers or two other words count if one sentence of the evidence has the same words between them, and
    no sentence has them in the response's order.
    """
    patterns = patterns_of(language)
    listing, inflected = (patterns.listing, patterns.inflected) if patterns else (set[str](), False)
    stated = _sentences_of(evidence, inflected=inflected)
    having = defaultdict[str, list[int]](list)
    for number, sentence in enumerate(stated):
        for key in sentence.positions:
            having[key].append(number)
    result = np.zeros(len(response.bounds), bool)
    for sentence in _sentences_of(response, inflected=inflected):
        rare = (key for key in sentence.positions if len(having[key]) <= _FREQUENT)
        shared = Counter(number for key in rare for number in having[key])
        others = [stated[number] for number, count in shared.items() if count >= _MIN_SHARED]
        for left, right in (pair for other in others for pair in _swaps(sentence, other, listing, inflected=inflected)):
            wording = f" {' '.join(sentence.keys[left.end - 1 : right.start + 1])} "
            if not any(wording in f" {' '.join(other.keys)} " for other in others):
                for run in (left, right):
                    result[sentence.first + run.start : sentence.first + run.end] = True
    return result


def _swaps(
    line: _Sentence, other: _Sentence, listing: set[str], *, inflected: bool
) -> Iterator[tuple[_SharedRun, _SharedRun]]:
    """Pairs of runs around a shared run, in the other order in the other sentence."""
    runs, behind = _shared_runs(line.keys, other), defaultdict[_SharedRun, list[_SharedRun]](list)
    for number, run in enumerate(runs, 1):
        for after in runs[number:]:  # in order of their starts
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
        if not _has_content(line.words[run.start : run.end]) and (gaps or not goes_on):
            continue
        forms = [line.words[x.start : x.end] == other.words[x.other_start : x.other_end] for x in (left, right)]
        if _can_swap(line, left, right) and not (inflected and all(forms)):
            yield left, right


def _shared_runs(keys: list[str], other: _Sentence) -> list[_SharedRun]:
    """The longest runs of words that both sentences have."""
    runs = []
    for i, key in enumerate(keys):
        for j in other.positions.get(key, ()):
            if not i or not j or keys[i - 1] != other.keys[j - 1]:
                size = 1
                while i + size < len(keys) and other.key(j + size) == keys[i + size]:
                    size += 1
                runs.append(_SharedRun(i, i + size, j, j + size))
    return runs


def _can_swap(line: _Sentence, left: _SharedRun, right: _SharedRun) -> bool:
    """Whether two runs are both names, numbers or words, with the same preposition if any."""
    kind, *begin = line.kind(left.start, left.end), line.words[left.start], line.words[right.start]
    own = any(word.islower() and len(word) <= _SHORT and not _UNSPACED.match(word) for word in begin)
    same = None is not kind == line.kind(right.start, right.end) and (not own or begin[0] == begin[1])
    different = line.keys[left.start : left.end] != line.keys[right.start : right.end]
    return same and different and max(left.end - left.start, right.end - right.start) <= _LONGEST


# Misattributed values: "the museum opened in 1973", but in 1973 the kiln was built.


_PARTS = r"[,:](?!\d)|[;،؛、，；：()（）|]"  # between the parts of a sentence
_SAYS = re.compile(r"[^\W\d_\u3040-\u309f]")
_LABELS, _STOPS = ":：()（）", ";；؛"  # these do not separate a value from its label; these end a clause
_SMALL = 10  # smaller numbers without a unit may count anything and are skipped
_REACH = 6, 3  # most code points between values of one thing, "in 1920 and 1921"; the second for unspaced scripts
_SHORT_EVIDENCE = 12  # sentences; in longer evidence a word may refer to many things, so two words must agree
_OCCURRENCES = 4  # words with more occurrences in the evidence prove nothing


class _StatedValue(NamedTuple):
    """A value in a text: what it measures, its possible amounts, its code points, and the number of its sentence."""

    measure: str
    amounts: tuple[float, ...]
    span: Range
    sentence: int


class _Values:
    """The values of a text that can be misattributed: years, percentages, and numbers with a unit or counted noun."""

    def __init__(self, words: Words, language: str) -> None:
        self.words, self._language = words, language
        self.values = [
            _StatedValue(measure, value.amounts, (value.start, value.end), self._sentence(value.end))
            for value in read_values(words.text, language)
            if (measure := _measure(value, words.text))
        ]
        self.reach = _REACH[not space_of(language)]

    def _sentence(self, end: int) -> int:
        return int(self.words.sentence[max(int(np.searchsorted(self.words.bounds[:, 0], end)) - 1, 0)])

    @cached_property
    def parts(self) -> list[int]:
        """Offsets at which parts of sentences end."""
        patterns = patterns_of(self._language)
        listing = map(re.escape, patterns.listing if patterns and space_of(self._language) else ())
        joined = rf"{_PARTS}|\s(?:{'|'.join(['[-–—]', *listing])})\s"
        return [match.start() for match in re.finditer(joined, self.words.text)]

    @cached_property
    def content(self) -> set[int]:
        """Indices of the content words outside of values: what a value may belong to."""
        words, inside = self.words, np.zeros(len(self.words.bounds), bool)
        for value in self.values:
            counted = 1 if value.measure.startswith("number") else 0
            inside[words.within(value.span[0], value.span[1] + 2 * counted)] = True
        indices = np.flatnonzero(words.content & ~inside).tolist()
        return {index for index in indices if _SAYS.search(words.written[index])}

    def key(self, index: int) -> str:
        """The key of a word: its stem; in Korean its first two syllables, since particles follow."""
        word = self.words.written[index]
        return word[:2] if HANGUL.match(word) else str(self.words.stem[index])

    def part(self, start: int) -> int:
        """The number of the part that contains a code point."""
        return bisect_right(self.parts, start)


def _measure(value: Value, text: str) -> str:
    """What a value measures; only values of the same measure are compared. Empty if it cannot be compared."""
    if value.kind in {"year", "percent"}:
        return value.kind
    amount = value.amounts[0]
    counts = value.kind == "number" and text[value.start].isdigit()
    return (
        f"number {value.unit or value.counted[:2]}" if counts and (amount >= _SMALL or value.unit or amount % 1) else ""
    )


class _NearbyValues(NamedTuple):
    """Values near the occurrences of a word or name in the evidence.

    Attributes:
        amounts: of the same part of a sentence, or of the whole sentence if the part has none.
        loose: only those of whole sentences.
        occurrences: number of occurrences.
    """

    amounts: set[float]
    loose: set[float]
    occurrences: int


class _Index:
    """Finds the values near a word in the evidence."""

    def __init__(self, values: _Values) -> None:
        self._values = values
        self._of_sentence = defaultdict[tuple[str, int], list[_StatedValue]](list)
        self._amounts = defaultdict[tuple[str, float], set[float]](set)
        self._nearby = dict[tuple[str, ...], _NearbyValues]()  # the words of a long list are always the same
        for value in values.values:
            self._of_sentence[value.measure, value.sentence].append(value)
            for amount in value.amounts:
                self._amounts[value.measure, amount].add(value.amounts[0])

    @cached_property
    def _positions(self) -> dict[str, list[int]]:
        positions = defaultdict[str, list[int]](list)
        for index in self._values.content:
            positions[self._values.key(index)].append(index)
        return positions

    def equal(self, value: _StatedValue) -> set[float]:
        """The amounts of the values that can equal a value of another text."""
        return set[float]().union(*(self._amounts.get((value.measure, amount), ()) for amount in value.amounts))

    def near(self, keys: list[str], measure: str) -> _NearbyValues:
        """The values of a measure near a word, or near any word of a name."""
        key = (*keys, measure)
        if key not in self._nearby:
            self._nearby[key] = self._near(keys, measure)
        return self._nearby[key]

    def _near(self, keys: list[str], measure: str) -> _NearbyValues:
        amounts, loose, words = set[float](), set[float](), self._values.words
        positions = [index for key in keys for index in self._positions.get(key, ())]
        for index in positions:
            all_of = self._of_sentence.get((measure, int(words.sentence[index])), [])
            part = self._values.part(int(words.bounds[index, 0]))
            inside = [value for value in all_of if self._values.part(value.span[0]) == part]
            near = {
                value.amounts[0]
                for value in all_of
                if not inside or any(_gap(value, other) <= self._values.reach for other in inside)
            }
            amounts |= near
            loose |= set() if inside else near
        return _NearbyValues(amounts, loose, len(positions))


def _gap(value: _StatedValue, other: _StatedValue) -> int:
    return max(value.span[0] - other.span[1], other.span[0] - value.span[1])


def _misattributed(response: Words, evidence: Words, language: str, question: str | None) -> Bools:
    """Values that belong to something else: in the evidence, the words near the value have another value near them.

    A word is near a value in the same part of a sentence, or in the sentence if the part has no value. Sentences with
    two values of one measure are skipped, and so are values that the question names.
    """
    result = np.zeros(len(response.bounds), bool)
    values = _Values(response, language)
    known = _Values(evidence, language) if values.values else None
    if known is None or not known.values:
        return result
    asked = {amount for value in read_values(question or "", language) for amount in value.amounts}
    count = Counter((value.sentence, value.measure) for value in values.values)
    needed = 1 if len(set(evidence.sentence.tolist())) <= _SHORT_EVIDENCE else 2
    index = _Index(known)
    for value in values.values:
        amounts = index.equal(value)
        if not amounts or count[value.sentence, value.measure] > 1 or asked.intersection(value.amounts):
            continue
        part, clause, sentence = (
            [index.near(keys, value.measure) for keys in keys_of] for keys_of in _scopes(values, value)
        )
        near = part if any(words.amounts for words in part) else clause
        rivals = set[float]().union(*(words.amounts for words in near)) - amounts
        is_supported = any(words.amounts & amounts and not words.amounts & rivals for words in sentence)
        if not is_supported and _is_of_another(near, amounts, needed):
            result[response.within(*value.span)] = True
    return result


def _scopes(values: _Values, value: _StatedValue) -> Iterator[Iterator[list[str]]]:
    """The words of a value's part of a sentence, of its clause between semicolons, and of its sentence."""
    start, end = value.span
    whole = np.searchsorted(values.words.sentence, [value.sentence, value.sentence + 1])
    first, last = int(values.words.bounds[whole[0], 0]), int(values.words.bounds[whole[1] - 1, 1])
    inside = slice(bisect_left(values.parts, first), bisect_left(values.parts, last))
    marks = [(part, values.words.text[part]) for part in values.parts[inside]]
    parts = [part for part, mark in marks if mark not in _LABELS]
    stops = [part for part, mark in marks if mark in _STOPS]
    for cuts in (parts, stops, []):
        low, high = (part for part in cuts if part <= start), (part for part in cuts if part >= end)
        yield _keys(values, (max(low, default=first), min(high, default=last)))


def _keys(values: _Values, scope: Range) -> Iterator[list[str]]:
    """Keys of the content words of a range; the words of a name together."""
    words = values.words
    inside = words.within(*scope)
    content = [index for index in range(inside.start, inside.stop) if index in values.content]
    capital = [words.written[index][0].isupper() for index in content]
    name: list[str] = []
    for number, index in enumerate(content):
        name.append(values.key(index))
        if not all(capital[number : number + 2]) or content[number + 1 : number + 2] != [index + 1]:
            yield name
            name = []


def _is_of_another(near: list[_NearbyValues], amounts: set[float], needed: int) -> bool:
    """Whether `needed` words are near another amount, and every word near `amounts` is near that amount too."""
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


# Wrong trends.


_NEAR = 12  # most code points between "more than" and its number
_AMOUNTS = ("number", "percent")  # kinds of values
_STOP = re.compile(r"[.;!?।۔](?=\s)|[。；！？\n]")  # ends a sentence, also before a digit


class _Trend(NamedTuple):
    """A change in the evidence: two years, and whether the later one had more (1) or less (-1)."""

    years: frozenset[float]
    sign: float


def _trends(evidence: str, language: str) -> Iterator[_Trend]:
    """The trends of sentences with two years and two amounts: "from 9,000 in 1990 to 3,500 in 2010"."""
    ends = [match.end() for match in _STOP.finditer(evidence)]
    parts = groupby(read_values(evidence, language), lambda value: bisect_right(ends, value.start))
    for inside in (list(values) for _, values in parts):
        years = [value.amounts[0] for value in inside if value.kind == "year"]
        amounts = [likeliest_amount(value, evidence, language) for value in inside if value.kind in _AMOUNTS]
        if len(years) == len(amounts) == 2 and (change := (amounts[1] - amounts[0]) * (years[1] - years[0])):
            yield _Trend(frozenset(years), float(np.sign(change)))


def _wrong_trends(response: Words, evidence: Words, language: str, question: str | None) -> Bools:
    """Words such as "more" or "rose" if numbers of the evidence show "less" or "fell", or the reverse.

    Only sentences that name a year of these numbers are judged, or all sentences if the question names one.
    """
    result, patterns = np.zeros(len(response.bounds), bool), patterns_of(language)
    claims = list(_claims(response.text, language, question, patterns)) if patterns else []
    trends = set(_trends(evidence.text, language)) if claims else set()
    for claim in claims:
        known = {trend for trend in trends if claim.years <= trend.years}
        if len({trend.sign for trend in known}) == 1:
            both, sign = known.pop()
            if claim.sign * _later(both, claim.years, claim.compared) == -sign:
                for span in claim.ranges:
                    result[response.within(*span)] = True
    return result


class _Claim(NamedTuple):
    """A trend in the response: its years, those it compares with, more (1) or less (-1), and its code points."""

    years: set[float]
    compared: set[float]
    sign: int
    ranges: list[Range]


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
            ranges = [(start + low, start + high) for low, high, _ in moves]
            yield _Claim(years, patterns.compared(text), signs.pop(), ranges)


def _counts(end: int, amounts: list[int]) -> bool:
    """Whether an amount begins right after `end`: "more than 3,400"."""
    behind = bisect_left(amounts, end)
    return behind < len(amounts) and amounts[behind] - end <= _NEAR


def _years(values: Sequence[Value]) -> set[float]:
    return {value.amounts[0] for value in values if value.kind == "year"}


def _later(both: frozenset[float], years: set[float], compared: set[float]) -> int:
    """1 if a sentence is about the later of two years, -1 if about the earlier, 0 if unclear."""
    if len(compared) == 1:
        return 1 if compared == {min(both)} else -1
    return 0 if years == {min(both)} else 1
