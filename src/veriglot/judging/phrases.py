"""Words of a response that claim nothing: list numbers, citations, openings, closings, refusals; and exchanged ones.

The phrases of each language are in `phrases.toml`. They are classes of words rather than sentences: an opening is a
run of words at the beginning of a sentence that all belong to a class and that name a source ("text") and how it is
referred to ("according to"), in any order.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from functools import cache
from itertools import groupby, product
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from veriglot.plugins import packaged
from veriglot.records.languages import base_tag
from veriglot.text.normalization import fold, normalise, plain
from veriglot.text.segmentation import folded_words, sentences, space_of
from veriglot.text.values import Value, likeliest_amount, read_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.arrays import Bools, Bounds, Int64s

    Range = tuple[int, int]

__all__ = ["exchanged_words", "harmless_words", "is_refusal", "reversed_trends"]


_STEM = 5  # code points: words that agree in their first five count as one stem
_LIST_ITEM = re.compile(
    r"^[ \t>*+•·–—-]*\(?(\d{1,3})[.)．）、](?=\s|\*|[^\W\d_])|(?<![\w(])(\d{1,2})\)(?=\s)", re.MULTILINE
)
_MARKUP = re.compile(
    r"^[ \t>*+•·–—-]*\(?(?:[a-zA-Z]|[ivx]{1,4})\)(?=\s)"  # a) ii)
    r"|\[\^?\d{1,3}(?:\s*[,;–-]\s*\^?\d{1,3})*\](?:\([^()\s]*\))?|【\d{1,3}[^】\n]{0,20}】"  # [1, 3] [1](address)
    r"|[(（][1-9][)）](?=\s*(?:[.,;:!?。，、；！？।۔]|$))"  # (2) at the end of a clause
    r"|^[ \t]*```\w*|</?[a-zA-Z]{1,10}\d?\s*/?>|<\|[^|\n]{0,40}\|>",
    re.MULTILINE,
)
_GAP = (
    r"\s!-/:-@\[-`{-~¡¿।॥·…•。、・「」『』（）【】！？：；，"  # after normalisation; everything else is inside a word
)
_LEADING = re.compile(rf"(?:\[?[\d, ]{{1,9}}\]|\d{{1,3}}[.)](?=\s)|[{_GAP}])*")
_BRACKETS = re.compile(r"[(\[（【]([^()\[\]（）【】\n]{1,80})[)\]）】]")
_NOTHING = re.compile(rf"(?:[{_GAP}]|(?<!\d)\d{{1,3}}(?!\d))*")
_SOFT = " \t\n\"'*_()-"  # may stand inside an opening
_SPACE = r"[\s,'-]"  # between the words of a phrase
_REST = r"[^\s,.;:!?)\"]*"  # of a word
_PART = r"[^\s,.;:!?)\"'-]+"  # shares no sign with what parts words, so that there is one way only to match
_FEW = 4  # letters
_SORRY = 4  # words before a denial that claim nothing: "I am sorry"
_AFTER = 3  # words after one: "or his wife"
_WRITTEN = 2.5  # code points that make a word where words are not parted
_CLAUSE = re.compile(r"[,،、;؛:()](?!\d)|\s[-–—]+\s|[.!?।۔。](?=\s)")
_NEAR = 12  # code points between a year and what compares with it, or between "more than" and its number
_AMOUNTS = ("number", "percent")  # kinds of values
_STOP = re.compile(r"[.;!?।۔](?=\s)|[。；！？]")  # ends a sentence, also before a digit
_CLASSES = ("source", "info", "lead", "fill", "intro")


class _Wording(msgspec.Struct, forbid_unknown_fields=True):
    """The table of one language: words apart by spaces (`*` any ending, `_` a space), and lists of phrases.

    In phrases `...` is any words; `^` at the beginning says that a sentence begins with it, and `+` at the end that no
    punctuation need follow an opener of one word.
    """

    source: str  # what evidence is called
    info: str  # what evidence holds
    lead: str  # how it is referred to
    fill: str  # what may stand among them
    intro: str  # what lists and answers are called
    answers: str  # yes and no
    openers: list[str]
    closings: list[str]
    refusals: list[str]  # by themselves
    denials: list[str] = []  # beside the name of a source
    negation: str = ""  # with a verb of `say` or a noun of `info` after it: a denial too
    say: str = ""
    but: str = ""
    although: str = ""
    because: str = ""
    according: str = ""  # of what follows the evidence says something: "according to", but not "in"
    asking: str = ""  # what a clause begins with that says what is not known
    that: str = ""
    condition: str = ""  # a closing that begins so
    offer: str = ""  # must hold one of these: "If you need a visa, apply early" is none
    clitics: str = ""  # what may be written together with the next word
    inverted: bool = False  # whether the verb may stand before its negation
    listing: str = ""  # words on either side of which the order tells nothing: "and"
    rise: str = ""  # what says that there came to be more
    fall: str = ""
    than: str = ""  # what stands before the year that is compared with
    than_after: bool = False  # whether it stands after it
    inflected: bool = False  # whether endings, not the order, say who did what


class _Patterns:
    """The expressions of one language, for normalised text."""

    def __init__(self, tag: str, wording: _Wording) -> None:
        self.spaced = bool(space_of(tag))
        self._before = rf"(?:(?<=[{_GAP}])|^)" if self.spaced else ""
        self._after = rf"(?=[{_GAP}]|$)" if self.spaced else ""
        self._clitics = f"(?:{'|'.join(map(re.escape, wording.clitics.split()))})*" if wording.clitics else ""
        every = self._any_of([self._word(word) for name in _CLASSES for word in getattr(wording, name).split()])
        self.run = re.compile(rf"{self._before}(?:{every}[{_SOFT}]*)+", re.MULTILINE)
        self.lead = self._words(wording.lead)
        self.source = self._words(wording.source)
        self.referent = self._words(wording.source, wording.info)
        self.intro = self._words(wording.lead, wording.intro, wording.source)
        self.answers = self._words(wording.answers)
        self.closings = self._any([self._phrase(f"{phrase}*") for phrase in wording.closings])
        self.condition = self._words(wording.condition)
        self.offer = self._words(wording.offer)
        self.refusals = self._any(list(map(self._phrase, wording.refusals)))
        self.but = self._words(wording.but, wording.although, wording.because)
        self.although = self._words(wording.although)
        self.according = self._words(wording.according)
        self.asking = self._words(wording.asking)
        self.that = self._words(wording.that)
        self.negation = self._words(wording.negation)
        self._moves, self._fall = self._words(wording.rise, wording.fall), self._words(wording.fall)
        than = self._any_of(list(map(self._word, wording.than.split())), "")
        near = rf"\D{{0,{_NEAR}}}"
        self._than = re.compile(rf"(\d{{4}}){near}{than}" if wording.than_after else rf"{than}{near}(\d{{4}})")
        self.openers = self._openers(wording.openers)
        self.denials = self._denials(wording)

    def _word(self, word: str) -> str:
        any_ending = _REST if word.endswith("*") and self.spaced else ""
        return self._clitics + re.escape(plain(word.rstrip("*"))).replace("_", r"[\s'-]+") + any_ending

    def _phrase(self, phrase: str) -> str:
        space, gap = (
            (rf"{_SPACE}+", rf"{_SPACE}+(?:[^.!?]{{0,80}}?{_SPACE})??") if self.spaced else (r"\s*", "[^.!?]{0,40}?")
        )
        begin = rf"(?<![\s\S])[{_GAP}]*" if phrase.startswith("^") else ""
        parts = phrase.strip("^+").split("...")
        return begin + gap.join(space.join(map(self._word, part.split())) for part in parts)

    def _any_of(self, expressions: list[str], after: str | None = None) -> str:
        """Any of the expressions, longest first, as whole words; nothing where there is none."""
        ordered = "|".join(sorted(expressions, key=len, reverse=True))
        return f"(?:{ordered}){self._after if after is None else after}" if expressions else "(?!)"

    def _any(self, expressions: list[str]) -> re.Pattern[str]:
        return re.compile(self._before + self._any_of(expressions), re.MULTILINE)

    def _words(self, *words: str) -> re.Pattern[str]:
        return self._any([self._word(word) for word in " ".join(words).split()])

    def _openers(self, phrases: list[str]) -> re.Pattern[str]:
        """Those of one word, or of few letters where words are not parted, need a mark after them."""
        short = [p for p in phrases if not p.endswith("+") and (" " not in p if self.spaced else len(p) <= _FEW)]
        closed = self._any_of(list(map(self._phrase, short)), r"(?=\s*(?:[!-/:-@।॥·…•。、！？：；，\n]|$))")
        long = self._any_of([self._phrase(p) for p in phrases if p not in short])
        return re.compile(f"{closed}|{long}", re.MULTILINE)

    def _denials(self, wording: _Wording) -> re.Pattern[str]:
        """The phrases that deny, and a negation near a verb of saying or a noun of what evidence holds."""
        expressions = list(map(self._phrase, wording.denials))
        negations, says = wording.negation.split(), f"{wording.say} {wording.info}".split()
        if negations:
            negation, say = (self._any_of(list(map(self._word, words))) for words in (negations, says))
            expressions.append(rf"{negation}(?:[\s'-]+{_PART}){{0,3}}?[\s'-]+{say}")
            if wording.inverted:
                that = f"(?!{self.that.pattern})"
                expressions.append(rf"{say}(?:\s+{that}[^\s,.;:!?)\"]+){{0,3}}?\s+{negation}")
        return self._any(expressions)

    def framing_end(self, text: str, start: int, end: int, *, whole: bool) -> int:
        """Where the opening that begins at `start` ends, or `start`; `whole` if it may be all of the sentence."""
        if opener := self.openers.match(text, start, end):
            return opener.end()
        last = self.run_end(text, start, end)
        if last == start:
            return start
        named = bool(self.lead.search(text, start, last) and self.referent.search(text, start, last))
        if named and re.match(r"[\s*_]*[,;]" if self.spaced else r"\s|[*_]*[,;]", text[last:end]):
            return last
        after = last  # of all that is parted by commas only: "Here is, in short, what the text says:"
        while (comma := re.compile(r", *").match(text, after, end)) and self.run_end(
            text, comma.end(), end
        ) > after + 2:
            after = self.run_end(text, comma.end(), end)
        closed = whole and _NOTHING.fullmatch(text, after, end)
        if (closed or re.match(r"[\s*_]*:", text[after:end])) and self.intro.search(text, start, after):
            return after
        if not named or _NOTHING.fullmatch(text, last, end):
            return start
        return max(m.end() for p in (self.lead, self.referent) for m in p.finditer(text, start, last))

    def run_end(self, text: str, start: int, end: int) -> int:
        """Where the words of any class that begin at `start` end, or `start`."""
        run = self.run.match(text, start, end)
        return start + len(run.group().rstrip(_SOFT)) if run else start

    def moves(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Where a sentence says "more" or "rose" (1), or the reverse (-1); nothing if it denies anything."""
        normal = normalise(text, spaces=False)
        folded = fold(normal.text)
        for match in () if self.negation.search(folded) else self._moves.finditer(folded):
            yield (*normal.original(*match.span()), -1 if self._fall.fullmatch(match.group()) else 1)

    def compared(self, text: str) -> set[float]:
        """The years that a sentence compares with."""
        return {float(match[1]) for match in self._than.finditer(plain(text))}

    def cites(self, inside: str) -> bool:
        """Whether what stands in brackets is "Document 1", "see the text" and the like."""
        return bool(self.source.search(inside) and _NOTHING.fullmatch(self.run.sub(" ", inside)))

    def claims_nothing(self, clause: str, most: int) -> bool:
        """Whether a clause has few words and no number, is an opening, or says what is asked."""
        words = re.findall(rf"[^{_GAP}]+", clause)
        count = len(words) if self.spaced else len("".join(words)) / _WRITTEN
        opening = self.run_end(clause, 0, len(clause)) == len(clause.rstrip(_SOFT))
        return opening or bool(words and self.asking.match(clause)) or (count <= most and not re.search(r"\d", clause))

    def parts(self, text: str, start: int, end: int) -> Iterator[Range]:
        """A sentence, parted at its spaces where words have none: Thai has no other mark between sentences."""
        if self.spaced:
            yield start, end
        else:
            yield from ((start + part.start(), start + part.end()) for part in re.finditer(r"\S+", text[start:end]))


@cache
def _wordings() -> dict[str, _Wording]:
    return packaged(__package__, "phrases.toml", dict[str, _Wording])


def _patterns(language: str | None) -> _Patterns | None:
    base = base_tag(language) if language else ""
    return _compiled("zh" if base == "yue" else base)


@cache
def _compiled(base: str) -> _Patterns | None:
    wording = _wordings().get(base)
    return None if wording is None else _Patterns(base, wording)


def harmless_words(response: str, bounds: Bounds, language: str | None, question: str | None = None) -> Bools:
    """The words that need no support because they claim nothing; `yes` and `no` are claims, and so are refusals here.

    List numbers, citation marks, tags; openings ("According to the text,"), closings ("I hope this helps"), and the
    lines that announce a list, which may take up words of the question.

    Args:
        response: the response.
        bounds: its words, half-open code point ranges in order, shape (n, 2).
        language: BCP 47 tag. Without a table of it only marks are known.
        question: the question, if there is one.

    Returns:
        Shape (n,).
    """
    ranges = [match.span() for match in _MARKUP.finditer(response)]
    ranges.extend(_list_numbers(response))
    patterns = _patterns(language)
    normal = normalise(response, spaces=False)
    folded = fold(normal.text)
    stretches: list[Range] = []
    for known in {id(p): p for p in (patterns, _compiled("en")) if p}.values():
        stretches.extend(m.span() for m in _BRACKETS.finditer(folded) if known.cites(m[1]))
    if patterns:
        asked = {word[:_STEM] for word in folded_words(question or "", language)}
        at = np.searchsorted(normal.starts, np.array(sentences(response, language) or np.empty((0, 2)), np.int64))
        stretches.extend(_framing(patterns, folded, at.tolist(), asked))
    ranges.extend(normal.original(start, end) for start, end in stretches if start < end)
    harmless = np.zeros(len(bounds), bool)
    for start, end in ranges:
        low, high = np.searchsorted(bounds[:, 0], start), np.searchsorted(bounds[:, 1], end, side="right")
        harmless[low:high] = True
    return harmless


def _list_numbers(response: str) -> Iterator[Range]:
    """Numbers of list items: those with a neighbour in the list, since `3. Mai` may begin a line too."""
    items = [(int(match[1] or match[2]), match) for match in _LIST_ITEM.finditer(response)]
    for index, (number, match) in enumerate(items):
        neighbours = {items[index - 1][0] + 1 if index else 0, items[index + 1][0] - 1 if items[index + 1 :] else 0}
        if number in neighbours:
            yield match.span()


def _framing(patterns: _Patterns, text: str, spans: list[list[int]], asked: set[str]) -> Iterator[Range]:
    """Openings, asides that name the source, lines that announce a list, and closings, as ranges of the text."""
    cut = len(text)
    for start, end in reversed([part for span in spans for part in patterns.parts(text, *span)]):
        if not _closes(patterns, text, start, end):
            break
        yield start, end
        cut = start
    for first, end in ((start, min(end, cut)) for start, end in spans if start < cut):
        first = start = _LEADING.match(text, first, end).end()  # type: ignore[union-attr]  # it matches nothing, too
        whole = True
        while start < end:
            answer = patterns.answers.match(text, start, end) if whole else None
            if answer and not patterns.openers.match(text, start, end):
                after, whole = answer.end(), False
            elif (after := patterns.framing_end(text, start, end, whole=whole)) > start:
                yield start, after
            else:
                break
            start = _LEADING.match(text, after, end).end()  # type: ignore[union-attr]
        if _announces(patterns, text[first:end], asked):
            yield first, end
        for comma in re.finditer(r"[,(] *", text[start:end]):
            low = start + comma.end()
            high = patterns.run_end(text, low, end)
            if re.match(r"[,).;]|[.!?]?$", text[high:end].lstrip()) and (
                patterns.lead.search(text, low, high) and patterns.referent.search(text, low, high)
            ):
                yield low, high


def _closes(patterns: _Patterns, text: str, start: int, end: int) -> bool:
    start = _LEADING.match(text, start, end).end()  # type: ignore[union-attr]
    if not patterns.closings.match(text, start, end) or re.search(r"\d", text[start:end]):
        return False
    return not patterns.condition.match(text, start, end) or bool(patterns.offer.search(text, start, end))


def _announces(patterns: _Patterns, line: str, asked: set[str]) -> bool:
    """Whether a sentence ends in a colon and its words are those of an announcement, or the question's."""
    if not re.search(r":[\s*_]*$", line) or not patterns.intro.search(line):
        return False
    rest = patterns.run.sub(" ", line)
    return all(word[:_STEM] in asked for word in re.findall(rf"[^{_GAP}]+", rest))


def is_refusal(sentence: str, language: str | None) -> bool:
    """Whether a sentence says that the evidence does not say, or that the answer is not known.

    Of its clauses one must do so, and every other too, or be as short as "I am sorry", or say what is not known ("when
    the mill burned"). An answer that begins with "No," is none, nor what begins with "although", nor what says that
    according to the evidence somebody did not say something.

    Args:
        sentence: one sentence.
        language: BCP 47 tag; False in a language without a table.
    """
    patterns = _patterns(language)
    if patterns is None:
        return False
    text = plain(sentence)
    start = _LEADING.match(text).end()  # type: ignore[union-attr]  # it matches nothing, too
    answer = patterns.answers.match(text, start)
    if patterns.although.match(text, start) or (answer and re.match(r"\s*[,.:;!-]", text[answer.end() :])):
        return False
    has_source = bool(patterns.source.search(text)) and not patterns.according.search(text)
    parts = (part.lstrip() for clause in patterns.but.split(text) for part in _CLAUSE.split(clause))
    clauses = [part for part in parts if not _NOTHING.fullmatch(part)]
    denials = [
        _denies(patterns, clause, has_source) and not (number and patterns.that.match(clause))
        for number, clause in enumerate(clauses)
    ]
    first = denials.index(True) if True in denials else len(clauses)
    return first < len(clauses) and all(
        denies or patterns.claims_nothing(clause, _AFTER if number > first else _SORRY)
        for number, (clause, denies) in enumerate(zip(clauses, denials, strict=True))
    )


def _denies(patterns: _Patterns, clause: str, has_source: bool) -> bool:
    if patterns.refusals.search(clause):
        return True
    denial = patterns.denials.search(clause) if has_source else None
    if denial is None:
        return False
    source = patterns.source.search(clause, 0, denial.start())  # "the text says that it was not mentioned"
    return source is None or patterns.that.search(clause, source.end(), denial.start()) is None


_LONGEST = 8  # words that change places together
_SHARED = 3  # words that two sentences have in common at least
_GAPS = 2  # words of longer names that may stand between: "by [Louis] Fabre"
_OFTEN = 200  # sentences of the evidence: a word in more of them finds none
_SHORT = 3  # letters of words that mean little by themselves
_PARTED = re.compile(r"[^\w\s'’\"“”«»()\[\]（）-]")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\u0e00-\u0e7f\uac00-\ud7af]")
_KANA = re.compile(r"[\u3040-\u309f]+")


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
        between = self.words[low:high]
        names = all(word[0].isupper() for word in between) or (len(between) == 1 and not between[0][0].islower())
        return 0 <= high - low <= _GAPS and names and not any(self.parted[low : high + 1])

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
        return len("".join(words)) > 1 and not _KANA.fullmatch("".join(words))
    return any(word.isalpha() and len(word) > _SHORT for word in words)


def _lines(text: str, bounds: Int64s, sentence: Int64s, *, inflected: bool) -> list[_Line]:
    lines: list[_Line] = []
    last, number = 0, -1
    for index, ((start, end), current) in enumerate(zip(bounds.tolist(), sentence.tolist(), strict=True)):
        if current != number:
            lines.append(_Line(index, [], [], [], defaultdict(list)))
        line, word = lines[-1], text[start:end]
        line.words.append(word)
        line.keys.append(word.lower()[: max(_STEM - 1, len(word) - 2) if inflected else None])
        line.places[line.keys[-1]].append(len(line.keys) - 1)
        line.parted.append(bool(_PARTED.search(text, last, start)))
        last, number = end, current
    return lines


def exchanged_words(response: tuple[str, Int64s, Int64s], evidence: tuple[str, Int64s, Int64s], language: str) -> Bools:
    """The words that changed places: the evidence has "Ada taught Bo", the response "Bo taught Ada"; shape (n,).

    Two names, two numbers or two other words count, if the same words stand between them in one sentence of the
    evidence, and nowhere do they stand as in the response.

    Args:
        response: the text, its words (half-open code points, shape (n, 2)), and the sentence of each.
        evidence: the same.
        language: BCP 47 tag of both.
    """
    wording = _wordings().get(base_tag(language))
    listing, inflected = ({*wording.listing.split()}, wording.inflected) if wording is not None else (set(), False)
    lines = _lines(*evidence, inflected=inflected)
    having = defaultdict[str, list[int]](list)
    for number, line in enumerate(lines):
        for key in line.places:
            having[key].append(number)
    result = np.zeros(len(response[1]), bool)
    for line in _lines(*response, inflected=inflected):
        rare = (key for key in line.places if len(having[key]) <= _OFTEN)
        shared = Counter(number for key in rare for number in having[key])
        others = [lines[number] for number, count in shared.items() if count >= _SHARED]
        texts = [f" {' '.join(other.keys)} " for other in others]
        for left, right in (pair for other in others for pair in _exchanges(line, other, listing, inflected=inflected)):
            if not any(f" {' '.join(line.keys[left.end - 1 : right.start + 1])} " in text for text in texts):
                for run in (left, right):
                    result[line.first + run.start : line.first + run.end] = True
    return result


def _exchanges(line: _Line, other: _Line, listing: set[str], *, inflected: bool) -> Iterator[tuple[_Run, _Run]]:
    """Words before and after the same words, which stand in the other order in the evidence."""
    runs = _runs(line.keys, other)
    for run in runs:
        if listing.issuperset(line.keys[run.start : run.end]):
            continue
        before = [x for x in runs if line.beside(x.end, run.start) and other.beside(run.other_end, x.other_start)]
        behind = [x for x in runs if line.beside(run.end, x.start) and other.beside(x.other_end, run.other_start)]
        for left, right in product(before, behind):
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
    for i, j in ((i, j) for i, key in enumerate(keys) for j in other.places.get(key, ())):
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


class _Trend(NamedTuple):
    """What a sentence of the evidence tells: two years, and whether there was more (1) or less (-1) in the later."""

    years: frozenset[float]
    sign: float


def _trends(passages: Sequence[str], language: str) -> Iterator[_Trend]:
    """Of sentences with two years and two amounts: "from 9,000 in 1990 to 3,500 in 2010"."""
    for text in passages:
        ends = [match.end() for match in _STOP.finditer(text)]
        parts = groupby(read_values(text, language), lambda value: bisect_right(ends, value.start))  # noqa: B023
        for inside in (list(values) for _, values in parts):
            years = [value.amounts[0] for value in inside if value.kind == "year"]
            amounts = [likeliest_amount(value, text, language) for value in inside if value.kind in _AMOUNTS]
            if len(years) == len(amounts) == 2 and (change := (amounts[1] - amounts[0]) * (years[1] - years[0])):
                yield _Trend(frozenset(years), float(np.sign(change)))


def reversed_trends(
    response: str, bounds: Bounds, passages: Sequence[str], language: str, question: str | None = None
) -> Bools:
    """The words that say "more" or "rose" where numbers of the evidence say "less" or "fell", or the reverse.

    Only sentences count that name a year of such numbers, or follow a question that does.

    Args:
        response: the response.
        bounds: its words, half-open code point ranges in order, shape (n, 2).
        passages: the evidence.
        language: BCP 47 tag of both.
        question: the question, if there is one.

    Returns:
        Shape (n,).
    """
    result, patterns = np.zeros(len(bounds), bool), _patterns(language)
    claims = list(_claims(response, language, question, patterns)) if patterns else []
    trends = set(_trends(passages, language)) if claims else set()
    for claim in claims:
        known = {trend for trend in trends if claim.years <= trend.years}
        if len({trend.sign for trend in known}) == 1:
            both, sign = known.pop()
            if claim.sign * _later(both, claim.years, claim.compared) == -sign:
                for low, high in claim.places:
                    first = np.searchsorted(bounds[:, 1], low, "right")
                    result[first : np.searchsorted(bounds[:, 0], high)] = True
    return result


class _Claim(NamedTuple):
    """What a sentence of the response says: its years, those it compares with, more (1) or less (-1), and where."""

    years: set[float]
    compared: set[float]
    sign: int
    places: list[Range]


def _claims(response: str, language: str, question: str | None, patterns: _Patterns) -> Iterator[_Claim]:
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
