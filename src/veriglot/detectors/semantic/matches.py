"""Which word of the evidence is, by its form, the same as a word of the response: stem, value of a number, or name."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.matching import number_values
from veriglot.detectors.semantic.names import likeness

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.detectors.grounding.document import Document

__all__ = ["Matches", "matches"]

_NAME = 0.9  # a name that is spelt alike counts for a little less than the same word
_LEAST_ALIKE = 0.55


@dataclass(frozen=True)
class Matches:
    """Pairs of words that match by form.

    Attributes:
        ours: words of the response, shape (k,).
        theirs: words of the evidence, shape (k,).
        value: how well they match, above 0 and up to 1, shape (k,).
        name: how well each word of the response matches any by sound, 0 to 1, shape (n,); zeros in one language.
    """

    ours: NDArray[np.int64]
    theirs: NDArray[np.int64]
    value: NDArray[np.float32]
    name: NDArray[np.float32]


def matches(response: Document, evidence: Document, *, across: bool) -> Matches:
    """All pairs.

    Args:
        response: the words to look for.
        evidence: the words to look among.
        across: whether the two are in different languages, so that names are compared by their sound.
    """
    found = [_stems(response, evidence), _numbers(response, evidence)]
    name = np.zeros(len(response), np.float32)
    if across:
        pairs, name = _names(response, evidence)
        found.append(pairs)
    ours, theirs, value = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Matches(ours, theirs, value, name)


_Pairs = tuple["NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.float32]"]


def _stems(response: Document, evidence: Document) -> _Pairs:
    order = np.argsort(evidence.stem, kind="stable")
    known = evidence.stem[order]
    low = np.searchsorted(known, response.stem, "left")
    counts = np.searchsorted(known, response.stem, "right") - low
    ours = np.repeat(np.arange(len(response)), counts)
    nth = np.arange(len(ours)) - np.repeat(np.cumsum(counts) - counts, counts)
    return ours, order[low[ours] + nth], np.ones(len(ours), np.float32)


def _numbers(response: Document, evidence: Document) -> _Pairs:
    places: dict[str, list[int]] = defaultdict(list)
    for word, value in zip(*number_values(evidence), strict=True):
        places[value].append(int(word))
    pairs = [
        (int(word), place)
        for word, value in zip(*number_values(response), strict=True)
        for place in places.get(value, ())
    ]
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1], np.ones(len(both), np.float32)


def _names(response: Document, evidence: Document) -> tuple[_Pairs, NDArray[np.float32]]:
    forms = _texts(evidence)
    theirs = sorted(set(forms))
    alike = likeness(_texts(response), theirs)
    places: dict[str, list[int]] = defaultdict(list)
    for word, form in enumerate(forms):
        places[form].append(word)
    rows, columns = np.nonzero(alike >= _LEAST_ALIKE)
    pairs = [
        (row, place, _NAME * alike[row, column])
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
        for place in places[theirs[column]]
    ]
    best = alike.max(axis=1) if len(theirs) else np.zeros(len(response), np.float32)
    return (
        np.array([row for row, _, _ in pairs], np.int64),
        np.array([place for _, place, _ in pairs], np.int64),
        np.array([value for _, _, value in pairs], np.float32),
    ), best


def _texts(document: Document) -> list[str]:
    """The words of a document as they are written."""
    text = document.codes.astype(np.uint32).tobytes().decode("utf-32-le", "replace")
    return [text[start:end] for start, end in document.bounds.tolist()]
