"""Features of how a word is written and where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.text.unicode_table import code_points

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.detectors.grounding.document import Document

__all__ = ["shape_features"]

_STOP, _OPENING, _CLOSING = 1, 2, 4
_MARKED = np.zeros(0x10000, np.uint8)  # every one of them lies in the first plane
for _bit, _marks in (
    (_STOP, ".,;:!?。，、；：！？،؛؟।۔"),
    (_OPENING, "\"'«“„「『(（《【"),
    (_CLOSING, "\"'»”“」』)）》】"),
):
    _MARKED[code_points(_marks)] |= _bit


def _kinds(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Which of the marks above each code point is, as bits."""
    return _MARKED[np.where(codes < len(_MARKED), codes, 0)]


def shape_features(
    answer: Document, sentence: NDArray[np.int64], evidence_words: int
) -> dict[str, NDArray[np.floating] | NDArray[np.bool_]]:
    """How each word is written and where it stands; every value has shape (n,) and lies near 0 to 1.

    Args:
        answer: the response.
        sentence: the sentence of each word, counted from 0 without gaps, shape (n,).
        evidence_words: words in all the evidence.
    """
    words = len(answer)
    order = np.arange(words)
    digits = answer.counts_in_words(answer.digits())
    uppers = answer.uppers()
    capitals = answer.counts_in_words(uppers)
    in_sentence = np.bincount(sentence)
    begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(in_sentence)])
    folded = np.concatenate([answer.folded, [0]])
    before = _kinds(folded[answer.bounds[:, 0] - 1])  # index -1 is the 0 at the end
    after = _kinds(folded[answer.bounds[:, 1]])
    return {
        "is_number": digits > 0,
        "digits": np.minimum(digits, 6) / 6.0,
        "is_year": (digits == 4) & (answer.lengths == 4),
        "capital": uppers[answer.bounds[:, 0]],
        "all_capitals": (capitals == answer.lengths) & (answer.lengths > 1),
        "length": np.minimum(answer.lengths, 15) / 15.0,
        "first": np.diff(sentence, prepend=-1) > 0,
        "place_in_sentence": (order - begins[sentence]) / in_sentence[sentence],
        "sentence_length": np.log1p(in_sentence[sentence]) / 4.0,
        "place": order / words,
        "response_length": np.full(words, np.log1p(words) / 6.0),
        "sentences": np.full(words, np.log1p(len(in_sentence)) / 4.0),
        "evidence_length": np.full(words, np.log1p(evidence_words) / 8.0),
        "before_stop": (after & _STOP) != 0,
        "after_opening": (before & _OPENING) != 0,
        "before_closing": (after & _CLOSING) != 0,
        "ideographic": answer.ideographic,
        "has_case": np.full(words, bool(uppers.any())),
    }
