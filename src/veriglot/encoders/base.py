"""Shared by encoders: the registry, measured languages, a cache of sentences, and windows for long texts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from veriglot.errors import UsageError
from veriglot.hub.checkpoints import in_batches, pad
from veriglot.plugins import Entry, PickledByArguments, Registry, read_package_data
from veriglot.records import Record
from veriglot.records.languages import find_language, get_language
from veriglot.storage.cache import LRUCache
from veriglot.text.unicode import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from veriglot.arrays import Float32s, Int64s

    Range = tuple[int, int]

__all__ = [
    "ENCODERS", "Encoder", "Piece", "TokenVectors", "WindowEncoder", "fast_tokenizer", "load_encoder", "without_space"
]  # fmt: skip


ENCODERS = Registry("encoder", "veriglot.encoders", read_package_data(__package__, "encoders.toml", dict[str, Entry]))


def load_encoder(name: str = "use-multilingual", **options: Any) -> Encoder:
    """An encoder by name.

    Args:
        name: a name of `ENCODERS`.
        options: of the encoder; see its class.

    Raises:
        UnknownNameError: no such encoder, or no such option; the error suggests the nearest.
        MissingExtraError: its packages are not installed.
        WeightsError: its weights are missing or damaged; the remedy says what to type.
        UsageError: an invalid or missing option.
    """
    encoder: Encoder = ENCODERS.make(name, **options)
    return encoder


Strength = Literal["measured", "weak"]

_MEGABYTE = 1 << 20


@cache
def _table() -> dict[str, dict[str, tuple[str, ...]]]:
    return read_package_data(__package__, "quality.json", dict[str, dict[str, tuple[str, ...]]])


def measured_in(encoder: str) -> tuple[str, ...]:
    """Tags of the language table (languages in a script) in which `encoder` was measured with good results."""
    return _table().get(encoder, {}).get("measured", ())


def strength_among(measured: Collection[str], tag: str | None) -> Strength:
    """`measured` if `tag`, as a tag of the language table, is among the tags `measured`; else `weak`."""
    entry = find_language(tag) if tag else None
    return "measured" if entry is not None and entry.tag in measured else "weak"


class TokenVectors(Record):
    """The tokens of a text with their contextual vectors.

    Attributes:
        bounds: half-open code point ranges, shape (t, 2); neither column ever falls. White space before a token is not
            part of it. A range may be empty, and two tokens may share one, if normalisation turns one letter into
            several (`½` into `1⁄2`).
        vectors: of the tokens within their sentences, shape (t, token_dimension), float32.
    """

    bounds: Int64s
    vectors: Float32s

    def of_words(self, word_bounds: Int64s) -> Float32s:
        """The mean vector of the tokens that overlap each word, shape (n, token_dimension); zero if none does.

        Args:
            word_bounds: half-open code point ranges of the text, shape (n, 2), in any order.
        """
        words = np.asarray(word_bounds, np.int64).reshape(-1, 2)
        means = np.zeros((len(words), self.vectors.shape[1]), np.float32)
        first = np.searchsorted(self.bounds[:, 1], words[:, 0], "right")
        after = np.searchsorted(self.bounds[:, 0], words[:, 1], "left")
        counts = np.maximum(after - first, 0)
        with_tokens = np.flatnonzero(counts)
        means[with_tokens] = self.vectors[first[with_tokens]]
        # A word has few tokens, so there are few iterations, over ever fewer words. np.add.reduceat would need
        # sorted words without overlaps.
        for nth in range(1, int(counts.max(initial=0))):
            longer = np.flatnonzero(counts > nth)
            means[longer] += self.vectors[first[longer] + nth]
        several = counts > 1
        means[several] /= counts[several, None]
        return means


class Piece(TokenVectors):
    """A sentence, or a part of a long one, that is encoded by itself: its tokens, and one vector for all.

    Attributes:
        vector: shape (dimension,), unit length; zero if there is no token.
    """

    vector: Float32s

    @property
    def nbytes(self) -> int:
        """Size of its arrays in bytes."""
        return self.vector.nbytes + self.bounds.nbytes + self.vectors.nbytes


class Encoder(PickledByArguments, ABC):
    """Turns texts into vectors, piece by piece. Thread-safe; pickled as its name and options.

    The vectors of a text depend on that text alone, not on the batch or on earlier calls.

    Args:
        cache_mb: size in MiB of the cache of recently encoded pieces; 0 for no cache.
        languages: BCP 47 tags in which its quality was measured as good; None for those of `quality.json`.

    Attributes:
        name: its name in `ENCODERS`.
        signature: one line `key:value|key:value`, different for any two encoders whose vectors differ.
        dimension, token_dimension: length of a sentence vector, and of a token vector.
        longest: most code points of a piece; None if `_encode` takes any length.

    Raises:
        UsageError: `cache_mb` is negative.
        UnknownNameError: a language that Veriglot does not know.
    """

    name: str
    signature: str
    dimension: int
    token_dimension: int
    longest: int | None = None

    def __init__(self, cache_mb: float, languages: Sequence[str] | None = None) -> None:
        if not cache_mb >= 0:
            raise UsageError(f"The cache size is {cache_mb} MiB.", "Give cache_mb 0 or more.")
        self._recent: LRUCache[Piece] = LRUCache(int(cache_mb * _MEGABYTE), lambda piece: piece.nbytes)
        measured = measured_in(self.name) if languages is None else languages
        self._measured = frozenset(get_language(tag).tag for tag in measured)

    @abstractmethod
    def _encode(self, texts: Sequence[str]) -> list[Piece]:
        """One piece per text, which depends on that text alone."""

    def strength(self, tag: str | None) -> Strength:
        """`measured` if its quality was measured as good in the language and script; otherwise `weak`.

        Args:
            tag: a BCP 47 tag; None and unknown languages are `weak`.
        """
        return strength_among(self._measured, tag)

    def sentences(self, texts: Sequence[str]) -> Float32s:
        """One vector per text, shape (n, dimension), unit length; zero for a text without any token.

        For a text of several pieces it is their mean weighted by number of tokens, normalised to unit length.
        """
        cuts = [self._cuts(0, len(text)) for text in texts]
        flat = [text[low:high] for text, cut in zip(texts, cuts, strict=True) for low, high in cut]
        pieces = iter(self._pieces(flat))
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, cut in enumerate(cuts):
            vectors[row] = _joined([next(pieces) for _ in cut]) if cut else 0
        return vectors

    def tokens(self, text: str, sentences: Sequence[Range] | Int64s | None = None) -> TokenVectors:
        """The tokens of a text, each encoded in the context of its sentence.

        Args:
            text: any text, of any length.
            sentences: half-open code point ranges in order, such as from `veriglot.text.segmentation`; None if the text
                is one sentence. Text outside of sentences gets no tokens.

        Raises:
            UsageError: the ranges are not in order within the text.
        """
        wanted = _checked([(0, len(text))] if sentences is None else sentences, len(text))
        cuts = [cut for low, high in wanted.tolist() for cut in self._cuts(low, high)]
        pieces = self._pieces([text[low:high] for low, high in cuts])
        none = np.zeros((0, 2), np.int64), np.zeros((0, self.token_dimension), np.float32)
        return TokenVectors(
            np.concatenate([none[0], *(piece.bounds + low for (low, _), piece in zip(cuts, pieces, strict=True))]),
            np.concatenate([none[1], *(piece.vectors for piece in pieces)]),
        )

    def _cuts(self, low: int, high: int) -> list[Range]:
        step = self.longest or max(high - low, 1)
        return [(start, min(high, start + step)) for start in range(low, high, step)]

    def _pieces(self, texts: Sequence[str]) -> list[Piece]:
        """The piece of every text, from the cache or newly encoded; equal texts are encoded once."""
        cached = {text: self._recent.get(text) for text in texts}
        known = {text: piece for text, piece in cached.items() if piece is not None}
        new = [text for text in cached if text not in known]
        for text, piece in zip(new, self._encode(new), strict=True):
            for array in (piece.vector, piece.bounds, piece.vectors):
                array.flags.writeable = False  # the cache returns the same arrays again
            known[text] = piece
            self._recent.put(text, piece)
        return [known[text] for text in texts]


def _checked(bounds: Sequence[Range] | Int64s, length: int) -> Int64s:
    wanted = np.asarray(bounds, np.int64).reshape(-1, 2)
    edges = wanted.ravel()
    if edges.size and (edges[0] < 0 or edges[-1] > length or (np.diff(edges) < 0).any()):
        raise UsageError(
            f"These sentences are not in order inside a text of {length:,} code points.",
            "Give half-open ranges of code points that do not overlap, as veriglot.text.segmentation does.",
        )
    return wanted


def _joined(pieces: list[Piece]) -> Float32s:
    if len(pieces) == 1:
        return pieces[0].vector
    weights = np.array([len(piece.bounds) for piece in pieces], np.float32)
    total: Float32s = weights @ np.stack([piece.vector for piece in pieces])
    norm = float(np.linalg.norm(total))
    return total / np.float32(norm) if norm else total


def without_space(text: str, bounds: Int64s) -> Int64s:
    """Remove leading white space from the `bounds` of tokens, shape (t, 2), in place; returns them."""
    for token, (start, end) in enumerate(bounds.tolist()):
        bounds[token, 0] = end - len(text[start:end].lstrip())
    return bounds


_MIN_TOKENS = 8  # of text in a window


class _Tokenised(Record):
    """Token ids of a text: before it in every window (special tokens, prompt), its own, and after it."""

    before: list[int]
    ids: list[int]
    after: list[int]
    bounds: Int64s  # of its own tokens, shape (t, 2)


class WindowEncoder(Encoder):
    """A transformer as an encoder.

    Args:
        tokenizer: of the library tokenizers, which gives offsets.
        room: most tokens of an input, special tokens included.
        prompt: prefix of every text and window, as some models need (`query: `); its tokens are not returned.
        languages: BCP 47 tags in which its quality was measured as good; None for those of `quality.json`.
        cache_mb: size of the cache in MiB.

    Raises:
        UsageError: the model has no room for text, or `cache_mb` is negative.
        UnknownNameError: a language that Veriglot does not know.
    """

    def __init__(
        self, tokenizer: Any, *, room: int, prompt: str, languages: Sequence[str] | None, cache_mb: float
    ) -> None:
        super().__init__(cache_mb, languages)
        self._tokenizer = tokenizer
        self._prompt = prompt
        self._room = room
        empty = self._tokenised("")
        if room < len(empty.before) + len(empty.after) + _MIN_TOKENS:
            raise UsageError(
                f"The encoder takes {room} tokens at a time, special tokens and prompt included: too few for a text.",
                f"Give max_length {len(empty.before) + len(empty.after) + _MIN_TOKENS} or more.",
            )
        pooled, hidden = self._run(*pad([[*empty.before, *empty.after] or [0]]))
        self.dimension, self.token_dimension = int(pooled.shape[1]), int(hidden.shape[2])

    @abstractmethod
    def _run(self, ids: Int64s, mask: Int64s) -> tuple[Float32s, Float32s]:
        """Pooled vectors (b, d) and token vectors (b, t, e) of token ids (b, t); `mask` is 0 for padding."""

    def _encode(self, texts: Sequence[str]) -> list[Piece]:
        tokenised = [self._tokenised(text) for text in texts]
        windows_of = [list(self._windows(text)) for text in tokenised]
        flat = [window for own in windows_of for window in own]

        def run(batch: list[int]) -> list[tuple[Float32s, Float32s]]:
            vectors, tokens = self._run(*pad([flat[index][0] for index in batch]))
            return [(vectors[nth].copy(), tokens[nth, flat[index][1]].copy()) for nth, index in enumerate(batch)]

        results = iter(in_batches([len(ids) for ids, _ in flat], run))
        return [
            self._piece(text, [next(results) for _ in own]) for text, own in zip(tokenised, windows_of, strict=True)
        ]

    def _piece(self, text: _Tokenised, parts: list[tuple[Float32s, Float32s]]) -> Piece:
        if not parts:
            empty = np.zeros((0, self.token_dimension), np.float32)
            return Piece(text.bounds, empty, np.zeros(self.dimension, np.float32))
        mean = np.average([pooled for pooled, _ in parts], axis=0, weights=[len(hidden) for _, hidden in parts])
        length = float(np.linalg.norm(mean))
        vectors = np.concatenate([hidden for _, hidden in parts])
        return Piece(text.bounds, vectors, (mean / length if length else mean).astype(np.float32))

    def _tokenised(self, text: str) -> _Tokenised:
        encoding = self._tokenizer.encode(self._prompt + without_surrogates(text))
        special, bounds = encoding.special_tokens_mask, np.array(encoding.offsets, np.int64).reshape(-1, 2)
        end = len(special)
        while end and special[end - 1]:
            end -= 1
        start = 0
        while start < end and (special[start] or bounds[start, 1] <= len(self._prompt)):
            start += 1
        own = np.maximum(bounds[start:end] - len(self._prompt), 0)
        return _Tokenised(encoding.ids[:start], encoding.ids[start:end], encoding.ids[end:], without_space(text, own))

    def _windows(self, text: _Tokenised) -> Iterator[tuple[list[int], slice]]:
        """The token ids of each window, and the slice of its vectors that the text uses."""
        room = self._room - len(text.before) - len(text.after)
        for (low, high), (first, last) in windows(len(text.ids), room):
            ahead = len(text.before) - low
            yield [*text.before, *text.ids[low:high], *text.after], slice(ahead + first, ahead + last)


def windows(count: int, room: int) -> Iterator[tuple[Range, Range]]:
    """Overlapping windows of at most `room` of `count` tokens: the range of each, and the part of it to use.

    The parts cover every token once and meet in the middle of overlaps. Neighbours overlap by at least a quarter of
    `room`.
    """
    if not count:
        return
    step = room - room // 4
    starts = [*range(0, max(count - room, 0), step), max(count - room, 0)]
    seen = [(start, min(start + room, count)) for start in starts]
    middles = [(before[1] + after[0]) // 2 for before, after in pairwise(seen)]
    yield from zip(seen, zip([0, *middles], [*middles, count], strict=True), strict=True)


def fast_tokenizer(tokenizer: Any, model: str) -> Any:
    """The tokenizer of the library tokenizers inside one of transformers, without truncation and padding.

    Raises:
        UsageError: a slow tokenizer, which does not give the offsets of its tokens.
    """
    inner = getattr(tokenizer, "backend_tokenizer", None)
    if inner is None or not hasattr(inner, "no_truncation"):
        raise UsageError(
            f"The tokenizer of {model!r} does not give the offsets of its tokens.",
            "Use a model whose folder has a tokenizer.json.",
        )
    inner.no_truncation()
    inner.no_padding()
    return inner
