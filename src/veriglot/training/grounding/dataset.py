"""Examples as arrays: features, labels and weights of every word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from veriglot.detectors.grounding.features import extract
from veriglot.records.taxonomy import taxonomy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.detectors.grounding.document import Lexicon
    from veriglot.training.grounding.examples import Example

__all__ = ["TYPES", "Labels", "Row", "WordLabels", "labels_of", "row_of"]

TYPES = tuple(taxonomy("fava").types)
# A replaced word is one of ten in its sentence and most are noise-free only after repair; without weight the network
# learns to mark whole sentences alone.
_REPLACED_WEIGHT = 2.0
_REPLACED = frozenset({"entity", "relation"})


class WordLabels(Protocol):
    """An example with what is known of each of its words; see `Labels`, the least that is one."""

    @property
    def example(self) -> Example:
        """Where it comes from."""

    @property
    def target(self) -> NDArray[np.float32]:
        """How unsupported each word is."""

    @property
    def weight(self) -> NDArray[np.float32]:
        """What each word counts for."""

    def __len__(self) -> int:
        """Words of the response."""


@dataclass(frozen=True)
class Labels:
    """What is known of each word of an example.

    Attributes:
        example: where it comes from.
        target: 1 for unsupported words, 0 for supported ones, between for divided annotators, shape (n,).
        types: shape (n, 6).
        weight: 0 for words that teach nothing, shape (n,).
    """

    example: Example
    target: NDArray[np.float32]
    types: NDArray[np.float32]
    weight: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.target)


@dataclass
class Row:
    """One example as arrays.

    Attributes:
        example: where it comes from.
        values: features, float16, shape (n, f).
        vector: the row of each word in the lexicon's vectors, or -1, shape (n,).
        sentence: the sentence of each word, shape (n,).
        bounds: code points of each word, shape (n, 2).
        target: 1 for unsupported words, 0 for supported ones, between for divided annotators, shape (n,).
        types: shape (n, 6).
        weight: shape (n,).
    """

    example: Example
    values: NDArray[np.float16]
    vector: NDArray[np.int32]
    sentence: NDArray[np.int32]
    bounds: NDArray[np.int32]
    target: NDArray[np.float32]
    types: NDArray[np.float32]
    weight: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.target)


def row_of(example: Example, lexicon: Lexicon) -> Row | None:
    """The arrays of an example; None where response or evidence hold no word."""
    extract_result = extract(example.response, example.passages, example.question, example.language, lexicon)
    if extract_result is None:
        return None
    labels = labels_of(example, extract_result.response.bounds, extract_result.markup)
    return Row(
        example,
        extract_result.values.astype(np.float16),
        extract_result.vector_place.astype(np.int32),
        extract_result.sentence.astype(np.int32),
        extract_result.response.bounds.astype(np.int32),
        labels.target,
        labels.types,
        labels.weight,
    )


def labels_of(example: Example, bounds: NDArray[np.int64], markup: NDArray[np.bool_]) -> Labels:
    """The labels of words.

    Args:
        example: what is known of the response.
        bounds: its words, half-open in code points, shape (n, 2).
        markup: words that are no part of what is said, shape (n,).
    """
    target = np.zeros(len(bounds), np.float32)
    types = np.zeros((len(bounds), len(TYPES)), np.float32)
    weight = np.ones(len(bounds), np.float32)
    for mark in example.marks:
        inside = (bounds[:, 0] < mark.end) & (bounds[:, 1] > mark.start)
        target[inside] = 1
        if mark.type is not None:
            types[inside, TYPES.index(mark.type)] = 1
        if mark.type in _REPLACED and example.kind == "silver":
            weight[inside] = _REPLACED_WEIGHT
    if example.shares is not None:
        target = _mean_share(example.shares, bounds, len(example.response))
    weight[markup] = 0
    for start, end in example.ignored:
        weight[(bounds[:, 0] < end) & (bounds[:, 1] > start)] = 0
    return Labels(example, target, types, weight)


def _mean_share(
    shares: tuple[tuple[int, int, float], ...], bounds: NDArray[np.int64], length: int
) -> NDArray[np.float32]:
    by_place = np.zeros(length, np.float64)
    for start, end, share in shares:
        by_place[start:end] = share
    sums = np.concatenate([[0.0], np.cumsum(by_place)])
    mean = (sums[bounds[:, 1]] - sums[bounds[:, 0]]) / (bounds[:, 1] - bounds[:, 0])
    shares_of_words: NDArray[np.float32] = mean.astype(np.float32)
    return shares_of_words
