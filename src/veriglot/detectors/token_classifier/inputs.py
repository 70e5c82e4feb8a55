"""What a token classifier reads of one sample: pairs of prompt and response, each no longer than the model takes.

Mostly that is one pair. Evidence that is longer goes into windows, each with the whole prompt around it, and a response
that is longer into overlapping pieces; every piece is held against every window. Nothing is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.encoders.offsets import without_surrogates
from veriglot.entailment.windows import stretches
from veriglot.records import Pointer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.token_classifier.prompts import Prompt
    from veriglot.records.sample import Evidence

__all__ = ["Arranged", "Input", "Tokens", "TooLongError", "arranged"]

_FEWEST = 16  # tokens of a response, and of evidence, that have to fit beside the prompt
_ATTEMPTS = 20
Range = tuple[int, int]


class TooLongError(Exception):
    """Prompt and question leave no room."""


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
        found = self._tokenizer.encode(without_surrogates(text), add_special_tokens=False)
        offsets = np.array(found.offsets, np.int64).reshape(-1, 2)
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
        everything = tuple(Pointer(str(one.id), 0, len(one.text)) for one in passages)
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
        found = _paired(prompt, windows, [response[slice(*piece)] for piece in pieces], tokens)
        beyond = max(len(one.encoding.ids) for one in found) - room
        if beyond <= 0:
            places = (tuple(Pointer(str(p.passage.id), p.start, p.end) for p in window) for window in windows)
            return Arranged(tuple(found), tuple(places), tuple(pieces))
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
        Input(tokens.pair(text, piece), window, place)
        for window, text in enumerate(prompts)
        for place, piece in enumerate(pieces)
    ]
