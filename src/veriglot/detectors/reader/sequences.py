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
_SENTENCE = 96  # tokens of a sentence of the evidence: of a longer one each part is taken for one
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
    *,
    close: int = 0,
) -> list[Shown]:
    """The sequences of a sample, in the order of the response; none where it has no token.

    Args:
        tokeniser: the reader's.
        response: the response.
        language: BCP 47 tag of the response; it ends sentences.
        question: the question, or None.
        passages: the evidence.
        room: tokens of a sequence at most.
        close: tokens of the sentences of the evidence that cover it best, beside which each sentence of the response is
            shown by itself; 0 shows as much of both as there is room for.
    """
    asked = tokeniser.tokens(question)[0][-_QUESTION:] if question else []
    evidence = _Evidence(tokeniser, passages, language, by_sentence=close > 0)
    sequences = []
    for ids, bounds in _parts(tokeniser, response, language, single=close > 0):
        left = room - len(tokeniser.pair(asked, ids, ()).ids)
        chosen = evidence.covering(ids, asked, min(left, close)) if close else evidence.chosen(ids, asked, left)
        sequences.append(Shown(tokeniser.pair(asked, ids, evidence.ids[chosen].tolist()), bounds))
    return sequences


def _parts(
    tokeniser: Tokeniser, response: str, language: str | None, *, single: bool
) -> Iterator[tuple[list[int], Int64s]]:
    """Tokens of one sentence, or as many as there is room for, and where they stand; long ones are in several parts."""
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
    """Tokens of all passages, and their windows, which are of equal length or sentences."""

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

    def covering(self, response: Sequence[int], question: Sequence[int], room: int) -> Int64s:
        """The places of the tokens of the windows that together have most of the response and the question.

        First those of which each has something that the ones before it lack, then the others by what they have.
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
