"""Parsing of judges' answers: locating quotes in the response, voting on marks, and probabilities of labels."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from veriglot.judging.base import DIGITS, runs
from veriglot.llm.client import AnswerError, Reply, Token
from veriglot.records import Span, Word
from veriglot.records.settings import Record
from veriglot.text.normalization import normalise
from veriglot.text.segmentation import sentences, words
from veriglot.text.unicode import trimmed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.arrays import Int64s

__all__ = [
    "Quote", "excerpt", "label_probabilities", "list_probability", "locate", "read_answer", "resolve_overlaps",
    "vote_marks"
]  # fmt: skip


Range = tuple[int, int]

_ELISION = re.compile(r"\s*(?:\.{3,}|…|\[\.\.\.\]|\[…\])\s*")
_MARKS = " \t\r\n\"'“”„‟«»‹›‘’‚‛「」『』《》〈〉`*_"  # what judges put around a quote
_LONGEST_ELISION = 400  # most code points left out between two parts of a quote


class Quote(Record):
    """A text that a judge copied from a response.

    Attributes:
        text: the copy.
        before: the words right before it in the response, as copied by the judge; empty if not given.
    """

    text: str
    before: str = ""


def locate(
    response: str, quotes: Sequence[Quote], language: str | None = None
) -> tuple[list[Range | None], tuple[str, ...]]:
    """The range of each quote in the response, or None if it does not occur; and notes.

    The match is never fuzzy: every word of a quote must occur there. Of several matches, those at word boundaries come
    first, then the one with the longest matching context before it, then the first that no other quote has taken.

    Args:
        response: the quoted text.
        quotes: the quotes; equal ones in the order of the response.
        language: BCP 47 tag of the response.

    Returns:
        Half-open code point ranges, and notes on quotes that were not located, that match several times, or that the
        response writes differently.
    """
    text = _Text(response, language)
    taken = set[Range]()
    fits: list[tuple[str, list[Range]]] = []
    for quote in quotes:
        fits.append(text.places(quote, taken))
        taken.update(fits[-1][1][:1])
    notes: dict[str, None] = {}
    for quote, (how, places) in zip(quotes, fits, strict=True):
        # If the judge quotes every one of several equal matches, nothing is ambiguous.
        note = how if taken.issuperset(places) else "at several places"
        if note != "exact":
            notes[f"quote:{note}: {excerpt(quote.text)!r}"] = None
    return [places[0] if places else None for _, places in fits], tuple(notes)


class _Text:
    """A response, prepared for searching."""

    def __init__(self, response: str, language: str | None) -> None:
        self._response = response
        self._language = language
        self._plain = normalise(response)
        self._bounds = words(response, language)
        self._ends = [end for _, end in self._bounds]
        self._forms = [_form(response[start:end]) for start, end in self._bounds]
        self._inside = {offset for start, end in self._bounds for offset in range(start + 1, end)}

    def places(self, quote: Quote, taken: set[Range]) -> tuple[str, list[Range]]:
        """How a quote matches, and its equally good matches, the preferred one first."""
        wanted = quote.text.strip()
        for candidate in dict.fromkeys((wanted, wanted.strip(_MARKS))):
            for how, places in self._tiers(candidate) if candidate else ():
                if places:
                    return how, self._best(places, quote.before, taken)
        return "not in the response", []

    def _tiers(self, wanted: str) -> list[tuple[str, list[Range]]]:
        exact = _all(self._response, wanted)
        normalised = self._normalised(wanted)
        return [
            ("exact", self._whole_words(exact)),
            ("normalised", self._whole_words(normalised)),
            ("words", self._by_words(wanted)),
            ("exact", exact),
            ("normalised", normalised),
            ("elided", self._elided(wanted)),
        ]

    def _whole_words(self, places: list[Range]) -> list[Range]:
        return [range_ for range_ in places if range_[0] not in self._inside and range_[1] not in self._inside]

    def _normalised(self, wanted: str) -> list[Range]:
        plain = normalise(wanted).text.strip()
        if not plain:
            return []
        ranges = (self._plain.original(low, high) for low, high in _all(self._plain.text, plain))
        return [range_ for range_ in (trimmed(self._response, *range_) for range_ in ranges) if range_[0] < range_[1]]

    def _by_words(self, wanted: str) -> list[Range]:
        forms = [_form(wanted[start:end]) for start, end in words(wanted, self._language)]
        count = len(forms)
        if not count:
            return []
        starts = [n for n in range(len(self._forms) - count + 1) if self._forms[n : n + count] == forms]
        return [(self._bounds[n][0], self._bounds[n + count - 1][1]) for n in starts]

    def _elided(self, wanted: str) -> list[Range]:
        """Ranges from the first to the last part of an elided quote, if its parts follow each other closely."""
        parts = [part for part in _ELISION.split(wanted) if part]
        if len(parts) < 2:
            return []
        ranges = []
        for start, end in self._whole_words(self._normalised(parts[0])):
            for part in parts[1:]:
                later = [range_ for range_ in self._whole_words(self._normalised(part)) if range_[0] >= end]
                if not later or later[0][0] - end > _LONGEST_ELISION:
                    break
                end = later[0][1]
            else:
                ranges.append((start, end))
        return ranges

    def _best(self, places: list[Range], before: str, taken: set[Range]) -> list[Range]:
        context = [_form(before[start:end]) for start, end in words(before, self._language)]
        fits = [self._shared(range_[0], context) for range_ in places]
        best = [range_ for range_, fit in zip(places, fits, strict=True) if fit == max(fits)]
        return [range_ for range_ in best if range_ not in taken] or best[:1]

    def _shared(self, start: int, context: list[str]) -> int:
        """Number of words right before `start` that equal the end of the context."""
        ahead = bisect_right(self._ends, start)
        shared = 0
        while shared < min(len(context), ahead) and context[-1 - shared] == self._forms[ahead - 1 - shared]:
            shared += 1
        return shared


def _form(word: str) -> str:
    return normalise(word).text


def _all(text: str, wanted: str) -> list[Range]:
    starts = (match.start() for match in re.finditer(f"(?={re.escape(wanted)})", text))
    return [(start, start + len(wanted)) for start in starts]


def resolve_overlaps(response: str, marks: Sequence[Span]) -> tuple[tuple[Span, ...], int]:
    """Spans without overlaps, in order, and the number of marks that overlapped another.

    Where marks overlap, the shorter one wins, since it is more exact; the longer one is cut to the rest.
    """
    once = list(dict.fromkeys(marks))
    painted = _painted(len(response), once)
    spans = []
    for start, end in runs(painted >= 0, painted):
        low, high = trimmed(response, start, end)
        if low < high:
            mark = once[painted[start]]
            confidence = None if mark.confidence is None else round(mark.confidence, DIGITS)
            spans.append(Span(low, high, mark.type, confidence, response[low:high]))
    crossing = sum(
        any(other is not mark and mark.start < other.end and other.start < mark.end for other in once) for mark in once
    )
    return tuple(spans), crossing


def _painted(length: int, marks: Sequence[Span]) -> Int64s:
    """Index of the mark of each code point; -1 for none."""
    painted = np.full(length, -1)
    for index, mark in sorted(enumerate(marks), key=lambda entry: entry[1].start - entry[1].end):
        painted[mark.start : mark.end] = index
    return painted


def vote_marks(
    response: str, language: str | None, opinions: Sequence[Sequence[Span]], threshold: float, types: Sequence[str]
) -> tuple[tuple[Span, ...], tuple[Word, ...]]:
    """Spans that at least a share of the opinions marked, and every word with the share of opinions that marked it.

    A mark that begins or ends inside a word counts for the whole word, since judges cut words at random. Neighbouring
    code points of one sentence and type make one span. The type is that of most opinions (the first of the taxonomy, if
    equal); the confidence is the mean share over the span.

    Args:
        response: the text.
        language: BCP 47 tag of the text, or None.
        opinions: the marks of each opinion; at least one opinion.
        threshold: least share, 0 to 1; with 0, everything is marked.
        types: the types of the taxonomy, in its order.
    """
    bounds = words(response, language)
    votes = np.zeros((len(types), len(response)), np.int64)
    for marks in opinions:
        painted = _painted(len(response), marks)
        for start, end in bounds:
            owner = painted[start:end].max()
            if owner >= 0:
                painted[start:end] = owner
        for index, mark in enumerate(marks):
            votes[types.index(str(mark.type)), painted == index] += 1
    shares = [round(count / len(opinions), DIGITS) for count in votes.sum(axis=0).tolist()]
    kinds = np.where(np.array(shares) >= threshold, votes.argmax(axis=0), -1)
    for (_, end), (start, _) in pairwise(bounds):  # join neighbouring words across punctuation and spaces
        if kinds[end - 1] == kinds[start] != -1:
            kinds[end:start] = kinds[start]
    starts = [start for start, _ in sentences(response, language)]
    sentence = np.searchsorted(starts, np.arange(len(response)), side="right")
    spans = []
    for start, end in runs(kinds >= 0, sentence * len(types) + kinds):
        low, high = trimmed(response, start, end)
        if low < high:
            confidence = round(sum(shares[low:high]) / (high - low), DIGITS)
            spans.append(Span(low, high, types[kinds[start]], confidence, response[low:high]))
    return tuple(spans), tuple(Word(start, end, shares[start]) for start, end in bounds)


_EXCERPT = 60  # most code points of a quoted text


def excerpt(text: str, most: int = _EXCERPT) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"


_THOUGHTS_END = re.compile(r"</think(?:ing)?>")
_UNSEEN = 0.05  # most probability of choices without an alternative, relative to the others
_BEGIN, _END = "{", "]"  # after `[`: the first object of a list, or its end

Distribution = dict[str, float]


def label_probabilities(
    reply: Reply, field: str, labels: Sequence[str], choices: Sequence[str]
) -> list[Distribution] | None:
    """The probabilities of all choices for each value of a field, given the reply before it.

    They come from the alternatives of the label's first token: those that begin exactly one choice, normalised. Other
    alternatives are ignored, since servers with constrained decoding list tokens that the schema forbids. A choice
    without an alternative is at most as probable as the last alternative; if all such choices together could have more
    than 5% of the others' probability, the result is unknown. Without alternatives only the label's own probability is
    known, the product over its tokens; it is used from 0.5 on, since below the distribution of the rest is unknown.

    Args:
        reply: the reply, with its tokens.
        field: a name in its JSON.
        labels: the values, in the order of the reply, as in JSON without quotation marks.
        choices: all possible values.

    Returns:
        One mapping per label; choices that are not in it share the rest to 1. None if the probabilities of any label
        are unknown, or if the tokens do not spell exactly these labels.
    """
    values = _values_of(reply, field, r'"?(?P<value>[^",\s}\]]+)', choices)
    known = [distribution for _, distribution in values if distribution is not None]
    spelled = reply.logprobs is not None and [value for value, _ in values] == list(labels)
    return known if spelled and len(known) == len(values) else None


def list_probability(reply: Reply, field: str) -> float | None:
    """The probability that a list of objects in a judge's JSON is not empty.

    It comes from the token after `[`, which ends the list or begins its first object.

    Returns:
        Between 0 and 1; None if it is unknown, or if the reply has the field more than once.
    """
    values = _values_of(reply, field, r"\[\s*(?P<value>[\]{])", (_BEGIN, _END))
    if len(values) != 1 or values[0][1] is None:
        return None
    distribution = values[0][1]
    return distribution[_BEGIN] if _BEGIN in distribution else 1.0 - distribution[_END]


def _values_of(reply: Reply, field: str, pattern: str, choices: Sequence[str]) -> list[tuple[str, Distribution | None]]:
    """Each value of a field in the answer (after any thinking), with the probabilities of the choices there."""
    tokens = reply.logprobs or ()
    text = "".join(token.text for token in tokens)
    thoughts = [match.end() for match in _THOUGHTS_END.finditer(text)]
    values = re.compile(rf'(?<!\\)"{re.escape(field)}"\s*:\s*{pattern}').finditer(text, max(thoughts, default=0))
    return [(match["value"], _distribution(tokens, *match.span("value"), match["value"], choices)) for match in values]


def _distribution(
    tokens: tuple[Token, ...], low: int, high: int, label: str, choices: Sequence[str]
) -> Distribution | None:
    """The probabilities of the choices for the label at `[low, high)`."""
    answer_tokens, read = [], 0
    for token in tokens:
        if read < high and read + len(token.text) > low:
            answer_tokens.append((max(0, low - read), token))
        read += len(token.text)
    offset, first = answer_tokens[0]
    shares: Distribution = {}
    for text, logprob in {**dict(first.alternatives), first.text: first.logprob}.items():
        choice = _begun(text, first.text[:offset], choices)
        if choice is not None and logprob is not None:
            shares[choice] = shares.get(choice, 0.0) + math.exp(logprob)
    if first.alternatives and shares.get(label):
        total = sum(shares.values())
        unseen = len(set(choices) - shares.keys()) * math.exp(min(logprob for _, logprob in first.alternatives))
        return {choice: share / total for choice, share in shares.items()} if unseen <= _UNSEEN * total else None
    logprobs = [token.logprob for _, token in answer_tokens if token.logprob is not None]
    sure = min(1.0, math.exp(sum(logprobs)))
    return {label: sure} if len(logprobs) == len(answer_tokens) and sure >= 0.5 else None


def _begun(text: str, before: str, choices: Sequence[str]) -> str | None:
    """The choice that a token begins, ignoring its text before the label; None if it begins none or several."""
    rest = text.removeprefix(before) if text.startswith(before) else text.lstrip(' \n\t"')
    matches = [choice for choice in choices if rest and (choice.startswith(rest) or rest.startswith(choice))]
    return matches[0] if len(matches) == 1 else None


T = TypeVar("T")

_LONG_EXCERPT = 160
_DECODER = json.JSONDecoder()


def read_answer(reply: Reply, type_: type[T]) -> T:
    """The value in a reply.

    Thinking before the answer and text around the JSON are skipped. Ambiguous replies are errors.

    Raises:
        AnswerError: the provider filtered the reply; it was truncated; it contains no value of the type (such as a
            refusal in words); or it contains several different values.
    """
    if reply.finish == "filter":
        raise AnswerError(f"The judge's provider withheld its reply{_excerpt(reply.text)}")
    if reply.finish == "length":
        raise AnswerError(
            f"The judge's reply was cut at its length{_excerpt(reply.text)}", remedy="Raise the option max_tokens."
        )
    # some servers send half of a surrogate pair, which is not valid text
    text = reply.answer.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if not text.strip():
        raise AnswerError("The judge's reply is empty.")
    values = [value for value in _values(text) if _fits(value, type_)]
    if not values:
        return msgspec.structs.replace(reply, text=text).decode(type_)  # raises an error with the position
    if any(value != values[0] for value in values[1:]):
        raise AnswerError(f"The judge's reply holds {len(values)} answers that differ{_excerpt(text)}")
    return msgspec.convert(values[0], type_)


def _values(text: str) -> Iterator[Any]:
    """The outermost JSON objects of a text, from left to right."""
    start = text.find("{")
    while start >= 0:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield value
        start = text.find("{", end)


def _fits(value: Any, type_: type[Any]) -> bool:
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError:
        return False
    return True


def _excerpt(text: str) -> str:
    return f"; it begins: {excerpt(text, _LONG_EXCERPT)!r}" if text.strip() else "."
