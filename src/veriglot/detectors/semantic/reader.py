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

from veriglot.detectors.semantic.pairing import LONGEST, of_words, shown
from veriglot.encoders.e5_reader import E5Reader, Tokeniser
from veriglot.errors import WeightsError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.detectors.semantic.reading import Held, Reading
    from veriglot.encoders.e5_reader import Pair

    Array = NDArray[np.float32]

__all__ = ["FURTHER", "LEAST", "SHARP", "Judgement", "Reader", "judged", "read_learned", "save_learned"]

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

    def logits(self, held: Held, reading: Reading) -> tuple[Array, NDArray[np.bool_]]:
        """How unsupported each word is, shape (n,), and whether the reader saw it as a token, shape (n,)."""
        evidence = [held.passages[passage][low:high] for passage, low, high in reading.pieces.tolist()]
        sequences = shown(self._tokeniser, held.response, reading.said, held.question, evidence, reading.close)
        logits = [np.zeros(0, np.float32)] * len(sequences)
        for place, tokens, last in self._network.states([one.pair for one in sequences]):
            logits[place] = judged(self._learned, sequences[place].pair, tokens, last).unsupported
        return of_words(list(zip(sequences, logits, strict=True)), reading.extract.response.bounds)


@dataclass(frozen=True)
class Judgement:
    """What the reader makes of one sequence.

    Attributes:
        unsupported: a logit for each token of the response, shape (t,).
        answer: a logit for each token of the evidence, shape (e,): that it is of what the question asks for.
    """

    unsupported: Array
    answer: Array


def judged(learned: Mapping[str, Array], pair: Pair, tokens: Array, last: Array) -> Judgement:
    """What the heads say.

    Args:
        learned: their weights: of `answer` and of `unsupported` two layers each.
        pair: the sequence, of t tokens.
        tokens, last: its vectors, as `E5Reader.states` gives them, shape (t, width).
    """
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
    found: Array = (inner @ learned[f"{name}.1.w"].T + learned[f"{name}.1.b"])[:, 0]
    return found


def _softmax(values: Array) -> Array:
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    found: Array = powers / powers.sum(axis=-1, keepdims=True)
    return found


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
                with file.open(ZipInfo(f"{part}.npy"), "w") as place:
                    np.lib.format.write_array(place, array, allow_pickle=False)


def read_learned(path: Path) -> dict[str, Array]:
    """What is in the file, in float32.

    Raises:
        WeightsError: it is missing or is not such a file.
    """
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
        found: NDArray[Any] = np.lib.format.read_array(part, allow_pickle=False)
        return found
