"""The reader's input: a part of the response at a time, with the question and the evidence.

Together the inputs cover every word of the response. If the evidence does not fit, the input takes the windows that
share most tokens with the part of the response and with the question; rare tokens count more (IDF).
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

__all__ = ["InputSequence", "input_sequences"]

ROOM = 512  # most tokens of an input
_SHARED_ROOM = 320  # of each input of a response with several: as accurate as 512 there, in three fifths of the time
_QUESTION = 48  # most tokens of the question; a longer one loses its beginning, for what is asked comes last
_RESPONSE = 128  # most tokens of a part of the response
_WINDOW = 24  # tokens of a window of the evidence
_ASKED = 0.5  # weight of a token of the question; one of the response has 1
_SENTENCE = 96  # most tokens of a sentence of the evidence; a longer one is split
_BESIDE = 0.3  # weight of the better neighbour in the score of a window


class InputSequence(NamedTuple):
    """One input: its tokens, and the code points of those of the response, half-open, shape (t, 2)."""

    pair: Pair
    bounds: Int64s


def input_sequences(
    tokeniser: Tokeniser,
    response: str,
    language: str | None,
    question: str | None,
    passages: Sequence[str],
    room: int = ROOM,
    *,
    evidence_room: int = 0,
) -> list[InputSequence]:
    """The inputs of a sample, in the order of the response; an empty list if it has no token.

    Args:
        tokeniser: the reader's.
        response: the response.
        language: BCP 47 tag of the response, to split sentences.
        question: the question, or None.
        passages: the evidence.
        room: most tokens of an input; with several inputs, each has at most `_SHARED_ROOM`.
        evidence_room: with 0, an input takes as much of response and evidence as fits; else one sentence of the
            response, and so many tokens of the evidence's sentences that cover it best.
    """
    asked = tokeniser.tokens(question)[0][-_QUESTION:] if question else []
    evidence = _Evidence(tokeniser, passages, language, by_sentence=evidence_room > 0)
    parts = list(_parts(tokeniser, response, language, single=evidence_room > 0))
    if len(parts) > 1:
        room = min(room, _SHARED_ROOM)
    sequences = []
    for ids, bounds in parts:
        left = room - len(tokeniser.pair(asked, ids, ()).ids)
        chosen = (
            evidence.covering(ids, asked, min(left, evidence_room))
            if evidence_room
            else evidence.chosen(ids, asked, left)
        )
        sequences.append(InputSequence(tokeniser.pair(asked, ids, evidence.ids[chosen].tolist()), bounds))
    return sequences


def _parts(
    tokeniser: Tokeniser, response: str, language: str | None, *, single: bool
) -> Iterator[tuple[list[int], Int64s]]:
    """Tokens and bounds of each part of the response: one sentence if `single`, else as many as fit."""
    ids, bounds = tokeniser.tokens(response)
    starts = np.array([start for start, _ in sentences(response, language)], np.int64)
    number = np.searchsorted(starts, bounds[:, 0], side="right")
    low = 0
    while low < len(ids):
        high = min(low + _RESPONSE, len(ids))
        if single:
            high = min(high, int(np.searchsorted(number, number[low], side="right")))
        elif high < len(ids):
            ends = np.flatnonzero(number[low + 1 : high + 1] != number[low:high])
            high = low + int(ends[-1]) + 1 if len(ends) else high
        yield ids[low:high], bounds[low:high]
        low = high


class _Evidence:
    """The tokens of all passages and their windows, which have equal length or are sentences."""

    def __init__(
        self, tokeniser: Tokeniser, passages: Sequence[str], language: str | None, *, by_sentence: bool
    ) -> None:
        ids, windows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        self._count = 0
        for text in passages:
            tokens, bounds = tokeniser.tokens(text)
            if not tokens:
                continue
            ids.append(np.array(tokens, np.int64))
            number = np.arange(len(tokens))
            window = number // _WINDOW
            if by_sentence:
                starts = [start for start, _ in sentences(text, language)]
                sentence = np.searchsorted(starts, bounds[:, 0], side="right")
                first = np.searchsorted(sentence, sentence)
                _, window = np.unique(first + (number - first) // _SENTENCE * _SENTENCE, return_inverse=True)
            windows.append(self._count + window)
            self._count += int(window[-1]) + 1
        self.ids, self._window = np.concatenate(ids), np.concatenate(windows)

    def chosen(self, response: Sequence[int], question: Sequence[int], room: int) -> Int64s:
        """Indices of the tokens of the best windows, in order."""
        if len(self.ids) <= room:
            return np.arange(len(self.ids))
        scores = self._scores(response, question)
        sizes = np.bincount(self._window)
        order = np.argsort(-scores, kind="stable")
        taken = order[np.cumsum(sizes[order]) <= room]
        if not len(taken):
            return np.arange(room)
        return np.flatnonzero(np.isin(self._window, taken))

    def covering(self, response: Sequence[int], question: Sequence[int], room: int) -> Int64s:
        """Indices of the tokens of the windows that together cover most of response and question, in order.

        Greedy set cover first: each window adds tokens that the ones before it lack. Then the others, best first.
        """
        if len(self.ids) <= room:
            return np.arange(len(self.ids))
        tokens, token, window = self._tokens
        rarity = np.log((self._count + 1) / np.bincount(token))
        worth = rarity * np.maximum(np.isin(tokens, response), _ASKED * np.isin(tokens, question))
        sizes, taken = np.bincount(self._window), list[int]()
        while len(taken) < self._count:
            scores = np.bincount(window, worth[token], self._count)
            best = int(np.argmax(scores))
            if scores[best] <= 0.0 or sizes[taken].sum() + sizes[best] > room:
                break
            taken.append(best)
            worth[token[window == best]] = 0.0
        for further in np.argsort(-self._scores(response, question), kind="stable"):
            if further not in taken and sizes[taken].sum() + sizes[further] <= room:
                taken.append(int(further))
        return np.flatnonzero(np.isin(self._window, taken)) if taken else self.chosen(response, question, room)

    @cached_property
    def _tokens(self) -> tuple[Int64s, Int64s, Int64s]:
        """The distinct tokens; then, for each token of each window once, its index among them and its window."""
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
