"""The reader: question, response and evidence are shown to an encoder together, and it has learned to judge them.

The head (`inference`) compares vectors that were made apart. Whether an answer is the one that is asked for it cannot
tell: for that the question must be read with the evidence in view. The reader does this in the encoder
`e5-multilingual`, whose upper layers have learned low-rank additions, and judges each token of the response by

- its vector, which has met question and evidence;
- how close the evidence and the question come to it;
- how much the place in the evidence that it comes closest to is what the question asks for, which the network says of
  every token of the evidence; and the same of the whole response, its words that stand in the question set aside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from veriglot.encoders.e5 import E5Reader, Tokeniser
from veriglot.errors import WeightsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.detectors.semantic.features import Case, Close, Reading
    from veriglot.encoders.e5 import Pair

    Int64s = NDArray[np.int64]

__all__ = ["FURTHER", "LEAST", "SHARP", "Reader", "save_learned", "shown"]


# What the reader is shown of a sample: a part of the response at a time, with the evidence that comes closest to it.
#
# Every word of the response is shown. Of the evidence those sentences are, as many as there is room for, that come
# closest to the part of the response or to the question; the head has read the rest (`reading`).


_QUESTION = 60  # tokens of the question: a longer one is shown without its beginning, for what is asked comes last
_RESPONSE = 128  # of a part of the response
_EVIDENCE = 144  # of evidence; the closest sentence is there even where it alone is longer, up to `_SENTENCE`
_SENTENCE = 256  # of a sentence of the evidence
LONGEST = _QUESTION + _RESPONSE + _SENTENCE + 8  # of a sequence, with what stands between and before
_TRIED = 24  # sentences of the evidence, the closest first, that are looked at to fill the room
_NONE = np.zeros((0, 2), np.int64)


@dataclass(frozen=True)
class Shown:
    """One sequence, with the piece of each of the evidence's tokens and its bounds in that piece."""

    pair: Pair  # its tokens
    bounds: Int64s  # of the response's tokens in the response, half-open in code points, shape (t, 2)
    evidence: Int64s  # shape (e, 3)


def shown(
    tokeniser: Tokeniser,
    response: str,
    pieces: Int64s,
    question: str | None,
    evidence: Sequence[str],
    close: Close,
) -> list[Shown]:
    """The sequences of a sample; one without a response where that has no token.

    Args:
        tokeniser: the reader's.
        response: the response.
        pieces: its pieces (`vectors.pieces`), half-open in code points, shape (r, 2).
        question: the question, or None.
        evidence: the text of each piece of the evidence, s of them.
        close: how close these are.
    """
    asked = tokeniser.tokens(question)[0][-_QUESTION:] if question else []
    sentences = []
    for low, high, ids, bounds in _parts(tokeniser, response, pieces):
        order = np.argsort(-close.to(low, high), kind="stable")
        texts, places = _evidence(tokeniser, evidence, order)
        sentences.append(Shown(tokeniser.pair(asked, ids, texts), bounds, places))
    return sentences


def _parts(tokeniser: Tokeniser, response: str, pieces: Int64s) -> Iterator[tuple[int, int, list[int], Int64s]]:
    """Pieces `low` to `high` of the response, as many as there is room for, with their tokens and where these stand."""
    low, high = 0, 0
    indices: list[int] = []
    bounds: list[Int64s] = []
    for nth, (start, end) in enumerate(pieces.tolist()):
        ids, places = tokeniser.tokens(response[start:end])
        for first in range(0, len(ids), _RESPONSE):  # a piece longer than a part is in several
            some = ids[first : first + _RESPONSE]
            if len(indices) + len(some) > _RESPONSE:
                yield low, high, indices, np.concatenate(bounds)
                indices, bounds = [], []
            if not indices:
                low = nth
            indices, high = indices + some, nth + 1
            bounds.append(start + places[first : first + _RESPONSE])
    if indices or not high:
        yield low, max(high, 1), indices, np.concatenate([_NONE, *bounds])


def _evidence(tokeniser: Tokeniser, evidence: Sequence[str], order: Int64s) -> tuple[list[int], Int64s]:
    """Tokens of the first pieces in `order` for which there is room, as they stand in the evidence."""
    chosen: dict[int, tuple[list[int], Int64s]] = {}
    left, tried = _EVIDENCE, 0
    for index in order.tolist():
        ids, bounds = tokeniser.tokens(evidence[index])
        if ids and (len(ids) <= left or not chosen):
            chosen[index] = ids[:_SENTENCE], bounds[:_SENTENCE]
            left -= len(ids)
        tried += bool(ids)
        if left <= 0 or tried == _TRIED:
            break
    rows = [np.insert(bounds, 0, index, axis=1) for index, (_, bounds) in sorted(chosen.items())]
    tokens = [token for _, (ids, _) in sorted(chosen.items()) for token in ids]
    return tokens, np.concatenate(rows) if rows else np.zeros((0, 3), np.int64)


def of_words(
    judged: Sequence[tuple[Shown, NDArray[np.float32]]], words: Int64s
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """The mean logit of the tokens of each word, shape (n,), and whether it has any."""
    bounds = np.concatenate([_NONE, *(tokens.bounds for tokens, _ in judged)])
    logits = np.concatenate([values for _, values in judged] or [np.zeros(0, np.float32)])
    first = np.searchsorted(bounds[:, 1], words[:, 0], side="right")
    after = np.maximum(np.searchsorted(bounds[:, 0], words[:, 1], side="left"), first)
    sums = np.concatenate([[0.0], np.cumsum(logits, dtype=np.float64)])
    count = after - first
    mean: NDArray[np.float32] = ((sums[after] - sums[first]) / np.maximum(count, 1)).astype(np.float32)
    return mean, count > 0


if TYPE_CHECKING:
    Array = NDArray[np.float32]


FURTHER = 5  # numbers beside a token's vector: closeness to evidence and question, its place, the whole's, any question
SHARP = 20.0  # inverse temperature: how soft "the place that it comes closest to" is
LEAST = 1e-3  # share of what is asked below which all is one
_SCALED = "scale:"
_HEADS = tuple(f"{head}.{layer}.{part}" for head in ("answer", "unsupported") for layer in (0, 1) for part in "wb")


class Reader:
    """The reader with its weights.

    Args:
        learned: the file that `veriglot train reader` wrote.
        encoder: the file of `e5-multilingual`.

    Raises:
        WeightsError: a file is missing, damaged or not of its kind.
    """

    def __init__(self, learned: Path, encoder: Path) -> None:
        self._learned = read_learned(learned)
        self._tokeniser = Tokeniser(encoder)
        self._network = E5Reader(self._learned, encoder)
        missing = [name for name in _HEADS if name not in self._learned]
        if missing or self._network.room < LONGEST:
            why = f"it lacks {', '.join(missing)}" if missing else f"{encoder} takes too few tokens"
            raise WeightsError(f"{learned} cannot be read with: {why}.", remedy="Load the detector with reader=False.")

    def logits(self, case: Case, reading: Reading) -> tuple[Array, NDArray[np.bool_]]:
        """How unsupported each word is, shape (n,), and whether the reader saw it as a token, shape (n,)."""
        evidence = [case.passages[passage][low:high] for passage, low, high in reading.pieces.tolist()]
        sequences = shown(
            self._tokeniser, case.response, reading.response_pieces, case.question, evidence, reading.close
        )
        logits = [np.zeros(0, np.float32)] * len(sequences)
        for index, tokens, last in self._network.states([sequence.pair for sequence in sequences]):
            logits[index] = judged(self._learned, sequences[index].pair, tokens, last).unsupported
        return of_words(list(zip(sequences, logits, strict=True)), reading.extract.response.bounds)


@dataclass(frozen=True)
class Judgement:
    """Of one sequence."""

    unsupported: Array  # a logit for each token of the response, shape (t,)
    answer: Array  # a logit for each token of the evidence, shape (e,): that it is of what the question asks for


def judged(learned: Mapping[str, Array], pair: Pair, tokens: Array, last: Array) -> Judgement:
    """What the heads make of one sequence; its vectors are as `E5Reader.states` gives them, shape (t, width)."""
    question, response, evidence = (slice(*part) for part in (pair.question, pair.response, pair.evidence))
    answer = _two_layers(learned, "answer", last[evidence])
    unit = tokens / np.maximum(np.linalg.norm(tokens, axis=1, keepdims=True), 1e-6)
    rows = np.zeros((response.stop - response.start, FURTHER), np.float32)
    alike = unit[response] @ unit[evidence].T
    if alike.size:
        rows[:, 0] = alike.max(axis=1)
    if question.stop > question.start and alike.size:
        rows[:, 1] = (unit[response] @ unit[question].T).max(axis=1)
        asked = _softmax(SHARP * alike) @ _softmax(answer)
        rows[:, 2] = np.log(asked + LEAST)
        new = np.square(np.clip(1.0 - rows[:, 1], 0.01, 1.0))
        rows[:, 3] = np.log((new * asked).sum() / new.sum() + LEAST)
        rows[:, 4] = 1.0
    return Judgement(_two_layers(learned, "unsupported", np.concatenate([last[response], rows], axis=1)), answer)


def _two_layers(learned: Mapping[str, Array], name: str, values: Array) -> Array:
    inner = np.maximum(values @ learned[f"{name}.0.w"].T + learned[f"{name}.0.b"], 0.0)
    output: Array = (inner @ learned[f"{name}.1.w"].T + learned[f"{name}.1.b"])[:, 0]
    return output


def _softmax(values: Array) -> Array:
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    shares: Array = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def save_learned(path: Path, learned: Mapping[str, Array]) -> None:
    """Write what was learned: matrices in whole numbers of 8 bits with a scale for each row, the rest as it is.

    Equal numbers make equal files, which `numpy.savez` does not.
    """
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        for name, values in learned.items():
            parts: dict[str, NDArray[np.generic]] = {name: values}
            if values.ndim == 2:
                scale = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-12) / np.float32(127.0)
                parts = {name: np.round(values / scale).astype(np.int8), _SCALED + name: scale.astype(np.float32)}
            for part, array in parts.items():
                with file.open(ZipInfo(f"{part}.npy"), "w") as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)


def read_learned(path: Path) -> dict[str, Array]:
    """What is in the file, in float32."""
    try:
        with ZipFile(path) as file:
            arrays = {name.removesuffix(".npy"): _array(file, name) for name in file.namelist()}
    except (OSError, ValueError, BadZipFile) as error:
        raise WeightsError(f"{path} is missing or damaged: {error}.", remedy="Install Veriglot again.") from error
    return {
        name: values.astype(np.float32) * arrays.get(_SCALED + name, np.float32(1.0))
        for name, values in arrays.items()
        if not name.startswith(_SCALED)
    }


def _array(file: ZipFile, name: str) -> NDArray[Any]:
    with file.open(name) as part:
        array: NDArray[Any] = np.lib.format.read_array(part, allow_pickle=False)
        return array
