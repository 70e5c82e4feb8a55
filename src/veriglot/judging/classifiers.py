"""Shared by classifiers: the names of their outputs, and long texts split into overlapping chunks of sentences."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.errors import UsageError
from veriglot.plugins import read_package_data
from veriglot.storage.cache import LRUCache
from veriglot.text.segmentation import sentences, word_bounds
from veriglot.text.unicode import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.arrays import Int64s

__all__ = ["LockedTokenizer", "group_units", "label_aliases", "label_names", "normalised_label", "split_chunks"]


def label_names(names: Mapping[int, str] | Sequence[str] | str) -> list[str]:
    """Labels in the order of the outputs, from a mapping (`id2label`), a list, or a string with commas."""
    if isinstance(names, str):
        return [name.strip() for name in names.split(",") if name.strip()]
    if isinstance(names, Mapping):
        numbered = {int(output): str(name) for output, name in names.items()}
        return [numbered[output] for output in sorted(numbered)]
    return [str(name) for name in names]


def normalised_label(name: str) -> str:
    """A label in lower case, with underscores for hyphens and spaces."""
    return re.sub(r"[\s_-]+", "_", name.strip().casefold())


@cache
def label_aliases(package: str, file: str) -> dict[str, str]:
    """Mapping from normalised label to meaning, read from a JSON file of a package that lists labels by meaning."""
    table = read_package_data(package, file, dict[str, list[str]])
    return {alias: meaning for meaning, aliases in table.items() for alias in aliases}


Run = tuple[int, int]  # of tokens, half-open


def split_chunks(text: str, bounds: Int64s, room: int, *, overlap: bool) -> list[tuple[int, int]]:
    """Chunks of at most `room` tokens of a text, as half-open code point ranges in order.

    They begin and end between sentences; a sentence longer than `room` is cut between words. With `overlap`, a chunk
    repeats the end of the one before: as many sentences as fit into a quarter of `room`, or one that takes up to half.
    Together they cover every code point.

    Args:
        text: any text.
        bounds: half-open code point ranges of its tokens, shape (t, 2); neither column ever falls.
        room: most tokens of a chunk, at least 1.
        overlap: whether neighbours overlap.
    """
    if len(bounds) <= room:
        return [(0, len(text))]
    units = _units(text, bounds, room)
    groups = group_units(units, room, overlap=room // 4, longest=room // 2) if overlap else group_units(units, room)
    starts = [0, *(int(bounds[units[first][0], 0]) for first, _ in groups[1:])]
    ends = [*(int(bounds[units[end][0], 0]) for _, end in groups[:-1]), len(text)]
    # A chunk can be empty: its tokens are bytes of the next one's first character, or lie behind the end of the text.
    return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def _units(text: str, bounds: Int64s, room: int) -> list[Run]:
    """Token ranges of the sentences; a sentence of more than `room` tokens is cut into quarters of `room`."""
    places = [0, *_tokens_at(bounds, [start for start, _ in sentences(text)]), len(bounds)]
    words: list[int] | None = None
    units: list[Run] = []
    for first, last in pairwise(sorted(set(places))):
        if last - first <= room:
            units.append((first, last))
            continue
        if words is None:
            words = sorted(set(_tokens_at(bounds, word_bounds(text)[:, 0].tolist())))
        units += _cut(first, last, max(room // 4, 1), words)
    return units


def _tokens_at(bounds: Int64s, places: list[int]) -> list[int]:
    """The first token that ends behind each offset; a token may begin with the white space before its word."""
    tokens: list[int] = np.searchsorted(bounds[:, 1], places, side="right").tolist()
    return [token for token in tokens if token < len(bounds)]


def _cut(first: int, last: int, most: int, words: list[int]) -> list[Run]:
    """A run cut into runs of at most `most` tokens, at the beginning of a word if possible."""
    starts = np.array(words)
    runs = []
    while last - first > most:
        word = int(np.searchsorted(starts, first + most, side="right")) - 1
        end = int(starts[word]) if word >= 0 and starts[word] > first else first + most
        runs.append((first, end))
        first = end
    return [*runs, (first, last)]


def group_units(units: Sequence[Run], room: int, *, overlap: int = 0, longest: int = 0) -> list[Run]:
    """Groups of neighbouring units that fit together, as half-open ranges of units; they cover every unit.

    Args:
        units: half-open ranges of tokens, in order and without gaps.
        room: most tokens of a group; a longer unit is a group by itself.
        overlap: most tokens that a group shares with the one before it; 0 for none.
        longest: the same limit if the last unit of the group before is longer than `overlap`; 0 for no exception.
    """
    groups = []
    first = 0
    while True:
        end = first + 1
        while end < len(units) and units[end][1] - units[first][0] <= room:
            end += 1
        last = units[end - 1][1]
        groups.append((first, end))
        if end == len(units):
            return groups
        following = end
        bound = longest if longest and last - units[end - 1][0] > overlap else overlap
        while bound and following - 1 > first and last - units[following - 1][0] <= bound:
            following -= 1
            bound = overlap
        first = following


_TEXTS = 50_000  # texts whose number of tokens is cached
_LONG_TEXTS = 256  # long texts whose chunks are cached
_AT_ONCE = 2_000  # texts per call of the tokenizer


class LockedTokenizer:
    """A tokenizer that threads may share: without a lock, the libraries' tokenizers change settings while they work.

    Args:
        tokenizer: of transformers.
        model: name of the model, for errors.

    Raises:
        UsageError: the tokenizer does not give the offsets of its tokens.
    """

    def __init__(self, tokenizer: Any, model: str) -> None:
        if not tokenizer.is_fast:
            raise UsageError(
                f"The tokenizer of {model!r} does not give the offsets of its tokens.",
                remedy="Use a model whose folder has a tokenizer.json.",
            )
        self._tokenizer = tokenizer
        self._counts: LRUCache[int] = LRUCache(_TEXTS)
        self._cuts: LRUCache[list[tuple[int, int]]] = LRUCache(_LONG_TEXTS)
        self._lock = threading.Lock()
        spelled = [re.escape(token) for token in tokenizer.all_special_tokens if len(token) > 1]
        self._special_words = re.compile("|".join(spelled) or "(?!)")
        self.special = int(tokenizer.num_special_tokens_to_add(pair=True))

    def count(self, text: str) -> int:
        """Number of tokens of a text, without special tokens."""
        return self.count_all([text])[0]

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each text; repeated texts are counted once."""
        counts = {text: count for text in texts if (count := self._counts.get(text)) is not None}
        new = [text for text in dict.fromkeys(texts) if text not in counts]
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            ids = self._call([self._plain(text) for text in some], add_special_tokens=False)["input_ids"]
            for text, own in zip(some, ids, strict=True):
                counts[text] = len(own)
                self._counts.put(text, len(own))
        return [counts[text] for text in texts]

    def split_chunks(self, text: str, room: int, *, overlap: bool) -> list[tuple[int, int]]:
        """Chunks of at most `room` tokens, half-open code point ranges; see the function `split_chunks`."""
        if self.count(text) <= room:
            return [(0, len(text))]
        key = (text, room, overlap)
        known = self._cuts.get(key)
        if known is None:
            known = self._cut(text, room, room, overlap=overlap)
            self._cuts.put(key, known)
        return known

    def _cut(self, text: str, room: int, allowed: int, *, overlap: bool) -> list[tuple[int, int]]:
        """As `split_chunks`, with at most `allowed` tokens each, counted within the text.

        A chunk by itself may have a token or two more than it had within the text; then it is cut again.
        """
        ranges = []
        bounds = split_chunks(text, self._bounds(text), allowed, overlap=overlap)
        counts = self.count_all([text[start:end] for start, end in bounds])
        for (start, end), count in zip(bounds, counts, strict=True):
            if count <= room or allowed <= 1:
                ranges.append((start, end))
            else:
                subranges = self._cut(text[start:end], room, max(min(allowed, count) * 3 // 4, 1), overlap=overlap)
                ranges += [(start + low, start + high) for low, high in subranges]
        return ranges

    def pairs(self, premises: list[str], hypotheses: list[str]) -> Any:
        """The tokenised pairs as tensors, padded to the longest and never truncated."""
        return self._call(
            [self._plain(text) for text in premises],
            [self._plain(text) for text in hypotheses],
            padding=True,
            return_tensors="pt",
        )

    def _bounds(self, text: str) -> Int64s:
        encoded = self._call([self._plain(text)], add_special_tokens=False, return_offsets_mapping=True)
        return np.maximum.accumulate(np.array(encoded["offset_mapping"][0], np.int64).reshape(-1, 2), axis=0)

    def _plain(self, text: str) -> str:
        """The text at the same length, without surrogates, and with the first character of special tokens replaced.

        Otherwise a response that contains `</s>` or `[SEP]` would end there for the network.
        """
        return self._special_words.sub(lambda match: "(" + match[0][1:], without_surrogates(text))

    def _call(self, *texts: list[str], **options: Any) -> Any:
        with self._lock:
            return self._tokenizer(*texts, truncation=False, verbose=False, **options)
