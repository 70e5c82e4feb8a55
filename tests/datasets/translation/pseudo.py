"""A language that rules make from another, so that the position of every word is known."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from veriglot.datasets.translation.projection import Alignment, Side, links_of
from veriglot.text.normalization import fold
from veriglot.text.segmentation import word_bounds

ROOTS = [a + b for a in "bdfgk" for b in "aeio"]
END = "也"  # end mark of words in the language without spaces, so that the split is unique
HAN = "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉"


class Pseudo(NamedTuple):
    """A translation whose spans are known.

    Attributes:
        text: the translation.
        spans: per mark, where it is.
        dictionary: the translation of every word, folded.
    """

    text: str
    spans: list[tuple[int, int]]
    dictionary: dict[str, tuple[str, ...]]


def respelt(word: str, *, spaced: bool) -> str:
    """A word of the other language: always the same for a word, and different for different words."""
    number = int.from_bytes(fold(word).encode(), "big")
    parts = []
    while number:
        number, digit = divmod(number, 20)
        parts.append(ROOTS[digit] if spaced else HAN[digit])
    return "".join(parts) if spaced else "".join(parts) + END


def blocks_of(text: str, tag: str, marks: list[tuple[int, int]]) -> list[tuple[list[str], list[int]]]:
    """Words in runs with the same marks: they can be moved without splitting a mark."""
    blocks: list[tuple[list[str], list[int]]] = []
    for start, end in word_bounds(text, tag).tolist():
        inside = [n for n, (first, last) in enumerate(marks) if start < last and first < end]
        if blocks and blocks[-1][1] == inside:
            blocks[-1][0].append(text[start:end])
        else:
            blocks.append(([text[start:end]], inside))
    return blocks


def pseudo(text: str, tag: str, marks: list[tuple[int, int]], *, spaced: bool, seed: int) -> Pseudo:
    """Translate word by word, and change the order of the runs of words; marks must not overlap."""
    blocks = blocks_of(text, tag, marks)
    random.Random(seed).shuffle(blocks)
    space = " " if spaced else ""
    out = ""
    places: dict[int, tuple[int, int]] = {}
    for words, inside in blocks:
        out += space if out else ""
        start = len(out)
        out += space.join(respelt(word, spaced=spaced) for word in words)
        places.update(dict.fromkeys(inside, (start, len(out))))
    dictionary = {fold(word): (respelt(word, spaced=spaced),) for words, _ in blocks for word in words}
    return Pseudo(out, [places[n] for n in range(len(marks))], dictionary)


class DictionaryAligner:
    """Links words by a dictionary; a language without spaces is split at the end marks."""

    signature = "aligner:dictionary"

    def __init__(self, dictionary: dict[str, tuple[str, ...]], *, spaced: bool) -> None:
        self.dictionary, self.spaced = dictionary, spaced

    def align(self, source: Side, target: Side) -> Alignment:
        if not self.spaced:
            ends = [0, *(n + 1 for n, char in enumerate(target.text) if char == END)]
            target = Side(target.text, target.tag, tuple(pairwise(ends)))
        forms = target.forms()
        similarity = [[float(form in self.dictionary[fold(word)]) for form in forms] for word in source.forms()]
        return Alignment(source, target, links_of(np.array(similarity, np.float32), threshold=0.5))
