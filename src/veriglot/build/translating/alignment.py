"""Which word of a text became which word of its translation: the protocol, and links out of similarities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from veriglot.text import word_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Aligner", "Alignment", "Link", "Side", "links_of", "side_of"]

_ROUNDS = 2
_TIE = 0.97  # share of its best that a pair has to have to count as as good
_SECOND = 0.9  # what the similarity of a word that has a link already counts for a second one
_CONTEXT = 0.25  # what neighbours that match each other add, at most
_REACH = 6  # words on either side
_POSITION = 0.05  # what standing at the same place adds, at most


class Side(NamedTuple):
    """A text or its translation.

    Attributes:
        text: the text.
        tag: its BCP 47 tag.
        words: half-open code point ranges, in order.
    """

    text: str
    tag: str
    words: tuple[tuple[int, int], ...]

    def forms(self) -> list[str]:
        """The words as they stand."""
        return [self.text[start:end] for start, end in self.words]


class Link(NamedTuple):
    """A word of the source, one of the target (both by number, from 0), and how sure the link is, above 0 to 1."""

    source: int
    target: int
    weight: float


class Alignment(NamedTuple):
    """A text and its translation with their words linked.

    Attributes:
        source, target: both sides, in the words that are linked; an aligner may cut them otherwise than it was given.
        links: between the words.
    """

    source: Side
    target: Side
    links: Sequence[Link]


class Aligner(Protocol):
    """Links words. A class of one's own with these two is an aligner too.

    Attributes:
        signature: one line that says how it aligns.
    """

    signature: str

    def align(self, source: Side, target: Side) -> Alignment:
        """Link the words of a text and of its translation; a word may have no link, or several."""
        ...


def side_of(text: str, tag: str) -> Side:
    """A text with its words."""
    return Side(text, tag, tuple((start, end) for start, end in word_bounds(text, tag).tolist()))


def links_of(similarity: NDArray[np.float32], *, least: float) -> list[Link]:
    """Links out of similarities: pairs that are each other's best, then those of what is left.

    First each word gets one link at most, to its best or to one that is as good: of several equal words the one whose
    neighbours have links to each other. Then come iterations as in SimAlign's *itermax* (Jalili Sabet et al. 2020,
    section 3.1): words that have a link may have another, at a discount.

    Args:
        similarity: shape (source words, target words), 0 to 1.
        least: what a pair has to have.

    Returns:
        Links in the order of the source, each with its similarity as weight.
    """
    if not similarity.size:
        return []
    similarity = np.asarray(similarity, np.float32)
    allowed = similarity >= least
    near = allowed & (similarity >= _TIE * similarity.max(1, keepdims=True))
    near &= similarity >= _TIE * similarity.max(0, keepdims=True)
    taken = np.zeros(similarity.shape, dtype=bool)
    while True:  # each word once, to its best or as good as best; what is linked says which of several is meant
        free = near & ~np.any(taken, axis=1)[:, None] & ~np.any(taken, axis=0)[None]
        around = taken if taken.any() else similarity
        if not _taken_from(np.where(free, _in_context(similarity, around), 0.0), taken):
            break
    for _ in range(_ROUNDS):
        rows, columns = np.any(taken, axis=1)[:, None], np.any(taken, axis=0)[None]
        discount = np.where(rows ^ columns, _SECOND, np.where(rows & columns, 0.0, 1.0))
        if not _taken_from(np.where(allowed, _in_context(similarity, taken) * discount, 0.0), taken):
            break
    return [Link(i, j, float(min(1.0, similarity[i, j]))) for i, j in np.argwhere(taken).tolist()]


def _taken_from(scored: NDArray[np.float32], taken: NDArray[np.bool_]) -> bool:
    """Take the pairs that are each other's best; whether there was a new one."""
    across, down = scored.argmax(1), scored.argmax(0)
    new = [(i, int(j)) for i, j in enumerate(across) if down[j] == i and scored[i, j] > 0 and not taken[i, j]]
    for pair in new:
        taken[pair] = True
    return bool(new)


def _in_context(similarity: NDArray[np.float32], beside: NDArray[Any]) -> NDArray[np.float32]:
    """Similarities with what places add, and neighbours that `beside` says to match; only where there was any."""
    n, m = similarity.shape
    beside = np.asarray(beside, np.float32)
    around = np.zeros_like(similarity)
    for step in range(1, min(_REACH, n - 1, m - 1) + 1):
        weight = 1.0 / step
        around[step:, step:] += weight * beside[:-step, :-step]
        around[:-step, :-step] += weight * beside[step:, step:]
    most = 2.0 * sum(1.0 / step for step in range(1, _REACH + 1))
    place = 1.0 - np.abs(np.arange(n)[:, None] / n - np.arange(m)[None] / m)
    gained = similarity + _CONTEXT * around / most + _POSITION * place
    return np.where(similarity > 0, gained, 0.0).astype(np.float32)
