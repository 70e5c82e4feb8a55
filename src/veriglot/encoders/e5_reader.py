"""multilingual-e5-small as a reader: it is shown question, response and evidence together.

A sequence is `<s> query: QUESTION </s> RESPONSE </s> EVIDENCE </s>`, and every token of it sees every other. What the
network learned for this comes from `veriglot train reader`; the rest is the encoder's own file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from veriglot.encoders.e5 import LAYER, PROMPT, session_of, tokenizer_of, unusable
from veriglot.encoders.e5_file import E5File, Embeddings
from veriglot.encoders.e5_graph import built
from veriglot.encoders.offsets import without_space, without_surrogates
from veriglot.errors import WeightsError
from veriglot.weights.batches import batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["PARTS", "E5Reader", "Pair", "Tokeniser", "padded"]

PARTS = ("question", "response", "evidence")  # what a token can be of; what stands before the question is of it
_TOKENS_A_BATCH = 2048  # a few sequences: they are long, and a response rarely has more
_MARKS = ("<s>", "</s>", "<pad>", "<mask>")


@dataclass(frozen=True)
class Pair:
    """Something to read.

    Attributes:
        ids: the token ids of the whole sequence.
        question, response, evidence: the places in it, half-open, of their tokens.
    """

    ids: tuple[int, ...]
    question: tuple[int, int]
    response: tuple[int, int]
    evidence: tuple[int, int]


class Tokeniser:
    """Texts to token ids, and these to sequences.

    A text that holds `</s>` or another mark of the tokenizer holds an unknown token there: it ends no part.

    Args:
        path: the encoder's file.

    Raises:
        WeightsError: the file is missing or is not that model.
    """

    def __init__(self, path: str | Path) -> None:
        self._tokenizer = tokenizer_of(path)
        self._begin, *self._prompt, self._end = self._tokenizer.encode(PROMPT.strip()).ids
        file = E5File(Path(path))
        marks = (self._tokenizer.token_to_id(mark) for mark in _MARKS)
        self._as_text = {mark: file.unknown for mark in marks if mark is not None and mark != file.unknown}

    def tokens(self, text: str) -> tuple[list[int], NDArray[np.int64]]:
        """Token ids, and half-open code point ranges without white space, shape (t, 2)."""
        found = self._tokenizer.encode(without_surrogates(text), add_special_tokens=False)
        ids = [self._as_text.get(token, token) for token in found.ids]
        return ids, without_space(text, np.array(found.offsets, np.int64).reshape(-1, 2))

    def pair(self, question: Sequence[int], response: Sequence[int], evidence: Sequence[int]) -> Pair:
        """One sequence of three lists of token ids."""
        ids = (self._begin, *self._prompt, *question, self._end, *response, self._end, *evidence, self._end)
        first = len(self._prompt) + len(question) + 2
        second = first + len(response) + 1
        asked = first - 1 - len(question), first - 1
        return Pair(ids, asked, (first, second - 1), (second, second + len(evidence)))


class E5Reader:
    """The reader on ONNX Runtime, on one thread.

    Args:
        learned: as `e5_graph.built` takes it.
        path: the encoder's file.

    Attributes:
        room: tokens of a sequence at most.

    Raises:
        WeightsError: the file is missing or is not that model, or what was learned is not for it.
    """

    def __init__(self, learned: Mapping[str, NDArray[np.float32]], path: str | Path) -> None:
        try:
            file = E5File(Path(path))
            self._embeddings = Embeddings(file)
        except Exception as error:  # as for the encoder
            raise unusable(Path(path), error) from error
        try:
            self._session = session_of(built(file, LAYER, learned))
        except Exception as error:  # the errors of ONNX and of its runtime share no base
            raise WeightsError(f"What the reader has learned is not for the network in {path}: {error}.") from error
        self.room = self._embeddings.room

    def states(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, NDArray[np.float32], NDArray[np.float32]]]:
        """The place of each sequence among `pairs`, in any order, and the vectors of its tokens, shape (t, width).

        Those that the encoder gives for tokens, and its last ones. They are only as many at a time as a batch has.
        """
        for batch in batches([len(pair.ids) for pair in pairs], _TOKENS_A_BATCH):
            ids, mask, parts = padded([pairs[place] for place in batch])
            tokens, last = self._session.run(
                None, {"embedded": self._embeddings.of(ids), "mask": mask.astype(np.int32), "parts": parts}
            )
            for nth, place in enumerate(batch):
                length = len(pairs[place].ids)
                yield place, tokens[nth, :length], last[nth, :length]


def padded(pairs: Sequence[Pair]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Token ids (b, t), zeros on the right; a mask (b, t), 1 where there is one; their `PARTS`, one-hot (b, t, p)."""
    ids = np.zeros((len(pairs), max(len(pair.ids) for pair in pairs)), np.int64)
    mask = np.zeros_like(ids)
    part = np.zeros_like(ids)
    for nth, pair in enumerate(pairs):
        ids[nth, : len(pair.ids)] = pair.ids
        mask[nth, : len(pair.ids)] = 1
        part[nth, pair.response[0] : pair.evidence[0]] = 1
        part[nth, pair.evidence[0] :] = 2
    return ids, mask, np.eye(len(PARTS), dtype=np.float32)[part]
