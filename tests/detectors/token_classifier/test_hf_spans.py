"""From tokens to words to spans, on numbers that can be followed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from veriglot.detectors.token_classifier.detector import (
    ModelInputs,
    TokenProbabilities,
    labels_of,
    marked_words,
    span_list,
    word_list,
)
from veriglot.records import Pointer

pytest.importorskip("torch", reason="needs the extra `local`: pip install 'veriglot[local]'")

pytestmark = pytest.mark.slow

RESPONSE = "abcd efgh ij"
WORDS = np.array([[0, 4], [5, 9], [10, 12]], np.int32)
TOKENS = np.array([[0, 2], [2, 4], [4, 9], [9, 12]], np.int64)  # two of the first word, and one of each other
TWO = labels_of("supported,hallucination", "m")


def said(*unsupported: float, tokens: np.ndarray = TOKENS) -> TokenProbabilities:
    mine = np.array(unsupported)
    return TokenProbabilities(tokens, np.stack([1 - mine, mine], axis=1))


def inputs_of(windows: int, *pieces: tuple[int, int]) -> ModelInputs:
    pieces = pieces or ((0, len(RESPONSE)),)
    return ModelInputs(
        (None,) * (windows * len(pieces)), tuple((Pointer(f"p{n}", 0, 5),) for n in range(windows)), pieces
    )


@pytest.mark.parametrize(("pooling", "first"), [("max", 0.9), ("mean", 0.5), ("first", 0.1)])
def test_words_are_pooled(pooling: str, first: float) -> None:
    found = marked_words(WORDS, inputs_of(1), [said(0.1, 0.9, 0.2, 0.6)], TWO, pooling)
    assert found.confidences.tolist() == pytest.approx([first, 0.2, 0.6])
    assert found.unseen == 0


def test_a_word_takes_the_window_that_supports_all_of_it() -> None:
    both = [said(0.1, 0.9, 0.2, 0.8), said(0.9, 0.1, 0.4, 0.3)]
    found = marked_words(WORDS, inputs_of(2), both, TWO, "max")
    assert found.confidences.tolist() == pytest.approx([0.9, 0.2, 0.3]), "no window supports both halves of the first"
    assert found.windows.tolist()[1:] == [0, 1]
    pointers = [[pointer.id for pointer in word.evidence] for word in word_list(found, inputs_of(2).windows, 0.5)]
    assert pointers == [[], ["p0"], ["p1"]]


def test_a_word_is_taken_from_the_piece_where_it_stands_inside() -> None:
    # The second word begins the second piece, and has four code points behind it in the first.
    made = inputs_of(1, (0, 12), (5, 20))
    pieces = [said(0.1, 0.1, 0.3, 0.3), said(0.7, 0.8, tokens=np.array([[0, 4], [4, 7]]))]
    found = marked_words(WORDS, made, pieces, TWO, "max")
    assert found.confidences.tolist() == pytest.approx([0.1, 0.3, 0.8])


def test_a_word_that_every_piece_cuts_is_taken_from_all() -> None:
    made = inputs_of(1, (0, 7), (7, 12))
    pieces = [
        said(0.1, 0.1, 0.4, tokens=np.array([[0, 2], [2, 4], [5, 7]])),
        said(0.9, 0.2, tokens=np.array([[0, 2], [3, 5]])),
    ]
    found = marked_words(WORDS, made, pieces, TWO, "max")
    assert found.confidences.tolist() == pytest.approx([0.1, 0.9, 0.2])


def test_words_without_a_token_are_counted() -> None:
    found = marked_words(WORDS, inputs_of(1), [said(0.1, 0.9, tokens=np.array([[0, 4], [10, 12]]))], TWO, "max")
    assert (found.bounds[:, 0].tolist(), found.unseen) == ([0, 10], 1)


def test_spans_end_with_sentence_type_and_beginning() -> None:
    labels = labels_of("O,B-entity,I-entity,relation", "m")
    words = np.array([[n, n + 1] for n in range(0, 12, 2)], np.int32)
    kinds = [1, 2, 3, 3, 1, 1]
    outputs = np.full((6, 4), 0.05)
    outputs[range(6), kinds] = 0.85
    made = ModelInputs((None,), ((Pointer("p0", 0, 5),),), ((0, 12),))
    found = marked_words(words, made, [TokenProbabilities(words.astype(np.int64), outputs)], labels, "max")
    spans = span_list("a b c d e f ", found, [(0, 6), (6, 12)], labels, made.windows, 0.5)
    assert [(span.text, span.type) for span in spans] == [
        ("a b", "entity"), ("c", "relation"), ("d", "relation"), ("e", "entity"), ("f", "entity"),
    ]  # fmt: skip
    assert {span.confidence for span in spans} == {0.95}
