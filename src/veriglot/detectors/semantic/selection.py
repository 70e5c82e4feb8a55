"""Which words of the evidence are compared by meaning, word with word: all of them where they are few.

All evidence is read: every word of it by its form, and every sentence by its vector. Only the comparison of each word
with each word is bounded, to the sentences that come closest to a sentence of the response or to the question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST", "STRIDE", "Close", "laid_out", "selected"]

MOST = 516  # evidence words
STRIDE = 12  # words; a window is two strides long, as in `grounding.context`
_QUESTION = 0.7  # what closeness to the question counts for beside closeness to the response
_FORM = 0.5  # what shared words count for beside closeness


@dataclass(frozen=True)
class Close:
    """How close the sentences of the evidence, s of them, are to the response and the question.

    Attributes:
        response: similarity to each sentence of the response, shape (r, s).
        question: similarity to the question, shape (s,), or None.
        shared: the share of the response's words that each sentence of the evidence holds by form, shape (s,).
    """

    response: NDArray[np.float32]
    question: NDArray[np.float32] | None
    shared: NDArray[np.float32]

    def to_all(self) -> NDArray[np.float32]:
        """How much each sentence of the evidence has to do with the response, shape (s,)."""
        return self.to(0, len(self.response))

    def to(self, low: int, high: int) -> NDArray[np.float32]:
        """The same for the sentences `low` to `high` of the response."""
        close = self.response[low:high].max(axis=0)
        if self.question is not None:
            close = np.maximum(close, _QUESTION * self.question)
        found: NDArray[np.float32] = close + np.float32(_FORM) * self.shared
        return found


def selected(close: NDArray[np.float32], sentence: NDArray[np.int64]) -> NDArray[np.int64]:
    """The evidence words to compare, in order: all, or those of the closest sentences up to `MOST`."""
    if len(sentence) <= MOST:
        return np.arange(len(sentence))
    order = np.argsort(-close, kind="stable")
    reached = np.cumsum(np.bincount(sentence, minlength=len(close))[order])
    kept = np.zeros(len(close), bool)
    kept[order[: max(1, int((reached <= MOST).sum()))]] = True
    return np.flatnonzero(kept[sentence])[:MOST]


def laid_out(words: NDArray[np.int64], passage: NDArray[np.int64]) -> NDArray[np.int64]:
    """The words in slots, -1 for empty ones, so that windows of two strides never cross a gap or a passage.

    Args:
        words: evidence words, in order, shape (k,).
        passage: the passage of every evidence word, shape (m,).

    Returns:
        Each run of neighbouring words, filled up to whole strides and one empty stride more; shape (l,).
    """
    breaks = (np.diff(words) != 1) | (np.diff(passage[words]) != 0)
    runs = np.split(words, np.flatnonzero(breaks) + 1)
    parts = []
    for run in runs:
        empty = -len(run) % STRIDE + STRIDE
        parts += [run, np.full(empty, -1, np.int64)]
    return np.concatenate(parts)
