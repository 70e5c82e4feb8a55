"""How likely two words of a text and its translation belong together, out of how alike they are and where they stand.

As in AWESOME-align (Dou and Neubig 2021, section 2.2), similarities become probabilities by a softmax in both
directions; here their geometric mean is taken. Three things are put in before, since sentence encoders see a
paragraph's words as all rather alike: similarities count against those of a word's nearest (CSLS; Conneau et al. 2018,
section 2.3), equal forms and names add to them, and words far from where their surroundings went are held back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.build.translating.alignment import Link

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Weighing", "posterior", "soft_links"]

_NEAREST = 5  # words that a similarity is held against
_FEWEST = 10.0  # words; in a short sentence order says little
_SURROUNDINGS = 8  # words on either side that say where a stretch of text went
_FADES = 4.0  # words after which a neighbour says half as much
_LEAST = 0.02  # probability of a link


class Weighing(NamedTuple):
    """What counts how much. The defaults were chosen by `benchmarks/projection.py` on half of its paragraphs.

    Attributes:
        temperature: of the softmax; lower is more decided.
        form: what an equal form adds, on the scale of two cosines.
        place: what a word far from where it is expected loses.
        spread: share of the text that is far, before anything is known of the order.
        reach: words that are far, once it is.
        rounds: how often the order is read off and put in again.
    """

    temperature: float = 0.1
    form: float = 0.7
    place: float = 0.6
    spread: float = 0.2
    reach: float = 8.0
    rounds: int = 2


def posterior(cosine: NDArray[np.float32], form: NDArray[np.float32] | None, weighing: Weighing) -> Array:
    """Probabilities, 0 to 1, shape (source words, target words).

    Args:
        cosine: of the words' vectors, same shape.
        form: how alike the words are as they stand, 0 to 1; None where that does not count.
        weighing: what counts how much.
    """
    n, m = cosine.shape
    if not cosine.size:
        return np.zeros((n, m))
    alike = _against_nearest(np.asarray(cosine, np.float64))
    if form is not None:
        alike = alike + weighing.form * form
    expected = np.arange(n) * m / n
    columns = np.arange(m)[None]
    far = np.abs(columns - expected[:, None]) / max(weighing.spread * m, _FEWEST)
    found = _both_ways(alike - weighing.place * np.minimum(far**2, 1.0), weighing.temperature)
    for _ in range(weighing.rounds):
        far = np.abs(columns - (expected + _moved(found, expected))[:, None]) / weighing.reach
        found = _both_ways(alike - weighing.place * np.minimum(far, 1.0), weighing.temperature)
    return found


def soft_links(probabilities: Array) -> list[Link]:
    """Every pair that is not improbable, in the order of the source, with its probability as weight."""
    places = np.argwhere(probabilities >= _LEAST)
    return [Link(i, j, min(1.0, float(probabilities[i, j]))) for i, j in places.tolist()]


def _against_nearest(cosine: Array) -> Array:
    across = np.sort(cosine, axis=1)[:, -_NEAREST:].mean(1, keepdims=True)
    down = np.sort(cosine, axis=0)[-_NEAREST:].mean(0, keepdims=True)
    return np.asarray(2 * cosine - across - down)


def _both_ways(alike: Array, temperature: float) -> Array:
    return np.asarray(np.sqrt(_softmax(alike / temperature, 1) * _softmax(alike / temperature, 0)))


def _softmax(values: Array, axis: int) -> Array:
    powers = np.exp(values - values.max(axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis, keepdims=True))


def _moved(found: Array, expected: Array) -> Array:
    """How far each source word's surroundings went from where they were expected: a weighted median, in words."""
    away = found.argmax(1) - expected
    sure = found.max(1) ** 2
    n = len(expected)
    median = np.zeros(n)
    for i in range(n):
        near = np.arange(max(0, i - _SURROUNDINGS), min(n, i + _SURROUNDINGS + 1))
        order = near[np.argsort(away[near], kind="stable")]
        weight = np.cumsum(sure[order] / (1 + np.abs(order - i) / _FADES))
        median[i] = away[order[np.searchsorted(weight, weight[-1] / 2)]]
    return median
