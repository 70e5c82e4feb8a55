"""Chosen sentences, sifted: on the page, whole, distinct, in its language, about somebody who is named."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.build.halluverse.naming import names_person
from veriglot.build.halluverse.pages import page_sentences
from veriglot.build.injection.seeds import seed_fault
from veriglot.llm import AnswerError, decode_answer
from veriglot.llm.thoughts import after_thoughts
from veriglot.records import Sample
from veriglot.text import fold, sentences, words

if TYPE_CHECKING:
    from veriglot.build.halluverse.pages import Page
    from veriglot.llm import Reply

__all__ = ["Chosen", "Fact", "FactReason", "FactRejection", "PageText", "read_sentences"]

FactReason = Literal[
    "unreadable", "held_back", "cut", "number", "unsupported", "part", "several", "duplicate", "length", "subject",
    "no_text", "refused", "language", "repetitive", "garbled", "markup",
]  # fmt: skip

_FEWEST_WORDS = 5
_MOST_CODE_POINTS = 500
_NEAR = 0.9  # of the words, in order: what a model leaves out of a sentence or corrects in it
_SAME = 0.85  # two sentences of which the second says nothing new
_LIST_MARK = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,2}[.):、]|[①②③④⑤⑥⑦⑧⑨])\s*")
_AROUND = ' \t,"“”„«»「」『』*'


class Fact(msgspec.Struct, frozen=True):
    """A factual sentence of a page.

    Attributes:
        id: the page's, with its number in order of choice.
        text: the sentence as the page has it, letter by letter.
        place: its number among the sentences of the page, from 0.
        exact: whether it was chosen in the page's own words; otherwise the page's sentence stands for what came.
    """

    id: str
    text: str
    place: int
    exact: bool = True


class FactRejection(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sentence that was chosen and not taken, or one that never came.

    Attributes:
        reason: `unreadable` (the reply holds no sentences), `held_back`, `cut`, `number` (too few, or one too many),
            `unsupported` (the page does not say it in these words), `part` (of a sentence of the page), `several`
            (sentences in one), `duplicate`, `length`, `subject` (it does not name whom the page is about); and those
            of a seed of injection: `no_text`, `refused`, `language`, `repetitive`, `garbled`, `markup`.
        detail: the same in words.
        text: what was chosen.
        attempt: which answer it stood in, from 1.
    """

    reason: FactReason
    detail: str
    text: str = ""
    attempt: int = 1


class _Listed(msgspec.Struct, frozen=True):
    """What the model is asked to answer with."""

    sentences: tuple[str, ...]


Chosen = _Listed


def read_sentences(reply: Reply) -> list[str]:
    """The sentences of a reply: JSON as asked for, a bare list, a list of Python, or one a line; empty for none."""
    with suppress(AnswerError):
        return _clean(decode_answer(reply, _Listed).sentences)
    with suppress(AnswerError):
        return _clean(decode_answer(reply, tuple[str, ...]))
    with suppress(AnswerError):
        named = decode_answer(reply, dict[str, tuple[str, ...]])
        return _clean(*named.values()) if len(named) == 1 else []
    said = after_thoughts(reply.text).strip()
    with suppress(ValueError, SyntaxError):
        listed = ast.literal_eval(said)
        if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
            return _clean(tuple(listed))
    lines = [line for line in said.splitlines() if line.strip()]
    marked = [line for line in lines if _LIST_MARK.match(line)]
    return _clean(tuple(_LIST_MARK.sub("", line) for line in marked))


def _clean(found: tuple[str, ...]) -> list[str]:
    return [one for one in (" ".join(text.split()).strip(_AROUND) for text in found) if one]


class PageText:
    """A page cut into sentences, to find in it what was chosen, and what was taken of it so far.

    Args:
        page: the page.
        named: whether a sentence has to name whom the page is about.
    """

    def __init__(self, page: Page, *, named: bool = True) -> None:
        self._page = page
        self._named = named and bool(page.names)
        self.sentences = page_sentences(page.reference.text, page.language)
        self._words = [self._folded(one) for one in self.sentences]
        self._places: dict[tuple[str, ...], int] = {}
        for place, said in enumerate(self._words):
            self._places.setdefault(said, place)
        self.facts: list[Fact] = []

    def take(self, said: str, attempt: int = 1) -> FactRejection | None:
        """Take a sentence that was chosen into `facts`, or say why it is none."""
        place, exact = self._place(said)
        if isinstance(place, str):
            return FactRejection(place, _TOLD[place], said, attempt)
        text = self.sentences[place]
        fault = self._fault(place, text)
        if fault is not None:
            return FactRejection(*fault, said, attempt)
        self.facts.append(Fact(f"{self._page.id}/{len(self.facts) + 1}", text, place, exact))
        return None

    def _place(self, said: str) -> tuple[int | Literal["unsupported", "part", "several"], bool]:
        """Where on the page it stands, and whether in the same words; or why it does not."""
        wanted = self._folded(said)
        if wanted in self._places:
            return self._places[wanted], True
        best, nearest = 0.0, 0
        matcher = SequenceMatcher(None, autojunk=False)
        matcher.set_seq2(wanted)
        for place, found in enumerate(self._words):
            matcher.set_seq1(found)
            if matcher.real_quick_ratio() >= _NEAR and matcher.quick_ratio() >= _NEAR and matcher.ratio() > best:
                best, nearest = matcher.ratio(), place
        if best >= _NEAR:
            return nearest, False
        line = f" {' '.join(wanted)} "
        if wanted and any(line in f" {' '.join(found)} " for found in self._words):
            return "part", False
        if wanted and line in f" {' '.join(word for found in self._words for word in found)} ":
            return "several", False
        return "unsupported", False

    def _fault(self, place: int, text: str) -> tuple[FactReason, str] | None:
        language = self._page.language
        if any(place == fact.place or self._alike(place, fact.place) for fact in self.facts):
            return "duplicate", "it was chosen before"
        if len(self._words[place]) < _FEWEST_WORDS or len(text) > _MOST_CODE_POINTS:
            return "length", f"it has fewer than {_FEWEST_WORDS} words, or more than {_MOST_CODE_POINTS} code points"
        if len(sentences(text, language)) > 1:
            return "several", _TOLD["several"]
        if self._named and not names_person(text, self._page.names, language):
            return "subject", f"it does not name {self._page.names[0]}"
        return seed_fault(text, Sample(self._page.id, text, language=language))

    def _alike(self, one: int, other: int) -> bool:
        matcher = SequenceMatcher(None, self._words[one], self._words[other], autojunk=False)
        return matcher.quick_ratio() >= _SAME and matcher.ratio() >= _SAME

    def _folded(self, text: str) -> tuple[str, ...]:
        folded = fold(text)
        return tuple(folded[start:end] for start, end in words(folded, self._page.language))


_TOLD: dict[Literal["unsupported", "part", "several"], str] = {
    "unsupported": "the page does not say it in these words",
    "part": "it is a part of a sentence of the page",
    "several": "it is more than one sentence",
}
