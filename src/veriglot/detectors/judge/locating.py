"""Where a quoted text stands in a response: as it is or written otherwise, and which time of several."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Literal

from veriglot.text import normalise, words

__all__ = ["Located", "Quote", "locate"]

Range = tuple[int, int]
How = Literal["exact", "normalised", "words", "elided"]

_ELISION = re.compile(r"\s*(?:\.{3,}|…|\[\.\.\.\]|\[…\])\s*")
_MARKS = " \t\r\n\"'“”„‟«»‹›‘’‚‛「」『』《》〈〉`*_"  # what judges put around a quote
_LONGEST_ELISION = 400  # code points between the two ends of a quote whose middle was left out


@dataclass(frozen=True)
class Quote:
    """A text that a judge copied from a response.

    Attributes:
        text: the copy.
        before: what stands right before it in the response, as the judge has it; empty where it did not say.
    """

    text: str
    before: str = ""


@dataclass(frozen=True)
class Located:
    """Where a quote stands.

    Attributes:
        start: first code point.
        end: one past the last one.
        how: `exact`; `normalised`: in another case, width, digit, mark or spacing; `words`: the same words with other
            marks between them; `elided`: its two ends, with the middle left out.
        ambiguous: whether it stands at several places that nothing tells apart; then this is the first that no other
            quote has taken.
    """

    start: int
    end: int
    how: How
    ambiguous: bool = False


def locate(response: str, quotes: list[Quote], language: str | None = None) -> list[Located | None]:
    """The place of each quote, or None where it stands nowhere in the response.

    Nothing is guessed: a quote with a word that the response does not have there is not located. Of several places,
    those at the edges of words come before those inside words, the one with the longest common context before it wins,
    and among equals the first that no other quote has taken.

    Args:
        response: the text that was quoted from.
        quotes: in the order of the response where they repeat one another.
        language: BCP 47 tag of the response.
    """
    text = _Text(response, language)
    taken: set[Range] = set()
    found: list[Located | None] = []
    equals: list[list[Range]] = []
    for quote in quotes:
        how, places = text.places(quote, taken)
        equals.append(places)
        found.append(Located(*places[0], how) if places else None)
        taken.update(places[:1])
    return [  # a judge that names every one of several equal places leaves nothing open
        replace(place, ambiguous=True) if place is not None and not taken.issuperset(others) else place
        for place, others in zip(found, equals, strict=True)
    ]


class _Text:
    """A response, prepared for looking up."""

    def __init__(self, response: str, language: str | None) -> None:
        self._response = response
        self._language = language
        self._plain = normalise(response)
        self._bounds = words(response, language)
        self._ends = [end for _, end in self._bounds]
        self._forms = [_form(response[start:end]) for start, end in self._bounds]
        self._inside = {place for start, end in self._bounds for place in range(start + 1, end)}

    def places(self, quote: Quote, taken: set[Range]) -> tuple[How, list[Range]]:
        """The places that a quote fits best and equally well, the one to choose first."""
        wanted = quote.text.strip()
        for candidate in dict.fromkeys((wanted, wanted.strip(_MARKS))):
            for how, places in self._tiers(candidate) if candidate else ():
                if places:
                    return how, self._best(places, quote.before, taken)
        return "exact", []

    def _tiers(self, wanted: str) -> list[tuple[How, list[Range]]]:
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
        return [place for place in places if place[0] not in self._inside and place[1] not in self._inside]

    def _normalised(self, wanted: str) -> list[Range]:
        plain = normalise(wanted).text.strip()
        if not plain:
            return []
        ranges = (self._plain.original(low, high) for low, high in _all(self._plain.text, plain))
        return [place for place in (self._trimmed(*place) for place in ranges) if place[0] < place[1]]

    def _trimmed(self, start: int, end: int) -> Range:
        while start < end and self._response[start].isspace():
            start += 1
        while end > start and self._response[end - 1].isspace():
            end -= 1
        return start, end

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
        found = []
        for start, end in self._whole_words(self._normalised(parts[0])):
            for part in parts[1:]:
                later = [place for place in self._whole_words(self._normalised(part)) if place[0] >= end]
                if not later or later[0][0] - end > _LONGEST_ELISION:
                    break
                end = later[0][1]
            else:
                found.append((start, end))
        return found

    def _best(self, places: list[Range], before: str, taken: set[Range]) -> list[Range]:
        context = [_form(before[start:end]) for start, end in words(before, self._language)]
        fits = [self._shared(place[0], context) for place in places]
        best = [place for place, fit in zip(places, fits, strict=True) if fit == max(fits)]
        return [place for place in best if place not in taken] or best[:1]

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
    found = []
    place = text.find(wanted)
    while place >= 0:
        found.append((place, place + len(wanted)))
        place = text.find(wanted, place + 1)
    return found
