"""Long texts in overlapping windows, many texts in batches of like length, for encoders that are transformers.

Nothing is cut off: a text of more tokens than the model takes is seen in windows that overlap by a quarter, each with
the special tokens around it. A token's vector is that of the window in which it stands further from the edge.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.encoders.base import Piece, PieceEncoder, strength_among
from veriglot.errors import UsageError
from veriglot.hub.checkpoints import batches
from veriglot.records.languages import get_language
from veriglot.text.unicode import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.encoders.base import Strength

__all__ = ["WindowEncoder", "fast_tokenizer", "without_space"]


def without_space(text: str, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """`bounds`, shape (t, 2), changed in place: without the white space that tokens begin with."""
    for token, (start, end) in enumerate(bounds.tolist()):
        while start < end and text[start].isspace():
            start += 1
        bounds[token, 0] = start
    return bounds


_FEWEST = 8  # tokens of text in a window


@dataclass(frozen=True)
class _Tokenised:
    """A text's token ids: what begins every window (special tokens, the prompt), the text's own, what ends a window."""

    before: list[int]
    ids: list[int]
    after: list[int]
    bounds: NDArray[np.int64]  # of the text's own, shape (t, 2)


@dataclass(frozen=True)
class _Window:
    row: int  # of the text in the batch
    ids: list[int]
    taken: slice  # of the window's vectors: those that its text takes from it


class WindowEncoder(PieceEncoder):
    """A transformer as an encoder.

    Args:
        tokenizer: of the library tokenizers, which knows where tokens stand.
        room: tokens that the model takes at a time, special tokens included.
        prompt: stands before every text and window, as some models ask for (`query: `); its tokens are not given.
        languages: BCP 47 tags in which whoever loads it measured its quality.
        cache_mb: MiB of vectors to keep.

    Raises:
        UsageError: the model has no room for text, or `cache_mb` is negative.
        UnknownNameError: a language that Veriglot does not know.
    """

    def __init__(self, tokenizer: Any, *, room: int, prompt: str, languages: Sequence[str], cache_mb: float) -> None:
        super().__init__(cache_mb)
        self._tokenizer = tokenizer
        self._prompt = prompt
        self._room = room
        self._measured = frozenset(get_language(tag).tag for tag in languages)
        empty = self._tokenised("")
        if room < len(empty.before) + len(empty.after) + _FEWEST:
            raise UsageError(
                f"The encoder takes {room} tokens at a time, special tokens and prompt included: too few for a text.",
                remedy=f"Give max_length {len(empty.before) + len(empty.after) + _FEWEST} or more.",
            )
        pooled, hidden = self._run(*_padded([[*empty.before, *empty.after] or [0]]))
        self._dimensions = pooled.shape[1], hidden.shape[2]

    @abstractmethod
    def _run(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Pooled vectors (b, d) and token vectors (b, t, e) of token ids (b, t); `mask` is 1 where there is one."""

    @property
    def dimension(self) -> int:
        """Length of a sentence vector."""
        return int(self._dimensions[0])

    @property
    def token_dimension(self) -> int:
        """Length of a token vector."""
        return int(self._dimensions[1])

    @property
    def languages(self) -> frozenset[str]:
        """Base tags of the languages that were given as measured."""
        return frozenset(get_language(tag).base for tag in self._measured)

    def strength(self, tag: str | None) -> Strength:
        """See `Encoder`."""
        return strength_among(self._measured, tag)

    def _encode(self, texts: Sequence[str]) -> list[Piece]:
        tokenised = [self._tokenised(text) for text in texts]
        jobs = [job for row, text in enumerate(tokenised) for job in self._windows(row, text)]
        pooled: dict[int, NDArray[np.float32]] = {}
        hidden: dict[int, NDArray[np.float32]] = {}
        for batch in batches([len(job.ids) for job in jobs]):
            vectors, tokens = self._run(*_padded([jobs[index].ids for index in batch]))
            for nth, index in enumerate(batch):
                pooled[index] = vectors[nth].copy()
                hidden[index] = tokens[nth, jobs[index].taken].copy()
        parts: list[list[int]] = [[] for _ in texts]
        for index, job in enumerate(jobs):
            parts[job.row].append(index)
        return [
            self._piece(text, [pooled[index] for index in places], [hidden[index] for index in places])
            for text, places in zip(tokenised, parts, strict=True)
        ]

    def _piece(self, text: _Tokenised, pooled: list[NDArray[np.float32]], hidden: list[NDArray[np.float32]]) -> Piece:
        if not hidden:
            empty = np.zeros((0, self.token_dimension), np.float32)
            return Piece(np.zeros(self.dimension, np.float32), text.bounds, empty)
        mean = np.average(pooled, axis=0, weights=[len(vectors) for vectors in hidden])
        length = float(np.linalg.norm(mean))
        return Piece((mean / length if length else mean).astype(np.float32), text.bounds, np.concatenate(hidden))

    def _tokenised(self, text: str) -> _Tokenised:
        whole = self._prompt + without_surrogates(text)
        encoding = self._tokenizer.encode(whole)
        special, bounds = encoding.special_tokens_mask, np.array(encoding.offsets, np.int64).reshape(-1, 2)
        end = len(special)
        while end and special[end - 1]:
            end -= 1
        start = 0
        while start < end and (special[start] or bounds[start, 1] <= len(self._prompt)):
            start += 1
        own = np.maximum(bounds[start:end] - len(self._prompt), 0)
        return _Tokenised(encoding.ids[:start], encoding.ids[start:end], encoding.ids[end:], without_space(text, own))

    def _windows(self, row: int, text: _Tokenised) -> Iterator[_Window]:
        room = self._room - len(text.before) - len(text.after)
        for (low, high), (first, last) in windows(len(text.ids), room):
            ahead = len(text.before) - low
            yield _Window(row, [*text.before, *text.ids[low:high], *text.after], slice(ahead + first, ahead + last))


def windows(count: int, room: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Overlapping windows over `count` tokens, none longer than `room`: what each sees, and what is taken from it.

    What is taken parts the tokens; where two windows overlap, in the middle. Neighbours share a quarter of `room` or
    more.
    """
    if not count:
        return
    step = room - room // 4
    starts = [*range(0, max(count - room, 0), step), max(count - room, 0)]
    seen = [(start, min(start + room, count)) for start in starts]
    middles = [(before[1] + after[0]) // 2 for before, after in pairwise(seen)]
    yield from zip(seen, zip([0, *middles], [*middles, count], strict=True), strict=True)


def fast_tokenizer(tokenizer: Any, model: str) -> Any:
    """The tokenizer inside one of transformers, set to cut and to pad nothing.

    Raises:
        UsageError: it is written in Python and does not say where its tokens stand.
    """
    inner = getattr(tokenizer, "backend_tokenizer", None)
    if inner is None or not hasattr(inner, "no_truncation"):
        raise UsageError(
            f"The tokenizer of {model!r} does not say where its tokens stand.",
            remedy="Take a model whose folder has a tokenizer.json.",
        )
    inner.no_truncation()
    inner.no_padding()
    return inner


def _padded(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids on the left and zeros on the right, and which are ids."""
    ids = np.zeros((len(rows), max(len(row) for row in rows)), np.int64)
    mask = np.zeros_like(ids)
    for nth, row in enumerate(rows):
        ids[nth, : len(row)] = row
        mask[nth, : len(row)] = 1
    return ids, mask
