"""Features of words that come from whole sentences: how close the evidence comes to what the sentence says.

And of the sample: languages, scripts, task; and repetition, the mark of a model that ran in circles (the pathology
that hat's guidelines count as hallucination in translations, section 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.hashing import mixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.detectors.grounding.document import Document

__all__ = ["repetition", "sentence_columns"]

_BEYOND = 0.5  # the closeness that stands for the sentence before the first and after the last
_NEAREST = 3
_ODD = np.uint64(31)


def sentence_columns(
    ours: NDArray[np.float32],
    evidence: NDArray[np.float32],
    question: NDArray[np.float32] | None,
    asked: NDArray[np.float32] | None,
) -> NDArray[np.float32]:
    """Thirteen numbers for each sentence of the response, shape (s, 13); the last six are 0 without a question.

    Args:
        ours: unit vectors of its sentences, shape (s, d).
        evidence: unit vectors of the evidence's sentences, shape (e, d).
        question: of the question, shape (d,).
        asked: of the question together with each sentence, shape (s, d).
    """
    alike = ours @ evidence.T
    nearest = np.zeros((len(ours), _NEAREST), np.float32)
    highest = np.sort(alike, axis=1)[:, ::-1][:, :_NEAREST]
    nearest[:, : highest.shape[1]] = highest
    best = nearest[:, 0]
    beside = np.concatenate([[_BEYOND], best, [_BEYOND]])
    columns = [best, best - nearest[:, 1], nearest.mean(axis=1), beside[:-2], beside[2:]]
    columns += [np.full(len(ours), best.mean()), np.full(len(ours), best.min())]
    if question is None or asked is None:
        columns += [np.zeros(len(ours))] * 6
    else:
        to_question = evidence @ question
        together = (asked @ evidence.T).max(axis=1)
        columns += [
            np.full(len(ours), to_question.max()),
            together,
            together - to_question.max(),
            (alike + to_question).max(axis=1),
            ours @ question,
            to_question[alike.argmax(axis=1)],
        ]
    stacked: NDArray[np.float32] = np.stack(columns, axis=1).astype(np.float32)
    return stacked


def repetition(response: Document, evidence: Document) -> NDArray[np.float32]:
    """How the words before each word repeat, shape (n, 4).

    How often the word, the pair and the triple of stems that it ends were there before, each as 1 - 1 / (times + 1), of
    pairs and triples without as many times as the evidence repeats the one that it repeats most; and the share of the
    response's pairs that are repeats.
    """
    columns = []
    for size in (1, 2, 3):
        ours, theirs = _grams(response, size), _grams(evidence, size)
        before = _times_before(ours)
        there = np.bincount(np.searchsorted(np.unique(theirs), theirs)).max(initial=1) if len(theirs) else 1
        fresh = np.maximum(before - (there - 1), 0) if size > 1 else before
        column = np.zeros(len(response), np.float32)
        column[size - 1 :] = 1 - 1 / (fresh + 1)
        columns.append(column)
        if size == 2:
            share = float((fresh > 0).mean()) if len(fresh) else 0.0
    columns.append(np.full(len(response), share, np.float32))
    return np.stack(columns, axis=1)


def _grams(document: Document, size: int) -> NDArray[np.uint64]:
    count = max(0, len(document) - size + 1)
    grams = document.stem[:count].copy()
    for nth in range(1, size):
        grams = mixed(grams * _ODD + document.stem[nth : nth + count])
    return grams


def _times_before(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How often each value stood further left."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(values) else np.zeros(0, int)
    sizes = np.diff(starts, append=len(values))
    times = np.zeros(len(values), np.int64)
    times[order] = np.arange(len(values)) - np.repeat(starts, sizes)
    return times
