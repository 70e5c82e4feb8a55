"""Texts that are longer than a model takes, in stretches of whole sentences that overlap. Nothing is left out."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from veriglot.text import sentences, word_bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["stretches"]

Run = tuple[int, int]  # of tokens, half-open


def stretches(text: str, bounds: NDArray[np.int64], room: int, *, overlap: bool) -> list[tuple[int, int]]:
    """A text in stretches of at most `room` tokens, as half-open code point ranges in order.

    They begin and end between sentences, except where one sentence alone is longer than `room`: it is cut between
    words. With `overlap`, neighbours share their last sentence where it takes no more than half of the room, and all
    that fits into a quarter of it. Together they hold every code point.

    Args:
        text: any text.
        bounds: of its tokens, half-open code point ranges, shape (t, 2), neither column ever falling.
        room: tokens of a stretch, at least 1.
        overlap: whether neighbours share anything.
    """
    if len(bounds) <= room:
        return [(0, len(text))]
    runs = _grouped(_units(text, bounds, room), room, overlap)
    starts = [0, *(int(bounds[first, 0]) for first, _ in runs[1:])]
    ends = [*(int(bounds[last, 0]) for _, last in runs[:-1]), len(text)]
    # One is empty where all its tokens are bytes of a character that the next begins with, or of no place at the end.
    return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def _units(text: str, bounds: NDArray[np.int64], room: int) -> list[Run]:
    """The tokens parted into sentences; a sentence of more than `room` tokens into quarters of that."""
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


def _tokens_at(bounds: NDArray[np.int64], places: list[int]) -> list[int]:
    """The first token that reaches beyond each place; a token may begin with the white space before its word."""
    found: list[int] = np.searchsorted(bounds[:, 1], places, side="right").tolist()
    return [token for token in found if token < len(bounds)]


def _cut(first: int, last: int, most: int, words: list[int]) -> list[Run]:
    """A run in runs of at most `most` tokens that begin with a word where one does."""
    starts = np.array(words)
    runs = []
    while last - first > most:
        place = int(np.searchsorted(starts, first + most, side="right")) - 1
        end = int(starts[place]) if place >= 0 and starts[place] > first else first + most
        runs.append((first, end))
        first = end
    return [*runs, (first, last)]


def _grouped(units: list[Run], room: int, overlap: bool) -> list[Run]:
    """Neighbouring units joined while they fit; with overlap, each run begins with the end of the one before."""
    runs = []
    first = 0
    while True:
        end = first + 1
        while end < len(units) and units[end][1] - units[first][0] <= room:
            end += 1
        last = units[end - 1][1]
        runs.append((units[first][0], last))
        if end == len(units):
            return runs
        following = end
        if overlap:
            bound = room // 2 if last - units[end - 1][0] > room // 4 else room // 4
            while following - 1 > first and last - units[following - 1][0] <= bound:
                following -= 1
                bound = room // 4
        first = following
