"""Which word of the evidence is, by its form, the same as a word of the response: stem, value of a number, or name.

Texts that say one word over and over have as many matches as the product of their lengths. So what is kept is which
forms match, and pairs of words are made where they are asked for, a bounded number at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.matching import number_values
from veriglot.detectors.semantic.names import likeness

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.grounding.document import Document

__all__ = ["Matches", "matches"]

_NAME = 0.9  # a name that is spelt alike counts for a little less than the same word
_LEAST_ALIKE = 0.55
_FORMS = 512  # forms of the response that are compared with those of the evidence at a time
_PAIRS = 1 << 20  # pairs of words that are held at a time while sentences are counted


@dataclass(frozen=True)
class _Forms:
    """Words by the number of their form, -1 for none, and which forms match.

    Attributes:
        ours: form of each word of the response, shape (n,).
        theirs: form of each word of the evidence, shape (m,).
        left, right, value: forms that match and how well, in the order of `left`, shape (p,).
    """

    ours: NDArray[np.int64]
    theirs: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: NDArray[np.float32]

    def pairs(
        self, ours: NDArray[np.int64], theirs: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """The matches among some words of either text."""
        nth, form = _joined(self.ours[ours], self.left)
        order = np.argsort(self.theirs[theirs], kind="stable")
        again, place = _joined(self.right[form], self.theirs[theirs][order])
        return ours[nth[again]], theirs[order[place]], self.value[form[again]]

    def counts(self) -> NDArray[np.int64]:
        """In how many matches each word of the response is, shape (n,)."""
        size = int(max(self.theirs.max(initial=-1), self.right.max(initial=-1))) + 1
        words = np.bincount(self.theirs[self.theirs >= 0], minlength=size)[self.right]
        total = np.concatenate([[0], np.cumsum(words)])
        low, high = (np.searchsorted(self.left, self.ours, side) for side in ("left", "right"))
        found: NDArray[np.int64] = total[high] - total[low]
        return found


@dataclass(frozen=True)
class Matches:
    """All matches of the words of two texts by form.

    Attributes:
        kinds: matches by stem, by number, and by name.
        name: how well each word of the response matches any by sound, 0 to 1, shape (n,); zeros in one language.
    """

    kinds: tuple[_Forms, ...]
    name: NDArray[np.float32]

    def with_words(self, theirs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """The matches of some words of the evidence: word of the response, of the evidence, and how well, above 0 and
        up to 1; shape (k,).
        """
        ours = np.arange(len(self.name))
        found = [forms.pairs(ours, theirs) for forms in self.kinds]
        first, second, value = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return first, second, value

    def shared(self, sentence: NDArray[np.int64], count: int) -> NDArray[np.float32]:
        """The share of the response's words that each sentence of the evidence holds, shape (count,).

        Args:
            sentence: the sentence of each evidence word, shape (m,).
            count: of sentences.
        """
        alike = np.stack([forms.ours for forms in self.kinds], axis=1)
        _, first, times = np.unique(alike, axis=0, return_index=True, return_counts=True)
        theirs, held = np.arange(len(sentence)), np.zeros(count)
        for part in self._parts(first):
            # Words of the response that match the same words are looked up once, and counted as many as they are.
            words, words_times = first[part], times[part]
            places = np.zeros(len(self.name), np.int64)
            places[words] = np.arange(len(words))
            met = [forms.pairs(words, theirs)[:2] for forms in self.kinds]
            keys = [sentence[there] * len(words) + places[ours] for ours, there in met]
            at, nth = np.divmod(np.unique(np.concatenate(keys)), len(words))
            held += np.bincount(at, weights=words_times[nth], minlength=count)
        share: NDArray[np.float32] = (held / len(self.name)).astype(np.float32)
        return share

    def _parts(self, words: NDArray[np.int64]) -> Iterator[slice]:
        """Words of the response in parts of about as many matches as are held at a time; one at least."""
        total = np.cumsum(np.sum([forms.counts() for forms in self.kinds], axis=0)[words])
        part = total // _PAIRS
        edges = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(words)]
        for low, high in pairwise(edges):
            yield slice(low, high)


def matches(response: Document, evidence: Document, *, across: bool) -> Matches:
    """All matches.

    Args:
        response: the words to look for.
        evidence: the words to look among.
        across: whether the two are in different languages, so that names are compared by their sound.
    """
    kinds = [_same(response.stem, evidence.stem), _numbers(response, evidence)]
    name = np.zeros(len(response), np.float32)
    if across:
        forms, name = _names(response, evidence)
        kinds.append(forms)
    return Matches(tuple(kinds), name)


def _joined(wanted: NDArray[np.int64], known: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All places in the sorted `known` of each value that is wanted: which of these it is, and the place."""
    low = np.searchsorted(known, wanted, "left")
    counts = np.searchsorted(known, wanted, "right") - low
    which = np.repeat(np.arange(len(wanted)), counts)
    nth = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    return which, low[which] + nth


def _same(ours: NDArray[np.uint64], theirs: NDArray[np.uint64]) -> _Forms:
    """Forms that match where they are equal."""
    both, number = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    forms = np.arange(len(both))
    numbers = number.reshape(-1).astype(np.int64)
    return _Forms(numbers[: len(ours)], numbers[len(ours) :], forms, forms, np.ones(len(both), np.float32))


def _numbers(response: Document, evidence: Document) -> _Forms:
    known: dict[str, int] = {}
    parts = []
    for document in (response, evidence):
        words, values = number_values(document)
        form = np.full(len(document), -1, np.int64)
        form[words] = [known.setdefault(value, len(known)) for value in values]
        parts.append(form)
    forms = np.arange(len(known))
    return _Forms(parts[0], parts[1], forms, forms, np.ones(len(known), np.float32))


def _names(response: Document, evidence: Document) -> tuple[_Forms, NDArray[np.float32]]:
    our_texts, ours = _distinct(_texts(response))
    their_texts, theirs = _distinct(_texts(evidence))
    best = np.zeros(len(our_texts), np.float32)
    parts = []
    for low in range(0, len(our_texts), _FORMS):
        alike = likeness(our_texts[low : low + _FORMS], their_texts)
        best[low : low + _FORMS] = alike.max(axis=1, initial=0.0)
        left, right = np.nonzero(alike >= _LEAST_ALIKE)
        parts.append((left + low, right, np.float32(_NAME) * alike[left, right]))
    left, right, value = (np.concatenate(found) for found in zip(*parts, strict=True))
    return _Forms(ours, theirs, left, right, value), best[ours]


def _distinct(texts: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """The different ones of some texts, sorted, and which of them each is."""
    different = sorted(set(texts))
    number = {text: place for place, text in enumerate(different)}
    return different, np.array([number[text] for text in texts], np.int64)


def _texts(document: Document) -> list[str]:
    """The words of a document as they are written."""
    text = document.codes.astype(np.uint32).tobytes().decode("utf-32-le", "replace")
    return [text[start:end] for start, end in document.bounds.tolist()]
