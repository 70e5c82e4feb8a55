"""Inputs of token classifiers: prompts in the wordings of each checkpoint, cut to what the model takes.

Mostly that is one pair. Evidence that is longer goes into windows, each with the whole prompt around it, and a response
that is longer into overlapping pieces; every piece is held against every window. Nothing is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from string import Template
from tomllib import loads
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.errors import UnknownNameError
from veriglot.judging.base import TooLongError
from veriglot.judging.classifiers import stretches
from veriglot.records import Pointer, Task
from veriglot.text.unicode import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.records import Evidence, Sample

__all__ = [
    "FORMATS",
    "Arranged",
    "Input",
    "Tokens",
    "arranged",
    "checkpoint_language",
    "format_of",
    "prompt_for",
    "wordings_version",
]


_FEWEST = 16  # tokens of a response, and of evidence, that have to fit beside the prompt
_ATTEMPTS = 20
Range = tuple[int, int]


class Tokens:
    """A tokenizer of the library tokenizers, set to cut and to pad nothing.

    What looks like a special token in a text is text.
    """

    def __init__(self, tokenizer: Any) -> None:
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer

    def pair(self, prompt: str, response: str) -> Any:
        """The encoding of prompt and response, special tokens included."""
        return self._tokenizer.encode(without_surrogates(prompt), response)

    def bounds(self, text: str) -> NDArray[np.int64]:
        """Where the tokens of a text stand, shape (t, 2), without special tokens; neither column falls."""
        encoding = self._tokenizer.encode(without_surrogates(text), add_special_tokens=False)
        offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        return np.maximum.accumulate(offsets, axis=0)

    def count(self, text: str) -> int:
        """Tokens of a text, without special tokens."""
        return len(self._tokenizer.encode(without_surrogates(text), add_special_tokens=False).ids)


@dataclass(frozen=True)
class Input:
    """One pair: the piece `piece` of a response, held against the window `window` of the evidence."""

    encoding: Any
    window: int
    piece: int


@dataclass(frozen=True)
class Arranged:
    """All pairs of a sample.

    Attributes:
        inputs: every window with every piece.
        windows: of each window, the places in the evidence that it holds.
        pieces: half-open code point ranges of the response, in order.
    """

    inputs: tuple[Input, ...]
    windows: tuple[tuple[Pointer, ...], ...]
    pieces: tuple[Range, ...]


@dataclass(frozen=True)
class _Part:
    """A passage of the evidence, or a stretch of one."""

    passage: Evidence
    start: int
    end: int
    tokens: int

    @property
    def text(self) -> str:
        return self.passage.text[self.start : self.end]


def arranged(prompt: Prompt, evidence: Sequence[Evidence], response: str, tokens: Tokens, room: int) -> Arranged:
    """The pairs of a sample.

    Windows hold as many whole passages as fit, in order, as LettuceDetect groups them; a passage that is too long by
    itself is cut between sentences into stretches that overlap.

    Args:
        prompt: what stands around the evidence.
        evidence: passages; those without text are left out.
        response: a text with words.
        tokens: the model's tokenizer.
        room: tokens that the model takes at a time, special tokens included.

    Raises:
        TooLongError: the prompt with its question leaves no room for evidence and response.
    """
    passages = [passage for passage in evidence if passage.text.strip()]
    whole = tokens.pair(prompt.over([passage.text for passage in passages]), response)
    if len(whole.ids) <= room:
        everything = tuple(Pointer(str(passage.id), 0, len(passage.text)) for passage in passages)
        return Arranged((Input(whole, 0, 0),), (everything,), ((0, len(response)),))
    free = room - len(tokens.pair(prompt.over([""]), "").ids)
    if free < 2 * _FEWEST:
        raise TooLongError(
            f"the question and the words around it take {room - free:,} of the {room:,} tokens that the model takes"
        )
    pieces, longest = _pieces(response, tokens, free // 2)
    budget = free - longest
    for _ in range(_ATTEMPTS):
        windows = _windows(prompt, passages, tokens, budget)
        inputs = _paired(prompt, windows, [response[slice(*piece)] for piece in pieces], tokens)
        beyond = max(len(pair.encoding.ids) for pair in inputs) - room
        if beyond <= 0:
            places = (tuple(Pointer(str(p.passage.id), p.start, p.end) for p in window) for window in windows)
            return Arranged(tuple(inputs), tuple(places), tuple(pieces))
        budget -= beyond  # joined, texts may take more tokens than apart
        if budget < 1:
            break
    raise TooLongError(f"no piece of evidence and response fits into the {room:,} tokens that the model takes")


def _pieces(response: str, tokens: Tokens, room: int) -> tuple[list[Range], int]:
    """A response whole where it fits, else in overlapping stretches; and how many tokens the longest takes."""
    bounds = tokens.bounds(response)
    if len(bounds) <= room:
        return [(0, len(response))], len(bounds)
    pieces = stretches(response, bounds, room, overlap=True)
    return pieces, max(tokens.count(response[start:end]) for start, end in pieces)


def _windows(prompt: Prompt, passages: Sequence[Evidence], tokens: Tokens, budget: int) -> list[list[_Part]]:
    """Passages in groups of at most `budget` tokens."""
    windows: list[list[_Part]] = []
    filled = 0
    for number, passage in enumerate(passages, start=1):
        for part in _parts(prompt, number, passage, tokens, budget):
            taken = part.tokens + bool(filled)  # a line break between two
            if not windows or filled + taken > budget:
                windows.append([])
                filled, taken = 0, part.tokens
            windows[-1].append(part)
            filled += taken
    return windows


def _parts(prompt: Prompt, number: int, passage: Evidence, tokens: Tokens, budget: int) -> list[_Part]:
    """A passage whole where it fits, otherwise in stretches."""
    text = passage.text
    taken = tokens.count(prompt.line(number, text))
    if taken <= budget:
        return [_Part(passage, 0, len(text), taken)]
    around = tokens.count(prompt.line(number, ""))
    cuts = stretches(text, tokens.bounds(text), max(budget - around, 1), overlap=True)
    return [
        _Part(passage, start, end, tokens.count(prompt.line(number, text[start:end])))
        for start, end in cuts
        if text[start:end].strip()
    ]


def _paired(prompt: Prompt, windows: Sequence[list[_Part]], pieces: Sequence[str], tokens: Tokens) -> list[Input]:
    prompts = [prompt.over([part.text for part in window]) for window in windows]
    return [
        Input(tokens.pair(text, piece), window, number)
        for window, text in enumerate(prompts)
        for number, piece in enumerate(pieces)
    ]


FORMATS = ("lettucedetect", "plain", "request")
_ANY = "und"
_FALLBACK = "en"
_LETTUCE = re.compile(r"(?:lettuced(?:et)?ect|tinylettuce)-", re.IGNORECASE)
_CACHED = re.compile(r"models--[^\\/]+?--(?P<name>[^\\/]+)[\\/]+snapshots[\\/]")
_LETTUCE_LANGUAGE = re.compile(r"-(en|de|fr|es|it|pl|cn|hu)(?:-v\d+)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Wording:
    """A format in one language.

    Attributes:
        passage: how a passage is written: `$text`, and `$number` counted from 1.
        question: the whole, with a question: `$question`, `$evidence` and `$count`, the number of passages.
        no_question: the whole without one.
        language: the language that it is written in; None where it has no words of its own.
    """

    passage: str
    question: str
    no_question: str
    language: str | None = None

    @cached_property
    def _templates(self) -> tuple[Template, Template, Template]:
        return Template(self.passage), Template(self.question), Template(self.no_question)

    def line(self, number: int, text: str) -> str:
        """One passage, `number` counted from 1."""
        return self._templates[0].substitute(number=number, text=text)

    def prompt(self, question: str | None, passages: Sequence[str]) -> str:
        """What stands in front of a response."""
        evidence = "\n".join(self.line(number, text) for number, text in enumerate(passages, start=1))
        _, asked, bare = self._templates
        if question is None:
            return bare.substitute(evidence=evidence)
        return asked.substitute(question=question, count=len(passages), evidence=evidence)


@dataclass(frozen=True)
class Prompt:
    """The wording for one sample, with its question."""

    wording: Wording
    question: str | None

    def line(self, number: int, text: str) -> str:
        """One passage, `number` counted from 1."""
        return self.wording.line(number, text)

    def over(self, passages: Sequence[str]) -> str:
        """What stands in front of the response where it is held against these passages."""
        return self.wording.prompt(self.question, passages)


@cache
def _all() -> tuple[str, dict[str, dict[str, Wording]]]:
    data = loads(files(__package__).joinpath("prompts.toml").read_text("utf-8"))
    formats = {
        name: {tag: Wording(**words, language=None if tag == _ANY else tag) for tag, words in by_language.items()}
        for name, by_language in data["formats"].items()
    }
    return data["version"], formats


def wordings_version() -> str:
    """Version of the file of wordings; it goes up with every change."""
    return _all()[0]


def wording(name: str, language: str) -> Wording:
    """A format in the language of a response, or else in English.

    Args:
        name: one of `FORMATS`.
        language: BCP 47 tag.

    Raises:
        UnknownNameError: no such format.
    """
    formats = _all()[1]
    if name not in formats:
        raise UnknownNameError("prompt", name, formats)
    wordings = formats[name]
    return wordings.get(_ANY) or wordings.get(language.split("-")[0].lower()) or wordings[_FALLBACK]


def prompt_for(name: str, sample: Sample, language: str) -> Prompt:
    """The prompt of a sample. A summary has no question, whatever words it was asked for in.

    Args:
        name: one of `FORMATS`.
        sample: with evidence.
        language: BCP 47 tag that the format is wanted in.
    """
    asked = sample.question if sample.question and sample.question.strip() else None
    return Prompt(wording(name, language), None if sample.task is Task.SUMMARIZATION else asked)


def format_of(model: str) -> str:
    """The format of a checkpoint by its name: `lettucedetect` for those of that project, else `plain`."""
    return "lettucedetect" if _LETTUCE.search(_basename(model)) else "plain"


def checkpoint_language(model: str) -> str | None:
    """The language that a checkpoint of LettuceDetect was trained for, where its name says one; else None."""
    name = _basename(model)
    match = _LETTUCE_LANGUAGE.search(name) if _LETTUCE.search(name) else None
    if match is None:
        return None
    tag = match[1].lower()
    return "zh" if tag == "cn" else tag


def _basename(model: str) -> str:
    """The last part of a model's name; of a folder in the hub's cache, that of the model."""
    cached = _CACHED.search(model)
    return cached["name"] if cached else re.split(r"[\\/]", model.rstrip("\\/"))[-1]
