"""From the confidences of words to the scores of what they make up: atomic facts, and sentences from their facts.

A fact is as suspect as its most suspect word: words of one fact go wrong together, so that their confidences do not
add up (a noisy-or over them promises far more errors than there are). A sentence gathers its facts, the most suspect
one in full and each further one at half the weight of the one before it: facts go wrong together too, but less so.
Both were chosen on held-out silver data; `docs/facts.md` has the comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics.marks import covered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.text import Fact

    Array = NDArray[np.float64]
    Bounds = NDArray[np.int32]

__all__ = ["RULE", "fact_marks", "fact_scores", "gathered", "sentence_scores"]

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
    found = np.zeros(len(sentences), dtype=np.float64)
    for place, (start, end) in enumerate(sentences.tolist()):
        inside = scores[(starts >= start) & (starts < end)]
        found[place] = gathered(inside) if len(inside) else by_character[start:end].max()
    return found
