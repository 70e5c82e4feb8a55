"""What the reader is shown: every word of the response, and the evidence that is closest, each at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from veriglot.detectors.semantic.features import Close, pieces

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.detectors.semantic.reader import Shown
    from veriglot.encoders.e5 import Tokeniser

pytest.importorskip("tokenizers", reason="needs the extra `semantic`: pip install 'veriglot[semantic]'")
pytest.importorskip("onnx", reason="needs the extra `semantic`: pip install 'veriglot[semantic]'")

from veriglot.detectors.semantic.reader import of_words, shown

SENTENCE = "the inner river runs there. "


@pytest.fixture(scope="module")
def tokeniser(tiny_reading_encoder: Path) -> Tokeniser:
    from veriglot.encoders.e5 import Tokeniser

    return Tokeniser(tiny_reading_encoder)


def close_to(order: list[int], said: int, count: int) -> Close:
    """Pieces of the evidence as close as they stand in `order`, to every piece of the response."""
    values = np.zeros((said, count), np.float32)
    for nth, place in enumerate(order):
        values[:, place] = 1 - 0.1 * nth
    return Close(values, None, np.zeros(count, np.float32))


def sequences(tokeniser: Tokeniser, response: str, evidence: list[str], order: list[int]) -> list[Shown]:
    bounds = pieces(response, "en")
    return shown(tokeniser, response, bounds, "in there?", evidence, close_to(order, len(bounds), len(evidence)))


@pytest.mark.parametrize("sentences", [1, 7, 40])
def test_every_token_of_the_response_is_shown_once_at_its_place(tokeniser: Tokeniser, sentences: int) -> None:
    response = SENTENCE * sentences
    found = sequences(tokeniser, response, ["the ice is thin"], [0])
    bounds = np.concatenate([one.bounds for one in found])
    assert (np.diff(bounds[:, 0]) >= 0).all()
    covered = {place for low, high in bounds.tolist() for place in range(low, high)}
    assert covered == {place for place, letter in enumerate(response) if letter != " "}
    assert sum(len(one.bounds) for one in found) >= len(covered) / 6
    for one in found:
        low, high = one.pair.response
        assert high - low == len(one.bounds) <= 128
        assert one.pair.evidence[1] == len(one.pair.ids) - 1


def test_one_sentence_of_its_own_length_is_in_several_parts(tokeniser: Tokeniser) -> None:
    response = "in " * 300 + "."
    found = sequences(tokeniser, response, ["the ice"], [0])
    assert len(found) > 1
    assert sum(len(one.bounds) for one in found) == len(tokeniser.tokens(response)[0])


def test_the_closest_evidence_is_shown_as_it_stands(tokeniser: Tokeniser) -> None:
    evidence = [f"the {letter * 30} {letter * 30}" for letter in "abcdef"]
    (one,) = sequences(tokeniser, "the river", evidence, [4, 1, 5, 0, 2, 3])
    chosen = list(dict.fromkeys(one.evidence[:, 0].tolist()))
    assert chosen == sorted(chosen)
    assert {4, 1} <= set(chosen)
    assert len(chosen) < len(evidence)
    low, high = one.pair.evidence
    assert high - low == len(one.evidence) <= 144
    for place, start, end in one.evidence.tolist():
        assert evidence[place][start:end].strip() == evidence[place][start:end]


def test_a_closest_sentence_that_is_too_long_is_there_all_the_same(tokeniser: Tokeniser) -> None:
    (one,) = sequences(tokeniser, "the river", ["a", "x" * 2000], [1, 0])
    assert set(one.evidence[:, 0].tolist()) == {1}
    assert len(one.evidence) == 256


def test_of_a_long_question_the_end_is_shown(tokeniser: Tokeniser) -> None:
    close = close_to([0], 1, 1)
    (one,) = shown(tokeniser, "the", np.array([[0, 3]]), "a " * 100 + "the end", ["in"], close)
    low, high = one.pair.question
    assert high - low == 60
    assert list(one.pair.ids[low:high]) == tokeniser.tokens("a " * 100 + "the end")[0][-60:]


def test_a_response_without_tokens_is_one_sequence_without_them(tokeniser: Tokeniser) -> None:
    (one,) = shown(tokeniser, "", np.zeros((0, 2), np.int64), "the?", ["in"], close_to([0], 1, 1))
    assert one.pair.response[0] == one.pair.response[1]
    assert len(one.bounds) == 0


def test_words_have_the_mean_of_their_tokens(tokeniser: Tokeniser) -> None:
    (one,) = sequences(tokeniser, "the river", ["in"], [0])
    logits: NDArray[np.float32] = np.arange(len(one.bounds), dtype=np.float32)
    words = np.array([[0, 3], [3, 4], [4, 9]])
    mean, seen = of_words([(one, logits)], words)
    assert seen.tolist() == [True, False, True]
    inside = one.bounds[:, 1] > 4  # not the token of the space, which takes no place
    assert mean[0] == pytest.approx(logits[one.bounds[:, 1] <= 3].mean())
    assert mean[2] == pytest.approx(logits[inside].mean())
