"""What is kept of every row: hashes of its text, labels and references, 40 bytes or so, however long the text."""

from __future__ import annotations

import hashlib
import re
from array import array
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.records import Task
from veriglot.text import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from veriglot.records import Sample

__all__ = ["Index", "groups_of", "plain", "weighs_enough"]

_ENOUGH = 32.0  # letters of a text that nobody writes twice by chance
_BETWEEN = re.compile(r"[\W_]+")
_DENSE = 2.5  # what a letter counts that is a syllable or a word


def plain(text: str) -> str:
    """Letters and digits of a text, folded: what two copies have in common whatever was done to their spaces."""
    return _BETWEEN.sub("", fold(text))


def weighs_enough(letters: str) -> bool:
    """Whether a text is too long to occur twice by chance."""
    if len(letters) >= _ENOUGH:
        return True
    dense = sum("\u2e80" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3" for char in letters)
    return len(letters) + (_DENSE - 1) * dense >= _ENOUGH


def _hash(*parts: str) -> int:
    """64 bits, never 0; framed, so that joins cannot collide."""
    hasher = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(4, "little"))
        hasher.update(data)
    return int.from_bytes(hasher.digest(), "little") or 1


class Index:
    """Hashes by row and by passage; `freeze` makes arrays of them.

    Attributes:
        texts: of each row's response, with its question and evidence where it is short; 0 where it is empty.
        long: whether the response alone made the hash.
        whole: of everything that a row says: question, evidence, response, labels.
        files, splits: numbers of each row's file and split.
        languages: number of each row's language, without its script; 0 where none is stated. `language_names` has them.
        passages: of each passage that is long enough.
        owners, places: which row each belongs to, and which of its passages it is.
        own: whether a passage is said, or has to be assumed, to be in the language of its response.
    """

    def __init__(self) -> None:
        self._texts, self._whole, self._passages = array("Q"), array("Q"), array("Q")
        self._long, self._splits = array("B"), array("H")
        self._files, self._owners, self._places = array("I"), array("I"), array("H")
        self._languages, self._own = array("H"), array("B")
        self.language_names = [""]
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    def add(self, sample: Sample, file: int, split: int) -> None:
        """Take in the next row."""
        row = len(self._texts)
        response = plain(sample.response)
        passages = [plain(passage.text) for passage in sample.evidence]
        question = plain(sample.question or "")
        is_long = weighs_enough(response)
        context = () if is_long else (question, *passages)
        self._texts.append(_hash(response, *context) if response else 0)
        self._long.append(is_long)
        labels = self._encode(sample.annotations).decode()
        model = sample.generator.name if sample.generator is not None else ""
        self._whole.append(_hash(question, *passages, sample.response, model, labels))
        self._files.append(file)
        self._splits.append(split)
        base = _base(sample.language)
        self._languages.append(self._number(base))
        for place, passage in enumerate(passages):
            if weighs_enough(passage):
                self._passages.append(_hash(passage))
                self._owners.append(row)
                self._places.append(min(place, 0xFFFF))
                said = sample.evidence[place].language
                self._own.append(_base(said) == base if said else sample.task is not Task.TRANSLATION)

    def _number(self, base: str) -> int:
        if base not in self.language_names:
            self.language_names.append(base)
        return self.language_names.index(base)

    def freeze(self) -> None:
        """Make arrays; nothing can be added after it."""
        self.texts = np.array(self._texts, np.uint64)
        self.long = np.array(self._long, np.bool_)
        self.whole = np.array(self._whole, np.uint64)
        self.files = np.array(self._files, np.uint32)
        self.splits = np.array(self._splits, np.uint16)
        self.passages = np.array(self._passages, np.uint64)
        self.owners = np.array(self._owners, np.uint32)
        self.places = np.array(self._places, np.uint16)
        self.languages = np.array(self._languages, np.uint16)
        self.own = np.array(self._own, np.bool_)


def _base(tag: str | None) -> str:
    return (tag or "").partition("-")[0]


def groups_of(keys: NDArray[np.uint64]) -> Iterator[NDArray[np.int64]]:
    """Places of keys that occur more than once, a group a time, in order inside each; 0 is no key."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    edges = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])) if len(keys) else np.zeros(0)
    for start, end in _long_runs(edges.astype(np.int64)):
        if ordered[start]:
            yield order[start:end]


def _long_runs(edges: NDArray[np.int64]) -> Iterable[tuple[int, int]]:
    lengths = np.diff(edges)
    return ((int(edges[at]), int(edges[at + 1])) for at in np.flatnonzero(lengths > 1))
