"""Words of a response that claim nothing: list numbers, citations, openings, closings, refusals.

The phrases of each language are in `phrases.toml`. They are classes of words rather than sentences: an opening is a
run of words at the beginning of a sentence that all belong to a class and that name a source ("text") and how it is
referred to ("according to"), in any order.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.plugins import read_package_data
from veriglot.records.languages import base_tag
from veriglot.text.normalization import fold, normalise, plain
from veriglot.text.segmentation import folded_words, sentences, space_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.arrays import Bools, Bounds

    Range = tuple[int, int]

__all__ = ["Patterns", "harmless_words", "patterns_of", "refusal_length", "words_within"]


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
_LABEL = re.compile(r"^[ \t]*\|[^|\n\d]*(?=\|)", re.MULTILINE)  # the first cell of a row
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
    label: str  # what the first column of a table is called whose rows begin with the name of a property
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
    copula: str = ""  # words that only make a sentence of what stands before them
    clitics: str = ""  # what may be written together with the next word
    inverted: bool = False  # whether the verb may stand before its negation
    listing: str = ""  # words on either side of which the order tells nothing: "and"
    rise: str = ""  # what says that there came to be more
    fall: str = ""
    than: str = ""  # what stands before the year that is compared with
    than_after: bool = False  # whether it stands after it
    inflected: bool = False  # whether endings, not the order, say who did what


class Patterns:
    """The expressions of one language, for normalised text."""

    def __init__(self, tag: str, wording: _Wording) -> None:
        self.spaced = bool(space_of(tag))
        self._before = rf"(?:(?<=[{_GAP}])|^)" if self.spaced else ""
        self._after = rf"(?=[{_GAP}]|$)" if self.spaced else ""
        self._clitics = f"(?:{'|'.join(map(re.escape, wording.clitics.split()))})*" if wording.clitics else ""
        self.lead, self.source, self.answers, self.condition, self.copula, self.offer = map(
            self._words,
            (wording.lead, wording.source, wording.answers, wording.condition, wording.copula, wording.offer),
        )
        self.although, self.according, self.asking, self.that, self.negation, say = map(
            self._words,
            (wording.although, wording.according, wording.asking, wording.that, wording.negation, wording.say),
        )
        source, that = self.source.pattern, self.that.pattern
        few = rf"(?:{self._words(wording.fill).pattern}[{_SOFT}]+){{0,3}}"
        says = rf"{say.pattern}[{_SOFT},]*{that if wording.that else ''}"
        # a source with its number, before a mark, "says that" or "according to"; of a law's articles the number tells
        article = r"art|стат|член|član|člán|अनुच्छेद|অনুচ্ছেদ|άρθρ|\S{0,3}ماد|cikk|სტატი|параграф"
        particle = r"\s*(?:'\w{1,3}\s|(?:에|-ის|के|की|এর)\s)?"
        topic = r"[*_]*(?:(?:은|는|에|에는|에서|에서는|'[dt][ea]|\s*में)(?=[\s*,])|[はにで])"
        numbered = (
            rf"(?!{article}){source}\s*(?:(?:ch?|[yl])a\s)?\d{{1,2}}"
            rf"(?:{particle}\s*{self.according.pattern}|{topic}|(?=\s*,\D|[:*]|\s*(?:{says}|{that})))"
        )
        words = self._listed(wording.source, wording.info, wording.lead, wording.fill, wording.intro, wording.label)
        every = self._any_of([numbered, *words])
        self.run = re.compile(rf"{self._before}(?:{every}[{_SOFT}]*)+", re.MULTILINE)
        cited = rf"(?:{numbered}|{source})"
        reports = rf"(?:{cited}[{_SOFT}]*{say.pattern}|{say.pattern}[{_SOFT}]*{few}{cited})(?:[{_SOFT},]*{that})?"
        self.adds = re.compile(
            rf"{self._words(wording.but, wording.although).pattern}[\s,*]*{few}(?:{source}[{_SOFT}]*)?{says}"
        )
        self._frames = [re.compile(f"{self._before}{few}{each}") for each in (reports, numbered)] + [self.adds]
        self.parting = re.compile(
            f"{self._words(wording.but, wording.although, wording.because).pattern}|{_CLAUSE.pattern}"
        )
        # headers such as "Event" or "Details", the first perhaps such as "Feature", and the rows below
        self.tables = re.compile(
            rf"^[ \t]*\|((?:[^\w\n|]|{self._words(wording.label).pattern})+\|)?(?:[^\w\n]|{every})*"
            r"\n[ \t]*\|[ \t:|-]*--[ \t:|-]*((?:\n[ \t]*\|.*)*)",
            re.MULTILINE,
        )
        self.referent = self._words(wording.source, wording.info)
        self.intro = self._words(wording.lead, wording.intro, wording.source)
        self.closings = self._any([self._phrase(f"{phrase}*") for phrase in wording.closings])
        self.refusals = self._any(list(map(self._phrase, wording.refusals)))
        self.listing, self.inflected = {*wording.listing.split()}, wording.inflected
        self._moves, self._fall = self._words(wording.rise, wording.fall), self._words(wording.fall)
        than = self._any_of(self._listed(wording.than), "")
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
        return self._any(self._listed(*words))

    def _listed(self, *words: str) -> list[str]:
        return list(map(self._word, " ".join(words).split()))

    def _openers(self, phrases: list[str]) -> re.Pattern[str]:
        """Those of one word, or of few letters where words are not parted, need a mark after them."""
        short = [p for p in phrases if not p.endswith("+") and (" " not in p if self.spaced else len(p) <= _FEW)]
        closed = self._any_of(list(map(self._phrase, short)), r"(?=\s*(?:[!-/:-@।॥·…•。、！？：；，\n]|$))")
        long = self._any_of([self._phrase(p) for p in phrases if p not in short])
        return re.compile(f"{closed}|{long}", re.MULTILINE)

    def _denials(self, wording: _Wording) -> re.Pattern[str]:
        """The phrases that deny, and a negation near a verb of saying or a noun of what evidence holds."""
        expressions = list(map(self._phrase, wording.denials))
        if wording.negation:
            say = self._words(wording.say, wording.info).pattern
            expressions.append(rf"{self.negation.pattern}(?:[\s'-]+{_PART}){{0,3}}?[\s'-]+{say}")
            if wording.inverted:
                part = rf"(?!{self.that.pattern})[^\s,.;:!?)\"]+"
                expressions.append(rf"{say}(?:\s+{part}){{0,3}}?\s+{self.negation.pattern}")
        return self._any(expressions)

    def framing_end(self, text: str, start: int, end: int, *, whole: bool) -> int:
        """Where the opening that begins at `start` ends, or `start`; `whole` if it may be all of the sentence."""
        if opener := self.openers.match(text, start, end):
            return opener.end()
        last = self.run_end(text, start, end)
        named = bool(self.lead.search(text, start, last) and self.referent.search(text, start, last))
        if named and re.match(r"[\s*_]*[,;]" if self.spaced else r"\s|[*_]*[,;]", text[last:end]):
            return last
        after = last  # of all that is parted by commas only: "Here is, in short, what the text says:"
        while comma := re.match(r", *", text[after:end]):
            if (further := self.run_end(text, after + comma.end(), end)) <= after + 2:
                break
            after = further
        closed = whole and _NOTHING.fullmatch(text, after, end)
        if (closed or re.match(r"[\s*_]*:", text[after:end])) and self.intro.search(text, start, after):
            return after
        if _NOTHING.fullmatch(text, last, end):
            return start
        ends = [m.end() for p in (self.lead, self.referent) for m in p.finditer(text, start, last) if named]
        ends += [m.end() for p in self._frames if (m := p.match(text, start, end))]
        return max(ends, default=start)

    def run_end(self, text: str, start: int, end: int) -> int:
        """Where the words of any class that begin at `start` end, or `start`."""
        run = self.run.match(text, start, end)
        return start + len(run.group().rstrip(_SOFT)) if run else start

    def moves(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Where a sentence says "more" or "rose" (1), or the reverse (-1); nothing if it denies anything."""
        folded = plain(text)
        matches = list(self._moves.finditer(folded))
        if matches and not self.negation.search(folded):
            normal = normalise(text, spaces=False)
            for match in matches:
                yield (*normal.original(*match.span()), -1 if self._fall.fullmatch(match.group()) else 1)

    def compared(self, text: str) -> set[float]:
        """The years that a sentence compares with."""
        return {float(match[1]) for match in self._than.finditer(plain(text))}

    def cites(self, inside: str) -> bool:
        """Whether what stands in brackets is "Document 1", "see the text" and the like; "300 pages" is a claim."""
        source = self.source.search(inside)
        counted = re.search(r"(?<![第\d])(?!\d\d?ページ)\d+(?![\d.번番-]|つ目)", inside)
        first = source and not (counted and counted.start() < source.start())
        return bool(first and _NOTHING.fullmatch(self.run.sub(" ", inside)))

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
    return read_package_data(__package__, "phrases.toml", dict[str, _Wording])


def patterns_of(language: str | None) -> Patterns | None:
    """The expressions of a language; None where there is no table of it."""
    base = base_tag(language) if language else ""
    return _compiled("zh" if base == "yue" else base)


@cache
def _compiled(base: str) -> Patterns | None:
    wording = _wordings().get(base)
    return None if wording is None else Patterns(base, wording)


def harmless_words(response: str, bounds: Bounds, language: str | None, question: str | None = None) -> Bools:
    """The words that need no support because they claim nothing; `yes` and `no` are claims, and so are refusals here.

    List numbers, citation marks, tags, headers of tables ("Details"); openings ("According to the text,"), closings ("I
    hope this helps"), and the lines that announce a list, which may take up words of the question.

    Args:
        response: the response.
        bounds: its words, half-open code point ranges in order, shape (n, 2).
        language: BCP 47 tag. Without a table of it only marks are known.
        question: the question, if there is one.

    Returns:
        Shape (n,).
    """
    ranges = [*map(re.Match.span, _MARKUP.finditer(response)), *_list_numbers(response)]
    patterns = patterns_of(language)
    normal = normalise(response, spaces=False)
    folded = fold(normal.text)
    stretches: list[Range] = []
    for known in filter(None, {patterns, _compiled("en")}):
        stretches += [match.span() for match in _BRACKETS.finditer(folded) if known.cites(match[1])]
        for table in known.tables.finditer(folded):
            stretches.append((table.start(), table.start(2)))
            stretches += map(re.Match.span, _LABEL.finditer(folded, *table.span(2)) if table[1] else ())
    if patterns:
        asked = {word[:_STEM] for word in folded_words(question or "", language)}
        at = np.searchsorted(normal.starts, np.array(sentences(response, language) or np.empty((0, 2)), np.int64))
        framing = _framing(patterns, folded, at.tolist(), asked)
        stretches += [*framing, *map(re.Match.span, patterns.copula.finditer(folded))]
    ranges.extend(normal.original(start, end) for start, end in stretches if start < end)
    return words_within(bounds, ranges)


def words_within(bounds: Bounds, ranges: Iterable[Range]) -> Bools:
    """Which words lie within a range, shape (n,); words and ranges are half-open code point ranges, words in order."""
    within = np.zeros(len(bounds), bool)
    for start, end in ranges:
        within[np.searchsorted(bounds[:, 0], start) : np.searchsorted(bounds[:, 1], end, "right")] = True
    return within


def _list_numbers(response: str) -> Iterator[Range]:
    """Numbers of list items: those with a neighbour in the list, since `3. Mai` may begin a line too."""
    items = [(int(match[1] or match[2]), match) for match in _LIST_ITEM.finditer(response)]
    for index, (number, match) in enumerate(items):
        neighbours = {items[index - 1][0] + 1 if index else 0, items[index + 1][0] - 1 if items[index + 1 :] else 0}
        if number in neighbours:
            yield match.span()


def _framing(patterns: Patterns, text: str, spans: list[list[int]], asked: set[str]) -> Iterator[Range]:
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
            if answer and not any(each.match(text, start, end) for each in (patterns.openers, patterns.adds)):
                after, whole = answer.end(), False
            elif (after := patterns.framing_end(text, start, end, whole=whole)) > start:
                yield start, after
            else:
                break
            start = _LEADING.match(text, after, end).end()  # type: ignore[union-attr]
        yield from map(re.Match.span, patterns.adds.finditer(text, start, end))
        if _announces(patterns, text[first:end], asked):
            yield first, end
        for comma in re.finditer(r"[,(] *", text[start:end]):
            low = start + comma.end()
            high = patterns.run_end(text, low, end)
            if re.match(r"[,).;]|[.!?]?$", text[high:end].lstrip()) and (
                patterns.lead.search(text, low, high) and patterns.referent.search(text, low, high)
            ):
                yield low, high


def _closes(patterns: Patterns, text: str, start: int, end: int) -> bool:
    start = _LEADING.match(text, start, end).end()  # type: ignore[union-attr]
    if not patterns.closings.match(text, start, end) or re.search(r"\d", text[start:end]):
        return False
    return not patterns.condition.match(text, start, end) or bool(patterns.offer.search(text, start, end))


def _announces(patterns: Patterns, line: str, asked: set[str]) -> bool:
    """Whether a sentence ends in a colon and its words are those of an announcement, or the question's."""
    if not re.search(r":[\s*_]*$", line) or not patterns.intro.search(line):
        return False
    rest = patterns.run.sub(" ", line)
    return all(word[:_STEM] in asked for word in re.findall(rf"[^{_GAP}]+", rest))


def refusal_length(sentence: str, language: str | None) -> int:
    """How much of a sentence says that the evidence does not say, or that the answer is not known, in code points.

    It is all of the sentence if of its clauses one says so, and every other too, or is as short as "I am sorry", or
    says what is not known ("when the mill burned"); else it ends with the last clause that says so before one that
    claims something. An answer that begins with "No," is no refusal, nor what begins with "although", nor what says
    that according to the evidence somebody did not say something.

    Args:
        sentence: one sentence.
        language: BCP 47 tag; 0 in a language without a table.
    """
    patterns = patterns_of(language)
    if patterns is None:
        return 0
    text = plain(sentence)
    start = _LEADING.match(text).end()  # type: ignore[union-attr]  # it matches nothing, too
    answer = patterns.answers.match(text, start)
    if patterns.although.match(text, start) or (answer and re.match(r"\s*[,.:;!-]", text[answer.end() :])):
        return 0
    has_source = bool(patterns.source.search(text)) and not patterns.according.search(text)
    denied = low = 0
    first = True
    for high, after in (*map(re.Match.span, patterns.parting.finditer(text)), (len(text), 0)):
        clause, low = text[low:high].lstrip(), after
        if _NOTHING.fullmatch(clause):
            continue
        if _denies(patterns, clause, has_source) and (first or not patterns.that.match(clause)):
            denied = high
        elif not patterns.claims_nothing(clause, _AFTER if denied else _SORRY):
            return denied and normalise(sentence, spaces=False).original(0, denied)[1]
        first = False
    return denied and len(sentence)


def _denies(patterns: Patterns, clause: str, has_source: bool) -> bool:
    if patterns.refusals.search(clause):
        return True
    denial = patterns.denials.search(clause) if has_source else None
    if denial is None:
        return False
    source = patterns.source.search(clause, 0, denial.start())  # "the text says that it was not mentioned"
    return source is None or patterns.that.search(clause, source.end(), denial.start()) is None
