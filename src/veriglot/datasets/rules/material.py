"""Articles of one language, replacements from them, and what rules know about the words of the language.

Each language has one data file, `phrases/TAG.toml`, written for Veriglot. Its keys:

- `negations`: a form and its negation, one pair a line (`is = is not`); a leading `-` on both makes them endings of the
  last word of a sentence. From left to right this adds a negation, from right to left it removes one.
- `negators`: words that make a sentence negative already.
- `not_after`: words after which a form is not changed, such as clitics that would have to change places.
- `not_before`: words before which it is not changed, such as pronouns that the negation would have to follow.
- `inside`: a form is not changed at the end of a clause, before punctuation (`ist` at the end of a German clause).
- `opposites`: two opposite forms, one pair a line: `more = less` both ways, `after > before` only from left to right,
  if the second has other meanings that are not opposites of the first.
- `determiners`, `noun_after`, `noun_endings`: if nouns have capital letters too, words that can precede a noun but not
  a name, endings of other such words, and endings of nouns.
- `judgements`: sentences with an opinion; `openings` can precede them.
- `claims`: sentences that nobody can verify, with `{year}` and `{number}`; `hedges` do this to any `{sentence}`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from veriglot.plugins import read_package_data
from veriglot.records import Evidence, Sample, Task
from veriglot.records.languages import find_language, tag_of
from veriglot.records.settings import StrictRecord
from veriglot.text.facts import SentenceWords, dates, rules_of
from veriglot.text.identification import identify
from veriglot.text.noise import garbled
from veriglot.text.normalization import fold
from veriglot.text.segmentation import folded_words, sentences, space_of, words
from veriglot.text.unicode import script_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from random import Random

    from veriglot.datasets.queries import Reference

    Range = tuple[int, int]

__all__ = [
    "PHRASES_VERSION",
    "Article",
    "Articles",
    "Material",
    "Phrases",
    "Value",
    "has_case",
    "phrases_of",
    "quotable",
    "without_brackets",
]


PHRASES_VERSION = "phrases@2"  # of the data files, for signatures
_WRITTEN_BOTH_WAYS = frozenset({"zh-Hans", "zh-Hant"})


class Phrases(StrictRecord):
    """The data file of one language; see above.

    Attributes:
        negations: pairs of a form and its negation, the longest form first.
        endings: the same for word endings, without the hyphen.
        opposites: pairs of a form and its opposite, the longest form first.
    """

    negations: tuple[tuple[str, str], ...]
    endings: tuple[tuple[str, str], ...]
    opposites: tuple[tuple[str, str], ...]
    negators: frozenset[str]
    not_after: frozenset[str]
    not_before: frozenset[str]
    judgements: tuple[str, ...]
    claims: tuple[str, ...]
    hedges: tuple[str, ...]
    determiners: frozenset[str]
    noun_after: tuple[str, ...]
    noun_endings: tuple[str, ...]
    openings: tuple[str, ...] = ()
    inside: bool = False


_WORDS = ("negators", "not_after", "not_before", "determiners", "noun_after", "noun_endings")


@cache
def phrase_languages() -> tuple[str, ...]:
    """The tags of the languages with a data file, sorted."""
    folder = files(__package__).joinpath("phrases")
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def phrases_of(language: str, text: str = "") -> Phrases | None:
    """The phrases of a language, or None if there are none.

    Args:
        language: BCP 47 tag.
        text: the text for the phrases, because Chinese text often has another script than its tag.
    """
    tag = tag_of(language) or language
    if tag in _WRITTEN_BOTH_WAYS and text:
        identified = identify(text)
        tag = identified.tag if identified is not None and identified.tag in _WRITTEN_BOTH_WAYS else tag
    return _read(tag) if tag in phrase_languages() else None


@cache
def _read(tag: str) -> Phrases:
    data = read_package_data(__package__, f"phrases/{tag}.toml", dict[str, Any])
    data |= {name: data.get(name, "").casefold().split() for name in _WORDS}
    negations = [(form, other) for form, other, _ in _pairs(data["negations"])]
    data["negations"] = [pair for pair in negations if not pair[0].startswith("-")]
    data["endings"] = [(form[1:], other[1:]) for form, other in negations if form.startswith("-")]
    opposites: dict[str, tuple[str, str]] = {}  # a form with several has the first
    for form, other, both in _pairs(data["opposites"]):
        opposites.setdefault(form.casefold(), (form, other))
        if both:
            opposites.setdefault(other.casefold(), (other, form))
    data["opposites"] = list(opposites.values())
    for pairs in (data["negations"], data["endings"], data["opposites"]):
        pairs.sort(key=lambda pair: -len(pair[0]))
    return msgspec.convert(data, Phrases)


def _pairs(lines: str) -> Iterator[tuple[str, str, bool]]:
    """The pairs of lines `one = other` or `one > other`, and whether each is for both directions."""
    for line in filter(None, map(str.strip, lines.splitlines())):
        form, mark, other = re.split(r"\s*([=>])\s*", line, maxsplit=1)
        yield form, other, mark == "="


# Seeds: passages of clean text by article, read from any readable format in bounded memory.
#
# Samples with the same passages (two queries on one reference) are one article. Of each language the articles with the
# smallest hash of seed and text are stored, so that the choice depends only on the texts, not on their order.


@dataclass
class Article:
    """Clean passages in one language, with the questions about them.

    Attributes:
        id: of the first sample with these passages.
        language: BCP 47 tag.
        passages: the evidence of every response that is made from it.
        questions: each once.
        task: of the first sample.
    """

    id: str
    language: str
    passages: tuple[Evidence, ...]
    task: Task
    questions: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The subject of the article, from its heading without an addition in brackets."""
        return (self.passages[0].title or "").partition(" (")[0].strip()

    @property
    def texts(self) -> tuple[str, ...]:
        """The passages as texts."""
        return tuple(passage.text for passage in self.passages)

    @cached_property
    def words(self) -> frozenset[str]:
        """The case-folded words of the passages."""
        return frozenset(word for text in self.texts for word in folded_words(text, self.language))

    @cached_property
    def sentences(self) -> list[str]:
        """The complete sentences that can be quoted."""
        whole: list[str] = []
        broken = False  # whether the passage before ended inside a sentence, which continues in this one
        for text in self.texts:
            listed = quotable(text, self.language)
            first = 1 if broken and listed and text.lstrip().startswith(listed[0]) else 0
            whole += filter(_whole, listed[first:])
            broken = _breaks_off(text.rstrip())
        return whole


class Articles:
    """Collects articles by language.

    Args:
        most: maximum number of articles of a language.
        seed: of the choice between them.

    Attributes:
        left_out: samples that give no article, by reason.
    """

    def __init__(self, most: int, seed: int) -> None:
        self._most = most
        self._seed = seed
        self._by_language: dict[str, dict[bytes, Article]] = {}
        self._seen = set[bytes]()
        self._garbled = set[bytes]()
        self.left_out = Counter[str]()

    def languages(self) -> list[str]:
        """The languages with articles, sorted."""
        return sorted(self._by_language)

    @property
    def quotable(self) -> list[str]:
        """The languages with enough articles for rows: errors in one article come from another."""
        return [tag for tag in self.languages() if len(self._by_language[tag]) > 1]

    def of(self, language: str) -> list[Article]:
        """The articles of a language, in an order that depends only on the seed and their texts."""
        return [article for _, article in sorted(self._by_language[language].items())]

    def add(self, row: Sample | Reference) -> None:
        """Add the passages of a sample (its response is ignored), or an article of `veriglot dataset articles`."""
        sample = row if isinstance(row, Sample) else None
        passages = tuple(p for p in (row.evidence if isinstance(row, Sample) else (row.evidence,)) if p.text.strip())
        languages = {passage.language or row.language for passage in passages}
        if languages == {None} and (identified := identify("\n".join(passage.text for passage in passages))):
            languages = {identified.tag}
        reasons = {
            "no evidence": not passages,
            "garbled evidence": "reference_garbled" in row.meta,
            "no language": None in languages,
            "evidence in several languages": len(languages) > 1,
        }
        reason = next((reason for reason, applies in reasons.items() if applies), "")
        if reason:
            self.left_out[reason] += 1
            return
        tag = tag_of(languages.pop()) or ""
        article = Article(row.id, tag, passages, sample.task if sample else Task.QA)
        key = hashlib.sha256("\0".join([str(self._seed), tag, *article.texts]).encode()).digest()
        articles = self._by_language.get(tag, {})
        if key not in self._seen:
            self._seen.add(key)
            if any(garbled(text) for text in article.texts):
                self._garbled.add(key)
            else:
                articles = self._by_language.setdefault(tag, articles)
                articles[key] = article
                if len(articles) > self._most:
                    del articles[max(articles)]
        question = sample.question if sample else None
        if key in self._garbled:
            self.left_out["garbled evidence"] += 1
        elif question and key in articles and question not in articles[key].questions:
            articles[key].questions.append(question)


# Sentences of a text that can be quoted, and parts of them that can be removed without a change of meaning.


_SHORTEST_QUOTE, _LONGEST_QUOTE = 20, 400  # code points
_BRACKETS = re.compile(r"\s*[(（][^()（）]*[)）]")


def quotable(text: str, language: str) -> list[str]:
    """The sentences of a text that can be quoted: neither very short nor very long."""
    stripped = (text[s:e].strip() for s, e in sentences(text, language))
    return [s for s in stripped if _SHORTEST_QUOTE <= len(s) <= _LONGEST_QUOTE]


def without_brackets(sentence: str) -> str:
    """The sentence without round brackets and their content, and without the white space before them."""
    return _BRACKETS.sub("", sentence)


# Names, numbers and dates of a sentence, each with a shape; only values of the same shape can replace each other.


_CASED = frozenset({"Latn", "Cyrl", "Grek", "Armn"})
_MOST_WORDS = 3  # of a name
_QUOTED = re.compile(
    r"[《『]([^《》『』]{2,20})[》』]|[「“„«]([^「」“”„«»]{2,10})[」”“»]"
)  # the title of a work, or a quoted name
_TIES = frozenset("-\u2010\u2011'’")
_NUMBER = re.compile(r"\d")
_GROUPED = 3  # digits
_GROUP = re.compile(r"[ \u00a0\u202f]\d{3}(?!\d)")
_LED = re.compile(r"\d[ \u00a0\u202f]$")


class Value(NamedTuple):
    """A name, number or date (its `kind`); half-open in code points of its sentence."""

    start: int
    end: int
    kind: str
    shape: str


def has_case(language: str) -> bool:
    """Whether the language has capital letters, which mark names."""
    entry = find_language(language)
    return entry is None or entry.script in _CASED


def _ending(word: str, language: str) -> str:
    """The common part of forms that can replace each other: their last two letters, or their length."""
    return fold(word)[-2:] if space_of(language) else str(min(len(word), 4))


def values_of(
    sentence: str,
    language: str,
    rare: Callable[[str], bool],
    title: str = "",
    is_noun: Callable[[str, str], bool] = lambda _before, _word: False,
) -> list[Value]:
    """The values of a sentence, in order, not overlapping."""
    bounds = words(sentence, language)
    values = _dates(sentence, language, bounds)
    values += [
        Value(s, e, "number", _digits(sentence[s:e]))
        for s, e in bounds
        if _NUMBER.match(sentence[s:e]) and free(values, s, e) and not _grouped(sentence, s, e)
    ]
    if has_case(language):
        values += _capitalised(sentence, language, bounds, values, rare, is_noun)
    else:
        values += [
            Value(start, end, "name", _name_shape(sentence[start:end], 1, language))
            for start, end in _named(sentence, language, bounds, rare, title)
            if free(values, start, end)
        ]
    return sorted(values)


def free(taken: Iterable[tuple[Any, ...]], start: int, end: int) -> bool:
    """Whether a range overlaps nothing that is taken; of each the half-open place stands first."""
    return all(end <= first or last <= start for first, last, *_ in taken)


def _grouped(sentence: str, start: int, end: int) -> bool:
    """Whether a number is part of a number with spaces: `8 120 000`."""
    after = _GROUP.match(sentence, end)
    before = _LED.search(sentence, max(0, start - 4), start)
    return after is not None or (before is not None and end - start == _GROUPED and sentence[start:end].isdecimal())


def _dates(sentence: str, language: str, bounds: list[Range]) -> list[Value]:
    rules = rules_of(language)
    if rules is None:
        return []
    whole = SentenceWords(sentence, 0, bounds)
    values = []
    for first, end in dates(whole, rules):
        if end - first > 1 and any(whole.has_digit(i) for i in range(first, end)):
            start, stop = bounds[first][0], bounds[end - 1][1]
            values.append(Value(start, stop, "date", _date_shape(sentence, bounds[first:end], rules.months)))
    return values


def _date_shape(sentence: str, bounds: list[Range], months: frozenset[str]) -> str:
    """A date without its digits and months: `18 March 1871` is `## * ####`."""
    parts, read = [], bounds[0][0]
    for start, end in bounds:
        word = sentence[start:end]
        parts += [sentence[read:start], "*" if word.casefold() in months else _digits(word)]
        read = end
    return "".join(parts)


def _digits(word: str) -> str:
    """A word without its digits; one digit and two digits are equal."""
    return re.sub(r"\d+", lambda match: "#" * max(2, len(match[0])), word)


def _capitalised(
    sentence: str,
    language: str,
    bounds: list[Range],
    taken: list[Value],
    rare: Callable[[str], bool],
    is_noun: Callable[[str, str], bool],
) -> list[Value]:
    """Runs of words that may be part of a name, at least one of them rare.

    The words are capitalised, not the first of the sentence, and not a month after a number.
    """
    rules = rules_of(language)
    months = tuple(rules.months) if rules is not None else ()
    runs: list[list[Range]] = []
    for (before_start, before_end), (start, end) in pairwise(bounds):
        before, word = sentence[before_start:before_end], sentence[start:end]
        if not (word[0].isupper() and word.isalpha() and free(taken, start, end)):
            continue
        if (before[-1].isdecimal() and word.casefold().startswith(months)) or is_noun(before, word):
            continue
        if runs and len(runs[-1]) < _MOST_WORDS and sentence[runs[-1][-1][1] : start] == " ":
            runs[-1].append((start, end))
        else:
            runs.append([(start, end)])
    values = []
    for run in runs:
        start, end = run[0][0], run[-1][1]
        tied = sentence[max(0, start - 1) : start] in _TIES or sentence[end : end + 1] in _TIES  # to a longer word
        if end - start > 2 and not tied and any(rare(fold(sentence[s:e])) for s, e in run):
            values.append(Value(start, end, "name", _name_shape(sentence[start:end], len(run), language)))
    return values


def _named(sentence: str, language: str, bounds: list[Range], rare: Callable[[str], bool], title: str) -> list[Range]:
    """Possible names in a language without capital letters."""
    candidates = []
    start, stop = sentence.find(title), sentence.find(title) + len(title)
    if title and start in dict(bounds) and stop in dict(bounds).values():
        candidates.append((start, stop))
    candidates += [match.span(match.lastindex or 0) for match in _QUOTED.finditer(sentence)]
    shortest = 4 if space_of(language) else 2
    for start, end in bounds:
        word = sentence[start:end]
        if word.isalpha() and (word[0].isupper() or (end - start >= shortest and rare(fold(word)))):
            candidates.append((start, end))
    names: list[Range] = []
    for start, end in candidates:
        if free(names, start, end):
            names.append((start, end))
    return names


def _name_shape(name: str, count: int, language: str) -> str:
    return f"{script_of(name)} {count} {_ending(name, language)}"


_RARE, _COMMON = 0.02, 0.15  # maximum shares of the articles with a rare word, and with a word of middle frequency
_SYLLABLES = frozenset({"vi"})  # with spaces between syllables; a syllable is seldom a word
_SENTENCES = 5  # of an article, as replacements
_ENDS = frozenset(".!?…。！？।؟۔.๚」”»\"')）")
_OPENING = frozenset("\"'“„«»‘「『《(（¿¡")
_MARKUP = frozenset("{}[]\\#|<>=*_^~\n`•●◦■→⟨")  # of formulas, headings, notes
_CLOSED = {"(": ")", "（": "）", "「": "」", "《": "》", "«": "»"}
_LETTERS = 0.75  # minimum share of letters in a sentence that can be quoted
_LAST_WORD = re.compile(r"(\w+)\.$")
_SHORTEST_LAST = 3  # code points of the last word of a sentence that ends in a full stop
_ADJECTIVE = 5  # code points: a shorter word before a noun is not an adjective
_SHORTEST = 4  # code points of a word that may be exchanged, in languages with spaces between words


class Material:
    """Articles of one language with replacements from them.

    Args:
        language: BCP 47 tag.
        articles: in order; equal articles make equal material.
    """

    def __init__(self, language: str, articles: list[Article]) -> None:
        self.language = language
        self.articles = articles
        self.space = space_of(language)
        self._phrases = phrases_of(language)
        self._frequency = Counter(word for article in articles for word in article.words)
        self._repeated: dict[int, frozenset[str]] = {}

    def _folded(self, texts: Iterable[str]) -> Iterator[str]:
        return (word for text in texts for word in folded_words(text, self.language))

    def rare(self, word: str) -> bool:
        """Whether a case-folded word is in few articles."""
        return self._frequency[word] <= max(2, _RARE * len(self.articles))

    def values(self, sentence: str, number: int) -> list[Value]:
        """The names, numbers and dates of a sentence of an article."""
        is_name = self.rare if has_case(self.language) else self._terms(number).__contains__
        return values_of(sentence, self.language, is_name, self.articles[number].title, self._is_noun)

    def _terms(self, number: int) -> frozenset[str]:
        """In languages without capital letters: rare words of titles; if there is no title, repeated rare words."""
        if number not in self._repeated:
            counts = Counter(self._folded(self.articles[number].texts))
            self._repeated[number] = frozenset(
                word
                for word, n in counts.items()
                if self.rare(word) and (word in self._titled if self._titled else n > 1)
            )
        return self._repeated[number]

    @cached_property
    def _titled(self) -> frozenset[str]:
        """The case-folded words of all titles."""
        return frozenset(self._folded(article.title for article in self.articles))

    def _is_noun(self, before: str, word: str) -> bool:
        """Whether a capitalised word is a noun and not a name, in a language that capitalises both."""
        phrases = self._phrases
        if phrases is None or not phrases.determiners:
            return False
        lowered = word.casefold()
        return (
            before.casefold() in phrases.determiners
            or (before.islower() and len(before) >= _ADJECTIVE and before.endswith(phrases.noun_after))
            or lowered.endswith(phrases.noun_endings)
            or lowered in self._determined
        )

    @cached_property
    def _determined(self) -> frozenset[str]:
        """The case-folded words that follow a determiner anywhere in the articles."""
        determiners = self._phrases.determiners if self._phrases is not None else ()
        determined = set[str]()
        for text in (text for article in self.articles for text in article.texts):
            words_ = [text[s:e].casefold() for s, e in words(text, self.language)]
            determined.update(after for before, after in pairwise(words_) if before in determiners)
        return frozenset(determined)

    def middling(self, sentence: str) -> list[Range]:
        """Words that are neither names nor numbers, and neither rare nor in every article: verbs, nouns, adjectives."""
        if self.language in _SYLLABLES:
            return []
        most = max(3, _COMMON * len(self.articles))
        shortest, cased = _SHORTEST if self.space else 2, has_case(self.language)
        middling = []
        for start, end in words(sentence, self.language):
            word = sentence[start:end]
            plain = end - start >= shortest and word.isalpha() and (word.islower() or not cased)
            if plain and not self.rare(fold(word)) and self._frequency[fold(word)] <= most:
                middling.append((start, end))
        return middling

    def other_value(self, value: Value, number: int, rng: Random) -> str | None:
        """A value of the same shape from another article that is not in this article; None if there is none."""
        known = self.articles[number].words
        texts = self._values.get((value.kind, value.shape)) or ()
        if not texts and value.kind == "name":
            texts = self._values.get(("name", value.shape.rpartition(" ")[0])) or ()
        drawn = rng.sample(texts, min(len(texts), 8))
        return next((text for text in drawn if not known.issuperset(folded_words(text, self.language))), None)

    def other_word(self, word: str, number: int, rng: Random) -> str | None:
        """A word of middle frequency with the same ending that is not in the article; None if there is none."""
        texts = self._middling.get(_ending(word, self.language)) or ()
        own = fold(word)
        for text in rng.sample(texts, min(len(texts), 12)):
            folded = fold(text)
            if folded not in self.articles[number].words and abs(len(text) - len(word)) <= 3 and folded[:4] != own[:4]:
                return text
        return None

    def other_sentence(self, number: int, rng: Random) -> tuple[int, str] | None:
        """A sentence of another article with other content than this article, with that article's number; or None."""
        for _ in range(12):
            other = rng.randrange(len(self.articles))
            listed = self.articles[other].sentences
            if other == number or not listed:
                continue
            sentence, known = rng.choice(listed), self.articles[number].words
            if sum(word not in known and self.rare(word) for word in folded_words(sentence, self.language)) >= 2:
                return other, sentence
        return None

    @cached_property
    def _values(self) -> dict[tuple[str, str], list[str]]:
        """Values of all articles by kind and shape; names also by their shape without the ending."""
        values = defaultdict[tuple[str, str], dict[str, None]](dict)
        for number, sentence in self._sampled():
            for value in self.values(sentence, number):
                text = sentence[value.start : value.end]
                values[value.kind, value.shape][text] = None
                if value.kind == "name":
                    values["name", value.shape.rpartition(" ")[0]][text] = None
        return {key: list(texts) for key, texts in values.items()}

    @cached_property
    def _middling(self) -> dict[str, list[str]]:
        by_ending = defaultdict[str, dict[str, None]](dict)
        for _, sentence in self._sampled():
            for start, end in self.middling(sentence):
                by_ending[_ending(sentence[start:end], self.language)][sentence[start:end]] = None
        return {key: list(texts) for key, texts in by_ending.items()}

    def _sampled(self) -> list[tuple[int, str]]:
        return [
            (number, each) for number, article in enumerate(self.articles) for each in article.sentences[:_SENTENCES]
        ]


def _whole(sentence: str) -> bool:
    """Whether a sentence is complete: it has an end mark, its brackets close, and most of it is letters."""
    if _breaks_off(sentence) or sentence[0].islower() or any(mark in sentence for mark in _MARKUP):
        return False
    if any(sentence.count(opening) != sentence.count(other) for opening, other in _CLOSED.items()):
        return False
    if not (sentence[0].isalnum() or sentence[0] in _OPENING):
        return False
    letters = sum(char.isspace() or unicodedata.category(char)[0] in "LM" for char in sentence)
    return letters >= _LETTERS * len(sentence)


def _breaks_off(text: str) -> bool:
    """Whether a text ends inside a sentence: without a mark, or after a number (`20.`) or a short word (`ca.`)."""
    if text[-1:] not in _ENDS:
        return text[-1:].isascii() or not text[-1:].isalpha()  # Thai has no end marks
    if text[-1] != ".":
        return False
    last = _LAST_WORD.search(text)
    return last is not None and (len(last[1]) < _SHORTEST_LAST or last[1].isdecimal())
