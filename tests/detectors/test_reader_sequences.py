"""What the reader is shown: the response once, and of the evidence all of it, or what has most in common with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

pytest.importorskip("tokenizers", reason="needs the extra `reader`: pip install 'veriglot[reader]'")
pytest.importorskip("onnx", reason="needs the extra `reader`: pip install 'veriglot[reader]'")

from tiny_e5 import END, write_e5
from veriglot.detectors.reader.sequences import ROOM, input_sequences
from veriglot.encoders.e5 import Tokeniser
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from veriglot.detectors.reader.sequences import InputSequence

FILLER = "the inner den in the inn. "  # 13 tokens
LONG = FILLER * 120
RESPONSE = "A river in the den. The inn is near. No one is there! " * 12
PART, QUESTION, WINDOW, SHARED_ROOM = 128, 48, 24, 320  # tokens


@pytest.fixture(scope="module")
def tokeniser(tmp_path_factory: pytest.TempPathFactory) -> Tokeniser:
    path = tmp_path_factory.mktemp("e5") / "tiny.bin"
    write_e5(path, room=512)
    return Tokeniser(path)


def ids_of(sequence: InputSequence, part: str) -> list[int]:
    return list(sequence.pair.ids[slice(*getattr(sequence.pair, part))])


def evidence_of(tokeniser: Tokeniser, sequence: InputSequence, passages: list[str]) -> str:
    """What is shown of the evidence, without white space, for a token's place has none."""
    pieces = {}
    for passage in passages:
        ids, bounds = tokeniser.tokens(passage)
        pieces |= {token: passage[start:end] for token, (start, end) in zip(ids, bounds.tolist(), strict=True)}
    return "".join(pieces[token] for token in ids_of(sequence, "evidence"))


def is_part(some: list[int], whole: list[int]) -> bool:
    """Whether tokens stand among others in their order."""
    rest = iter(whole)
    return all(token in rest for token in some)


def test_every_token_of_a_response_is_in_one_sequence(tokeniser: Tokeniser) -> None:
    ids, bounds = tokeniser.tokens(RESPONSE)
    sequences = input_sequences(tokeniser, RESPONSE, "en", "what?", [LONG])
    assert len(sequences) > 2
    assert [token for sequence in sequences for token in ids_of(sequence, "response")] == ids
    assert np.concatenate([sequence.bounds for sequence in sequences]).tolist() == bounds.tolist()
    assert max(len(sequence.bounds) for sequence in sequences) <= PART


def test_parts_end_where_sentences_end(tokeniser: Tokeniser) -> None:
    ends = {end for _, end in sentences(RESPONSE, "en")} | {len(RESPONSE.rstrip())}
    parts = input_sequences(tokeniser, RESPONSE, "en", None, ["the den"])
    assert {int(part.bounds[-1, 1]) for part in parts} <= {len(RESPONSE[:end].rstrip()) for end in ends}


def test_a_sentence_that_is_too_long_is_in_several_parts(tokeniser: Tokeniser) -> None:
    sequences = input_sequences(tokeniser, "in the den " * 100, "en", None, ["the den"])
    assert [len(sequence.bounds) for sequence in sequences[:-1]] == [PART] * (len(sequences) - 1)
    assert len(sequences) > 2


def test_evidence_that_fits_is_shown_whole_and_in_order(tokeniser: Tokeniser) -> None:
    passages = ["the den", "", FILLER * 3, "a river"]
    (sequence,) = input_sequences(tokeniser, "the den", "en", "in the inn?", passages)
    tokens = [tokeniser.tokens(passage) for passage in passages]
    assert ids_of(sequence, "evidence") == [token for ids, _ in tokens for token in ids]
    assert ids_of(sequence, "question") == tokeniser.tokens("in the inn?")[0]


@pytest.mark.parametrize(("response", "question"), [("zyx wvu", None), ("the inn", "zyx wvu"), ("zyx", "wvu")])
def test_of_long_evidence_the_windows_with_the_rare_words_are_shown(
    tokeniser: Tokeniser, response: str, question: str | None
) -> None:
    passages = [LONG + "zyx. " + LONG, LONG + "wvu. " + FILLER]
    (sequence,) = input_sequences(tokeniser, response, "en", question, passages)
    text = evidence_of(tokeniser, sequence, passages)
    assert "zyx" in text
    assert "wvu" in text
    assert ROOM - WINDOW < len(sequence.pair.ids) <= ROOM
    everything = [token for passage in passages for token in tokeniser.tokens(passage)[0]]
    assert is_part(ids_of(sequence, "evidence"), everything)
    assert len(ids_of(sequence, "evidence")) < len(everything)


def test_what_is_asked_counts_less_than_what_is_answered(tokeniser: Tokeniser) -> None:
    passages = [LONG, "zyx " * 200, "wvu " * 200]
    (answered,) = input_sequences(tokeniser, "zyx", "en", "wvu", passages)
    text = evidence_of(tokeniser, answered, passages)
    assert text.count("zyx") > text.count("wvu")


@pytest.mark.parametrize("room", [ROOM, 320, 200])
@pytest.mark.parametrize("evidence", ["", "the den", LONG])
@pytest.mark.parametrize("question", [None, "what?", "in the den " * 60])
def test_no_sequence_exceeds_the_room(tokeniser: Tokeniser, room: int, evidence: str, question: str | None) -> None:
    for response in ("a", RESPONSE, "in the den " * 100):
        for sequence in input_sequences(tokeniser, response, "en", question, [evidence, evidence], room):
            assert len(sequence.pair.ids) <= room
            assert sequence.pair.ids.count(END) == 3
            assert sequence.pair.question[1] - sequence.pair.question[0] <= QUESTION


def test_several_sequences_share_the_room(tokeniser: Tokeniser) -> None:
    sequences = input_sequences(tokeniser, RESPONSE, "en", "what?", [LONG, LONG])
    assert SHARED_ROOM - WINDOW < max(len(sequence.pair.ids) for sequence in sequences) <= SHARED_ROOM


def test_the_end_of_a_long_question_is_shown(tokeniser: Tokeniser) -> None:
    question = "in the den " * 60 + "who?"
    (sequence,) = input_sequences(tokeniser, "a", "en", question, ["the den"])
    assert ids_of(sequence, "question") == tokeniser.tokens(question)[0][-QUESTION:]


@pytest.mark.parametrize("question", [None, ""])
@pytest.mark.parametrize("passages", [[], [""], ["", " "]])
def test_without_question_and_evidence_the_response_stands_alone(
    tokeniser: Tokeniser, question: str | None, passages: list[str]
) -> None:
    (sequence,) = input_sequences(tokeniser, "the den", "en", question, passages)
    assert ids_of(sequence, "question") == ids_of(sequence, "evidence") == []
    assert ids_of(sequence, "response") == tokeniser.tokens("the den")[0]


def test_a_response_without_a_token_has_no_sequence(tokeniser: Tokeniser) -> None:
    assert input_sequences(tokeniser, "", "en", "what?", ["the den"]) == []


def test_a_mark_of_the_tokenizer_ends_no_part(tokeniser: Tokeniser) -> None:
    (sequence,) = input_sequences(tokeniser, "the </s> den", "en", "</s>?", ["in </s> the inn"])
    assert sequence.pair.ids.count(END) == 3
    assert sequence.pair.ids[-1] == END


def test_read_closely_each_sentence_stands_beside_those_that_cover_it_best(tokeniser: Tokeniser) -> None:
    evidence = ["The river is in the den. No one is there. ", FILLER * 3, "The inn is near. "]
    response = "A river is there. The inn is near."
    first, second = input_sequences(tokeniser, response, "en", None, evidence, evidence_room=24)
    ids, bounds = tokeniser.tokens(response)
    assert ids_of(first, "response") + ids_of(second, "response") == ids
    assert np.concatenate([first.bounds, second.bounds]).tolist() == bounds.tolist()
    texts = [evidence_of(tokeniser, sequence, evidence) for sequence in (first, second)]
    assert "river" in texts[0]
    assert "river" not in texts[1]
    assert "near" in texts[1]
    assert max(map(len, texts)) < len("".join(evidence)) / 2


def test_read_closely_nothing_is_lost_without_a_shared_word_or_evidence(tokeniser: Tokeniser) -> None:
    (alone,) = input_sequences(tokeniser, "xyz", "en", None, ["the den in the inn"], evidence_room=16)
    (empty,) = input_sequences(tokeniser, "the den", "en", None, [], evidence_room=16)
    assert ids_of(alone, "response")
    assert ids_of(alone, "evidence")
    assert not ids_of(empty, "evidence")
    long = input_sequences(tokeniser, "in the den " * 100, "en", None, ["the den " * 300], evidence_room=16)
    assert sum(len(sequence.bounds) for sequence in long) == len(tokeniser.tokens("in the den " * 100)[0])
    assert max(len(sequence.pair.ids) for sequence in long) <= ROOM
