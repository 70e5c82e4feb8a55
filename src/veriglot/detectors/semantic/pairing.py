"""What the reader is shown of a sample: a part of the response at a time, with the evidence that comes closest to it.

Every word of the response is shown. Of the evidence those sentences are, as many as there is room for, that come
closest to the part of the response or to the question; the head has read the rest (`reading`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.semantic.selection import Close
    from veriglot.encoders.e5_reader import Pair, Tokeniser

__all__ = ["LONGEST", "Shown", "of_words", "shown"]

_QUESTION = 60  # tokens of the question: a longer one is shown without its beginning, for what is asked comes last
_RESPONSE = 128  # of a part of the response
_EVIDENCE = 144  # of evidence; the closest sentence is there even where it alone is longer, up to `_SENTENCE`
_SENTENCE = 256  # of a sentence of the evidence
LONGEST = _QUESTION + _RESPONSE + _SENTENCE + 8  # of a sequence, with what stands between and before
_TRIED = 24  # sentences of the evidence, the closest first, that are looked at to fill the room
_NONE = np.zeros((0, 2), np.int64)


@dataclass(frozen=True)
class Shown:
    """One sequence to read.

    Attributes:
        pair: its tokens.
        bounds: of the response's tokens in the response, half-open in code points, shape (t, 2).
        evidence: the piece of each of the evidence's tokens, and its bounds in that piece, shape (e, 3).
    """

    pair: Pair
    bounds: NDArray[np.int64]
    evidence: NDArray[np.int64]


def shown(
    tokeniser: Tokeniser,
    response: str,
    pieces: NDArray[np.int64],
    question: str | None,
    evidence: Sequence[str],
    close: Close,
) -> list[Shown]:
    """The sequences of a sample; one without a response where that has no token.

    Args:
        tokeniser: the reader's.
        response: the response.
        pieces: its pieces (`vectors.pieces`), half-open in code points, shape (r, 2).
        question: the question, or None.
        evidence: the text of each piece of the evidence, s of them.
        close: how close these are.
    """
    asked = tokeniser.tokens(question)[0][-_QUESTION:] if question else []
    found = []
    for low, high, ids, bounds in _parts(tokeniser, response, pieces):
        order = np.argsort(-close.to(low, high), kind="stable")
        texts, places = _evidence(tokeniser, evidence, order)
        found.append(Shown(tokeniser.pair(asked, ids, texts), bounds, places))
    return found


def _parts(
    tokeniser: Tokeniser, response: str, pieces: NDArray[np.int64]
) -> Iterator[tuple[int, int, list[int], NDArray[np.int64]]]:
    """Pieces `low` to `high` of the response, as many as there is room for, with their tokens and where these stand."""
    low, high = 0, 0
    held: list[int] = []
    bounds: list[NDArray[np.int64]] = []
    for nth, (start, end) in enumerate(pieces.tolist()):
        ids, places = tokeniser.tokens(response[start:end])
        for first in range(0, len(ids), _RESPONSE):  # a piece longer than a part is in several
            some = ids[first : first + _RESPONSE]
            if len(held) + len(some) > _RESPONSE:
                yield low, high, held, np.concatenate(bounds)
                held, bounds = [], []
            if not held:
                low = nth
            held, high = held + some, nth + 1
            bounds.append(start + places[first : first + _RESPONSE])
    if held or not high:
        yield low, max(high, 1), held, np.concatenate([_NONE, *bounds])


def _evidence(
    tokeniser: Tokeniser, evidence: Sequence[str], order: NDArray[np.int64]
) -> tuple[list[int], NDArray[np.int64]]:
    """Tokens of the first pieces in `order` for which there is room, as they stand in the evidence."""
    chosen: dict[int, tuple[list[int], NDArray[np.int64]]] = {}
    left, tried = _EVIDENCE, 0
    for place in order.tolist():
        ids, bounds = tokeniser.tokens(evidence[place])
        if ids and (len(ids) <= left or not chosen):
            chosen[place] = ids[:_SENTENCE], bounds[:_SENTENCE]
            left -= len(ids)
        tried += bool(ids)
        if left <= 0 or tried == _TRIED:
            break
    rows = [np.insert(bounds, 0, place, axis=1) for place, (_, bounds) in sorted(chosen.items())]
    tokens = [token for _, (ids, _) in sorted(chosen.items()) for token in ids]
    return tokens, np.concatenate(rows) if rows else np.zeros((0, 3), np.int64)


def of_words(
    judged: Sequence[tuple[Shown, NDArray[np.float32]]], words: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """The mean logit of the tokens of each word, shape (n,), and whether it has any.

    Args:
        judged: every sequence with a logit for each token of its response.
        words: half-open in code points, in order, shape (n, 2).
    """
    bounds = np.concatenate([_NONE, *(one.bounds for one, _ in judged)])
    logits = np.concatenate([found for _, found in judged] or [np.zeros(0, np.float32)])
    first = np.searchsorted(bounds[:, 1], words[:, 0], side="right")
    after = np.maximum(np.searchsorted(bounds[:, 0], words[:, 1], side="left"), first)
    sums = np.concatenate([[0.0], np.cumsum(logits, dtype=np.float64)])
    count = after - first
    mean: NDArray[np.float32] = ((sums[after] - sums[first]) / np.maximum(count, 1)).astype(np.float32)
    return mean, count > 0
