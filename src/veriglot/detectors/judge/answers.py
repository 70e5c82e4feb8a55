"""Answers of judges: quoted texts found in a response, marks and ballots, and probabilities of labels."""

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

__all__ = ["Quote", "excerpt", "label_probabilities", "list_probability", "locate", "read_answer", "spans_of", "voted"]


Range = tuple[int, int]

_ELISION = re.compile(r"\s*(?:\.{3,}|…|\[\.\.\.\]|\[…\])\s*")
_MARKS = " \t\r\n\"'“”„‟«»‹›‘’‚‛「」『』《》〈〉`*_"  # what judges put around a quote
_LONGEST_ELISION = 400  # code points between the two ends of a quote whose middle was left out


class Quote(Record):
    """A text that a judge copied from a response.

    Attributes:
        text: the copy.
        before: what stands right before it in the response, as the judge has it; empty where it did not say.
    """

    text: str
    before: str = ""


def locate(
    response: str, quotes: Sequence[Quote], language: str | None = None
) -> tuple[list[Range | None], tuple[str, ...]]:
    """The place of each quote, or None where it stands nowhere in the response; and what to note of them.

    Nothing is guessed: a quote with a word that the response does not have there is not located. Of several places,
    those at the edges of words come before those inside words, the one with the longest common context before it wins,
    and among equals the first that no other quote has taken.

    Args:
        response: the text that was quoted from.
        quotes: in the order of the response where they repeat one another.
        language: BCP 47 tag of the response.

    Returns:
        Half-open code point ranges, and notes on the quotes that were not located, those that fit several places, and
        those that the response writes otherwise.
    """
    text = _Text(response, language)
    taken = set[Range]()
    fits: list[tuple[str, list[Range]]] = []
    for quote in quotes:
        fits.append(text.places(quote, taken))
        taken.update(fits[-1][1][:1])
    notes: dict[str, None] = {}
    for quote, (how, places) in zip(quotes, fits, strict=True):
        # A judge that names every one of several equal places leaves nothing open.
        note = how if taken.issuperset(places) else "at several places"
        if note != "exact":
            notes[f"quote:{note}: {excerpt(quote.text)!r}"] = None
    return [places[0] if places else None for _, places in fits], tuple(notes)


class _Text:
    """A response, prepared for looking up."""

    def __init__(self, response: str, language: str | None) -> None:
        self._response = response
        self._language = language
        self._plain = normalise(response)
        self._bounds = words(response, language)
        self._ends = [end for _, end in self._bounds]
        self._forms = [_form(response[start:end]) for start, end in self._bounds]
        self._inside = {offset for start, end in self._bounds for offset in range(start + 1, end)}

    def places(self, quote: Quote, taken: set[Range]) -> tuple[str, list[Range]]:
        """The places that a quote fits best and equally well, the one to choose first."""
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
        """The ranges from the first part of a quote to its last one, where all parts follow one another closely."""
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
        """How many words of the context stand before a place, counted backwards from it."""
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


def spans_of(response: str, marks: Sequence[Span]) -> tuple[tuple[Span, ...], int]:
    """Spans that do not overlap, in order, and how many marks crossed another and were parted.

    Where marks overlap the shorter one holds, since it says more exactly what is wrong, and the longer one keeps what
    is left of it.
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
    """Which mark each code point belongs to; -1 for none."""
    painted = np.full(length, -1)
    for index, mark in sorted(enumerate(marks), key=lambda entry: entry[1].start - entry[1].end):
        painted[mark.start : mark.end] = index
    return painted


def voted(
    response: str, language: str | None, opinions: Sequence[Sequence[Span]], threshold: float, types: Sequence[str]
) -> tuple[tuple[Span, ...], tuple[Word, ...]]:
    """What at least a share of several opinions marked, and every word with the share that marked it.

    A mark that begins or ends inside a word votes for all of it: how much of a word a judge quotes is chance.
    Neighbouring code points of one sentence and one type make one span. The type is that of most opinions which
    marked the place (of equals, the first of the taxonomy); the confidence the mean share over the span.

    Args:
        response: the text.
        language: BCP 47 tag of it, or None.
        opinions: the marks of each opinion; at least one opinion.
        threshold: a share, 0 to 1; from 0 on everything is marked.
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
    for (_, end), (start, _) in pairwise(bounds):  # with the marks and spaces between, a run of words is one span
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


_SHOWN = 60  # code points of a quote


def excerpt(text: str, most: int = _SHOWN) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"


_THOUGHTS_END = re.compile(r"</think(?:ing)?>")
_UNSEEN = 0.05  # of the probability of the choices that were seen
_BEGIN, _END = "{", "]"  # how a list of objects goes on: with an object, or not at all

Distribution = dict[str, float]


def label_probabilities(
    reply: Reply, field: str, labels: Sequence[str], choices: Sequence[str]
) -> list[Distribution] | None:
    """The probability of each choice where the judge wrote each value of a field, given all that it wrote before.

    With the alternatives of the label's first token these are the shares of those that begin one choice. What else had
    probability there is left out: a server that holds a model to a form shows what the model would have liked better.
    A choice that no alternative begins can be no likelier than the last of them; where all such choices together could
    have more than a twentieth, nothing is known. Without alternatives only the label's own probability is known, that
    of all its tokens; it is taken from one half on, since below it nothing says where the rest went.

    Args:
        reply: the reply, with its tokens.
        field: a name in its JSON.
        labels: the values, in the order of the reply, as JSON has them without quotation marks.
        choices: all values that there are.

    Returns:
        One mapping per label; a choice that is not in it shares in what is missing to 1. None where something is not
        known of one of the labels, or the tokens do not spell these labels at as many places, so that none would be
        sure to belong to its label.
    """
    values = _values_of(reply, field, r'"?(?P<value>[^",\s}\]]+)', choices)
    known = [distribution for _, distribution in values if distribution is not None]
    spelled = reply.logprobs is not None and [value for value, _ in values] == list(labels)
    return known if spelled and len(known) == len(values) else None


def list_probability(reply: Reply, field: str) -> float | None:
    """The probability that a list of objects in a judge's JSON is not empty.

    It is that of the token with which the judge ended the list at once, or began its first object.

    Returns:
        Between 0 and 1; None where it is not known, or the field stands in the reply more than once.
    """
    values = _values_of(reply, field, r"\[\s*(?P<value>[\]{])", (_BEGIN, _END))
    if len(values) != 1 or values[0][1] is None:
        return None
    distribution = values[0][1]
    return distribution[_BEGIN] if _BEGIN in distribution else 1.0 - distribution[_END]


def _values_of(reply: Reply, field: str, pattern: str, choices: Sequence[str]) -> list[tuple[str, Distribution | None]]:
    """Each value of a field in the answer, after any thoughts, with the probabilities of the choices at its place."""
    tokens = reply.logprobs or ()
    text = "".join(token.text for token in tokens)
    thoughts = [match.end() for match in _THOUGHTS_END.finditer(text)]
    values = re.compile(rf'(?<!\\)"{re.escape(field)}"\s*:\s*{pattern}').finditer(text, max(thoughts, default=0))
    return [(match["value"], _distribution(tokens, *match.span("value"), match["value"], choices)) for match in values]


def _distribution(
    tokens: tuple[Token, ...], low: int, high: int, label: str, choices: Sequence[str]
) -> Distribution | None:
    """The probabilities of the choices at `[low, high)`, where the label stands."""
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
    """The one choice that a token begins, after what it holds before the label; None where it is none or several."""
    rest = text.removeprefix(before) if text.startswith(before) else text.lstrip(' \n\t"')
    matches = [choice for choice in choices if rest and (choice.startswith(rest) or rest.startswith(choice))]
    return matches[0] if len(matches) == 1 else None


T = TypeVar("T")

_EXCERPT = 160
_DECODER = json.JSONDecoder()


def read_answer(reply: Reply, type_: type[T]) -> T:
    """The value that a reply holds.

    Thoughts before the answer and words around the JSON are passed over. What would have to be guessed is refused.

    Raises:
        AnswerError: the provider held the reply back; it was cut at its length; it holds no value of the type, such as
            that of a model which refuses in words; or it holds several that differ.
    """
    if reply.finish == "filter":
        raise AnswerError(f"The judge's provider held its reply back{_excerpt(reply.text)}")
    if reply.finish == "length":
        raise AnswerError(
            f"The judge's reply was cut at its length{_excerpt(reply.text)}", remedy="Raise the option max_tokens."
        )
    # half of a surrogate pair, which some servers send, is no text
    text = reply.answer.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if not text.strip():
        raise AnswerError("The judge's reply is empty.")
    values = [value for value in _values(text) if _fits(value, type_)]
    if not values:
        return msgspec.structs.replace(reply, text=text).decode(type_)  # which raises, and says where
    if any(value != values[0] for value in values[1:]):
        raise AnswerError(f"The judge's reply holds {len(values)} answers that differ{_excerpt(text)}")
    return msgspec.convert(values[0], type_)


def _values(text: str) -> Iterator[Any]:
    """The JSON objects of a text, from left to right, those within another not among them."""
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
    return f"; it begins: {excerpt(text, _EXCERPT)!r}" if text.strip() else "."
