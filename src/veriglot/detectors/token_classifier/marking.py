"""From probabilities of tokens to words, and from words to spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.errors import UnknownNameError
from veriglot.records import Span, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.token_classifier.inputs import Arranged
    from veriglot.detectors.token_classifier.labels import Labels
    from veriglot.detectors.token_classifier.network import TokenProbabilities
    from veriglot.records import Pointer

__all__ = ["DIGITS", "POOLINGS", "Marked", "check_pooling", "marked_words", "span_list", "word_list"]

DIGITS = 6  # of a confidence: batches of other sizes change the seventh
POOLINGS = ("max", "mean", "first")


def check_pooling(pooling: str) -> None:
    """Raise where there is no such way to make a word of its tokens.

    Raises:
        UnknownNameError: see there.
    """
    if pooling not in POOLINGS:
        raise UnknownNameError("pooling", pooling, POOLINGS)


@dataclass(frozen=True)
class Marked:
    """The words of a response with what the network says of them.

    Attributes:
        bounds: half-open code point ranges of the words that the network saw, shape (n, 2).
        confidences: probability that a word is unsupported, by the window that speaks most for it, shape (n,).
        types: probability of each type, by the same window, shape (n, t).
        begins: whether a span is likelier to begin with the word than to go on with it, shape (n,).
        windows: that window, shape (n,).
        unseen: how many words the tokenizer makes no token of.
    """

    bounds: NDArray[np.int32]
    confidences: NDArray[np.float64]
    types: NDArray[np.float64]
    begins: NDArray[np.bool_]
    windows: NDArray[np.int64]
    unseen: int


def marked_words(
    bounds: NDArray[np.int32],
    made: Arranged,
    said: Sequence[TokenProbabilities],
    labels: Labels,
    pooling: str,
) -> Marked:
    """Pool tokens to words in each window; then each word takes the window in which it is supported best.

    Support by any passage is support: the lowest probability counts. A word in several pieces of the response is taken
    from the one in which it stands furthest from an edge; one that is cut by all of them, from all.

    Args:
        bounds: words of the response, half-open code point ranges, shape (n, 2).
        made: the inputs.
        said: what the network says of each of them.
        labels: what its outputs mean.
        pooling: one of `POOLINGS`: a word is as unsupported as its worst token, as the mean, or as its first.
    """
    mine = _assigned(bounds, made.pieces)
    shape = (len(made.windows), len(bounds))
    unsupported = np.full(shape, -1.0)
    types = np.zeros((*shape, len(labels.types)))
    begins = np.zeros(shape, bool)
    for one, tokens in zip(made.inputs, said, strict=True):
        chosen = _columns(tokens.outputs, labels)
        start = made.pieces[one.piece][0]
        for word in np.flatnonzero(mine[one.piece]).tolist():
            low, high = _tokens_of(tokens.bounds, int(bounds[word, 0]) - start, int(bounds[word, 1]) - start)
            if low == high:
                continue
            value, of_types, begun = _pooled(chosen, low, high, pooling)
            if value > unsupported[one.window, word]:
                unsupported[one.window, word], types[one.window, word] = value, of_types
                begins[one.window, word] = begun
    seen = (unsupported >= 0).all(axis=0)
    unsupported, types, begins = unsupported[:, seen], types[:, seen], begins[:, seen]
    best = unsupported.argmin(axis=0)
    every = np.arange(len(best))
    return Marked(
        bounds=bounds[seen],
        confidences=unsupported[best, every].clip(0.0, 1.0).round(DIGITS),
        types=types[best, every],
        begins=begins[best, every],
        windows=best,
        unseen=int((~seen).sum()),
    )


@dataclass(frozen=True)
class _Columns:
    unsupported: NDArray[np.float64]  # (t,)
    types: NDArray[np.float64]  # (t, types)
    begins: NDArray[np.bool_]  # (t,)


def _columns(outputs: NDArray[np.float64], labels: Labels) -> _Columns:
    types = np.stack([outputs[:, list(columns)].sum(axis=1) for columns in labels.outputs], axis=1)
    begun = outputs[:, list(labels.begins)].sum(axis=1)
    unsupported = types.sum(axis=1)
    return _Columns(unsupported, types, begun > unsupported / 2)


def _pooled(columns: _Columns, low: int, high: int, pooling: str) -> tuple[float, NDArray[np.float64], bool]:
    """Tokens `low` to `high` as one word."""
    if pooling == "first":
        high = low + 1
    part = columns.unsupported[low:high]
    if pooling == "mean":
        return float(part.mean()), columns.types[low:high].mean(axis=0), bool(columns.begins[low])
    worst = low + int(part.argmax())
    return float(columns.unsupported[worst]), columns.types[worst], bool(columns.begins[low])


def _tokens_of(bounds: NDArray[np.int64], start: int, end: int) -> tuple[int, int]:
    """The tokens that overlap `[start, end)`, as a half-open range; empty where none does."""
    low = int(np.searchsorted(bounds[:, 1], start, side="right"))
    high = int(np.searchsorted(bounds[:, 0], end, side="left"))
    return low, max(high, low)


def _assigned(bounds: NDArray[np.int32], pieces: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """Which words are taken from which piece, shape (pieces, n)."""
    places = np.array(pieces, np.int64)
    starts, ends = bounds[:, 0].astype(np.int64), bounds[:, 1].astype(np.int64)
    far = np.int64(ends.max(initial=0) + places.max() + 1)
    before = np.where(places[:, :1] > 0, starts - places[:, :1], far)
    after = np.where(places[:, 1:] < places[-1, 1], places[:, 1:] - ends, far)
    margin = np.minimum(before, after)  # below 0 where the piece cuts the word
    best = margin.argmax(axis=0)
    taken = np.zeros(margin.shape, bool)
    taken[best, np.arange(len(bounds))] = True
    overlaps = (starts < places[:, 1:]) & (ends > places[:, :1])
    return np.where((margin >= 0).any(axis=0), taken, overlaps)


def span_list(
    response: str,
    marked: Marked,
    sentences: Sequence[tuple[int, int]],
    labels: Labels,
    windows: Sequence[tuple[Pointer, ...]],
    threshold: float,
) -> tuple[Span, ...]:
    """The unsupported spans, in order.

    Neighbouring marked words of one sentence and of one type make one span, except where the network begins another.
    Its confidence is the mean of theirs. Where the evidence was held in several windows, a span points at the one that
    spoke most for its first word.
    """
    flagged = marked.confidences >= threshold
    kinds = marked.types.argmax(axis=1) if len(marked.types) else np.zeros(0, int)
    sentence = np.searchsorted(np.array([start for start, _ in sentences], np.int64), marked.bounds[:, 0], side="right")
    spans = []
    low = 0
    for high in range(1, len(flagged) + 1):
        goes_on = high < len(flagged) and bool(
            flagged[high] == flagged[low]
            and kinds[high] == kinds[low]
            and sentence[high] == sentence[low]
            and not marked.begins[high]
        )
        if goes_on:
            continue
        if flagged[low]:
            start, end = int(marked.bounds[low, 0]), int(marked.bounds[high - 1, 1])
            span = Span(
                start=start,
                end=end,
                type=labels.types[int(kinds[low])],
                confidence=round(float(marked.confidences[low:high].mean()), DIGITS),
                text=response[start:end],
                evidence=_pointers(windows, int(marked.windows[low])),
            )
            spans.append(span)
        low = high
    return tuple(spans)


def word_list(marked: Marked, windows: Sequence[tuple[Pointer, ...]], threshold: float) -> tuple[Word, ...]:
    """Every word; where there are several windows of evidence, a supported word points at the one that supports it."""
    return tuple(
        Word(start, end, confidence, _pointers(windows, window) if confidence < threshold else ())
        for (start, end), confidence, window in zip(
            marked.bounds.tolist(), marked.confidences.tolist(), marked.windows.tolist(), strict=True
        )
    )


def _pointers(windows: Sequence[tuple[Pointer, ...]], window: int) -> tuple[Pointer, ...]:
    """The places of a window; none where it holds all of the evidence, which would say nothing."""
    return windows[window] if len(windows) > 1 else ()
