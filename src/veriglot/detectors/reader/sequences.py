"""What the reader is shown of a sample: a part of the response at a time, with the question and the evidence.

Every word of the response is shown. Where the evidence is longer than the room that is left, its windows are shown
that have most in common with the part of the response and with the question, by how few windows hold a token.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.arrays import Float64s, Int64s
    from veriglot.encoders.e5 import Pair, Tokeniser

__all__ = ["Shown", "shown"]

ROOM = 512  # tokens of a sequence
_QUESTION = 48  # tokens of the question: a longer one is shown without its beginning, for what is asked comes last
_RESPONSE = 128  # of a part of the response
_WINDOW = 24  # tokens of a window of the evidence
_ASKED = 0.5  # what a token of the question counts, beside one of the response
_BESIDE = 0.3  # what the better neighbour of a window counts for it


class Shown(NamedTuple):
    """One sequence: its tokens, and where those of the response stand in it, half-open code points, shape (t, 2)."""

    pair: Pair
    bounds: Int64s


def shown(
    tokeniser: Tokeniser,
    response: str,
    language: str | None,
    question: str | None,
    passages: Sequence[str],
    room: int = ROOM,
) -> list[Shown]:
    """The sequences of a sample, in the order of the response; none where it has no token.

    Args:
        tokeniser: the reader's.
        response: the response.
        language: BCP 47 tag of the response; it ends sentences.
        question: the question, or None.
        passages: the evidence.
        room: tokens of a sequence at most.
    """
    asked = tokeniser.tokens(question)[0][-_QUESTION:] if question else []
    evidence = _Evidence(tokeniser, passages)
    sequences = []
    for ids, bounds in _parts(tokeniser, response, language):
        left = room - len(tokeniser.pair(asked, ids, ()).ids)
        chosen = evidence.chosen(ids, asked, left)
        sequences.append(Shown(tokeniser.pair(asked, ids, evidence.ids[chosen].tolist()), bounds))
    return sequences


def _parts(tokeniser: Tokeniser, response: str, language: str | None) -> Iterator[tuple[list[int], Int64s]]:
    """Tokens of as many sentences as there is room for, and where they stand; a long sentence is in several parts."""
    ids, bounds = tokeniser.tokens(response)
    starts = np.array([start for start, _ in sentences(response, language)], np.int64)
    number = np.searchsorted(starts, bounds[:, 0], side="right")
    low = 0
    while low < len(ids):
        high = min(low + _RESPONSE, len(ids))
        if high < len(ids):
            ends = np.flatnonzero(number[low + 1 : high + 1] != number[low:high])
            high = low + int(ends[-1]) + 1 if len(ends) else high
        yield ids[low:high], bounds[low:high]
        low = high


class _Evidence:
    """Tokens of all passages, and their windows."""

    def __init__(self, tokeniser: Tokeniser, passages: Sequence[str]) -> None:
        ids, windows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        self._count = 0
        for text in passages:
            tokens, _ = tokeniser.tokens(text)
            ids.append(np.array(tokens, np.int64))
            windows.append(self._count + np.arange(len(tokens)) // _WINDOW)
            self._count += -(-len(tokens) // _WINDOW)
        self.ids, self._window = np.concatenate(ids), np.concatenate(windows)

    def chosen(self, response: Sequence[int], question: Sequence[int], room: int) -> Int64s:
        """The places of the tokens that are shown, in order."""
        if len(self.ids) <= room:
            return np.arange(len(self.ids))
        scores = self._scores(response, question)
        sizes = np.bincount(self._window)
        order = np.argsort(-scores, kind="stable")
        taken = order[np.cumsum(sizes[order]) <= room]
        if not len(taken):
            return np.arange(room)
        return np.flatnonzero(np.isin(self._window, taken))

    @cached_property
    def _tokens(self) -> tuple[Int64s, Int64s, Int64s]:
        """The distinct tokens, and each once a window: which of them it is, and the window."""
        tokens, inverse = np.unique(self.ids, return_inverse=True)
        token, window = np.divmod(np.unique(inverse * self._count + self._window), self._count)
        return tokens, token, window

    def _scores(self, response: Sequence[int], question: Sequence[int]) -> Float64s:
        tokens, token, window = self._tokens
        rarity = np.log((self._count + 1) / np.bincount(token))
        worth = rarity * (np.isin(tokens, response) + _ASKED * np.isin(tokens, question))
        scores = np.bincount(window, worth[token], self._count)
        beside = np.maximum(np.append(scores[1:], 0.0), np.insert(scores[:-1], 0, 0.0))
        return np.asarray(scores + _BESIDE * beside)
