"""From the confidences of words to the scores of what they make up: atomic facts, and sentences from their facts.

A fact is as suspect as its most suspect word: words of one fact go wrong together, so that their confidences do not
add up (a noisy-or over them promises far more errors than there are). A sentence gathers its facts, the most suspect
one in full and each further one at half the weight of the one before it: facts go wrong together too, but less so.
Both were chosen on held-out silver data; `benchmarks/facts.md` has the comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics.classification import ratio
from veriglot.metrics.spans import covered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.text.facts import Fact

__all__ = ["RULE", "SUPPORT", "correlation", "fact_marks", "fact_scores", "mean_of", "sentence_scores", "support"]


if TYPE_CHECKING:
    Array = NDArray[np.float64]
    Bounds = NDArray[np.int32]


RULE = "max-halving.1"  # part of the signature of what is scored so
_FADING = 0.5


def fact_scores(facts: Sequence[Fact], by_character: Array) -> Array:
    """The score of each fact, shape `(n,)`: the greatest probability among its code points.

    Args:
        facts: of the response.
        by_character: probability that each code point is unsupported, shape `(length,)`.
    """
    scores = [max(by_character[start:end].max() for start, end in fact.parts) for fact in facts]
    return np.array(scores, dtype=np.float64)


def fact_marks(facts: Sequence[Fact], length: int, spans: Bounds) -> NDArray[np.bool_]:
    """Which facts any span overlaps, shape `(n,)`.

    Args:
        facts: of the response.
        length: code points of the response.
        spans: half-open ranges, shape `(m, 2)`.
    """
    inside = covered(length, spans)
    return np.array([any(inside[start:end].any() for start, end in fact.parts) for fact in facts], dtype=bool)


def gathered(scores: Array) -> float:
    """The probability that any of several things is unsupported, from the probability of each.

    `1 - prod((1 - p_k) ** (1/2) ** k)` over the scores in falling order, k = 0, 1, ...: a noisy-or whose weights fade.
    It is never below the greatest score and never above the noisy-or.

    Args:
        scores: one or more, each from 0 to 1.
    """
    ordered = np.sort(scores)[::-1]
    fading = _FADING ** np.arange(len(ordered))
    return float(1.0 - np.prod((1.0 - ordered) ** fading))


def sentence_scores(sentences: Bounds, facts: Sequence[Fact], scores: Array, by_character: Array) -> Array:
    """The score of each sentence, gathered from the facts that begin in it, shape `(m,)`.

    Args:
        sentences: half-open ranges in order, shape `(m, 2)`.
        facts: of the response, in order of their beginnings.
        scores: of the facts.
        by_character: for sentences in which no fact begins.
    """
    starts = np.array([fact.start for fact in facts], dtype=np.int64)
    result = np.zeros(len(sentences), dtype=np.float64)
    for index, (start, end) in enumerate(sentences.tolist()):
        inside = scores[(starts >= start) & (starts < end)]
        result[index] = gathered(inside) if len(inside) else by_character[start:end].max()
    return result


# The share of a response's facts that are supported: FActScore (Min et al. 2023), the support rate of Kang et al.
#
# Kept per response as columns that add, so that means over responses and their correlation cost additions.


# Responses with facts; the share supported by the labels, as marked, and as the scores expect; how far the latter is
# off; and the products that a correlation of the first with the last takes.
SUPPORT = ("responses", "gold", "marked", "expected", "off", "gold_squared", "expected_squared", "product")


def support(gold: NDArray[np.bool_], predicted: NDArray[np.bool_], scores: Array | None) -> list[float]:
    """The columns `SUPPORT` of one response; zeros where it has no facts.

    Args:
        gold: which facts the reference calls unsupported, shape `(n,)`.
        found: which the detector marks.
        scores: the probability that each is unsupported; None where the detector gives none: then marks stand for it.
    """
    if not len(gold):
        return [0.0] * len(SUPPORT)
    true, marked = 1.0 - float(gold.mean()), 1.0 - float(predicted.mean())
    expected = marked if scores is None else 1.0 - float(scores.mean())
    return [1.0, true, marked, expected, abs(expected - true), true**2, expected**2, true * expected]


def mean_of(sums: Array, column: str) -> Array:
    """The mean over responses of one column of `SUPPORT`; NaN where there are none.

    Args:
        sums: summed columns, shape `(..., len(SUPPORT))`.
        column: its name.
    """
    return ratio(sums[..., SUPPORT.index(column)], sums[..., 0])


def correlation(sums: Array) -> Array:
    """Pearson's correlation over responses of the share that the labels support with the one that the scores expect.

    NaN where either is the same in every response (Kang et al., Table 6, column Pearson).
    """
    gold, expected, gold_squared, expected_squared, product = (
        mean_of(sums, name) for name in ("gold", "expected", "gold_squared", "expected_squared", "product")
    )
    spread = np.maximum(gold_squared - gold**2, 0.0) * np.maximum(expected_squared - expected**2, 0.0)
    coefficient = ratio(product - gold * expected, np.sqrt(np.where(spread > 1e-18, spread, 0.0)))
    return np.clip(coefficient, -1.0, 1.0)
