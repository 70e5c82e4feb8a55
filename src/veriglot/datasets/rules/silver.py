"""Silver data by rule: errors of each type in quotations, planned rows, and the data set as one output."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, groupby
from math import inf
from operator import attrgetter
from os.path import commonprefix
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import msgspec

from veriglot.datasets.generation import RunOptions, apportioned, generate
from veriglot.datasets.rules.material import (
    PHRASES_VERSION,
    Article,
    Articles,
    Material,
    Phrases,
    Value,
    free,
    has_case,
    phrases_of,
    without_brackets,
)
from veriglot.datasets.silver.check import Change, Edited, Violation, check
from veriglot.datasets.silver.job import CHECK_VERSION, SeedResult, SilverCounts, SilverRejection
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.records import Annotation, Generator, Kind, Sample
from veriglot.records.settings import Record, StrictRecord, check_ranges
from veriglot.records.taxonomy import taxonomy
from veriglot.text.facts import rules_of
from veriglot.text.segmentation import folded_words, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from veriglot.storage.checkpoint import Tally

    _Maker = Callable[["Quotation", Random], "Edit | None"]
    Range = tuple[int, int]

__all__ = ["RULES_VERSION", "Edit", "Quotation", "RuleSettings", "rule_silver"]


class Edit(NamedTuple):
    """One error: the replacement for `[start, end)` of the quotation, and its rule.

    Attributes:
        start, end: half-open, in code points of the quotation; equal for an insertion.
        text: the replacement.
        way: the rule, such as `number` or `negated`.
    """

    start: int
    end: int
    text: str
    way: str


@dataclass
class Quotation:
    """Sentences of an article as one text, with the errors so far.

    Attributes:
        material: source of replacements.
        number: of the article in it.
        sentences: the sentences, in order.
        edits: the errors with their types, not overlapping, in the order in which they were made.
        text: all sentences as one text.
        places: range of each sentence in it, half-open in code points.
    """

    material: Material
    number: int
    sentences: list[str]
    edits: list[tuple[Edit, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        space = self.material.space
        self.text = space.join(self.sentences)
        ends = accumulate(len(sentence) + len(space) for sentence in self.sentences)
        self.places = [
            (end - len(sentence) - len(space), end - len(space))
            for sentence, end in zip(self.sentences, ends, strict=True)
        ]

    @property
    def article(self) -> Article:
        """The quoted article."""
        return self.material.articles[self.number]

    @property
    def phrases(self) -> Phrases | None:
        """The phrases of its language, if any."""
        return phrases_of(self.material.language, self.text)

    def values(self, sentence: str) -> list[Value]:
        """The names, numbers and dates of a sentence of the article."""
        return self.material.values(sentence, self.number)

    def shuffled(self, rng: Random) -> list[Range]:
        """The ranges of the sentences in random order."""
        return rng.sample(self.places, len(self.places))

    def untouched(self, start: int, end: int) -> bool:
        """Whether a range has no edits inside; insertions directly before or after it do not matter."""
        return free((edit for edit, _ in self.edits), start, end)

    def applied(self) -> Edited:
        """The text with its errors, and their ranges."""
        return Edited.of(self.text, [(Change(0, 0, e.start, e.end, type_), e.text) for e, type_ in self._in_order()])

    def error(self, type_: str, rng: Random) -> Edit | None:
        """The edit for an error of a type of FAVA; None if there is no place for one."""
        return _MAKERS[type_](self, rng)

    def violations(self, edited: Edited, types: Sequence[str]) -> list[Violation]:
        """Violations that the check reports for the edited text."""
        return check(edited, language=self.article.language, evidence=self.article.texts, types=types)

    def silver_meta(self, edited: Edited, rules: str) -> dict[str, Any]:
        """`meta.silver` of the edited text: changes, and their rules."""
        return {
            "passage": edited.original,
            "changes": [msgspec.structs.asdict(change) for change in edited.changes],
            "ways": [edit.way for edit, _ in self._in_order()],
            "rules": rules,
            "support": "not checked",
        }

    def _in_order(self) -> list[tuple[Edit, str]]:
        return sorted(self.edits, key=lambda edit: edit[0][:2])


# Entity errors: a name, number or date is replaced by another one of its kind.


_KINDS = ("name", "name", "number", "date")
_NEAR = 0.35  # share of exchanges with a value of the same article, which is harder to detect
_REWRITTEN = 0.6  # share of numbers that get other digits, instead of another article's number
_EARLIEST_YEAR, _LATEST_YEAR = 1000, 2025
_APART = 60  # years


def _entity_error(quotation: Quotation, rng: Random) -> Edit | None:
    """One value of the quotation replaced by another of its kind; None if this is not possible."""
    candidates = [
        (start + value.start, start + value.end, value)
        for start, end in quotation.places
        for value in quotation.values(quotation.text[start:end])
        if quotation.untouched(start + value.start, start + value.end)
    ]
    kinds = rng.sample(_KINDS, len(_KINDS))  # so that names, which are many, do not prevent other kinds
    for start, end, value in sorted(
        rng.sample(candidates, len(candidates)), key=lambda candidate: kinds.index(candidate[2].kind)
    ):
        old = quotation.text[start:end]
        new = _exchanged(old, value, quotation.number, quotation.material, rng)
        if new is not None and values_differ(old, new) and new.startswith("0") <= old.startswith("0"):
            return Edit(start, end, new, value.kind)
    return None


def _exchanged(old: str, value: Value, number: int, material: Material, rng: Random) -> str | None:
    """Another value of the same kind and shape: of the same article, of another one, or a number with other digits."""
    is_number = value.kind == "number"
    if is_number and rng.random() < _REWRITTEN:
        return altered_number(old, rng)
    near = _near(old, value, number, material, rng) if rng.random() < _NEAR else None
    other = near or material.other_value(value, number, rng)
    return altered_number(old, rng) if other is None and is_number else other


def _near(old: str, value: Value, number: int, material: Material, rng: Random) -> str | None:
    """A value of the same kind from another position in the article."""
    listed = [sentence for sentence in material.articles[number].sentences if old not in sentence]
    for sentence in rng.sample(listed, min(len(listed), 6)):
        values = [sentence[v.start : v.end] for v in material.values(sentence, number) if v[2:] == value[2:]]
        if values:
            return rng.choice(values)
    return None


def altered_number(number: str, rng: Random) -> str:
    """The number with other digits, as many and of the same script; a year stays a year."""
    digits = [char for char in number if char.isdecimal()]
    if len(digits) == 4 and number[:4].isdecimal() and _EARLIEST_YEAR <= int(number[:4]) <= _LATEST_YEAR:
        year = int(number[:4])
        years = range(max(_EARLIEST_YEAR, year - _APART), min(_LATEST_YEAR, year + _APART) + 1)
        other = str(rng.choice([other for other in years if other != year]))
        return "".join(map(_digit, map(int, other), number)) + number[4:]
    changed = number
    while changed == number:
        changed = "".join(
            _digit(rng.randint(1 if index == 0 else 0, 9), char) if char.isdecimal() and rng.random() < 0.7 else char
            for index, char in enumerate(number)
        )
    return changed


def _in_digits_of(text: str, number: int) -> str:
    """A number in the digits of a text: ASCII, unless the text has others."""
    like = next((char for char in text if char.isdecimal()), "0")
    return "".join(_digit(int(digit), like) for digit in str(number))


def _digit(value: int, like: str) -> str:
    """A digit in the script of another."""
    return chr(ord(like) - unicodedata.decimal(like) + value)


def values_differ(old: str, new: str) -> bool:
    """Whether neither can mean the other: `Filangieri` may mean `Carlo Filangieri`, `05` may mean `5`."""
    before, after = ({word.lstrip("0") for word in folded_words(text)} for text in (old, new))
    return not (before <= after or after <= before)


# Occurrences of a form of a language's data file in a text, and their replacement by another form.


_TIES = frozenset("'’-\u00ad־")  # marks that join a word to its neighbour: `c'est`, `s-a`


def occurrences(text: str, bounds: list[Range], form: str) -> Iterator[Range]:
    """Ranges of a form between word boundaries, without a mark that joins it to its neighbours."""
    lowered, wanted = text.lower(), form.lower()
    if len(lowered) != len(text):  # some letters have two code points in lower case, such as the dotted capital I
        lowered = text
    at = lowered.find(wanted)
    if at < 0:
        return
    starts, ends = {s for s, _ in bounds}, {e for _, e in bounds}
    while at >= 0:
        end = at + len(form)
        if at in starts and end in ends and _TIES.isdisjoint((text[at - 1 : at], text[end : end + 1])):
            yield at, end
        at = lowered.find(wanted, at + 1)


def cased(form: str, like: str) -> str:
    """A form with a capital letter if the replaced text has one."""
    return form[0].upper() + form[1:] if like[0].isupper() else form


def differing_words(old: str, new: str) -> tuple[int, int, str]:
    """The change from `old` to `new` without common words at either end: half-open range, and new text."""
    before, after = old.split(" "), new.split(" ")
    first = len(commonprefix([before[:-1], after[:-1]]))  # noqa: RUF071  of lists
    last = len(commonprefix([before[:first:-1], after[:first:-1]]))  # noqa: RUF071
    start = len(" ".join([*before[:first], ""]))
    end = len(old) - len(" ".join(["", *before[len(before) - last :]])) if last else len(old)
    return start, end, " ".join(after[first : len(after) - last])


_TURNED = 0.5  # share of errors for which exchanged values are tried before opposites
_FARTHEST = 60  # maximum code points between two exchanged values, because the text between is part of the error
_SENTENCE_END = re.compile(r"[.!?]\s")
_MIN_WORDS_BETWEEN = 2  # words between two values; for numbers a preposition is enough: `from 1914 to 1918`


def _relation_error(quotation: Quotation, rng: Random) -> Edit | None:
    """A form replaced by its opposite, or two values exchanged; None if neither is possible.

    In a language without known opposites, a word is replaced by another one with the same ending.
    """
    ways = [_opposite if quotation.phrases is not None else _other_word, _turned]
    if rng.random() < _TURNED:
        ways.reverse()
    return next((edit for way in ways if (edit := way(quotation, rng)) is not None), None)


def _opposite(quotation: Quotation, rng: Random) -> Edit | None:
    text, phrases = quotation.text, quotation.phrases
    bounds = words(text, quotation.material.language)
    edits: list[Edit] = []
    for form, opposite in phrases.opposites if phrases is not None else ():
        for start, end in occurrences(text, bounds, form):
            if quotation.untouched(start, end) and free(edits, start, end):
                first, last, put = differing_words(text[start:end], cased(opposite, text[start:end]))
                edits.append(Edit(start + first, start + last, put, "opposite"))
    return rng.choice(edits) if edits else None


def _turned(quotation: Quotation, rng: Random) -> Edit | None:
    """Two values of one shape exchanged, as one error from the first to the end of the second."""
    text = quotation.text
    for start, end in quotation.shuffled(rng):
        values = quotation.values(text[start:end])
        pairs = [
            (value, other)
            for index, value in enumerate(values)
            for other in values[index + 1 :]
            if value[2:] == other[2:]  # kind and shape, so that endings still agree
        ]
        for value, other in rng.sample(pairs, len(pairs)):
            first, last = text[start + value.start : start + value.end], text[start + other.start : start + other.end]
            between = text[start + value.end : start + other.start]
            whole = start + value.start, start + other.end
            if not quotation.untouched(*whole) or not values_differ(first, last):
                continue
            if _relates(between, value.kind == "name", quotation.material.language):
                return Edit(*whole, last + between + first, "turned")
    return None


def _relates(between: str, names: bool, language: str) -> bool:
    """Whether the text between two values makes their order relevant: more than a comma or an `and`."""
    if len(between) > _FARTHEST or _SENTENCE_END.search(between) or any(mark in between for mark in ",،，、;；()（）"):
        return False
    rules = rules_of(language)
    words_between = [between[s:e].casefold() for s, e in words(between, language)]
    if rules is not None and not rules.perhaps.isdisjoint(words_between):
        return False
    leads = rules is not None and not names and len(words_between) == 1 and words_between[0] in rules.before
    return leads or len(words_between) >= _MIN_WORDS_BETWEEN


def _other_word(quotation: Quotation, rng: Random) -> Edit | None:
    text, material = quotation.text, quotation.material
    candidates = [(s, e) for s, e in material.middling(text) if quotation.untouched(s, e)]
    for start, end in rng.sample(candidates, min(len(candidates), 12)):
        other = material.other_word(text[start:end], quotation.number, rng)
        if other is not None:
            return Edit(start, end, other, "word")
    return None


def _contradictory_error(quotation: Quotation, rng: Random) -> Edit | None:
    """A whole sentence replaced by its negation; None if no sentence can be negated."""
    phrases = quotation.phrases
    if phrases is None:
        return None
    for start, end in quotation.shuffled(rng):
        if quotation.untouched(start, end):
            changed = negated(quotation.text[start:end], quotation.material.language, phrases)
            if changed is not None:
                return Edit(start, end, *changed)
    return None


def negated(sentence: str, language: str, phrases: Phrases) -> tuple[str, str] | None:
    """The sentence with a negation added or removed, and which (`negated`, `affirmed`); None if neither is possible."""
    bounds = words(sentence, language)
    for form, negation in sorted(phrases.negations, key=lambda pair: -len(pair[1])):
        for start, end in occurrences(sentence, bounds, negation):
            return _replaced(sentence, start, end, form), "affirmed"
    if any(sentence[start:end].casefold() in phrases.negators for start, end in bounds):
        return None
    for form, negation in phrases.negations:
        for start, end in occurrences(sentence, bounds, form):
            if _may_be_negated(sentence, bounds, start, end, phrases):
                return _replaced(sentence, start, end, negation), "negated"
    return _ending_changed(sentence, bounds, phrases)


def _may_be_negated(sentence: str, bounds: list[Range], start: int, end: int, phrases: Phrases) -> bool:
    before = next((sentence[s:e].casefold() for s, e in reversed(bounds) if e <= start), "")
    after = next((sentence[s:e].casefold() for s, e in bounds if s >= end), "")
    if before in phrases.not_after or after in phrases.not_before:
        return False
    return not phrases.inside or (sentence[end : end + 1] == " " and sentence[end + 1 : end + 2].isalnum())


def _ending_changed(sentence: str, bounds: list[Range], phrases: Phrases) -> tuple[str, str] | None:
    """The sentence with another ending, in languages with negative endings."""
    if not bounds:
        return None
    end = bounds[-1][1]
    for form, negation in phrases.endings:
        for old, new, way in ((negation, form, "affirmed"), (form, negation, "negated")):
            if sentence[:end].endswith(old) and len(old) < end:
                return sentence[: end - len(old)] + new + sentence[end:], way
    return None


def _replaced(sentence: str, start: int, end: int, form: str) -> str:
    return sentence[:start] + cased(form, sentence[start:end]) + sentence[end:]


# Whole statements between the sentences: invented, subjective, unverifiable.


_OPENED = 0.4  # share of judgements with an opening that names their holder
_HEDGED = 0.6  # share of unverifiable claims that are a sentence of another article as hearsay
_YEARS = (1650, 2015)
_NUMBERS = (3, 48)


def _invented_error(quotation: Quotation, rng: Random) -> Edit | None:
    """A sentence of another article after one of the quotation's; see `_made_up`."""
    sentence = _made_up(quotation, rng)
    return None if sentence is None else _inserted(quotation, sentence, "sentence", rng)


def _made_up(quotation: Quotation, rng: Random) -> str | None:
    """A sentence of another article with this article's title for its own at the beginning, and one value exchanged."""
    material = quotation.material
    quoted = material.other_sentence(quotation.number, rng)
    if quoted is None:
        return None
    other, sentence = quoted
    title, own_title = material.articles[other].title, quotation.article.title
    values = [v for v in material.values(sentence, other) if sentence[v.start : v.end] != title]
    for value in rng.sample(values, len(values)):
        old = sentence[value.start : value.end]
        new = _exchanged(old, value, other, material, rng)
        if new is not None and values_differ(old, new):
            sentence = sentence[: value.start] + new + sentence[value.end :]
            break
    if title and own_title and sentence.startswith(title) and not sentence[len(title) : len(title) + 1].isalnum():
        sentence = own_title + sentence[len(title) :]
    return sentence


def _subjective_error(quotation: Quotation, rng: Random) -> Edit | None:
    """A sentence with an opinion; None in a language without such phrases."""
    phrases = quotation.phrases
    if phrases is None:
        return None
    judgement = rng.choice(phrases.judgements)
    if phrases.openings and rng.random() < _OPENED:
        opening = rng.choice(phrases.openings)
        lowered = judgement[0].lower() + judgement[1:] if has_case(quotation.material.language) else judgement
        judgement = opening.replace("{}", lowered)
    return _inserted(quotation, judgement, "judgement", rng)


def _unverifiable_error(quotation: Quotation, rng: Random) -> Edit | None:
    """A claim that nobody can verify, or hearsay; None in a language without such phrases."""
    phrases = quotation.phrases
    if phrases is None:
        return None
    hearsay = _made_up(quotation, rng) if rng.random() < _HEDGED else None
    if hearsay is None:
        year, some = (_in_digits_of(quotation.text, rng.randint(*bounds)) for bounds in (_YEARS, _NUMBERS))
        claim = rng.choice(phrases.claims).replace("{year}", year).replace("{number}", some)
        return _inserted(quotation, claim, "claim", rng)
    return _inserted(quotation, rng.choice(phrases.hedges).replace("{sentence}", hearsay), "hearsay", rng)


def _inserted(quotation: Quotation, statement: str, way: str, rng: Random) -> Edit | None:
    """The statement after one of the sentences; None if the text has it already, or no place is free."""
    if statement in quotation.text:
        return None
    taken = {edit.start for edit, _ in quotation.edits if edit.start == edit.end}
    ends = [end for _, end in quotation.places if end not in taken]
    if not ends:
        return None
    after = rng.choice(ends)
    return Edit(after, after, quotation.material.space + statement, way)


# Planned rows: number for each language, which of them are clean, and the errors of the others.
#
# The plan is complete before the first row is made, so that shares are exact, and any row can be made alone.


_TAXONOMIES = ("fava", "halluverse")
_NEED_PHRASES = frozenset({"contradictory", "subjective", "unverifiable"})


class RuleSettings(StrictRecord):
    """Settings of silver data by rule.

    Attributes:
        rows: number over all languages; each gets the same number, or one more.
        taxonomy: `fava` or `halluverse`.
        shares: share of each type in all errors; types that are not listed get none; an empty mapping gives equal
            shares. They need not sum to 1.
        clean: share of the rows without any error, 0 to 1.
        fewest, most: errors in a row with errors.
        reworded: share of the sentences with brackets that are quoted without them.
        articles: maximum number for a language; see `Articles`.
        seed: for all random draws.
    """

    rows: int = 1000
    taxonomy: str = "fava"
    shares: dict[str, float] = {}
    clean: float = 0.3
    fewest: int = 1
    most: int = 3
    reworded: float = 0.4
    articles: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.taxonomy not in _TAXONOMIES:
            raise UnknownNameError("taxonomy of rules", self.taxonomy, _TAXONOMIES)
        for type_ in sorted(set(self.shares) - set(self.types)):
            raise UnknownNameError(f"type of {self.taxonomy}", type_, self.types)
        if any(not 0 <= share < inf for share in self.shares.values()) or (
            self.shares and not sum(self.shares.values())
        ):
            raise UsageError("The shares of types are numbers from 0 up, at least one of them more than 0.")
        if not 1 <= self.fewest <= self.most <= 6:
            raise UsageError("A row has 1 to 6 errors, the fewest no more than the most.")
        check_ranges(self, clean=(0, 1), reworded=(0, 1), rows=(1, inf), articles=(2, inf))

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the taxonomy, in its order."""
        return tuple(taxonomy(self.taxonomy).types)

    def weights(self) -> dict[str, float]:
        """The share of each type; they sum to 1."""
        given = self.shares or dict.fromkeys(self.types, 1.0)
        total = sum(given.values())
        return {type_: given.get(type_, 0.0) / total for type_ in self.types}

    def supported(self, language: str) -> tuple[str, ...]:
        """The types that rules can make in a language; contradictory, subjective and unverifiable need its phrases."""
        known = phrases_of(language) is not None
        return tuple(type_ for type_ in self.types if known or type_ not in _NEED_PHRASES)


class _Planned(Record):
    """A row that will be made."""

    id: str
    language: str
    number: int
    types: tuple[str, ...]


def planned_rows(languages: Sequence[str], settings: RuleSettings) -> Iterator[_Planned]:
    """Every row, language by language; the same for equal arguments."""
    for tag, rows in apportioned(dict.fromkeys(languages, 1.0), settings.rows).items():
        rng = Random(f"plan {settings.seed} {tag}")  # noqa: S311  a seeded draw, not a secret
        can = settings.supported(tag)
        weights = {type_: weight for type_, weight in settings.weights().items() if type_ in can and weight}
        clean = set(rng.sample(range(rows), round(settings.clean * rows) if weights else rows))
        counts = [0 if row in clean else rng.randint(settings.fewest, settings.most) for row in range(rows)]
        deck = list(Counter(apportioned(weights, sum(counts))).elements())
        rng.shuffle(deck)
        for row, count in enumerate(counts):
            yield _Planned(f"rules-{tag}-{row:05d}", tag, row, tuple(deck.pop() for _ in range(count)))


# One row: a quotation of an article, the planned errors in it, and the check.


RULES_VERSION = "2"
_ATTEMPTS = 100
_LENGTHS = (1, 2, 2, 3, 3, 4, 5, 6)  # sentences in a row
_TOGETHER = 0.6  # share of quotations with consecutive sentences
_ASKED = 0.5  # share of rows with one of the article's questions, if it has any


def make_row(planned: _Planned, material: Material, settings: RuleSettings) -> SeedResult:
    """One row, from the next article in turn or, if that fails, from others.

    The row depends only on the plan, the articles and the settings, not on the rows before it. Rejections have the
    reasons of the check, `no_place` (the quotation has no place for an error of the type), or `too_short` (there is too
    little to quote).
    """
    rng = Random(f"row {settings.seed} {planned.id}")  # noqa: S311  a seeded draw, not a secret
    rejections = []
    sample, attempt, quoted = None, 0, 0
    while sample is None and attempt < _ATTEMPTS:
        number = rng.randrange(len(material.articles)) if attempt else planned.number % len(material.articles)
        article = material.articles[number]
        attempt += 1
        reject = partial(SilverRejection, planned.id, article.id, planned.language, attempt=attempt)
        question = rng.choice(article.questions) if article.questions and rng.random() < _ASKED else None
        quotation = _quotation(material, number, question, len(planned.types), settings.reworded, rng)
        if quotation is None:
            rejections.append(reject("passage", "too_short", "there are fewer whole sentences than errors to put in"))
            continue
        quoted += 1
        missed = _put_in(quotation, planned.types, rng)
        if missed is not None:
            detail = "no change of this kind is possible in the quotation"
            rejections.append(reject(missed, "no_place", detail, text=quotation.text))
            continue
        edited = quotation.applied()
        violations = quotation.violations(edited, planned.types) if planned.types else []
        for violation in violations:
            error = (violation.start, violation.end)
            about = next((change.type for change in edited.changes if (change.start, change.end) == error), "row")
            rejections.append(reject(about, violation.reason, violation.detail, text=edited.text[slice(*error)]))
        if not violations:
            sample = _sample(planned, quotation, question, edited, settings)
    return SeedResult(
        planned.id,
        planned.language,
        () if sample is None else (sample,),
        tuple(rejections),
        {"passage": attempt, **dict.fromkeys(planned.types, quoted)},
        {"passage": quoted, **dict.fromkeys(planned.types, int(sample is not None))},
    )


def _quotation(
    material: Material, number: int, question: str | None, errors: int, reworded: float, rng: Random
) -> Quotation | None:
    """Some sentences of the article in their order; with a question, around the sentence that it is about."""
    listed = list(dict.fromkeys(material.articles[number].sentences))
    count = min(len(listed), max(errors, rng.choice(_LENGTHS)))
    if not listed or count < errors:
        return None
    last = len(listed) - count  # index of the last possible first sentence
    if question is not None:
        asked, language = frozenset(folded_words(question, material.language)), material.language
        shared = [
            len(asked.intersection(folded_words(sentence, language))) / (3 + len(words(sentence, language)))
            for sentence in listed
        ]
        first = min(max(0, shared.index(max(shared)) - rng.randrange(count)), last)
        chosen = listed[first : first + count]
    elif rng.random() < _TOGETHER:
        first = rng.randrange(last + 1)
        chosen = listed[first : first + count]
    else:
        chosen = [listed[index] for index in sorted(rng.sample(range(len(listed)), count))]
    sentences = [(rng.random() < reworded and without_brackets(sentence)) or sentence for sentence in chosen]
    return Quotation(material, number, sentences)


def _put_in(quotation: Quotation, types: tuple[str, ...], rng: Random) -> str | None:
    """Insert the errors; returns the type that found no place, or None if all did."""
    known = phrases_of(quotation.material.language) is not None
    possible = [rule for rule in _SENTENCES if known or rule not in _NEED_PHRASES]
    for type_ in sorted(types, key=_ORDER.index):
        rule = rng.choice(possible) if type_ == "sentence" else type_
        edit = quotation.error(rule, rng)
        if edit is None:
            return type_
        quotation.edits.append((edit, type_))
    return None


_MAKERS: dict[str, _Maker] = {
    "contradictory": _contradictory_error,
    "invented": _invented_error,
    "subjective": _subjective_error,
    "unverifiable": _unverifiable_error,
    "entity": _entity_error,
    "relation": _relation_error,
}
_SENTENCES = ("contradictory", "invented", "unverifiable")  # parts of HalluVerse25's `sentence`
_ORDER = ("contradictory", "sentence", "invented", "unverifiable", "subjective", "entity", "relation")


def _sample(
    planned: _Planned, quotation: Quotation, question: str | None, edited: Edited, settings: RuleSettings
) -> Sample:
    """The row. `meta` has `group` (its article), and under `silver` the changes and their rules."""
    article = quotation.article
    return Sample(
        id=planned.id,
        response=edited.text,
        task=article.task,
        language=planned.language,
        question=question,
        evidence=article.passages,
        generator=Generator("rules", RULES_VERSION, settings.seed),
        annotations=(Annotation("rules", Kind.MODEL, settings.taxonomy, edited.spans),),
        meta={
            "group": article.id,
            "silver": {"seed": article.id, **quotation.silver_meta(edited, f"rules@{RULES_VERSION}")},
        },
    )


def rule_silver(output: Path, articles: Articles, settings: RuleSettings, **run: Unpack[RunOptions]) -> Tally:
    """Make silver data by rule.

    Args:
        output: JSON lines of samples, annotated by `rules`. Rejections go to `rejected_path(output)`, the account to
            `account_path(output)`; both in the same form as for data that models make.
        articles: sources of quotations; languages with a single article are left out.
        settings: what to make.
        run: see `RunOptions`.

    Returns:
        Counts of all planned rows. A row that failed in 100 attempts counts as done; the account has it.

    Raises:
        InputError: no language has two articles.
        UsageError: the output was begun with other settings.
    """
    languages = articles.quotable
    if not languages:
        raise InputError(
            "No language has two articles whose passages can be quoted.",
            "What is put into one comes from another: name files with two different texts of evidence in a language.",
        )

    def work(rows: Iterator[_Planned]) -> Iterator[SeedResult]:
        for tag, planned in groupby(rows, key=attrgetter("language")):
            material = Material(tag, articles.of(tag))
            for row in planned:
                yield make_row(row, material, settings)

    return generate(
        output,
        planned_rows(languages, settings),
        work,
        record_type=SeedResult,
        counts=lambda: SilverCounts(settings.types),
        signature=f"rules@{RULES_VERSION},{PHRASES_VERSION}",
        settings={"settings": settings, "check": f"check@{CHECK_VERSION}"},
        maker="rules",
        **run,
    )
